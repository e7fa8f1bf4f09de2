"""HotpotQA: questions over two or more paragraphs, with distractors.

Layout: Yang et al. 2018, arXiv:1809.09600; https://hotpotqa.github.io.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._questionsource import QuestionSource


class Hotpotqa(QuestionSource):
    """The rows of a HotpotQA file, such as ``hotpotqa:hotpot_dev_distractor_v1.json``.

    The official JSON and the layouts of Hugging Face and FlashRAG are read, as JSON, JSON Lines or
    Parquet; also ircot's rows. The paragraphs of all questions are the corpus, a paragraph's title
    is its id, and the paragraphs of the supporting facts are what the answer needs. Rows without
    paragraphs are questions without a corpus, see ``QuestionSource``.

    Args:
        location: path of the file; ``,corpus=FILE`` names another corpus.
        family: taken by every source; these tasks are always ``search``.

    Raises:
        DataError: As ``QuestionSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        super().__init__("hotpotqa", location)
