"""What episodes came to, in numbers: one by one, as a table's row, and as an evaluation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from toolenvs.metrics import Estimate, avg_at_k, maj_at_k, pass_at_k, pass_hat_k
from toolenvs.types import Step, ToolCall, ToolResult, Trajectory

_DIGITS = 12


class Job(msgspec.Struct, frozen=True):
    """One episode to play: a task, the number of the attempt, and the sandbox's seed."""

    task_id: str
    sample: int = 0
    seed: int = 0


class EpisodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one episode came to.

    Attributes:
        job: what was played.
        score: sum of its rewards.
        right: whether the answer got a full score.
        terms: sum of its rewards by term.
        answer: the submitted text, None if nothing was submitted.
        turns: messages of the agent.
        calls: calls of tools, submissions not counted.
        errors: calls whose result is an error.
        repaired: errors after which a later call of the episode went well.
        first_call: turn of the first call, from 1; 0 if there was none.
        end_reason: why it ended.
        failure: what the machine failed at, ``""`` if it did not: then nothing here counts.
        reason: why it failed, in words that equal failures share; ``""`` where it is not known.
        masked: True when the answer could not be judged: nothing here counts either.
        step_s: seconds spent in the environment's ``step``; the policy's time is not in it.
    """

    job: Job
    score: float = 0.0
    right: bool = False
    terms: Mapping[str, float] = {}
    answer: str | None = None
    turns: int = 0
    calls: int = 0
    errors: int = 0
    repaired: int = 0
    first_call: int = 0
    end_reason: str = ""
    failure: str = ""
    reason: str = ""
    masked: bool = False
    step_s: float = 0.0

    @property
    def fault(self) -> str:
        """What failed and why, ``"model: connection refused"``; ``""`` if nothing did."""
        return f"{self.failure}: {self.reason}" if self.reason else self.failure

    @property
    def counts(self) -> bool:
        """False where the machine failed or the answer could not be judged."""
        return not self.failure and not self.masked


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout in numbers; means are over the episodes that count, None where there is none.

    Attributes:
        episodes: episodes played, failed ones included.
        success: share whose answer is right.
        score: mean episode score.
        terms: mean over episodes of the sum of each term; they sum to ``score``.
        failed: episodes that the machine failed, not scored; in no mean.
        failures: those by what failed and why: ``{"model: connection refused": 6}``.
        masked: episodes whose answer cannot be judged; in no mean.
        turns: mean number of the agent's messages.
        ms_per_step: mean milliseconds in one environment's ``step``, as the agent waits for it:
            with many slots it holds the time in which others are served.
        steps_per_s: steps of all environments in a second of the whole rollout, the policy's time
            included; None where that was not measured.
        sandbox: kind of sandbox. replay: the replay mode.
        cache_hits, cache_misses: calls that the replay cache served, and that it did not have; in
            failed episodes, too.
        calls_per_episode: mean number of calls, submissions not counted.
        without_call: share of episodes without any.
        first_call_turn: mean turn of the first call, from 1, where there is one.
        error_rate: share of calls whose result is an error.
        repaired: share of those after which a later call of the episode went well.
        ends: episodes by the reason for which they ended, failed ones included.
    """

    episodes: int
    success: float | None
    score: float | None
    terms: Mapping[str, float]
    failed: int
    failures: Mapping[str, int]
    masked: int
    turns: float | None
    ms_per_step: float | None
    steps_per_s: float | None
    sandbox: str
    replay: str
    cache_hits: int
    cache_misses: int
    calls_per_episode: float | None
    without_call: float | None
    first_call_turn: float | None
    error_rate: float | None
    repaired: float | None
    ends: Mapping[str, int]


def summarise(
    episodes: Sequence[EpisodeSummary],
    *,
    sandbox: str,
    replay: str,
    steps_per_s: float | None = None,
    cache_hits: int = 0,
    cache_misses: int = 0,
) -> Summary:
    """Make the table's numbers of episodes."""
    counted = [episode for episode in episodes if episode.counts]
    calls = sum(episode.calls for episode in counted)
    errors = sum(episode.errors for episode in counted)
    turns = sum(episode.turns for episode in counted)
    calling = [episode for episode in counted if episode.first_call]
    names = list(dict.fromkeys(name for episode in counted for name in episode.terms))
    return Summary(
        episodes=len(episodes),
        success=_share(sum(episode.right for episode in counted), len(counted)),
        score=_share(math.fsum(episode.score for episode in counted), len(counted)),
        terms={
            name: _share(math.fsum(e.terms.get(name, 0.0) for e in counted), len(counted)) or 0.0
            for name in names
        },
        failed=sum(bool(episode.failure) for episode in episodes),
        failures=dict(Counter(episode.fault for episode in episodes if episode.failure)),
        masked=sum(episode.masked and not episode.failure for episode in episodes),
        turns=_share(turns, len(counted)),
        ms_per_step=_share(1000.0 * sum(episode.step_s for episode in counted), turns),
        steps_per_s=steps_per_s,
        sandbox=sandbox,
        replay=replay,
        cache_hits=cache_hits,
        cache_misses=cache_misses,
        calls_per_episode=_share(calls, len(counted)),
        without_call=_share(len(counted) - len(calling), len(counted)),
        first_call_turn=_share(sum(episode.first_call for episode in calling), len(calling)),
        error_rate=_share(errors, calls),
        repaired=_share(sum(episode.repaired for episode in counted), errors),
        ends=dict(sorted(Counter(episode.end_reason for episode in episodes).items())),
    )


def evaluate(episodes: Sequence[EpisodeSummary], k: int) -> dict[str, Estimate]:
    """``avg@k``, ``pass@k``, ``pass^k`` and ``maj@k`` with 95 % intervals clustered by task.

    Failed and masked episodes are left out, see ``toolenvs.metrics``.
    """
    right = [episode.right for episode in episodes]
    tasks = [episode.job.task_id for episode in episodes]
    valid = [episode.counts for episode in episodes]
    answers = [episode.answer for episode in episodes]
    return {
        f"avg@{k}": avg_at_k(right, tasks, valid=valid),
        f"pass@{k}": pass_at_k(right, tasks, k, valid=valid),
        f"pass^{k}": pass_hat_k(right, tasks, k, valid=valid),
        f"maj@{k}": maj_at_k(right, tasks, k, answers=answers, valid=valid),
    }


def summarise_episode(
    job: Job,
    trajectory: Trajectory,
    *,
    answer_term: str,
    step_s: float = 0.0,
    reason: str = "",
) -> EpisodeSummary:
    """Make one episode's numbers of its trajectory.

    Args:
        job: what was played.
        trajectory: the whole episode.
        answer_term: key of the rubric's term that stands for being right.
        step_s: seconds spent in ``step``.
        reason: why the machine failed, if it did.
    """
    steps = trajectory.steps
    last = steps[-1] if steps else Step(action="")
    verdict = last.scores.get(answer_term)
    ran = [pair for step in steps for pair in _tool_calls(step)]
    failing = [result.error is not None for _, result in ran]
    last_good = max((i for i, bad in enumerate(failing) if not bad), default=-1)
    names = dict.fromkeys(name for step in steps for name in step.terms)
    return EpisodeSummary(
        job=job,
        score=trajectory.score,
        right=verdict is not None and not verdict.masked and verdict.value >= 1.0,
        terms={name: float(sum(s.terms.get(name, 0.0) for s in steps)) for name in names},
        answer=_submitted(last),
        turns=len(steps),
        calls=len(ran),
        errors=sum(failing),
        repaired=sum(failing[: last_good + 1]),
        first_call=next((i for i, step in enumerate(steps, 1) if _tool_calls(step)), 0),
        end_reason=last.end_reason,
        failure=last.failure,
        reason=reason if last.failure else "",
        masked=verdict is not None and verdict.masked,
        step_s=step_s,
    )


def _tool_calls(step: Step) -> list[tuple[ToolCall, ToolResult]]:
    """The calls that ran, submissions left out; a call that the machine failed has no result."""
    pairs = zip(step.calls, step.results, strict=False)
    return [(call, result) for call, result in pairs if not result.terminal]


def _submitted(step: Step) -> str | None:
    answers = [result.data.get("answer") for result in step.results if result.terminal]
    return None if not answers or answers[0] is None else str(answers[0])


def _share(part: float, whole: int) -> float | None:
    """A mean, without the last digits, in which only the order of summing shows."""
    return round(part / whole, _DIGITS) if whole else None
