"""What is known of golds is not found out again, and never outlives what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.sources.databases import EMP, make_database
from toolenvs.grading.sql_fitness import GoldFinding
from toolenvs.sources import _sqlfindings
from toolenvs.sources._sqlfindings import KeptFindings
from toolenvs.sources._sqlgold import examine

FIT, TIED = "SELECT name FROM emp", "SELECT name FROM emp ORDER BY pay DESC LIMIT 1"


@pytest.fixture
def emp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database, and a cache of one's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_database(tmp_path / "emp.sqlite")
    return tmp_path / "emp.sqlite"


def asked(monkeypatch: pytest.MonkeyPatch, emp: Path, *golds: str) -> list[str]:
    """The golds that a load of this file runs."""
    run: list[str] = []

    def counted(gold: str, database: Path, *, grading: Mapping[str, Any]) -> GoldFinding:
        run.append(gold)
        return examine(gold, database, grading=grading)

    kept = KeptFindings(emp.parent / "rows.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(_sqlfindings, "examine", counted)
        for gold in golds:
            found = kept.examine(gold, emp, grading={})
            assert found == examine(gold, emp, grading={})
    kept.save()
    return run


def test_what_is_known_is_not_run_again(emp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes and all; a gold that is unfit is run at each load."""
    unfit = "SELECT nope FROM emp"
    assert asked(monkeypatch, emp, FIT, TIED, unfit) == [FIT, TIED, unfit]
    assert asked(monkeypatch, emp, FIT, TIED, unfit) == [unfit]


def test_another_database_or_rule_is_another_finding(
    emp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content counts, not the file's name; so do the rules, and a broken file is none."""
    asked(monkeypatch, emp, FIT)
    emp.unlink()
    make_database(emp, EMP + "DELETE FROM emp WHERE id = 3;")
    assert asked(monkeypatch, emp, FIT) == [FIT]
    with monkeypatch.context() as patch:
        patch.setattr(_sqlfindings, "_rules", lambda: "others")
        assert asked(patch, emp, FIT) == [FIT]
    (file,) = (emp.parent / "cache" / "toolenvs" / "golds").iterdir()
    file.write_text("{")
    assert asked(monkeypatch, emp, FIT) == [FIT]


def test_without_a_cache_each_gold_is_run(emp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That nothing can be kept stops no load."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(emp))
    assert asked(monkeypatch, emp, FIT) == [FIT]
    assert asked(monkeypatch, emp, FIT) == [FIT]
