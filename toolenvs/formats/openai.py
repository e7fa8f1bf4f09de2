"""Calls as OpenAI's chat API writes them: a message of JSON with ``tool_calls``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.formats import _json_call, _message, _observation, _scan, _thought
from toolenvs.formats._answer import AnswerForm, Answers
from toolenvs.formats._json_call import Call, CallFaultError, kind_of
from toolenvs.formats._scan import Block, Grammar
from toolenvs.formats._signature import signatures
from toolenvs.formats._tagged import read_tag, tag_pattern
from toolenvs.formats._thought import ThinkRule
from toolenvs.types import Message, ParsedTurn, ToolCall, ToolResult, ToolSpec, Turn

_ROLE = re.compile(r'"role"\s*:')  # written plainly: an escaped key would pass `neutralise`
_KNOWN = {"role", "content", "tool_calls", "reasoning", "reasoning_content"}
_NOTHING: tuple[object, ...] = (None, "", [], {})


class Openai:
    """Assistant messages as JSON; it expresses every call with JSON arguments, and a plain id.

    The text of an action is the JSON of one message, ``{"role": "assistant", "content": ...,
    "tool_calls": [...]}``, or plain text, which is a message of that content. The content comes
    before the calls; it may hold the thought (so may ``reasoning_content``) and the answer. An id
    is plain if it is letters, digits and ``_ . : -``; any other is replaced by ``call_0`` ...

    Args:
        answer: see ``Answers``.
        think: ``"optional"``, ``"required"``, or ``"opened"`` when the prompt ends in ``<think>``.
        stop: the stop strings of the sampler, a list or one text with commas; by default none.

    Raises:
        UsageError: An option has no such value.
    """

    name = "openai"
    native = True

    def __init__(
        self,
        *,
        answer: AnswerForm = "any",
        think: ThinkRule = "optional",
        stop: str | Sequence[str] | None = None,
    ) -> None:
        stops = _message.normalise_stops(stop)
        self.stop: Sequence[str] = stops or ()
        self._answers = Answers(answer)
        # Without answer tags a pattern that never matches stands for the format's own blocks.
        blocks = tag_pattern(self._answers.slots) if self._answers.slots else r"(?!)"
        self._grammar = Grammar(
            marks=_scan.marks(blocks),
            read=self._read,
            expects=f"write tool_calls, or answer {self._answers.hint} in the content",
            think=_thought.check_rule(think),
            boxed=self._answers.boxed,
            stops=self.stop,
        )

    def describe(self, specs: Sequence[ToolSpec]) -> str:
        """List the signatures and the layout of a message, for a model that is not told by an API.

        An API takes the same signatures as its ``tools``.
        """
        layout = self._message("", [ToolCall("<function>", {"<argument>": "<value>"})])
        return (
            f"You can call these functions:\n{signatures(specs)}\n\n"
            f"A message that calls functions is JSON, arguments being a text of JSON:\n{layout}\n"
            "The calls run in order, and each result comes as a message of the role tool.\n"
            f"When you know the final answer, answer {self._answers.wording}, without a call."
            + _thought.instruction(self._grammar.think)
        )

    def parse(self, text: str, specs: Sequence[ToolSpec] = ()) -> ParsedTurn:
        """Read a message; see ``_message`` for the rules. Unknown names are the executor's."""
        turn = Turn.of(text)
        if _message.is_cut(turn):
            return ParsedTurn(cut=True)
        source = _message.clean_text(turn, self._grammar).strip()
        try:
            content, calls = self._read_message(source)
        except CallFaultError as fault:
            return _message.failed(f"the message cannot be read: {fault}")
        body = Turn(content, turn.finish_reason, turn.stop_string)
        parsed = _message.conclude(
            _message.read_body(body, self._grammar),
            self._grammar,
            further=[call.call for call in calls],
        )
        return _with_problems(parsed, [problem for call in calls for problem in call.problems])

    def compose(self, calls: Sequence[ToolCall], thought: str = "") -> str:
        """Write the message that makes ``calls``; a call without an id of its own is numbered.

        Raises:
            UsageError: An argument is no JSON, a call follows ``submit``, or the thought holds
                ``</think>``.
        """
        text = self._message(_thought.write_thought(thought, self._grammar.think).rstrip(), calls)
        _message.check_composed(self.parse(text), calls, thought)
        return text

    def render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """The messages that answer the calls, as a JSON list."""
        return json.dumps(self.messages(calls, results), ensure_ascii=False)

    def messages(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[Message]:
        """One message of role ``tool`` for each result, with the call's id."""
        texts = [_observation.shown(result) for result in results]
        return _observation.tool_messages(calls, texts, ids=True)

    def _message(self, content: str, calls: Sequence[ToolCall]) -> str:
        written = [
            {
                "id": identity,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": _json_call.write_json(dict(call.arguments)),
                },
            }
            for call, identity in zip(calls, _observation.call_ids(calls), strict=True)
        ]
        message = {"role": "assistant", "content": content or None, "tool_calls": written}
        return _json_call.write_json(message)

    def _read_message(self, source: str) -> tuple[str, list[Call]]:
        if source.startswith("[") and _ROLE.search(source):
            raise CallFaultError("write one message, not a list of them")
        if not source.startswith("{"):
            return source, []
        message = _json_call.decode_whole(source)
        _check_message(message, source)
        content = _text_of(message.get("content"))
        reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
        if not isinstance(reasoning, str):
            raise CallFaultError(f"the reasoning is a text, not {kind_of(reasoning)}")
        if reasoning.strip():
            content = _thought.write_thought(reasoning, self._grammar.think) + content
        entries = message.get("tool_calls") or []
        if not isinstance(entries, list):
            raise CallFaultError(f"'tool_calls' is a list, not {kind_of(entries)}")
        return content, _numbered([_read_entry(entry) for entry in entries])

    def _read(self, text: str, mark: re.Match[str]) -> Block:
        return read_tag(text, mark, self._answers.slots)


def _check_message(message: Mapping[str, Any], source: str) -> None:
    if not _ROLE.search(source) or message.get("role") != "assistant":
        raise CallFaultError("its 'role' is not 'assistant'")
    if message.get("function_call"):
        raise CallFaultError("'function_call' is not read; write 'tool_calls'")
    further = [k for k, v in message.items() if k not in _KNOWN and v not in _NOTHING]
    if further:
        raise CallFaultError(f"its keys {further[:5]} are not known; known are {sorted(_KNOWN)}")


def _text_of(content: Any) -> str:
    """The text of a message's content: a text, null, or a list of text parts."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise CallFaultError("'content' is a text or a list of text parts")
    return "".join(map(str, texts))


def _read_entry(entry: Any) -> Call:
    """Read one of the ``tool_calls``."""
    if not isinstance(entry, dict) or not isinstance(entry.get("function"), dict):
        raise CallFaultError('a call is {"id": ..., "type": "function", "function": {...}}')
    further = sorted(set(entry) - {"id", "type", "function", "index"})
    if further or entry.get("type", "function") != "function":
        raise CallFaultError(f"a call of type {entry.get('type')!r} with {further} is not known")
    identity = entry.get("id") or ""
    if not isinstance(identity, str):
        raise CallFaultError(f"the id of a call is a text, not {kind_of(identity)}")
    function, problems = dict(entry["function"]), []
    if isinstance(function.get("arguments"), str):
        function["arguments"] = _json_call.arguments_from(function["arguments"])
    elif "arguments" in function:
        problems.append("'arguments' is a text that holds JSON")
    if not _observation.is_plain_id(identity):
        problems.append("the id of a call is not plain" if identity else "a call has no id")
        identity = ""
    call = _json_call.read_call(function).call
    return Call(ToolCall(call.name, call.arguments, identity), tuple(problems))


def _numbered(calls: list[Call]) -> list[Call]:
    ids = [call.call.id for call in calls if call.call.id]
    if len(set(ids)) == len(ids):
        return calls
    return [Call(call.call, (*call.problems, "two calls have the same id")) for call in calls]


def _with_problems(parsed: ParsedTurn, problems: Sequence[str]) -> ParsedTurn:
    if not problems:
        return parsed
    return ParsedTurn(
        calls=parsed.calls,
        error=parsed.error,
        problems=tuple(dict.fromkeys([*parsed.problems, *problems])),
        thought=parsed.thought,
    )
