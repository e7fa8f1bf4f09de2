"""Run code as an interactive Python does: names stay, the value of a last expression is shown."""

from __future__ import annotations
import __future__

import ast
import errno
import importlib
import io
import linecache
import os
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import wire
from .output import OutputLimitReached, Streams

NAME = "<python>"
_FOLDER = os.path.dirname(__file__) + "/"  # noqa: PTH120 - text is what frames hold
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag

_signal: Any = importlib.import_module("_signal")  # faster, and the code hardly patches it
_NO_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Outcome(NamedTuple):
    """How a call ended: a status of ``wire`` and the exit code for ``wire.EXITED``."""

    status: int
    exit_code: int = 0


class Program:
    """The code of one sandbox: its module ``__main__`` and its streams."""

    def __init__(self) -> None:
        self.streams = Streams()
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = sys.modules["builtins"]
        for name in ("__doc__", "__loader__", "__package__", "__spec__"):
            module.__dict__[name] = None
        sys.modules["__main__"] = module
        warnings.formatwarning = _format_warning
        sys.unraisablehook = self._on_unraisable
        self._names: dict[str, Any] = module.__dict__
        self._calls = 0
        self._flags = 0  # a ``from __future__ import`` holds for later calls too
        self._runs = False
        self._interrupted = False

    def run(self, code: str) -> Outcome:
        """Run one call's code; returns whatever it does, unless the process ends."""
        self.streams.restore()
        self._interrupted = False
        _signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            outcome = self._attempt(code)
        except KeyboardInterrupt:  # it came in the few steps between the code and its end
            outcome = Outcome(wire.INTERRUPTED)
        self._runs = False
        self.streams.flush()
        if self.streams.full:
            outcome = Outcome(wire.TOO_MUCH_OUTPUT)
        return Outcome(wire.INTERRUPTED) if self._interrupted else outcome

    def warm(self) -> None:
        """Touch what every call touches: a fork copies a page when it first writes to it."""
        names, self._names = self._names, {"__builtins__": sys.modules["builtins"]}
        self.run("print(end='')\nNone")
        self._names, self._calls = names, 0
        del linecache.cache[NAME]

    def _on_interrupt(self, number: int, frame: object) -> None:
        if self._runs:
            self._interrupted = True
            raise KeyboardInterrupt

    def _on_unraisable(self, report: sys.UnraisableHookArgs, /) -> None:
        if not self._interrupted:  # an interrupt that fell into a callback is nobody's business
            sys.__unraisablehook__(report)

    def _attempt(self, code: str) -> Outcome:
        try:
            self._runs = True
            self._execute(code)
            self._runs = False
        except SystemExit as leaving:
            self._runs = False
            return self._exit(leaving.code)
        except BaseException as error:
            self._runs = False
            if not self._interrupted:
                self._show(error)
            return Outcome(_kind(error))
        return Outcome(wire.OK)

    def _execute(self, code: str) -> None:
        self._calls += 1
        name = NAME if self._calls == 1 else f"<python-{self._calls}>"
        lines = list(io.StringIO(code, newline=None))
        linecache.cache[name] = (len(code), None, lines, name)
        tree = compile(code, name, "exec", ast.PyCF_ONLY_AST | self._flags, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = compile(tree, name, "exec", self._flags, dont_inherit=True)
        self._flags |= body.co_flags & _FUTURES
        show = None
        if last is not None:
            shown = ast.Interactive([last])
            show = compile(shown, name, "single", self._flags, dont_inherit=True)
        sys.displayhook = sys.__displayhook__
        exec(body, self._names)
        if show is not None:
            exec(show, self._names)

    def _exit(self, code: object) -> Outcome:
        """As the interpreter takes ``sys.exit(code)``: a text is shown and counts as 1."""
        if code is None:
            return Outcome(wire.OK)
        if isinstance(code, int):
            number = int.__and__(code, 0xFF)  # not what a class of the code makes of ``&``
            return Outcome(wire.EXITED if number else wire.OK, number)
        self.streams.complain(f"{_text(code)}\n")
        return Outcome(wire.EXITED, 1)

    def _show(self, error: BaseException) -> None:
        """Write the traceback as Python does, from the code's own first line on."""
        if isinstance(error, OutputLimitReached):
            return
        try:
            report = traceback.TracebackException(type(error), error, _own(error.__traceback__))
            _rename(report, set())
            text = "".join(report.format())
        except BaseException:  # no memory, no stack, or an exception that cannot be looked at
            text = f"{type(error).__name__}\n"
        self.streams.complain(text)


def _text(value: object) -> str:
    try:
        return str(value)
    except BaseException:
        return f"<unprintable {type(value).__name__} object>"


def _kind(error: BaseException) -> int:
    """Which limit an exception tells of, if any; its class may be the code's own, so look twice."""
    try:
        if isinstance(error, OutputLimitReached):
            return wire.TOO_MUCH_OUTPUT
        if isinstance(error, MemoryError):
            return wire.NO_MEMORY
        if isinstance(error, OSError) and error.errno in _NO_DISK:
            return wire.NO_DISK
        if isinstance(error, OSError) and error.errno == errno.EAGAIN:
            return wire.NO_PROCESSES
        if isinstance(error, RuntimeError) and error.args == ("can't start new thread",):
            return wire.NO_PROCESSES
    except BaseException:
        pass
    return wire.RAISED


def _own(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback without the frames above the code's own."""
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<python"):
        trace = trace.tb_next
    return trace


def _rename(report: traceback.TracebackException, seen: set[int]) -> None:
    """Call every call's file by one name, once the source lines are known; hide our own files."""
    if id(report) in seen:
        return
    seen.add(id(report))
    report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(_FOLDER)]
    for frame in report.stack:
        if frame.filename.startswith("<python-"):
            assert frame.line is not None
            frame.filename = NAME
    if getattr(report, "filename", None) and str(report.filename).startswith("<python-"):
        report.filename = NAME
    for other in _others(report):
        _rename(other, seen)


def _others(report: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            yield other


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    line = linecache.getline(filename, lineno) if line is None else line
    name = NAME if filename.startswith("<python-") else filename
    return f"{name}:{lineno}: {category.__name__}: {message}\n" + (line and f"  {line.strip()}\n")
