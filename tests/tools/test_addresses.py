"""Addresses in what Python printed: numbered, and nothing else is touched."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import functools
import io
import queue
import re
import threading
import types
import unittest.mock
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.tools._addresses import with_stable_addresses
from toolenvs.tools._python_output import present
from toolenvs.types import ExecResult


class A:
    """Something with the default repr."""

    def method(self) -> None:
        """Do nothing."""


def _generator() -> Any:
    yield 1


def _cell() -> types.CellType:
    x = 1

    def inner() -> int:
        return x

    assert inner.__closure__ is not None
    return inner.__closure__[0]


KEPT = A()
DONE: concurrent.futures.Future[int] = concurrent.futures.Future()
DONE.set_result(1)
OBJECTS: list[object] = [
    *(KEPT, KEPT.method, _generator(), _generator, lambda: 0, _generator.__code__, _cell()),
    *(weakref.ref(KEPT), weakref.ref(A()), functools.partial(_generator), [A(), A()], {1: A()}),
    *(io.StringIO(), iter([]), map(str, []), memoryview(b""), object(), [].append, super(A, KEPT)),
    *(threading.Lock(), threading.Event(), threading.Semaphore(), queue.Queue(), DONE),
    *(asyncio.Lock(), asyncio.Queue(), types.SimpleNamespace(a=A())),
    *(np.random.default_rng(0), np.random.RandomState(0), np.vectorize(abs), np.ones(1).flat),
]


def stable(text: str, **more: Any) -> str:
    """Standard output with its addresses numbered."""
    return with_stable_addresses(ExecResult(status="ok", stdout=text, **more)).stdout


@pytest.mark.parametrize(
    "shown", [repr(one) for one in OBJECTS], ids=[type(one).__name__ for one in OBJECTS]
)
def test_no_default_repr_keeps_an_address(shown: str) -> None:
    """Of Python's own objects and of numpy's."""
    if shown.startswith("<super"):  # it tells none
        assert stable(shown) == shown
        return
    assert re.search("0x[0-9a-fA-F]{6}", shown)
    assert not re.search("0x[0-9a-fA-F]{6}", stable(shown))
    assert " at 0x1" in stable(shown)


@pytest.mark.parametrize(
    "shown",
    [repr(threading.current_thread()), repr(unittest.mock.Mock()), repr(ctypes.CDLL(None))],
    ids=["thread", "mock", "library"],
)
def test_threads_mocks_and_handles_are_numbered_too(shown: str) -> None:
    """What they show in place of an address, or beside it."""
    assert re.search("[0-9a-f]{9}", shown)
    assert not re.search("[0-9a-f]{9}", stable(shown))


def test_numbers_follow_the_first_appearance_over_the_whole_result() -> None:
    """One object has one number, on stdout and stderr; small ones first."""
    result = with_stable_addresses(
        ExecResult(
            status="raised",
            stdout="<A object at 0x7f00000000b0> <A object at 0x7f00000000a0>\n",
            stderr="KeyError: <A object at 0x7f00000000b0>, <f at 0x7f00000000c0>\n",
        )
    )
    assert result.stdout == "<A object at 0x1> <A object at 0x2>\n"
    assert result.stderr == "KeyError: <A object at 0x1>, <f at 0x3>\n"


def test_text_data_and_error_agree() -> None:
    """The agent, rewards and the record read the same."""
    wrong = "Traceback ...\nKeyError: <A object at 0x7f3a5c1b2d90>\n"
    result = present(
        ExecResult(status="raised", stderr=wrong), limit_chars=1000, timeout_s=1.0, note=""
    )
    assert result.error is not None
    assert result.error.message == "KeyError: <A object at 0x1>"
    assert result.text.endswith(result.error.message)
    assert result.data["stderr"].endswith(result.error.message + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "0x7f3a5c1b2d90",
        "the segment at 0x7f3a5c1b2d90 is mapped",
        "stored at 0x7f3a5c1b2d90",
        "offset=0xdeadbeef>",
        "<section at 0x1000>",
        "{'at': '0xdeadbeef'}",
        "look at 0xdeadbeef: it is odd",
        "at 0xdeadbeef, then at 0xcafebabe",
    ],
)
def test_numbers_that_code_computes_stay(text: str) -> None:
    """Only the forms of a repr are touched."""
    assert stable(text) == text


@given(text=st.text(st.sampled_from("<>at 0x7fAB9;:,\n")), cut=st.booleans())
def test_twice_is_as_once(text: str, cut: bool) -> None:
    """What is stable stays."""
    once = stable(text, output_cut=cut)
    assert stable(once, output_cut=cut) == once


def test_a_part_of_an_address_at_the_end_of_cut_output_goes() -> None:
    """How much of it was there says nothing."""
    assert stable("<A object at 0x7f3a5c", output_cut=True) == "<A object at 0x"
    assert stable("<A object at 0x7f3a5c") == "<A object at 0x7f3a5c"
