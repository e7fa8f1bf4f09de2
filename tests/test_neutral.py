"""Neutralised text is harmless, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.formats.hostile import any_text, hostile_text
from toolenvs import tools
from toolenvs.errors import UsageError
from toolenvs.neutral import JOINER, TAGS, neutralise, printable, restore, tokens


@settings(deadline=None)
@given(text=any_text | hostile_text)
def test_restore_undoes_neutralise_exactly(text: str) -> None:
    """For every text, its own joiners included."""
    assert restore(neutralise(text)) == text
    assert restore(neutralise(text, ["Final Answer:", "my_tag"], every_tag=True)) == text


@settings(deadline=None)
@given(text=any_text | hostile_text)
def test_neutralising_twice_is_undone_by_restoring_twice(text: str) -> None:
    """An observation that quotes an observation keeps all that was in it."""
    assert restore(restore(neutralise(neutralise(text)))) == text


@settings(deadline=None)
@given(text=any_text | hostile_text)
def test_no_token_is_left(text: str) -> None:
    """The pattern of tokens finds nothing in what it was applied to."""
    assert tokens().search(neutralise(text)) is None
    assert (
        tokens(("my_tag",), every_tag=True).search(neutralise(text, ["my_tag"], every_tag=True))
        is None
    )


@settings(deadline=None)
@given(text=any_text | hostile_text)
def test_only_joiners_are_added(text: str) -> None:
    """A reader sees the same characters in the same order."""
    assert neutralise(text).replace(JOINER, "") == text.replace(JOINER, "")


@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>",
        "<｜User｜>",
        "<|reserved_special_token_12|>",
        "[INST]",
        "[/INST]",
        "<<SYS>>",
        "<</SYS>>",
        "[TOOL_CALLS]",
        "<s>",
        "</s>",
        "<bos>",
        "<eos>",
        "<start_of_turn>",
        "<end_of_turn>",
        "Human:",
        "text\nAssistant: yes",
        "```output",
        "text\n   ```",
        "\\boxed{7}",
        "\\fbox {7}",
        '{"role" : "assistant"}',
        "</ Tool_Response >",
        "<ANSWER value='1'>",
        "<\n/information\n>",
        "＜think＞",
        "[|Human|]:",
        "<turn|>",
        "<minimax:tool_call>",
        "</seed:tool_call>",
        "<_user>",
        "<_bot>",
        "<reserved_106>",
        "<SPECIAL_10>",
        "<im_end>",
        "<eot_id>",
        "### Instruction:",
        "text\n  #### Response:",
        "\u200bHuman:",
        "]~b]user",
        "<\u200btool_response>",
        "<\ufeff|im_start|>",
        "<tool_\u00adresponse>",
        "＜／ｔｏｏｌ_response＞",
        "﹤tool_response﹥",
        "hello. USER: more",
        "<longcat_user>",
        "</longcat_tool_call>",
        "<longcat_system>",
        "]<]minimax[>[",
        "<ChatbotResponse>",
        "<TOOLCALL>",
        "</TOOLCALL>",
        "<AVAILABLE_TOOLS>",
        "<available_tools>",
        "<tool_list>",
        "<tool_call_begin>",
        "<tool_call_end>",
        "<tool_calls_section_begin>",
        "<function_call_result>",
        "<user_query>",
        "<human_input>",
        "<system_reminder>",
        "<system-reminder>",
        "<arg_key>",
        "</arg_value>",
        "<image>",
        "<image_1>",
        "<image_soft_token>",
        "<video>",
        "<audio>",
        "<img>",
        "<fim_prefix>",
        "<file_sep>",
        "<filename>",
        "<PRE>",
        "<co: 0>",
        "<0x0A>",
        "<doc_1>",
        "[IMG]",
        "[IMG_BREAK]",
        "[PREFIX]",
        "[control_9]",
        ">>QUESTION<<",
        "text\n>>>search",
        "</｜DSML｜function_calls>",
        "｜DSML｜",
        "</|im_end|>",
        "<[begin▁of▁sentence]>",
        "<[fim-suffix]>",
        "<longcat_think>",
        "</longcat_s>",
        "[BEGIN FINAL RESPONSE]",
        "[/ASST]",
        "[SYSTEM]",
        "text\n[FINAL RESPONSE]",
        "<fim-prefix>",
        "<fake_token_around_image>",
        "<global-img>",
        "<row_1_col_2>",
        "<empty_output>",
        "<INST>",
        "<model_output>",
        "<USER_TOKEN>",
        *(f"</{name}>" for name in tools.names()),
        *(f"</{tag}>" for tag in TAGS),
    ],
)
def test_known_tokens_are_broken(token: str) -> None:
    """A joiner stands in each chat token and each tag of a format, however it is written."""
    assert 1 <= neutralise(token).count(JOINER) <= 3
    assert token not in neutralise(token)
    assert token.lstrip("# \n") == token or "### " not in neutralise(token)
    assert restore(neutralise(token)) == token


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain text", "a < b and c > d", "x = `ls`", "the role: user", "1 <2", "<b>bold</b>"),
        *("std::vector<std::string>", "<https://example.org>", "<_io.FileIO name='x'>", "# A"),
        *(
            "<br>",
            "<image.png>",
            "<userid>",
            "a <bottom> b",
            "<toolbox>",
            "<prefix>",
            "[1]",
            "[CL]",
        ),
        *("[USA]", "[sic]", "[system]", "see [EDITOR NOTE] here", "a < [b]", "Vec<[u8; 4]>"),
        *("日本｜アメリカ｜中国", "a｜b", "x<[1]", "<models>", "if a</b"),
        *(">>> print(1)", "1 >> 2", "x <filter> y", "<box-shadow>", "<imgs>", "<resulting>"),
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Text that no format reads keeps its bytes."""
    assert neutralise(text) == text


def test_a_format_adds_tags_and_literals() -> None:
    """Reserved words are tags, other reserved texts literals; both in any case."""
    text = "<hop n='2'>, final answer: 7"
    assert neutralise(text) == text
    assert neutralise(text, ["hop", "Final Answer:"]).count(JOINER) == 2


def test_a_literal_of_one_character_is_refused() -> None:
    """It could not be broken from inside."""
    with pytest.raises(UsageError, match="too short"):
        neutralise("a|b", ["|"])


def test_control_characters_become_visible() -> None:
    """Escapes of terminals and NUL are shown; line breaks and tabs stay."""
    assert printable("\x1b[31m\x00\r\n\t\rx\x7f\x9b") == "␛[31m␀\n\t␍x␡\ufffd"


@settings(deadline=None)
@given(text=any_text)
def test_printable_text_always_encodes(text: str) -> None:
    """Whatever a tool returned can be written to a file."""
    assert printable(text + "\ud83d").encode().decode().endswith("\ufffd")


def test_a_long_hostile_text_takes_no_long_time() -> None:
    """A million characters of half tokens end within the test's hang guard."""
    pieces = [
        "<",
        "< ",
        "\n`",
        "\\",
        "<a",
        "|",
        "[",
        "<\u200b",
        "\u2028 ",
        "<_a",
        "\n### ",
        "<t\u200b",
        "<a_",
        "<user_",
        "<tool-call",
        "]<",
        ">>A",
        "<[a",
        "[BEGIN ",
        "\n[AB CD",
        "｜a",
        "</",
    ]
    long = [piece * (10**6 // len(piece)) for piece in pieces]
    for text in (
        *long,
        "<" + " " * 10**6,
        "<_" + "a" * 10**6,
        "<" + "a_" * 10**5,
        "<[" + "a" * 10**6,
        "\n[AB" + " AB" * 10**5,
        '"role"' + " " * 10**6,
    ):
        assert restore(neutralise(text)) == text
