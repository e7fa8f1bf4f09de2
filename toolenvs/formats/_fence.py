"""Fenced blocks: a line of three or more backticks and a language opens one.

A block ends at the first line of at least as many backticks, alone, that stands in no string of the
block's code; a line of backticks with a language before that opens a block inside a block, which is
a fault. Blocks in languages that call nothing are plain text, passed over as a whole.
"""

from __future__ import annotations

import re

from toolenvs.formats._quoted import find_delimiter
from toolenvs.formats._scan import Block
from toolenvs.formats._slots import Slots

FENCE = r"^`{3,}+[^`\n]*$"
_RUN = re.compile("`+")


def read_fence(text: str, mark: re.Match[str], slots: Slots) -> Block:
    """Read the block that begins at ``mark``, a match of ``FENCE``."""
    ticks = len(mark[0]) - len(mark[0].lstrip("`"))
    language = mark[0].strip("` \t\r")
    slot = slots.get(language) or slots.get(language.lower())
    start, code_from = mark.end(), min(mark.end() + 1, len(text))
    if slot is None:
        bare = rf"^`{{{ticks},}}+[ \t\r]*$"
        found, _ = find_delimiter(text, code_from, delimiter=bare, syntax="text")
        return Block(start=mark.start(), end=found.end() if found else start)
    any_fence = rf"^`{{{ticks},}}+[^`\n]*$"
    found, unclosed = find_delimiter(text, code_from, delimiter=any_fence, syntax=slot.syntax)
    if found is None:
        fault = "the code block does not end with a line of ```"
        if unclosed >= 0:
            fault += f", or that stands in a string that is not closed: {text[unclosed:][:20]!r}"
        closing = ("" if text.endswith("\n") else "\n") + "`" * ticks
        return Block(start=mark.start(), end=start, fault=fault, closing=closing)
    if found[0].strip("` \t\r"):
        fault = f"{found[0].strip()[:40]} stands inside a code block that has not ended"
        return Block(start=mark.start(), end=start, fault=fault)
    code = text[code_from : max(code_from, found.start() - 1)]
    call = slot.call(code)
    problems = () if code.strip() or not slot.argument else ("a code block is empty",)
    return Block(start=mark.start(), end=found.end(), call=call, problems=problems)


def write_fence(language: str, code: str) -> str:
    """Write a block around ``code``, with more backticks than any line of it begins with."""
    longest = max(map(len, _RUN.findall(code)), default=0)
    fence = "`" * max(3, longest + 1 if re.search(r"^```", code, re.MULTILINE) else 3)
    return f"{fence}{language}\n{code}\n{fence}"
