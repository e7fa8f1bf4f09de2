"""Calls between tags of their own, by a table: ``<sql>SELECT 1</sql>``, ``<answer>7</answer>``."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from toolenvs.errors import UsageError
from toolenvs.formats import _message, _observation, _scan, _slots, _thought
from toolenvs.formats._scan import Grammar
from toolenvs.formats._slots import Slots
from toolenvs.formats._tagged import ANSWER, ANSWER_SLOT, read_tag, tag_pattern
from toolenvs.formats._thought import ThinkRule
from toolenvs.neutral import WRAPPERS
from toolenvs.types import Message, ParsedTurn, ToolCall, ToolResult, ToolSpec


class Tags:
    """Any set of tags; it expresses calls with one text argument or none.

    The payload of a tag is the text of one argument. Around SQL and text all blanks are stripped,
    around Python code the blank lines before it and all blanks after it. A closing tag inside a
    string of Python or SQL does not end the payload; a payload in whose text the own tag stands
    cannot be written at all, and read it is a format error, so that half of it never runs.

    Args:
        tags: ``{tag: (tool, argument)}``. By default each tool whose only required argument is a
            text has a tag of its own name, and ``answer`` is ``("submit", "answer")``. A tag or
            tool with ``python`` in its name, and the tag ``code``, hold Python; with ``sql`` SQL.
        result_tag: the tag around each result.
        think: ``"optional"``, ``"required"``, or ``"opened"`` when the prompt ends in ``<think>``.
        stop: the stop strings of the sampler, a list or one text with commas; by default the
            closing tags of ``tags``, or ``</answer>`` and the opening of a result; then any closing
            tag may have been taken away.

    Raises:
        UsageError: An option has no such value.
    """

    name = "tags"

    def __init__(
        self,
        *,
        tags: Mapping[str, Sequence[str]] | None = None,
        result_tag: str = "result",
        think: ThinkRule = "optional",
        stop: str | Sequence[str] | None = None,
    ) -> None:
        taken = {"think", result_tag.lower(), *WRAPPERS}
        if result_tag.lower() == "think" or not result_tag.replace("-", "_").isidentifier():
            raise UsageError(f"result_tag={result_tag!r} cannot be used; give a name.")
        self._table = None if tags is None else _slots.check_table(tags, option="tags", taken=taken)
        self._stops = _message.normalise_stops(stop)
        ends = [f"</{tag}>" for tag in self._table or ()] or [f"</{ANSWER}>", f"<{result_tag}>"]
        self.stop: Sequence[str] = tuple(ends) if self._stops is None else self._stops
        self._think = _thought.check_rule(think)
        self._result_tag = result_tag
        self._grammars: dict[tuple[object, ...], Grammar] = {}

    def describe(self, specs: Sequence[ToolSpec]) -> str:
        """Say for each tool what it does and how its tag is written."""
        slots, about = self._slots_for(specs), {spec.name: spec.description for spec in specs}
        lines = [
            f"- <{tag}>{slot.argument}</{tag}>: {about.get(slot.tool, slot.tool)}"
            for tag, slot in slots.items()
            if slot.tool != _message.SUBMIT
        ]
        answers = [tag for tag, slot in slots.items() if slot.tool == _message.SUBMIT]
        return (
            "You can use these tools by writing the text of their argument between tags:\n"
            + "\n".join(lines)
            + f"\n\nThen stop: each result comes between <{self._result_tag}> tags.\n"
            + "".join(f"Write the final answer as <{tag}>...</{tag}>, once." for tag in answers)
            + _thought.instruction(self._think)
        )

    def parse(self, text: str, specs: Sequence[ToolSpec] = ()) -> ParsedTurn:
        """Read a message; see ``_message`` for the rules. Unknown tags are plain text."""
        return _message.read_message(text, self._grammar(self._slots_for(specs)))

    def compose(self, calls: Sequence[ToolCall], thought: str = "") -> str:
        """Write the message that makes ``calls``, up to the blanks that are stripped.

        Raises:
            UsageError: A call has no tag or not exactly one text argument, its payload holds its
                own tag, a call follows ``submit``, or the thought holds ``</think>``.
        """
        specs = _slots.specs_of(calls)
        slots = self._slots_for(specs)
        blocks = []
        for call in calls:
            tag, payload = _slots.slot_of(call, slots)
            edge = "\n" if slots[tag].syntax == "python" else ""
            blocks.append(f"<{tag}>{edge}{payload}{edge}</{tag}>")
        text = _thought.write_thought(thought, self._think) + "\n".join(blocks)
        _message.check_composed(self.parse(text, specs), calls, thought, plain=_slots.stripped)
        return text

    def render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """Wrap each result in the result tag, in order."""
        tag = self._result_tag
        return "\n".join(f"<{tag}>\n{text}\n</{tag}>" for text in self._shown(results))

    def messages(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[Message]:
        """All results as one message of the user."""
        return _observation.user_messages(self._shown(results))

    def _shown(self, results: Sequence[ToolResult]) -> list[str]:
        # Without a table any tool's name may be a tag, so every tag is broken.
        reserved = [self._result_tag, *(self._table or ())]
        every = self._table is None
        return [_observation.shown(result, reserved, every_tag=every) for result in results]

    def _slots_for(self, specs: Sequence[ToolSpec]) -> Slots:
        if self._table is not None:
            return self._table
        taken = {"think", self._result_tag.lower(), *WRAPPERS}
        own = {tag: slot for tag, slot in _slots.own_slots(specs).items() if tag not in taken}
        return {**own, ANSWER: ANSWER_SLOT}

    def _grammar(self, slots: Slots) -> Grammar:
        key = tuple(slots.items())
        if key not in self._grammars:
            self._grammars[key] = Grammar(
                marks=_scan.marks(tag_pattern(slots), wrappers=[self._result_tag]),
                read=functools.partial(read_tag, slots=dict(slots)),
                expects=f"write text between tags named {' or '.join(map(repr, slots))}",
                think=self._think,
                stops=self.stop,
            )
        return self._grammars[key]
