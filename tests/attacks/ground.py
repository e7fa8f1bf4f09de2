"""The worker that is attacked, its victim, and what can be seen of both from outside."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attacks.attack import PRELUDE, Attack
from toolenvs import engine
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.testing import run_together
from toolenvs.types import ExecResult, Limits

LIMITS = Limits(
    timeout_s=5.0,
    grace_s=0.2,
    memory_bytes=256 << 20,
    disk_bytes=4 << 20,
    file_bytes=2 << 20,
    output_bytes=64 << 10,
)
_PATIENCE_S = 30.0


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Poll, with a generous limit."""
    give_up = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, what
        time.sleep(0.02)


def roots() -> set[int]:
    """The first processes of all that this process has started: its own children, containers."""
    return _children() | _containers()


def _children() -> set[int]:
    return {pid for pid, parent in _parents() if parent == os.getpid()}


def _containers() -> set[int]:
    with contextlib.suppress(RuntimeFailure), engine.connect() as docker:
        return {docker.state(item.id).pid for item in docker.leftovers() if item.mine} - {0}
    return set()


def below(root: int) -> set[int]:
    """``root`` and all processes that descend from it."""
    found, before = {root}, 0
    parents = list(_parents())
    while len(found) > before:
        before = len(found)
        found |= {pid for pid, parent in parents if parent in found}
    return {pid for pid in found if Path(f"/proc/{pid}").exists()}


def lives(pid: int) -> bool:
    """Whether a process is there and not only waits to be reaped."""
    with contextlib.suppress(OSError):
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return False


def _parents() -> Iterator[tuple[int, int]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry.name}/stat").read_text(errors="replace")
                yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


class Ground:
    """One worker under attack, with a victim that has been there from the beginning.

    Args:
        runtime: what starts the worker.
    """

    def __init__(self, runtime: Runtime) -> None:
        first = _containers if runtime.name == "docker" else _children
        before = first()
        self.kind = getattr(runtime, "oci_runtime", "") or runtime.name
        self.opaque = self.kind == "runsc"  # its processes cannot be seen from outside
        self.worker: Worker = run(runtime.start())
        (self.root,) = first() - before
        self.landlock = getattr(self.worker, "hello", {}).get("landlock", 0)
        self.cgroup = self._memory_group()
        self.secret = f"VICTIM-SECRET:{secrets.token_hex(8)}"
        self.victim: Sandbox = run(self.worker.spawn(seed=1, files={"mine": self.secret}))
        told = run(
            self.victim.execute(
                f"import os, threading, time; v = 0; kept = {self.secret!r}\n"
                "beat = threading.Thread(target=time.sleep, args=(9999,), daemon=True)\n"
                "beat.start(); print(os.getpid(), os.getuid(), os.getcwd())"
            )
        )
        pid, uid, folder = told.stdout.split()
        self.where = f"VICTIM_PID, VICTIM_UID, VICTIM_FOLDER = {pid}, {uid}, {folder!r}\n"
        self.beats = 0
        self.settle()
        self.processes = len(below(self.root))
        self.memory_bytes = self.memory()

    def settle(self) -> None:
        """Let the spare that a spawn uses up be replaced."""
        if self.opaque:
            return
        counts: list[int] = []
        while len(counts) < 5 or len(set(counts[-5:])) > 1:
            counts.append(len(below(self.root)))
            time.sleep(0.02)

    def attack(self, attack: Attack) -> ExecResult:
        """Run one attack beside a call of the victim; check what must hold of any attack."""
        sandbox = run(self.worker.spawn(seed=0, files={}))
        try:
            ready = run(sandbox.execute(PRELUDE + self.where))
            assert ready.status == "ok", ready
            result, beat = run_together(
                [sandbox.execute(attack.code, timeout_s=attack.timeout_s), self.beat()]
            )
            self.check_beat(beat)
            if attack.then and not result.session_lost:
                after = run(sandbox.execute("import sys; _ = sys.stdout.write('on')"))
                assert after.status == attack.then, (attack.then, after)
                assert attack.then != "ok" or "on" in after.stdout, after
            return result
        finally:
            run(sandbox.stop())

    def check(self, attack: Attack) -> None:
        """Run an attack and see that it ends as stated, unnoticed by others, and leaves nothing."""
        result = self.attack(attack)
        held = self.kind not in attack.not_held
        ends = attack.ends if held else attack.unheld_ends
        assert not ends or result.status in ends, result
        assert not held or attack.lost in (None, result.session_lost), result
        assert result.wall_s < 30.0 + attack.timeout_s
        for text in (result.stdout, result.stderr):
            assert len(text.encode()) <= LIMITS.output_bytes
            assert self.secret not in text
        if held and attack.prints is not None and (self.landlock or not attack.landlock):
            assert re.fullmatch(attack.prints, result.stdout), (attack.prints, result)
        self.check_nothing_is_left()

    async def beat(self) -> ExecResult:
        """One call of the victim: its counter, its file, its thread, its modules."""
        return await self.victim.execute(
            "import math, numpy; v += 1\n"
            "print(v, open('mine').read() == kept, beat.is_alive(), math.pi == numpy.pi > 3,"
            " len(os.listdir('.')))"
        )

    def check_beat(self, beat: ExecResult) -> None:
        """The victim must be as it was, one call later."""
        self.beats += 1
        assert beat.status == "ok", beat
        assert beat.stdout == f"{self.beats} True True True 1\n", beat

    def check_nothing_is_left(self) -> None:
        """The victim answers, the worker is healthy, and all that an attack used is back."""
        self.check_beat(run(self.beat()))
        assert self.worker.healthy()
        if self.opaque:
            return
        wait_until(lambda: len(below(self.root)) <= self.processes, "processes are left")
        wait_until(lambda: self.files() <= {"mine"}, f"files are left: {self.files()}")
        wait_until(
            lambda: self.memory() < self.memory_bytes + (48 << 20),
            f"memory is left: {self.memory() - self.memory_bytes} bytes",
        )

    def files(self) -> set[str]:
        """Names of the files in all sandboxes' folders, as far as this user may look."""
        found: set[str] = set()
        for pid in below(self.root):
            work = Path(f"/proc/{pid}/root/work")
            with contextlib.suppress(OSError):
                for entry in work.iterdir():
                    slot = entry.is_dir() and entry.name.isdigit()
                    found |= {e.name for e in entry.iterdir()} if slot else {entry.name}
        return found

    def memory(self) -> int:
        """Bytes that the worker's processes hold, shared ones divided; and its memory files."""
        total = 0
        for pid in below(self.root):
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    total += int(line.split()[1]) * 1024 if line.startswith("Pss:") else 0
        return total + self._group_memory()

    def _memory_group(self) -> Path | None:
        """The control group of a container, as far as there is one."""
        for line in Path(f"/proc/{self.root}/cgroup").read_text().splitlines():
            number, kinds, path = line.split(":", 2)
            if self.kind == "docker" and ("memory" in kinds.split(",") or number == "0"):
                top = Path("/sys/fs/cgroup/memory" if kinds else "/sys/fs/cgroup")
                if (top / path.lstrip("/") / "memory.stat").exists():
                    return top / path.lstrip("/")
        return None

    def _group_memory(self) -> int:
        """Bytes of memory files that the container is charged for."""
        if self.cgroup is None:
            return 0
        for line in (self.cgroup / "memory.stat").read_text().splitlines():
            if line.startswith(("total_shmem ", "shmem ")):
                return int(line.split()[1])
        return 0

    def close(self) -> None:
        """End the worker and see that nothing of it is left on the machine."""
        processes = below(self.root)
        run(self.victim.stop())
        run(self.worker.stop())
        wait_until(lambda: not any(lives(pid) for pid in processes), "processes outlive the worker")
        wait_until(
            lambda: self.cgroup is None or not self.cgroup.exists(), "the control group is left"
        )
