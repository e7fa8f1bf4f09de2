"""A container engine of the tests' own, which they may kill."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.ground import wait_until
from toolenvs import engine, images
from toolenvs.errors import RuntimeFailure
from toolenvs.supervisor import system

_START_S, _ATTEMPTS = 40.0, 3
_RUNSC = (
    '{"runtimes": {"runsc": {"path": "%s", "runtimeArgs": '
    '["--platform=ptrace", "--network=none", "--ignore-cgroups"]}}}'
)


class OwnEngine:
    """A Docker engine with its own data, socket and containerd.

    Args:
        folder: for all that; on a file system on which layers can be stacked.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None
        runsc = shutil.which("runsc")
        (folder / "daemon.json").write_text(_RUNSC % runsc if runsc else "{}")

    def start(self) -> None:
        """Start it and wait until it answers; skip the test where it does not."""
        for _ in range(_ATTEMPTS):  # its containerd is not always up in time after a crash
            self._process = self._launch()
            give_up = time.monotonic() + _START_S
            while self._process.poll() is None and time.monotonic() < give_up:
                if self._answers():
                    return
                time.sleep(0.1)
            self.stop()
        pytest.skip(f"no engine of our own: {(self.folder / 'log').read_text()[-300:]}")

    def _launch(self) -> subprocess.Popen[bytes]:
        folder = self.folder
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    *("dockerd", "--host", self.address, "--config-file", folder / "daemon.json"),
                    *("--data-root", folder / "data", "--exec-root", folder / "exec"),
                    *("--pidfile", folder / "pid", "--bridge", "none"),
                    *("--iptables=false", "--ip6tables=false"),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        with contextlib.suppress(RuntimeFailure), engine.connect():
            return True
        return False

    def kill(self) -> None:
        """SIGKILL to the engine; its containerd goes with it, the containers stay."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it as a service manager does."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30.0)
            except subprocess.TimeoutExpired:
                self.kill()

    def shims(self) -> set[int]:
        """The processes that keep its containers, one each."""
        found = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                if b"containerd-shim" in words and str(self.folder).encode() in words:
                    found.add(int(entry.name))
        return found


@contextlib.contextmanager
def own_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    """Run an engine that is the one that everything finds; skip where none can be run."""
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("an engine of our own takes root and dockerd")
    with engine.connect() as shared:
        base = images.ensure_image("python").id
        content = b"".join(shared._client.api.get_image(base))
        folder = Path(tempfile.mkdtemp(prefix="toolenvs-engine-", dir="/var/tmp"))
    own = OwnEngine(folder)
    monkeypatch.setenv("DOCKER_HOST", own.address)
    try:
        own.start()
        with engine.connect() as docker:
            docker._client.api.load_image(content)
        yield own
        wait_until(lambda: not own.shims(), "a container is left")
    finally:
        own.stop()
        for pid in own.shims():
            os.kill(pid, signal.SIGKILL)
        _unmount(folder)
        shutil.rmtree(folder)


def _unmount(folder: Path) -> None:
    """Take away what a killed engine has left mounted: its data's folder upon itself."""
    for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        place = line.split()[4]
        if Path(place).is_relative_to(folder):
            system.unmount(place)
