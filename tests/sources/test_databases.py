"""Databases built here: one content on every machine, whole or not at all; digests; places."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources.databases import EMP, make_database, rows_of
from toolenvs.content import content_digest
from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.sources._databases import (
    DataFolder,
    Script,
    build,
    built_folder,
    folder_name,
)
from toolenvs.sources._location import split_location
from toolenvs.sources._sqlsource import folder_of

SCRIPT = Script("t", "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")


def test_a_script_is_built_once_under_its_content(tmp_path: Path) -> None:
    """The place follows from the text alone; a second build leaves the file as it is."""
    place = build(SCRIPT)
    file = built_folder().file(place)
    assert place == f"built/{SCRIPT.digest[:32]}/t.sqlite"
    assert rows_of(file, "SELECT a FROM t") == [(1,), (2,)]
    before = file.stat()
    assert build(SCRIPT) == place
    assert file.stat() == before
    assert build(Script("t", SCRIPT.text + " ")) != place


def test_sandboxes_may_read_what_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files and folders are readable for other users, whatever the umask."""
    monkeypatch.setenv("TOOLENVS_DATABASES", str(tmp_path / "deep" / "cache"))
    old = os.umask(0o077)
    try:
        file = built_folder().file(build(SCRIPT))
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    for folder in (file.parent, file.parent.parent, tmp_path / "deep"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert os.listdir(file.parent) == ["t.sqlite"]  # noqa: PTH208 - hidden files count


def test_many_processes_build_at_once(tmp_path: Path) -> None:
    """Each finds the whole file, and none is in the way of another."""
    code = (
        "from toolenvs.sources._databases import *\n"
        "script = Script('t', 'CREATE TABLE t (a);' + 'INSERT INTO t VALUES (1);' * 3000)\n"
        "import sqlite3\n"
        "file = built_folder().file(build(script))\n"
        "print(sqlite3.connect(file).execute('SELECT count(*) FROM t').fetchone()[0])\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TOOLENVS_DATABASES": str(tmp_path)},
        )
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == ["3000\n"] * 4


def test_a_script_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file, and a later build begins anew."""
    monkeypatch.setenv("TOOLENVS_DATABASES", str(tmp_path))
    broken = Script("t", "CREATE TABLE t (a); INSERT INTO u VALUES (1);")
    with pytest.raises(DataError, match="cannot be built: no such table: u"):
        build(broken)
    assert not list(tmp_path.rglob("*.*"))


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says how to choose another."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOOLENVS_DATABASES", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match="Name another folder by TOOLENVS_DATABASES"):
        built_folder()


def test_a_digest_is_that_of_the_content(tmp_path: Path) -> None:
    """A file that changes has another one; that of several depends on their order."""
    one = make_database(tmp_path / "one.sqlite")
    other = make_database(tmp_path / "other.sqlite", "CREATE TABLE t (a);")
    first = content_digest([one])
    assert len(first) == 64
    assert content_digest([one, other]) != content_digest([other, one])
    make_database(one, EMP + "INSERT INTO emp (name) VALUES ('Dan');")
    assert content_digest([one]) != first
    with pytest.raises(DataError, match=r"gone\.sqlite: the database cannot be read"):
        content_digest([tmp_path / "gone.sqlite"])


@pytest.mark.parametrize("relative", ["../secret", "/etc/passwd", "", "a/../../b", "a\0b"])
def test_no_place_leads_out_of_its_folder(tmp_path: Path, relative: str) -> None:
    """Names of databases come from files that others wrote."""
    with pytest.raises(DataError, match="names no file inside"):
        DataFolder("spider", tmp_path).place(relative)


def test_places_never_hold_a_path_of_this_machine(tmp_path: Path) -> None:
    """Only the folder's name and what is in it."""
    folder = DataFolder("spider", tmp_path)
    assert folder.place("singer/singer.sqlite") == "spider/singer/singer.sqlite"
    assert folder.file("spider/singer/singer.sqlite") == tmp_path / "singer" / "singer.sqlite"
    assert folder_name("Power Plants & Rivers/2") == "Power-Plants-Rivers-2"
    assert folder_name("...") == "data"


def test_a_folder_that_holds_the_golds_is_not_shown(tmp_path: Path) -> None:
    """Sandboxes are shown the whole folder."""
    (tmp_path / "dev.json").write_text("[]")
    with pytest.raises(DataError, match="holds the gold answers"):
        folder_of(tmp_path / "dev.json", source="spider", names=(), chosen=str(tmp_path))


def test_a_second_folder_of_a_data_set_has_another_name(tmp_path: Path) -> None:
    """So both can be shown at once."""
    for name in ("database", "test_database"):
        (tmp_path / name).mkdir()
    names, rows = ("database", "test_database"), tmp_path / "dev.json"
    assert folder_of(rows, source="spider", names=names).name == "spider"
    chosen = folder_of(rows, source="spider", names=names, chosen=str(tmp_path / "test_database"))
    assert chosen.name == "spider-test_database"


def test_locations_have_options_behind_commas() -> None:
    """A comma in a path is no sign of one."""
    options = ("databases", "engine")
    assert split_location("a,b/c.json", options, source="s") == ("a,b/c.json", {})
    assert split_location("a,b,databases=/x,y,engine=sqlite", options, source="s") == (
        "a,b",
        {"databases": "/x,y", "engine": "sqlite"},
    )
    with pytest.raises(UnknownNameError, match="Did you mean 'databases'"):
        split_location("a,database=b", options, source="s")
    with pytest.raises(UsageError, match="once"):
        split_location("a,engine=x,engine=y", options, source="s")
