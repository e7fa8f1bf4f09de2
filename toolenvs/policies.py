"""Who plays: policies that write the agent's messages.

A ``Policy`` is asked once for each episode (``start``) and answers with an ``Actor``, which is
asked for each message (``act``). Actors are coroutines that await only ``drivers.Request`` objects,
so that many episodes wait for a model at once.

    gold      knows the answer: makes the task's gold calls, then submits
    noisy     like gold, but errs in known shares; equal in every process
    FILE      says what a file says
    Model     any OpenAI-compatible endpoint (in ``toolenvs.endpoint``)
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.families import SUBMITS
from toolenvs.protocols import ToolFormat
from toolenvs.types import Task, ToolCall, ToolSpec, Turn


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy is told of the environment when an episode begins.

    Attributes:
        format: how calls are written.
        specs: the tools on offer.
        sample: number of this attempt within its group.
    """

    format: ToolFormat
    specs: tuple[ToolSpec, ...]
    sample: int = 0


class Actor(Protocol):
    """One episode's player."""

    async def act(self, observation: str, info: Mapping[str, Any]) -> Turn | None:
        """Write the next message.

        Args:
            observation: the text that ``reset`` or the last ``step`` returned.
            info: the info that came with it.

        Returns:
            The message, or None to give the episode up.

        Raises:
            RuntimeFailure: The player's own machine failed; the episode counts as failed and is
                never scored.
        """
        ...


class Policy(Protocol):
    """Starts a player for each episode; shared by all episodes of a rollout."""

    name: str

    def start(self, task: Task, scene: Scene) -> Actor:
        """Begin an episode.

        Args:
            task: the problem with its gold answer, which only policies that feign may look at.
            scene: the tools and how to call them.

        Raises:
            UsageError: The policy cannot play this task.
        """
        ...


class Gold:
    """Makes the task's gold calls one by one, then submits its answer: the ceiling of any reward.

    A gold call of a tool that is not on offer goes to the first tool that takes the same ``code``
    argument, else it is left out. When only one turn is left the answer is submitted at once.
    """

    name = "gold"

    def start(self, task: Task, scene: Scene) -> Actor:
        calls = gold_calls(task, scene.specs)
        messages = [scene.format.compose([call]) for call in calls]
        return _Speaker([*messages, _submission(scene, submission(task, scene.specs))], hurry=True)


class Plan(msgspec.Struct, frozen=True):
    """One way in which ``Noisy`` plays an episode, and how often.

    Attributes:
        share: probability.
        before: what precedes the answer: ``"calls"`` the gold calls; ``"error"`` a call that
            fails; ``"malformed"`` a message without a readable call; each once, in order.
        answer: ``"right"``, ``"wrong"``, ``"cut"`` (the message is cut by the length limit) or
            ``""`` (the episode is given up).
    """

    share: float
    before: tuple[str, ...]
    answer: str


PLANS: Mapping[str, Plan] = {
    "right": Plan(0.36, ("calls",), "right"),
    "repaired": Plan(0.14, ("error", "calls"), "right"),
    "reformatted": Plan(0.08, ("malformed", "calls"), "right"),
    "right without a call": Plan(0.06, (), "right"),
    "wrong": Plan(0.14, ("calls",), "wrong"),
    "never repaired": Plan(0.08, ("error",), "wrong"),
    "wrong without a call": Plan(0.04, (), "wrong"),
    "cut": Plan(0.05, ("calls",), "cut"),
    "given up": Plan(0.05, ("error", "malformed"), ""),
}
"""What ``Noisy`` does; the shares sum to 1, right answers are 64 %."""


class Noisy:
    """Plays as a half-trained model does, by the shares of ``PLANS``; nothing else is random.

    The choice depends on the seed, the task's id and the sample alone, so two runs, in any process,
    in any order, play the same.

    Args:
        seed: any integer.
    """

    name = "noisy"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def start(self, task: Task, scene: Scene) -> Actor:
        draw = _stream(self.seed, task.id, scene.sample)
        plan = draw.choices(list(PLANS.values()), [plan.share for plan in PLANS.values()])[0]
        calls = gold_calls(task, scene.specs)
        messages: list[str] = []
        for part in plan.before:
            if part == "malformed":
                messages.append(_malformed(scene, [*calls, submission(task, scene.specs)][0], draw))
            elif part == "error":
                messages += [scene.format.compose([_failing(call, draw)]) for call in calls[:1]]
            else:
                messages += [scene.format.compose([call]) for call in calls]
        return _Speaker([*messages, *_ending(plan.answer, task, scene, draw)], hurry=True)


class Scripted:
    """Says what a file says: JSON Lines of ``{"task_id": ..., "turns": [text, ...]}``.

    A line may have ``"sample"``: then it is for that attempt alone, else for all of the task's. An
    episode whose script is used up is given up.

    Args:
        path: the file.

    Attributes:
        task_ids: the tasks that the file has turns for, in its order.

    Raises:
        DataError: The file is missing or a line is not as above; the message has path and line.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.name
        self._turns: dict[tuple[str, int | None], tuple[str, ...]] = {}
        for number, line in enumerate(_read_lines(self.path), 1):
            if line.strip():
                row = _script_line(line, f"{self.path}:{number}")
                if (row.task_id, row.sample) in self._turns:
                    raise DataError(
                        f"{self.path}:{number}: task {row.task_id!r} has turns already; "
                        'tell attempts apart by "sample".'
                    )
                self._turns[row.task_id, row.sample] = row.turns
        if not self._turns:
            raise DataError(f"{self.path}: the file holds no line.")
        self.task_ids = list(dict.fromkeys(task_id for task_id, _ in self._turns))

    def start(self, task: Task, scene: Scene) -> Actor:
        return _Speaker(self.turns(task.id, scene.sample), hurry=False)

    def turns(self, task_id: str, sample: int = 0) -> Sequence[str]:
        """The messages for one attempt.

        Raises:
            UnknownNameError: The file has none for it.
        """
        found = self._turns.get((task_id, sample), self._turns.get((task_id, None)))
        if found is None:
            raise UnknownNameError(f"a task with turns in {self.path}", task_id, self.task_ids)
        return found


class ScriptLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a script file."""

    task_id: str
    turns: tuple[str, ...]
    sample: int | None = None


FEIGNED: Mapping[str, Callable[[int], Policy]] = {
    "gold": lambda _seed: Gold(),
    "noisy": lambda seed: Noisy(seed),
}
"""Policies that know the answers, by name; each is made from a seed."""


def make_policy(spec: str, *, seed: int = 0) -> Policy:
    """Build a policy by its name, or from a script file.

    Args:
        spec: ``"gold"``, ``"noisy"`` or a path.
        seed: for policies that draw.

    Raises:
        UsageError: It is neither a name nor a file that can be read.
    """
    if spec in FEIGNED:
        return FEIGNED[spec](seed)
    if not Path(spec).exists() and "/" not in spec and not Path(spec).suffix:
        raise UnknownNameError("a policy (nor is it a file)", spec, FEIGNED)
    return Scripted(spec)


def gold_calls(task: Task, specs: Sequence[ToolSpec]) -> list[ToolCall]:
    """The task's gold calls as calls of the tools on offer; those that fit none are left out.

    The submission is not among them, see ``submission``.

    Raises:
        UsageError: A gold call of the task is none.
    """
    named = {spec.name for spec in specs}
    coding = [spec.name for spec in specs if "code" in spec.parameters.get("properties", {})]
    calls = []
    for gold in _golds(task):
        name, arguments = gold.name, gold.arguments
        if name in SUBMITS:
            continue
        if name in named:
            calls.append(ToolCall(name, arguments))
        elif set(arguments) == {"code"} and coding:
            calls.append(ToolCall(coding[0], arguments))
    return calls


def submission(task: Task, specs: Sequence[ToolSpec]) -> ToolCall:
    """The call that hands in the task's gold answer: the task's own, if its tool is on offer.

    Raises:
        UsageError: A gold call of the task is none.
    """
    offered = {spec.name: spec.parameters.get("properties", {}) for spec in specs}
    for gold in reversed(_golds(task)):
        if gold.name in SUBMITS and gold.name in offered:
            known = {k: v for k, v in gold.arguments.items() if k in offered[gold.name]}
            return ToolCall(gold.name, known)
    name = next((name for name in SUBMITS if name in offered), "submit")
    return ToolCall(name, {SUBMITS[name]: task.answer})


def _golds(task: Task) -> list[ToolCall]:
    found = []
    for number, gold in enumerate(task.gold_calls):
        given: Any = gold if isinstance(gold, Mapping) else {}
        name, arguments = given.get("name"), given.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise UsageError(
                f"task {task.id!r}: gold_calls[{number}] is {repr(gold)[:200]}; each is a mapping "
                '{"name": "...", "arguments": {...}}.'
            )
        found.append(ToolCall(name, dict(arguments)))
    return found


class _Speaker:
    """Says given messages in order; in a ``hurry`` it keeps the last for the last turn."""

    def __init__(self, messages: Sequence[str], *, hurry: bool) -> None:
        self._messages = list(messages)
        self._hurry = hurry

    async def act(self, observation: str, info: Mapping[str, Any]) -> Turn | None:
        if self._hurry and info["left"]["turns"] == 1:
            del self._messages[:-1]
        return Turn.of(self._messages.pop(0)) if self._messages else None


def _submission(scene: Scene, call: ToolCall) -> str:
    try:
        return scene.format.compose([call])
    except UsageError:  # the format writes an answer and nothing beside it
        answer = SUBMITS[call.name]
        return scene.format.compose([ToolCall(call.name, {answer: call.arguments[answer]})])


def _stream(*parts: object) -> random.Random:
    """A random stream that depends on ``parts`` alone, in every process."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8])
    return random.Random(number)  # noqa: S311 - no secret depends on it


def _ending(answer: str, task: Task, scene: Scene, draw: random.Random) -> list[str]:
    right = submission(task, scene.specs)
    if answer == "right":
        return [_submission(scene, right)]
    if answer == "wrong":
        argument = SUBMITS[right.name]
        wrong = _wrong(str(right.arguments[argument]), draw)
        return [_submission(scene, ToolCall(right.name, {**right.arguments, argument: wrong}))]
    if answer == "cut":
        whole = _submission(scene, right)
        return [Turn(whole[: len(whole) // 2], finish_reason="length")]
    return []


def _wrong(answer: str, draw: random.Random) -> str:
    """An answer of the same kind that is not the right one."""
    off = draw.randint(1, 9)
    number = answer.replace(",", "")
    if re.fullmatch(r"-?\d{1,300}", number):
        return str(int(number) + off)
    return f"{1_000_003 * off}"


def _malformed(scene: Scene, call: ToolCall, draw: random.Random) -> str:
    whole = scene.format.compose([call])
    return draw.choice([whole[: 2 * len(whole) // 3], "Let me think about this for a moment."])


def _failing(call: ToolCall, draw: random.Random) -> ToolCall:
    """The same call, broken as beginners break it: its first text no longer runs."""
    arguments = dict(call.arguments)
    for name, value in arguments.items():
        if isinstance(value, str):
            first = draw.choice(["1 / 0", "undefined_name", 'int("x")', "("])
            arguments[name] = f"{first}\n{value}" if name == "code" else f"({value}"
            break
    return ToolCall(call.name, arguments)


def _read_lines(path: Path) -> list[str]:
    try:
        # split at \n alone: a text may hold U+2028, at which splitlines() would cut
        return path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise DataError(f"{path}: the script does not exist.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: a script is a file; this is a folder.") from None
    except OSError as error:
        raise DataError(f"{path}: the script cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the script cannot be read: {error}") from error


def _script_line(line: str, place: str) -> ScriptLine:
    try:
        return msgspec.json.decode(line, type=ScriptLine)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise DataError(
            f'{place}: {error}; each line is {{"task_id": "...", "turns": ["...", ...]}}.'
        ) from error
