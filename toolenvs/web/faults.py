"""How code below the tools says that a request cannot be served by the agent's own fault."""

from __future__ import annotations

from toolenvs.types import ErrorKind, ToolError


class AgentFaultError(Exception):
    """What was asked for cannot be had: whoever runs the call turns it into its ``ToolError``.

    Args:
        kind: what kind of fault it is.
        message: what is wrong and what is allowed, for the agent.
    """

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind

    @property
    def error(self) -> ToolError:
        """The fault as a result holds it."""
        return ToolError(self.kind, str(self))

    def __reduce__(self) -> tuple[type[AgentFaultError], tuple[ErrorKind, str]]:
        return type(self), (self.kind, str(self))
