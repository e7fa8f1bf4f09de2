"""Sandboxes apart by user id, as in a container, without a container engine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from toolenvs.channel import ChannelWorker
from toolenvs.drivers import run
from toolenvs.testing import CONTRACT_PROBES, PYTHON_PROBES, Probe, fresh, run_together
from toolenvs.types import Limits

from .uid_level import start_uid_worker

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(os.geteuid() != 0, reason="changing user ids needs root"),
]


@pytest.fixture(scope="module")
def worker() -> Iterator[ChannelWorker]:
    """A worker with few places, so that they are used again soon."""
    worker = start_uid_worker(Limits(), capacity=4)
    yield worker
    run(worker.stop())


@pytest.mark.parametrize("probe", [*CONTRACT_PROBES, *PYTHON_PROBES], ids=lambda p: p.__name__)
def test_the_uid_level_keeps_the_promises(worker: ChannelWorker, probe: Probe) -> None:
    """The promise is the probe's docstring."""
    run(probe(worker))


def test_each_sandbox_has_an_id_and_a_folder_of_its_own(worker: ChannelWorker) -> None:
    """Ids differ, none is root's, no capability is left, and folders are closed to others."""
    sandboxes = [run(worker.spawn(seed=0, files={})) for _ in range(4)]
    code = "import os; open('secret', 'w').close(); print(*os.getresuid(), *os.getresgid())"
    ids = [run(sandbox.execute(code)).stdout for sandbox in sandboxes]
    assert len(set(ids)) == 4
    assert all(len(set(line.split())) == 1 and line.split()[0] != "0" for line in ids)
    code = (
        "import os\nopened = 0\nfor n in range(8):\n"
        "    try: open(f'/work/{n}/secret'); opened += 1\n    except OSError: pass\nprint(opened)"
    )
    assert [run(sandbox.execute(code)).stdout for sandbox in sandboxes] == ["1\n"] * 4
    for sandbox in sandboxes:
        run(sandbox.stop())


def test_a_sandbox_can_signal_nobody_else(worker: ChannelWorker) -> None:
    """Killing everything that can be named reaches only the own processes."""
    victim = run(worker.spawn(seed=0, files={}))
    run(victim.execute("v = 41"))
    code = "import os, signal\nfor pid in range(1, 500):\n    if pid != os.getpid():\n"
    code += "        try: os.kill(pid, signal.SIGKILL)\n        except OSError: pass"
    assert run(fresh(worker, code)).status == "ok"
    assert run(fresh(worker, "import os; os.kill(-1, 9)")).status in ("ok", "killed")
    assert run(victim.execute("print(v + 1)")).stdout == "42\n"
    run(victim.stop())


def test_leftovers_of_a_sandbox_end_with_it(worker: ChannelWorker) -> None:
    """A place is given to the next sandbox only after every process of the last one is gone."""
    code = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    if os.fork() == 0:\n        while True: open('beat', 'a').write('x')\n    os._exit(0)"
    )
    for _ in range(6):
        sandbox = run(worker.spawn(seed=0, files={}))
        run(sandbox.execute(code))
        run(sandbox.stop())
    look = "import os, time; time.sleep(0.1); print(os.listdir('.'))"
    sandboxes = [run(worker.spawn(seed=0, files={})) for _ in range(4)]
    assert {r.stdout for r in run_together([s.execute(look) for s in sandboxes])} == {"[]\n"}
    for sandbox in sandboxes:
        run(sandbox.stop())
