"""How a fault ends a command: one clear line on stderr, an exit code, no traceback."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from toolenvs.errors import ToolenvsError, UsageError

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class OneLineFaults(TyperGroup):
    """A group of commands whose faults are told in one line; errors of its subgroups too."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; ends the process by ``SystemExit`` unless ``standalone_mode`` is off."""
        if not options.pop("standalone_mode", True):
            return super().main(*args, **{**options, "standalone_mode": False})
        try:
            result = super().main(*args, **{**options, "standalone_mode": False})
        except Exception as fault:
            result = tell(fault)
        sys.exit(result if isinstance(result, int) else DONE)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the words name; Ctrl-C in it is one line and exit code 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(_interrupted()) from None


def tell(fault: Exception) -> int:
    """Write one line about ``fault`` to stderr and return the exit code that it means."""
    if os.environ.get("TOOLENVS_TRACEBACK") == "1":
        traceback.print_exception(fault)
    if isinstance(fault, typer.Abort):
        return _interrupted()
    if isinstance(fault, BrokenPipeError):  # whoever read our output has gone
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - else Python complains at exit
        return FAILED
    if type(fault).__name__ == "NoArgsIsHelpError":
        print(fault, file=sys.stderr)  # noqa: T201 - it holds the help text
        return USAGE
    message, code = _describe(fault)
    print(f"toolenvs: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201
    return code


def _interrupted() -> int:
    print("toolenvs: interrupted.", file=sys.stderr)  # noqa: T201
    return INTERRUPTED


def _describe(fault: Exception) -> tuple[str, int]:
    if isinstance(fault, UsageError):
        return str(fault), USAGE
    if isinstance(fault, ToolenvsError):
        return str(fault), FAILED
    if hasattr(fault, "format_message"):  # typer's own, whichever click it brings
        context = getattr(fault, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        return fault.format_message().rstrip(".") + hint, int(getattr(fault, "exit_code", USAGE))
    if isinstance(fault, OSError) and fault.filename is not None:
        return f"{fault.filename}: {fault.strerror}", USAGE
    return (
        f"an error inside toolenvs, {type(fault).__name__}: {fault} "
        "(TOOLENVS_TRACEBACK=1 shows where)"
    ), FAILED
