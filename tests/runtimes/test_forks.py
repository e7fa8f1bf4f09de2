"""Branches of a sandbox: independent of each other, or made by nobody and rebuilt elsewhere."""

from __future__ import annotations

import contextlib
import copy
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.conftest import DOCKER, LOCAL, make_runtime, start
from tests.runtimes.test_levels import engine_allows
from tests.supervisor.uid_level import start_uid_worker
from toolenvs.channel import ChannelWorker
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Worker
from toolenvs.slot import ChannelSandbox
from toolenvs.types import Limits, Task, ToolCall

PLACES = 6
LIMITS = Limits(timeout_s=5.0)
UIDS = pytest.param("uids", marks=pytest.mark.local)
SPACES = pytest.param("docker-R", marks=pytest.mark.docker)


def make(name: str) -> Any:
    """A runtime with few places; ``docker``: with user ids, ``docker-R``: with namespaces."""
    places = {"capacity" if name == "local" else "sandboxes_per_worker": PLACES}
    if name == "docker-R":
        if not engine_allows("R"):
            pytest.skip("the engine does not allow level R")
        return make_runtime("docker", level="R", limits=LIMITS, **places)
    if name == "docker":
        return make_runtime("docker", level="U", limits=LIMITS, **places)
    return make_runtime(name, limits=LIMITS, **places)


@pytest.fixture(scope="module", params=[LOCAL, DOCKER, SPACES])
def runtime(request: pytest.FixtureRequest) -> Any:
    """Every runtime whose sandboxes can be forked, in turn."""
    return make(request.param)


@pytest.fixture(scope="module", params=[LOCAL, UIDS, DOCKER, SPACES])
def worker(request: pytest.FixtureRequest) -> Iterator[ChannelWorker]:
    """A started worker of each, and one with user ids that takes no engine."""
    if request.param == "uids":
        if os.geteuid():
            pytest.skip("user ids take root")
        started: Worker = start_uid_worker(LIMITS, capacity=PLACES)
    else:
        started = start(make(request.param))
    assert isinstance(started, ChannelWorker)
    yield started
    run(started.stop())


@pytest.fixture
def sandbox(worker: ChannelWorker) -> Iterator[ChannelSandbox]:
    """A sandbox with a file and a variable."""
    made = run(worker.spawn(seed=3, files={"a.txt": "first"}))
    assert said(made, "x = [1]; print(len(x))") == "1\n"
    yield made
    run(made.stop())


def said(sandbox: ChannelSandbox, code: str) -> str:
    """What a good call prints."""
    result = run(sandbox.execute(code))
    assert result.status == "ok", (result.status, result.stderr)
    return result.stdout


def forked(sandbox: ChannelSandbox) -> ChannelSandbox:
    """A branch, which must be possible."""
    branch = run(sandbox.fork())
    assert branch is not None
    return branch


def refused(sandbox: ChannelSandbox, code: str) -> None:
    """The result of this code does not count, and the sandbox has ended."""
    with pytest.raises(RuntimeFailure) as caught:
        run(sandbox.execute(code))
    assert caught.value.kind == "branch"
    assert sandbox.ended


def used_places(worker: ChannelWorker) -> int:
    """Sandboxes in use: the capacity without those that still fit in."""
    more = []
    with contextlib.suppress(RuntimeFailure):
        while True:
            more.append(run(worker.spawn(seed=0, files={})))
    for sandbox in more:
        assert said(sandbox, "import os; print(os.listdir())") == "[]\n"
        run(sandbox.stop())
    return worker.capacity - len(more)


def test_a_branch_has_variables_and_output_of_its_own(sandbox: ChannelSandbox) -> None:
    """What one of three does to its variables and prints is nothing to the others."""
    first, second = forked(sandbox), forked(sandbox)
    both = [sandbox, first, second]
    assert [said(one, f"x.append({n}); print(x)") for n, one in enumerate(both)] == [
        f"[1, {n}]\n" for n in range(3)
    ]
    assert [said(one, "print(x, open('a.txt').read())") for one in reversed(both)] == [
        f"[1, {n}] first\n" for n in (2, 1, 0)
    ]
    further = forked(second)
    assert said(further, "x.append(9); print(x)") == "[1, 2, 9]\n"
    assert said(second, "print(x)") == "[1, 2]\n"
    for one in (first, second, further):
        run(one.stop())


def test_random_streams_go_on_as_they_would_have(worker: ChannelWorker) -> None:
    """Every stream continues in each branch as it does without one."""
    draw = (
        "import os, random, tempfile, uuid, numpy as np\n"
        "print(random.random(), np.random.rand(), np.random.default_rng().random(), "
        "os.urandom(4), uuid.uuid4(), tempfile.mktemp('', '', 'x'))"
    )
    alone = run(worker.spawn(seed=3, files={}))
    said(alone, draw)
    expected = said(alone, draw)
    parent = run(worker.spawn(seed=3, files={}))
    said(parent, draw)
    branches = [forked(parent), forked(parent)]
    assert [said(one, draw) for one in (*branches, parent)] == [expected] * 3
    for one in (alone, parent, *branches):
        run(one.stop())


def test_what_cannot_be_done_apart_ends_the_branch_alone(sandbox: ChannelSandbox) -> None:
    """A file, a process, a signal: the one that tries moves out, the others see nothing of it."""
    for code in (
        "open('b.txt', 'w').write('x')",
        "import os; os.remove('a.txt')",
        "import os; os.mkdir('d')",
        "import subprocess; print(subprocess.run(['true']))",
        "import os; os.fork()",
        "import os, signal; os.kill(-1, signal.SIGKILL)",
        "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)",
        "import os; os.setpriority(os.PRIO_USER, 0, 19)",
        "import resource; resource.prlimit(2, resource.RLIMIT_NOFILE, (0, 0))",
        "import os; os._exit(3)",
    ):
        branch = forked(sandbox)
        refused(branch, code)
    assert said(sandbox, "import os; print(x, os.listdir(), open('a.txt').read())") == (
        "[1] ['a.txt'] first\n"
    )


def test_the_first_goes_on_as_it_would_have(sandbox: ChannelSandbox) -> None:
    """It writes files and starts processes; a branch from before moves out, one from after not."""
    before = forked(sandbox)
    told = "import subprocess; print(subprocess.getoutput('echo second > b.txt; cat b.txt'))"
    assert said(sandbox, told) == "second\n"
    after = forked(sandbox)
    refused(before, "import os; print(os.listdir())")
    assert said(after, "print(x, open('b.txt').read())") == "[1] second\n\n"
    said(sandbox, "p = subprocess.Popen(['sleep', '60'])")
    refused(after, "print(1)")
    assert run(sandbox.fork()) is None
    said(sandbox, "p.kill(); p.wait()")
    last = forked(sandbox)
    assert said(last, "print(x)") == "[1]\n"
    run(last.stop())


def test_ordinary_code_stays_in_the_branch(sandbox: ChannelSandbox) -> None:
    """Imports, threads, errors, a time limit and much memory are no reason to move out."""
    branch = forked(sandbox)
    assert said(branch, "import decimal, sympy; print(sympy.solve('x**2-4'))") == "[-2, 2]\n"
    threads = "import threading\nt = threading.Thread(target=print, args=(7,)); t.start(); t.join()"
    assert said(branch, threads) == "7\n"
    assert run(branch.execute("1 / 0")).status == "raised"
    assert run(branch.execute("bytes(1 << 40)")).status == "memory"
    assert run(branch.execute("raise SystemExit(3)")).exit_code == 3
    late = run(branch.execute("while True: pass", timeout_s=0.3))
    assert (late.status, late.session_lost) == ("timeout", False)
    assert said(branch, "print(x)") == "[1]\n"
    run(branch.stop())


@pytest.mark.parametrize(
    "code",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import subprocess; p = subprocess.Popen(['sleep', '60'])",
        "import subprocess; p = subprocess.Popen('sleep 60 & disown', shell=True); p.wait()",
        "f = open('a.txt')",
        "import mmap; m = mmap.mmap(-1, 4096)",
        "import os; ends = os.pipe()",
        "import signal; signal.setitimer(signal.ITIMER_REAL, 60)",
    ],
)
def test_what_a_fork_would_share_or_lose_keeps_it_from_being_made(
    sandbox: ChannelSandbox, code: str
) -> None:
    """The sandbox then goes on as if nobody had asked, its processes too."""
    said(sandbox, code)
    assert run(sandbox.fork()) is None
    assert said(sandbox, "x.append(2); open('c.txt', 'w').write('x'); print(x)") == "[1, 2]\n"
    if "sleep 60" in code or "'sleep'" in code:
        there = said(sandbox, "import os; os.kill(-1, 0); print('there')")
        assert there == "there\n"


def test_places_are_counted_and_freed(worker: ChannelWorker, sandbox: ChannelSandbox) -> None:
    """Each branch takes one, whoever of a family goes first; what is freed is empty."""
    branches = [forked(sandbox) for _ in range(PLACES - 1)]
    assert run(sandbox.fork()) is None
    assert used_places(worker) == PLACES
    run(sandbox.stop())
    assert used_places(worker) == PLACES - 1
    assert said(branches[0], "print(x, open('a.txt').read())") == "[1] first\n"
    run(branches.pop().stop())
    branches.append(forked(branches[0]))
    for branch in branches:
        assert said(branch, "print(x, open('a.txt').read())") == "[1] first\n"
        run(branch.stop())
    assert used_places(worker) == 0


HOLDS_ON = """
import os, sys
child = sys.modules["supervisor.child"]
class Held:
    def __getattr__(self, name):
        return getattr(os, name)
    def close(self, number):
        pass
child.os = Held()
"""


def test_who_keeps_the_other_s_channel_gets_no_branch(sandbox: ChannelSandbox) -> None:
    """Code that holds on to what a fork hands through is found out from outside."""
    said(sandbox, HOLDS_ON)
    assert run(sandbox.fork()) is None


STAYS_FREE = "import sys; sys.modules['supervisor.child'].seccomp.restrict = lambda code: None"


@pytest.mark.parametrize(
    "act",
    [
        "open('a.txt', 'w').write('word')",
        "open('b', 'w').close(); import os; os.remove('b')",
        "import os, time\nif os.fork() == 0: time.sleep(60)",
    ],
)
def test_who_escapes_the_rules_of_a_family_spoils_what_it_tells(
    sandbox: ChannelSandbox, act: str
) -> None:
    """No result of a branch counts that could depend on what another one has done."""
    said(sandbox, STAYS_FREE)
    first, second = forked(sandbox), forked(sandbox)
    refused(first, act)
    refused(second, "print(open('a.txt').read())")


def test_who_kills_its_family_does_not_end_their_episodes(sandbox: ChannelSandbox) -> None:
    """The death of a branch is nobody's result."""
    branch = forked(sandbox)
    said(sandbox, "import os, signal; os.kill(-1, signal.SIGKILL)")  # all but itself
    refused(branch, "print(1)")
    assert said(sandbox, "print(x)") == "[1]\n"


@pytest.mark.docker
def test_over_a_stream_there_are_no_branches() -> None:
    """Where descriptors do not reach the child nothing is tried."""
    worker = start(make_runtime("docker-stream"))
    sandbox = run(worker.spawn(seed=1, files={}))
    assert isinstance(sandbox, ChannelSandbox)
    said(sandbox, "x = 1")
    assert run(sandbox.fork()) is None
    said(sandbox, "print(x)")
    run(worker.stop())


def private_bytes(pattern: str) -> list[int]:
    """New memory of each process on this machine that has this name."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text().strip() == pattern:
                lines = (folder / "smaps_rollup").read_text().splitlines()
                kinds = ("Private_Dirty:", "Private_Clean:")
                numbers = [int(line.split()[1]) for line in lines if line.startswith(kinds)]
                found.append(sum(numbers) << 10)
        except OSError:
            continue
    return found


def test_eight_branches_of_a_large_episode_cost_little_memory(runtime: Any) -> None:
    """Each of eight forks of an episode that holds 50 MB takes less than 2 MB for itself."""
    bigger = make_like(runtime)
    pool = SandboxPool(bigger, max_workers=1)
    tasks = [Task(id="t", prompt="p", answer="1")]
    env = ToolEnv(tasks=tasks, tools=["python_session"], sandbox=pool)
    try:
        env.reset(seed=1)
        name = f"b{time.monotonic_ns() % 10**9}"
        code = (
            f"import ctypes; ctypes.CDLL(None).prctl(15, b'{name}')\n"
            "import numpy as np; a = np.ones(50 * 131072); print(a.nbytes)"
        )
        observation = env.act([ToolCall("python_session", {"code": code})])[0]
        assert "52428800" in observation
        branches = env.fork(8)
        sizes = private_bytes(name)
        if sizes:  # as root only
            assert len(sizes) == 9
            assert max(sizes) < 2 << 20, sizes
        for n, branch in enumerate([env, *branches]):
            code = f"a[0] += {n}; print(a[0], a[1])"
            observation = branch.act([ToolCall("python_session", {"code": code})])[0]
            assert f"{1.0 + n} 1.0" in observation
            assert branch.stats["restarts"] == 0
        for branch in branches:
            branch.close()
    finally:
        env.close()
        pool.close()


def make_like(runtime: Any) -> Any:
    """The same runtime with room for nine."""
    twin = copy.copy(runtime)
    twin.capacity = 12
    return twin


def test_an_episode_goes_on_where_its_branch_has_to_move_out(runtime: Any) -> None:
    """Files and processes work in every branch, as if it had been played from the start."""
    pool = SandboxPool(runtime, max_workers=1)
    tasks = [Task(id="t", prompt="p", answer="1", files={"a.txt": "first"})]
    env = ToolEnv(tasks=tasks, tools=["python_session"], sandbox=pool)

    def tell(one: ToolEnv, code: str) -> str:
        return str(one.act([ToolCall("python_session", {"code": code})])[0])

    try:
        env.reset(seed=1)
        tell(env, "import random; x = random.random(); open('b.txt', 'w').write('second')")
        branches = [env, *env.fork(2)]
        for n, one in enumerate(branches):
            tell(one, f"open('a.txt', 'a').write(str({n}))")
        expected = [f"first{n} second" for n in range(3)]
        code = "import subprocess; print(subprocess.getoutput('cat a.txt; echo; cat b.txt'), x)"
        shown = [" ".join(tell(one, code).split()) for one in branches]
        assert all(words in text for words, text in zip(expected, shown, strict=True)), shown
        assert len({text.rsplit(" ", 2)[-1] for text in shown}) == 1
        assert [one.stats["restarts"] for one in branches] == [0, 0, 0]
        for one in branches[1:]:
            one.close()
    finally:
        env.close()
        pool.close()
