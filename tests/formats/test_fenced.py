"""The format ``fenced``."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from tests.formats.hostile import SPECS, any_text, hostile_text, spec
from toolenvs.errors import UsageError
from toolenvs.formats.fenced import Fenced
from toolenvs.types import ToolCall, ToolResult, Turn

FENCED = Fenced()


def code_of(text: str) -> list[str]:
    """The code of each call in a message."""
    return [str(call.arguments["code"]) for call in FENCED.parse(text, SPECS).calls]


@settings(deadline=None)
@given(code=any_text | hostile_text)
def test_code_is_read_back_to_the_character(code: str) -> None:
    """All code that leaves no string open; the rest is refused, never written wrongly."""
    try:
        text = FENCED.compose([ToolCall("python", {"code": code})])
    except UsageError:
        assume(False)
    assert code_of(text) == [code]


@settings(deadline=None)
@given(code=any_text.filter(lambda text: not set(text) & set("'\"")))
def test_all_code_without_quotes_can_be_written(code: str) -> None:
    """Backticks in it make the fence longer."""
    assert code_of(FENCED.compose([ToolCall("python", {"code": code})])) == [code]


@settings(deadline=None)
@given(answer=any_text | hostile_text)
def test_answers_are_read_back(answer: str) -> None:
    """Up to the blanks around them, as a box or a tag, alone or after code; or they are refused."""
    submit = ToolCall("submit", {"answer": answer})
    for calls in ([submit], [ToolCall("python", {"code": "1"}), submit]):
        try:
            text = FENCED.compose(calls)
        except UsageError:
            continue
        assert FENCED.parse(text, SPECS).calls[-1].arguments == {"answer": answer.strip()}


@pytest.mark.parametrize(
    "code",
    [
        's = "```"\nprint(len(s))',
        "s = '''\n```\n'''\nprint(s)",
        's = """\n```python\n"""',
        "# don't\nx = 1",
        "s = 'it\\'s'  # '''\n",
        "s = r'\\'\n",
        "",
        "\n\n  x\n\n",
        "<think>",
        "print('<answer>7</answer>')",
        "```\nno code",
    ],
)
def test_fences_in_strings_do_not_end_a_block(code: str) -> None:
    """Nor do quotes in comments hide the fence that does."""
    assert code_of(f"Look:\n````python\n{code}\n````") == [code]
    if not code.startswith("```"):
        assert code_of(f"Look:\n```python\n{code}\n```") == [code]


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)",
        "```python\nprint(1)```",
        "```python\nprint(1)\n```python\nprint(2)\n```",
        "```python\ns = '''\n```",
        "````python\nx\n```",
    ],
)
def test_half_a_block_never_runs(text: str) -> None:
    """It is a format error."""
    parsed = FENCED.parse(text, SPECS)
    assert (parsed.calls, parsed.error is None) == ((), False)


def test_blocks_run_in_order_and_others_are_text() -> None:
    """Only the table's languages run, and only from the start of a line."""
    text = (
        "```python\n1\n```\nthen\n```\n```python\nno\n```\n```json\n{}\n```\n"
        "```PY\n2\n```\n```sql\nSELECT 3\n```"
    )
    assert [call.name for call in FENCED.parse(text, SPECS).calls] == ["python", "python", "sql"]
    assert FENCED.parse("see ```python print(1)```", SPECS).error is not None


def test_languages_follow_from_the_tools() -> None:
    """A session runs Python blocks where there is no tool of that name."""
    tools = [spec("sql_query", "query"), spec("python_session", "code")]
    parsed = FENCED.parse("```python\n1\n```\n```sql\nSELECT 1\n```", tools)
    assert [call.name for call in parsed.calls] == ["python_session", "sql_query"]
    made = Fenced(blocks={"r": ("rscript", "code")})
    assert made.parse("```r\n1\n```").calls == (ToolCall("rscript", {"code": "1"}),)


def test_a_closing_fence_that_was_taken_is_given_back() -> None:
    """By the stop string; an ordinary stop took only what the format's own ``stop`` names."""
    for turn in (Turn("```python\n1\n", "stop", "```"), Turn("```python\n1", "stop", "\n```")):
        assert code_of(turn) == ["1"]
    assert code_of(Turn("````python\n1", "stop")) == []
    assert Fenced(stop="````").parse(Turn("````python\n1", "stop")).calls
    assert code_of(Turn("```python\n1", "stop", "</answer>")) == []


@pytest.mark.parametrize(
    "calls",
    [
        [ToolCall("python", {"code": "1", "timeout_s": "2"})],
        [ToolCall("python", {"code": 1})],
        [ToolCall("python", {"code": "x = '''"})],
        [ToolCall("python", {})],
        [ToolCall("no name", {"code": "1"})],
    ],
)
def test_what_no_block_can_say_is_refused(calls: list[ToolCall]) -> None:
    """Rather than lost."""
    with pytest.raises(UsageError, match="cannot express"):
        FENCED.compose(calls)


def test_output_is_fenced_and_cannot_end_its_block() -> None:
    """A fence in the output is broken."""
    text = FENCED.render([ToolCall("python", {})], [ToolResult("```\nx")])
    assert text == "```output\n`\u2060``\nx\n```"
