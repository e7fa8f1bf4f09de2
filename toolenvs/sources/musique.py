"""MuSiQue: questions over two to four paragraphs, with hard distractors.

Layout: Trivedi et al. 2022, arXiv:2108.00573; https://github.com/StonyBrookNLP/musique.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._questionsource import QuestionSource


class Musique(QuestionSource):
    """The rows of a MuSiQue file, such as ``musique:musique_ans_v1.0_dev.jsonl``.

    The paragraphs of all questions are the corpus. A paragraph's title is its id; since MuSiQue has
    several paragraphs of one article, the second is called ``TITLE #2``. Rows of ``musique_full``
    that are not answerable are rejected.

    Args:
        location: path of the file; ``,corpus=FILE`` names another corpus.
        family: taken by every source; these tasks are always ``search``.

    Raises:
        DataError: As ``QuestionSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        super().__init__("musique", location)
