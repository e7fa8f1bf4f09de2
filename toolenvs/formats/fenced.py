"""Calls as fenced code blocks, as ToRL and VerlTool train: a ```python block runs."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from toolenvs.formats import _message, _observation, _scan, _slots, _thought
from toolenvs.formats._answer import AnswerForm, Answers
from toolenvs.formats._fence import FENCE, read_fence, write_fence
from toolenvs.formats._scan import Block, Grammar
from toolenvs.formats._slots import Slots
from toolenvs.formats._tagged import read_tag, tag_pattern
from toolenvs.formats._thought import ThinkRule
from toolenvs.types import Message, ParsedTurn, ToolCall, ToolResult, ToolSpec

_ALIASES = {"py": "python", "python3": "python"}
_RESULT = "output"


class Fenced:
    r"""Code blocks; it expresses calls with one text argument or none, to the character.

    A block begins with a line of three or more backticks and its language and ends with the first
    line of as many backticks that stands in no string of the code. Blocks in other languages are
    plain text. The answer is the last ``\boxed{...}`` of a message without calls, or an
    ``<answer>`` tag, as ``answer`` says.

    Args:
        blocks: ``{language: (tool, argument)}``. By default each tool whose only required argument
            is a text has a block of its own name; ``python`` (also ``py``, ``python3``) is, if no
            tool is called so, the first with ``python`` in its name or an argument ``code``, and
            ``sql`` the first with ``sql`` in its name.
        answer: see ``Answers``.
        think: ``"optional"``, ``"required"``, or ``"opened"`` when the prompt ends in ``<think>``.
        stop: the stop strings of the sampler, a list or one text with commas; by default the
            opening of an observation, and a closing fence may have been taken away.

    Raises:
        UsageError: An option has no such value.
    """

    name = "fenced"

    def __init__(
        self,
        *,
        blocks: Mapping[str, Sequence[str]] | None = None,
        answer: AnswerForm = "any",
        think: ThinkRule = "optional",
        stop: str | Sequence[str] | None = None,
    ) -> None:
        self._table: Slots | None = None
        if blocks is not None:
            self._table = _slots.check_table(blocks, option="blocks", taken={_RESULT})
        self._answers = Answers(answer)
        self._think = _thought.check_rule(think)
        self._stops = _message.normalise_stops(stop)
        self.stop: Sequence[str] = (f"```{_RESULT}",) if self._stops is None else self._stops
        self._grammars: dict[tuple[object, ...], Grammar] = {}

    def describe(self, specs: Sequence[ToolSpec]) -> str:
        """Say for each language of a block what running it does."""
        slots, about = self._slots_for(specs), {spec.name: spec.description for spec in specs}
        first: dict[str, str] = {}
        for language, slot in slots.items():
            if language not in _ALIASES:
                first[slot.tool] = language
        lines = [f"- ```{word}: {about.get(tool, tool)}" for tool, word in first.items()]
        example = next(iter(first.values()), "python")
        return (
            "You can run code by writing it in a block of its own, which begins and ends at the "
            f"start of a line:\n```{example}\n...\n```\n\nThe blocks that run:\n"
            + "\n".join(lines)
            + f"\n\nThen stop: what the code gives comes in a block ```{_RESULT}.\n"
            f"When you know the final answer, write no code and give it {self._answers.wording}."
            + _thought.instruction(self._think)
        )

    def parse(self, text: str, specs: Sequence[ToolSpec] = ()) -> ParsedTurn:
        """Read a message; see ``_message`` for the rules. Without specs, Python alone is called."""
        return _message.read_message(text, self._grammar(self._slots_for(specs)))

    def compose(self, calls: Sequence[ToolCall], thought: str = "") -> str:
        """Write the message that makes ``calls``.

        Raises:
            UsageError: A call has no block or not exactly one text argument, its code leaves a
                string open, its answer cannot be written, a call follows ``submit``, or the
                thought holds ``</think>``.
        """
        specs = _slots.specs_of(calls)
        slots = self._slots_for(specs)
        blocks = [self._written(call, slots, alone=len(calls) == 1) for call in calls]
        text = _thought.write_thought(thought, self._think) + "\n".join(blocks)
        _message.check_composed(self.parse(text, specs), calls, thought, plain=_comparable)
        return text

    def render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """Put each result into an output block, in order."""
        return "\n".join(f"```{_RESULT}\n{text}\n```" for text in _shown(results))

    def messages(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[Message]:
        """All results as one message of the user."""
        return _observation.user_messages(_shown(results))

    def _written(self, call: ToolCall, slots: Slots, *, alone: bool) -> str:
        answer = call.arguments.get("answer")
        if call.name == _message.SUBMIT and isinstance(answer, str):
            return self._answers.write(answer, alone=alone)
        return write_fence(*_slots.slot_of(call, slots))

    def _slots_for(self, specs: Sequence[ToolSpec]) -> Slots:
        if self._table is not None:
            return self._table
        slots = _slots.own_slots(specs) or _slots.check_table(
            {"python": ("python", "code")}, option="blocks", taken=()
        )
        slots = {word: slot for word, slot in slots.items() if word != _RESULT}
        named = [slot for slot in slots.values() if "python" in slot.tool]
        code = [slot for slot in slots.values() if slot.argument == "code"]
        sql = [slot for slot in slots.values() if "sql" in slot.tool and slot.argument]
        for word, choice in (("python", [*named, *code]), ("sql", sql)):
            if choice and word not in slots:
                slots[word] = _slots.slot_for(word, choice[0].tool, choice[0].argument)
        for alias, word in _ALIASES.items():
            if word in slots:
                slots.setdefault(alias, slots[word])
        return slots

    def _grammar(self, slots: Slots) -> Grammar:
        key = tuple(slots.items())
        if key not in self._grammars:
            tags = f"|{tag_pattern(self._answers.slots)}" if self._answers.slots else ""
            languages = " or ".join(f"```{word}" for word in slots if word not in _ALIASES)
            self._grammars[key] = Grammar(
                marks=_scan.marks(FENCE + tags),
                read=functools.partial(self._read, slots=dict(slots)),
                expects=(
                    f"write a block that begins with {languages} at the start of a line, "
                    f"or answer {self._answers.hint}"
                ),
                think=self._think,
                boxed=self._answers.boxed,
                stops=self.stop,
            )
        return self._grammars[key]

    def _read(self, text: str, mark: re.Match[str], *, slots: Slots) -> Block:
        if mark[0].startswith("`"):
            return read_fence(text, mark, slots)
        return read_tag(text, mark, self._answers.slots)


def _shown(results: Sequence[ToolResult]) -> list[str]:
    return [_observation.shown(result) for result in results]


def _comparable(call: ToolCall) -> object:
    if call.name == _message.SUBMIT:
        return _slots.stripped(call)
    return call.name, dict(call.arguments)
