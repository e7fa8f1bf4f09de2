"""``toolenvs rollout``: play episodes by a policy or a model, and say how it went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from toolenvs.cli.faults import FAILED, INTERRUPTED
from toolenvs.cli.rewards import REWARDS_HELP, read_rewards
from toolenvs.cli.run_folder import open_run, played_before
from toolenvs.cli.terminal import console, note, print_json, progress_bar, shortened
from toolenvs.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from toolenvs.env import ToolEnv
    from toolenvs.policies import Policy
    from toolenvs.protocols import TaskSource
    from toolenvs.rollout import Played
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
    rewards: str | dict[str, Any]
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
        typer.Option(
            min=1, help="Episodes, rounded up to whole groups; every task once if left out."
        ),
    ] = None,
    envs: Annotated[int, typer.Option(min=1, max=1024, help="Environments at once.")] = 8,
    group: Annotated[int, typer.Option(min=1, help="Samples of each task.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of sandboxes and of noisy.")] = 0,
    sandbox: Annotated[str, typer.Option(help="docker, local or auto.")] = "auto",
    replay: Annotated[str, typer.Option(help="off, record, auto, replay or verify.")] = "off",
    cache: Annotated[str, typer.Option(help="Replay cache: sqlite:///FILE, postgresql://...")] = "",
    format: Annotated[  # noqa: A002 - the name of the setting
        str,
        typer.Option(
            help="How calls are written; the family's own if left out. Take openai for an endpoint "
            "that answers with tool_calls (OpenAI itself; vLLM and SGLang with a tool-call parser)."
        ),
    ] = "",
    rewards: Annotated[
        str, typer.Option(help=f"{REWARDS_HELP}; the family's own if left out.")
    ] = "",
    max_turns: Annotated[int, typer.Option(min=1, help="Turns of one episode.")] = 10,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Of the model.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of one message.")] = None,
    evaluate: Annotated[
        bool, typer.Option("--eval", help="avg@k, pass@k, pass^k, maj@k with intervals.")
    ] = False,
    samples: Annotated[
        int | None, typer.Option(min=1, help="k: samples of each task for --eval.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the trajectories. One that an earlier rollout of the same settings "
            "left unfinished is gone on with; episodes that failed are played again."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Play episodes and report success, score, reward by term, time and behaviour.

    Ctrl-C stops it: what was played is written and shown as a part, and the exit code is 130.
    """
    if cache and replay == "off":
        raise UsageError(
            f"--cache {cache} needs a mode: give --replay auto (or record, replay, verify) with it."
        )
    settings = Settings(
        family=family,
        tasks=tasks,
        policy=policy,
        model=model,
        episodes=episodes,
        group=_group(group, samples, evaluate=evaluate),
        seed=seed,
        format=format,
        rewards=read_rewards(rewards),
        max_turns=max_turns,
        temperature=temperature,
        max_tokens=max_tokens,
    )
    report = play(settings, sandbox=sandbox, envs=envs, out=out, replay=replay, cache=cache)
    _print_report(report, evaluate=evaluate, as_json=as_json)
    if report.problem:
        typer.echo(f"toolenvs: {report.problem}", err=True)
        raise typer.Exit(INTERRUPTED if report.interrupted else FAILED)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A finished rollout: its settings as they were resolved, its episodes and their summary.

    Attributes:
        episodes: ``EpisodeSummary`` of each.
        summary: their ``Summary``.
        rejected: rows of the source that cannot be graded.
        rejections: each of them, with its place and the reason.
        continued: episodes that an earlier, interrupted rollout left in the folder.
        interrupted: True when Ctrl-C ended it.
        problem: why it is not as asked, ``""`` when it is.
    """

    settings: Settings
    episodes: list[Any]
    summary: Any
    rejected: int
    rejections: list[str]
    envs: int
    wall_s: float
    out: str
    continued: int
    interrupted: bool
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
    from toolenvs.cli.sandboxes import check_name, sandbox_for
    from toolenvs.env import ToolEnv
    from toolenvs.families import FAMILIES, IMAGES
    from toolenvs.rollout import run_episodes
    from toolenvs.summary import summarise
    from toolenvs.tasks import load_tasks

    if settings.family not in FAMILIES:
        raise UnknownNameError("a task family", settings.family, FAMILIES)
    check_name(sandbox)
    player = _make_player(settings)
    source = load_tasks(settings.tasks, family=settings.family)
    jobs = _jobs(settings, source, player)

    def make_env(kind: str = sandbox) -> ToolEnv:
        return ToolEnv(
            settings.family,
            tasks=source,
            sandbox=kind,
            sandbox_options={"places": 2 * envs},
            format=settings.format,
            rewards=settings.rewards,
            replay=replay,  # type: ignore[arg-type]  # ToolEnv says what is allowed
            cache=cache,
            max_turns=settings.max_turns,
        )

    trial = make_env()  # it starts nothing; a wrong setting shows here
    settings = _resolved(settings, trial)
    _say_what_is_left_out(settings, source, jobs)
    with ExitStack() as at_the_end:
        at_the_end.callback(getattr(player, "close", lambda: None))  # a model has connections
        writer = None
        before: dict[Job, EpisodeSummary] = {}
        if out is not None:
            writer = at_the_end.enter_context(open_run(out, msgspec.to_builtins(settings)))
            before = played_before(out, jobs, answer_term=trial.rubric.answer)
        left = [job for job in jobs if job not in before]
        serves = replay == "replay"  # then no sandbox starts
        kind = sandbox if serves else sandbox_for(settings.family, sandbox, say=note)
        with _progress(settings, player, left, len(before)) as advance:
            played = run_episodes(
                lambda: make_env(kind),
                player,
                left,
                envs=envs,
                out=writer,
                progress=lambda _: advance(),
            )
    done = before | {episode.job: episode for episode in played.episodes}
    episodes = [done[job] for job in jobs if job in done]
    _say_end(played)
    return Report(
        settings=settings,
        episodes=episodes,
        summary=summarise(
            episodes,
            sandbox="none" if serves or settings.family not in IMAGES else kind,
            replay=replay,
            steps_per_s=played.steps_per_s,
            cache_hits=played.cache_hits,
            cache_misses=played.cache_misses,
        ),
        rejected=len(source.rejected),
        rejections=list(source.rejected),
        envs=envs,
        wall_s=played.wall_s,
        out="" if out is None else str(out),
        continued=len(before),
        interrupted=played.interrupted,
        problem=_problem(played, episodes, len(jobs)),
    )


def _say_what_is_left_out(settings: Settings, source: TaskSource, jobs: Sequence[Job]) -> None:
    if source.rejected:
        note(
            f"{len(source.rejected)} rows cannot be graded, left out: {source.rejected[0]} ... "
            "(--json lists all)"
        )
    if settings.episodes is not None and len(jobs) > settings.episodes:
        note(f"{len(jobs)} episodes, not {settings.episodes}: groups of {settings.group} are whole")


def _progress(
    settings: Settings, player: Policy, left: Sequence[Job], before: int
) -> AbstractContextManager[Callable[[], None]]:
    """A bar on a terminal; elsewhere one line at the start."""
    title = f"{settings.family} {player.name}"
    if before:
        note(f"going on: {before} episodes are there, {len(left)} are left")
    if not console(stderr=True).is_terminal:
        note(f"{title}: playing {len(left)} episodes")
    return progress_bar(title, len(left))


def _say_end(played: Played) -> None:
    if not console(stderr=True).is_terminal:
        note(f"played {len(played.episodes)} episodes in {played.wall_s:.1f} s")


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
    from toolenvs.families import FAMILIES

    rewards = settings.rewards or FAMILIES[settings.family].rewards
    return msgspec.structs.replace(settings, format=env.format.name, rewards=rewards)


def _problem(played: Played, episodes: Sequence[EpisodeSummary], wanted: int) -> str:
    """Why a rollout is not as asked, ``""`` when it is."""
    so_far = f"{len(episodes)} of {wanted} episodes"
    if played.interrupted:
        return f"interrupted: {so_far} were played."
    failures = Counter(episode.fault for episode in episodes if episode.failure)
    if failures and sum(failures.values()) == wanted:
        kinds = ", ".join(f"{count} times {fault}" for fault, count in failures.items())
        return f"every episode failed ({kinds}): there is no score."
    if played.given_up:
        return f"given up after {so_far}: {played.given_up}"
    return ""


_CONTEXT = ("rejected", "rejections", "envs", "wall_s", "out", "continued", "interrupted")


def _print_report(report: Report, *, evaluate: bool, as_json: bool) -> None:
    from toolenvs.cli import tables
    from toolenvs.summary import evaluate as estimate

    summary: Summary = report.summary
    k = report.settings.group
    estimates = estimate(report.episodes, k) if evaluate else {}
    if as_json:
        found = {"evaluation": estimates} if evaluate else {}
        context = {name: getattr(report, name) for name in _CONTEXT}
        settings = msgspec.to_builtins(report.settings) | {
            "episodes_asked": report.settings.episodes
        }
        settings.pop("episodes")
        print_json(msgspec.to_builtins(summary) | found | settings | context)
        return
    screen = console()
    who = report.settings.policy or report.settings.model.partition("#")[2]
    title = f"{report.settings.family} {shortened(report.settings.tasks) or 'built-in tasks'}"
    title += f", format {report.settings.format}, rewards {_rubric_name(report.settings)}"
    if report.interrupted:
        title += f" (PARTIAL: interrupted after {len(report.episodes)} episodes)"
    screen.print(tables.summary_table({who: summary}, title=title))
    if evaluate:
        screen.print(tables.estimate_table(estimates))
    if report.out:
        screen.print(f"trajectories in {report.out}", markup=False)


def _rubric_name(settings: Settings) -> str:
    return settings.rewards if isinstance(settings.rewards, str) else "of one's own"
