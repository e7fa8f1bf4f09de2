"""Start a supervisor at level ``uid`` without a container engine: what ``docker run`` would do.

Needs root. The tree is the one of the runtime ``local``; the capabilities are those that the
container gets.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolenvs import channel
from toolenvs.channel import ChannelWorker
from toolenvs.drivers import run
from toolenvs.runtimes import local
from toolenvs.supervisor import house, system
from toolenvs.types import Limits

_KEPT = (5, 6, 7)  # CAP_KILL, CAP_SETGID, CAP_SETUID
_PR_CAPBSET_DROP = 24


def start_uid_worker(
    limits: Limits, *, capacity: int = 8, spares: int = 1, data: Mapping[str, str] | None = None
) -> ChannelWorker:
    """A worker whose sandboxes are kept apart by user ids."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    slots = channel.slots(capacity, spares)
    first_uid = (1 << 30) + secrets.randbelow(1 << 20) * 64
    program = channel.arguments(
        level="uid", slots=slots, first_uid=first_uid, control=[f"fd:{theirs.fileno()}"]
    )
    shown = local.Local(data=data)._shown()
    plan: dict[str, Any] = local._plan(theirs.fileno(), program, shown)
    plan["folders"] += [f"/work/{n}" for n in range(slots)]
    plan |= {"slots": slots, "first_uid": first_uid, "disk_bytes": limits.disk_bytes}
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, json.dumps(plan)],
        pass_fds=[theirs.fileno()],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        process.wait(20.0)  # it ends by itself

    return run(
        channel.open_worker(
            ours, limits=limits, capacity=capacity, spares=spares, data=data, end=end
        )
    )


def _main(plan: dict[str, Any]) -> None:
    control = plan["control"]
    spaces = system.CLONE_NEWNS | system.CLONE_NEWPID | system.CLONE_NEWIPC
    system.unshare(spaces | system.CLONE_NEWNET | system.CLONE_NEWUTS)
    pid = os.fork()
    if pid:
        os.close(control)
        os.waitpid(pid, 0)
        return
    house._build(plan)
    for n in range(plan["slots"]):
        uid = plan["first_uid"] + n
        options = f"size={plan['disk_bytes']},nr_inodes=1k,uid={uid},gid={uid},mode=700"
        flags = system.MS_NOSUID | system.MS_NODEV
        system.mount("tmpfs", f"/work/{n}", "tmpfs", flags, options)
    for capability in range(64):
        if capability not in _KEPT:
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    house._start(plan)


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
