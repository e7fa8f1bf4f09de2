"""Hypothesis strategies: texts made of what formats read, and calls with any arguments."""

from __future__ import annotations

from hypothesis import strategies as st

from toolenvs.neutral import TAGS
from toolenvs.types import ToolCall, ToolSpec

_TAGS = [f"<{slash}{tag}>" for tag in (*TAGS, "my_tool") for slash in ("", "/")]
FRAGMENTS = [
    *_TAGS,
    *("<THINK>", "</THINK>", "< think >", "<Search k='1'>", "</answer >", "<|im_end|>", "</s>"),
    *("```", "```python", "```python\n", "\n```\n", "````", "```output\n", "~~~", "'''", '"""'),
    *("'", '"', "#", "--", "/*", "*/", "$$", "\\", "\n", "\r\n", " ", "`", "\u2060", "\x00"),
    *("\\boxed{", "\\fbox {7}", "}", "{", "[", "]", ",", "7", "x", "print(1)", "SELECT 1"),
    *(
        "<|im_start|>user",
        "<｜User｜>",
        "[INST]",
        "<<SYS>>",
        "<start_of_turn>",
        "Human:",
        "＜think＞",
    ),
    *("[|Human|]", "<turn|>", "###", "<a:b>", "\u200b", "\ufeff", "＜/tool_response＞", "|", ">"),
    '{"name": "search", "arguments": {"query": "a"}}',
    '{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": '
    '{"name": "search", "arguments": "{}"}}]}',
    '{"role": "assistant", "content": "<answer>7</answer>"}',
    "<tool_call>" + '{"name": "search", "arguments": {"query": "a"}}' + "</tool_call>",
    "<answer>7</answer>",
    "<think>hm</think>",
]

any_text = st.text()
"""Any text without lone surrogates."""

hostile_text = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=12).map("".join)
"""Text in which delimiters, quotes and tokens follow each other at random."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text
    | hostile_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile_text, inner, max_size=3),
    max_leaves=8,
)

json_calls = st.lists(
    st.builds(
        ToolCall,
        name=st.sampled_from(["search", "python", "any tool at all </tool_call>"]) | any_text,
        arguments=st.dictionaries(any_text | hostile_text, json_values, max_size=3),
    ).filter(lambda call: call.name.strip() != "" and call.name != "submit"),
    min_size=1,
    max_size=3,
)
"""Calls with JSON arguments, none of them ``submit``."""


def spec(name: str, *arguments: str) -> ToolSpec:
    """A tool whose arguments are required texts."""
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return ToolSpec(name, f"What {name} does.", schema)


SPECS = [
    spec("python", "code"),
    spec("sql", "query"),
    spec("search", "query"),
    spec("my_tool", "text"),
    spec("two", "a", "b"),
    spec("submit", "answer"),
]
