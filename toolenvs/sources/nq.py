"""Natural Questions in its open form: questions with several right answers, no documents.

Layout: Lee et al. 2019, arXiv:1906.00300; https://github.com/google-research-datasets/natural-questions.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._questionsource import QuestionSource


class Nq(QuestionSource):
    """The rows of an NQ file, such as ``nq:NQ-open.dev.jsonl,corpus=wiki-18.jsonl``.

    NQ-open's own layout, FlashRAG's and Search-R1's, as JSON Lines or Parquet. The data set names
    no supporting documents, so citations and retrieval are not scored.

    Args:
        location: path of the file; ``,corpus=FILE`` names another corpus.
        family: taken by every source; these tasks are always ``search``.

    Raises:
        DataError: As ``QuestionSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        super().__init__("nq", location, bare=True)
