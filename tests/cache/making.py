"""Keys and results of a cache, and processes that use one."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from toolenvs import exactjson
from toolenvs.cache import ReplayCache
from toolenvs.cache.flights import Flights
from toolenvs.drivers import Sleep
from toolenvs.statekey import CallKey
from toolenvs.types import ToolResult


def make_key(number: object, *, tool: str = "python", state: object = "s") -> CallKey:
    """A key whose request is this number."""
    facts = {
        "after": "",
        "arguments": {"code": str(number)},
        "restarted": False,
        "state": {"runtime": {"fingerprint": state}, "seed": 1},
        "tool": {"name": tool, "version": "1"},
    }
    request = exactjson.encode(facts)
    return CallKey(
        key=hashlib.sha256(request).digest(),
        request=request,
        tool=tool,
        call=hashlib.sha256(f"{tool} {number}".encode()).digest()[:16],
        state=hashlib.sha256(str(state).encode()).digest()[:16],
    )


def result(text: str, **data: Any) -> ToolResult:
    """A result."""
    return ToolResult(text=text, data=data)


@contextlib.contextmanager
def locked(url: str) -> Iterator[sqlite3.Connection]:
    """A cache whose write lock another process holds."""
    with ReplayCache(url) as cache:
        cache.put(make_key("before"), result("before"))
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


WRITER = """
import sys
from tests.cache.making import make_key, result
from toolenvs.cache import ReplayCache
url, who, puts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with ReplayCache(url) as cache:
    for number in range(puts):
        own, shared = make_key(f"{who}-{number}"), make_key(number)
        cache.put(own, result(f"{who}-{number}"))
        cache.put(shared, result(str(number)))
        for key, text in ((own, f"{who}-{number}"), (shared, str(number))):
            found = cache.get(key)
            assert found is not None and found.result.text == text
    cache.flush()
    assert cache.lost == 0
"""


def start(script: str, *words: object) -> subprocess.Popen[bytes]:
    """Start Python on ``script`` from the repository's root."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, words)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_writers(url: str, *, writers: int, puts: int) -> None:
    """Let processes write at the same time; none may fail."""
    processes = [start(WRITER, url, who, puts) for who in range(writers)]
    for process in processes:
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 0, errors.decode()


async def fly(flights: Flights, log: list[str], name: str) -> str:
    """Run a slow call unless it is flying already."""
    flight, leads = await flights.board(b"key")
    if not leads:
        shared = await flight.wait()
        return f"{name} shared {shared.text}" if shared is not None else f"{name} ran itself"
    try:
        log.append(name)
        await Sleep(0.05)
    finally:
        flights.land(b"key", result("42") if name != "fails" else None)
    return f"{name} led"
