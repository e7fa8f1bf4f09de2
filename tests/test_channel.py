"""The client's half: failures are prompt, typed and never a wrong result."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.channel import ChannelWorker, Listener, open_worker
from toolenvs.descriptors import Descriptors, output_file
from toolenvs.drivers import Loop, Sleep, run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.runtimes.local import Local
from toolenvs.slot import ChannelSandbox
from toolenvs.supervisor import wire
from toolenvs.testing import fresh, run_together
from toolenvs.types import ExecResult, Limits


def start(limits: Limits | None = None, *, capacity: int = 4, spares: int = 1) -> ChannelWorker:
    """A worker of the local runtime; skips where it cannot run."""
    runtime = Local(limits or Limits(timeout_s=5.0), capacity=capacity, spares=spares)
    try:
        return run(runtime.start())
    except RuntimeFailure as failure:
        if failure.kind == "no_sandbox":
            pytest.skip(str(failure))
        raise


@pytest.fixture(scope="module")
def worker() -> Iterator[ChannelWorker]:
    """One worker for all tests that do not end it."""
    worker = start()
    yield worker
    run(worker.stop())


def supervisor_of(worker: ChannelWorker) -> int:
    """The supervisor's process: the one child of the house that this process started."""
    end = worker._end
    house = end.__self__._process.pid  # type: ignore[union-attr]
    return int(Path(f"/proc/{house}/task/{house}/children").read_text().split()[0])


def greet(packet: bytes | None, ended: list[str], *, timeout_s: float = 5.0) -> ChannelWorker:
    """Open a worker whose supervisor only says ``packet``."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        if packet:
            theirs.send(packet)
        elif packet is not None:
            theirs.shutdown(socket.SHUT_RDWR)
        return run(
            open_worker(
                ours,
                limits=Limits(),
                capacity=1,
                end=lambda: ended.append("end"),
                timeout_s=timeout_s,
            )
        )


def test_a_supervisor_that_cannot_start_says_why() -> None:
    """Its own words reach the caller, and what was started is ended."""
    ended: list[str] = []
    with pytest.raises(RuntimeFailure, match="no namespaces here") as failed:
        greet(wire.FAILED + b"no namespaces here", ended)
    assert failed.value.kind == "no_sandbox"
    assert ended == ["end"]


def test_another_version_is_refused() -> None:
    """An image with another supervisor is named as such."""
    with pytest.raises(RuntimeFailure, match="build the image again"):
        greet(wire.HELLO + json.dumps({"version": 0}).encode(), [])


@pytest.mark.parametrize("packet", [b"", None])
def test_silence_is_a_failure(packet: bytes | None) -> None:
    """A connection that ends, or says nothing within the time, is a failure to start."""
    ended: list[str] = []
    with pytest.raises(RuntimeFailure) as failed:
        greet(packet, ended, timeout_s=0.05)
    assert failed.value.kind == "start"
    assert ended == ["end"]


def test_the_folder_of_a_listener_is_closed_and_goes_away() -> None:
    """Nobody can list it, everybody who knows its name can enter; after ``accept`` it is gone."""
    listener = Listener()
    folder = listener.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(str(folder / "s"))
        accepted = run(listener.accept(timeout_s=5.0, pid=os.getpid()))
        accepted.close()
    assert not folder.exists()


def test_a_stranger_is_turned_away() -> None:
    """Only the expected process is let in; when it does not come, that is a failure."""
    listener = Listener()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(str(listener.folder / "s"))
        with pytest.raises(RuntimeFailure):
            run(listener.accept(timeout_s=0.05, pid=os.getpid() + 1))
    assert not listener.folder.exists()


@given(raw=st.binary(max_size=300), limit=st.integers(min_value=0, max_value=200))
@settings(max_examples=100, deadline=None)
def test_output_is_valid_text_within_the_limit(raw: bytes, limit: int) -> None:
    """For any bytes: at most ``limit`` bytes of UTF-8; what is cut is flagged."""
    sandbox = ChannelSandbox(
        Descriptors(
            *(os.open("/dev/null", os.O_RDONLY) for _ in range(2)),
            output_file(limit),
            output_file(limit),
        ),
        Limits(output_bytes=limit),
    )
    os.write(sandbox._stdout, raw)
    text, cut = sandbox._text(sandbox._stdout)
    assert len(text.encode()) <= limit
    assert cut == (len(raw) > limit)
    decoded = raw[:limit].decode("utf-8", "replace")
    assert decoded.startswith(text)
    if "\ufffd" not in decoded:
        assert text == decoded
    run(sandbox.stop())


def test_a_output_file_cannot_flood() -> None:
    """A writer gets EPERM soon after the limit; it can neither grow nor shrink the file."""
    number = output_file(10)
    size = os.fstat(number).st_size
    os.lseek(number, size - 1, os.SEEK_SET)
    assert os.write(number, b"x") == 1
    with pytest.raises(PermissionError):
        os.write(number, b"x")
    for length in (0, size + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(number, length)
    os.close(number)


@pytest.mark.local
@given(code=st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_a_result(worker: ChannelWorker, code: str) -> None:
    """Whatever text is run, a result comes back that is valid text."""
    result = run(fresh(worker, code))
    assert isinstance(result, ExecResult)
    (result.stdout + result.stderr).encode()


@pytest.mark.local
def test_a_dead_supervisor_is_a_failure_of_all_its_sandboxes() -> None:
    """Calls that run, under either driver, end at once; later ones and ``spawn`` refuse."""
    worker = start()
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(3)]
    failures: list[BaseException | None] = []
    loop = Loop()
    for sandbox in sandboxes[:2]:
        call = sandbox.execute("import time; time.sleep(60)")
        loop.spawn(call, lambda _, error: failures.append(error))
    in_thread: list[BaseException] = []

    def blocked() -> None:
        try:
            run(sandboxes[2].execute("while True: pass"))
        except BaseException as error:
            in_thread.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    time.sleep(0.2)
    os.kill(supervisor_of(worker), signal.SIGKILL)
    while len(failures) < 2:
        loop.pump(10.0)
    thread.join(20.0)
    loop.close()
    for error in (*failures, *in_thread):
        assert isinstance(error, RuntimeFailure)
        assert error.kind == "sandbox_died"
    assert len(in_thread) == 1
    assert not worker.healthy()
    with pytest.raises(RuntimeFailure):
        run(worker.spawn(seed=0, files={}))
    run(worker.stop())


@pytest.mark.local
def test_a_stopped_worker_ends_calls_that_run() -> None:
    """``stop`` from another thread is a failure of the call, not a result."""
    worker = start()
    sandbox = run(worker.spawn(seed=0, files={}))
    stopping = threading.Timer(0.2, lambda: run(worker.stop()))
    stopping.start()
    with pytest.raises(RuntimeFailure):
        run(sandbox.execute("import time; time.sleep(60)"))
    stopping.join()


@pytest.mark.local
def test_a_sandbox_stopped_during_a_call_is_a_failure_of_the_call(worker: ChannelWorker) -> None:
    """Whoever waits for it hears of it at once; others do not."""
    sandbox = run(worker.spawn(seed=0, files={}))

    async def stop_soon() -> None:
        await Sleep(0.1)
        await sandbox.stop()

    with pytest.raises(RuntimeFailure, match="stopped during the call"):
        run_together([sandbox.execute("import time; time.sleep(60)"), stop_soon()])
    assert run(fresh(worker, "print(1)")).stdout == "1\n"


@pytest.mark.local
def test_an_abandoned_call_ends_its_sandbox_alone(worker: ChannelWorker) -> None:
    """A coroutine that is closed half-way leaves no running code and no usable sandbox."""
    sandbox = run(worker.spawn(seed=0, files={}))
    loop = Loop()
    loop.spawn(sandbox.execute("while True: pass"), lambda value, error: None)
    loop.pump(0.1)
    loop.close()
    with pytest.raises(RuntimeFailure):
        run(sandbox.execute("print(1)"))
    assert run(fresh(worker, "print(1)")).stdout == "1\n"


@pytest.mark.local
def test_a_forked_client_cannot_use_or_end_the_worker(worker: ChannelWorker) -> None:
    """The copy gets a failure of kind ``forked``; the parent's sandbox lives on."""
    sandbox = run(worker.spawn(seed=0, files={}))
    run(sandbox.execute("v = 41"))
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        kinds = []
        for attempt in (sandbox.execute("v = 0"), worker.spawn(seed=0, files={})):
            try:
                run(attempt)
            except RuntimeFailure as failure:
                kinds.append(failure.kind)
        run(sandbox.stop())
        run(worker.stop())
        gc.collect()
        os.write(write, " ".join(kinds).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100) == b"forked forked"
    os.close(read)
    os.close(write)
    assert run(sandbox.execute("print(v + 1)")).stdout == "42\n"
    run(sandbox.stop())


@pytest.mark.local
def test_a_crowd_does_not_time_out() -> None:
    """More work than processors: waiting for one's turn is not counted, so no call times out."""
    count = 4 * (os.cpu_count() or 1)
    worker = start(Limits(timeout_s=1.0, backstop=60.0), capacity=count)
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(count)]
    code = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    results = run_together([sandbox.execute(code) for sandbox in sandboxes])
    assert [result.status for result in results] == ["ok"] * count
    run(worker.stop())


@pytest.mark.local
def test_sleep_counts_and_so_does_the_work_of_children(worker: ChannelWorker) -> None:
    """A call that only waits ends at its limit; processor time of its processes adds up."""
    asleep = run(fresh(worker, "import time; time.sleep(999)", timeout_s=0.3))
    assert asleep.status == "timeout"
    assert 0.3 <= asleep.wall_s < 20.0
    busy = "import os\nfor _ in range(7):\n    if os.fork() == 0: break\nwhile True: pass"
    assert run(fresh(worker, busy, timeout_s=0.5)).status == "timeout"


@pytest.mark.local
def test_a_short_limit_holds_and_a_longer_one_is_not_granted(worker: ChannelWorker) -> None:
    """``timeout_s`` can only shorten the sandbox's own limit."""
    code = "import time; time.sleep(0.3)"
    assert run(fresh(worker, code, timeout_s=0.05)).status == "timeout"
    tight = start(Limits(timeout_s=0.1))
    assert run(fresh(tight, code, timeout_s=60.0)).status == "timeout"
    run(tight.stop())


@pytest.mark.local
def test_one_sandbox_runs_one_call(worker: ChannelWorker) -> None:
    """A second call while one runs is refused as the caller's mistake, and harms nothing."""
    sandbox = run(worker.spawn(seed=0, files={}))
    with pytest.raises(UsageError, match="one at a time"):
        run_together([sandbox.execute("import time; time.sleep(0.2)"), sandbox.execute("1")])
    assert run(sandbox.execute("print(1)")).stdout == "1\n"
    run(sandbox.stop())


@pytest.mark.local
def test_files_are_laid_out(worker: ChannelWorker) -> None:
    """Names may have folders, contents any text; names that lead outside are refused."""
    files = {"a/b c.txt": "ü\r\n\0", "data.csv": ""}
    sandbox = run(worker.spawn(seed=0, files=files))
    code = "print([open(n, newline='').read() for n in ('a/b c.txt', 'data.csv')])"
    assert run(sandbox.execute(code)).stdout == "['ü\\r\\n\\x00', '']\n"
    run(sandbox.stop())
    for name in ("/etc/x", "../x", "a/../../x", "", "a\0b"):
        with pytest.raises(UsageError):
            run(worker.spawn(seed=0, files={name: "x"}))


@pytest.mark.local
def test_files_that_do_not_fit_are_a_failure_not_a_result() -> None:
    """The task is at fault, so no code runs."""
    worker = start(Limits(disk_bytes=1 << 16))
    with pytest.raises(RuntimeFailure, match="do not fit") as failed:
        run(worker.spawn(seed=0, files={"big": "x" * (1 << 20)}))
    assert failed.value.kind == "setup"
    assert run(fresh(worker, "print(1)")).stdout == "1\n"
    run(worker.stop())


@pytest.mark.local
def test_limits_are_each_sandbox_s(worker: ChannelWorker) -> None:
    """Disk, memory and output limits are those asked for."""
    small = start(Limits(disk_bytes=1 << 20, memory_bytes=64 << 20, output_bytes=500))
    assert run(fresh(small, "open('x', 'w').write('x' * (2 << 20))")).status == "disk"
    assert run(fresh(small, "bytearray(128 << 20) and 1")).status == "memory"
    assert run(fresh(small, "len(bytearray(32 << 20))")).stdout == f"{32 << 20}\n"
    cut = run(fresh(small, "print('x' * 9000)"))
    assert (cut.status, len(cut.stdout), cut.output_cut) == ("output", 500, True)
    whole = run(fresh(small, "print('x' * 499)"))
    assert (whole.status, len(whole.stdout), whole.output_cut) == ("ok", 500, False)
    run(small.stop())


@pytest.mark.local
def test_threads_may_share_a_worker(worker: ChannelWorker) -> None:
    """Spawning, running and stopping from many threads mixes nothing up."""
    outputs: dict[int, str] = {}

    def play(number: int) -> None:
        for _ in range(5):
            outputs[number] = run(fresh(worker, f"n = {number}", "print(n)")).stdout

    threads = [threading.Thread(target=play, args=(n,)) for n in range(worker.capacity)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: f"{n}\n" for n in range(worker.capacity)}


@pytest.mark.local
def test_no_descriptor_is_left_open(worker: ChannelWorker) -> None:
    """Any number of sandboxes leave as many descriptors as there were."""

    def open_now() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    run(fresh(worker, "1"))
    before = open_now()
    for code in ("1", "1/0", "import os; os._exit(1)", "import os; os.write(3, b'x')") * 3:
        run(fresh(worker, code))
    assert open_now() == before


@pytest.mark.local
@pytest.mark.parametrize("spares", [0, 1, 3])
def test_spares_are_not_counted_and_are_all_seeded(spares: int) -> None:
    """A sandbox that was forked ahead of need is like any other."""
    worker = start(capacity=2, spares=spares)
    code = "import random; print(random.random(), open('f').read())"
    outputs = []
    for _ in range(3):
        sandbox = run(worker.spawn(seed=5, files={"f": "x"}))
        outputs.append(run(sandbox.execute(code)).stdout)
        run(sandbox.stop())
    assert len(set(outputs)) == 1
    run(worker.stop())


@pytest.mark.local
def test_a_client_that_looks_away_does_not_time_calls_out() -> None:
    """What waited for a processor while nobody drove the loop is not counted either."""
    count = 4 * (os.cpu_count() or 1)
    worker = start(Limits(timeout_s=1.0, backstop=60.0), capacity=count)
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(count)]
    code = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
    statuses: list[str] = []
    loop = Loop()
    for sandbox in sandboxes:
        loop.spawn(sandbox.execute(code), lambda result, _: statuses.append(result.status))  # type: ignore[union-attr]
    time.sleep(1.3)
    while len(statuses) < count:
        loop.pump(1.0)
    loop.close()
    assert statuses == ["ok"] * count
    run(worker.stop())
