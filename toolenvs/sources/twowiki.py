"""2WikiMultihopQA: questions over two to four paragraphs; ``2wiki`` is another name of it.

Layout: Ho et al. 2020, arXiv:2011.01060; https://github.com/Alab-NII/2wikimultihop.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._questionsource import QuestionSource


class Twowiki(QuestionSource):
    """The rows of a 2WikiMultihopQA file, such as ``2wiki:dev.json``.

    Read as HotpotQA's, whose layout it has; in its Parquet files ``context`` and
    ``supporting_facts`` are JSON in a text.

    Args:
        location: path of the file; ``,corpus=FILE`` names another corpus.
        family: taken by every source; these tasks are always ``search``.

    Raises:
        DataError: As ``QuestionSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        super().__init__("twowiki", location)
