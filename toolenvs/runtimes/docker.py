"""Sandboxes in containers: one container is a worker, in it a supervisor that forks children.

The engine (Docker's or Podman's) starts and removes containers and is not asked for anything else:
client and children speak through a socket that the container shares with this process.
"""

from __future__ import annotations

import hashlib
import logging
import random
import select
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolenvs import engine, images
from toolenvs.channel import (
    CONTROL_FOLDER,
    WORK_FOLDER,
    ChannelWorker,
    Listener,
    arguments,
    open_worker,
    slots,
)
from toolenvs.drivers import Blocking, Readable
from toolenvs.engine import ContainerSpec
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.types import Limits

_log = logging.getLogger(__name__)

# Process limits count by user id over all containers of a machine, so each worker takes ids that
# hardly any other can have: above those of users and of systemd's containers, below 2**31.
_UIDS = range(1_879_048_192, 2_147_483_000)
# All that a remapped or rootless engine has; without the ids of the image's own users.
_UIDS_REMAPPED = range(2_000, 60_000)

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
        sandboxes_per_worker: sandboxes that one shared container holds.
        spares: children forked ahead of need in each container.
        memory_bytes: memory of one container; of all its sandboxes together.
        cpus: processors' worth of time of one container, 0 for no limit.
        oci_runtime: ``"runsc"`` for gVisor where the engine has it; ``""`` for its default.
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
        sandboxes_per_worker: int = 32,
        spares: int = 1,
        memory_bytes: int = 4 << 30,
        cpus: float = 0.0,
        oci_runtime: str = "",
        start_timeout_s: float = 30.0,
    ) -> None:
        if isolation not in ("shared", "container"):
            raise UsageError(f"isolation is {isolation!r}; it is 'shared' or 'container'.")
        if not 1 <= sandboxes_per_worker <= 256:
            raise UsageError(f"sandboxes_per_worker is {sandboxes_per_worker}; it is 1 to 256.")
        self.image = image
        self.base = base
        self.limits = _limits(limits)
        self.capacity = 1 if isolation == "container" else sandboxes_per_worker
        self.spares = spares
        self.memory_bytes = memory_bytes
        self.cpus = cpus
        self.oci_runtime = oci_runtime
        self.start_timeout_s = start_timeout_s
        self._ready: _ReadyImage | None = None
        self._lock = threading.Lock()

    def fingerprint(self) -> str:
        """Hash of the image's content, supervisor and base included, and of the limits.

        Raises:
            RuntimeFailure: There is no engine, or no image and none can be built.
        """
        facts = (self._have_image().content, msgspec.json.encode(self.limits), self.oci_runtime)
        return f"docker:{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}"

    async def start(self) -> ChannelWorker:
        """Start a container and wait until its supervisor is ready.

        Raises:
            RuntimeFailure: ``no_engine``, ``image_missing``, ``engine``; ``transport``: engine and
                client cannot share a socket; ``start``: the supervisor did not come up.
        """
        listener = Listener()
        launch = _Launch(lambda: self._spec_for(listener.folder))
        try:
            await Blocking(launch.begin)
            await launch.sign_of_life(listener.fileno(), self.start_timeout_s)
            control = await listener.accept(timeout_s=self.start_timeout_s, pid=launch.pid)
            worker = await open_worker(
                control,
                limits=self.limits,
                capacity=self.capacity,
                spares=self.spares,
                end=launch.end,
                timeout_s=self.start_timeout_s,
            )
        except RuntimeFailure as failure:
            raise await Blocking(partial(launch.explain, failure)) from failure
        except BaseException:  # given up half-way
            launch.end()
            raise
        finally:
            listener.close()
        launch.listen_no_more()
        return worker

    def _have_image(self) -> _ReadyImage:
        with self._lock:
            if self._ready is None:
                self._ready = _ready_image(self.image, self.base)
            return self._ready

    def _command(self, number: int, first_uid: int) -> tuple[str, ...]:
        return ("python3", *arguments(level="uid", slots=number, first_uid=first_uid))

    def _spec_for(self, control: Path) -> ContainerSpec:
        ready = self._have_image()
        number = slots(self.capacity, self.spares)
        first_uid = _uid_range(number, remapped=ready.remapped)
        size = f"size={self.limits.disk_bytes},nr_inodes=1k,mode=700"
        return ContainerSpec(
            image=ready.id,
            command=self._command(number, first_uid),
            mounts={CONTROL_FOLDER: str(control)},
            tmpfs={
                f"{WORK_FOLDER}/{slot}": f"{size},uid={first_uid + slot},gid={first_uid + slot}"
                for slot in range(number)
            },
            environment=_ENVIRONMENT,
            memory_bytes=self.memory_bytes,
            processes=number * self.limits.processes + 64,
            cpus=self.cpus,
            oci_runtime=self.oci_runtime,
        )


class _ReadyImage(msgspec.Struct, frozen=True):
    """An image at hand, and what the engine says of user ids."""

    id: str
    content: str
    remapped: bool


class _Launch:
    """One container from its creation to its end; may be given up at any moment."""

    def __init__(self, spec: Callable[[], ContainerSpec]) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._container = ""
        self._unwanted = False
        self._attachment: engine.Attachment | None = None
        self._words = ""
        self._running = False
        self.pid: int | None = None

    def begin(self) -> None:
        """Create and start the container; blocking."""
        spec = self._spec()
        with engine.connect() as docker:
            _reap_once(docker)
            container = docker.create(spec)
            try:
                self._attachment = docker.attach(container)
                docker.start(container)
                self.pid = docker.state(container).pid or None
                if self.pid is None:
                    self._attachment.drain(wait_s=1.0)
                    raise RuntimeFailure("start", "the container ended at once.")
            finally:
                with self._lock:
                    wanted = self.pid is not None and not self._unwanted
                    self._container = container if wanted else ""
                if not wanted:
                    self.listen_no_more()
                    docker.remove(container)

    async def sign_of_life(self, listening: int, timeout_s: float) -> None:
        """Wait until somebody connects to ``listening``, or the container ends.

        Raises:
            RuntimeFailure: It ended: nobody will connect.
        """
        assert self._attachment is not None
        deadline = time.monotonic() + timeout_s
        with select.epoll() as both:
            both.register(listening, select.EPOLLIN)
            both.register(self._attachment.fileno(), select.EPOLLIN)
            while await Readable(both.fileno(), deadline):
                if any(fd == listening for fd, _ in both.poll(0)):
                    return
                if not self._attachment.drain():
                    raise RuntimeFailure("start", "the container ended at once.")

    def end(self) -> None:
        """Remove the container; blocking. More than once is harmless."""
        self.listen_no_more()
        with self._lock:
            self._unwanted = True
            container, self._container = self._container, ""
        if container:
            with engine.connect() as docker:
                self._running = docker.state(container).status == "running"
                docker.remove(container)

    def explain(self, failure: RuntimeFailure) -> RuntimeFailure:
        """Say why the container did not become a worker, and remove it; blocking."""
        self.end()
        unreached = self._running and failure.kind == "start" and not self._words
        if unreached or "bind source path does not exist" in str(failure):
            return RuntimeFailure("transport", _NO_TRANSPORT)
        if self._words:
            return RuntimeFailure(failure.kind, f"{failure} The container said: {self._words}")
        return failure

    def listen_no_more(self) -> None:
        """Keep what the container printed and leave its output alone from here on."""
        attachment, self._attachment = self._attachment, None
        if attachment is not None:
            attachment.drain()
            self._words = attachment.text
            attachment.close()


_NO_TRANSPORT = (
    "The container runs but cannot reach this process: the engine does not share a unix socket "
    "with it (a remote engine, Docker Desktop, or a client that is itself in a container). Run on "
    'the engine\'s own machine, or choose sandbox="local".'
)

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


def _uid_range(number: int, *, remapped: bool) -> int:
    """The first of ``number`` user ids; not drawn from a seeded stream, which would repeat."""
    ids = _UIDS_REMAPPED if remapped else _UIDS
    return ids.start + number * random.SystemRandom().randrange(len(ids) // number)
