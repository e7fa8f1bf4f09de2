"""``toolenvs rollout``: play episodes by a policy or a model, and say how it went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.terminal import console, note, print_json, progress_bar
from toolenvs.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from toolenvs.env import ToolEnv
    from toolenvs.policies import Policy
    from toolenvs.protocols import TaskSource
    from toolenvs.records import RunWriter
    from toolenvs.summary import EpisodeSummary, Job, Summary


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollout is asked to do; all that its episodes depend on is written into the run."""

    family: str
    tasks: str
    policy: str
    model: str
    episodes: int | None
    group: int
    seed: int
    format: str
    rewards: str
    max_turns: int
    temperature: float | None
    max_tokens: int | None


def rollout(
    family: Annotated[str, typer.Argument(help="Task family, such as math_tir.")],
    tasks: Annotated[
        str, typer.Option(help="SOURCE:PATH, such as gsm8k:test.jsonl; built-in tasks if left out.")
    ] = "",
    policy: Annotated[
        str, typer.Option(help="gold, noisy, or a JSON Lines FILE of task_id and turns.")
    ] = "",
    model: Annotated[
        str, typer.Option(help="URL#NAME of an OpenAI-compatible endpoint; key: OPENAI_API_KEY.")
    ] = "",
    episodes: Annotated[
        int | None,
        typer.Option(min=1, help="Episodes, in whole groups; every task once if left out."),
    ] = None,
    envs: Annotated[int, typer.Option(min=1, help="Environments at once.")] = 8,
    group: Annotated[int, typer.Option(min=1, help="Samples of each task.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of sandboxes and of noisy.")] = 0,
    sandbox: Annotated[str, typer.Option(help="docker, local or auto.")] = "auto",
    replay: Annotated[str, typer.Option(help="off, record, auto, replay or verify.")] = "off",
    cache: Annotated[str, typer.Option(help="Replay cache: sqlite:///FILE, postgresql://...")] = "",
    format: Annotated[  # noqa: A002 - the name of the setting
        str, typer.Option(help="How calls are written; the family's own if left out.")
    ] = "",
    rewards: Annotated[str, typer.Option(help="Rubric; the family's own if left out.")] = "",
    max_turns: Annotated[int, typer.Option(min=1, help="Turns of one episode.")] = 10,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Of the model.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of one message.")] = None,
    evaluate: Annotated[
        bool, typer.Option("--eval", help="avg@k, pass@k, pass^k, maj@k with intervals.")
    ] = False,
    samples: Annotated[
        int | None, typer.Option(min=1, help="k: samples of each task for --eval.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the trajectories.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Play episodes and report success, score, reward by term, time and behaviour."""
    settings = Settings(
        family=family,
        tasks=tasks,
        policy=policy,
        model=model,
        episodes=episodes,
        group=_group(group, samples, evaluate=evaluate),
        seed=seed,
        format=format,
        rewards=rewards,
        max_turns=max_turns,
        temperature=temperature,
        max_tokens=max_tokens,
    )
    report = play(settings, sandbox=sandbox, envs=envs, out=out, replay=replay, cache=cache)
    _print_report(report, evaluate=evaluate, as_json=as_json)
    if report.problem:
        typer.echo(f"toolenvs: {report.problem}", err=True)
        raise typer.Exit(FAILED)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A finished rollout: its settings as they were resolved, its episodes and their summary.

    Attributes:
        episodes: ``EpisodeSummary`` of each.
        summary: their ``Summary``.
        rejected: rows of the source that cannot be graded.
        problem: why it is not as asked, ``""`` when it is.
    """

    settings: Settings
    episodes: list[Any]
    summary: Any
    rejected: int
    envs: int
    wall_s: float
    out: str
    problem: str


def play(
    settings: Settings,
    *,
    sandbox: str,
    envs: int,
    out: Path | None,
    replay: str = "off",
    cache: str = "",
) -> Report:
    """Run the rollout that ``settings`` describe.

    Raises:
        UsageError: A setting has no meaning.
        RuntimeFailure: Nothing could be played.
    """
    from toolenvs.cli.sandboxes import check_name, choose_sandbox
    from toolenvs.env import FAMILIES, ToolEnv
    from toolenvs.rollout import run_episodes
    from toolenvs.summary import summarise
    from toolenvs.tasks import load_tasks

    if settings.family not in FAMILIES:
        raise UnknownNameError("a task family", settings.family, FAMILIES)
    check_name(sandbox)
    player = _make_player(settings)
    source = load_tasks(settings.tasks, family=settings.family)

    def make_env(kind: str = sandbox) -> ToolEnv:
        return ToolEnv(
            settings.family,
            tasks=source,
            sandbox=kind,
            format=settings.format,
            rewards=settings.rewards,
            replay=replay,  # type: ignore[arg-type]  # ToolEnv says what is allowed
            cache=cache,
            max_turns=settings.max_turns,
        )

    settings = _resolved(settings, make_env())  # it starts nothing; a wrong setting shows here
    jobs = _jobs(settings, source, player)
    if source.rejected:
        note(f"{len(source.rejected)} rows cannot be graded, left out: {source.rejected[0]} ...")
    with _opened(out, settings) as writer, ExitStack() as at_the_end:
        at_the_end.callback(getattr(player, "close", lambda: None))  # a model has connections
        kind = sandbox if replay == "replay" else choose_sandbox(sandbox, say=note).name
        began = time.perf_counter()
        with progress_bar(f"{settings.family} {player.name}", len(jobs)) as advance:
            played = run_episodes(
                lambda: make_env(kind),
                player,
                jobs,
                envs=envs,
                out=writer,
                progress=lambda _: advance(),
            )
    return Report(
        settings=settings,
        episodes=played,
        summary=summarise(played, sandbox=kind, replay=replay),
        rejected=len(source.rejected),
        envs=envs,
        wall_s=time.perf_counter() - began,
        out="" if out is None else str(out),
        problem=_problem(played, len(jobs)),
    )


def _opened(out: Path | None, settings: Settings) -> AbstractContextManager[RunWriter | None]:
    from toolenvs.records import TRAJECTORIES, RunWriter

    if out is None:
        return nullcontext()
    file = out / TRAJECTORIES
    if file.is_file() and file.stat().st_size:
        raise UsageError(f"{out} holds trajectories already; give --out another folder.")
    return RunWriter(out, msgspec.to_builtins(settings))


def _make_player(settings: Settings) -> Policy:
    if bool(settings.policy) == bool(settings.model):
        raise UsageError("say who plays: either --policy gold|noisy|FILE or --model URL#NAME.")
    if settings.model:
        from toolenvs.endpoint import Model

        return Model.parse(
            settings.model, temperature=settings.temperature, max_tokens=settings.max_tokens
        )
    if settings.temperature is not None or settings.max_tokens is not None:
        raise UsageError("--temperature and --max-tokens are for --model.")
    from toolenvs.policies import make_policy

    return make_policy(settings.policy, seed=settings.seed)


def _jobs(settings: Settings, source: TaskSource, player: Policy) -> list[Job]:
    """What is played; for a script all that it has turns for, unless a number is asked for."""
    from toolenvs.policies import Scripted
    from toolenvs.rollout import plan_jobs

    jobs = plan_jobs(source, episodes=settings.episodes, group=settings.group, seed=settings.seed)
    if not isinstance(player, Scripted):
        return jobs
    if settings.episodes is None:
        known = {job.task_id for job in jobs}
        for task_id in player.task_ids:
            if task_id not in known:
                raise UnknownNameError(f"a task of {source.name!r}", task_id, known)
        jobs = [job for job in jobs if job.task_id in set(player.task_ids)]
    for job in jobs:
        player.turns(job.task_id, job.sample)
    return jobs


def _group(group: int, samples: int | None, *, evaluate: bool) -> int:
    if samples is not None and not evaluate:
        raise UsageError("--samples is for --eval; for samples of one task use --group.")
    if samples is not None and group not in (1, samples):
        raise UsageError(f"--group {group} and --samples {samples} differ; give one of them.")
    return samples or group


def _resolved(settings: Settings, env: ToolEnv) -> Settings:
    from toolenvs.env import FAMILIES

    rewards = settings.rewards or FAMILIES[settings.family].rewards
    return msgspec.structs.replace(settings, format=env.format.name, rewards=rewards)


def _problem(episodes: Sequence[EpisodeSummary], wanted: int) -> str:
    """Why a rollout is not as asked, ``""`` when it is."""
    if len(episodes) < wanted:
        return f"interrupted: {len(episodes)} of {wanted} episodes were played."
    failures = Counter(episode.failure for episode in episodes if episode.failure)
    if sum(failures.values()) == len(episodes):
        kinds = ", ".join(f"{kind} {count}" for kind, count in failures.items())
        return f"every episode failed ({kinds}): there is no score."
    return ""


def _print_report(report: Report, *, evaluate: bool, as_json: bool) -> None:
    from toolenvs.cli import tables
    from toolenvs.summary import evaluate as estimate

    summary: Summary = report.summary
    k = report.settings.group
    estimates = estimate(report.episodes, k) if evaluate else {}
    if as_json:
        found = {"evaluation": estimates} if evaluate else {}
        context = {name: getattr(report, name) for name in ("rejected", "envs", "wall_s", "out")}
        settings = msgspec.to_builtins(report.settings) | {
            "episodes_asked": report.settings.episodes
        }
        settings.pop("episodes")
        print_json(msgspec.to_builtins(summary) | found | settings | context)
        return
    screen = console()
    who = report.settings.policy or report.settings.model.partition("#")[2]
    title = f"{report.settings.family} {report.settings.tasks or 'built-in tasks'}"
    title += f", format {report.settings.format}, rewards {report.settings.rewards}"
    screen.print(tables.summary_table({who: summary}, title=title))
    if evaluate:
        screen.print(tables.estimate_table(estimates))
    if report.out:
        screen.print(f"trajectories in {report.out}", markup=False)
