"""How short answers to questions are compared, and the settings of it that a task may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from toolenvs.errors import UnknownNameError, UsageError


class QaPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of one task's comparison. ``Task.grading`` overrides them by keyword.

    ================  ============  ================================================================
    setting           default       meaning
    ================  ============  ================================================================
    aliases           ``()``        further right answers, besides the task's gold answer
    supporting        ``()``        ids of the documents that hold what the answer needs: read by
                                    the rewards for retrieval and citations
    mode              ``strict``    the rules below; ``squad_compat``, ``hotpot_compat``: the
                                    official scripts, to the bit (``toolenvs.grading.squad``);
                                    ``ids``: the answer is a set of document ids, separated by
                                    white space or semicolons, in any order
    articles          ``drop``      *a*, *an*, *the* before a word do not count, unless they may be
                                    names (``toolenvs.grading.qa_articles``); ``keep``: they do
    diacritics        ``keep``      ``Zürich`` is not ``Zurich``; ``fold``: it is
    dates             ``calendar``  ``18 May 2018``, ``May 18th, 2018`` and ``2018-05-18`` are one
                                    date, ``Feb 2018`` and ``February 2018`` one month; ``text``:
                                    compared as text. Dates in digits with slashes or dots, whose
                                    order is anyone's guess, are always text
    number_words      ``False``     ``seven`` is not ``7``; True: numbers in English words, ordinals
                                    (``first``, ``1st``) and ``1.5 million`` are those in digits
    ================  ============  ================================================================
    """

    aliases: tuple[str | int, ...] = ()
    supporting: tuple[str | int, ...] = ()
    mode: Literal["strict", "squad_compat", "hotpot_compat", "ids"] = "strict"
    articles: Literal["drop", "keep"] = "drop"
    diacritics: Literal["keep", "fold"] = "keep"
    dates: Literal["calendar", "text"] = "calendar"
    number_words: bool = False

    def __post_init__(self) -> None:
        for name in ("aliases", "supporting"):
            if isinstance(getattr(self, name), str):
                given = getattr(self, name)
                raise UsageError(f"{name} of grading is the text {given!r}; it must be a list.")

    @property
    def official(self) -> bool:
        """Whether an official script decides, with all that it is blind to."""
        return self.mode.endswith("compat")


def read_policy(settings: Mapping[str, Any]) -> QaPolicy:
    """Read a task's ``grading`` settings.

    Raises:
        UsageError: A setting has another name, or a value that it cannot have; the message says
            which.
    """
    for name in settings:
        if name not in QaPolicy.__struct_fields__:
            raise UnknownNameError("a setting of grading", name, QaPolicy.__struct_fields__)
    try:
        return msgspec.convert(dict(settings), QaPolicy)
    except msgspec.ValidationError as error:
        raise UsageError(f"grading cannot be {dict(settings)!r}: {error}.") from error
