"""The cache on PostgreSQL: the same promises, with a server that the test starts itself."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_cache import make_key, result, run_writers
from toolenvs.cache import ReplayCache
from toolenvs.errors import RuntimeFailure

BINARIES = Path(os.environ.get("TOOLENVS_POSTGRES", "/usr/lib/postgresql/15/bin"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an empty server, reached by a socket in a folder of its own."""
    if not (BINARIES / "initdb").exists():
        pytest.skip(f"no PostgreSQL server at {BINARIES}: set TOOLENVS_POSTGRES")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("no driver for PostgreSQL: pip install 'psycopg[binary]'")
    folder = Path(tempfile.mkdtemp(prefix="toolenvs-pg-"))
    user = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def call(*words: str) -> None:
        subprocess.run(
            words,
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            **user,  # type: ignore[call-overload]
        )

    data = str(folder / "data")
    call(str(BINARIES / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    call(str(BINARIES / "pg_ctl"), "-D", data, "-o", options, "-l", f"{data}.log", "-w", "start")
    try:
        yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
    finally:
        call(str(BINARIES / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def test_a_server_keeps_what_a_file_keeps(server: str, tmp_path: Path) -> None:
    """Results, marks, healing, collisions, runtimes, counts, pruning and exports."""
    with ReplayCache(server) as cache:
        for number in range(20):
            cache.put(make_key(number), result(f"{number}\u2028\x00"))
        cache.put(make_key("late"), result("late"), servable=False)
        cache.flush()
        cache.put(make_key("late"), result("in time"))
        cache.put(make_key(3), result("other"))
        cache.see_runtime({"sandbox": "docker"}, {"fingerprint": "f"})
        cache.flush()
        three, late = cache.get(make_key(3)), cache.get(make_key("late"))
        assert three is not None
        assert (three.result.text, three.differing) == ("3\u2028\x00", True)
        assert late is not None
        assert (late.result.text, late.servable) == ("in time", True)
        assert cache.get(make_key("never")) is None
        assert cache.seen_runtimes({"sandbox": "docker"}) == [{"fingerprint": "f"}]
        assert (cache.stats().entries, cache.stats().differing) == (21, 1)
        assert "arguments.code" in cache.explain_miss(make_key("never"))
        assert cache.export_to(tmp_path / "out.jsonl") == 21
        assert cache.prune(max_bytes=0) == 21
        assert cache.import_from(tmp_path / "out.jsonl") == 21
        assert cache.prune(max_age_s=0) == 21


def test_many_processes_share_a_server(server: str) -> None:
    """Every put is stored once; none raises. All of them make the tables at the same time."""
    run_writers(server, writers=4, puts=60)
    with ReplayCache(server) as cache:
        assert (cache.stats().entries, cache.lost) == (4 * 60 + 60, 0)


def test_a_server_that_is_not_there_is_a_failure_of_the_machine() -> None:
    """It is told with its address and without its password."""
    pytest.importorskip("psycopg")
    with pytest.raises(RuntimeFailure, match=r"nowhere\.invalid") as raised:
        ReplayCache("postgresql+psycopg://me:secret@nowhere.invalid/x").open()
    assert "secret" not in str(raised.value)
