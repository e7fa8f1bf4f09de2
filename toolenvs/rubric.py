"""A rubric turns component scores into rewards: bounded scores of the trajectory, paid by change.

With scores ``s_i``, weights ``w_i`` and the product ``G`` of the gates, a trajectory is worth

    R = G * S,   S = sum(w_i * s_i)

and a step is paid ``R_t - R_{t-1}``, booked as

    term i     G_t * w_i * (s_i,t - s_i,t-1)
    "gates"    (G_t - G_{t-1}) * S_{t-1}

so the terms sum to the reward, the rewards sum to the episode's score, and a broken format costs
the gates, not the answer. Everything is pure: ``rescore`` computes the same from the records.

    rubric = make_rubric("gated")
    settled = rubric.settle(task, prefix, previous={})   # previous: the scores of the step before
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.terms import Gate, Part, RewardTerm, checked_schedule, points_of, value_at
from toolenvs.types import Score, Task, ToolCall, Trajectory

GATES = "gates"
"""The key under which the change of the gates is booked; always the last of the terms."""


class Settled(msgspec.Struct, frozen=True):
    """What one step was scored and paid.

    Attributes:
        scores: each component's score of the trajectory so far, gates as ``name@scope``; a masked
            score keeps the value it had before, so that ``scores`` alone is the rubric's state.
        terms: what each term was paid, with ``"gates"`` last; they sum to ``reward``.
        masked: for each key of ``terms`` True where it could not be scored.
        reward: the step's reward.
    """

    scores: Mapping[str, Score]
    terms: Mapping[str, float]
    masked: Mapping[str, bool]
    reward: float


class Rubric:
    """Terms, gates and the rules between them; immutable, picklable, data.

    Args:
        terms: the summands; each key once.
        gates: the factors; none: factor 1.
        gamma: the trainer's discount, in (0, 1]. Only ``shaping`` components look at it: they are
            paid ``gamma * s_t - s_{t-1}``, so that their *discounted* sum over an episode is 0.
        answer: key of the term that stands for being right.
        known_hacks: names of hacks that this rubric is known to invite; with one or more the
            margin is not checked.

    Raises:
        UnknownNameError: No reward has that name.
        UsageError: A weight, floor, option or schedule is unusable; a gate stands over a sum that
            can be negative; or the other terms together can pay as much as a right answer adds.

    Source: potential-based shaping, Ng, Harada and Russell 1999, ICML, theorem 1.
    """

    def __init__(
        self,
        terms: Sequence[RewardTerm],
        *,
        gates: Sequence[Gate] = (),
        gamma: float = 1.0,
        answer: str = "answer",
        known_hacks: Sequence[str] = (),
    ) -> None:
        if not 0.0 < gamma <= 1.0:
            raise UsageError(f"gamma={gamma} is out of range; it lies in (0, 1].")
        self.terms = tuple(
            msgspec.structs.replace(term, weight=checked_schedule(term.weight, name="weight"))
            for term in terms
        )
        self.gates = tuple(
            msgspec.structs.replace(gate, floor=checked_schedule(gate.floor, name="floor"))
            for gate in gates
        )
        self.gamma = float(gamma)
        self.answer = answer
        self.known_hacks = tuple(known_hacks)
        self._terms = tuple(Part.of_term(term) for term in self.terms)
        self._gates = tuple(Part.of_gate(gate) for gate in self.gates)
        _check_keys(self._terms, self._gates)
        _check_gates(self._terms, self._gates)
        if not self.known_hacks:
            _check_margin(self._terms, answer)

    # What it is

    @property
    def names(self) -> tuple[str, ...]:
        """Keys of the terms in order, ``"gates"`` last; the same for every step."""
        return (*(part.key for part in self._terms), GATES)

    @property
    def low(self) -> tuple[float, ...]:
        """No step pays a term less than this; in the order of ``names``."""
        return tuple(-bound for bound in self._bounds())

    @property
    def high(self) -> tuple[float, ...]:
        """No step pays a term more than this; in the order of ``names``."""
        return tuple(self._bounds())

    @property
    def hash(self) -> str:
        """A name of the rubric's content, 16 hexadecimal digits: equal rubrics, equal hash.

        A component passed as an object counts by its class, name and range.
        """
        text = json.dumps(self._content(), sort_keys=True, default=_describe)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """This rubric as JSON data; ``Rubric.from_dict`` makes it again.

        Raises:
            UsageError: It holds a component that was passed as an object.
        """
        for part in (*self._terms, *self._gates):
            if not part.named:
                raise UsageError(
                    f"{part.key!r} was passed as an object, which is no data: register it by "
                    "toolenvs.rewards.register and name it."
                )
        content: dict[str, Any] = msgspec.to_builtins(self._content())
        return content

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rubric:
        """Build a rubric from ``{"terms": [{"reward": ..., "weight": ...}], "gates": [...], ...}``.

        Raises:
            UsageError: A key or value does not fit; the message says which.
        """
        try:
            spec = msgspec.convert(dict(data), _RubricSpec)
        except msgspec.ValidationError as error:
            raise UsageError(f"this is no rubric: {error}") from error
        return cls(
            spec.terms,
            gates=spec.gates,
            gamma=spec.gamma,
            answer=spec.answer,
            known_hacks=spec.known_hacks,
        )

    def at(self, episode: int) -> Rubric:
        """The rubric as it stands in the ``episode``-th episode: every schedule a fixed number.

        An environment calls it at ``reset``, so weights never change within an episode.
        """
        if not self._scheduled:
            return self
        fixed = copy.copy(self)
        fixed.terms = tuple(
            msgspec.structs.replace(term, weight=value_at(term.weight, episode))
            for term in self.terms
        )
        fixed.gates = tuple(
            msgspec.structs.replace(gate, floor=value_at(gate.floor, episode))
            for gate in self.gates
        )
        fixed._terms = tuple(part.at(episode) for part in self._terms)
        fixed._gates = tuple(part.at(episode) for part in self._gates)
        return fixed

    @property
    def _scheduled(self) -> bool:
        return any(not isinstance(p.schedule, float) for p in (*self._terms, *self._gates))

    # What it does

    def needs(self, task: Task, prefix: Trajectory) -> list[ToolCall]:
        """The private calls whose results the last step's evidence must hold, each once.

        A component that cannot say is left out; it is masked when it is scored.
        """
        calls: list[ToolCall] = []
        for part in (*self._terms, *self._gates):
            calls += [call for call in part.needs(task, prefix) if call not in calls]
        return calls

    def settle(self, task: Task, prefix: Trajectory, previous: Mapping[str, Score]) -> Settled:
        """Score the trajectory so far and pay its last step.

        Args:
            task: the problem with its gold answer.
            prefix: the steps so far; the last one's evidence is there, its scores are not.
            previous: ``Settled.scores`` of the step before, ``{}`` before the first.

        Returns:
            What the last step is paid. After a failure of the machine (``Step.failure``) that is
            0.0 in every term, all masked; earlier steps stay as paid.

        Raises:
            RuntimeFailure: A component needs a part of the machine that failed, such as the grader.
            UsageError: There is no step yet, or a schedule was not fixed by ``at``.
        """
        if not prefix.steps:
            raise UsageError("nothing to settle: the trajectory has no step.")
        if self._scheduled:
            raise UsageError("the rubric has schedules: settle with rubric.at(episode).")
        parts = (*self._terms, *self._gates)
        failure = prefix.steps[-1].failure
        if failure:
            why = f"not scored: {failure}"
            scores = {part.key: Score(part.before(previous), why, masked=True) for part in parts}
        else:
            scores = {part.key: part.score(task, prefix, previous) for part in parts}
        masked = self.masked(scores, failure=failure)
        terms = self._book(scores, previous)
        return Settled(scores, terms, masked, float(sum(terms.values())))

    def masked(self, scores: Mapping[str, Score], *, failure: str = "") -> dict[str, bool]:
        """For each of ``names``, whether a step left it unscored, as ``Settled.masked``.

        Args:
            scores: the step's scores; ``{}`` before the first step.
            failure: the step's failure.
        """
        masked = {part.key: _is_masked(part, scores) for part in self._terms}
        masked[GATES] = any(_is_masked(part, scores) for part in self._gates)
        return {key: flag or bool(failure) for key, flag in masked.items()}

    def _book(self, scores: Mapping[str, Score], previous: Mapping[str, Score]) -> dict[str, float]:
        gate = math.prod(part.factor(scores) for part in self._gates)
        gate_before = math.prod(part.factor(previous) for part in self._gates)
        terms: dict[str, float] = {}
        sum_before = 0.0
        for part in self._terms:
            score, before = scores[part.key], part.before(previous)
            # A masked score stands still: nothing is paid, and nothing discounted either.
            discount = self.gamma if part.component.shaping and not score.masked else 1.0
            terms[part.key] = gate * part.number * (discount * score.value - before) + 0.0
            sum_before += part.number * before
        terms[GATES] = (gate - gate_before) * sum_before + 0.0  # + 0.0: no negative zeros
        return terms

    def _bounds(self) -> list[float]:
        """Largest absolute reward of one step, by term."""
        bounds = [part.largest * (part.high - part.low) for part in self._terms]
        worth = sum(part.largest * part.high for part in self._terms)  # all lows are 0 under a gate
        return [*bounds, worth if self._gates else 0.0]

    def _content(self) -> dict[str, Any]:
        return {
            "terms": [msgspec.structs.asdict(term) for term in self.terms],
            "gates": [msgspec.structs.asdict(gate) for gate in self.gates],
            "gamma": self.gamma,
            "answer": self.answer,
            "known_hacks": list(self.known_hacks),
        }


_FORMAT_GATES = [
    {"reward": "format_valid", "scope": "final", "floor": 0.0},
    {"reward": "format_valid", "scope": "trajectory", "floor": 0.5},
]

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "gated": {
        "terms": [
            {"reward": "answer", "weight": 0.95},
            {"reward": "tool_success", "weight": 0.1},
            {"reward": "length", "weight": 0.05},
        ],
        "gates": _FORMAT_GATES,
    },
    "outcome": {"terms": [{"reward": "answer", "weight": 1.0}]},
    "sql": {
        "terms": [
            {"reward": "answer", "weight": 0.8},
            {"reward": "result_overlap", "weight": 0.1},
            {"reward": "schema_recall", "weight": 0.05},
            {"reward": "sql_valid", "weight": 0.05},
        ],
        "gates": _FORMAT_GATES,
    },
    "search": {
        "terms": [
            {"reward": "answer", "weight": 0.8},
            {"reward": "new_evidence", "weight": 0.1},
            {"reward": "citations", "weight": 0.1},
        ],
        "gates": _FORMAT_GATES,
    },
}
"""Rubrics by name; ``docs/rewards.md`` explains them term by term."""


def make_rubric(rubric: str | Mapping[str, Any] | Rubric) -> Rubric:
    """Build a rubric from a preset's name or from data; a ``Rubric`` is returned as it is.

    >>> make_rubric("gated").names
    ('answer', 'tool_success', 'length', 'gates')

    Raises:
        UnknownNameError: No preset has that name.
        UsageError: The data describes no usable rubric.
    """
    if isinstance(rubric, Rubric):
        return rubric
    if isinstance(rubric, Mapping):
        return Rubric.from_dict(rubric)
    if not isinstance(rubric, str):  # whatever a caller passes, or JSON holds
        raise UsageError(
            f"a rubric is a preset's name or a mapping with 'terms', not {type(rubric).__name__}."
        )
    if rubric not in PRESETS:
        raise UnknownNameError("a rubric", rubric, PRESETS)
    return Rubric.from_dict(PRESETS[rubric])


def rescore(trajectory: Trajectory, rubric: Rubric) -> list[Settled]:
    """Settle every step again from the records alone; nothing is run.

    Args:
        trajectory: an episode, whole or cut; its recorded scores are not read.
        rubric: by which to score; without schedules, or fixed by ``at``.

    Returns:
        One ``Settled`` for each step, equal to the recorded values if the rubric is the same.

    Raises:
        UsageError: A step's evidence lacks the result of a call that a component needs.
    """
    settled: list[Settled] = []
    previous: Mapping[str, Score] = {}
    for end in range(1, len(trajectory.steps) + 1):
        prefix = msgspec.structs.replace(trajectory, steps=trajectory.steps[:end])
        if not prefix.steps[-1].failure:
            _check_evidence(rubric.needs(trajectory.task, prefix), prefix)
        settled.append(rubric.settle(trajectory.task, prefix, previous))
        previous = settled[-1].scores
    return settled


def _check_evidence(needed: Sequence[ToolCall], prefix: Trajectory) -> None:
    recorded = [call for call, _ in prefix.steps[-1].evidence]
    missing = [call.name for call in needed if call not in recorded]
    if missing:
        raise UsageError(
            f"task {prefix.task.id!r}, step {len(prefix.steps) - 1}: no evidence of the private "
            f"calls {', '.join(missing)}, which the rubric needs; score it live instead."
        )


class _RubricSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rubric's data form."""

    terms: tuple[RewardTerm, ...]
    gates: tuple[Gate, ...] = ()
    gamma: float = 1.0
    answer: str = "answer"
    known_hacks: tuple[str, ...] = ()


def _is_masked(part: Part, scores: Mapping[str, Score]) -> bool:
    return part.key in scores and scores[part.key].masked


def _check_keys(terms: Sequence[Part], gates: Sequence[Part]) -> None:
    keys = [part.key for part in (*terms, *gates)]
    doubles = sorted({key for key in keys if keys.count(key) > 1 or key == GATES})
    if doubles:
        raise UsageError(f"the key {doubles[0]!r} is taken; give one of its own by key=...")


def _check_gates(terms: Sequence[Part], gates: Sequence[Part]) -> None:
    for gate in gates:
        component = gate.component
        if (component.low, component.high) != (0.0, 1.0) or component.shaping:
            raise UsageError(f"{gate.key!r} is no gate: it needs the range [0, 1] and no shaping.")
        if not all(0.0 <= floor < 1.0 for _, floor in points_of(gate.schedule)):
            raise UsageError(f"the floor of {gate.key!r} is out of range; it lies in [0, 1).")
    for term in terms if gates else ():
        if term.low < 0.0 or any(weight < 0.0 for _, weight in points_of(term.schedule)):
            raise UsageError(
                f"term {term.key!r} can be negative, and a gate would then reward a fault; "
                "set rescale=True and a weight of at least 0."
            )


def _check_margin(terms: Sequence[Part], answer: str) -> None:
    """Being right must pay more than everything else together, in every episode.

    Shaping terms end at 0. Between two knots of the schedules the weights are linear, so the knots
    decide.
    """
    by_key = {part.key: part for part in terms}
    if answer not in by_key:
        raise UsageError(
            f"no term has the key {answer!r}, so being right pays nothing; name the term by "
            "answer=..., or say known_hacks=(...)."
        )
    others = [part for part in terms if part.key != answer and not part.component.shaping]
    for episode in sorted({knot for part in terms for knot, _ in points_of(part.schedule)}):
        right = value_at(by_key[answer].schedule, episode)
        gain = right * (by_key[answer].high - by_key[answer].low)
        gain *= not by_key[answer].component.shaping
        rest = sum(abs(value_at(p.schedule, episode)) * (p.high - p.low) for p in others)
        if gain <= rest:
            raise UsageError(
                f"the other terms together pay up to {rest:g}, a right answer adds {gain:g}: raise "
                f"the weight of {answer!r}, lower the others, or say known_hacks=(...)."
            )


def _describe(component: Any) -> str:
    kind = type(component)
    name, low, high = (getattr(component, field, "") for field in ("name", "low", "high"))
    return f"{kind.__module__}.{kind.__qualname__} {name} [{low}, {high}]"
