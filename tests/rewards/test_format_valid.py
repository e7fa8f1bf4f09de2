"""Well-formedness is what the format said of each message, by scope."""

from __future__ import annotations

import pytest

from tests.trajectories import TASK, cut, episode, python, stopped, submit, unreadable
from toolenvs.errors import UsageError
from toolenvs.rewards.format_valid import FormatValid, Scope
from toolenvs.types import ParsedTurn, Step

DIRTY = submit(problems=("text after the answer",))


def value(scope: Scope, *steps: Step, unjudged: float = 0.0) -> float:
    """The score of these steps."""
    return FormatValid(scope, unjudged=unjudged).score(TASK, episode(*steps)).value


@pytest.mark.parametrize(
    ("steps", "final", "turn", "trajectory"),
    [
        ([python(), submit()], 1, 1, 1),
        ([unreadable(), submit()], 1, 0.5, 0),
        ([python(), python(), python(), DIRTY], 0, 0.75, 0),
        ([DIRTY], 0, 0, 0),
        ([cut(), unreadable(), python(), submit()], 1, 2 / 3, 0),
        ([python(), stopped()], 1, 1, 1),
        ([python(), unreadable(), stopped()], 0, 0.5, 0),
        ([unreadable(), python(), stopped()], 1, 0.5, 0),
    ],
)
def test_each_scope_judges_its_messages(
    steps: list[Step], final: float, turn: float, trajectory: float
) -> None:
    """``final`` the answer's or last message, ``turn`` the share, ``trajectory`` all of them."""
    assert value("final", *steps) == final
    assert value("turn", *steps) == pytest.approx(turn)
    assert value("trajectory", *steps) == trajectory


@pytest.mark.parametrize("scope", ["final", "turn", "trajectory"])
@pytest.mark.parametrize("steps", [[cut()], [stopped()], [Step(action="")]])
def test_what_was_not_written_by_the_model_is_not_judged(scope: Scope, steps: list[Step]) -> None:
    """Cut messages and steps of ``act`` or ``finish`` are neither clean nor dirty."""
    assert value(scope, *steps) == 0.0
    assert value(scope, *steps, unjudged=1.0) == 1.0
    assert value(scope, unjudged=1.0) == 0.0, "the empty prefix is 0, whatever unjudged is"


def test_final_waits_for_the_answer() -> None:
    """Before the end there is no answer's message, so nothing is judged."""
    assert value("final", unreadable(), unjudged=1.0) == 1.0


def test_a_repair_is_no_clean_message() -> None:
    """A call that was read only after a repair ran, but the message was not well-formed."""
    step = Step(action="x", parsed=ParsedTurn(repaired=True))
    assert FormatValid().score(TASK, episode(step)).reason == "1 of 1 messages not clean: repaired"


def test_the_reason_quotes_the_first_problem() -> None:
    """A reader of the record sees what was wrong."""
    score = FormatValid("turn").score(TASK, episode(unreadable("no closing tag"), submit()))
    assert score.reason == "1 of 2 messages not clean: no closing tag"


def test_options_are_checked() -> None:
    """An unknown scope or a value out of range is a usage error."""
    with pytest.raises(UsageError, match="choose final"):
        FormatValid("last")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unjudged"):
        FormatValid(unjudged=2.0)
