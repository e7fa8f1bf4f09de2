"""Gold calls: what the gold policy runs before it submits."""

from __future__ import annotations


def python_call(code: str) -> dict[str, object]:
    """A call of the tool ``python``."""
    return {"name": "python", "arguments": {"code": code}}


def ready_call() -> dict[str, object]:
    """A call for a task whose computation is not known: it runs and says nothing of the answer.

    Gold answers never enter a sandbox, so the call must not carry the answer as text.
    """
    return python_call("import sympy\nprint(sympy.Symbol('ready'))\n")
