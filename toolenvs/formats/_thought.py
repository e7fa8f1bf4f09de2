"""Thoughts: what a model writes in ``<think>`` is never run and never graded.

A thought opens with ``<think>``, ends at the next ``</think>`` and is recognised outside calls
only: in an argument the same characters are data. A ``</think>`` without an opening one makes
everything before it thought, calls and answers included, for the opening tag may have stood in the
prompt. A thought that never ends makes the message unreadable. Tags that are spelt carelessly (in
another case, with blanks, fullwidth ...) count too, but are no clean form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from toolenvs.errors import UsageError
from toolenvs.neutral import tag

ThinkRule = Literal["optional", "required", "opened"]
"""Whether a clean message has a thought: it may, it must, or it begins inside one (the prompt's
chat template ends with ``<think>``)."""

OPEN, CLOSE = "<think>", "</think>"
MARK = tag(["think"], attributes=False)
_MARK = re.compile(MARK, re.IGNORECASE)


def check_rule(rule: str) -> ThinkRule:
    """Return ``rule`` if it is one.

    Raises:
        UsageError: It is none; the message lists them.
    """
    for known in get_args(ThinkRule):
        if rule == known:
            return known  # type: ignore[no-any-return]  # get_args is untyped
    raise UsageError(f"think={rule!r} is not known; choose one of {', '.join(get_args(ThinkRule))}")


def is_closing(mark: str) -> bool:
    """Tell whether a match of ``MARK`` ends a thought."""
    return "/" in mark or "／" in mark


def find_close(text: str, start: int) -> re.Match[str] | None:
    """Find the tag that ends a thought whose content begins at ``start``."""
    return next((mark for mark in _MARK.finditer(text, start) if is_closing(mark[0])), None)


def holds_open(thought: str) -> bool:
    """Tell whether a thought opens another one inside."""
    return any(not is_closing(mark[0]) for mark in _MARK.finditer(thought))


def instruction(rule: ThinkRule) -> str:
    """What a model is told about thoughts, a line of its own or ``""``."""
    return {
        "optional": "",
        "required": f"\nThink first, between {OPEN} and {CLOSE}.",
        "opened": f"\nEnd your thought with {CLOSE} before you call or answer.",
    }[rule]


def write_thought(thought: str, rule: ThinkRule) -> str:
    """Write ``thought`` as a model does under ``rule``, with the line break after it."""
    if rule == "optional" and not thought:
        return ""
    opening = "" if rule == "opened" else f"{OPEN}\n"
    return f"{opening}{thought.strip() or 'The next step is clear.'}\n{CLOSE}\n"


def thought_problems(thoughts: Sequence[str], rule: ThinkRule) -> list[str]:
    """Say what keeps the thoughts of a message from being well-formed."""
    problems = []
    if len(thoughts) > 1:
        problems.append(f"there are {len(thoughts)} thoughts; write one")
    if any(not thought.strip() for thought in thoughts):
        problems.append("a thought is empty")
    if any(holds_open(thought) for thought in thoughts):
        problems.append(f"{OPEN} stands inside a thought")
    if not thoughts and rule == "required":
        problems.append(f"the thought is missing: begin with {OPEN}...{CLOSE}")
    return problems
