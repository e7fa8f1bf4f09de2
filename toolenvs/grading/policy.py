"""How answers are compared, and what a comparison says."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from toolenvs.errors import UsageError

Kind = Literal["auto", "number", "text", "choice"]


class MathPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    r"""The rules of one task's comparison. ``Task.grading`` overrides them by keyword.

    ===================  ===========  ==============================================================
    setting              default      meaning
    ===================  ===========  ==============================================================
    kind                 ``auto``     the gold answer's own form decides; ``number``: both must be
                                      numbers; ``text``: compared as text only; ``choice``: the
                                      letter of an option
    rel_tol              ``0.0``      decimals are exact rationals; else, where one side is written
                                      as a decimal, ``|answer - gold| <= rel_tol * |gold|`` is equal
    allow_missing_unit   ``True``     a unit on one side only is ignored (``unit_missing``,
                                      ``unit_extra``); two different units never are. In an answer a
                                      unit is of the tables in ``units`` (measures, money, things
                                      that are counted) or named by the gold answer itself; any
                                      other word after a number makes it ``unparsed``
    percent              ``lenient``  gold ``18\%``: ``18\%`` and ``0.18`` are right, and ``18`` too
                                      (``percent_missing``); ``strict``: not ``18``. Gold ``18``:
                                      ``18\%`` is wrong either way
    ordered              ``auto``     tuples in order, sets and bare lists ``3, 11`` in any order;
                                      ``always``, ``never``: for all of the three
    ===================  ===========  ==============================================================
    """

    kind: Kind = "auto"
    rel_tol: float = 0.0
    allow_missing_unit: bool = True
    percent: Literal["lenient", "strict"] = "lenient"
    ordered: Literal["auto", "always", "never"] = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.rel_tol < 1:
            raise UsageError(f"rel_tol is {self.rel_tol}; it must be at least 0 and below 1.")


def read_policy(settings: Mapping[str, Any]) -> MathPolicy:
    """Read a task's ``grading`` settings, the one way in which all read them.

    Raises:
        UsageError: A setting has another name, or a value that it cannot have; the message says
            which.
    """
    known = sorted(MathPolicy.__struct_fields__)
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"grading has no setting {name!r}.{hint} Known: {', '.join(known)}.")
    try:
        return msgspec.convert(dict(settings), MathPolicy)
    except msgspec.ValidationError as error:
        raise UsageError(f"grading cannot be {dict(settings)!r}: {error}.") from error


class Verdict(msgspec.Struct, frozen=True):
    """What a comparison found.

    Attributes:
        correct: True when the answer is right.
        reason: ``"equal"``, ``"different"``, ``"no_answer"`` (nothing was submitted),
            ``"unparsed_answer"``, ``"gold_not_gradable"``, ``"grader_timeout"`` (too large or too
            slow to evaluate) or ``"undecided"`` (no proof either way, hence wrong).
        rule: which rule decided: ``"exact_number"``, ``"expression"``, ``"text"``, ``"set"``,
            ``"percent_missing"``, ``"unit_different"``, ``"kind_differs"`` ...
        gradable: False when the gold answer itself cannot be graded: the answer is to be masked.
    """

    correct: bool
    reason: str
    rule: str
    gradable: bool = True
