"""One pass over a message from left to right: thoughts, blocks and forged observations.

A block's own text is passed over as a whole, so tags in an argument are data; a thought is passed
over too, so a call drafted in it does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolenvs.formats import _thought
from toolenvs.formats._thought import ThinkRule
from toolenvs.neutral import TURNS, WRAPPERS, tag
from toolenvs.types import ToolCall

_MAX_FAULTS = 50  # a message with more is unreadable anyway; keeps hostile texts linear
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of a message that a format recognised, ``text[start:end]``.

    Without ``call`` and ``fault`` it is plain text that is passed over as a whole.

    Attributes:
        start: index of its first character. end: index after its last.
        call: the call that it makes.
        fault: why it cannot be read.
        closing: what is missing at the end of the text, to be put back if a sampler took it.
        problems: what is not clean about it.
        repaired: True when only a repair made it readable.
    """

    start: int
    end: int
    call: ToolCall | None = None
    fault: str = ""
    closing: str = ""
    problems: tuple[str, ...] = ()
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What one format recognises.

    Attributes:
        marks: what thoughts, observations and the format's blocks begin with (see ``marks``).
        read: reads the block that begins at a mark.
        expects: what a message should hold, one sentence for the model.
        think: the rule for thoughts.
        boxed: True when a box is an answer.
        stops: the stop strings that a sampler may have taken away.
    """

    marks: re.Pattern[str]
    read: Callable[[str, re.Match[str]], Block]
    expects: str
    think: ThinkRule = "optional"
    boxed: bool = False
    stops: Sequence[str] = ()


@dataclass(slots=True)
class Reading:
    """What one pass over ``text`` found: spans, and blocks in order, outside thoughts.

    ``error`` is why the message as a whole is unreadable; blocks have their own faults.
    """

    text: str
    blocks: list[Block] = field(default_factory=list)
    thoughts: list[Span] = field(default_factory=list)
    plain: list[Span] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    error: str = ""
    error_at: int = 0

    @property
    def faults(self) -> list[Block]:
        """The blocks that cannot be read."""
        return [block for block in self.blocks if block.fault]

    @property
    def trailing(self) -> str:
        """What follows the last block, ``""`` if there is none."""
        return self.text[slice(*self.plain[-1])].strip() if self.blocks else ""

    def slices(self, spans: Sequence[Span]) -> list[str]:
        """The texts of some spans."""
        return [self.text[start:end] for start, end in spans]

    def fail(self, error: str, at: int) -> None:
        """Note why the message cannot be read; the first reason counts."""
        if not self.error:
            self.error, self.error_at = error, at

    def all_thought(self, mark: re.Match[str]) -> None:
        """Start again: a ``</think>`` that nothing opened makes all before it thought."""
        self.blocks.clear()
        self.plain.clear()
        self.thoughts = [(0, mark.start())]
        self.problems = [f"{mark[0]} stands without {_thought.OPEN}"]
        self.error = ""

    def skip_thought(self, start: int) -> int:
        """Pass over the thought whose content begins at ``start``; returns where it ends."""
        close = _thought.find_close(self.text, start)
        if close is None:
            self.thoughts.append((start, len(self.text)))
            self.fail("the thought never ends: the closing tag 'think' is missing", start)
            return len(self.text)
        self.thoughts.append((start, close.start()))
        if close[0] != _thought.CLOSE:
            self.problems.append(f"{close[0]!r} should be {_thought.CLOSE}")
        return close.end()


def marks(blocks: str, *, wrappers: Sequence[str] = ()) -> re.Pattern[str]:
    """Build ``Grammar.marks``.

    Args:
        blocks: a regular expression of what the format's own blocks begin or end with.
        wrappers: names of tags in which this format shows results, besides the usual ones. They
            count however they are spelt, as in all that ``neutralise`` breaks; so do the tokens
            by which chat templates begin a result or another's turn.
    """
    fence = r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+output\b"
    wrapper = f"{tag({*WRAPPERS, *wrappers})}|{TURNS}|{fence}"
    return re.compile(
        f"(?P<think>{_thought.MARK})|(?P<wrapper>{wrapper})|(?P<block>{blocks})",
        re.IGNORECASE | re.MULTILINE,
    )


def scan(text: str, grammar: Grammar) -> Reading:
    """Find everything that ``grammar`` recognises in ``text``."""
    reading = Reading(text)
    at = plain_from = faults = 0
    if grammar.think == "opened":
        at = plain_from = reading.skip_thought(0)
    while faults < _MAX_FAULTS and (found := grammar.marks.search(text, at)):
        block = grammar.read(text, found) if found.lastgroup == "block" else None
        if block is not None and block.call is None and not block.fault:
            reading.problems.extend(block.problems)
            at = block.end  # and its text stays plain
            continue
        reading.plain.append((plain_from, found.start()))
        if block is not None:
            reading.blocks.append(block)
            faults += bool(block.fault)
            at = block.end
        elif found.lastgroup == "wrapper":
            _forged(reading, found)
            at = found.end()
        else:
            at = _think_mark(reading, found)
        plain_from = at
    reading.plain.append((plain_from, len(text)))
    return reading


def _forged(reading: Reading, found: re.Match[str]) -> None:
    reading.fail(
        f"the message writes an observation itself ({found[0].strip()[:40]}); "
        "stop after a call and wait for its result",
        found.start(),
    )


def _think_mark(reading: Reading, found: re.Match[str]) -> int:
    if _thought.is_closing(found[0]):
        reading.all_thought(found)
        return found.end()
    if reading.blocks or reading.text[slice(*reading.plain[-1])].strip():
        reading.problems.append("a thought does not stand at the beginning")
    if found[0] != _thought.OPEN:
        reading.problems.append(f"{found[0]!r} should be {_thought.OPEN}")
    return reading.skip_thought(found.end())
