"""Cutting a text to a limit so that a reader sees that it was cut, where and by how much."""

from __future__ import annotations

from collections.abc import Callable

_TAIL_SHARE = 0.3  # a traceback ends with what matters; a table begins with it


def cut(text: str, limit: int, measure: Callable[[str], int] = len) -> tuple[str, bool]:
    """Keep head and tail of ``text`` with a marker between that counts what was left out.

    Args:
        text: any text.
        limit: the largest size of what is returned, at least 0, in units of ``measure``.
        measure: size of a text: characters by default, or UTF-8 bytes, or tokens; it must not
            shrink when a text grows.

    Returns:
        The text, no larger than ``limit``, and whether it was cut. Where not even the marker fits,
        the head alone is kept.
    """
    if measure(text) <= limit:
        return text, False
    low, high = 0, len(text)  # the largest number of kept characters that fits
    while low < high:
        kept = (low + high + 1) // 2
        if measure(_shortened(text, kept)) <= limit:
            low = kept
        else:
            high = kept - 1
    shortened = _shortened(text, low)
    if measure(shortened) <= limit:
        return shortened, True
    head = text[:limit]
    while head and measure(head) > limit:
        head = head[: len(head) * limit // max(measure(head), limit + 1)]
    return head, True


def utf8_size(text: str) -> int:
    """Size of a text in UTF-8 bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def _shortened(text: str, kept: int) -> str:
    tail = int(kept * _TAIL_SHARE)
    marker = f"\n[... {len(text) - kept} characters left out ...]\n"
    return text[: kept - tail] + marker + text[len(text) - tail :]
