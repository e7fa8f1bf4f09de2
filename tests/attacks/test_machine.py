"""What breaks a worker or goes beyond one: killed processes, secrets, streams, older kernels."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.attacks.attack import PRELUDE
from tests.attacks.conftest import make_runtime, open_ground
from tests.attacks.ground import LIMITS, Ground, below, lives, roots, wait_until
from tests.attacks.memory import holders
from tests.attacks.reaching import REACHING
from toolenvs import Task, ToolCall, ToolEnv, engine
from toolenvs.drivers import run
from toolenvs.engine import ContainerSpec
from toolenvs.errors import RuntimeFailure
from toolenvs.pool import SandboxPool
from toolenvs.runtimes._uids import UidRange
from toolenvs.runtimes.docker import Docker
from toolenvs.supervisor import seccomp, system
from toolenvs.testing import fresh, run_together

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
BOTH = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("local", marks=pytest.mark.local),
]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="other users' memory cannot be read")


@pytest.fixture
def fresh_ground(request: pytest.FixtureRequest, own_folder: Path) -> Iterator[Ground]:
    """A worker that the test may break."""
    ground = open_ground(request.param)
    yield ground
    ground.close()
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize("kind", BOTH)
def test_a_killed_supervisor_takes_all_along_and_is_replaced(kind: str, own_folder: Path) -> None:
    """Its sandboxes and what ran in them end; the calls fail; the pool goes on with a new one."""
    before = roots()
    pool = SandboxPool(make_runtime(kind), max_workers=1)
    sandbox = run(pool.lease(seed=0, files={}))
    (root,) = roots() - before
    ready = run(sandbox.execute(PRELUDE + "background(lambda: time.sleep(999))"))
    assert ready.status == "ok"
    processes = below(root)
    supervisor = root if kind == "docker" else min(processes - {root})

    async def kill() -> None:
        os.kill(supervisor, signal.SIGKILL)

    with pytest.raises(RuntimeFailure):
        run_together([sandbox.execute("time.sleep(60)"), kill()])
    wait_until(lambda: not any(lives(pid) for pid in processes), "some live on")
    run(pool.release(sandbox))
    another = run(pool.lease(seed=0, files={}))
    assert run(another.execute("print(1)")).stdout == "1\n"
    run(pool.release(another))
    pool.close()
    wait_until(lambda: roots() <= before, "a worker is left")
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize("kind", BOTH)
def test_a_killed_client_leaves_nothing(kind: str, tmp_path: Path) -> None:
    """No process, container or file is left of a client that was killed in the middle of a call."""
    program = f"""
        import os
        from tests.attacks.attack import PRELUDE
        from tests.attacks.conftest import make_runtime
        from tests.attacks.ground import below, roots
        from toolenvs.drivers import run
        before = roots()
        worker = run(make_runtime({kind!r}).start())
        (root,) = roots() - before
        sandbox = run(worker.spawn(seed=0, files={{}}))
        run(sandbox.execute(PRELUDE + "background(lambda: time.sleep(999))"))
        print(*below(root), flush=True)
        run(sandbox.execute("while True: pass"))
    """
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
    )
    assert client.stdout is not None
    processes = [int(word) for word in client.stdout.readline().split()]
    assert len(processes) > 2
    client.kill()
    client.wait()
    client.stdout.close()
    wait_until(lambda: not any(lives(pid) for pid in processes), "some live on")
    assert list(tmp_path.iterdir()) == []
    if kind == "docker":
        wait_until(lambda: not _containers_of(client.pid), "a container is left")


def _containers_of(client: int) -> list[str]:
    with engine.connect() as found:
        labelled = found._client.api.containers(all=True, filters={"label": engine.LABEL})
    return [item["Id"] for item in labelled if f".{client}." in item["Labels"][engine.LABEL]]


@pytest.mark.docker
def test_a_container_out_of_memory_loses_only_the_attacker(own_folder: Path) -> None:
    """The kernel ends the sandbox that took the memory, the result says so, the rest goes on."""
    runtime = Docker(
        limits={"memory_bytes": 2 << 30}, sandboxes_per_worker=2, memory_bytes=384 << 20
    )
    worker = run(runtime.start())
    victim = run(worker.spawn(seed=0, files={}))
    run(victim.execute("v = 41"))
    result = run(fresh(worker, "b = b'x' * (1 << 30)", timeout_s=9.0))
    assert (result.status, result.signal, result.session_lost) == ("memory", 9, True), result
    assert run(victim.execute("print(v + 1)")).stdout == "42\n"
    time.sleep(0.6)  # by then each kill of the kernel's is known to be somebody's
    killed = run(fresh(worker, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert killed.status == "killed"
    assert worker.healthy()
    run(worker.stop())


def test_no_two_workers_share_a_user_id() -> None:
    """A range is one worker's alone until it is given back, also where there are few."""
    ranges = [UidRange(remapped=True) for _ in range(100)]
    assert len({r.first // 512 for r in ranges}) == 100
    assert all(2_000 <= r.first < 60_000 - 511 for r in ranges)
    with pytest.raises(RuntimeFailure, match="every range of user ids"):
        ranges += [UidRange(remapped=True) for _ in range(100)]
    ranges[0].close()
    ranges[0].close()
    for taken in ranges:
        taken.close()
    UidRange(remapped=True).close()


@pytest.mark.docker
def test_workers_processes_have_ids_of_their_own(own_folder: Path) -> None:
    """No user id but the container root's is seen in two workers."""
    before = roots()
    workers = [run(make_runtime("docker").start()) for _ in range(2)]
    for worker in workers:
        run(run(worker.spawn(seed=0, files={})).execute("pass"))
    ids = []
    for root in roots() - before:
        status = [Path(f"/proc/{pid}/status").read_text() for pid in below(root)]
        ids.append({re.search(r"Uid:\s+(\d+)", text)[1] for text in status} - {"0"})  # type: ignore[index]
    assert len(ids) == 2
    assert ids[0]
    assert not ids[0] & ids[1]
    for worker in workers:
        run(worker.stop())


@needs_root
@pytest.mark.parametrize("kind", BOTH)
def test_answers_are_nowhere_in_a_worker(kind: str, own_folder: Path) -> None:
    """The gold answer is in no memory, argument, environment, file or frame of any process.

    The code of a call is found where it ran, so the search works, and nowhere else.
    """
    gold, needle = str(10**24 + secrets.randbelow(10**24)), f"NEEDLE-{secrets.token_hex(8)}"
    before = roots()
    env = ToolEnv(
        tasks=[Task(id="t", prompt="What is it?", answer=gold)],
        sandbox=make_runtime(kind),
        tools=["python_session", "submit"],
    )
    env.reset(seed=0)
    code = f"kept = '{needle}'\nprint(6 * 7)"
    call = env.format.compose([ToolCall("python_session", {"code": code})])
    observation, *_ = env.step(call)
    assert "42" in observation
    (root,) = roots() - before
    processes = below(root)
    assert holders(gold.encode(), processes) == set()
    found = holders(needle.encode(), processes)
    assert len(found) == 1
    assert root not in found
    for path in _work_files(processes):
        assert gold.encode() not in path.read_bytes()
    if kind == "docker":
        assert gold not in json.dumps(_inspect())
    env.close()


def _work_files(processes: set[int]) -> Iterator[Path]:
    for pid in processes:
        for path in Path(f"/proc/{pid}/root/work").rglob("*"):
            if path.is_file():
                yield path


def _inspect() -> list[object]:
    with engine.connect() as found:
        mine = [item.id for item in found.leftovers() if item.mine]
        return [found._client.api.inspect_container(number) for number in mine]


@pytest.mark.parametrize("kind", BOTH)
def test_streams_differ_and_transcripts_repeat(kind: str, own_folder: Path) -> None:
    """Episodes draw different numbers, numpy's old global stream too; equal seeds repeat all."""
    worker = run(make_runtime(kind).start())
    turns = (
        "import numpy, os, random, tempfile, uuid; a = numpy.random.rand(3); print(a)",
        "print(numpy.random.default_rng().random(), random.random(), uuid.uuid4())",
        "f = tempfile.NamedTemporaryFile(); print(os.path.basename(f.name), {'a', 'b', 'c'})",
        "1 / numpy.int64(0); [][random.randrange(9)]",
    )

    def transcript(seed: int) -> list[tuple[str, str, str]]:
        sandbox = run(worker.spawn(seed=seed, files={}))
        results = [run(sandbox.execute(turn)) for turn in turns]
        run(sandbox.stop())
        return [(result.status, result.stdout, result.stderr) for result in results]

    first, again, other = transcript(7), transcript(7), transcript(8)
    assert first == again
    assert [turn[0] for turn in first] == ["ok", "ok", "ok", "raised"]
    assert not {first[n][1] for n in range(2)} & {other[n][1] for n in range(2)}
    run(worker.stop())


@pytest.mark.docker
def test_a_socket_left_behind_or_found_is_of_no_use(own_folder: Path) -> None:
    """A stranger at the socket is turned away; a worker's socket is gone once it has connected."""
    stale = own_folder / "toolenvs-stale"
    stale.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(stale / "s"))
    worker = run(make_runtime("docker").start())
    assert {path.name for path in own_folder.iterdir()} == {"toolenvs-stale"}
    look = "import os\ntry: print(os.listdir('/run/control'))\nexcept OSError: print('refused')"
    assert run(fresh(worker, look)).stdout == "refused\n"
    run(worker.stop())
    (stale / "s").unlink()
    stale.rmdir()


class OldDocker(Docker):
    """Containers of a kernel that has no Landlock, as far as they can see."""

    def _spec_for(self, *arguments: object) -> ContainerSpec:
        spec = super()._spec_for(*arguments)  # type: ignore[arg-type]
        return msgspec.structs.replace(spec, seccomp=_profile_without_landlock())


def _profile_without_landlock() -> str:
    names = ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]
    rule = {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": 38}
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]})


@pytest.mark.docker
def test_without_landlock_user_ids_hold(own_folder: Path) -> None:
    """On a kernel without it no file, memory or channel of another sandbox is reached."""
    runtime = OldDocker(limits=LIMITS, sandboxes_per_worker=4, memory_bytes=1 << 30)
    ground = Ground(runtime)
    assert ground.landlock == 0
    for attack in REACHING:
        ground.check(attack)
    ground.close()


@pytest.mark.local
def test_without_landlock_namespaces_hold() -> None:
    """The same of ``local``: a client that cannot make rules starts a worker that is attacked."""
    program = """
        from tests.attacks.conftest import make_runtime
        from tests.attacks.ground import Ground
        from tests.attacks.reaching import REACHING
        from tests.attacks.test_machine import forget_landlock
        forget_landlock()
        ground = Ground(make_runtime("local"))
        assert ground.landlock == 0
        for attack in REACHING:
            ground.check(attack)
        ground.close()
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT,
        env=ENVIRONMENT,
        check=True,
    )


def forget_landlock() -> None:
    """Put this process under a filter that answers as a kernel without Landlock does."""
    code = [struct.pack("HBBI", 0x20, 0, 0, 0)]
    code += [struct.pack("HBBI", 0x15, 2 - n, int(n == 2), 444 + n) for n in range(3)]
    code += [struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | 38)]
    code += [struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)]
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.restrict(b"".join(code))
