"""The embedded runtime: what is special about it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolenvs.channel import ChannelWorker
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.runtimes.local import Local
from toolenvs.supervisor import house, system
from toolenvs.testing import fresh
from toolenvs.types import Limits

from .conftest import start

pytestmark = pytest.mark.local
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def worker() -> Iterator[ChannelWorker]:
    """One worker for all tests that do not end it."""
    worker = start(Local(Limits(timeout_s=5.0), capacity=4))
    assert isinstance(worker, ChannelWorker)
    yield worker
    run(worker.stop())


def processes_of(marker: str) -> list[int]:
    """Processes of this machine that hold ``marker`` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if marker in line:
                found.append(int(entry.name))
    return found


def test_the_tree_is_neutral_and_read_only(worker: ChannelWorker) -> None:
    """Code sees /work, /opt and /usr, an own user, and can write to its folder alone."""
    code = (
        "import os, numpy, sys\nprint(os.getcwd(), os.getuid(), numpy.__file__.split('/')[1])\n"
        "for place in ('/', '/usr', '/opt', '/etc', '/dev', '/tmp', '/proc', '/opt/site'):\n"
        "    try: open(place + '/x', 'w'); print('wrote', place)\n"
        "    except OSError: pass"
    )
    assert run(fresh(worker, code)).stdout == "/work 1000 opt\n"


def test_what_the_host_holds_is_not_there(worker: ChannelWorker) -> None:
    """Files of the machine outside /usr cannot be opened, however they are named."""
    for path in (__file__, "/etc/hostname", "/proc/self/mountinfo", "/sys/kernel", "/.old"):
        result = run(fresh(worker, f"open({path!r})"))
        assert result.status == "raised", path


def test_only_the_offered_packages_can_be_imported(worker: ChannelWorker) -> None:
    """The client's own environment is not the sandbox's."""
    code = (
        "import importlib.util as u\n"
        "print([bool(u.find_spec(n)) for n in ('sympy', 'scipy', 'msgspec', 'toolenvs', 'pip')])"
    )
    assert run(fresh(worker, code)).stdout == "[True, True, False, False, False]\n"


def test_programs_can_be_run(worker: ChannelWorker) -> None:
    """A shell, pipes and the interpreter itself work, with the same libraries."""
    code = (
        "import subprocess, sys\n"
        "print(subprocess.run('echo abc | rev', shell=True, capture_output=True).stdout)\n"
        "code = 'import numpy; print(numpy.arange(3).sum())'\n"
        "print(subprocess.run([sys.executable, '-c', code], capture_output=True).stdout)"
    )
    assert run(fresh(worker, code)).stdout == "b'cba\\n'\nb'3\\n'\n"


def test_nothing_is_left_after_stop() -> None:
    """When ``stop`` returns, no process of the worker is left, whatever ran in it."""
    worker = start(Local(capacity=2))
    sandbox = run(worker.spawn(seed=0, files={}))
    marker = f"100000{os.getpid()}"
    run(sandbox.execute(f"import subprocess; subprocess.Popen(['sleep', '{marker}'])"))
    assert processes_of(marker)
    run(worker.stop())
    assert not processes_of(marker)


def test_a_killed_client_leaves_nothing() -> None:
    """SIGKILL to the client ends the supervisor and all that runs in its sandboxes."""
    marker = f"200000{os.getpid()}"
    script = (
        "from toolenvs.drivers import run\nfrom toolenvs.runtimes.local import Local\n"
        "w = run(Local(capacity=2).start())\ns = run(w.spawn(seed=0, files={}))\n"
        f"run(s.execute(\"import subprocess; subprocess.Popen(['sleep', '{marker}'])\"))\n"
        "print('up', flush=True)\nrun(s.execute('while True: pass'))\n"
    )
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert client.stdout is not None
    if client.stdout.readline() != b"up\n":
        pytest.skip("the local sandbox does not run here")
    assert processes_of(marker)
    client.kill()
    client.wait()
    client.stdout.close()
    for _ in range(200):
        if len(processes_of(marker)) == 0:
            break
        time.sleep(0.05)
    assert not processes_of(marker)


def test_a_dropped_worker_leaves_nothing() -> None:
    """An object that is forgotten rather than stopped cleans up as well, and sandboxes too."""
    worker = start(Local(capacity=2))
    sandboxes = [run(worker.spawn(seed=0, files={})) for _ in range(2)]
    marker = f"300000{os.getpid()}"
    code = f"import subprocess; subprocess.Popen(['sleep', '{marker}'])"
    for sandbox in sandboxes:
        run(sandbox.execute(code))
    assert processes_of(marker)
    del sandbox, sandboxes
    run(run(worker.spawn(seed=0, files={})).stop())
    del worker
    for _ in range(200):
        if not processes_of(marker):
            break
        time.sleep(0.05)
    assert not processes_of(marker)


def test_an_ordinary_user_can_run_it() -> None:
    """Started without any privilege it keeps the same promises; checked when tests run as root."""
    python = shutil.which("python3", path="/usr/bin")
    if os.geteuid() != 0 or python is None:
        pytest.skip("the rest of the module already shows it")
    script = (
        "import json, os\nfrom toolenvs.drivers import run\nfrom toolenvs.testing import fresh\n"
        "from toolenvs.runtimes.local import Local\n"
        "w = run(Local(capacity=2).start())\n"
        "r = run(fresh(w, 'import os; print(os.getuid(), 6 * 7)'))\nrun(w.stop())\n"
        "print(json.dumps([os.getuid(), r.status, r.stdout]))"
    )
    packages = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python, "-c", script],
        env={"PYTHONPATH": os.pathsep.join([str(ROOT), *packages]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    if done.returncode != 0:  # another version of Python, or a home that is closed to others
        pytest.skip(f"no interpreter that an ordinary user could use: {done.stderr[-300:]}")
    assert json.loads(done.stdout) == [65534, "ok", "1000 42\n"]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel refuses namespaces, the failure says which setting allows them."""

    def refuse(flags: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(system, "unshare", refuse)
    with pytest.raises(house.MissingError, match=r"sysctl -w user\.max_user_namespaces"):
        house._make_spaces(1000, 1000)


def test_a_house_that_cannot_be_built_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets the house's own words as a ``RuntimeFailure``, at once."""
    monkeypatch.setattr("toolenvs.runtimes.local._DEVICES", ("no-such-device",))
    with pytest.raises(RuntimeFailure, match="No such file") as failed:
        run(Local().start())
    assert failed.value.kind in ("no_sandbox", "start")


def test_only_python_is_spoken() -> None:
    """Another flavour is refused with what is allowed."""
    with pytest.raises(UsageError, match="'python'"):
        Local(flavour="cobol")


def test_the_fingerprint_names_interpreter_and_packages() -> None:
    """It changes with what may change a result."""
    fingerprint = Local().fingerprint()
    assert "numpy=" in fingerprint
    assert f"python={sys.version_info.major}.{sys.version_info.minor}" in fingerprint
