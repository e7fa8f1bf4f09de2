r"""The tree that an answer is read into: plain data, no mathematics.

One record serves for expressions and for whole answers; ``op`` says what it is:

====================================  ==========================================================
op                                    args, text
====================================  ==========================================================
num                                   text: ``7``, ``7.0``, ``.5`` or ``1/3``
sym, const                            text: ``x``, ``\theta``, ``a_1``; ``pi e i oo``
add mul div pow neg                   args; add and mul hold two or more
root                                  index, radicand
func                                  args; text: ``sin asin ln log ...`` (log may hold a base)
abs floor ceil fact deg binom         args
pm mp                                 left, right
tuple                                 two or more items in round brackets
interval                              low, high; text: ``[]``, ``[)`` or ``(]``
set list                              items; a list has no brackets, text: ``,`` ``and`` ``or``
union inter diff                      sets
matrix                                rows, each a ``tuple``
rel                                   n + 1 sides; text: n relations, each one of ``= < > ≤ ≥ ≠``
in                                    element, set
named                                 value, and the name as an expression if it is one; text: name
quantity                              value; text: unit (see ``units``)
percent                               value
base                                  text: ``digits_base``
ratio                                 terms
text choice date time                 text, in canonical form
====================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Node(msgspec.Struct, frozen=True, array_like=True):
    """A node; as JSON ``[op, args, text]``."""

    op: str
    args: tuple[Node, ...] = ()
    text: str = ""


class ReadError(ValueError):
    """A text is not, as a whole, an answer that can be read."""


class TooLargeError(ValueError):
    """To evaluate it would take more work than a comparison is allowed."""


class UndefinedError(ValueError):
    """It has no value: a division by zero, zero to the power of zero."""


INFINITY = Node("const", (), "oo")
NEGATIVE_INFINITY = Node("neg", (INFINITY,))
REALS = Node("interval", (NEGATIVE_INFINITY, INFINITY), "()")
EMPTY_SET = Node("set")


def number(text: str) -> Node:
    """Make a number of its text."""
    return Node("num", (), text)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all that are below it."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(top.args)


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the variables in an expression."""
    return frozenset(part.text for part in walk(node) if part.op == "sym")
