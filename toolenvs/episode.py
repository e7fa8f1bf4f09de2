"""One episode: parse, run, score, render; all of it in one record, the trajectory.

    action text -> format.parse -> calls -> executor -> results -> rubric -> terms
                                                     -> format.render -> observation

A coroutine throughout; whoever owns it brings the driver (``ToolEnv``: one at a time on the
caller's thread; ``ToolVectorEnv``: many at once).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.cut import cut, utf8_size
from toolenvs.errors import EpisodeOverError, RuntimeFailure, UsageError
from toolenvs.executor import Executor
from toolenvs.families import SUBMITS
from toolenvs.protocols import ToolFormat
from toolenvs.refusals import bounded, refusal, too_long, why_unrecorded
from toolenvs.rubric import Rubric, Settled
from toolenvs.spaces import MAX_CHARS
from toolenvs.types import (
    Branch,
    Message,
    ParsedTurn,
    Score,
    Step,
    Task,
    ToolCall,
    ToolResult,
    ToolSpec,
    Trajectory,
    Turn,
)

UNLIMITED = -1

OWN_END_REASONS = ("submit", "max_turns", "tokens", "length", "failure")


class Budgets(msgspec.Struct, frozen=True, kw_only=True):
    """How much an episode may use. Sizes count tokens of the tokenizer if one is given, else bytes.

    Attributes:
        max_turns: messages of the agent; the episode is truncated after the last.
        max_calls: calls in one message; further ones are refused, not run.
        max_obs_tokens: size of one observation; longer results are cut, head and tail kept.
        max_turn_tokens: size of one message; a longer one is not run and ends the episode.
        max_episode_tokens: size of prompt, messages and observations together.

    ``-1`` means no limit.
    """

    max_turns: int = 10
    max_calls: int = 16
    max_obs_tokens: int = 20_000
    max_turn_tokens: int = UNLIMITED
    max_episode_tokens: int = UNLIMITED

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(f"{name}={value!r}: give a whole number.")
            if not (value >= 1 or (value == UNLIMITED and name not in ("max_turns", "max_calls"))):
                raise UsageError(f"{name}={value!r}: give a number of at least 1, or -1 for none.")


class Episode:
    """One attempt at one task.

    Args:
        task: the problem.
        specs: what the agent is told of the tools.
        format: how calls and results are written.
        rubric: how the trajectory is scored.
        executor: runs the agent's calls.
        referee: runs the private calls that rewards need, where the agent cannot reach.
        budgets: turns and sizes.
        tokenizer: size of a text in tokens; UTF-8 bytes by default.
        seed: the sandbox seed, recorded.
        sample: number of this attempt within its group, recorded.
        settings: what else a replay needs, recorded.
    """

    def __init__(
        self,
        task: Task,
        *,
        specs: Sequence[ToolSpec],
        format: ToolFormat,  # noqa: A002 - the name of the setting
        rubric: Rubric,
        executor: Executor,
        referee: Executor,
        budgets: Budgets,
        tokenizer: Callable[[str], int] | None = None,
        seed: int = 0,
        sample: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._specs = specs
        self._format = format
        self._rubric = rubric
        self._executor = executor
        self._referee = referee
        self._budgets = budgets
        self._measure = tokenizer or utf8_size
        system = format.describe(specs)
        self.messages: list[Message] = [
            {"role": "system", "content": system},
            {"role": "user", "content": task.prompt},
        ]
        """The chat messages that the last step (or the start) added, without wrappers."""
        prompt, _ = cut(f"{system}\n\n{task.prompt}", MAX_CHARS)
        self.fault: RuntimeFailure | None = None
        """What failed, where the last step says that a machine did."""
        self._used = self._measure(prompt)
        self._previous: Mapping[str, Score] = {}
        self._forks: Counter[int] = Counter()  # branches made, by the number of steps before them
        self.trajectory = Trajectory(
            task=task, prompt=prompt, settings=dict(settings or {}), seed=seed, sample=sample
        )

    @property
    def executor(self) -> Executor:
        """What runs the agent's calls."""
        return self._executor

    @property
    def restarts(self) -> int:
        """Sandboxes that were replaced because the machine failed."""
        return self._executor.restarts

    def left(self) -> dict[str, int]:
        """What is left of the budgets: ``turns`` and ``tokens`` (-1: no limit)."""
        tokens = self._budgets.max_episode_tokens
        return {
            "turns": self._budgets.max_turns - len(self.trajectory.steps),
            "tokens": UNLIMITED if tokens == UNLIMITED else max(0, tokens - self._used),
        }

    async def step(self, text: str) -> Step:
        """Take the agent's message: run its calls, score, and record the step.

        Raises:
            EpisodeOverError: The episode has ended.
        """
        self._require_running()
        turn = bounded(Turn.of(text))
        size = len(turn.token_ids) or self._measure(turn)
        self._used += size
        if UNLIMITED < self._budgets.max_turn_tokens < size:
            return await self._close_turn(turn, ParsedTurn(cut=True), end_reason="tokens")
        parsed = self._format.parse(turn, self._specs)
        if parsed.cut:
            return await self._close_turn(turn, parsed, end_reason="length")
        parsed = too_long(turn) or parsed
        if parsed.error is not None:
            unread = ToolResult(text=parsed.error.message, error=parsed.error)
            return await self._close_turn(turn, parsed, unread=unread)
        return await self._run(turn, parsed, [self._handed_in(call) for call in parsed.calls])

    def _handed_in(self, call: ToolCall) -> ToolCall:
        """An answer in a box or tags as a call of the tool that hands in here."""
        offered = {spec.name for spec in self._specs}
        if call.name in offered or call.name != "submit" or set(call.arguments) != {"answer"}:
            return call
        tool = next((name for name in SUBMITS if name in offered), "")
        return ToolCall(tool, {SUBMITS[tool]: call.arguments["answer"]}) if tool else call

    async def act(self, calls: Sequence[ToolCall], text: str | None = None) -> Step:
        """Make calls that are structured already; everything else is as in ``step``.

        Args:
            calls: the calls; one whose arguments no record can hold is answered and not run.
            text: the message that they were read from; written by the format when None.
        """
        self._require_running()
        refused = {n: why for n, call in enumerate(calls) if (why := why_unrecorded(call))}
        calls = [ToolCall(c.name, {}, c.id) if n in refused else c for n, c in enumerate(calls)]
        turn = Turn.of(self._compose(calls) if text is None else text)
        self._used += len(turn.token_ids) or self._measure(turn)
        return await self._run(turn, None, calls, refused=refused)

    async def finish(self, reason: str) -> Step:
        """End an episode that the trainer gives up; terminal and shaping terms settle.

        Args:
            reason: the trainer's own word, recorded as the end reason.

        Raises:
            UsageError: The reason is one that the environment itself gives.
        """
        self._require_running()
        if reason in OWN_END_REASONS:
            raise UsageError(f"{reason!r} is an end reason of the environment's own; say it anew.")
        return await self._close_turn(Turn(""), None, end_reason=reason or "finish")

    async def fail(self, kind: str) -> Step:
        """End an episode that a machine keeps from going on, such as the player's: unscored.

        Args:
            kind: what failed, as in ``RuntimeFailure.kind``.
        """
        self._require_running()
        return await self._close_turn(Turn(""), None, failure=kind)

    async def close(self) -> None:
        """Give back the sandboxes. More than once is harmless."""
        try:
            await self._executor.close()
        finally:
            await self._referee.close()

    def fork(self, executor: Executor, referee: Executor) -> Episode:
        """A second episode that goes on from here, with executors of its own."""
        twin = object.__new__(Episode)
        twin.__dict__.update(self.__dict__)
        twin._executor, twin._referee = executor, referee
        twin.trajectory = msgspec.structs.replace(self.trajectory, branch=self.next_branch)
        twin._forks = Counter()
        self._forks[len(self.trajectory.steps)] += 1
        return twin

    @property
    def next_branch(self) -> Branch:
        """The path of the next fork: this one's, and where it leaves it."""
        steps = len(self.trajectory.steps)
        return (*self.trajectory.branch, (steps, self._forks[steps]))

    def _require_running(self) -> None:
        if self.trajectory.ended:
            raise EpisodeOverError("the episode is over: call reset() to begin the next one.")

    def _compose(self, calls: Sequence[ToolCall]) -> str:
        try:
            return self._format.compose(calls)
        except UsageError:  # the format cannot write them; the record still holds them
            return json.dumps([{"name": call.name, "arguments": call.arguments} for call in calls])

    async def _run(
        self,
        turn: Turn,
        parsed: ParsedTurn | None,
        calls: Sequence[ToolCall],
        *,
        refused: Mapping[int, str] = {},
    ) -> Step:
        results: list[ToolResult] = []
        failure = ""
        for number, call in enumerate(calls):
            if number >= self._budgets.max_calls:
                why = f"not run: a message may make at most {self._budgets.max_calls} calls."
                results.append(refusal("refused", why))
                continue
            if number in refused:
                results.append(refusal("bad_arguments", refused[number]))
                continue
            try:
                results.append(await self._executor.run(call))
            except RuntimeFailure as fault:
                failure, self.fault = fault.kind, fault
                break
            if results[-1].terminal:
                break
        made = tuple(calls[: len(results) + bool(failure)])
        return await self._close_turn(
            turn, parsed, calls=made, results=tuple(results), failure=failure
        )

    async def _close_turn(
        self,
        turn: Turn,
        parsed: ParsedTurn | None,
        *,
        calls: tuple[ToolCall, ...] = (),
        results: tuple[ToolResult, ...] = (),
        unread: ToolResult | None = None,
        end_reason: str = "",
        failure: str = "",
    ) -> Step:
        terminated = bool(results) and results[-1].terminal and not failure
        results = self._fit(calls, results if unread is None else (unread,))
        observation = "" if failure else self._observe(calls, results)
        self._used += self._measure(observation)
        if failure:
            end_reason = "failure"
        elif terminated:
            end_reason = "submit"
        end_reason = end_reason or self._spent()
        step = Step(
            action=str(turn),
            finish_reason=turn.finish_reason,
            stop_string=turn.stop_string,
            token_ids=turn.token_ids,
            logprobs=turn.logprobs,
            policy_version=turn.policy_version,
            parsed=parsed,
            calls=calls,
            results=results,
            observation=observation,
            terminated=terminated,
            truncated=bool(end_reason) and not terminated,
            end_reason=end_reason,
            failure=failure,
        )
        return await self._score(step)

    def _spent(self) -> str:
        """The end reason of a budget that is used up, ``""`` while none is."""
        if len(self.trajectory.steps) + 1 >= self._budgets.max_turns:
            return "max_turns"
        if self.left()["tokens"] == 0:
            return "tokens"
        return ""

    async def _score(self, step: Step) -> Step:
        step = await self._gather_evidence(step)
        try:
            settled = self._settle(step)
        except RuntimeFailure as error:  # the grader died: the step failed, the agent did not
            step = self._failed(step, error)
            settled = self._settle(step)
        step = msgspec.structs.replace(
            step, scores=settled.scores, terms=settled.terms, reward=settled.reward
        )
        self._previous = settled.scores
        self.trajectory = self._with(step)
        return step

    async def _gather_evidence(self, step: Step) -> Step:
        """Run the private calls that rewards ask for; a machine's fault there fails the step."""
        if step.failure:
            return step
        asked = self._rubric.needs(self.trajectory.task, self._with(step))
        try:
            evidence = [(call, await self._referee.run(call)) for call in asked]
        except RuntimeFailure as error:
            return self._failed(step, error)
        return msgspec.structs.replace(step, evidence=tuple(evidence))

    def _failed(self, step: Step, error: RuntimeFailure) -> Step:
        self.fault = error
        return msgspec.structs.replace(
            step, terminated=False, truncated=True, end_reason="failure", failure=error.kind
        )

    def _settle(self, step: Step) -> Settled:
        return self._rubric.settle(self.trajectory.task, self._with(step), self._previous)

    def _with(self, step: Step) -> Trajectory:
        return msgspec.structs.replace(self.trajectory, steps=(*self.trajectory.steps, step))

    def _observe(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """Render what the agent reads next; a submission is answered by silence."""
        shown = [i for i, result in enumerate(results) if not result.terminal]
        calls = [calls[i] for i in shown if i < len(calls)]
        results = [results[i] for i in shown]
        self.messages = self._format.messages(calls, results) if results else []
        return self._render(calls, results) if results else ""

    def _fit(
        self, calls: Sequence[ToolCall], results: tuple[ToolResult, ...]
    ) -> tuple[ToolResult, ...]:
        """Cut the results' texts until the observation fits ``max_obs_tokens``, wrappers whole."""
        longest = max((self._measure(result.text) for result in results), default=0)
        while longest and self._measure(self._format.render(calls, results)) > self._obs_limit():
            longest //= 2
            results = tuple(_shorter(result, longest, self._measure) for result in results)
        return results

    def _render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        # the cut here only bites when the wrappers alone are larger than the limit
        return cut(self._format.render(calls, results), self._obs_limit(), self._measure)[0]

    def _obs_limit(self) -> int:
        limit = self._budgets.max_obs_tokens
        return limit if limit != UNLIMITED else MAX_CHARS


def _shorter(result: ToolResult, limit: int, measure: Callable[[str], int]) -> ToolResult:
    text, was_cut = cut(result.text, limit, measure)
    return msgspec.structs.replace(result, text=text, truncated=result.truncated or was_cut)
