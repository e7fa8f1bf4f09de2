"""Sandboxes in containers: one container is a worker, in it a supervisor that forks children.

The engine (Docker's or Podman's) starts and removes containers and is not asked for anything else:
client and children speak through a socket that the container shares with this process. Where it
cannot share one (a remote engine, Docker Desktop, a client that is itself in a container, gVisor)
two relays carry the same traffic over the container's standard input and output.
"""

from __future__ import annotations

import hashlib
import logging
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolenvs import engine, images
from toolenvs.admission import admission
from toolenvs.channel import (
    CONTROL_FOLDER,
    SOCKET,
    WORK_FOLDER,
    ChannelWorker,
    Listener,
    arguments,
    checked_preload,
    open_worker,
    slots,
)
from toolenvs.companion import Companion
from toolenvs.drivers import Blocking, Readable
from toolenvs.engine import ContainerSpec
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.locks import ForkLock
from toolenvs.places import DATA_FOLDER, checked_folders
from toolenvs.runtimes._levels import LEVELS, SHUT, Level, strongest_level
from toolenvs.runtimes._uids import UidRange
from toolenvs.supervisor.frames import ANNOUNCEMENT
from toolenvs.supervisor.reach import STREAM
from toolenvs.types import Limits

_log = logging.getLogger(__name__)

_WAYS = {"auto": (SOCKET, STREAM), "socket": (SOCKET,), "stream": (STREAM,)}

_SUPERVISOR_BYTES = 256 << 20  # with its spare children

_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


class Docker:
    """Containers of the engine that ``engine.connect`` finds.

    Args:
        image: a folder of ``sandboxes/``, built when needed, or the reference of an image that
            holds the supervisor.
        base: what that image is built on; see ``images.ensure_image``.
        limits: of one sandbox; a ``Limits`` or its fields.
        isolation: ``"shared"``: one container holds many sandboxes, apart by user id and kernel
            rules; ``"container"``: each has a container of its own.
        level: what keeps sandboxes of one container apart: ``"R"``, ``"N"``: namespaces, see
            docs/isolation.md; ``"U"``: user ids, with any engine; ``"auto"``: the strongest that
            the engine allows, tried once in a process. What code sees of user, process numbers and
            its folder depends on it; at ``"U"`` also on its place in the container.
        sandboxes_per_worker: sandboxes that one shared container holds.
        spares: children forked ahead of need in each container.
        preload: what each container loads for all its sandboxes: ``"standard"`` (the standard
            library), ``"numpy"``, ``"sympy"`` (and numpy), ``"scipy"`` (and both) or ``"sql"``
            (SQLAlchemy, for the image ``sql``); ``"auto"``: ``"sql"`` for that image, else
            ``"sympy"``. The rest can be imported too, but each sandbox then pays for it.
        data: folders of the engine's machine, by name: each is shown read-only at
            ``/data/<name>``, and each sandbox may read the places in them that ``spawn`` is given.
            Other users must be able to read what is in them.
        calls_at_once: calls that may run at the same time, the others wait before their clock
            starts; 0: four for each processor, over all sandboxes of this process. Raise it where
            calls mostly sleep, or where the engine's machine has more processors than this one.
        memory_bytes: memory of one container; of all its sandboxes together. 0: 4 GiB for a shared
            container; for one of its own a sandbox's limits and what the supervisor needs.
        cpus: processors' worth of time of one container, 0 for no limit.
        oci_runtime: ``"runsc"`` for gVisor where the engine has it; ``""`` for its default.
        transport: ``"socket"``: through a shared unix socket, the fastest; ``"stream"``: through
            the attached stream, which works with any engine; ``"auto"``: the first if the
            supervisor can be reached that way, else the second.
        start_timeout_s: how long a started container may take until its supervisor is ready.

    Raises:
        UsageError: An option has no meaning; the message says what is allowed.
    """

    name = "docker"

    def __init__(
        self,
        *,
        image: str = "python",
        base: str = "auto",
        limits: Limits | Mapping[str, Any] | None = None,
        isolation: Literal["shared", "container"] = "shared",
        level: Literal["U", "N", "R", "auto"] = "auto",
        sandboxes_per_worker: int = 32,
        spares: int = 1,
        preload: str = "auto",
        data: Mapping[str, str | PathLike[str]] | None = None,
        calls_at_once: int = 0,
        memory_bytes: int = 0,
        cpus: float = 0.0,
        oci_runtime: str = "",
        transport: Literal["auto", "socket", "stream"] = "auto",
        start_timeout_s: float = 30.0,
    ) -> None:
        if isolation not in ("shared", "container"):
            raise UsageError(f"isolation is {isolation!r}; it is 'shared' or 'container'.")
        if level not in (*LEVELS, "auto"):
            raise UsageError(f"level is {level!r}; it is one of {', '.join(LEVELS)}, auto.")
        if transport not in _WAYS:
            raise UsageError(f"transport is {transport!r}; it is one of {', '.join(_WAYS)}.")
        if not 1 <= sandboxes_per_worker <= 256:
            raise UsageError(f"sandboxes_per_worker is {sandboxes_per_worker}; it is 1 to 256.")
        self.image = image
        self.base = base
        self.limits = _limits(limits)
        self.capacity = 1 if isolation == "container" else sandboxes_per_worker
        self.level = level
        self.spares = spares
        self.preload = checked_preload(preload, image)
        self.data = checked_folders(data)
        self.calls_at_once = admission(calls_at_once).places
        alone = self.limits.memory_bytes + self.limits.disk_bytes + _SUPERVISOR_BYTES
        shared = max(4 << 30, alone)
        self.memory_bytes = memory_bytes or (alone if isolation == "container" else shared)
        self.cpus = cpus
        self.oci_runtime = oci_runtime
        self.transport = transport
        self.start_timeout_s = start_timeout_s
        self._ready: _ReadyImage | None = None
        self._lock = ForkLock()

    def __getstate__(self) -> dict[str, Any]:
        """A copy has the options, and looks the image up anew."""
        return {**vars(self), "_ready": None}

    def fingerprint(self) -> str:
        """Hash of the image's content, supervisor and base included, and of the limits.

        Data is no part of it: what a task reads is told apart by its digest.

        Raises:
            RuntimeFailure: There is no engine, or no image and none can be built.
        """
        limits = msgspec.json.encode(self.limits)
        level = self.allowed_level().name
        facts = (self._have_image().content, limits, self.oci_runtime, self.preload, level)
        return f"docker:{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}"

    async def start(self) -> ChannelWorker:
        """Start a container and wait until its supervisor is ready.

        Raises:
            RuntimeFailure: ``no_engine``, ``image_missing``, ``engine``; ``data``: the engine does
                not see a folder; ``transport``: the supervisor cannot be reached; ``start``: it
                did not come up.
        """
        level = await Blocking(self.allowed_level)
        uids = UidRange(remapped=self._have_image().remapped)
        spec = partial(self._spec_for, level, uids.first)
        launch = _Launch(spec, _WAYS[self.transport], uids)
        try:
            await Blocking(launch.begin)
            control = await launch.connection(self.start_timeout_s)
            worker = await open_worker(
                control,
                limits=self.limits,
                capacity=self.capacity,
                spares=self.spares,
                gate=admission(self.calls_at_once),
                data=self.data,
                end=launch.end,
                timeout_s=self.start_timeout_s,
            )
        except RuntimeFailure as failure:
            told = await Blocking(partial(launch.explain, failure))
            raise _about_data(failure, self.data) or told from failure
        except BaseException:  # given up half-way
            launch.end()
            raise
        finally:
            launch.stop_listening()
        launch.listen_no_more()
        worker.hello = {**worker.hello, "level": level.name}
        return worker

    def _have_image(self) -> _ReadyImage:
        with self._lock:
            if self._ready is None:
                self._ready = _ready_image(self.image, self.base)
            return self._ready

    def allowed_level(self) -> Level:
        """The level asked for, or the strongest allowed; blocking while it is tried.

        Raises:
            RuntimeFailure: See ``fingerprint``.
        """
        ready = self._have_image()
        if self.level == "auto":
            return strongest_level(ready.id, self.oci_runtime, remapped=ready.remapped)
        return LEVELS[self.level]

    @property
    def own_folders(self) -> str:
        """See ``protocols.Runtime``; blocking as ``allowed_level`` is."""
        return f"{WORK_FOLDER}/[0-9]+" if self.allowed_level().root else ""

    def _command(
        self, level: Level, number: int, first_uid: int, ways: Sequence[str]
    ) -> tuple[str, ...]:
        where = arguments(
            level=level.program,
            slots=number,
            first_uid=first_uid,
            control=ways,
            preload=self.preload,
        )
        return ("python3", *where)

    def _spec_for(
        self, level: Level, first_uid: int, ways: Sequence[str], folder: Path | None
    ) -> ContainerSpec:
        number = slots(self.capacity, self.spares)
        return ContainerSpec(
            image=self._have_image().id,
            command=self._command(level, number, first_uid, ways),
            **level.privileges(first_uid),
            mounts={
                **({CONTROL_FOLDER: str(folder)} if folder else {}),
                **{f"{DATA_FOLDER}/{name}": path for name, path in self.data.items()},
            },
            tmpfs={**SHUT, **level.folders(WORK_FOLDER, first_uid, number, self.limits.disk_bytes)},
            environment=_ENVIRONMENT,
            memory_bytes=self.memory_bytes,
            processes=number * (self.limits.processes + 1) + 64,
            cpus=self.cpus,
            oci_runtime=self.oci_runtime,
            stdin=STREAM in ways,
        )


class _ReadyImage(msgspec.Struct, frozen=True):
    """An image at hand, and what the engine says of user ids."""

    id: str
    content: str
    remapped: bool


class _Launch:
    """One container from its creation to its end; may be given up at any moment.

    Args:
        spec: what to start, for the ways that the supervisor may come and the folder of a socket.
        ways: the ways wished for, best first.
        uids: the user ids in it, given back at its end.
    """

    def __init__(
        self,
        spec: Callable[[Sequence[str], Path | None], ContainerSpec],
        ways: Sequence[str],
        uids: UidRange,
    ) -> None:
        self._spec = spec
        self._uids = uids
        self._ways = ways
        self._listener = Listener() if SOCKET in ways else None
        self._lock = ForkLock()
        self._container = ""
        self._unwanted = False
        self._attachment: engine.Attachment | None = None
        self._relay: Companion | None = None
        self._words = ""
        self._running = False
        self._pid: int | None = None

    def begin(self) -> None:
        """Create and start the container; blocking."""
        with engine.connect() as docker:
            _reap_once(docker)
            container = self._create(docker)
            try:
                self._attachment = docker.attach(container)
                docker.start(container)
                self._pid = docker.state(container).pid or None
                if self._pid is None:
                    self._attachment.drain(wait_s=1.0)
                    raise RuntimeFailure("start", "the container ended at once.")
            finally:
                with self._lock:
                    wanted = self._pid is not None and not self._unwanted
                    self._container = container if wanted else ""
                if not wanted:
                    self.listen_no_more()
                    docker.remove(container)

    def _create(self, docker: engine.Engine) -> str:
        folder = self._listener.folder if self._listener else None
        try:
            return docker.create(self._spec(self._ways, folder))
        except RuntimeFailure as failure:
            if STREAM not in self._ways or not _is_elsewhere(failure):
                raise
        self.stop_listening()
        return docker.create(self._spec([STREAM], None))

    async def connection(self, timeout_s: float) -> socket.socket:
        """Wait for the supervisor, whichever way it comes, and return the control connection.

        Raises:
            RuntimeFailure: The container ended, or nobody came.
        """
        assert self._attachment is not None
        deadline = time.monotonic() + timeout_s
        with select.epoll() as both:
            both.register(self._attachment.fileno(), select.EPOLLIN)
            if self._listener is not None:
                both.register(self._listener.fileno(), select.EPOLLIN)
            while await Readable(both.fileno(), deadline):
                control = self._listener.take(self._pid) if self._listener else None
                if control is not None:
                    return control
                lives = self._attachment.drain()
                if ANNOUNCEMENT in self._attachment.text:
                    return self._start_relay()
                if not lives:
                    raise RuntimeFailure("start", "the container ended at once.")
        raise RuntimeFailure("start", f"no supervisor connected within {timeout_s:g} s")

    def _start_relay(self) -> socket.socket:
        assert self._attachment is not None
        stream, self._attachment = self._attachment.hand_over(), None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with stream, theirs:
            ends = theirs.fileno(), stream.fileno()
            self._relay = Companion(["near", *map(str, ends)], ends)
        return ours

    def end(self) -> None:
        """Remove the container; blocking. More than once is harmless."""
        self.listen_no_more()
        with self._lock:
            self._unwanted = True
            container, self._container = self._container, ""
            relay, self._relay = self._relay, None
        try:
            if container:
                with engine.connect() as docker:
                    self._running = docker.state(container).status == "running"
                    docker.remove(container)
            self._uids.close()  # not where the engine is gone: then it may still run for a while
        finally:
            if relay is not None:
                relay.end()

    def explain(self, failure: RuntimeFailure) -> RuntimeFailure:
        """Say why the container did not become a worker, and remove it; blocking."""
        streams = self._relay is not None
        self.end()
        unreached = self._running and failure.kind == "start" and not (self._words or streams)
        if unreached or _is_elsewhere(failure):
            return RuntimeFailure("transport", _NO_TRANSPORT)
        if self._words:
            return RuntimeFailure(failure.kind, f"{failure} The container said: {self._words}")
        return failure

    def stop_listening(self) -> None:
        """Nobody is to connect any more."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def listen_no_more(self) -> None:
        """Keep what the container printed and leave its streams alone from here on."""
        attachment, self._attachment = self._attachment, None
        if attachment is not None:
            attachment.drain()
            self._words = attachment.text
            attachment.close()


_NO_TRANSPORT = (
    "The container runs but its supervisor does not reach this process. The engine may not share a "
    "unix socket with it (a remote engine, Docker Desktop, a client that is itself in a "
    'container): choose transport="auto" or "stream", run on the engine\'s own machine, or choose '
    'sandbox="local".'
)


def _is_elsewhere(failure: RuntimeFailure) -> bool:
    """Tell whether a container was refused since the engine does not see this machine's files."""
    text = str(failure)
    return "bind source path does not exist" in text or "no such file or directory" in text


def _about_data(failure: RuntimeFailure, data: Mapping[str, str]) -> RuntimeFailure | None:
    """Say so when a container was refused since the engine does not see a data folder."""
    for name, path in sorted(data.items(), key=lambda item: -len(item[1])):
        if _is_elsewhere(failure) and f" {path}" in str(failure):
            return RuntimeFailure(
                "data",
                f"The engine sees no folder {path} (data {name!r}): it must be on the engine's "
                "machine, under that path.",
            )
    return None


_reaped = False


def _reap_once(docker: engine.Engine) -> None:
    """Remove, once in a process, what clients that were killed have left."""
    global _reaped
    if not _reaped:
        _reaped = True
        for item in docker.leftovers():
            if item.owner_alive is False:
                _log.info("removing the container %s of a client that is gone", item.id[:12])
                docker.remove(item.id)


def _ready_image(image: str, base: str) -> _ReadyImage:
    with engine.connect() as docker:
        remapped = docker.report().remapped
        if image not in images.names():
            facts = docker.image(image)
            if facts is None:
                raise RuntimeFailure(
                    "image_missing",
                    f"The engine does not hold the image {image!r}. Pull or build it, or name one "
                    f"that can be built here: {', '.join(images.names())}.",
                )
            return _ReadyImage(facts.id, facts.id, remapped)
    if images.find_image(image, base) is None:
        _log.warning("building the sandbox image %r, once; it takes a minute or two", image)
    built = images.ensure_image(image, base)
    return _ReadyImage(built.id, built.content, remapped)


def _limits(given: Limits | Mapping[str, Any] | None) -> Limits:
    if isinstance(given, Limits):
        return given
    fields = dict(given or {})
    for name in fields:
        if name not in Limits.__struct_fields__:
            raise UnknownNameError("a limit", name, Limits.__struct_fields__)
    try:
        return msgspec.convert(fields, Limits)
    except msgspec.ValidationError as error:
        raise UsageError(f"limits: {error}.") from error
