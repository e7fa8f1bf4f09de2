"""The format ``hermes``."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from tests.formats.hostile import SPECS, any_text, json_calls
from toolenvs.errors import UsageError
from toolenvs.formats.hermes import Hermes
from toolenvs.types import ToolCall, ToolResult, Turn

HERMES = Hermes()


def block(value: object) -> str:
    """A tool call that holds a value."""
    return f"<tool_call>{json.dumps(value)}</tool_call>"


@settings(deadline=None)
@given(calls=json_calls)
def test_it_expresses_every_call_with_json_arguments(calls: list[ToolCall]) -> None:
    """Delimiters, tags and any Unicode in names, keys and values included."""
    parsed = HERMES.parse(HERMES.compose(calls, "a thought"), SPECS)
    assert parsed.calls == tuple(calls)
    assert parsed.problems == ()


@settings(deadline=None)
@given(answer=any_text.filter(lambda text: text.strip() != ""))
def test_it_expresses_every_answer(answer: str) -> None:
    """As a call of submit."""
    calls = (ToolCall("submit", {"answer": answer}),)
    assert HERMES.parse(HERMES.compose(calls)).calls == calls


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1: 2}, (1, 2), {"a"}, "\ud800"])
def test_arguments_that_are_no_json_are_refused(value: object) -> None:
    """Rather than written as something else."""
    with pytest.raises(UsageError):
        HERMES.compose([ToolCall("search", {"query": value})])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ('{"name": "search", "arguments": {"query": "a", "query": "b"}}', "stands twice"),
        ('{"name": "search", "name": "python", "arguments": {}}', "stands twice"),
        ('{"name": "search", "arguments": {"k": NaN}}', "NaN"),
        ('{"name": "search", "arguments": {"k": -Infinity}}', "-Infinity"),
        ('{"name": "search", "arguments": {"k": 1e999}}', "finite"),
        ('{"name": "search", "arguments": {"k": ' + "1" * 5000 + "}}", "digits"),
        ('{"name": "search", "arguments": {"q": "\\ud83d"}}', "surrogate"),
        ('{"name": "search", "arguments": [1]}', "a list"),
        ('{"name": "search", "arguments": null}', "null"),
        ('{"name": "search", "arguments": "no json"}', "is a text"),
        ('{"name": "search", "arguments": "[]"}', "a list"),
        ('{"name": "search"}', "no 'arguments'"),
        ('{"name": "search", "parameters": {}}', "'parameters'"),
        ('{"name": "search", "arguments": {}, "id": 1}', "'id'"),
        ('{"arguments": {}}', "no 'name'"),
        ('{"name": "", "arguments": {}}', "'name'"),
        ('{"name": 7, "arguments": {}}', "a number"),
        ('[{"name": "search", "arguments": {}}]', "a list"),
        ('"search"', "a text"),
        ("", "no valid JSON"),
        ("{'name': 'search', 'arguments': {}}", "double quotes"),
        ('{"name": "search", "arguments": {"a": 1,}}', "no comma"),
        ('{"name": "python", "arguments": {"code": "a\nb"}}', "line break"),
        ('{"name": "search", "arguments": {}} and more', "follows"),
        ('{"name": "search", "arguments": {}}, {"name": "b", "arguments": {}}', "follows"),
        ("[" * 100_000, "nested"),
    ],
)
def test_each_fault_is_named(source: str, says: str) -> None:
    """One format error that says what is wrong, and nothing runs, a good call beside it neither."""
    good = block({"name": "search", "arguments": {}})
    for text in (f"<tool_call>{source}</tool_call>", f"{good}<tool_call>{source}</tool_call>"):
        parsed = HERMES.parse(text, SPECS)
        assert parsed.calls == ()
        assert parsed.error is not None
        assert says in parsed.error.message


def test_a_fault_has_a_place() -> None:
    """Line and column in the whole message."""
    parsed = HERMES.parse('Hm.\n<tool_call>{"name": search}</tool_call>')
    assert parsed.error is not None
    assert parsed.error.message.startswith("line 2, column 1: ")
    assert "at line 2, column 21" in parsed.error.message


@pytest.mark.parametrize(
    "source",
    [
        "{'name': 'search', 'arguments': {'query': \"it's, }\", 'k': None, 'exact': True}}",
        '{"name": "search", "arguments": {"query": "it\'s, }", "k": null, "exact": true,},}',
    ],
)
def test_a_repair_is_done_on_demand_and_flagged(source: str) -> None:
    """The text stays intact, and the message is not clean."""
    text = f"<tool_call>{source}</tool_call>"
    parsed = Hermes(repair=True).parse(text)
    assert [dict(call.arguments) for call in parsed.calls] == [
        {"query": "it's, }", "k": None, "exact": True}
    ]
    assert parsed.repaired
    assert parsed.problems
    assert HERMES.parse(text).error is not None


@pytest.mark.parametrize(
    "source",
    [
        "{'name': 'search', 'arguments': {'a': 1, 'a': 2}}",
        "{'name': 'search', 'arguments': {'a': open('x')}}",
        "{'name': 'search', 'arguments': {'a': b'x'}}",
        "{'name': 'search', 'arguments': {'a': 1e999}}",
        "{'name': 'search', 'arguments': {1: 2}}",
        "{'name': 'search', 'arguments': {**{}}}",
        "(" * 5000,
        "{'name': 'search', 'arguments': {'a': '\\ud800'}}\x00",
    ],
)
def test_what_no_repair_can_mean_stays_an_error(source: str) -> None:
    """A literal alone is read; nothing is evaluated and no key is dropped."""
    assert Hermes(repair=True).parse(f"<tool_call>{source}</tool_call>").calls == ()


def test_a_valid_call_is_never_repaired() -> None:
    """The option changes nothing about valid JSON."""
    text = block({"name": "search", "arguments": {"query": "who is Ann's boss, }"}})
    assert Hermes(repair=True).parse(text) == HERMES.parse(text)
    assert not HERMES.parse(text).repaired


def test_arguments_as_a_text_are_read_and_flagged() -> None:
    """OpenAI's habit is understood here, but it is not this format."""
    parsed = HERMES.parse(block({"name": "search", "arguments": '{"query": "a"}'}))
    assert [dict(call.arguments) for call in parsed.calls] == [{"query": "a"}]
    assert parsed.repaired
    assert parsed.problems


def test_the_answer_is_the_last_box_outside_the_thought() -> None:
    """Whole, braces inside it included; two boxes that differ are not clean."""
    parsed = HERMES.parse("<think>\\boxed{1}</think>So \\boxed{\\frac{1}{2}}.")
    assert parsed.calls == (ToolCall("submit", {"answer": "\\frac{1}{2}"}),)
    assert parsed.problems == ()
    two = HERMES.parse("\\boxed{1}, no, \\boxed{2}")
    assert two.calls == (ToolCall("submit", {"answer": "2"}),)
    assert two.problems


def test_a_box_beside_a_call_is_no_answer() -> None:
    """The call runs, the box is a problem."""
    parsed = HERMES.parse("\\boxed{1}" + block({"name": "python", "arguments": {}}))
    assert [call.name for call in parsed.calls] == ["python"]
    assert parsed.problems


@pytest.mark.parametrize(
    ("form", "box", "tag"), [("any", True, True), ("boxed", True, False), ("tag", False, True)]
)
def test_the_form_of_answers_is_an_option(form: str, box: bool, tag: bool) -> None:
    """Each form reads its own and leaves the other alone."""
    made = Hermes(answer=form)  # type: ignore[arg-type]  # parametrised
    assert bool(made.parse("\\boxed{7}").calls) == box
    assert bool(made.parse("<answer>7</answer>").calls) == tag


def test_calls_drafted_in_a_thought_of_the_prompt_do_not_run() -> None:
    """Even when the draft is broken, or its strings hold the tag that ends thoughts."""
    good = block({"name": "search", "arguments": {"query": "</think>"}})
    for draft in ('<tool_call>{"name": hm', "<tool_call>{}</tool_call>", good):
        parsed = HERMES.parse(f"{draft} no</think>{good}")
        assert [dict(call.arguments) for call in parsed.calls] == [{"query": "</think>"}]


def test_a_stop_string_that_was_taken_is_given_back() -> None:
    """With the sampler's word for it; without it an open call is an error."""
    text = '<tool_call>{"name": "search", "arguments": {}}\n'
    assert HERMES.parse(Turn(text, "stop", "</tool_call>")).problems == ()
    assert HERMES.parse(Turn(text, "stop")).error is not None  # no stop string of ours took it
    assert HERMES.parse(Turn(text)).error is not None
    assert HERMES.parse(Turn(text, "stop", "<|im_end|>")).error is not None
    assert HERMES.parse(Turn('<tool_call>{"name": "se', "stop", "</tool_call>")).error is not None


def test_careless_tags_call_nothing() -> None:
    """Upper case, blanks and attributes are plain text, and a problem."""
    call = json.dumps({"name": "search", "arguments": {}})
    for text in (f"<TOOL_CALL>{call}</TOOL_CALL>", f"<tool_call >{call}</tool_call >"):
        parsed = HERMES.parse(text)
        assert parsed.calls == ()
        assert len(parsed.problems) > 1


def test_results_are_wrapped_as_these_models_know_them() -> None:
    """One wrapper each; the wrapper's own tag is broken inside."""
    calls = [ToolCall("python", {}), ToolCall("python", {})]
    text = HERMES.render(calls, [ToolResult("1"), ToolResult("</tool_response>")])
    assert text == (
        "<tool_response>\n1\n</tool_response>\n"
        "<tool_response>\n<\u2060/tool_response>\n</tool_response>"
    )
    assert HERMES.messages(calls[:1], [ToolResult("1")]) == [
        {"role": "tool", "name": "python", "content": "1"}
    ]


def test_arguments_nested_too_deeply_are_a_format_error() -> None:
    """What a record could not hold is never run."""
    deep = '{"a":' * 70 + "1" + "}" * 70
    parsed = Hermes().parse(f'<tool_call>{{"name":"x","arguments":{deep}}}</tool_call>', [])
    assert parsed.calls == ()
    assert parsed.error is not None
    assert "deeply" in parsed.error.message
