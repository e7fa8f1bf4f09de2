"""Calls as JSON between tags: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolenvs.formats import _json_call, _message, _observation, _scan, _thought
from toolenvs.formats._answer import AnswerForm, Answers
from toolenvs.formats._json_call import CallFaultError
from toolenvs.formats._scan import Block, Grammar
from toolenvs.formats._signature import signatures
from toolenvs.formats._tagged import read_mark, read_tag, tag_pattern
from toolenvs.formats._thought import ThinkRule
from toolenvs.types import Message, ParsedTurn, ToolCall, ToolResult, ToolSpec

_TAG = "tool_call"
_OPEN, _CLOSE = f"<{_TAG}>", f"</{_TAG}>"
_RESULT = "tool_response"
_IN_WORDS = f'{{"name": ..., "arguments": {{...}}}} between tags named {_TAG!r}'


class Hermes:
    """The format of Hermes and Qwen models; it expresses every call with JSON arguments.

    A block holds one JSON object, read whole from its first brace, so a closing tag inside one of
    its strings is data. The message answers by a call of ``submit``, or as ``answer`` says.

    Args:
        answer: see ``Answers``.
        think: ``"optional"``, ``"required"``, or ``"opened"`` when the prompt ends in ``<think>``.
        repair: also read line breaks in strings, trailing commas and Python's literals; the
            message then counts as repaired and not clean. Otherwise they are format errors.
        stop: the stop strings of the sampler, a list or one text with commas; by default the
            opening of an observation, and any closing tag may have been taken away.
        result_tag: the tag around each result.

    Raises:
        UsageError: An option has no such value.
    """

    name = "hermes"

    def __init__(
        self,
        *,
        answer: AnswerForm = "any",
        think: ThinkRule = "optional",
        repair: bool = False,
        stop: str | Sequence[str] | None = None,
        result_tag: str = _RESULT,
    ) -> None:
        stops = _message.normalise_stops(stop)
        self.stop: Sequence[str] = (f"<{result_tag}>",) if stops is None else stops
        self._answers = Answers(answer)
        self._repair = repair
        self._result_tag = result_tag
        self._names = {_TAG, *self._answers.slots}
        self._grammar = Grammar(
            marks=_scan.marks(tag_pattern(self._names), wrappers=[result_tag]),
            read=self._read,
            expects=f"call a tool by {_IN_WORDS}, or answer {self._answers.hint}",
            think=_thought.check_rule(think),
            boxed=self._answers.boxed,
            stops=self.stop,
        )

    def describe(self, specs: Sequence[ToolSpec]) -> str:
        """List the signatures as JSON between ``<tools>`` tags, as these models know them."""
        return (
            "# Tools\n\n"
            "You can call the functions whose signatures stand between the <tools> tags:\n"
            f"<tools>\n{signatures(specs)}\n</tools>\n\n"
            "Write each call as one JSON object with the function's name and its arguments:\n"
            f'{_OPEN}\n{{"name": "<function>", "arguments": {{"<argument>": "<value>"}}}}\n{_CLOSE}'
            "\n\nSeveral calls run in the order in which you write them. Then stop: each result "
            f"comes between <{self._result_tag}> tags.\n"
            f"When you know the final answer, call nothing more and write it "
            f"{self._answers.wording}." + _thought.instruction(self._grammar.think)
        )

    def parse(self, text: str, specs: Sequence[ToolSpec] = ()) -> ParsedTurn:
        """Read a message; see ``_message`` for the rules. Unknown names are the executor's."""
        return _message.read_message(text, self._grammar)

    def compose(self, calls: Sequence[ToolCall], thought: str = "") -> str:
        """Write the message that makes ``calls``; their ids are left out.

        Raises:
            UsageError: An argument is no JSON, a call follows ``submit``, or the thought holds
                ``</think>``.
        """
        blocks = [f"{_OPEN}\n{_written(call)}\n{_CLOSE}" for call in calls]
        text = _thought.write_thought(thought, self._grammar.think) + "\n".join(blocks)
        _message.check_composed(self.parse(text), calls, thought)
        return text

    def render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """Wrap each result in its tags, in order."""
        tag = self._result_tag
        return "\n".join(f"<{tag}>\n{text}\n</{tag}>" for text in self._shown(results))

    def messages(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[Message]:
        """One message of role ``tool`` for each result."""
        return _observation.tool_messages(calls, self._shown(results))

    def _shown(self, results: Sequence[ToolResult]) -> list[str]:
        return [_observation.shown(result, [self._result_tag]) for result in results]

    def _read(self, text: str, mark: re.Match[str]) -> Block:
        name, block = read_mark(mark, self._names)
        if block is not None:
            return block
        if name != _TAG:
            return read_tag(text, mark, self._answers.slots)
        try:
            return _read_block(text, mark)
        except CallFaultError as fault:
            strict = f"the tool call cannot be read: {fault}"
        return _broken_block(text, mark, strict, repair=self._repair)


def _written(call: ToolCall) -> str:
    return _json_call.write_json({"name": call.name, "arguments": dict(call.arguments)})


def _read_block(text: str, mark: re.Match[str]) -> Block:
    value, end = _json_call.decode(text, mark.end())
    call, problems = _json_call.read_call(value)
    end = _json_call.skip_blanks(text, end)
    if text.startswith(_CLOSE, end):
        end += len(_CLOSE)
        return Block(
            start=mark.start(), end=end, call=call, problems=problems, repaired=bool(problems)
        )
    if end == len(text):
        fault = f"the closing tag {_TAG!r} is missing after the tool call"
        return Block(start=mark.start(), end=mark.end(), fault=fault, closing=_CLOSE)
    what = "another value" if text[end] in "{[" else repr(text[end : end + 20])
    raise CallFaultError(f"{what} follows the JSON object; the closing tag should")


def _broken_block(text: str, mark: re.Match[str], fault: str, *, repair: bool) -> Block:
    """The block whose JSON is wrong: as far as its closing tag, if that is its own."""
    start, end = mark.span()
    close, again = text.find(_CLOSE, end), text.find(_OPEN, end)
    if close < 0 or 0 <= again < close:
        return Block(start=start, end=end, fault=fault)
    after = close + len(_CLOSE)
    if not repair:
        return Block(start=start, end=after, fault=fault)
    try:
        call, problems = _json_call.read_call(_json_call.repair(text[end:close]))
    except CallFaultError as worse:
        return Block(start=start, end=after, fault=f"{fault} ({worse})")
    return Block(start=start, end=after, call=call, problems=(fault, *problems), repaired=True)
