"""Sets of real numbers: read inequalities, memberships and unions as lists of intervals."""

from __future__ import annotations

from toolenvs.grading.nodes import INFINITY, NEGATIVE_INFINITY, REALS, Node, symbols

_FLIPPED = str.maketrans("<>≤≥", "><≥≤")


def read_region(node: Node) -> tuple[Node, ...] | None:
    """Return the intervals whose union a node stands for, or None if it is no such set.

    An open interval has the op ``tuple``, as ``(2, 4)`` is read; an inequality must be in one
    variable and solved for it.
    """
    if node.op == "tuple" and len(node.args) == 2:
        return (node,)
    if node.op == "interval":
        return (_interval(node.args[0], node.args[1], node.text),)
    if node.op == "in" and node.args[0].op == "sym":
        return read_region(node.args[1])
    if node.op == "rel":
        return _inequality(node)
    if node.op == "diff" and node.args[0] == REALS and len(node.args[1].args) == 1:
        return _around(node.args[1].args[0])
    if node.op == "union" or (node.op == "list" and node.text == "or"):
        return _union(node.args)
    if node.op == "list" and node.text == "and" and len(node.args) == 2:
        return _overlap(node.args)
    return None


def _union(parts: tuple[Node, ...]) -> tuple[Node, ...] | None:
    regions = [read_region(part) for part in parts]
    if any(region is None for region in regions):
        return None
    return tuple(piece for region in regions if region is not None for piece in region)


def _overlap(parts: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """Return the interval of ``x > 2 and x < 5``."""
    rays = _union(parts)
    if rays is None or len(rays) != 2 or any(part.op != "rel" for part in parts):
        return None
    lows = [ray for ray in rays if ray.args[1] == INFINITY]
    highs = [ray for ray in rays if ray.args[0] == NEGATIVE_INFINITY]
    if len(lows) != 1 or len(highs) != 1:
        return None
    brackets = ("[" if lows[0].text == "[)" else "(") + ("]" if highs[0].text == "(]" else ")")
    return (_interval(lows[0].args[0], highs[0].args[1], brackets),)


def _inequality(node: Node) -> tuple[Node, ...] | None:
    sides, signs = node.args, node.text
    if any(sign in ">≥" for sign in signs):
        sides, signs = sides[::-1], signs[::-1].translate(_FLIPPED)
    if len(sides) == 3 and all(sign in "<≤" for sign in signs):
        low, middle, high = sides
        if middle.op != "sym" or symbols(low) or symbols(high):
            return None
        return (_interval(low, high, _brackets(signs[0], signs[1])),)
    if len(sides) != 2:
        return None
    left, right = sides
    if signs == "≠" and "sym" in (left.op, right.op):
        point = right if left.op == "sym" else left
        return None if symbols(point) else _around(point)
    if left.op == "sym" and not symbols(right) and signs in "<≤":
        return (_interval(NEGATIVE_INFINITY, right, _brackets("<", signs)),)
    if right.op == "sym" and not symbols(left) and signs in "<≤":
        return (_interval(left, INFINITY, _brackets(signs, "<")),)
    return None


def _around(point: Node) -> tuple[Node, ...]:
    return (_interval(NEGATIVE_INFINITY, point, "()"), _interval(point, INFINITY, "()"))


def _brackets(low: str, high: str) -> str:
    return ("[" if low == "≤" else "(") + ("]" if high == "≤" else ")")


def _interval(low: Node, high: Node, brackets: str) -> Node:
    if brackets == "()":
        return Node("tuple", (low, high))
    return Node("interval", (low, high), brackets)
