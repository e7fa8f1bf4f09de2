"""``toolenvs replay``, ``rescore`` and ``cache`` from the words to the exit code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_rollout import Adder
from toolenvs import runtimes
from toolenvs.cache.schema import HEAD
from toolenvs.cli.replay import _Resources
from toolenvs.errors import UsageError
from toolenvs.types import Task, Trajectory


@pytest.fixture
def run(toolenvs: Toolenvs, adder: Adder, tmp_path: Path) -> Path:
    """A recorded run."""
    words = ("--policy", "noisy", "--sandbox", "adder", "--episodes", "12")
    place = ("--replay", "auto", "--cache", f"sqlite:///{tmp_path / 'cache.db'}")
    out = tmp_path / "run"
    result = toolenvs("rollout", "math_tir", *words, *place, "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["replay"] == "auto"
    return out


def test_a_run_replays_without_its_sandbox(run: Path, toolenvs: Toolenvs) -> None:
    """Every step is identical, and the sandbox that it was recorded in is not even known."""
    del runtimes.registry._registered["adder"]
    result = toolenvs("replay", str(run), "--json")
    runtimes.register("adder", Adder)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["episodes"], report["identical"], report["identical_share"]) == (12, 12, 1.0)
    assert report["differences"] == []
    assert "12 of 12 episodes identical" in toolenvs("replay", str(run)).stdout


def test_a_difference_is_shown_and_fails(run: Path, toolenvs: Toolenvs) -> None:
    """The first one as a diff that a person can read; exit code 1."""
    file = run / "trajectories.jsonl"
    lines = file.read_text().split("\n")
    lines[3] = lines[3].replace('"terminated":true', '"terminated":false')
    file.write_text("\n".join(lines))
    result = toolenvs("replay", str(run))
    assert result.exit_code == 1
    assert "first difference: episode 3 " in result.stdout
    assert "-false\n+true" in result.stdout
    assert "11 of 12 episodes identical" in result.stdout
    assert toolenvs("replay", str(run / "nothing")).exit_code == 2


def test_live_runs_again(run: Path, toolenvs: Toolenvs, adder: Adder) -> None:
    """The tools run again, in the sandbox that is named."""
    before = adder.executed
    result = toolenvs("replay", str(run), "--live", "--sandbox", "adder", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["live"]
    assert report["identical_steps"] == report["steps"] > 12
    assert adder.executed > before


def test_live_tells_which_episodes_could_not_be_run(
    run: Path, toolenvs: Toolenvs, adder: Adder
) -> None:
    """A machine that fails now is told as such and fails the check; it is no difference."""
    adder.dies_at = {adder.executed + number for number in range(1, 4)}
    result = toolenvs("replay", str(run), "--live", "--sandbox", "adder")
    assert result.exit_code == 1
    assert "1 episode could not be run: sandbox_died: gone" in result.stdout
    assert "11 of 11 episodes identical" in result.stdout
    assert "first difference" not in result.stdout


def test_live_leaves_out_what_was_imported(run: Path, toolenvs: Toolenvs, tmp_path: Path) -> None:
    """Such a line is named; the others are played."""
    chat = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    toolenvs("import", str(tmp_path / "chat.jsonl"), "--out", str(tmp_path / "theirs"))
    with (run / "trajectories.jsonl").open("a") as lines:
        lines.write((tmp_path / "theirs" / "trajectories.jsonl").read_text())
    result = toolenvs("replay", str(run), "--live", "--sandbox", "adder")
    assert result.exit_code == 1
    assert "12 of 12 episodes identical" in result.stdout
    told = " ".join(result.stdout.split())
    assert "this run was imported (openai_chat); it cannot be replayed" in told


def test_a_run_tells_its_own_source(toolenvs: Toolenvs, tmp_path: Path) -> None:
    """Pages are looked up in the corpus that the run was played over, without naming it again."""
    row = {
        "id": "q",
        "question": "Where does the Adaja end?",
        "answer": "Duero",
        "context": {"title": ["Adaja"], "sentences": [["The Adaja ends in the Duero."]]},
        "supporting_facts": {"title": ["Adaja"], "sent_id": [0]},
    }
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n")
    tasks = ("--tasks", f"hotpotqa:{tmp_path / 'q.jsonl'}")
    out = str(tmp_path / "run")
    result = toolenvs("rollout", "search", *tasks, "--policy", "gold", "--out", out)
    assert result.exit_code == 0, result.output
    result = toolenvs("replay", out, "--live")
    assert result.exit_code == 0, result.output
    assert "1 of 1 episodes identical" in result.stdout


def test_each_episode_has_the_resources_of_its_own_source(tmp_path: Path) -> None:
    """By family and by task; a family whose source is not named has its own small tasks."""
    specs = []
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "databases").mkdir(parents=True)
        with closing(sqlite3.connect(folder / "databases" / "t.sqlite")) as database:
            database.executescript("CREATE TABLE t (a int)")
        row = {"id": name, "prompt": "?", "answer": "SELECT 1", "database": {"place": "t.sqlite"}}
        (folder / "t.jsonl").write_text(json.dumps(row))
        specs.append(f"jsonl:{folder / 't.jsonl'}")
    played = {"math_tir": {"m"}, "sql": {"one", "two"}, "search": {"s"}}
    resources = _Resources(played, specs)
    tasks = [Task(id=name, prompt="?", family="sql") for name in ("one", "two", "three")]
    found = [resources.of(Trajectory(task=task)) for task in tasks]
    folders = [str(one.get("sandbox:sql", {}).get("data", "")) for one in found]
    assert ["/one/" in folders[0], "/two/" in folders[1], folders[2]] == [True, True, ""]
    assert resources.of(Trajectory(task=Task(id="m", prompt="?"))) == {}
    assert resources.of(Trajectory(task=Task(id="s", prompt="?", family="search")))
    with pytest.raises(UsageError, match=r"nowhere\.jsonl"):
        _Resources(played, [f"jsonl:{tmp_path / 'nowhere.jsonl'}"])


def test_a_rollout_is_served_from_the_cache(
    run: Path, toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """The same episodes again start nothing and write the same bytes; others are a clear miss."""
    before = adder.executed
    words = ["rollout", "math_tir", "--policy", "noisy", "--sandbox", "adder", "--episodes", "12"]
    words += ["--cache", f"sqlite:///{tmp_path / 'cache.db'}", "--replay", "replay"]
    result = toolenvs(*words, "--out", str(tmp_path / "again"), "--json")
    assert result.exit_code == 0, result.output
    assert adder.executed == before
    told = json.loads(result.stdout)
    assert told["cache_hits"] > 0
    assert told["cache_misses"] == 0
    shown = " ".join(toolenvs(*words).stdout.split())
    assert f"calls served from the cache {told['cache_hits']} of {told['cache_hits']} " in shown
    one, two = (
        (folder / "trajectories.jsonl").read_bytes() for folder in (run, tmp_path / "again")
    )
    assert one == two
    result = toolenvs(*words, "--seed", "4")
    assert result.exit_code == 1
    assert "nearest recording: python" in result.stderr
    result = toolenvs("rollout", "math_tir", "--policy", "gold", "--replay", "auto")
    assert result.exit_code == 2
    assert "cache='sqlite" in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--replay", "replay", "--cache", "sqlite:///nowhere.db"), "nowhere.db does not exist"),
        (("--cache", "sqlite:///nowhere.db"), "give --replay auto"),
    ],
)
def test_a_cache_that_serves_nothing_is_a_usage_error(
    words: tuple[str, ...],
    told: str,
    toolenvs: Toolenvs,
    adder: Adder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is not there in a replay, or one without a mode; none is made."""
    monkeypatch.chdir(tmp_path)
    result = toolenvs("rollout", "math_tir", "--policy", "gold", "--sandbox", "adder", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_is_scored_again(run: Path, toolenvs: Toolenvs) -> None:
    """By its own rubric equal to the byte, by another side by side."""
    report = json.loads(toolenvs("rescore", str(run), "--json").stdout)
    assert (report["episodes"], report["equal"]) == (12, 12)
    result = toolenvs("rescore", str(run), "--rewards", "outcome")
    assert result.exit_code == 0
    assert "answer" in result.stdout
    assert toolenvs("rescore", str(run), "--rewards", "outcom").exit_code == 2


def test_a_cache_is_looked_after(run: Path, toolenvs: Toolenvs, tmp_path: Path) -> None:
    """stats, export, import and prune, each as one JSON object."""
    url, two = (f"sqlite:///{tmp_path / name}" for name in ("cache.db", "two.db"))
    stats = json.loads(toolenvs("cache", "stats", url, "--json").stdout)
    entries = stats["entries"]
    assert stats["tools"] == {"python": entries}
    assert stats["revision"] == HEAD
    file = str(tmp_path / "out.jsonl")
    wrote = json.loads(toolenvs("cache", "export", url, file, "--json").stdout)
    assert wrote == {"entries": entries, "damaged": [], "file": file}
    found = json.loads(toolenvs("cache", "import", two, file, "--json").stdout)
    assert found == {"read": entries, "damaged": [], "entries": entries}
    pruned = toolenvs("cache", "prune", two, "--max-age", "30d", "--max-size", "1K", "--json")
    left = json.loads(pruned.stdout)
    assert left["deleted"] + left["entries"] == entries
    assert left["deleted"] > 0
    assert "entries" in toolenvs("cache", "stats", url).stdout


def test_a_damaged_line_of_an_export_is_named_and_the_rest_is_added(
    run: Path, toolenvs: Toolenvs, tmp_path: Path
) -> None:
    """Exit code 1, each line on stderr, and the cache has all others."""
    url, two = (f"sqlite:///{tmp_path / name}" for name in ("cache.db", "two.db"))
    file = tmp_path / "out.jsonl"
    toolenvs("cache", "export", url, str(file))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:-1], lines[-1][:-5]]))
    result = toolenvs("cache", "import", two, str(file))
    assert result.exit_code == 1
    assert f"{file}:{len(lines)}: this is no line" in result.stderr
    left = json.loads(toolenvs("cache", "stats", two, "--json").stdout)["entries"]
    assert left == json.loads(toolenvs("cache", "stats", url, "--json").stdout)["entries"] - 1


def test_a_damaged_entry_is_named_by_an_export_and_the_rest_is_written(
    run: Path, toolenvs: Toolenvs, tmp_path: Path
) -> None:
    """Exit code 1, each on stderr; the numbers and an age that is none are shown all the same."""
    url, file = f"sqlite:///{tmp_path / 'cache.db'}", str(tmp_path / "out.jsonl")
    entries = json.loads(toolenvs("cache", "stats", url, "--json").stdout)["entries"]
    with closing(sqlite3.connect(tmp_path / "cache.db")) as raw, raw:
        raw.execute("UPDATE toolenvs_entries SET created = 9e999 WHERE rowid = 1")
    assert toolenvs("cache", "stats", url).exit_code == 0
    result = toolenvs("cache", "export", url, file)
    assert result.exit_code == 1
    assert f"{entries - 1} results written" in result.stdout
    assert "is damaged and left out" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "sqlite:///nowhere.db"),
        ("stats", "sqlite:///."),
        ("stats", "postgresql://me@host:port/name"),
        ("export", "sqlite:///.", "out.jsonl"),
        ("stats", "nowhere.db"),
        ("prune", "sqlite:///nowhere.db", "--max-age", "1d"),
        ("import", "sqlite:///nowhere.db", "nowhere.jsonl"),
    ],
)
def test_a_cache_that_is_not_there_is_a_usage_error(
    words: tuple[str, ...], toolenvs: Toolenvs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2, and no file is made."""
    monkeypatch.chdir(tmp_path)
    result = toolenvs("cache", *words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    if words[0] != "import":
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("--max-age=x", "'x' is no amount"),
        ("--max-size=nan", "'nan' is no amount"),
        ("--max-size=1e999", "'1e999' is no amount"),
        ("--max-size=1e30G", "'1e30G' is no amount"),
        ("--max-age=-3d", "'-3d' is no amount"),
        ("", "say what"),
    ],
)
def test_pruning_says_what_an_amount_is(
    bound: str, told: str, run: Path, toolenvs: Toolenvs, tmp_path: Path
) -> None:
    """A bound without a meaning deletes nothing."""
    words = ["cache", "prune", f"sqlite:///{tmp_path / 'cache.db'}"]
    result = toolenvs(*words, *([bound] if bound else []))
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_damaged_line_fails_both(run: Path, toolenvs: Toolenvs) -> None:
    """Whatever else is well: a record that cannot be used is told by the exit code."""
    file = run / "trajectories.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:3], b"{}\n", *lines[4:]]))
    for command in ("replay", "rescore"):
        result = toolenvs(command, str(run))
        assert result.exit_code == 1, result.output
        assert "hold no episode" in result.stdout
