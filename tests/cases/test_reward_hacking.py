"""Published ways to be paid for nothing, against the default rubric: none of them pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectories import TASK, episode, python, stopped, submit, unreadable
from toolenvs.rewards.answer import Answer
from toolenvs.rubric import Rubric, Settled, make_rubric, rescore
from toolenvs.terms import Gate, RewardTerm
from toolenvs.types import ParsedTurn, Score, Step, Task, Trajectory

GATED = make_rubric("gated")
EXIT = python("import sys; sys.exit(0)")
PASS = python("pass")
LONG = "<think>" + "hmm " * 600 + "</think>"


def score_of(*steps: Step, rubric: Rubric = GATED, task: Task = TASK) -> float:
    """The episode's score of these steps."""
    return sum(step.reward for step in rescore(episode(*steps, task=task), rubric))


@pytest.mark.parametrize("answer", ["7", "8", "", "a guess"])
@pytest.mark.parametrize(
    "padding",
    [
        pytest.param([PASS] * 10, id="f-ten-times-pass"),
        pytest.param([EXIT], id="g-exit-0"),
        pytest.param([python(failed=True)] * 3, id="raises"),
        pytest.param([python("")] * 3, id="prints-nothing"),
        pytest.param([python(text=LONG)], id="e-long-thought"),
    ],
)
def test_h03_padding_earns_nothing(padding: list[Step], answer: str) -> None:
    """H03 e, f, g: calls and thoughts that do nothing earn no more than the same answer without."""
    assert score_of(*padding, submit(answer)) <= score_of(submit(answer)) + 1e-12
    dirty = submit(answer, problems=("a stray tag",))
    assert score_of(*padding, dirty) <= score_of(dirty) + 1e-12
    stumbled = [unreadable(), submit(answer)]
    assert score_of(unreadable(), *padding, submit(answer)) <= score_of(*stumbled) + 1e-12


@pytest.mark.parametrize("size", [600, 6_000, 60_000])
def test_h03_e_longer_thoughts_never_earn_more(size: int) -> None:
    """H03 e: the same wrong answer after any length of thought earns the same or less."""
    thoughtful = submit("8", text="<think>" + "hmm " * size + "</think>8")
    assert score_of(thoughtful) <= score_of(submit("8"))


def test_h03_f_success_is_counted_but_gives_no_net_gain() -> None:
    """H03 f: the step that succeeds is paid, and the end takes it back."""
    settled = rescore(episode(*[PASS] * 10, submit("8")), GATED)
    assert settled[0].terms["tool_success"] == pytest.approx(0.1)
    assert sum(step.terms["tool_success"] for step in settled) == pytest.approx(0.0, abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.sampled_from([PASS, EXIT, python(failed=True)]), max_size=12))
def test_h03_any_padding_is_bounded_and_useless(padding: list[Step]) -> None:
    """Whatever is called, the episode's score is the answer's, and stalling is never better."""
    wrong = score_of(*padding, submit("8"))
    assert wrong == pytest.approx(score_of(submit("8")))
    assert score_of(*padding, stopped()) <= wrong
    assert wrong < score_of(*padding, submit("7")) <= 1.15 + 1e-12


# What a strict format says of the texts of H04: everything but the last is no well-formed message.
H04 = [
    ("<think>ok</tool><answer>7</answer>", "'think' is closed by 'tool'"),
    ("<think></think>ok", "no call and no answer"),
    ("<think> </think><answer> </answer>", "the answer is empty"),
    ("<answer>7</answer><think>later</think>", "text after the answer"),
    ("<think>a</think><think>b</think><answer>7</answer><answer>8</answer>", "two answers"),
    ("<THINK>a</THINK><answer>7</answer>", "unknown tag 'THINK'"),
    ("<think>ok</think><answer>7</answer>", ""),
]


@pytest.mark.parametrize(("text", "problem"), H04)
def test_h04_a_dirty_answer_is_gated_to_0(text: str, problem: str) -> None:
    """H04: only the well-formed message opens the gate; behind a closed one the answer pays 0."""
    step = submit("7", problems=(problem,) if problem else (), text=text)
    if problem.startswith("no call"):
        error = unreadable(problem).parsed
        assert error is not None
        step = msgspec.structs.replace(step, parsed=error, calls=(), results=(), terminated=False)
        step = msgspec.structs.replace(step, truncated=True, end_reason="max_turns")
    settled = rescore(episode(step), GATED)[0]
    assert settled.scores["format_valid@final"].value == (0.0 if problem else 1.0)
    assert settled.reward == (0.0 if problem else pytest.approx(1.0))


def test_h04_the_gate_only_takes() -> None:
    """H04: being well-formed pays nothing by itself, so a message of right tags alone earns 0."""
    chatter = Step(action="<think>ok</think>", parsed=ParsedTurn())
    assert score_of(chatter, stopped()) == 0.0
    assert score_of(chatter, submit("7")) == score_of(submit("7"))


def test_h04_a_dirty_turn_cannot_be_diluted() -> None:
    """One dirty turn before a clean answer halves the score, however many clean turns follow."""
    halved = score_of(unreadable(), submit("7"))
    assert halved == pytest.approx(score_of(submit("7")) / 2)
    assert score_of(unreadable(), *[PASS] * 20, submit("7")) == pytest.approx(halved)


class PoisonedAnswer(Answer):
    """The outcome, whose grader raises on one task."""

    def score(self, task: Task, prefix: Trajectory) -> Score:
        if task.id == "poisoned" and prefix.ended:
            raise ZeroDivisionError
        return super().score(task, prefix)


POISONED = msgspec.structs.replace(TASK, id="poisoned")
BATCH: Mapping[str, tuple[Task, Sequence[Step]]] = {
    "right answer with a good call": (TASK, [python(), submit("7")]),
    "wrong answer with a good call": (TASK, [python(), submit("8")]),
    "right answer, no call": (TASK, [submit("7")]),
    "grader raises on this one": (POISONED, [python(), submit("7")]),
    "right answer with a failed call": (TASK, [python(failed=True), submit("7")]),
}


def batch() -> dict[str, list[Settled]]:
    """The batch of H07, scored by the default rubric with a grader that raises once."""
    terms = [RewardTerm(PoisonedAnswer()), *GATED.terms[1:]]
    rubric = Rubric(terms, gates=GATED.gates)
    return {
        name: rescore(episode(*steps, task=task), rubric) for name, (task, steps) in BATCH.items()
    }


def test_h07_one_reward_for_each_sample_in_order() -> None:
    """H07: five samples give five scores in order; the poisoned one moves no neighbour."""
    scored = batch()
    totals = [sum(step.reward for step in steps) for steps in scored.values()]
    assert totals == pytest.approx([1.05, 0.05, 1.05, 0.05, 1.05])
    masked = [steps[-1].masked["answer"] for steps in scored.values()]
    assert masked == [False, False, False, True, False]
    reason = scored["grader raises on this one"][-1].scores["answer"].reason
    assert reason == "raised ZeroDivisionError"


def test_h07_the_total_is_the_weighted_sum_of_the_reported_parts() -> None:
    """H07: to 1e-9, for every sample and step."""
    weights = {"answer": 1.0, "tool_success": 0.1, "length": 0.05}
    for steps in batch().values():
        scores = steps[-1].scores
        parts = sum(weight * scores[name].value for name, weight in weights.items())
        assert sum(step.reward for step in steps) == pytest.approx(parts, abs=1e-9)
        for step in steps:
            assert step.reward == pytest.approx(sum(step.terms.values()), abs=1e-9)


def test_h07_no_component_is_constant() -> None:
    """H07: each term takes at least two values over the batch; a sample without a call shows it."""
    steps = [step for steps in batch().values() for step in steps]
    for name in ("answer", "tool_success", "length"):
        assert len({step.scores[name].value for step in steps}) >= 2
        assert len({step.terms[name] for step in steps}) >= 2
    no_call = batch()["right answer, no call"][0]
    assert no_call.terms["tool_success"] == 0.0


def test_h07_the_gates_take_at_least_two_values() -> None:
    """H07: a batch with a dirty message shows that the gates are no constant either."""
    rubric = Rubric(GATED.terms, gates=[Gate("format_valid", scope="turn")])
    shares = {
        rescore(episode(*steps), rubric)[-1].scores["format_valid@turn"].value
        for steps in ([submit()], [unreadable(), submit()], [submit(problems=("stray",))])
    }
    assert shares == {1.0, 0.5, 0.0}
