"""A copy of a database whose rows lie in another order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.databases import make_database, rows_of
from toolenvs.errors import DataError
from toolenvs.sources import _sql_reordered
from toolenvs.sources._sql_reordered import reordered
from toolenvs.sources._sqlgold import examine

SHOP = """
CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT COLLATE NOCASE, price REAL,
    half REAL GENERATED ALWAYS AS (price / 2) VIRTUAL); -- it's INTEGER
CREATE TABLE tag(item INTEGER, tag TEXT, "INTEGER" BLOB, PRIMARY KEY (item, tag)) WITHOUT ROWID;
CREATE INDEX by_price ON item(price, name);
CREATE VIEW dear AS SELECT name FROM item WHERE price > 1;
INSERT INTO item(name, price) VALUES ('b', 2), ('a', 2), ('c', 1), ('d', NULL), ('B', 2);
INSERT INTO tag VALUES (1, 'x', x'00ff'), (1, 'y', NULL), (2, 'x', 'text');
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The database."""
    return make_database(tmp_path / "a shop.sqlite", SHOP)


def test_the_rows_are_the_same_and_lie_the_other_way_round(shop: Path) -> None:
    """Keys of whole numbers and tables without rowid included; the file stays as it is."""
    before = shop.read_bytes()
    with reordered(shop) as copy:
        for table in ("item", "tag"):
            sql = f"SELECT * FROM {table}"
            assert rows_of(copy, sql) == rows_of(shop, sql)[::-1]
        view = "SELECT * FROM dear"
        assert sorted(rows_of(copy, view)) == sorted(rows_of(shop, view))
        kinds = "SELECT DISTINCT typeof(id), typeof(price) FROM item ORDER BY 2"
        assert rows_of(copy, kinds) == rows_of(shop, kinds)
    assert not copy.exists()
    assert shop.read_bytes() == before


@pytest.mark.parametrize(
    ("gold", "undetermined"),
    [
        ("SELECT name FROM item GROUP BY price", True),
        ("SELECT DISTINCT name FROM item", True),
        ("SELECT name, row_number() OVER (ORDER BY price) FROM item", True),
        ("SELECT price, group_concat(name) FROM item GROUP BY price", True),
        ("SELECT item, max(tag) FROM tag GROUP BY item", False),
        ("SELECT id, name FROM item ORDER BY name", False),
        ("SELECT name, max(id) FROM item", False),
        ("SELECT t.tag, i.name FROM item AS i JOIN tag AS t ON t.item = i.id", False),
        ("SELECT name FROM dear ORDER BY name LIMIT 2", False),
    ],
)
def test_s06_golds_that_the_data_do_not_determine_are_found(
    shop: Path, gold: str, *, undetermined: bool
) -> None:
    """S06: what depends on how rows lie must never pay; what a key decides may."""
    found = examine(gold, shop, grading={})
    assert ("do not determine" in found.unusable) is undetermined
    assert undetermined or found.unusable == ""
    assert not any("not examined" in note for note in found.notes)


def test_what_cannot_be_examined_is_noted(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is too large or has virtual tables, and a gold that asks where rows lie."""

    def note(gold: str, database: Path) -> str:
        finding = examine(gold, database, grading={})
        assert finding.unusable == ""
        return finding.notes[-1].removeprefix("whether the data determine the gold was not ")

    virtual = make_database(
        tmp_path / "v.sqlite", "CREATE VIRTUAL TABLE v USING fts5(a); INSERT INTO v VALUES ('x');"
    )
    assert note("SELECT a FROM v", virtual).startswith("examined: no copy can be made")
    where = "examined: it reads where its rows lie"
    assert note("SELECT rowid FROM item WHERE name = 'c'", shop) == where
    assert note("SELECT count(*) FROM sqlite_master", shop) == where
    monkeypatch.setattr(_sql_reordered, "MOST_BYTES", 1 << 10)
    assert note("SELECT name FROM item", shop) == "examined: the database is larger than 0 MB"
    with pytest.raises(DataError), reordered(shop):
        pass
