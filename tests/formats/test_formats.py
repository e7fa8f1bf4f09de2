"""What every format promises; a new one is tested unasked."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.hostile import SPECS, any_text, hostile_text
from toolenvs import formats
from toolenvs.errors import UsageError
from toolenvs.protocols import ToolFormat
from toolenvs.types import ParsedTurn, ToolCall, ToolError, ToolResult, Turn

NAMES = formats.names()
every_format = pytest.mark.parametrize("name", NAMES)
SUBMIT = ToolCall("submit", {"answer": "7"})
PYTHON = ToolCall("python", {"code": "print(1)"})


def parse(name: str, text: str, **options: Any) -> ParsedTurn:
    """Read a text by a format as an episode would."""
    return formats.make(name, **options).parse(text, SPECS)


def calls_of(parsed: ParsedTurn) -> list[tuple[str, dict[str, Any]]]:
    """The calls without their ids."""
    return [(call.name, dict(call.arguments)) for call in parsed.calls]


@every_format
def test_it_is_a_format(name: str) -> None:
    """It has the protocol's members, its file's name, and stops that are texts."""
    made = formats.make(name)
    assert isinstance(made, ToolFormat)
    assert made.name == name
    assert all(isinstance(stop, str) and stop for stop in made.stop)


@every_format
@settings(deadline=None)
@given(
    text=any_text | hostile_text,
    finish_reason=st.sampled_from(["", "stop", "length", None]),
    stop_string=st.sampled_from(["", "</tool_call>", "```", "</sql>", "<result>", "\n"]),
)
def test_parse_never_raises_and_is_consistent(
    name: str, text: str, finish_reason: str | None, stop_string: str
) -> None:
    """Either calls, or one error that is also a problem, or a cut; submit is last."""
    parsed = parse(name, Turn(text, finish_reason, stop_string))
    if parsed.cut:
        assert parsed == ParsedTurn(cut=True)
    elif parsed.error is not None:
        assert parsed.calls == ()
        assert parsed.error.kind == "format"
        assert parsed.problems[0] == parsed.error.message
    else:
        assert parsed.calls
        assert "submit" not in [call.name for call in parsed.calls[:-1]]


@every_format
def test_parse_takes_lone_surrogates_and_long_texts(name: str) -> None:
    """What cannot be encoded is replaced; a hostile million characters end in time."""
    formats.make(name).parse("\ud800<answer>\udc00</answer>", SPECS)
    for piece in ("<tool_call>", "</think>", "<think></think>", "```python\n", "<sql>'", "{", "<"):
        parse(name, piece * (300_000 // len(piece)))
    parse(name, "<answer>7</answer></think><result>" * 10_000)
    parse(name, "[" * 200_000)
    parse(name, "<tool_call>" + "[" * 200_000)


@every_format
@pytest.mark.parametrize("thought", ["", "I add <b>two</b> numbers.\nThen I stop."])
@pytest.mark.parametrize("rule", ["optional", "required", "opened"])
def test_composed_messages_are_clean(name: str, thought: str, rule: str) -> None:
    """What a gold policy writes passes every gate for format, under each rule for thoughts."""
    made = formats.make(name, think=rule)
    for calls in ([SUBMIT], [PYTHON], [PYTHON, PYTHON], [PYTHON, SUBMIT]):
        parsed = made.parse(made.compose(calls, thought), SPECS)
        assert calls_of(parsed) == [(call.name, call.arguments) for call in calls]
        assert parsed.problems == ()
        assert thought in ("", parsed.thought)


@every_format
def test_nothing_follows_submit(name: str) -> None:
    """A message that calls after its answer cannot be composed, nor one without any call."""
    made = formats.make(name)
    for calls in ([SUBMIT, PYTHON], []):
        with pytest.raises(UsageError):
            made.compose(calls)


@every_format
def test_a_thought_that_ends_itself_is_refused(name: str) -> None:
    """``</think>`` in a thought would let the rest of it be read as the message."""
    with pytest.raises(UsageError):
        formats.make(name).compose([PYTHON], "a </think> b")


@every_format
@pytest.mark.parametrize(
    "text",
    [
        "<think>so it is \\boxed{7}, let me check",
        "it may be <answer>7</answer> or \\boxed{7}</think>I do not know",
        "I am not sure yet.",
        "",
        "<think>\\boxed{7}</think>",
        "<answer> </answer>",
        "\\boxed{ }",
    ],
)
def test_no_answer_is_taken_from_thoughts_or_blanks(name: str, text: str) -> None:
    """A message without call and answer is one format error that says what is expected."""
    parsed = parse(name, text)
    assert parsed.calls == ()
    assert parsed.error is not None
    assert parsed.error.kind == "format"


@every_format
def test_a_message_that_begins_inside_a_thought(name: str) -> None:
    """With ``think="opened"`` all up to ``</think>`` is thought, and without it everything."""
    answer = formats.make(name).compose([SUBMIT])
    inside = parse(name, f"it may be <answer>8</answer></think>{answer}", think="opened")
    if name != "openai":  # there the answer is a message of JSON and the thought stands within
        assert (calls_of(inside), inside.problems) == ([("submit", {"answer": "7"})], ())
    assert parse(name, "so <answer>7</answer> \\boxed{7}", think="opened").calls == ()


@every_format
@pytest.mark.parametrize(
    "wrapper",
    [
        "<result>",
        "</result>",
        "<information>",
        "<tool_response>",
        "<INTERPRETER >",
        "\n```output\n",
        "\n  ~~~~ output\n",
        "＜tool_response＞7＜/tool_response＞",
        "<\u200btool_response>7",
        "<tool\u200b_response>7",
        "＜／ｒｅｓｕｌｔ＞",
        "﹤observation﹥",
        "<|im_start|>tool\n7",
        "<|tool_response|>",
        "<｜tool▁outputs▁begin｜>",
        "[TOOL_RESULTS]",
    ],
)
def test_an_observation_of_ones_own_making_runs_nothing(name: str, wrapper: str) -> None:
    """The same for all formats, whichever wrapper they use themselves."""
    parsed = parse(name, f"I see {wrapper} Lyon <answer>Lyon</answer>")
    assert parsed.calls == ()
    assert parsed.error is not None
    assert "observation" in parsed.error.message


@every_format
@pytest.mark.parametrize("reason", ["length", "max_tokens"])
def test_cut_text_runs_nothing_and_is_no_error(name: str, reason: str) -> None:
    """Whatever the text held, even a whole call before the cut."""
    text = formats.make(name).compose([PYTHON])
    assert parse(name, Turn(text, reason)) == ParsedTurn(cut=True)


@every_format
def test_a_kept_stop_string_or_end_token_is_no_text(name: str) -> None:
    """Samplers that leave what stopped them at the end make no message unclean."""
    text = formats.make(name).compose([PYTHON])
    assert parse(name, text + "<|im_end|>").problems == ()
    stopped = Turn(text + "\n<result>", "stop", "<result>")
    assert parse(name, stopped).problems == ()


@every_format
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no answer",
        "\\boxed{ }",
        "<think>never",
        "<answer>7",
        "</answer>",
        "<answer><answer>7</answer>",
        "<tool_call>",
        "</tool_call>",
        '<tool_call>{"name": "a", "arguments": {}} x',
        "<search>a",
        "```python\nx",
        '{"role": "user"}',
    ],
)
def test_an_error_in_our_own_words_is_shown_as_it_is(name: str, text: str) -> None:
    """The hint holds no broken tag that a model could copy, and it makes no turn itself."""
    made = formats.make(name)
    parsed = made.parse(text, SPECS)
    assert parsed.error is not None
    message = parsed.error.message
    shown = made.messages([], [ToolResult("", error=parsed.error)])[0]["content"]
    assert shown == message
    assert all(parse(other, message).calls == () for other in NAMES)


@every_format
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\\boxed{1} \\boxed{2} \\boxed{7} \\boxed{7}", "7"),
        ("\\boxed{2} \\boxed{7}", "7"),
        ("\\boxed{\\boxed{1} \\boxed{7}}", "\\boxed{1} \\boxed{7}"),
        ("<answer>\\boxed{1}\\boxed{2}\\boxed{7}</answer>", "\\boxed{1}\\boxed{2}\\boxed{7}"),
        ("<answer>\\boxed{x \\boxed{1} \\fbox{7}}</answer>", "\\boxed{x \\boxed{1} \\fbox{7}}"),
    ],
)
def test_boxes_that_differ_are_not_clean(name: str, text: str, answer: str) -> None:
    """A guess in each box is no clean answer, whichever differs; the last still counts."""
    parsed = parse(name, text)
    if name in ("tags", "search_r1") and "<answer>" not in text:
        assert parsed.calls == ()  # they read no boxes
        return
    assert calls_of(parsed) == [("submit", {"answer": answer})]
    assert any("boxes that differ" in problem for problem in parsed.problems)


@every_format
def test_boxes_that_agree_are_clean(name: str) -> None:
    """Repeating the answer is no guess."""
    parsed = parse(name, "<answer>\\boxed{7}, that is \\boxed{7}</answer>")
    assert parsed.problems == ()


@pytest.mark.parametrize("name", ["hermes", "openai"])
def test_boxes_that_differ_in_a_call_of_submit_are_not_clean(name: str) -> None:
    """The answer's way into the message does not matter."""
    made = formats.make(name)
    call = ToolCall("submit", {"answer": "\\boxed{1} \\boxed{7} \\boxed{7}"})
    parsed = made.parse(made.compose([call]), SPECS)
    assert calls_of(parsed) == [("submit", dict(call.arguments))]
    assert parsed.problems == ("there are several boxes that differ",)


@every_format
@pytest.mark.parametrize("tag", ["＜think＞", "<\u200bthink>", "<THINK >"])
def test_a_thought_counts_however_its_tags_are_spelt(name: str, tag: str) -> None:
    """A box in what looks like a thought is no answer."""
    closing = tag.replace("think", "/think").replace("THINK", "/THINK")
    parsed = parse(name, f"{tag}\\boxed{{7}} <answer>7</answer>{closing}")
    assert parsed.calls == ()


@every_format
@settings(max_examples=60, deadline=None)
@given(text=any_text | hostile_text, tool=st.sampled_from(["python", "my_tool", "</result>"]))
def test_no_observation_is_a_turn(name: str, text: str, tool: str) -> None:
    """What any format shows makes no call and no answer in any format, wrapped or not."""
    made = formats.make(name)
    call = ToolCall(tool, {"code": "1"}, id="a")
    results = [ToolResult(text), ToolResult("", error=ToolError("raised", text))]
    shown = [
        made.render([call, call], results),
        made.render([], results[:1]),
        *(str(message["content"]) for message in made.messages([call, call], results)),
    ]
    for observation in shown:
        observation.encode()
        for other in NAMES:
            assert parse(other, observation).calls == (), other


@every_format
def test_results_keep_their_order_and_errors_are_seen(name: str) -> None:
    """Each call's result is there once, an error by its message where it has no text."""
    made = formats.make(name)
    calls = [PYTHON, PYTHON, PYTHON]
    results = [
        ToolResult("first"),
        ToolResult("", error=ToolError("timeout", "second")),
        ToolResult("third", error=ToolError("raised", "not shown")),
    ]
    for text in (made.render(calls, results), str(made.messages(calls, results))):
        assert -1 < text.index("first") < text.index("second") < text.index("third")
        assert "not shown" not in text


@every_format
def test_an_unreadable_message_is_answered_as_the_user(name: str) -> None:
    """No tool ran, so no message pretends to be a tool's."""
    messages = formats.make(name).messages([], [ToolResult("say what you want")])
    assert messages == [{"role": "user", "content": "say what you want"}]


@every_format
def test_describe_names_each_tool_and_how_to_answer(name: str) -> None:
    """A model that reads only this knows what it may do."""
    text = formats.make(name).describe(SPECS)
    assert "What python does." in text
    assert "What search does." in text
    assert "answer" in text
    assert "</think>" not in text
    for rule in ("required", "opened"):
        assert "</think>" in formats.make(name, think=rule).describe(SPECS)


@every_format
def test_a_format_is_cheap_to_send(name: str) -> None:
    """It survives pickle and deepcopy, after use too, and behaves the same."""
    made = formats.make(name)
    text = made.compose([PYTHON])
    expected = made.parse(text, SPECS)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again.parse(text, SPECS) == expected


@every_format
@pytest.mark.parametrize("options", [{"think": "never"}, {"answer": "guess"}])
def test_a_wrong_option_is_refused(name: str, options: dict[str, str]) -> None:
    """The message says what is allowed; ``tags`` has no option ``answer`` at all."""
    with pytest.raises((UsageError, TypeError)):
        formats.make(name, **options)
