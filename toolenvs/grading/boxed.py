r"""Take the final answer out of a message: the last box, or what follows the last marker.

No regular expression finds a box, since an answer may hold braces itself: braces are counted, in
one pass, so a message of n characters costs O(n). Only the standard library is imported.
"""

from __future__ import annotations

from typing import NamedTuple

_COMMANDS = ("\\boxed", "\\fbox")


class _Box(NamedTuple):
    """A complete box: ``text[start:end]`` is all of it, ``text[first:last]`` its content."""

    start: int
    end: int
    first: int
    last: int


def extract_boxed(text: str) -> str | None:
    r"""Return the content of the last complete box, or None.

    A box is ``\boxed{...}`` or ``\fbox{...}``, spaces allowed before the brace. An escaped brace
    ``\{`` is no brace. ``\boxed`` without one (``\boxed 7``) is no box, and neither is a box that
    never closes; they hide no other. Of a box inside a box the outer one counts, except that
    ``\boxed{\boxed{x}}`` is ``x``.

    Args:
        text: any text.

    Returns:
        The content, stripped, possibly ``""``; None when no box is complete.

    >>> extract_boxed(r"so \boxed{\frac{1}{2}}, I put it in \boxed")
    '\\frac{1}{2}'
    """
    if "boxed" not in text and "fbox" not in text:
        return None
    boxes: list[_Box] = []
    open_braces: list[tuple[int, int]] = []  # the brace, and the start of its box or -1
    index = 0
    while index < len(text):
        char = text[index]
        if char == "\\":
            brace = _box_brace(text, index)
            if brace > 0:
                open_braces.append((brace, index))
                index = brace
            elif not text.startswith(_COMMANDS, index + 1):
                index += 1
        elif char == "{":
            open_braces.append((index, -1))
        elif char == "}" and open_braces:
            brace, start = open_braces.pop()
            if start >= 0:
                _close(text, boxes, _Box(start, index + 1, brace + 1, index))
        index += 1
    return text[boxes[-1].first : boxes[-1].last].strip() if boxes else None


def extract_marked(text: str, marker: str) -> str | None:
    r"""Return what follows the last ``marker`` up to the end of its line, or None.

    GSM8K marks its answers by ``"####"``, the solutions of its models by ``"A:"``.

    Args:
        text: any text.
        marker: the marker, matched literally; ``""`` is never found.

    Returns:
        The rest of the line, stripped, possibly ``""``; None when the marker is absent.

    >>> extract_marked("6 * 3 = 18\n#### 18", "####")
    '18'
    """
    start = text.rfind(marker) if marker else -1
    if start < 0:
        return None
    return text[start + len(marker) :].partition("\n")[0].strip()


def _box_brace(text: str, start: int) -> int:
    """Return the index of the brace that opens a box whose command is at ``start``, or -1."""
    command = next((name for name in _COMMANDS if text.startswith(name, start)), None)
    if command is None:
        return -1
    index = start + len(command)
    while index < len(text) and text[index].isspace():
        index += 1
    return index if text.startswith("{", index) else -1


def _close(text: str, boxes: list[_Box], box: _Box) -> None:
    """Record a box that has just closed in place of those inside it."""
    only = boxes[-1] if boxes and boxes[-1].start > box.start else None
    while boxes and boxes[-1].start > box.start:
        first = boxes.pop()
        only = only if first is only else None
    if only and not (text[box.first : only.start] + text[only.end : box.last]).strip():
        box = box._replace(first=only.first, last=only.last)
    boxes.append(box)
