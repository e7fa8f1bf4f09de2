"""The cases of the kind tool_parsing, and H04, as far as reading a message goes."""

from __future__ import annotations

from typing import Any

import pytest

from toolenvs import formats
from toolenvs.formats.fenced import Fenced
from toolenvs.formats.hermes import Hermes
from toolenvs.formats.tags import Tags
from toolenvs.types import ParsedTurn, ToolCall, Turn

HERMES = Hermes()
TAGS = Tags(
    tags={
        "sql": ("sql_query", "query"),
        "search": ("search", "query"),
        "python": ("python", "code"),
        "answer": ("submit", "answer"),
    }
)
SEARCH_A = ToolCall("search", {"query": "a"})
SEARCH_B = ToolCall("search", {"query": "b"})
LYON = ToolCall("submit", {"answer": "Lyon"})


def is_format_error(parsed: ParsedTurn) -> bool:
    """One error of the format, and nothing to run."""
    return parsed.calls == () and parsed.error is not None and parsed.error.kind == "format"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        pytest.param(
            '<tool_call>{"name":"search","arguments":{"query":"who is Ann\'s boss"}}</tool_call>',
            "who is Ann's boss",
            id="a",
        ),
        pytest.param(
            '<tool_call>{"name":"search","arguments":'
            '{"query":"na\\u00efve \\ud83d\\ude00"}}</tool_call>',
            "naïve 😀",
            id="d",
        ),
    ],
)
@pytest.mark.parametrize("repair", [False, True])
def test_T01_valid_json_is_read_intact(text: str, query: str, repair: bool) -> None:
    """T01 a, d: an apostrophe and an escaped emoji survive, whatever else may be repaired."""
    parsed = Hermes(repair=repair).parse(text)
    assert parsed.calls == (ToolCall("search", {"query": query}),)
    assert parsed.problems == ()
    assert not parsed.repaired


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "<tool_call>{'name': 'search', 'arguments': {'query': 'boss'}}</tool_call>", id="b"
        ),
        pytest.param(
            '<tool_call>{"name":"search","arguments":{"query":"boss",}}</tool_call>', id="c"
        ),
    ],
)
def test_T01_other_json_is_an_error_or_a_flagged_repair(text: str) -> None:
    """T01 b, c: strict by default, the problem named; with ``repair`` read and not clean."""
    strict = HERMES.parse(text)
    assert is_format_error(strict)
    assert strict.error is not None
    assert "no valid JSON" in strict.error.message
    repaired = Hermes(repair=True).parse(text)
    assert repaired.calls == (ToolCall("search", {"query": "boss"}),)
    assert repaired.repaired
    assert repaired.problems


def test_T02_delimiters_in_a_payload_do_not_end_it() -> None:
    """T02 a, b, d: a tag in a JSON string, a fence in a Python string, a tag in an SQL literal."""
    in_json = HERMES.parse(
        '<tool_call>{"name":"python","arguments":{"code":"print(\'</tool_call>\')"}}</tool_call>'
    )
    assert in_json.calls == (ToolCall("python", {"code": "print('</tool_call>')"}),)
    in_python = Fenced().parse('```python\ns = "```"\nprint(len(s))\n```')
    assert in_python.calls == (ToolCall("python", {"code": 's = "```"\nprint(len(s))'}),)
    in_sql = TAGS.parse("<sql>SELECT '</sql>' AS t</sql>")
    assert in_sql.calls == (ToolCall("sql_query", {"query": "SELECT '</sql>' AS t"}),)


@pytest.mark.parametrize("name", formats.names())
def test_T02_an_answer_that_speaks_of_its_tag_is_a_format_error(name: str) -> None:
    """T02 c: tags that do not match are never read by half, in any format."""
    assert is_format_error(formats.make(name).parse("<answer>the tag is <answer></answer>", []))


def test_T03_drafts_in_a_thought_do_not_exist() -> None:
    """T03 a: one call for two that look alike."""
    code = "open('n','a').write('x')"
    call = f'<tool_call>{{"name":"python","arguments":{{"code":"{code}"}}}}</tool_call>'
    parsed = HERMES.parse(f"<think>maybe {call}</think>{call}")
    assert parsed.calls == (ToolCall("python", {"code": code}),)


@pytest.mark.parametrize("name", formats.names())
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<think>so it could be \\boxed{12}, let me check", id="b"),
        pytest.param("drafting... <answer>12</answer></think>I do not know", id="c"),
    ],
)
def test_T03_an_unfinished_or_finished_thought_is_no_answer(name: str, text: str) -> None:
    """T03 b, c: in every format."""
    assert is_format_error(formats.make(name).parse(text, []))


def test_T03_a_thought_tag_in_an_argument_is_data() -> None:
    """T03 d: the call runs with it."""
    parsed = HERMES.parse(
        '<think>ok</think><tool_call>{"name":"python",'
        '"arguments":{"code":"print(\'<think>\')"}}</tool_call>'
    )
    assert parsed.calls == (ToolCall("python", {"code": "print('<think>')"}),)
    assert (parsed.thought, parsed.problems) == ("ok", ())


def test_T05_an_invented_name_is_a_readable_call() -> None:
    """T05: each turn reads the same every time; who knows the names is the executor."""
    turns = [
        '<tool_call>{"name":"web_serch","arguments":{"query":"x"}}</tool_call>',
        '<tool_call>{"name":"search","arguments":{"query":"x"}}</tool_call>',
        "<answer>Lyon</answer>",
    ]
    parsed = [HERMES.parse(turn) for turn in turns]
    assert [turn.calls for turn in parsed] == [
        (ToolCall("web_serch", {"query": "x"}),),
        (ToolCall("search", {"query": "x"}),),
        (LYON,),
    ]
    assert all(turn.error is None and turn.problems == () for turn in parsed)


SELECT = "SELECT name FROM emp WHERE id=1"


@pytest.mark.parametrize(
    ("turn", "options"),
    [
        pytest.param(Turn(f"<sql>{SELECT}", "stop", "</sql>"), {}, id="a"),
        pytest.param(Turn(f"<sql>{SELECT}", "stop"), {"stop": "</sql>, </python>"}, id="e"),
    ],
)
@pytest.mark.parametrize("tags", [{"sql": ("sql_query", "query")}])
def test_T06_an_eaten_stop_string_is_forgiven(
    turn: Turn, options: dict[str, Any], tags: dict[str, tuple[str, str]]
) -> None:
    """T06 a, e: the call runs, clean, with blanks around configured stops or without."""
    parsed = Tags(tags=tags, **options).parse(turn)
    assert parsed.calls == (ToolCall("sql_query", {"query": SELECT}),)
    assert parsed.problems == ()


def test_T06_cut_text_is_no_format_error_and_open_text_is_one() -> None:
    """T06 b, c: neither runs; d: two calls in order, as T08 has it."""
    assert TAGS.parse(Turn("<sql>SELECT name FROM em", "length")) == ParsedTurn(cut=True)
    assert is_format_error(TAGS.parse(Turn(f"<sql>{SELECT}", None)))
    two = TAGS.parse(Turn(f"<sql>{SELECT}</sql>\n<sql>SELECT 2</sql>", "stop"))
    assert [call.arguments["query"] for call in two.calls] == [SELECT, "SELECT 2"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tags", "<answer>Lyon</answer><search>capital of Rhone</search>"),
        (
            "hermes",
            '<answer>Lyon</answer><tool_call>{"name":"search","arguments":{}}</tool_call>',
        ),
        ("fenced", "<answer>Lyon</answer>\n```python\n1\n```"),
        (
            "openai",
            '{"role":"assistant","content":"<answer>Lyon</answer>","tool_calls":'
            '[{"id":"1","function":{"name":"search","arguments":"{}"}}]}',
        ),
    ],
)
def test_T08_nothing_runs_after_the_answer(name: str, text: str) -> None:
    """T08 a: one rule for all formats: the answer counts, what follows is a problem."""
    made = TAGS if name == "tags" else formats.make(name)
    parsed = made.parse(text, [])
    assert parsed.calls == (LYON,)
    assert parsed.problems


def test_T08_several_calls_run_in_order_or_not_at_all() -> None:
    """T08 b, c: two objects in one block are an error, two blocks are two calls."""
    a, b = (f'{{"name":"search","arguments":{{"query":"{query}"}}}}' for query in "ab")
    assert is_format_error(HERMES.parse(f"<tool_call>{a}\n{b}</tool_call>"))
    parsed = HERMES.parse(f"<tool_call>{a}</tool_call><tool_call>{b}</tool_call>")
    assert parsed.calls == (SEARCH_A, SEARCH_B)
    assert parsed.problems == ()


def test_T08_an_invented_observation_runs_nothing() -> None:
    """T08 d: whichever wrapper the format itself uses."""
    text = "<search>a</search><information>Lyon is right</information><answer>Lyon</answer>"
    for result_tag in ("result", "information"):
        made = Tags(
            tags={"search": ("search", "query"), "answer": ("submit", "answer")},
            result_tag=result_tag,
        )
        assert is_format_error(made.parse(text))


@pytest.mark.parametrize("name", formats.names())
@pytest.mark.parametrize("think", ["optional", "required"])
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<think>ok</tool><answer>7</answer>", False),
        ("<think></think>ok", False),
        ("<think> </think><answer> </answer>", False),
        ("<answer>7</answer><think>later</think>", False),
        ("<think>a</think><think>b</think><answer>7</answer><answer>8</answer>", False),
        ("<THINK>a</THINK><answer>7</answer>", False),
        ("<think>ok</think><answer>7</answer>", True),
        # more of the kind
        ("ok</think><answer>7</answer>", False),
        ("</think>ok<think><answer>7</answer>", False),
        ("<think>a<think>b</think><answer>7</answer>", False),
        ("<think>a</think></think><answer>7</answer>", False),
        ("<think> </think><answer>7</answer>", False),
        ("<think>ok</think><answer>7</answer></answer>", False),
        ("<think>ok</think><answer>7</answer><answer>7</answer>", False),
        ("<think>ok</think><ANSWER>8</ANSWER><answer>7</answer>", False),
        ("<think>ok</think><answer>7</answer> or 8", False),
        ("<think>ok</think></answer>7<answer>", False),
        ("<think><answer>7</answer></think>", False),
    ],
)
def test_H04_only_a_well_formed_message_is_clean(
    name: str, think: str, text: str, clean: bool
) -> None:
    """H04: the cheapest string that passes has one thought and one answer, each with content."""
    parsed = formats.make(name, think=think).parse(text, [])
    assert (parsed.problems == () and parsed.error is None) == clean
    if clean:
        assert parsed.calls == (ToolCall("submit", {"answer": "7"}),)


def test_H04_a_required_thought_is_missed() -> None:
    """H04: without a thought the answer stands, but the message is not clean."""
    parsed = Tags(think="required").parse("<answer>7</answer>")
    assert parsed.calls == (ToolCall("submit", {"answer": "7"}),)
    assert parsed.problems
