"""Running gold programs as a sandbox would: in another process, each with names of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_RUNNER = """
import contextlib, io, json, sys
out = []
for code in json.load(sys.stdin):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(code, "program", "exec"), {"__name__": "__main__"})
    out.append(text.getvalue())
json.dump(out, sys.stdout)
"""


def outputs(codes: Sequence[str], files: Mapping[str, str] | None = None) -> list[str]:
    """What each program prints, run in a folder that holds ``files``."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (files or {}).items():
            (Path(folder) / name).write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", _RUNNER],
            input=json.dumps(list(codes)),
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    printed: list[str] = json.loads(done.stdout)
    return printed
