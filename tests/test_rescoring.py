"""Runs scored again: what can be, and by name what cannot."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.test_replay import COUNT, RECORDED, play
from toolenvs.errors import UsageError
from toolenvs.records import RunWriter
from toolenvs.rescoring import rescore_run
from toolenvs.rubric import Rubric
from toolenvs.types import Step, Task, Trajectory

RIGHT = Step(action="\\boxed{7}", terminated=True, reward=1.0, terms={"imported": 1.0})
IMPORTED = Trajectory(
    task=Task(id="i", prompt="?", answer="7", family="imported"),
    settings={"imported": "nemo_gym"},
    prompt="?",
    steps=(RIGHT,),
)
WRONG = msgspec.structs.replace(
    IMPORTED, steps=(msgspec.structs.replace(RIGHT, action="It is 8."),)
)
NO_GOLD = msgspec.structs.replace(IMPORTED, task=Task(id="n", prompt="?", family="imported"))
UNPLAYED = Trajectory(task=Task(id="t", prompt=""), steps=(Step(action="", failure="capacity"),))


def write(folder: Path, *episodes: Trajectory) -> Path:
    """A run of these."""
    with RunWriter(folder, {}) as writer:
        for one in episodes:
            writer.write(one)
    return folder


def test_imported_episodes_are_scored_by_the_answer_that_they_give(tmp_path: Path) -> None:
    """Beside the mean that their own program recorded."""
    report = rescore_run(write(tmp_path, IMPORTED, WRONG), rewards="outcome")
    assert (report.episodes, report.rescored["answer"], report.whole) == (2, 0.5, True)
    assert report.recorded == {"score": 1.0, "imported": 1.0}


def test_what_cannot_be_scored_is_counted_and_named(tmp_path: Path) -> None:
    """It is in no mean, and never a silent 0; what never began is apart."""
    run = write(tmp_path, UNPLAYED, IMPORTED, NO_GOLD, play([COUNT]), play(RECORDED))
    report = rescore_run(run, rewards="outcome")
    assert (report.episodes, report.unplayed, report.whole) == (3, 1, False)
    (one,) = report.unscored
    assert (one.episode, one.task_id) == (2, "n")
    assert one.reason == "it was imported (nemo_gym): it tells no gold answer."
    own = rescore_run(run)
    assert (own.episodes, own.equal) == (2, 2)
    assert [one.episode for one in own.unscored] == [1, 2]
    assert "no rubric of its own" in own.unscored[0].reason


@pytest.mark.parametrize(
    ("rewards", "told"),
    [("sql", "needs a database"), ("search", "no supporting document"), ("", "name one")],
)
def test_a_rubric_that_says_nothing_of_an_episode_does_not_score_it(
    tmp_path: Path, rewards: str, told: str
) -> None:
    """Where none is left, that is the error."""
    with pytest.raises(UsageError, match=rf"1 cannot be scored; the first: .*{told}"):
        rescore_run(write(tmp_path, IMPORTED), rewards=rewards)


def test_a_rubric_without_an_answer_needs_no_gold(tmp_path: Path) -> None:
    """An episode without a step has nothing that it could score."""
    empty = msgspec.structs.replace(IMPORTED, steps=())
    rubric = Rubric.from_dict({"terms": [{"reward": "length"}], "known_hacks": ["say little"]})
    report = rescore_run(write(tmp_path, NO_GOLD, empty), rewards=rubric)
    assert (report.episodes, len(report.unscored)) == (1, 1)
    assert "no step" in report.unscored[0].reason


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    """As a replay does; a last line that a crash cut is no damage."""
    file = write(tmp_path, play([COUNT]), play([COUNT])) / "trajectories.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b"{}\n" + second + b'{"version')
    report = rescore_run(file)
    assert (report.episodes, report.equal, len(report.damaged)) == (2, 2, 1)
    assert not report.whole
    file.write_bytes(first + second[:-1])
    assert rescore_run(file).whole
