"""One engine's API: images, and containers that start and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from toolenvs.engine.attachment import Attachment
from toolenvs.engine.faults import failures
from toolenvs.engine.owner import LABEL, owner_alive, owner_labels
from toolenvs.engine.records import (
    ContainerSpec,
    ContainerState,
    EngineReport,
    ImageFacts,
    Leftover,
)
from toolenvs.errors import RuntimeFailure

Progress = Callable[[str], None]
_BUILD_TIMEOUT_S = 900.0  # of silence: compiling bytecode says nothing for long
_CALL_TIMEOUT_S = 60.0


class Engine:
    """An engine's API; made by ``connect`` and closed by ``with``.

    Args:
        client: a ``docker.DockerClient`` whose engine has answered.
        where: its address.
    """

    def __init__(self, client: Any, where: str) -> None:
        client.api.timeout = _CALL_TIMEOUT_S
        self._client = client
        self.where = where

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def report(self, *, hub: bool | None = None) -> EngineReport:
        """Describe the engine; ``hub`` is passed on into the report."""
        with failures("The engine did not describe itself"):
            info = self._client.info()
            version = self._client.version()
        name = version.get("Components", [{}])[0].get("Name", "Engine")
        options = " ".join(info.get("SecurityOptions") or ())
        return EngineReport(
            found=True,
            where=self.where,
            version=f"{name} {version.get('Version', '')}".strip(),
            storage_driver=info.get("Driver", ""),
            runtimes=tuple(sorted(info.get("Runtimes") or ())),
            remapped="name=userns" in options or "name=rootless" in options,
            hub=hub,
        )

    # Images.

    def can_pull(self, reference: str, *, timeout_s: float = 5.0) -> bool:
        """Tell whether the engine reaches the registry of ``reference`` and finds it there."""
        usual, self._client.api.timeout = self._client.api.timeout, timeout_s
        try:
            with failures("The registry was not reached"):
                self._client.api.inspect_distribution(reference)
        except RuntimeFailure:
            return False
        finally:
            self._client.api.timeout = usual
        return True

    def pull(self, reference: str, *, progress: Progress) -> None:
        """Fetch an image from its registry."""
        progress(f"pulling {reference}")
        with failures(f"{reference} was not pulled"):
            name, tag = (reference, None) if "@" in reference else _split_tag(reference)
            self._client.images.pull(name, tag=tag)

    def image(self, reference: str) -> ImageFacts | None:
        """Return the image of that reference or id, or None when the engine does not hold it."""
        from docker.errors import ImageNotFound

        with failures(f"The image {reference} was not inspected"):
            try:
                found = self._client.api.inspect_image(reference)
            except ImageNotFound:
                return None
        return ImageFacts(found["Id"], found.get("Config", {}).get("Labels") or {})

    def images(self, labels: Mapping[str, str]) -> list[ImageFacts]:
        """Return the images that carry all these labels, newest first."""
        wanted = [f"{key}={value}" for key, value in labels.items()]
        with failures("The images were not listed"):
            found = self._client.api.images(filters={"label": wanted})
        found.sort(key=lambda image: image["Created"], reverse=True)
        return [ImageFacts(image["Id"], image.get("Labels") or {}) for image in found]

    def tag(self, image_id: str, reference: str) -> None:
        """Give an image one more name."""
        with failures(f"The image was not tagged {reference}"):
            self._client.api.tag(image_id, *_split_tag(reference))

    def build(
        self,
        context: BinaryIO,
        *,
        dockerfile: str,
        arguments: Mapping[str, str],
        labels: Mapping[str, str],
        progress: Progress,
    ) -> str:
        """Build an image from a tar of its context, without any network, and return its id."""
        with failures("The image was not built"):
            lines = self._client.api.build(
                fileobj=context,
                custom_context=True,
                dockerfile=dockerfile,
                buildargs=dict(arguments),
                labels=dict(labels),
                network_mode="none",
                rm=True,
                forcerm=True,
                timeout=_BUILD_TIMEOUT_S,
                decode=True,
            )
            return _built_id(lines, progress)

    def import_image(
        self,
        root: Path,
        *,
        reference: str,
        environment: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> str:
        """Make an image of a tar file that holds a whole root folder, and return its id."""
        changes = [f"ENV {key}={value}" for key, value in environment.items()]
        changes += [f"LABEL {key}={value}" for key, value in labels.items()]
        name, tag = _split_tag(reference)
        with failures(f"{root} was not imported"), root.open("rb") as tar:
            answer = self._client.api.import_image_from_data(
                tar, repository=name, tag=tag, changes=changes
            )
            return str(msgspec.json.decode(answer.strip().splitlines()[-1])["status"])

    def output(self, image: str, argv: tuple[str, ...]) -> str:
        """Run a short program of an image in a closed container and return what it printed."""
        with failures(f"{argv[0]} did not run in {image}"):
            container = self._client.containers.create(
                image,
                list(argv),
                entrypoint="",
                network_mode="none",
                read_only=True,
                cap_drop=["ALL"],
                labels=owner_labels(),
            )
            try:
                container.start()
                status = container.wait()["StatusCode"]
                printed = container.logs(stdout=True, stderr=status != 0).decode("utf-8", "replace")
            finally:
                container.remove(force=True)
        if status:
            raise RuntimeFailure("engine", f"{argv[0]} failed in {image}: {printed.strip()}")
        return str(printed)

    def remove_image(self, reference: str) -> None:
        """Take a name from an image; without another name the image goes too."""
        with failures(f"{reference} was not removed", ended_is_fine=True):
            self._client.api.remove_image(reference)

    # Containers.

    def create(self, spec: ContainerSpec) -> str:
        """Create a container that the engine removes when it ends, and return its id.

        It has no network, a read-only root, no capability but ``spec.capabilities``, no way to
        gain more, no swap, no core files, no log on the host, and nothing that tells of the host.
        """
        from docker.types import LogConfig, Mount, Ulimit

        mounts = [
            Mount(at, source, type="bind", read_only=True) for at, source in spec.mounts.items()
        ]

        options: dict[str, Any] = {"runtime": spec.oci_runtime} if spec.oci_runtime else {}
        if spec.cpus:
            options["nano_cpus"] = int(spec.cpus * 1e9)
        filters = [f"seccomp={spec.seccomp}"] if spec.seccomp else []
        with failures("The container was not created"):
            container = self._client.containers.create(
                spec.image,
                list(spec.command),
                entrypoint="",
                user=spec.user,
                hostname="sandbox",
                environment=dict(spec.environment),
                labels=owner_labels(),
                network_mode="none",
                dns=["127.0.0.1"],  # else /etc/resolv.conf is the host's
                dns_search=["."],
                read_only=True,
                cap_drop=["ALL"],
                cap_add=list(spec.capabilities),
                security_opt=["no-new-privileges", *filters],
                pids_limit=spec.processes,
                mem_limit=spec.memory_bytes,
                memswap_limit=spec.memory_bytes,
                ulimits=[
                    Ulimit(name="core", soft=0, hard=0),
                    Ulimit(name="nofile", soft=1024, hard=1024),
                ],
                log_config=LogConfig(type=LogConfig.types.NONE),
                oom_score_adj=500,
                auto_remove=True,
                stdin_open=spec.stdin,
                mounts=mounts,
                tmpfs=dict(spec.tmpfs),
                **options,
            )
        return str(container.id)

    def attach(self, container_id: str) -> Attachment:
        """Take hold of a container's streams; do this before ``start`` to miss nothing."""
        # No key sequence must end it: what goes in is not typed (Podman looks for one).
        parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "detachKeys": ""}
        with failures("The container's output was not attached"):
            stream = self._client.api.attach_socket(container_id, parameters)
        return Attachment(stream)

    def start(self, container_id: str) -> None:
        """Start a created container."""
        with failures("The container did not start"):
            self._client.api.start(container_id)

    def state(self, container_id: str) -> ContainerState:
        """Return a container's state; ``"gone"`` when the engine knows it no longer."""
        from docker.errors import NotFound

        with failures("The container was not inspected"):
            try:
                state = self._client.api.inspect_container(container_id)["State"]
            except NotFound:
                return ContainerState("gone")
        return ContainerState(
            state["Status"], state["ExitCode"], state["OOMKilled"], state.get("Pid") or 0
        )

    def execute(self, container_id: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        """Run a program in a running container (``docker exec``): its exit status and output."""
        with failures(f"{argv[0]} did not run in the container"):
            status, output = self._client.containers.get(container_id).exec_run(list(argv))
        return int(status), bytes(output or b"")

    def kill(self, container_id: str) -> None:
        """End a container's processes at once; harmless when it has ended."""
        with failures("The container was not killed", ended_is_fine=True):
            self._client.api.kill(container_id)

    def remove(self, container_id: str) -> None:
        """End and remove a container, and wait until it is gone; harmless when it is already."""
        with failures("The container was not removed", ended_is_fine=True):
            self._client.api.remove_container(container_id, force=True, v=True)
        give_up = time.monotonic() + _CALL_TIMEOUT_S  # the engine may be removing it by itself
        while self.state(container_id).status != "gone":
            if time.monotonic() > give_up:
                raise RuntimeFailure(
                    "engine",
                    f"The container {container_id[:12]} does not end. Restart the engine.",
                )
            time.sleep(0.02)

    def leftovers(self) -> list[Leftover]:
        """Return every container of this package that the engine holds, in whatever state."""
        with failures("The containers were not listed"):
            found = self._client.api.containers(all=True, filters={"label": LABEL})
        local = self.where.startswith("unix:")
        return [
            Leftover(
                id=item["Id"],
                image=item["Image"],
                status=item["State"],
                owner_alive=owner_alive(item["Labels"][LABEL], engine_is_here=local),
                mine=item["Labels"][LABEL] == owner_labels()[LABEL],
            )
            for item in found
        ]


def _split_tag(reference: str) -> tuple[str, str | None]:
    """Split ``name:tag``; a colon before the last slash belongs to a registry's port."""
    name, colon, tag = reference.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (reference, None)


def _built_id(lines: Iterable[Mapping[str, Any]], progress: Progress) -> str:
    image_id, last = "", ""
    for line in lines:
        if "error" in line:
            raise RuntimeFailure("engine", f"The image was not built: {line['error']} {last}")
        image_id = (line.get("aux") or {}).get("ID", image_id)
        text = str(line.get("stream", "")).strip()
        if text.startswith(("Step", "STEP")):
            progress(f"{text[:80]} ..." if len(text) > 84 else text)
        last = text or last
    if not image_id:
        raise RuntimeFailure("engine", f"The image was not built: the engine ended with {last!r}.")
    return image_id
