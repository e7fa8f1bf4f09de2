"""How the end of a call is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.tools._python_output import LOST, present
from toolenvs.types import ExecResult, ExecStatus, ToolResult


def shown(result: ExecResult, limit_chars: int = 1000, note: str = "") -> ToolResult:
    """Present with a limit of two seconds."""
    return present(result, limit_chars=limit_chars, timeout_s=2.0, note=note)


def test_C01_a_warning_is_shown_apart_and_is_no_error() -> None:
    """C01 g: stdout and stderr are told apart; success is success."""
    result = shown(ExecResult(status="ok", stdout="42\n", stderr="UserWarning: old\n"))
    assert result.text == "42\n[stderr]\nUserWarning: old"
    assert result.error is None
    assert result.data["stdout"] == "42\n"


def test_C01_no_output_is_an_empty_text() -> None:
    """C01 b, c, d, h: nothing printed, nothing invented."""
    assert shown(ExecResult(status="ok")).text == ""


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("timeout", "time limit of 2 s"),
        ("memory", "memory"),
        ("killed", "signal 9"),
        ("exited", "status 3"),
        ("output", "printed more"),
        ("disk", "disk"),
        ("processes", "processes"),
    ],
)
def test_each_limit_has_its_typed_error_and_sentence(status: ExecStatus, word: str) -> None:
    """The agent reads which limit it met; rewards see the kind."""
    result = shown(ExecResult(status=status, stdout="before\n", signal=9, exit_code=3))
    assert result.error is not None
    assert result.error.kind == status
    assert word in result.text
    assert result.text.startswith("before")


def test_C08_an_exception_is_its_last_line() -> None:
    """C08 a: the error's message is the useful part, the traceback is in the text."""
    trace = 'Traceback (most recent call last):\n  File "<python>", line 1\nZeroDivisionError: x\n'
    result = shown(ExecResult(status="raised", stderr=trace))
    assert result.error is not None
    assert result.error.message == "ZeroDivisionError: x"
    assert "line 1" in result.text


def test_C05_a_lost_session_says_so() -> None:
    """C05: the note is in the text and apart."""
    result = shown(ExecResult(status="killed", signal=9, session_lost=True), note=LOST)
    assert result.note == LOST
    assert LOST in result.text


@given(stdout=st.text(max_size=500), limit=st.integers(0, 200))
def test_C06_the_text_keeps_within_its_limit(stdout: str, limit: int) -> None:
    """C06: for all outputs no longer than the limit, marker included, and flagged when cut."""
    result = shown(ExecResult(status="ok", stdout=stdout), limit_chars=limit)
    assert len(result.text) <= limit
    assert result.truncated == (len(stdout.rstrip("\n")) > limit)


def test_C06_head_and_tail_are_visible() -> None:
    """C06 c: both ends stay."""
    text = "HEAD" + "-" * 5000 + "TAIL\n"
    result = shown(ExecResult(status="ok", stdout=text), limit_chars=100)
    assert "HEAD" in result.text
    assert "TAIL" in result.text
    assert "left out" in result.text
    assert result.data["stdout"] == text


def test_an_output_that_the_sandbox_cut_is_flagged() -> None:
    """What the sandbox did not keep counts as cut too."""
    assert shown(ExecResult(status="output", stdout="x", output_cut=True)).truncated
