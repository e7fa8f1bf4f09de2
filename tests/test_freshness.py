"""A database that is no longer what its task says is noticed, and nothing else is."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolenvs.errors import RuntimeFailure
from toolenvs.freshness import Watch
from toolenvs.types import Database


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The database's file."""
    path = tmp_path / "emp.sqlite"
    path.write_bytes(b"one")
    return path


def watch(file: Path, *, place: str = "d/emp.sqlite", digest: str = "", **more: Any) -> Watch:
    """A watch over the file, which the runtime knows by its folder."""
    runtime: Any = SimpleNamespace(data={place.partition("/")[0]: str(file.parent)})
    return Watch(Database(name="emp", place=place, digest=digest, **more), runtime)


ONE = hashlib.sha256(b"one").hexdigest()
OTHER = hashlib.sha256(b"a script").hexdigest()


@pytest.mark.parametrize(
    ("place", "digest"),
    [
        ("d/emp.sqlite", ONE),
        ("d/emp.sqlite", ""),
        ("d/emp.sqlite", "v1"),
        ("built/emp.sqlite", OTHER),
    ],
)
def test_a_change_is_a_failure_and_a_new_time_is_none(file: Path, place: str, digest: str) -> None:
    """Whatever the digest is of: content, a script, or somebody's word."""
    over = watch(file, place=place, digest=digest)
    over.check()
    os.utime(file, (1, 1))
    over.check()
    file.write_bytes(b"two")
    with pytest.raises(RuntimeFailure, match="has changed") as raised:
        over.check()
    assert raised.value.kind == "data"
    file.unlink()
    with pytest.raises(RuntimeFailure, match="cannot be read"):
        over.check()


def test_what_changed_before_the_first_look_is_noticed(file: Path) -> None:
    """The digest of a content says what it was when the task was loaded."""
    with pytest.raises(RuntimeFailure, match="has changed"):
        watch(file, digest=OTHER).check()


def test_an_instance_counts_too(file: Path) -> None:
    """A query is judged on it."""
    more = file.with_name("more.sqlite")
    more.write_bytes(b"more")
    over = watch(file, instances=("d/more.sqlite",))
    more.write_bytes(b"less")
    with pytest.raises(RuntimeFailure, match="instances"):
        over.check()


def test_what_is_not_on_this_machine_is_not_looked_at(file: Path) -> None:
    """An engine elsewhere has files of its own."""
    watch(file.with_name("no") / "emp.sqlite", digest=OTHER).check()
    Watch(Database(name="emp", place="d/emp.sqlite", digest=OTHER), object()).check()  # type: ignore[arg-type]


def test_the_script_of_a_template_is_watched(file: Path) -> None:
    """PostgreSQL makes its databases of scripts."""
    runtime: Any = SimpleNamespace(templates={"emp": file})
    over = Watch(Database(name="emp", engine="postgres", place="emp", digest=ONE), runtime)
    over.check()
    file.write_bytes(b"two")
    with pytest.raises(RuntimeFailure, match="has changed"):
        over.check()
