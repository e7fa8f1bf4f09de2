"""The numbers of an episode and of a table."""

from __future__ import annotations

from collections.abc import Sequence

from toolenvs.summary import EpisodeSummary, Job, evaluate, summarise, summarise_episode
from toolenvs.types import Score, Step, Task, ToolCall, ToolError, ToolResult, Trajectory

GOOD = ToolResult(text="2")
BAD = ToolResult(text="", error=ToolError("raised", "NameError"))
CALL = ToolCall("python", {"code": "1"})


def told(*turns: Sequence[ToolResult], answer: str | None = None) -> EpisodeSummary:
    """The summary of an episode with these results by turn."""
    steps = [
        Step(action="", calls=(CALL,) * len(results), results=tuple(results)) for results in turns
    ]
    if answer is not None:
        done = ToolResult(text="", data={"answer": answer}, terminal=True)
        steps.append(
            Step(
                action="",
                calls=(ToolCall("submit", {"answer": answer}),),
                results=(done,),
                scores={"answer": Score(1.0)},
                terminated=True,
                end_reason="submit",
            )
        )
    trajectory = Trajectory(task=Task(id="t", prompt=""), steps=tuple(steps))
    return summarise_episode(Job("t"), trajectory, answer_term="answer")


def test_a_submission_is_no_call_of_a_tool() -> None:
    """Else no episode that answers would be without a call."""
    episode = told(answer="2")
    assert (episode.calls, episode.first_call, episode.right, episode.answer) == (0, 0, True, "2")


def test_an_error_is_repaired_by_a_later_call_that_goes_well() -> None:
    """Errors count as repaired when some later call of the episode has no error."""
    assert told([BAD], [GOOD]).repaired == 1
    assert told([GOOD], [BAD]).repaired == 0
    assert told([BAD, BAD], [GOOD], [BAD]).repaired == 2
    assert told([BAD, GOOD]).errors == 1


def test_the_first_call_has_its_turn() -> None:
    """Counted from 1; 0 without any."""
    assert told([], [GOOD]).first_call == 2
    assert told([]).first_call == 0


def test_masked_and_failed_episodes_are_in_no_mean() -> None:
    """C07: neither may move success, score or a term."""
    good = EpisodeSummary(job=Job("a"), score=1.0, right=True, terms={"answer": 1.0}, turns=2)
    masked = EpisodeSummary(job=Job("b"), masked=True, terms={"answer": 0.0}, turns=9)
    failed = EpisodeSummary(job=Job("c"), failure="sandbox_died", turns=9)
    table = summarise([good, masked, failed], sandbox="x", replay="off")
    assert (table.episodes, table.failed, table.masked) == (3, 1, 1)
    assert (table.success, table.score, table.terms, table.turns) == (
        1.0,
        1.0,
        {"answer": 1.0},
        2.0,
    )
    estimates = evaluate([good, masked, failed], 1)
    assert all(found.value == 1.0 and found.tasks == 1 for found in estimates.values())


def test_a_table_of_failures_has_no_score() -> None:
    """None, not 0: nothing was measured."""
    failed = EpisodeSummary(job=Job("c"), failure="sandbox_died")
    table = summarise([failed], sandbox="x", replay="off")
    assert (table.success, table.score, table.turns, table.ms_per_step) == (None, None, None, None)
