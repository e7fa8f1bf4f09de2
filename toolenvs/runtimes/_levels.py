"""How sandboxes of one container are kept apart, and what a container needs for each way.

``U`` works with any engine. ``N`` and ``R`` need an engine that lets an ordinary user of the
container make user namespaces; they differ in how the engine is asked for that.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from toolenvs import engine
from toolenvs.channel import BOOT
from toolenvs.engine import ContainerSpec
from toolenvs.errors import RuntimeFailure
from toolenvs.locks import ForkLock
from toolenvs.runtimes._uids import UidRange
from toolenvs.supervisor.seccomp import REFUSED
from toolenvs.supervisor.trial import WORKS

_CLOSED = "ro,size=4k,mode=555"
# Places of an ordinary container where everybody may write.
SHUT = dict.fromkeys(("/dev/shm", "/dev/mqueue", "/tmp"), _CLOSED)  # noqa: S108
_TRIAL_S = 20.0
_NO_END = (
    f"Which isolation level the engine allows is not known: a container did not end in {_TRIAL_S:g}"
    ' s. Try again, or name one: sandbox_options={"level": "U"} works with any engine.'
)
_log = logging.getLogger(__name__)


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One way to keep sandboxes apart.

    Attributes:
        name: ``"U"``, ``"N"`` or ``"R"``.
        program: what ``channel.arguments`` calls it.
        capabilities: what the container's root may do.
        root: whether the supervisor runs as the container's root, else as an ordinary user.
        own_filter: whether the container runs under ``filter_of_calls``, else the engine's own.
        holds: what it keeps apart, in a line.
    """

    name: str
    program: str
    capabilities: tuple[str, ...] = ()
    root: bool = False
    own_filter: bool = False
    holds: str

    def privileges(self, first_uid: int) -> dict[str, Any]:
        """Fields of a ``ContainerSpec``: user, capabilities and filter.

        Args:
            first_uid: a user id that is its own.
        """
        return {
            "user": "0:0" if self.root else f"{first_uid}:{first_uid}",
            "capabilities": self.capabilities,
            "seccomp": filter_of_calls() if self.own_filter else "",
        }

    def folders(self, top: str, first_uid: int, slots: int, disk_bytes: int) -> dict[str, str]:
        """The memory file systems for the sandboxes' folders, by place.

        Args:
            top: the folder that they are in, or, with namespaces, that each puts its own upon.
            first_uid: user id of slot 0.
            slots: how many sandboxes there may be.
            disk_bytes: size of each.
        """
        if not self.root:
            return {top: _CLOSED}
        size = f"size={disk_bytes},nr_inodes=1k,mode=700"
        ids = range(first_uid, first_uid + slots)
        return {f"{top}/{slot}": f"{size},uid={uid},gid={uid}" for slot, uid in enumerate(ids)}


_SPACES = (
    "own user, process, mount and System V namespaces, private folder; "
    "no process of the container has a capability"
)
LEVELS: Mapping[str, Level] = {
    "R": Level(name="R", program="nested", own_filter=True, holds=f"{_SPACES}, nor may gain one"),
    "N": Level(name="N", program="nested", capabilities=("SYS_ADMIN",), holds=_SPACES),
    "U": Level(
        name="U",
        program="uid",
        capabilities=("SETUID", "SETGID", "KILL"),
        root=True,
        holds="own user id and folder; the supervisor alone has three capabilities",
    ),
}
"""The levels, strongest first."""

_LOCAL = f"{_SPACES.partition(';')[0]}; no control group bounds all sandboxes together"


def what_holds(hello: Mapping[str, Any]) -> str:
    """Say in a line what keeps the sandboxes of a worker apart.

    Args:
        hello: what the worker's supervisor told of itself; see ``supervisor.server.hello``.
    """
    if "level" not in hello:
        return ""
    known = LEVELS.get(hello["level"])
    holds = f"level {known.name}: {known.holds}" if known else _LOCAL
    version = hello.get("landlock", 0)
    rules = f"Landlock {version}" if version else _NO_LANDLOCK
    return f"{holds}; filter of system calls; {rules}"


_NO_LANDLOCK = (
    "no Landlock (Linux before 5.13, or switched off): each can read all data that is shown"
)
_NEEDED = {"socket", "connect", "memfd_create", "unshare", "setns", "mount"}


@functools.cache
def filter_of_calls() -> str:
    """The engine's filter for a container at level R, as JSON: all that a supervisor never needs.

    Each sandbox in it has a stricter one of its own; see ``supervisor.seccomp``.

    Source: Docker, "Seccomp security profiles for Docker", format of a profile.
    """
    refused = {"names": sorted(REFUSED.keys() - _NEEDED), "action": "SCMP_ACT_ERRNO"}
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refused]})


_found: dict[tuple[str, str, str], Level] = {}
_trying = ForkLock()


def strongest_level(image: str, oci_runtime: str, *, remapped: bool) -> Level:
    """The strongest level that the engine allows, tried once in a process; blocking.

    Args:
        image: id of an image that holds the supervisor.
        oci_runtime: as in ``ContainerSpec``.
        remapped: see ``UidRange``.

    Raises:
        RuntimeFailure: The engine did not answer, or a trial did not end: which level it allows is
            not known then, and a weaker one would be another runtime for what is recorded.
    """
    with _trying, engine.connect() as docker:
        key = (docker.where, image, oci_runtime)
        if key not in _found:
            with contextlib.closing(UidRange(remapped=remapped)) as uids:
                _found[key] = next(
                    level
                    for level in LEVELS.values()
                    if level.root or _works(docker, image, oci_runtime, level, uids.first)
                )
        return _found[key]


def _works(
    docker: engine.Engine, image: str, oci_runtime: str, level: Level, first_uid: int
) -> bool:
    spec = ContainerSpec(
        image=image,
        command=("python3", *BOOT, "nest", "trial"),
        tmpfs=SHUT,
        memory_bytes=128 << 20,
        processes=64,
        oci_runtime=oci_runtime,
        **level.privileges(first_uid),
    )
    try:
        said = _output(docker, spec)
    except RuntimeFailure as failure:
        if failure.kind != "engine":
            raise
        said = str(failure)
    _log.info("isolation level %s: %s", level.name, said)
    return WORKS in said


def _output(docker: engine.Engine, spec: ContainerSpec) -> str:
    container = docker.create(spec)
    try:
        attachment = docker.attach(container)
        docker.start(container)
        give_up = time.monotonic() + _TRIAL_S
        with contextlib.closing(attachment):
            while attachment.drain(wait_s=0.5):
                if time.monotonic() > give_up:
                    raise RuntimeFailure("start", _NO_END)
            return attachment.text
    finally:
        docker.remove(container)
