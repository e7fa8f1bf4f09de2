"""How two results of queries are compared, and the settings of it that a task may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from toolenvs.errors import UnknownNameError, UsageError

MOST_DECIMALS = 15

Engine = Literal["sqlite", "postgres"]


class SqlPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of one task's comparison. ``Task.grading`` overrides them by keyword.

    =================  ============  ===============================================================
    setting            default       meaning
    =================  ============  ===============================================================
    mode               ``rows``      the rows of a query count; ``state``: the rows of all tables
                                     after statements that change them
    order              ``auto``      order counts where the gold's outermost statement has an
                                     ORDER BY; ``always``, ``never``
    columns            ``permute``   one permutation of the columns, the same for every row, may lie
                                     between the tables; ``exact``: the gold's order of columns;
                                     ``subset``: as ``permute``, and ``extra_columns`` more may be
                                     there. Names of columns never count
    extra_columns      ``2``         how many more ``subset`` allows, so that ``*`` is no answer;
                                     those that a query writes out itself are passed over
    ties               ``choice``    where the gold's LIMIT cuts through rows that tie, as many rows
                                     as it takes, whichever; ``all``: or all of those that tie
    rel_tol            ``1e-9``      two numbers of which one is a float agree if they differ by at
                                     most this part of the larger. Whole numbers (``2.0`` is one, up
                                     to 2**40) are compared exactly, and decimals up to 1e-13
    decimals           ``-1``        numbers agree, too, if they are one when rounded to so many
                                     decimals, half either way; -1: no rounding is declared
    text_numbers       ``False``     a text that writes a number (no zeros ahead) is that number
    text_dates         ``False``     a text that writes an ISO date or time stamp is that instant
    bool_numbers       ``True``      true is 1 and false is 0, as both engines convert them
    alternatives       ``()``        further gold queries; a result that equals one's is right
    =================  ============  ===============================================================

    In any case NULL equals NULL and nothing else (not 0, not ``''``), NaN equals NaN only, an
    infinity itself only, ``-0.0`` is 0, a text is compared by its characters (``'1'`` is not 1, nor
    is ``'00420'`` 420), bytes are no text, and a date is the time stamp of its midnight; a time
    stamp without a zone is in UTC. Arrays and JSON are compared whole, without tolerance.
    """

    mode: Literal["rows", "state"] = "rows"
    order: Literal["auto", "always", "never"] = "auto"
    columns: Literal["permute", "exact", "subset"] = "permute"
    extra_columns: int = 2
    ties: Literal["choice", "all"] = "choice"
    rel_tol: float = 1e-9
    decimals: int = -1
    text_numbers: bool = False
    text_dates: bool = False
    bool_numbers: bool = True
    alternatives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rel_tol < 0.5:
            raise UsageError(f"rel_tol is {self.rel_tol}; it must be at least 0 and below 0.5.")
        if not -1 <= self.decimals <= MOST_DECIMALS:
            raise UsageError(
                f"decimals is {self.decimals}; it must be at most {MOST_DECIMALS}, or -1 for none."
            )
        if self.extra_columns < 0:
            raise UsageError(f"extra_columns is {self.extra_columns}; it must be at least 0.")


DEFAULT_POLICY = SqlPolicy()
_CHOICES = {
    name: get_args(kind) if get_origin(kind) is Literal else ()
    for name, kind in get_type_hints(SqlPolicy).items()
}


def read_policy(settings: Mapping[str, Any]) -> SqlPolicy:
    """Read a task's ``grading`` settings.

    Raises:
        UsageError: A setting has another name, or a value that it cannot have; the message says
            which.
    """
    for name in settings:
        if name not in SqlPolicy.__struct_fields__:
            raise UnknownNameError("a setting of grading", name, SqlPolicy.__struct_fields__)
        allowed = _CHOICES[name]
        if allowed and settings[name] not in allowed:
            raise UsageError(
                f"{name} in grading is {settings[name]!r}; it must be one of {', '.join(allowed)}."
            )
    try:
        return msgspec.convert(dict(settings), SqlPolicy)
    except msgspec.ValidationError as error:
        raise UsageError(f"grading cannot be {dict(settings)!r}: {error}.") from error
