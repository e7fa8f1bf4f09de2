r"""Take the final answer out of a message: the last box, or what follows the last marker.

No regular expression finds a box, since an answer may hold braces itself: braces are counted, in
one pass, so a message of n characters costs O(n). Only the standard library is imported.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMANDS = ("\\boxed", "\\fbox")
_MAX_NESTING = 3
_MAX_DISTINCT = 4
_NEAR = 200  # characters to look at around a box
_BLANK = " \t\r\n$*"
_AROUND = _BLANK + "\\()[].,;:"
_CLAUSE_END = re.compile(r"[.,;:!?$\n]")
# What makes a box a part of something else: a number or sign before it, a sign after it.
_JOINED_BEFORE = re.compile(
    r"(?:[-+/^_<>|&]|(?<!\\)[(\[]|[0-9]\s*\}*[,;]?|[<>~]\s*=|(?<![0-9])!\s*=|\\not\s*="
    r"|[0-9]\s+(?:and|or)|\\(?:cdot|times|div|pm|mp|neq?|leq?|geq?|lt|gt|l?n|log|sin|cos|tan)"
    r"|(?:\\(?:[dt]?frac|sqrt)(?:\[[^\]]*\])?|[}^_])\s*\{)$"
)
_JOINED_AFTER = re.compile(
    r"[-+/^_!<>|]|\\(?:cdot|times|div|pm|mp|neq?)(?![a-z])|\(?(?:or|and|but|maybe)\s|[,;]\s*-?[0-9]"
)
_DENIAL = re.compile(
    r"(?<![a-z])(?:not|never|wrong|false|incorrect|unless|except|cannot|anything but"
    r"|[a-z]+n['’]t)(?![a-z])",
    re.IGNORECASE,
)


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
    boxes = _boxes(text)
    return text[boxes[-1].first : boxes[-1].last].strip() if boxes else None


def extract_boxes(text: str) -> tuple[str, ...]:
    r"""Return the content of each complete box that stands in no other one, in their order.

    >>> extract_boxes(r"\boxed{1}, \boxed{2}, so \boxed{2}")
    ('1', '2', '2')
    """
    return tuple(text[box.first : box.last].strip() for box in _boxes(text))


def extract_submitted(text: str) -> tuple[str, ...]:
    r"""Return what of a submitted text is the answer: its boxes, or the text as it is.

    A submission is graded whole, so that no guess is picked out of it, and each of the texts
    returned must be right. The boxes in it count

    - when they are all of the text (but for delimiters such as ``$``), or
    - when the text is prose around them: what stands at a box neither calculates with it (``1``,
      ``+``) nor goes on with another answer (``or 8``) nor denies it (``not``, ``is wrong``).

    >>> extract_submitted(r"Hence \boxed{7}."), extract_submitted(r"1 \boxed{7}")
    (('7',), ('1 \\boxed{7}',))
    """
    for _ in range(_MAX_NESTING):
        boxes = _boxes(text)
        contents = tuple(dict.fromkeys(text[box.first : box.last].strip() for box in boxes))
        if not boxes or len(contents) > _MAX_DISTINCT or not _stand_free(text, boxes):
            return (text,)
        if not any(map(_boxes, contents)):
            return contents
        if len(contents) > 1 or (text[: boxes[0].start] + text[boxes[0].end :]).strip(_AROUND):
            return (text,)  # a box within a box amid prose
        text = contents[0]
    return (text,)


def _boxes(text: str) -> list[_Box]:
    """Return the complete boxes that stand in no other one, in their order."""
    if "boxed" not in text and "fbox" not in text:
        return []
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
    return boxes


def _stand_free(text: str, boxes: list[_Box]) -> bool:
    """Tell whether what stands around the boxes leaves what they say as it is."""
    last = 0
    for box in boxes:
        before = text[last : box.start].rstrip(_BLANK)[-_NEAR:]
        if _JOINED_BEFORE.search(before) or _DENIAL.search(_CLAUSE_END.split(before)[-1]):
            return False
        last = box.end
    after = text[last:].lstrip(_BLANK)[:_NEAR]
    clause = _CLAUSE_END.split(after, maxsplit=1)[0]
    return not (_JOINED_AFTER.match(after) or _DENIAL.search(clause))


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
