"""``toolenvs serve search``: it answers until it is told to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from toolenvs.cli import app


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_a_corpus_and_ends_when_told(tmp_path: Path, told: signal.Signals) -> None:
    """The address is printed once requests are answered; it says when it was ended."""
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"id": "7", "contents": '"Lyon"\nA city on the Rhone.'}]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "toolenvs", "serve", "search", "--port", "0"]
    with subprocess.Popen(
        [*command, "--corpus", str(corpus)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        where = server.stdout.readline().split()[-1]
        found = httpx.post(where, json={"queries": ["rhone"]}, timeout=30).json()["result"]
        server.send_signal(told)
        server.wait(20)
        assert "search has ended: it answers no more\n" in server.stderr.read()
    assert found == [[{"id": "7", "contents": '"Lyon"\nA city on the Rhone.'}]]


def test_a_missing_corpus_and_an_unknown_backend_are_clear(tmp_path: Path) -> None:
    """One line, no traceback, exit code 2."""
    asked = ["serve", "search", "--corpus", str(tmp_path / "none.jsonl")]
    missing = CliRunner().invoke(app, asked)
    assert missing.exit_code != 0
    unknown = CliRunner().invoke(app, [*asked, "--backend", "bm52"])
    assert unknown.exit_code != 0
