"""From a model's message to the calls that run: the rules that all formats share.

1. Text that the token limit cut is not read at all: nothing of it runs, and it is no error.
2. A closing delimiter that the sampler took away as a stop string is put back.
3. Thoughts are skipped (see ``_thought``). A message with a thought that never ends, with a call
   that cannot be read, or with an observation of the model's own making runs nothing: format error.
4. Calls run in order, up to and including the first ``submit``; a call after it is a problem.
5. Without any call, the last box outside thoughts is the answer, where the format reads boxes.
   Boxes that differ, there or inside the answer of any call of ``submit``, are a problem: a guess
   for each box is no clean answer.
6. A message with neither call nor answer, or with a blank answer, is a format error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from toolenvs.errors import UsageError
from toolenvs.formats import _thought
from toolenvs.formats._scan import Grammar, Reading, scan
from toolenvs.grading.boxed import extract_boxes
from toolenvs.types import ParsedTurn, ToolCall, ToolError, Turn

SUBMIT = "submit"
_MAX_PROBLEMS = 20
_MAX_NESTING = 8
_SEVERAL = "there are several boxes that differ"
_CUT = frozenset({"length", "max_tokens", "max_length"})
_END_OF_TURN = re.compile(
    r"(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>"
    r"|<｜end▁of▁sentence｜>|<end_of_turn>|<eos>|</s>)\s*\Z"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_message(text: str, grammar: Grammar) -> ParsedTurn:
    """Read a message by the rules above. Never raises, whatever the text."""
    turn = Turn.of(text)
    if is_cut(turn):
        return ParsedTurn(cut=True)
    return conclude(read_body(turn, grammar), grammar)


def is_cut(turn: Turn) -> bool:
    """Tell whether the token limit cut the text."""
    return str(turn.finish_reason).lower() in _CUT


def read_body(turn: Turn, grammar: Grammar) -> Reading:
    """Read a message that was not cut, giving back a delimiter that a sampler took away."""
    text = clean_text(turn, grammar)
    reading = scan(text, grammar)
    restored = [
        again
        for closing in sorted({fault.closing for fault in reading.faults if fault.closing})
        if _was_taken(closing.strip(), turn, grammar.stops)
        and not (again := scan(text + closing, grammar)).faults
    ]
    return restored[0] if len(restored) == 1 else reading


def clean_text(turn: Turn, grammar: Grammar) -> str:
    """The message without what the sampler left at its end.

    That is an end-of-turn token, or the opening of an observation at which it stopped. Lone
    surrogates become U+FFFD.
    """
    text = _END_OF_TURN.sub("", _SURROGATE.sub("\ufffd", str(turn)))
    stop = str(turn.stop_string).strip()
    opens_result = grammar.marks.fullmatch(stop)
    if opens_result and opens_result.lastgroup == "wrapper" and text.rstrip().endswith(stop):
        return text.rstrip().removesuffix(stop)
    return text


def conclude(reading: Reading, grammar: Grammar, *, further: Sequence[ToolCall] = ()) -> ParsedTurn:
    """Apply rules 3 to 6 to what was found.

    Args:
        reading: the pass over the message.
        grammar: the rules it was read by.
        further: calls that follow those in the text (OpenAI's ``tool_calls``).
    """
    thoughts = reading.slices(reading.thoughts)
    problems = [
        *reading.problems,
        *_thought.thought_problems(thoughts, grammar.think),
        *(problem for block in reading.blocks for problem in block.problems),
    ]
    calls = [block.call for block in reading.blocks if block.call is not None]
    calls, more = _answering([*calls, *further], reading, grammar)
    problems += more
    thought = "\n\n".join(filter(None, map(str.strip, thoughts)))
    error = _fault(reading) or _answer_fault(calls, grammar)
    if error:
        return failed(error, problems=problems, thought=thought)
    if reading.trailing:
        problems.append(f"text follows the {'answer' if calls[-1].name == SUBMIT else 'last call'}")
    return ParsedTurn(
        calls=tuple(calls),
        problems=_distinct(problems),
        repaired=any(block.repaired for block in reading.blocks),
        thought=thought,
    )


def failed(error: str, *, problems: Sequence[str] = (), thought: str = "") -> ParsedTurn:
    """The result for a message of which nothing is run."""
    return ParsedTurn(
        error=ToolError("format", error), problems=_distinct([error, *problems]), thought=thought
    )


def check_composed(
    parsed: ParsedTurn,
    calls: Sequence[ToolCall],
    thought: str,
    *,
    plain: Callable[[ToolCall], object] | None = None,
) -> None:
    """Check that a composed message, read again, makes the same calls.

    Args:
        parsed: the message, read again.
        calls: the calls it was to make.
        thought: the thought it was to hold, ``""`` for any.
        plain: what of a call must be equal; name and arguments if not given.

    Raises:
        UsageError: It does not; the message says why.
    """
    if parsed.error is not None:
        raise UsageError(f"this format cannot express the calls: {parsed.error.message}")
    plain = plain or (lambda call: (call.name, dict(call.arguments)))
    if [*map(plain, parsed.calls)] != [*map(plain, calls)]:
        raise UsageError(
            "this format cannot express the calls "
            f"{[call.name for call in calls]}: read again, the message makes others."
        )
    if thought.strip() and parsed.thought != thought.strip():
        raise UsageError("the thought holds tags of its own, so it would not be read back.")


def normalise_stops(stop: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Read the option ``stop``: a list, or one text with commas between; outer blanks go.

    >>> normalise_stops("</sql>, </python>")
    ('</sql>', '</python>')
    """
    if stop is None:
        return None
    parts = stop.split(",") if isinstance(stop, str) else stop
    return tuple(dict.fromkeys(part.strip(" \t") for part in parts if part.strip()))


def place(text: str, index: int) -> str:
    """Name a place in a message for its writer: line and column, from 1."""
    line = text.count("\n", 0, index) + 1
    return f"line {line}, column {index - text.rfind(chr(10), 0, index)}"


def _was_taken(closing: str, turn: Turn, stops: Sequence[str]) -> bool:
    if turn.stop_string:
        return str(turn.stop_string).strip() == closing
    return str(turn.finish_reason).lower() == "stop" and closing in stops


def _distinct(problems: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(problems))[:_MAX_PROBLEMS]


def _fault(reading: Reading) -> str:
    """The first thing that makes the message unreadable, with its place."""
    if reading.error:
        return f"{place(reading.text, reading.error_at)}: {reading.error}"
    for block in reading.faults:
        return f"{place(reading.text, block.start)}: {block.fault}"
    return ""


def _answering(
    calls: list[ToolCall], reading: Reading, grammar: Grammar
) -> tuple[list[ToolCall], list[str]]:
    """Apply rules 4 and 5; returns the calls and what is not clean about them."""
    boxes = extract_boxes("\n".join(reading.slices(reading.plain))) if grammar.boxed else ()
    problems = ["a box beside a call is not read as an answer"] if boxes and calls else []
    if boxes and not calls:
        calls = [ToolCall(SUBMIT, {"answer": boxes[-1]})]
        problems = [_SEVERAL] if len(set(boxes)) > 1 else []
    names = [call.name for call in calls]
    if SUBMIT in names[:-1]:
        last = names.index(SUBMIT)
        problems.append(f"{len(calls) - last - 1} calls after the answer are not run")
        calls = calls[: last + 1]
    if calls and calls[-1].name == SUBMIT and _boxes_differ(calls[-1].arguments.get("answer")):
        problems.append(_SEVERAL)
    return calls, problems


def _boxes_differ(answer: object) -> bool:
    """Tell whether an answer holds boxes of different content, at whatever depth."""
    for _ in range(_MAX_NESTING):
        boxes = extract_boxes(answer) if isinstance(answer, str) else ()
        if len(set(boxes)) != 1:
            return len(boxes) > 1
        answer = boxes[0]
    return True


def _answer_fault(calls: Sequence[ToolCall], grammar: Grammar) -> str:
    if not calls:
        return f"the message holds no call and no answer; {grammar.expects}"
    answer = calls[-1].arguments.get("answer")
    if calls[-1].name == SUBMIT and isinstance(answer, str) and not answer.strip():
        return f"the answer is blank; {grammar.expects}"
    return ""
