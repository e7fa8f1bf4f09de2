"""The label that says whose a container is, and whether that process still runs."""

from __future__ import annotations

import os
from pathlib import Path

LABEL = "toolenvs"
"""On every container of this package; its value names the client process that started it."""


def owner_labels() -> dict[str, str]:
    """The label that names this process: boot, pid namespace, pid and start time.

    A pid alone may be another process by the time someone looks.
    """
    pid = os.getpid()
    return {LABEL: f"{_boot()}.{_pid_namespace()}.{pid}.{_start_time(pid)}"}


def owner_alive(owner: str, *, engine_is_here: bool) -> bool | None:
    """Tell whether the process that a label's value names runs; None where that cannot be told.

    Args:
        owner: the value of ``LABEL``.
        engine_is_here: True when engine and this process share a kernel.
    """
    boot, namespace, pid, started = [*owner.split("."), "", "", "", ""][:4]
    if not pid.isdigit():
        return None
    if boot != _boot():  # a client of before the last start, if the engine runs on this machine
        return False if engine_is_here and boot and _boot() else None
    if namespace != _pid_namespace():
        return None
    return _start_time(int(pid)) == started


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux: nothing can be told about owners
        return ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Clock ticks after boot at which the process started; ``""`` when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == b"Z" else fields[19].decode()
