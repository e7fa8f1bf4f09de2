"""Look for bytes in everything that processes hold: memory, arguments, environment."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

_PIECE = 1 << 24
_MAP = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw.. [0-9a-f]+ \S+ \d+ *(.*)")


def holders(needle: bytes, processes: Iterable[int]) -> set[int]:
    """The processes in whose writable memory, arguments or environment ``needle`` is.

    Needs to be allowed to trace them.
    """
    return {pid for pid in processes if _holds(pid, needle)}


def _holds(pid: int, needle: bytes) -> bool:
    folder = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        if needle in told:
            return True
    with contextlib.suppress(OSError), (folder / "mem").open("rb", 0) as memory:
        for line in (folder / "maps").read_text(errors="replace").splitlines():
            match = _MAP.match(line)
            if match and not match[3].startswith("[v"):
                low, high = int(match[1], 16), int(match[2], 16)
                for place in range(low, high, _PIECE):
                    with contextlib.suppress(OSError):
                        memory.seek(place)
                        if needle in memory.read(min(_PIECE + len(needle), high - place)):
                            return True
    return False
