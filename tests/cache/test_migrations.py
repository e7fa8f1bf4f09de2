"""Older caches: brought up when they are opened, whole or not at all, with everything in them."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.cache.making import make_key, result, start
from toolenvs.cache import ReplayCache, migrations, schema
from toolenvs.cache.entry import encode_result, make_entry
from toolenvs.errors import UsageError
from toolenvs.records import NewerVersionError

ENTRY_COLUMNS = (
    "key {blob}{must}{primary}, request {blob}{must}, result {blob}{must}, digest {blob}{must}, "
    "tool TEXT{must}, call {blob}{must}, state {blob}{must}, servable BOOLEAN{must}, "
    "differing BOOLEAN{must}, created {double}{must}, size INTEGER{must}"
)
FIRST_LAYOUT = (
    "CREATE TABLE toolenvs_schema (version INTEGER NOT NULL)",
    "INSERT INTO toolenvs_schema VALUES (1)",
    f"CREATE TABLE toolenvs_entries ({ENTRY_COLUMNS})",
    "CREATE INDEX ix_toolenvs_entries_call ON toolenvs_entries (call)",
    "CREATE INDEX ix_toolenvs_entries_state ON toolenvs_entries (state)",
    f"CREATE TABLE toolenvs_damaged ({ENTRY_COLUMNS}, reason TEXT NOT NULL)",
    "CREATE TABLE toolenvs_runtimes (asked {blob} NOT NULL, facts {blob} NOT NULL, "
    "digest {blob} NOT NULL, seen {double} NOT NULL, PRIMARY KEY (asked, digest))",
)
"""What the first caches were made of, in the words of that time."""

ENTRIES = 700


def make_first(url: str, *, entries: int = ENTRIES) -> None:
    """A cache of the first layout, with results; one of them has a request nobody can unpack."""
    engine = sa.create_engine(url)
    server = engine.dialect.name == "postgresql"
    words = {"blob": "BYTEA" if server else "BLOB"}
    words["double"] = "DOUBLE PRECISION" if server else "DOUBLE"
    with engine.begin() as connection:
        for statement in FIRST_LAYOUT:
            damaged = "toolenvs_damaged" in statement
            must = {"must": "" if damaged else " NOT NULL", "primary": " PRIMARY KEY"}
            if damaged:
                must["primary"] = ""
            connection.exec_driver_sql(statement.format(**words, **must))
        rows = [first_row(number) for number in range(entries)]
        rows[-1]["request"] = b"\7"
        places = ", ".join(f":{name}" for name in rows[0])
        connection.execute(sa.text(f"INSERT INTO toolenvs_entries VALUES ({places})"), rows)
    engine.dispose()


def first_row(number: int) -> dict[str, object]:
    """An entry with the columns of the first layout, in their order."""
    entry = make_entry(
        make_key(number), encode_result(result(str(number))), servable=True, created=float(number)
    )
    names = "key request result digest tool call state servable differing created size"
    return {name: getattr(entry, name) for name in names.split()}


def check_brought_up(cache: ReplayCache, *, entries: int = ENTRIES) -> None:
    """Every result is found, and a second, different one marks the first."""
    stats = cache.stats()
    assert (stats.revision, stats.entries) == (schema.HEAD, entries)
    for number in range(entries - 1):
        found = cache.get(make_key(number))
        assert found is not None
        assert (found.result.text, found.differing) == (str(number), False)
    cache.put(make_key(3), result("other"))
    cache.flush()
    found = cache.get(make_key(3))
    assert found is not None
    assert found.differing
    assert cache.get(make_key(entries - 1)) is None  # set aside, as at any other time
    assert cache.stats().damaged == 1


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    """An empty database of a PostgreSQL server."""
    name = f"t{uuid.uuid4().hex}"
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgres.replace("/postgres?", f"/{name}?")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a cache, of both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'cache.db'}"
    place: str = request.getfixturevalue("database")
    return place


def tables_of(url: str) -> set[str]:
    """The tables of a database."""
    engine = sa.create_engine(url)
    names = set(sa.inspect(engine).get_table_names())
    engine.dispose()
    return names


def differences(url: str) -> list[object]:
    """In what a database's tables differ from those that a new cache gets."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        options = {"version_table": schema.revisions.name, "compare_type": False}
        found = compare_metadata(
            MigrationContext.configure(connection, opts=options), schema.metadata
        )
    engine.dispose()
    return list(found)


# -- the path ---------------------------------


def test_the_newest_revision_is_the_one_that_is_written() -> None:
    """A new revision must be named as the head, or no cache would ever be brought to it."""
    assert migrations.known_revisions()[-1] == schema.HEAD


def test_a_cache_of_the_first_layout_is_adopted_with_everything_in_it(url: str) -> None:
    """Its results are served, its version table is gone, its tables are those of a new cache."""
    make_first(url)
    with ReplayCache(url) as cache:
        check_brought_up(cache)
    assert differences(url) == []
    assert tables_of(url) == set(schema.metadata.tables)


def test_all_revisions_from_nothing_give_the_tables_of_a_new_cache(url: str) -> None:
    """Two ways, one layout."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        migrations.upgrade(connection)
    engine.dispose()
    assert differences(url) == []
    with ReplayCache(url) as cache:
        cache.put(make_key(1), result("1"))
        assert cache.stats().entries == 1


def test_a_cache_between_two_revisions_goes_on_from_there(url: str) -> None:
    """One that has a revision, but not the newest, gets the rest."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        migrations.upgrade(connection, "0001")
        row = first_row(1)
        places = ", ".join(f":{name}" for name in row)
        connection.execute(sa.text(f"INSERT INTO toolenvs_entries VALUES ({places})"), row)
    engine.dispose()
    with ReplayCache(url) as cache:
        found = cache.get(make_key(1))
        assert found is not None
        assert found.result.text == "1"
    assert differences(url) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE toolenvs_revision SET version_num = '9999'",
        "UPDATE toolenvs_revision SET version_num = 'af3'",
    ],
)
def test_an_unknown_revision_is_refused_and_not_touched(change: str, tmp_path: Path) -> None:
    """The message says what is known and what to do; not a byte of the file changes."""
    file = tmp_path / "cache.db"
    with ReplayCache(f"sqlite:///{file}") as cache:
        cache.put(make_key(1), result("1"))
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.execute(change)
    before = file.read_bytes()
    with pytest.raises(NewerVersionError, match=r"cache\.db: .*this one knows 0001, .*upgrade"):
        ReplayCache(f"sqlite:///{file}").open()
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM toolenvs_revision", "one revision and tells none"),
        ("INSERT INTO toolenvs_revision VALUES ('0001')", "tells 0001 and 0002"),
        (
            "UPDATE toolenvs_revision SET version_num = '0001'",
            "tells revision 0001, and its tables",
        ),
    ],
)
def test_a_cache_that_does_not_know_its_revision_is_refused(
    url: str, change: str, told: str
) -> None:
    """No revision, two, or one that its tables are not of: one clear error, nothing changed."""
    with ReplayCache(url) as cache:
        cache.open()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(change)
    engine.dispose()
    with pytest.raises(UsageError, match=f"this cache is damaged: .*{told}"):
        ReplayCache(url).open()
    assert differences(url) == []


def test_a_row_that_an_older_program_wrote_is_as_good_as_any(url: str) -> None:
    """It knows no digest of requests; a result takes its time-out's place, another one marks it."""
    with ReplayCache(url) as cache:
        cache.put(make_key(1), result("late"), servable=False)
        cache.flush()
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE toolenvs_entries SET request_digest = ''")
        engine.dispose()
        for text, differing in (("42", False), ("43", True)):
            cache.put(make_key(1), result(text))
            cache.flush()
            found = cache.get(make_key(1))
            assert found is not None
            assert (found.result.text, found.differing) == ("42", differing)


def test_an_unknown_version_of_the_first_layout_is_refused(url: str) -> None:
    """As a revision would be, and nothing is adopted."""
    make_first(url)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE toolenvs_schema SET version = 2")
    engine.dispose()
    with pytest.raises(NewerVersionError, match="version 2"):
        ReplayCache(url).open()
    assert "toolenvs_revision" not in tables_of(url)


def test_alembic_is_imported_only_to_migrate(tmp_path: Path) -> None:
    """Neither the package nor a cache of today needs it."""
    script = """
    import sys
    import toolenvs
    from toolenvs.cache import ReplayCache
    for _ in range(2):
        with ReplayCache(sys.argv[1]) as cache:
            cache.stats()
    assert "alembic" not in sys.modules
    """
    finished(start(script, f"sqlite:///{tmp_path / 'cache.db'}"))


# -- many at once, and crashes ---------------------------------

OPEN = """
import sys
from tests.cache.making import make_key, result
from toolenvs.cache import ReplayCache
with ReplayCache(sys.argv[1]) as cache:
    assert cache.get(make_key(1)) is not None
    cache.put(make_key("new " + sys.argv[2]), result("new"))
    cache.flush()
    assert cache.lost == 0
"""

KILLED = """
import os, signal, sys
import sqlalchemy as sa
from toolenvs.cache import ReplayCache
left = int(sys.argv[2])

def count(*_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

sa.event.listen(sa.engine.Engine, "before_cursor_execute", count)
sa.event.listen(sa.engine.Engine, "commit", count)
ReplayCache(sys.argv[1]).open()
"""


def finished(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process, which must end well."""
    _, errors = process.communicate(timeout=150)
    assert process.returncode == 0, errors.decode()


def test_processes_that_open_an_old_cache_at_once_bring_it_up_once(url: str) -> None:
    """One does it, the others wait; all go on with it."""
    make_first(url)
    for process in [start(OPEN, url, who) for who in range(4)]:
        finished(process)
    with ReplayCache(url) as cache:
        assert cache.stats().entries == ENTRIES + 4
        assert all(cache.get(make_key(f"new {who}")) for who in range(4))
    assert differences(url) == []


def kill_after(url: str, statements: int) -> bool:
    """Open a cache in a process that is killed before one of its statements; whether it was."""
    process = start(KILLED, url, statements)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode != 0


def test_a_kill_in_the_midst_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Wherever it strikes: the old layout or the new one, whole, and the next opening mends it."""
    old = tmp_path / "old.db"
    make_first(f"sqlite:///{old}")
    for statements in (*range(2, 200, 9), 10_000):
        file = tmp_path / f"{statements}.db"
        shutil.copy(old, file)
        killed = kill_after(f"sqlite:///{file}", statements)
        names = tables_of(f"sqlite:///{file}")
        assert ("toolenvs_schema" in names) is not ("toolenvs_revision" in names)
        with ReplayCache(f"sqlite:///{file}") as cache:
            check_brought_up(cache)
        if not killed:
            break
    assert not killed
    assert statements > 11  # it was killed at least twice before


def test_a_kill_in_the_midst_leaves_the_server_as_it_was(database: str) -> None:
    """The server takes the half back."""
    make_first(database)
    kills = [kill_after(database, statements) for statements in (8, 12, 16, 10_000)]
    assert kills == [True, True, True, False]
    assert "toolenvs_schema" not in tables_of(database)
    with ReplayCache(database) as cache:
        check_brought_up(cache)


def test_the_migrations_are_in_the_package() -> None:
    """They lie where the wheel takes them from, beside the code that runs them."""
    folder = Path(migrations.__file__).parent
    assert (folder / "env.py").is_file()
    assert len(list((folder / "versions").glob("r*.py"))) == len(migrations.known_revisions())
    assert "toolenvs.cache.migrations" in sys.modules
