"""Fixtures that several parts share."""

from __future__ import annotations

import functools
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises import missing

ROOT = Path(__file__).parent.parent
POSTGRES = Path(os.environ.get("TOOLENVS_POSTGRES", "/usr/lib/postgresql/15/bin"))
"""Where PostgreSQL's server programs are."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared real data."""
    folder = Path(os.environ.get("TOOLENVS_SHARED", "../shared"))
    folder = folder if folder.is_absolute() else (ROOT / folder).resolve()
    if not folder.is_dir():
        missing("shared", f"no shared data at {folder}: set TOOLENVS_SHARED")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL server, reached by a socket in a folder of its own."""
    if not (POSTGRES / "initdb").exists():
        missing("postgres", f"no PostgreSQL server at {POSTGRES}: set TOOLENVS_POSTGRES")
    if importlib.util.find_spec("psycopg") is None:
        missing("postgres", "no driver for PostgreSQL: pip install 'psycopg[binary]'")
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
    call(str(POSTGRES / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    call(str(POSTGRES / "pg_ctl"), "-D", data, "-o", options, "-l", f"{data}.log", "-w", "start")
    try:
        yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
    finally:
        call(str(POSTGRES / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a sandbox that cannot be had here; fail it where that was promised."""
    found = (("docker", _no_docker), ("local", _no_local), ("runsc", _no_runsc))
    for marker, problem_of in found:
        if item.get_closest_marker(marker) is not None and (problem := problem_of()):
            missing(marker, problem)


@functools.cache
def _no_docker() -> str:
    from toolenvs import images
    from toolenvs.errors import RuntimeFailure

    try:
        images.ensure_image("python")
    except RuntimeFailure as failure:
        return str(failure)
    return ""


@functools.cache
def _no_local() -> str:
    from toolenvs import runtimes
    from toolenvs.drivers import run
    from toolenvs.errors import RuntimeFailure

    try:
        worker = run(runtimes.make("local").start())
    except RuntimeFailure as failure:
        return str(failure)
    run(worker.stop())
    return ""


@functools.cache
def _no_runsc() -> str:
    from toolenvs import engine

    known = engine.probe(hub=False).runtimes
    return "" if "runsc" in known else f"the engine has no runtime runsc: it has {known}"
