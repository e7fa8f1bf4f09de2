"""What commands write on: tables on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

NARROW, WIDE = 80, 120


def console(*, stderr: bool = False) -> Console:
    """A console for tables (stdout) or for notes and progress (stderr)."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not made.is_terminal:
        made = Console(stderr=stderr, highlight=False, width=WIDE)
    return made


def print_json(value: Any) -> None:
    """Print one JSON object on stdout; numbers that JSON lacks (NaN) become null."""
    text = json.dumps(_plain(msgspec.to_builtins(value)), indent=2, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def shortened(text: str, *, most: int = 48) -> str:
    """A text of at most ``most`` characters; a longer one loses its middle."""
    if len(text) <= most:
        return text
    head = (most - 3) // 3
    return f"{text[:head]}...{text[head + 3 - most :]}"


def note(message: str) -> None:
    """Say one thing on stderr."""
    console(stderr=True).print(message, markup=False, style="dim", soft_wrap=True)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr where that is a terminal; call what it yields at each step."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)


def send_logs_to_stderr() -> None:
    """Show warnings of the package on stderr, whatever stderr is when they come."""
    root = logging.getLogger()
    if not any(isinstance(handler, _Stderr) for handler in root.handlers):
        root.addHandler(_Stderr(logging.WARNING))


class _Stderr(logging.Handler):
    """Writes to the ``sys.stderr`` of the moment, so that a progress bar stays whole.

    What many environments say at once is written once.
    """

    _last = ""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message != self._last:
            sys.stderr.write(f"toolenvs: {message}\n")
        self._last = message


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
