"""Benches of search: recall by hand, the promised keys, and a small index timed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.backends.passages import cities
from toolenvs import sources
from toolenvs.backends import Hit
from toolenvs.bench.retrieval import bench_retrieval
from toolenvs.bench.searching import DrawnCorpus, bench_searching
from toolenvs.cli import app
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.types import Passage, Task


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep indexes of tests apart."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Questions:
    """A source of questions about the cities."""

    name = "questions"
    rejected: Sequence[str] = ()

    def __init__(self, location: str = "", *, family: str = "search") -> None:
        self.family = family
        self.resources: Mapping[str, Mapping[str, Any]] = {"index": {"corpus": cities()}}
        self._tasks = [
            self._task("a", "Norway's capital?", "oslo"),
            self._task("b", "Two of them", "lyon", "rhone"),
            self._task("c", "Nobody knows"),
        ]

    def _task(self, name: str, prompt: str, *supporting: str) -> Task:
        grading = {"supporting": list(supporting)}
        return Task(id=name, prompt=prompt, answer="x", family=self.family, grading=grading)

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: int) -> Task:
        return self._tasks[index]


class Fixed:
    """A backend that always finds the same."""

    name = "fixed"
    external = False

    def __init__(self, *ids: str) -> None:
        self.ids = ids

    def fingerprint(self) -> str:
        return repr(self.ids)

    def search(self, query: str, top_k: int) -> list[Hit]:
        return [Hit(id=name, title="", score=1.0, snippet="") for name in self.ids[:top_k]]

    def open(self, id_or_url: str) -> Passage | None:
        return None


class Down(Fixed):
    """One that cannot be asked."""

    name = "down"

    def search(self, query: str, top_k: int) -> list[Hit]:
        raise RuntimeFailure("search", "down today")


def test_recall_is_counted_as_by_hand() -> None:
    """Two questions count: 0 and 1/2 at 2, then 0 and 1 at 5, then 1 and 1 at 10."""
    found = Fixed("x", "lyon", "y", "rhone", "z", "oslo")
    report = bench_retrieval(Questions(), backend=[found, Down()])
    (row,) = report.rows
    assert (row.way, row.payload, row.n) == ("fixed", "questions", 2)
    assert (row.recall_2, row.recall_5, row.recall_10) == (0.25, 0.5, 1.0)
    assert report.skipped == {"down": "down today"}
    down_too = Down()
    down_too.name = "too"
    report = bench_retrieval(Questions(), backend=[Down(), down_too])
    assert report.skipped == {"down": "down today", "too": "for the same reason as down"}
    assert report.passages == 5


def test_questions_without_support_are_refused() -> None:
    """As is a source without a corpus."""
    source = Questions()
    source._tasks = source._tasks[2:]
    with pytest.raises(UsageError, match="says which passages support its answer"):
        bench_retrieval(source, backend=[Fixed()])
    source = Questions()
    source.resources = {}
    with pytest.raises(UsageError, match="has no corpus to search: add ,corpus=FILE"):
        bench_retrieval(source, backend=[Fixed()])


def test_drawn_passages_are_always_the_same() -> None:
    """Equal sizes, equal passages; ids are unique."""
    one, two = (list(DrawnCorpus(50)) for _ in range(2))
    assert one == two
    assert len({passage.id for passage in one}) == len({passage.text for passage in one}) == 50


def test_a_small_index_is_timed() -> None:
    """Steps one after another and in batches, and what an episode takes."""
    report = bench_searching(300, episodes=2, repeats=2)
    assert [(row.way, row.n) for row in report.rows] == [("in_turn", 4), ("batch", 2)]
    assert all(0 < row.p50_ms <= row.p95_ms for row in report.rows)
    assert report.built_per_s > 0
    assert report.index_mib > 0
    assert report.episode_kib < 1024


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> str:
    """A source of that name."""
    monkeypatch.setitem(sources.registry._registered, "questions", Questions)
    return "questions:"


def test_the_command_prints_one_object(questions: str) -> None:
    """Rows with way, payload, n and the recalls by their names."""
    arguments = ["bench", "retrieval", "--tasks", questions, "--backend", "bm25", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert {"rows", "ratios", "setting", "skipped"} <= set(report)
    (row,) = report["rows"]
    recalls = {"recall@2", "recall@5", "recall@10"}
    assert {"way", "payload", "n", "p50_ms", "p95_ms"} | recalls == set(row)
    assert row["recall@2"] == 0.5


def test_the_command_prints_a_table(questions: str) -> None:
    """With the same names, and a line for each backend that cannot run here."""
    result = CliRunner().invoke(app, ["bench", "retrieval", "--tasks", questions])
    assert result.exit_code == 0
    for word in ("recall@2", "recall@5", "recall@10", "bm25"):
        assert word in result.stdout


def test_the_command_times_an_index() -> None:
    """With the promised keys."""
    arguments = ["bench", "retrieval", "--passages", "100", "--episodes", "2", "--repeats", "1"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert {"rows", "ratios", "built_per_s", "index_mib", "episode_kib", "setting"} <= set(report)
    assert CliRunner().invoke(app, arguments).stdout.count("built_per_s") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--backend", "bm52"],
        ["--tasks", "nowhere:x"],
        ["--passages", "0"],
        ["--passages", "10", "--episodes", "1"],
        ["--passages", "10", "--backend", "bm25", "--backend", "dense"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_code_2(arguments: list[str], questions: str) -> None:
    """And prints nothing on stdout."""
    given = arguments if "--tasks" in arguments else ["--tasks", questions, *arguments]
    result = CliRunner().invoke(app, ["bench", "retrieval", *given])
    assert (result.exit_code, result.stdout) == (2, "")
