"""Near misses, contents that tell them from the gold, and the choice among those."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.grading.sql_contents import (
    Column,
    Content,
    ForeignKey,
    Hints,
    Table,
    neighbour,
    read_hints,
)
from toolenvs.grading.sql_mutants import near_misses
from toolenvs.grading.sql_neighbours import find_neighbours

DDL = """
CREATE TABLE team(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, city TEXT);
CREATE TABLE player(id INTEGER PRIMARY KEY, name TEXT, team_id INTEGER REFERENCES team(id),
  goals INTEGER, height REAL);
CREATE TABLE plays(player_id INTEGER NOT NULL REFERENCES player(id), year INTEGER NOT NULL,
  PRIMARY KEY (player_id, year));
"""
SCHEMA = (
    Table(
        "player",
        (
            Column("id", "INTEGER", nullable=False),
            Column("name", "TEXT"),
            Column("team_id", "INTEGER"),
            Column("goals", "INTEGER"),
            Column("height", "REAL"),
        ),
        primary_key=("id",),
        foreign_keys=(ForeignKey(("team_id",), "team", ("id",)),),
    ),
    Table(
        "plays",
        (Column("player_id", "INTEGER", nullable=False), Column("year", "INTEGER", nullable=False)),
        primary_key=("player_id", "year"),
        foreign_keys=(ForeignKey(("player_id",), "player", ("id",)),),
    ),
    Table(
        "team",
        (
            Column("id", "INTEGER", nullable=False),
            Column("name", "TEXT", nullable=False),
            Column("city", "TEXT"),
        ),
        primary_key=("id",),
        unique=(("name",),),
    ),
)
CONTENT: Content = {
    "team": [(1, "Reds", "Oslo"), (2, "Blues", "Bern"), (3, "Greens", "Oslo")],
    "player": [(1, "Ann", 1, 5, 1.7), (2, "Bob", 2, 9, 1.8), (3, "Cid", 3, 12, 1.9)],
    "plays": [(1, 2020), (2, 2020), (3, 2021)],
}
EMPTY: Content = {"team": [], "player": [], "plays": []}


class Memory:
    """Runs queries on databases in memory, one content at a time; keys are enforced."""

    def __init__(self) -> None:
        self._content: Content | None = None
        self._connection = sqlite3.connect(":memory:")

    def __call__(self, sql: str, content: Content) -> Mapping[str, Any]:
        if content is not self._content:
            self._connection.close()
            self._connection = filled(content)
            self._content = content
        try:
            cursor = self._connection.execute(sql)
            rows = [list(row) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            return {"error": {"kind": "raised", "message": str(error)}}
        return {"columns": [each[0] for each in cursor.description], "rows": rows, "cut": False}


def filled(content: Content) -> sqlite3.Connection:
    """A database with this content; raises where a key or a required value does not hold."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(DDL)
    for name, rows in content.items():
        for row in rows:
            connection.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    return connection


@pytest.mark.parametrize(
    ("gold", "misses"),
    [
        ("SELECT a FROM t WHERE b > 3", ["b >= 3", "b < 3", "b > 4", "b > 2", "SELECT a FROM t"]),
        ("SELECT DISTINCT a FROM t", ["SELECT a FROM t"]),
        ("SELECT a FROM t", ["SELECT DISTINCT a FROM t"]),
        ("SELECT max(a) FROM t", ["MIN(a)", "SUM(a)"]),
        ("SELECT count(DISTINCT a) FROM t", ["COUNT(a)"]),
        ("SELECT count(a) FROM t", ["COUNT(DISTINCT a)", "COUNT(*)"]),
        ("SELECT a FROM t WHERE b = 1 AND c = 2", ["b = 1 OR c = 2", "WHERE c = 2", "WHERE b = 1"]),
        ("SELECT a FROM t JOIN u ON t.x = u.x", ["LEFT JOIN"]),
        ("SELECT a FROM t LEFT JOIN u ON t.x = u.x", ["FROM t JOIN u"]),
        (
            "SELECT a FROM t ORDER BY b DESC LIMIT 2",
            ["b ASC LIMIT 2", "LIMIT 3", "LIMIT 1", "b DESC"],
        ),
        ("SELECT a FROM t UNION SELECT b FROM u", ["UNION ALL", "INTERSECT", "EXCEPT"]),
        ("SELECT a FROM t WHERE b LIKE '%x%'", ["'x%'", "'%x'"]),
        ("SELECT a, count(*) FROM t GROUP BY a, b", ["GROUP BY a", "GROUP BY b"]),
        ("SELECT a FROM t WHERE NOT b IN (1, 2)", ["WHERE b IN (1, 2)"]),
        ("SELECT a FROM t HAVING count(*) > 1", ["SELECT a FROM t"]),
    ],
)
def test_near_misses_are_small_mistakes(gold: str, misses: list[str]) -> None:
    """The usual ones are all there, the gold itself is not."""
    found = near_misses(gold)
    for miss in misses:
        assert any(miss in query for query in found), miss
    assert gold not in found
    assert len(set(found)) == len(found)


def test_near_misses_may_take_the_column_beside() -> None:
    """With the names of the columns, those next to one in its table are taken for it."""
    found = near_misses("SELECT goals FROM player", columns=[("name", "goals", "height")])
    assert "SELECT name FROM player" in found
    assert "SELECT height FROM player" in found


def test_near_misses_are_limited_by_seed() -> None:
    """As many as asked for, the same for the same seed; nothing of what cannot be parsed."""
    gold = "SELECT a FROM t WHERE b > 3 AND c < 4 ORDER BY d LIMIT 5"
    assert len(near_misses(gold, limit=5)) == 5
    assert near_misses(gold, limit=5, seed=1) == near_misses(gold, limit=5, seed=1)
    assert near_misses("DROP TABLE t") == []
    assert near_misses("(" * 500) == []


def test_hints_are_what_the_query_compares() -> None:
    """Constants by column, also of LIKE and BETWEEN, and the columns that it joins by."""
    hints = read_hints(
        "SELECT p.name FROM player AS p JOIN team AS t ON p.team_id = t.id "
        "WHERE p.goals BETWEEN 3 AND -4 AND t.name LIKE '%Red%' AND height > 1.5 AND p.id IN (7)"
    )
    assert hints.constants["goals"] == (3, -4)
    assert hints.constants["name"] == ("Red",)
    assert hints.constants["height"] == (1.5,)
    assert hints.constants["id"] == (7,)
    assert hints.links == ((("player", "team_id"), ("team", "id")),)
    assert read_hints("DROP TABLE t") == Hints()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([CONTENT, EMPTY]))
def test_contents_keep_the_keys(seed: int, content: Content) -> None:
    """Primary, unique and foreign keys and required values hold, whatever the seed."""
    hints = read_hints("SELECT name FROM player WHERE goals > 9 AND id = 2")
    made = neighbour(SCHEMA, content, hints=hints, seed=seed)
    assert list(made) == ["player", "plays", "team"]
    filled({name: made[name] for name in ("team", "player", "plays")}).close()
    assert made == neighbour(SCHEMA, content, hints=hints, seed=seed)


def test_contents_differ_and_lie_near_the_constants() -> None:
    """NULLs, doubles, values beside the constant, children without a parent and the reverse."""
    hints = read_hints("SELECT name FROM player WHERE goals > 100")
    made = [neighbour(SCHEMA, CONTENT, hints=hints, seed=seed) for seed in range(20)]
    goals = [row[3] for content in made for row in content["player"]]
    assert {None, 99, 100, 101} <= set(goals)
    names = [[row[1] for row in content["player"]] for content in made]
    assert any(len(set(each)) < len(each) for each in names)
    teams = [
        ({row[0] for row in c["team"]}, {row[2] for row in c["player"]} - {None}) for c in made
    ]
    assert any(there - used for there, used in teams)
    assert any(row[2] is None for content in made for row in content["player"])


@pytest.mark.parametrize(
    "gold",
    [
        "SELECT name FROM player WHERE goals > 9",
        "SELECT city, count(*) FROM player AS p JOIN team AS t ON p.team_id = t.id GROUP BY city",
        "SELECT DISTINCT city FROM team WHERE name LIKE '%e%'",
        "SELECT name FROM team WHERE id NOT IN (SELECT team_id FROM player WHERE goals < 6)",
        "SELECT max(height), avg(goals) FROM player WHERE team_id = 2",
        "SELECT name FROM player ORDER BY goals DESC LIMIT 1",
        "SELECT year, count(*) FROM plays WHERE player_id > 1 GROUP BY year HAVING count(*) >= 2",
    ],
)
def test_neighbours_kill_near_misses(gold: str) -> None:
    """A few contents find out most of what the given one lets pass, and no more than needed."""
    found = find_neighbours(gold, SCHEMA, CONTENT, Memory(), tries=60)
    assert found.killed >= 0.75 * found.near_misses, found.survivors
    assert found.killed > found.killed_before
    assert found.killed + len(found.survivors) == found.near_misses
    assert 1 <= len(found.contents) == len(found.seeds) <= 4
    assert len(find_neighbours(gold, SCHEMA, CONTENT, Memory(), most=1).contents) <= 1


def test_neighbours_are_a_function_of_the_seed() -> None:
    """Equal seeds choose equal contents."""
    gold = "SELECT name FROM player WHERE goals > 9"
    one = find_neighbours(gold, SCHEMA, CONTENT, Memory(), seed=3, tries=10)
    assert one == find_neighbours(gold, SCHEMA, CONTENT, Memory(), seed=3, tries=10)


def test_a_gold_that_cannot_be_read_has_no_neighbours() -> None:
    """There is nothing to kill, so nothing is chosen."""
    found = find_neighbours("PRAGMA x", SCHEMA, CONTENT, Memory(), tries=3)
    assert (found.near_misses, found.contents) == (0, ())
