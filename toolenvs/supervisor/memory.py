"""How much memory there is, and what sandboxes hold of it, read from the kernel.

What a sandbox holds is the sum over its processes of ``Pss_Anon``, ``Pss_Shmem`` and ``SwapPss``: a
page that several processes share counts once, divided among them. Reading that costs the kernel a
walk over all pages, so ``resident_bytes`` of the process table, which is more, is looked at first.

Source: Linux, ``Documentation/filesystems/proc.rst``,
``Documentation/admin-guide/cgroup-v1/memory.rst``, ``Documentation/admin-guide/cgroup-v2.rst``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from .processes import Process, text

_V1 = "/sys/fs/cgroup/memory/memory"
_V2 = "/sys/fs/cgroup/memory"
_NO_LIMIT = 1 << 60  # a control group without one says a number near 2**63
_LEAST_MARGIN, _MOST_MARGIN = 16 << 20, 128 << 20
_LONG = 1 << 16
_HELD = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")


class Room:
    """The memory of the container; without a control group that can be seen, of the machine.

    Attributes:
        limit_bytes: what all may use together; 0 where nothing says so.
        margin_bytes: as much is to stay free below the limit.
    """

    def __init__(self) -> None:
        self._used, self._stat, self._events = "", "", "/proc/vmstat"
        self._reclaimable: tuple[str, ...] = ()
        self.limit_bytes = 0
        for limit, used, events, reclaimable in (
            (f"{_V2}.max", f"{_V2}.current", f"{_V2}.events", ("inactive_file", "active_file")),
            (
                *(f"{_V1}.limit_in_bytes", f"{_V1}.usage_in_bytes", f"{_V1}.oom_control"),
                ("total_inactive_file", "total_active_file"),
            ),
        ):
            with contextlib.suppress(OSError, ValueError):
                number = int(text(limit))
                self.limit_bytes = number if number < _NO_LIMIT else 0
                self._used, self._events, self._reclaimable = used, events, reclaimable
                self._stat = f"{limit.rpartition('.')[0]}.stat"
        self._tells = _tells()
        self.margin_bytes = min(max(self.limit_bytes // 16, _LEAST_MARGIN), _MOST_MARGIN)

    def used_bytes(self) -> int:
        """What is used, with what the kernel would give up for the asking; cheap to ask."""
        with contextlib.suppress(OSError, ValueError):
            if self._used:
                return int(text(self._used))
            facts = _facts("/proc/meminfo")
            return (facts["MemTotal:"] - facts["MemAvailable:"]) << 10
        return 0

    def is_full(self, used_bytes: int) -> bool:
        """Whether the margin is reached, when so much is used."""
        if not self.limit_bytes or used_bytes < self.limit_bytes - self.margin_bytes:
            return False
        with contextlib.suppress(OSError):
            facts = _facts(self._stat)
            used_bytes -= sum(facts.get(name, 0) for name in self._reclaimable)
        return used_bytes >= self.limit_bytes - self.margin_bytes

    def kills(self) -> int:
        """How often the kernel has killed for lack of memory."""
        with contextlib.suppress(OSError):
            return _facts(self._events).get("oom_kill", 0)
        return 0

    def held_bytes(self, members: Iterable[Process]) -> int:
        """What these processes hold; of one that cannot be looked into, all that is resident.

        Call it where the kernel lets one look, see ``Cell.reading``. It is 0 where the kernel tells
        nothing at all, as gVisor's: nobody is ended on a guess.
        """
        if not self._tells:
            return 0
        total = 0
        for process in members:
            try:
                facts = _facts(f"/proc/{process.pid}/smaps_rollup")
                total += sum(facts.get(name, 0) for name in _HELD) << 10
            except ProcessLookupError:  # it has no memory any more
                pass
            except OSError:
                total += process.resident_bytes
        return total


def _tells() -> bool:
    with contextlib.suppress(OSError):
        return bool(_facts("/proc/self/smaps_rollup"))
    return False


def _facts(path: str) -> dict[str, int]:
    """The lines of a file that are a name and a number."""
    found = {}
    for line in text(path, _LONG).splitlines():
        words = line.split(None, 2)
        if len(words) > 1 and words[1].isdigit():
            found[words[0]] = int(words[1])
    return found
