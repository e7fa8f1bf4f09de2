"""How the end of a Python call is told to the agent, the same for every Python tool."""

from __future__ import annotations

from toolenvs.cut import cut
from toolenvs.tools._addresses import with_stable_addresses
from toolenvs.types import ErrorKind, ExecResult, ToolError, ToolResult

DESCRIPTION = (
    "numpy, sympy, scipy and the standard library are installed; there is no network. Printed text "
    "and the value of a last expression are shown."
)
LOST = "The interpreter was restarted: its variables and files are gone."

_SENTENCES: dict[str, str] = {
    "timeout": "The call ran longer than its time limit of {timeout_s:g} s and was stopped.",
    "memory": "The call used more memory than it may and was stopped.",
    "killed": "The interpreter was ended by signal {signal}.",
    "exited": "The program ended its interpreter with exit status {exit_code}.",
    "output": "The call printed more than it may and was stopped.",
    "disk": "The call wrote more to disk than it may.",
    "processes": "The call started more processes or threads than it may.",
}


def present(result: ExecResult, *, limit_chars: int, timeout_s: float, note: str) -> ToolResult:
    """Turn the end of an execution into what the agent reads and what rewards see.

    Addresses of objects are numbered, in all of it; see ``_addresses``.

    Args:
        result: how the code ended.
        limit_chars: most characters of the text; head and tail are kept.
        timeout_s: the time limit that was in force, for the sentence that names it.
        note: what the machine did to the session, ``""`` if nothing.
    """
    result = with_stable_addresses(result)
    error = _error(result, timeout_s)
    parts = [result.stdout.rstrip("\n")]
    if result.stderr.strip():
        parts.append("[stderr]\n" + result.stderr.rstrip("\n"))
    if error is not None and result.status != "raised":
        parts.append("[error] " + error.message)
    if note:
        parts.append("[note] " + note)
    whole = "\n".join(part for part in parts if part)
    text, was_cut = cut(whole, limit_chars)
    return ToolResult(
        text=text,
        data={
            "stdout": result.stdout,
            "stderr": result.stderr,
            "status": result.status,
            "session_lost": result.session_lost,
        },
        error=error,
        truncated=was_cut or result.output_cut,
        note=note,
    )


def _error(result: ExecResult, timeout_s: float) -> ToolError | None:
    if result.status == "ok":
        return None
    kind: ErrorKind = result.status
    if kind == "raised":
        last_line = result.stderr.rstrip().rpartition("\n")[2]
        return ToolError(kind, last_line or "The code raised an exception.")
    sentence = _SENTENCES[kind].format(
        timeout_s=timeout_s, signal=result.signal, exit_code=result.exit_code
    )
    return ToolError(kind, sentence)
