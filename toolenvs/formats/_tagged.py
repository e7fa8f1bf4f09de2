"""Payloads between tags: ``<search>who wrote it</search>``.

A tag counts only as written here: lower case as in the table, no blanks, no attributes. Its payload
ends at the first closing tag outside a string of its syntax (see ``_quoted``). The same opening
tag inside, or a closing tag that nothing opened, makes the message unreadable: whoever counts tags
that do not match would otherwise run half of what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from toolenvs.formats._message import SUBMIT
from toolenvs.formats._quoted import Syntax, find_delimiter
from toolenvs.formats._scan import Block
from toolenvs.neutral import tag
from toolenvs.types import ToolCall

ANSWER = "answer"


class Slot(NamedTuple):
    """What a tag's payload is: the text of one argument of one tool; ``""``: it takes none."""

    tool: str
    argument: str
    syntax: Syntax = "text"

    def clean(self, payload: str) -> str:
        """Strip a payload.

        Of Python the blank lines before it and all blanks after it go, of SQL and text all blanks
        around it.
        """
        if self.syntax == "python":
            return re.sub(r"\A(?:[ \t\r]*+\n)++", "", payload).rstrip()
        return payload.strip()

    def call(self, payload: str) -> ToolCall:
        """The call that a payload makes; a text where none belongs is the executor's to refuse."""
        named = {self.argument or "text": payload} if payload or self.argument else {}
        return ToolCall(self.tool, named)


ANSWER_SLOT = Slot(SUBMIT, "answer")


def tag_pattern(names: Iterable[str]) -> str:
    """The pattern of the tags with these names, however carelessly written."""
    return tag(names)


def read_mark(mark: re.Match[str], names: Container[str]) -> tuple[str, Block | None]:
    """Tell what a match of ``tag_pattern`` is.

    Returns:
        The name that it opens; or ``""`` and a block that says why it opens nothing: it closes a
        tag that was never opened, or it is spelt carelessly, so that it is plain text.
    """
    start, end = mark.span()
    name = mark[0].strip("</>")
    if name not in names or mark[0] not in (f"<{name}>", f"</{name}>"):
        problem = f"{mark[0][:40]!r} is not written as a tag should be"
        return "", Block(start=start, end=end, problems=(problem,))
    if mark[0].startswith("</"):
        fault = f"the closing tag {name!r} stands without its opening tag"
        return "", Block(start=start, end=end, fault=fault)
    return name, None


def read_tag(text: str, mark: re.Match[str], slots: Mapping[str, Slot]) -> Block:
    """Read the block that begins at ``mark``, a match of ``tag_pattern(slots)``."""
    name, block = read_mark(mark, slots)
    return block or _read_payload(text, mark, name, slots[name])


def _read_payload(text: str, mark: re.Match[str], name: str, slot: Slot) -> Block:
    start, end = mark.span()
    delimiter = f"</?{re.escape(name)}>"
    found, unclosed = find_delimiter(text, end, delimiter=delimiter, syntax=slot.syntax)
    if found is None:
        fault = f"the closing tag {name!r} is missing"
        if unclosed >= 0:
            fault += f", or it stands in a string that is not closed: {text[unclosed:][:20]!r}"
        return Block(start=start, end=end, fault=fault, closing=f"</{name}>")
    if found[0] == f"<{name}>":
        return Block(start=start, end=end, fault=f"the tag {name!r} opens inside itself")
    payload = slot.clean(text[end : found.start()])
    problems = () if payload or not slot.argument else (f"<{name}> is empty",)
    return Block(start=start, end=found.end(), call=slot.call(payload), problems=problems)
