"""Rewards are the exact, bounded, reproducible changes of a trajectory's score."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectories import TASK, episode, failed, python, stopped, submit
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.rubric import PRESETS, Rubric, Settled, make_rubric, rescore
from toolenvs.terms import Gate, RewardTerm, Schedule
from toolenvs.types import Score, Step, Task, ToolCall, ToolResult, Trajectory


class Playback:
    """A component that plays back a path of scores, one for each step; an exception is raised."""

    def __init__(
        self,
        name: str,
        values: Sequence[Any],
        *,
        low: float = 0.0,
        high: float = 1.0,
        when: Literal["step", "end"] = "step",
        shaping: bool = False,
    ) -> None:
        self.name, self.values = name, values
        self.low, self.high, self.when, self.shaping = low, high, when, shaping

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        value = self.values[len(prefix.steps) - 1]
        if isinstance(value, Exception):
            raise value
        return value if isinstance(value, Score) else Score(value)


class Verifier(Playback):
    """A component that needs a private call's result."""

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        return [ToolCall("verify", {"step": len(prefix.steps)})]


class Speechless(Playback):
    """A component that cannot say what it needs."""

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        raise ValueError


def outcome(*values: Any) -> RewardTerm:
    """The answer's term, playing ``values``."""
    return RewardTerm(Playback("answer", values, when="end"), weight=10.0)


def turns(count: int, *, end: Step | None = None) -> Trajectory:
    """``count`` steps, the last of which is ``end`` or ends the episode by ``finish``."""
    return episode(*[python()] * (count - 1), end or stopped())


def number(schedule: Schedule) -> float:
    """The number that a schedule of one number is."""
    assert isinstance(schedule, float)
    return schedule


def score_of(settled: Sequence[Settled]) -> float:
    """The sum of the rewards."""
    return sum(step.reward for step in settled)


faulty = st.one_of(
    st.floats(0, 1), st.floats(0, 1), st.sampled_from([math.nan, 7.0, ValueError("poisoned")])
)


@st.composite
def rubrics(draw: st.DrawFn, *, gates: bool = True) -> tuple[Rubric, int]:
    """A rubric over random score paths with faults, and the number of steps that they cover."""
    count = draw(st.integers(1, 6))
    paths = st.lists(faulty, min_size=count, max_size=count)
    terms = [outcome(*draw(paths))]
    for index in range(draw(st.integers(0, 3))):
        component = Playback(f"p{index}", draw(paths), shaping=draw(st.booleans()))
        terms.append(RewardTerm(component, weight=draw(st.floats(0, 3))))
    factors = []
    for index in range(draw(st.integers(0, 2)) if gates else 0):
        floor = draw(st.floats(0, 0.9))
        factors.append(Gate(Playback(f"g{index}", draw(paths)), floor=floor))
    return Rubric(terms, gates=factors), count


@settings(deadline=None)
@given(rubrics())
def test_terms_sum_to_the_reward_and_rewards_to_the_episode_score(
    made: tuple[Rubric, int],
) -> None:
    """For all score paths, faults included: R_t - R_{t-1}, booked exactly; at the end R = G * S."""
    rubric, count = made
    settled = rescore(turns(count), rubric)
    for step in settled:
        assert tuple(step.terms) == tuple(step.masked) == rubric.names
        assert rubric.masked(step.scores) == step.masked
        assert sum(step.terms.values()) == pytest.approx(step.reward, abs=1e-9)
    last = settled[-1].scores
    gate = math.prod(
        number(g.floor) + (1 - number(g.floor)) * last[f"{g.reward.name}@trajectory"].value
        for g in rubric.gates
    )
    total = sum(number(t.weight) * last[t.reward.name].value for t in rubric.terms)
    assert score_of(settled) == pytest.approx(gate * total, abs=1e-9)


@settings(deadline=None)
@given(rubrics())
def test_no_step_pays_more_than_the_bounds(made: tuple[Rubric, int]) -> None:
    """Each term of each step lies within ``low`` and ``high``."""
    rubric, count = made
    for step in rescore(turns(count), rubric):
        for low, paid, high in zip(rubric.low, step.terms.values(), rubric.high, strict=True):
            assert low - 1e-9 <= paid <= high + 1e-9


@settings(deadline=None)
@given(rubrics())
def test_rescoring_gives_what_stepping_gave(made: tuple[Rubric, int]) -> None:
    """Settling step by step, with the records of each step kept, equals ``rescore`` offline."""
    rubric, count = made
    steps: tuple[Step, ...] = ()
    previous: Mapping[str, Score] = {}
    live = []
    for step in turns(count).steps:
        settled = rubric.settle(TASK, episode(*steps, step), previous)
        previous = settled.scores
        live.append(settled)
        steps += (
            msgspec.structs.replace(
                step, scores=settled.scores, terms=settled.terms, reward=settled.reward
            ),
        )
    recorded = episode(*steps)
    assert rescore(recorded, rubric) == live
    assert recorded.score == score_of(live)


@settings(max_examples=40, deadline=None)
@given(rubrics(), st.sampled_from([ValueError("x"), KeyError("x"), math.nan, 2.0]))
def test_a_poisoned_component_moves_no_other(made: tuple[Rubric, int], poison: Any) -> None:
    """A component that raises is masked with its reason, pays 0, and its neighbours do not move."""
    rubric, count = made
    extra = RewardTerm(Playback("poisoned", [poison] * count), weight=1.0)
    more = Rubric([*rubric.terms, extra], gates=rubric.gates, known_hacks=["test"])
    for old, new in zip(rescore(turns(count), rubric), rescore(turns(count), more), strict=True):
        assert new.terms["poisoned"] == 0.0
        assert new.masked["poisoned"]
        assert new.scores["poisoned"].reason
        assert {key: new.terms[key] for key in rubric.names} == old.terms
        assert {key: new.masked[key] for key in rubric.names} == old.masked


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (ValueError("at 0x7f3a"), "raised ValueError"),
        (math.nan, "nan is outside [0.0, 1.0]"),
        (math.inf, "inf is outside [0.0, 1.0]"),
        (1.1, "1.1 is outside [0.0, 1.0]"),
        (Score(1.0, "gold not gradable", masked=True), "gold not gradable"),
        ("no number", "raised ValueError"),
    ],
)
def test_a_score_that_cannot_be_used_is_masked_never_clipped(value: Any, reason: str) -> None:
    """The value stays where it was, and the reason is one that every machine gives alike."""
    rubric = Rubric([outcome(0, 0, 0), RewardTerm(Playback("p", [0.5, value, 0.75]))])
    first, second, third = rescore(turns(3), rubric)
    assert second.scores["p"] == Score(0.5, reason, masked=True)
    assert (first.terms["p"], second.terms["p"], third.terms["p"]) == (0.5, 0.0, 0.25)
    assert second.masked == {"answer": False, "p": True, "gates": False}


def test_a_masked_gate_stays_as_it_was() -> None:
    """A gate that cannot be judged neither opens nor closes, and says that it was not."""
    term = RewardTerm(Playback("answer", [1, 1, 1]))
    rubric = Rubric([term], gates=[Gate(Playback("g", [ValueError(), 0.5, math.nan]))])
    first, second, third = rescore(turns(3), rubric)
    assert first.reward == 1.0
    assert second.terms == {"answer": 0.0, "gates": -0.5}
    assert third.reward == 0.0
    assert (first.masked["gates"], second.masked["gates"], third.masked["gates"]) == (
        True,
        False,
        True,
    )


def test_a_broken_format_costs_the_gates_not_the_answer() -> None:
    """What a closing gate takes is booked under "gates"; the terms keep what they were paid."""
    rubric = Rubric(
        [RewardTerm(Playback("answer", [0, 1, 1]))],
        gates=[Gate(Playback("g", [1, 1, 0]), floor=0.25)],
    )
    rewards = [step.terms for step in rescore(turns(3), rubric)]
    assert rewards == [
        {"answer": 0.0, "gates": 0.0},
        {"answer": 1.0, "gates": 0.0},
        {"answer": 0.0, "gates": -0.75},
    ]


@pytest.mark.parametrize("end", [submit(), stopped(), stopped("length"), stopped("max_turns")])
def test_end_components_are_paid_once_at_every_end(end: Step) -> None:
    """A term of the end is 0 until the episode ends, and is scored however it ends."""
    settled = rescore(turns(3, end=end), Rubric([outcome(1, 1, 1)]))
    assert [step.reward for step in settled] == [0.0, 0.0, 10.0]


def test_after_a_failure_of_the_machine_nothing_is_scored() -> None:
    """All terms of that step are 0.0 and masked; what was paid before stays paid."""
    rubric = Rubric(
        [outcome(1, 1), RewardTerm(Playback("p", [0.5, 1], shaping=True))],
        gates=[Gate(Playback("g", [1, 0]))],
    )
    first, second = rescore(turns(2, end=failed("sandbox_died")), rubric)
    assert first.reward == 0.5
    assert second.terms == {"answer": 0.0, "p": 0.0, "gates": 0.0}
    assert second.masked == {"answer": True, "p": True, "gates": True}
    assert rubric.masked(second.scores, failure="sandbox_died") == second.masked
    assert make_rubric("outcome").masked({}) == {"answer": False, "gates": False}
    assert second.scores["answer"] == Score(0.0, "not scored: sandbox_died", masked=True)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0.5, 1))
def test_shaping_has_no_discounted_sum(values: list[float], gamma: float) -> None:
    """A shaping term is paid gamma * s_t - s_{t-1}: over an episode that discounts to 0."""
    rubric = Rubric(
        [outcome(*values), RewardTerm(Playback("p", values, shaping=True))],
        gamma=gamma,
        gates=[Gate(Playback("g", values[::-1]), floor=0.5)],
    )
    settled = rescore(turns(len(values)), rubric)
    gate = 0.5 + 0.5 * values[0]
    potential = [step.terms["p"] + step.terms["gates"] for step in settled]
    assert sum(gamma**t * paid for t, paid in enumerate(potential)) == pytest.approx(0, abs=1e-9)
    assert settled[-1].reward == pytest.approx(gate * 10 * values[-1] + potential[-1], abs=1e-9)


def test_rescaling_maps_the_range_to_0_1() -> None:
    """A score of [-1, 1] under a gate pays from 0 to its weight, and unscored stays at 0."""
    component = Playback("answer", [None, -0.5], low=-1, when="end")
    term = RewardTerm(component, weight=2, rescale=True)
    first, second = rescore(turns(2), Rubric([term], gates=[Gate(Playback("g", [1, 1]))]))
    assert (first.reward, second.reward) == (0.0, 0.5)


GATED: dict[str, Any] = {"gates": [Gate("format_valid")]}


@pytest.mark.parametrize(
    ("terms", "options", "message"),
    [
        ([RewardTerm(Playback("answer", [], low=-1))], GATED, "rescale"),
        ([RewardTerm("answer"), RewardTerm("length", weight=-0.1)], GATED, "negative"),
        ([RewardTerm("answer"), RewardTerm("length", weight=1.0)], {}, "pay up to 1"),
        ([RewardTerm("length")], {}, "no term has the key 'answer'"),
        ([RewardTerm("answer", weight=math.nan)], {}, "weight=nan"),
        ([RewardTerm("answer", weight=())], {}, "weight="),
        ([RewardTerm("answer", weight=((5, 1.0), (2, 1.0)))], {}, "rising"),
        ([RewardTerm("answer"), RewardTerm("answer")], {}, "is taken"),
        ([RewardTerm("answer", key="gates")], {"answer": "gates"}, "is taken"),
        ([RewardTerm("answer", options={"fre": 1})], {}, "an option of 'answer'"),
        ([RewardTerm("length", options={"free": 0})], {}, "0 < free"),
        ([RewardTerm(object())], {}, "is no reward"),
        ([RewardTerm(Playback("answer", [], low=0.5))], {}, "hold 0"),
        ([RewardTerm(Playback("answer", [], high=math.inf))], {}, "finite"),
        ([RewardTerm("answer")], {"gates": [Gate(Playback("g", []), floor=1.0)]}, "floor"),
        ([RewardTerm("answer")], {"gates": [Gate(Playback("g", [], high=2))]}, "is no gate"),
        ([RewardTerm("answer")], {"gates": [Gate(Playback("g", [], shaping=True))]}, "is no gate"),
        ([RewardTerm("answer")], {"gates": [Gate("format_valid", scope="all")]}, "choose final"),  # type: ignore[arg-type]
        ([RewardTerm("answer")], {"gamma": 0.0}, "gamma"),
    ],
)  # fmt: skip
def test_an_unsound_rubric_is_refused(
    terms: list[RewardTerm], options: dict[str, Any], message: str
) -> None:
    """What would reward a fault, or means nothing, is an error when the rubric is made."""
    with pytest.raises(UsageError, match=message):
        Rubric(terms, **options)


def test_the_margin_counts_what_the_others_can_pay_in_any_episode() -> None:
    """Shaping pays nothing by the end; a schedule is checked at each of its points."""
    Rubric([RewardTerm("answer"), RewardTerm("tool_success", weight=5.0)])
    grown = RewardTerm("length", weight=((0, 0.1), (100, 1.5)))
    with pytest.raises(UsageError, match=r"pay up to 1\.5"):
        Rubric([RewardTerm("answer"), grown])
    known = Rubric([RewardTerm("answer"), grown], known_hacks=["brevity"])
    assert known.known_hacks == ("brevity",)


def test_schedules_are_fixed_for_an_episode() -> None:
    """Weights and floors are linear between their points, flat outside, and fixed by ``at``."""
    rubric = Rubric(
        [RewardTerm("answer"), RewardTerm("length", weight=((10, 0.4), (20, 0.0)))],
        gates=[Gate("format_valid", floor=((0, 0.5), (100, 0.0)))],
    )
    with pytest.raises(UsageError, match="at"):
        rubric.settle(TASK, turns(1), {})
    weights = [rubric.at(n).terms[1].weight for n in (0, 10, 15, 20, 99)]
    assert weights == [0.4, 0.4, 0.2, 0.0, 0.0]
    assert rubric.at(50).gates[0].floor == 0.25
    assert rubric.at(0).hash != rubric.at(50).hash != rubric.hash
    again = Rubric.from_dict(rubric.at(15).to_dict())
    assert again.hash == rubric.at(15).hash
    paid = [rescore(turns(1, end=submit()), each)[0].terms for each in (again, rubric.at(15))]
    assert paid[0] == paid[1]
    assert paid[0]["length"] == pytest.approx(0.2)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_data(name: str) -> None:
    """Each preset survives JSON and pickle with its hash, and scores the same."""
    rubric = make_rubric(name)
    text = json.dumps(rubric.to_dict())
    for again in (make_rubric(json.loads(text)), pickle.loads(pickle.dumps(rubric)), rubric.at(3)):
        assert again.hash == rubric.hash
        assert again.names == rubric.names
        assert rescore(turns(2, end=submit()), again) == rescore(turns(2, end=submit()), rubric)
    assert make_rubric(rubric) is rubric
    assert rubric.names[-1] == "gates"


def test_the_hash_tells_rubrics_apart_and_only_those() -> None:
    """1 and 1.0 are the same weight; a weight, an option or a gate makes another rubric."""
    one = Rubric([RewardTerm("answer", weight=1)])
    assert (
        one.hash == Rubric([RewardTerm("answer", weight=1.0)]).hash == make_rubric("outcome").hash
    )
    others = [
        Rubric([RewardTerm("answer", weight=2)]),
        Rubric([RewardTerm("answer", key="right")], answer="right"),
        Rubric([RewardTerm("answer")], gates=[Gate("format_valid")]),
        Rubric([RewardTerm("answer")], gamma=0.9),
        Rubric([RewardTerm(Playback("answer", []))]),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 6


@pytest.mark.parametrize(
    "data",
    [
        {"terms": [{"reward": "answer", "wieght": 1}]},
        {"terms": [{"reward": "answer", "weight": "1"}]},
        {"terms": "answer"},
        {"gates": []},
    ],
)
def test_data_that_is_no_rubric_is_named(data: dict[str, Any]) -> None:
    """A misspelt key is an error, not a default."""
    with pytest.raises(UsageError, match="this is no rubric"):
        make_rubric(data)


def test_unknown_names_are_named() -> None:
    """The nearest preset or reward is offered; an object is no data."""
    with pytest.raises(UnknownNameError, match="'gated'"):
        make_rubric("gate")
    with pytest.raises(UnknownNameError, match="'answer'"):
        Rubric([RewardTerm("anwser")])
    with pytest.raises(UsageError, match="register"):
        Rubric([outcome()]).to_dict()


def test_evidence_is_asked_for_once_and_missed_when_absent() -> None:
    """``needs`` is the union of what components need; ``rescore`` refuses to guess without it."""
    rubric = Rubric(
        [
            RewardTerm(Verifier("answer", [1])),
            RewardTerm(Verifier("again", [1]), weight=0.1),
            RewardTerm(Speechless("broken", [1]), weight=0.1),
        ]
    )
    bare = turns(1)
    call = ToolCall("verify", {"step": 1})
    assert rubric.needs(TASK, bare) == [call]
    with pytest.raises(UsageError, match="step 0: no evidence of the private calls verify"):
        rescore(bare, rubric)
    step = msgspec.structs.replace(bare.steps[0], evidence=((call, ToolResult("ok")),))
    settled = rescore(episode(step), rubric)[0]
    assert settled.reward == pytest.approx(1.1)
    assert settled.masked["broken"]


def test_C07_a_component_that_the_machine_fails_is_not_scored_at_all() -> None:
    """C07 e: the failure leaves ``settle``, so that the whole step is marked, never a zero."""
    rubric = Rubric([outcome(0), RewardTerm(Playback("p", [RuntimeFailure("grader", "died")]))])
    with pytest.raises(RuntimeFailure, match="died"):
        rubric.settle(TASK, turns(1), {})


def test_there_is_nothing_to_settle_before_the_first_step() -> None:
    """The empty prefix is worth 0 by definition."""
    assert rescore(episode(), make_rubric("gated")) == []
    with pytest.raises(UsageError, match="no step"):
        make_rubric("gated").settle(TASK, episode(), {})
