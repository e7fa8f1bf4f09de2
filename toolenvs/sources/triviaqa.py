"""TriviaQA: questions with many aliases of the right answer, no documents.

Layout: Joshi et al. 2017, arXiv:1705.03551; https://nlp.cs.washington.edu/triviaqa.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._questionsource import QuestionSource


class Triviaqa(QuestionSource):
    """The rows of a TriviaQA file, such as ``triviaqa:web-dev.json,corpus=wiki-18.jsonl``.

    The official JSON, and the layouts of Hugging Face, FlashRAG and Search-R1. Aliases are taken as
    they are written: the normalised ones have lost their symbols. The data set names no supporting
    documents, so citations and retrieval are not scored.

    Args:
        location: path of the file; ``,corpus=FILE`` names another corpus.
        family: taken by every source; these tasks are always ``search``.

    Raises:
        DataError: As ``QuestionSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        super().__init__("triviaqa", location, bare=True)
