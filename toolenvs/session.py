"""What stateful calls build up: the calls so far, the key of their state, the sandbox that has it.

The sandbox may be behind: calls that were served from the cache have not run in it. It is brought
up to date before something has to run.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toolenvs.playback import interrupted, kept_state
from toolenvs.protocols import Sandbox
from toolenvs.statekey import CallKey, digest, next_state
from toolenvs.types import ToolCall, ToolResult


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A stateful call that was made.

    Attributes:
        call: the call.
        key: the call in its state, None where nothing was recorded.
        digest: of what it gave.
        restarted: True for the first call after a session was lost, whose result says so.
        interrupted: True when it was stopped in its middle: what it left cannot be rebuilt.
        undone: True when it was stopped and left nothing: no state needs it to be run again.
    """

    call: ToolCall
    key: CallKey | None
    digest: str
    restarted: bool
    interrupted: bool
    undone: bool = False


class Session:
    """One kept sandbox's state.

    Args:
        needs: which sandbox.
    """

    def __init__(self, needs: str) -> None:
        self.needs = needs
        self.sandbox: Sandbox | None = None
        self.ran = 0
        """How many of the calls the living sandbox has run."""
        self.state = ""
        """The chain of keys up to here, see ``statekey``."""
        self.known = True
        """False once the state can no longer be told: what follows is not recorded."""
        self.restarted = False
        """True while the next call is the first after a session was lost."""
        self._done: list[Done] = []

    def missing(self) -> Sequence[Done]:
        """The calls that the living sandbox has not run."""
        return self._done[self.ran :]

    def add(self, call: ToolCall, key: CallKey | None, result: ToolResult, *, ran: bool) -> None:
        """Enter a call that left the session alive."""
        content = digest(result)
        stopped = interrupted(result)
        self._done.append(
            Done(
                call=call,
                key=key,
                digest=content,
                restarted=self.restarted,
                interrupted=stopped,
                undone=kept_state(result),
            )
        )
        if ran:
            self.ran = len(self._done)
        self.restarted = False
        self.known = self.known and key is not None and not stopped
        if key is not None:
            self.state = next_state(key, content)

    def lose(self, result: ToolResult) -> None:
        """Begin again with nothing, after a call that ended the session."""
        self._done.clear()
        self.ran = 0
        self.state = ""
        self.known = self.known and not interrupted(result)
        self.restarted = True

    def branch(self) -> Session:
        """The same state without a sandbox, to go on from independently."""
        twin = Session(self.needs)
        twin.state, twin.known, twin.restarted = self.state, self.known, self.restarted
        twin._done = list(self._done)
        return twin
