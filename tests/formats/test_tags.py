"""The format ``tags``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.formats.hostile import SPECS, any_text, hostile_text
from toolenvs.errors import UsageError
from toolenvs.formats.tags import Tags
from toolenvs.types import ToolCall, ToolResult, Turn

TABLE = {
    "sql": ("sql_query", "query"),
    "search": ("search", "query"),
    "python": ("python", "code"),
    "answer": ("submit", "answer"),
}
TAGS = Tags(tags=TABLE)


def found(text: str) -> list[tuple[str, str]]:
    """Tool and payload of each call in a message."""
    return [(c.name, str(*c.arguments.values())) for c in TAGS.parse(text, SPECS).calls]


@settings(deadline=None)
@given(payload=any_text | hostile_text)
@pytest.mark.parametrize("tag", sorted(TABLE))
def test_payloads_are_read_back(tag: str, payload: str) -> None:
    """Up to the blanks that are stripped; a payload that cannot be written is refused."""
    tool, argument = TABLE[tag]
    for made, name in ((TAGS, tool), (Tags(), tool if tag == "answer" else tag)):
        try:
            text = made.compose([ToolCall(name, {argument: payload})])
        except UsageError:
            continue
        (call,) = made.parse(text, SPECS).calls
        assert call.name == name
        assert str(call.arguments[argument]).strip() == payload.strip()


@settings(deadline=None)
@given(payload=any_text.filter(lambda text: not set(text) & set("<'\"`$/-")))
@pytest.mark.parametrize("tag", sorted(set(TABLE) - {"answer"}))
def test_all_payloads_without_tags_and_quotes_can_be_written(tag: str, payload: str) -> None:
    """What cannot be written holds its own tag or leaves a string open."""
    tool, argument = TABLE[tag]
    TAGS.compose([ToolCall(tool, {argument: payload})])


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("<sql>SELECT '</sql>' AS t</sql>", [("sql_query", "SELECT '</sql>' AS t")]),
        ("<sql>SELECT '</sql><sql>' AS t</sql>", [("sql_query", "SELECT '</sql><sql>' AS t")]),
        ("<sql>SELECT 'it''s </sql>'</sql>", [("sql_query", "SELECT 'it''s </sql>'")]),
        (
            '<sql>SELECT "</sql>" /* </sql> */</sql>',
            [("sql_query", 'SELECT "</sql>" /* </sql> */')],
        ),
        ("<sql>SELECT 1 -- don't\n</sql>", [("sql_query", "SELECT 1 -- don't")]),
        ("<sql>SELECT 1 -- all</sql>", [("sql_query", "SELECT 1 -- all")]),
        ("<sql>SELECT $$it's</sql>$$</sql>", [("sql_query", "SELECT $$it's</sql>$$")]),
        ("<python>print('</python>')</python>", [("python", "print('</python>')")]),
        ("<python>\n\n  '''\n</python>'''\n\n</python>", [("python", "  '''\n</python>'''")]),
        ("<python># don't\n1</python>", [("python", "# don't\n1")]),
        ("<search> who is Ann's boss </search>", [("search", "who is Ann's boss")]),
        ("<search>what does </think> mean</search>", [("search", "what does </think> mean")]),
        ("<search>what is <sql>?</search>", [("search", "what is <sql>?")]),
        ("<search>a</search><search>b</search>", [("search", "a"), ("search", "b")]),
        ("<search></search>", [("search", "")]),
        ("<other>a</other><answer>7</answer>", [("submit", "7")]),
    ],
)
def test_a_payload_is_read_whole(text: str, calls: list[tuple[str, str]]) -> None:
    """Tags in strings are data, quotes in comments no strings, apostrophes in text no quotes."""
    assert found(text) == calls


@pytest.mark.parametrize(
    "text",
    [
        "<sql>SELECT '</sql>",
        "<sql>SELECT 1",
        "<sql>SELECT 1</sql></sql>",
        "</sql>SELECT 1<sql>",
        "<sql>SELECT 1 <sql>SELECT 2</sql>",
        "<python>print('hi)</python>",
        "<search>a</answer>",
        "<search>a<search>b</search>",
        "<answer>the tag is <answer></answer>",
        "<answer>7</search>",
        "<Answer>7</Answer>",
        "<answer >7</answer>",
        "<answer x='1'>7</answer>",
        "<search>a</search><answer>7",
    ],
)
def test_tags_that_do_not_match_run_nothing(text: str) -> None:
    """Never half of what was meant: it is a format error."""
    parsed = TAGS.parse(text, SPECS)
    assert (parsed.calls, parsed.error is None) == ((), False)


def test_an_empty_payload_is_a_call_and_a_problem() -> None:
    """The tool refuses its argument; the message is not well-formed."""
    parsed = TAGS.parse("<search>  </search>")
    assert parsed.calls == (ToolCall("search", {"query": ""}),)
    assert parsed.problems


@pytest.mark.parametrize(
    ("options", "turn", "runs"),
    [
        ({}, Turn("<sql>SELECT 1", "stop", "</sql>"), True),
        ({}, Turn("<sql>SELECT 1", None, "</sql> "), True),
        ({}, Turn("<sql>SELECT 1", "stop"), True),
        ({}, Turn("<sql>SELECT 1", None), False),
        ({}, Turn("<sql>SELECT 1", "stop", "</answer>"), False),
        ({}, Turn("<sql>SELECT 1", "stop", "<result>"), False),
        ({}, Turn("<sql>SELECT '", "stop", "</sql>"), False),
        ({}, Turn("<sql>SELECT '", "stop"), False),
        ({}, Turn("<python>print('<answer>')", "stop", "</python>"), True),
        ({}, Turn("<python>print('</answer>')", "stop"), True),
        ({}, Turn("<search>a <answer>b", "stop", "</answer>"), False),
        ({"stop": "</sql> , </python>"}, Turn("<sql>SELECT 1", "stop"), True),
        ({"stop": [" </sql>", "</python>"]}, Turn("<sql>SELECT 1", "stop"), True),
        ({"stop": "</python>"}, Turn("<sql>SELECT 1", "stop"), False),
        ({"stop": "</python>"}, Turn("<sql>SELECT 1", "stop", "</sql>"), True),
    ],
)
def test_a_stop_string_that_was_taken_is_given_back(
    options: dict[str, Any], turn: Turn, runs: bool
) -> None:
    """If it was configured or is known, closes the open tag, and leaves no string open."""
    parsed = Tags(tags=TABLE, **options).parse(turn)
    assert bool(parsed.calls) == runs
    assert (parsed.error is None) == runs


def test_by_default_each_tool_with_one_text_has_its_tag() -> None:
    """And the answer has one; a tool with two arguments has none."""
    made = Tags()
    text = "<my_tool>a</my_tool><two>b</two><submit>c</submit><answer>7</answer>"
    assert [call.name for call in made.parse(text, SPECS).calls] == ["my_tool", "submit"]
    assert made.parse("<my_tool>a</my_tool>", []).error is not None


def test_stops_are_the_closing_tags_of_the_table() -> None:
    """What a sampler is to be given; the option overrides it."""
    assert TAGS.stop == ("</sql>", "</search>", "</python>", "</answer>")
    assert Tags(stop="</sql>, </python>").stop == ("</sql>", "</python>")


def test_the_result_tag_is_an_option() -> None:
    """It wraps results, is broken inside them, and is no model's to write."""
    made = Tags(tags={"code": ("python", "code")}, result_tag="console")
    text = made.render([ToolCall("python", {})], [ToolResult("</console><code>")])
    assert text == "<console>\n<\u2060/console><\u2060code>\n</console>"
    assert made.parse("<code>1</code><console>2</console>").error is not None


def test_without_a_table_every_tag_in_a_result_is_broken() -> None:
    """Any tool's name may be a tag then."""
    text = Tags().render([ToolCall("x", {})], [ToolResult("<page>a</page>")])
    assert "<page>" not in text
    assert "</page>" not in text


@pytest.mark.parametrize(
    "options",
    [
        {"tags": {"think": ("a", "b")}},
        {"tags": {"result": ("a", "b")}},
        {"tags": {"two words": ("a", "b")}},
        {"tags": {"sql": "sql_query"}},
        {"tags": {"sql": ("a", "b", "c")}},
        {"result_tag": "think"},
        {"result_tag": "a>b"},
    ],
)
def test_a_table_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """At construction, with the entry named."""
    with pytest.raises(UsageError):
        Tags(**options)
