"""What the engine tells and is told: plain records."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class EngineReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the container engine found.

    Attributes:
        found: True when an engine answers.
        where: its address, such as ``unix:///var/run/docker.sock``.
        version: its name and version.
        storage_driver: how it stores images, such as ``overlay2``.
        runtimes: OCI runtimes that it can use: ``runc``, ``runsc`` ...
        remapped: True when root in a container is another user outside (rootless, userns-remap).
        hub: True when it can pull from Docker Hub, False when not, None when that was not asked.
        advice: what to do about what is missing, ``""`` when nothing is.
    """

    found: bool
    where: str = ""
    version: str = ""
    storage_driver: str = ""
    runtimes: tuple[str, ...] = ()
    remapped: bool = False
    hub: bool | None = None
    advice: str = ""


class ImageFacts(msgspec.Struct, frozen=True):
    """An image that the engine holds: its id (a digest) and labels."""

    id: str
    labels: Mapping[str, str]


class ContainerState(msgspec.Struct, frozen=True):
    """A container's state: ``status`` is ``"running"``, ``"exited"``, ... or ``"gone"``.

    ``pid`` is its first process as the engine's machine sees it, 0 when there is none.
    """

    status: str
    exit_code: int = 0
    oom_killed: bool = False
    pid: int = 0


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """A container of this package.

    Attributes:
        id: the container's id.
        image: what it was started from.
        status: the engine's word for its state.
        owner_alive: whether the client that started it still runs; None where this cannot be told
            from here (a client on another machine or in another container).
        mine: whether this process started it.
    """

    id: str
    image: str
    status: str
    owner_alive: bool | None
    mine: bool = False


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two sandboxed containers; all else is fixed in ``Engine.create``.

    Attributes:
        image: reference or id.
        command: the program and its arguments.
        mounts: folders of this machine by the place where the container sees them, read-only.
        tmpfs: options of the memory file systems, by place.
        environment: variables.
        memory_bytes: memory of all its processes, with swap.
        processes: processes and threads in it.
        cpus: processors' worth of time, 0 for no limit.
        user: whose processes they are, ``uid:gid``.
        capabilities: what its root may still do.
        seccomp: JSON of the filter of system calls, ``""`` for the engine's own.
        oci_runtime: ``"runsc"`` for gVisor, ``""`` for the engine's own.
        stdin: whether it has a standard input, which ends when whoever attached to it is gone.
    """

    image: str
    command: tuple[str, ...]
    mounts: Mapping[str, str] = {}
    tmpfs: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    memory_bytes: int = 4 << 30
    processes: int = 1024
    cpus: float = 0.0
    user: str = "0:0"
    capabilities: tuple[str, ...] = ("SETUID", "SETGID", "KILL")
    seccomp: str = ""
    oci_runtime: str = ""
    stdin: bool = False
