"""The engine: found or missed in a clear sentence, its failures typed, its containers reaped."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolenvs import engine, images
from toolenvs.engine import ContainerSpec
from toolenvs.engine.owner import owner_alive, owner_labels
from toolenvs.errors import RuntimeFailure

SLEEP = ("python3", "-c", "import time; time.sleep(600)")


@pytest.fixture
def mute_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """DOCKER_HOST names a socket that accepts and never answers."""
    path = str(tmp_path / "engine.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(8)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        yield path


@pytest.fixture(scope="module")
def image() -> str:
    """The Python sandbox's image."""
    return images.ensure_image("python").id


@pytest.fixture
def container(image: str) -> Iterator[str]:
    """A running container of ours."""
    with engine.connect() as docker:
        container_id = docker.create(ContainerSpec(image=image, command=SLEEP))
        docker.start(container_id)
        yield container_id
        docker.remove(container_id)


def test_a_missing_engine_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """``probe`` does not raise; ``connect`` raises ``no_engine``; both say where and what to do."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")
    report = engine.probe()
    assert not report.found
    assert "unix:///nowhere/engine.sock (no such socket)" in report.advice
    assert 'sandbox="local"' in report.advice
    with pytest.raises(RuntimeFailure) as caught:
        engine.connect()
    assert caught.value.kind == "no_engine"


def test_an_engine_that_never_answers_costs_only_the_time_limit(mute_engine: str) -> None:
    """A hanging engine counts as none after ``timeout_s``."""
    started = time.monotonic()
    report = engine.probe(timeout_s=0.2)
    assert not report.found
    assert mute_engine in report.advice
    assert time.monotonic() - started < 20


def test_a_strange_answer_is_a_failure_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What answers but is no engine counts as none."""
    path = str(tmp_path / "engine.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(8)
        listening.settimeout(20)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

        def answer() -> None:
            for _ in range(2):  # the first connection only tries the socket
                connection, _address = listening.accept()
                with connection:
                    connection.settimeout(5)
                    if connection.recv(1000):
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        thread = threading.Thread(target=answer)
        thread.start()
        assert not engine.probe(timeout_s=2).found
        thread.join(20)


def test_a_damaged_context_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``docker`` command's own settings may be anything; they never raise here."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text("{ not json")
    engine.probe(hub=False, timeout_s=1)
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "gone"}))
    engine.probe(hub=False, timeout_s=1)


def test_an_owner_is_told_from_a_later_process_with_the_same_pid() -> None:
    """Boot, namespace, pid and start time must all fit; what cannot be seen is unknown."""
    (mine,) = owner_labels().values()
    boot, namespace, pid, start = mine.split(".")
    assert owner_alive(mine, engine_is_here=True) is True
    assert owner_alive(f"{boot}.{namespace}.{pid}.{int(start) - 1}", engine_is_here=True) is False
    assert owner_alive(f"{boot}.{namespace}.4194999.1", engine_is_here=True) is False
    assert owner_alive(f"other.{namespace}.{pid}.{start}", engine_is_here=True) is False
    assert owner_alive(f"other.{namespace}.{pid}.{start}", engine_is_here=False) is None
    assert owner_alive(f"{boot}.12.{pid}.{start}", engine_is_here=True) is None
    assert owner_alive("", engine_is_here=True) is None


def test_a_zombie_is_no_owner() -> None:
    """A killed client that its parent has not reaped yet counts as gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    stat = Path(f"/proc/{child.pid}/stat")
    give_up = time.monotonic() + 30
    while stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < give_up
        time.sleep(0.01)
    boot, namespace, _, _ = next(iter(owner_labels().values())).split(".")
    start = stat.read_text().rpartition(")")[2].split()[19]
    assert owner_alive(f"{boot}.{namespace}.{child.pid}.{start}", engine_is_here=True) is False
    child.wait()


@pytest.mark.docker
def test_the_report_describes_the_engine() -> None:
    """Version, storage driver and runtimes are told; whether it reaches Docker Hub when asked."""
    report = engine.probe(hub=False)
    assert report.found
    assert report.where
    assert re.search(r"\d", report.version)
    assert report.storage_driver
    assert report.runtimes
    assert report.hub is None


@pytest.mark.docker
def test_a_container_is_closed(image: str) -> None:
    """No network, a read-only root, no capabilities to regain, no trace of the host."""
    program = (
        "import os, socket, json\n"
        "def fails(f):\n"
        "    try: f()\n"
        "    except OSError as e: return type(e).__name__\n"
        "    return 'worked'\n"
        "status = dict(l.split(':\\t') for l in open('/proc/self/status').read().splitlines()"
        " if ':\\t' in l)\n"
        "print(json.dumps(dict("
        "net=[n for _, n in socket.if_nameindex()], root=fails(lambda: open('/x', 'w')),"
        "caps=status['CapBnd'], nnp=status['NoNewPrivs'], host=socket.gethostname(),"
        "dns=open('/etc/resolv.conf').read(), oom=open('/proc/self/oom_score_adj').read())))"
    )
    with engine.connect() as docker:
        command = ("python3", "-c", program)
        container_id = docker.create(ContainerSpec(image=image, command=command))
        heard = docker.attach(container_id)
        docker.start(container_id)
        give_up = time.monotonic() + 60
        while heard.drain():
            assert time.monotonic() < give_up
            time.sleep(0.05)
        heard.close()
        docker.remove(container_id)
    seen = json.loads(heard.text)
    assert seen["net"] == ["lo"]
    assert seen["root"] == "OSError"
    assert int(seen["caps"], 16) == 1 << 5 | 1 << 6 | 1 << 7  # KILL, SETGID, SETUID
    assert seen["nnp"] == "1"
    assert seen["host"] == "sandbox"
    assert "127.0.0.1" in seen["dns"]
    assert seen["oom"].strip() == "500"


@pytest.mark.docker
def test_a_living_owners_container_is_not_reaped(container: str) -> None:
    """``reap`` leaves alone what a running client uses, and ``leftovers`` lists it."""
    found = {item.id: item for item in engine.leftovers()}
    assert found[container].owner_alive is True
    assert container not in engine.reap()
    with engine.connect() as docker:
        assert docker.state(container).status == "running"


@pytest.mark.docker
def test_a_killed_clients_container_is_reaped(image: str) -> None:
    """What a client left that was killed with SIGKILL goes with the next ``reap``."""
    program = (
        "import os, signal\n"
        "from toolenvs import engine\n"
        "with engine.connect() as docker:\n"
        f"    spec = engine.ContainerSpec(image={image!r}, command={SLEEP!r})\n"
        "    container = docker.create(spec)\n"
        "    docker.start(container)\n"
        "    print(container, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    client = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    left = client.stdout.strip()
    assert client.returncode == -9
    assert left in {item.id for item in engine.leftovers() if item.owner_alive is False}
    assert left in engine.reap()
    assert left not in {item.id for item in engine.leftovers()}


@pytest.mark.docker
def test_ending_what_has_ended_is_harmless(container: str) -> None:
    """``kill`` and ``remove`` may come in any order, any number of times."""
    with engine.connect() as docker:
        docker.kill(container)
        docker.kill(container)
        docker.remove(container)
        docker.remove(container)
        assert docker.state(container).status == "gone"


@pytest.mark.docker
def test_a_missing_image_is_named_as_such() -> None:
    """Kind ``image_missing``, and what to do."""
    with engine.connect() as docker:
        assert docker.image("toolenvs/there-is-none:1") is None
        with pytest.raises(RuntimeFailure, match="toolenvs build") as caught:
            docker.create(ContainerSpec(image="toolenvs/there-is-none:1", command=SLEEP))
    assert caught.value.kind == "image_missing"


@pytest.mark.docker
def test_exec_gives_status_and_output(container: str) -> None:
    """``docker exec``, to which benchmarks compare."""
    with engine.connect() as docker:
        assert docker.execute(container, ("python3", "-c", "print(1+1)")) == (0, b"2\n")
        assert docker.execute(container, ("python3", "-c", "raise SystemExit(3)")) == (3, b"")


@pytest.mark.docker
def test_a_failing_build_says_what_failed(image: str) -> None:
    """The builder's own last words are in the message."""
    dockerfile = b"ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo the last words && false\n"
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        tar.addfile(entry, io.BytesIO(dockerfile))
    context.seek(0)
    with engine.connect() as docker, pytest.raises(RuntimeFailure, match="the last words"):
        docker.build(
            context,
            dockerfile="Dockerfile",
            arguments={"BASE_IMAGE": image},
            labels={},
            progress=lambda _: None,
        )


def test_importing_the_package_does_not_import_docker() -> None:
    """docker-py costs more than all else together, so only using an engine loads it."""
    program = "import sys, toolenvs.engine, toolenvs.images; print('docker' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": ""},
    )
    assert done.stdout == "False\n"
