"""Parsing that is bounded: the parser (sqlglot) may take so many steps, and no more.

The parser tries one reading after another and goes back, so what nests inside a name that could be
a type (``date(date(date(``) is read twice on each level: 30 levels would take days. Hence its steps
are counted. The limit is a number of tokens and not of seconds, so that a text is readable or not
whatever the machine. Functions stay as they are written: some of the parser's rules rewrite them
with copies of what stands inside (``sort_array(a, sort_array(``), which doubles the tree instead.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolenvs.grading.sql_policy import Engine

_STEPS, _STEPS_FOR_EACH = 1_000, 20  # golds of known data sets take at most 2 for each token
_DEEPEST_UNCOUNTED = 6
_KEPT = ("COUNT", "MAX", "MIN", "ARRAY_AGG", "LOWER", "UPPER")  # rules that make no copies


class TooManyStepsError(Exception):
    """The text takes more steps than it is worth. Not a kind of error that the parser catches."""


def parse_within(found: Sequence[Any], text: str, engine: Engine, *, depth: int) -> list[Any]:
    """The syntax trees of a text's statements.

    Args:
        found: its tokens, as sqlglot has them.
        text: the text.
        engine: whose dialect it is written in.
        depth: how deeply its brackets nest.

    Raises:
        TooManyStepsError: Reading it would take too long.
        Exception: Whatever the parser does with a text that it cannot read.
    """
    steps = _STEPS + _STEPS_FOR_EACH * len(found)
    parser = _parser(engine, steps)
    if parser is None:
        if depth > _DEEPEST_UNCOUNTED:
            raise TooManyStepsError
        parser = _dialect(engine).parser()
    return [tree for tree in parser.parse(list(found), text) if tree is not None]


def _dialect(engine: Engine) -> Any:
    from sqlglot.dialects.dialect import Dialect

    return Dialect.get_or_raise(engine)


def _parser(engine: Engine, steps: int) -> Any:
    """A parser that takes at most ``steps``; None where it is compiled: then none can count."""
    try:
        parser = _counting(engine)(dialect=_dialect(engine))
    except TypeError:
        return None
    parser.steps_left = steps
    return parser


@functools.cache
def _counting(engine: Engine) -> Any:
    base: Any = _dialect(engine).parser_class

    # The class to extend is known only when sqlglot is loaded.
    class Counting(base):  # type: ignore[misc]
        """Counts the tokens that it goes forward or back."""

        FUNCTIONS = _plain_functions(base)
        steps_left = 0

        def _advance(self, times: int = 1) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise TooManyStepsError
            super()._advance(times)

        def _warn_unsupported(self) -> None:
            """Logs nothing: what an agent writes is no news of the machine's."""

    return Counting


def _plain_functions(parser: Any) -> dict[str, Any]:
    """The functions that the parser takes with their arguments as they are."""
    from sqlglot import exp

    plain = exp.Func.from_arg_list.__func__  # type: ignore[attr-defined]
    return {
        name: rule
        for name, rule in parser.FUNCTIONS.items()
        if name in _KEPT or getattr(rule, "__func__", None) is plain
    }
