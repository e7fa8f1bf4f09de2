"""Search-R1's training files: several data sets in one, in the layout of verl.

Layout: Jin et al. 2025, arXiv:2503.09516; https://github.com/PeterGriffinJin/Search-R1.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._questionsource import QuestionSource


class Searchr1(QuestionSource):
    """The rows of a Search-R1 file, such as ``searchr1:train.parquet,corpus=wiki-18.jsonl``.

    The prompt is the question alone, since the file's own prompt tells of another format of calls;
    the answers are ``golden_answers``, else ``reward_model.ground_truth.target``. As data sets are
    joined there, a task's id is ``DATA_SOURCE-ID``. The files name no supporting documents, so
    citations and retrieval are not scored.

    Args:
        location: path of the file; ``,corpus=FILE`` names another corpus.
        family: taken by every source; these tasks are always ``search``.

    Raises:
        DataError: As ``QuestionSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        super().__init__("searchr1", location)
