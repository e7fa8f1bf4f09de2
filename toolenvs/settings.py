"""What a trajectory records of how its episode was set up: enough to replay it anywhere.

Formats, tools and rewards are named, with the options they were built with; an object without a
name is told by its class, and a replay then needs it given again.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import msgspec

from toolenvs.cache import ReplayCache
from toolenvs.drivers import Blocking
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.playback import MODES, Mode, Playback
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime, Tool, ToolFormat
from toolenvs.rubric import Rubric
from toolenvs.statekey import as_data, exact_data, name_of, options_of
from toolenvs.types import ToolSpec


def describe_setup(
    *,
    family: str,
    format: ToolFormat,  # noqa: A002 - the name of the setting
    format_options: Mapping[str, Any] | None,
    tools: Mapping[str, Tool],
    tool_options: Mapping[str, Mapping[str, Any] | None],
    specs: Sequence[ToolSpec],
    budgets: msgspec.Struct,
    tokenizer: Callable[[str], int] | None,
) -> dict[str, Any]:
    """Everything but the rubric and the runtimes, as JSON data.

    Options are those that something was made with by its name, None for what came as an object.
    """
    return {
        "family": family,
        "format": format.name,
        "format_options": _options(format, format_options),
        "tools": {name: tool.version for name, tool in tools.items()},
        "tool_options": {name: _options(tools[name], tool_options[name]) for name in tools},
        "specs": msgspec.json.encode(list(specs)).decode(),  # as text: their order is in the prompt
        "budgets": msgspec.structs.asdict(budgets),
        "tokenizer": "" if tokenizer is None else name_of(tokenizer),
    }


def _options(made: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    if options is None:
        return options_of(made)
    return {name: as_data(value) for name, value in options.items()}


def describe_rubric(rubric: Rubric) -> dict[str, Any]:
    """The rubric's hash, and its content where that is data, else None."""
    try:
        content = rubric.to_dict()
    except UsageError:
        return {"rubric": rubric.hash, "rewards": None}
    return {"rubric": rubric.hash, "rewards": content}


def describe_runtime(runtime: Runtime) -> dict[str, Any]:
    """What results depend on besides the calls; may take as long as the runtime's fingerprint.

    Raises:
        RuntimeFailure: It cannot be told here, such as without a container engine.
        UsageError: Its ``limits`` are no data.
    """
    limits = getattr(runtime, "limits", None)
    if not isinstance(limits, msgspec.Struct):
        limits = exact_data(limits, f"limits of the runtime {runtime.name!r}")
    told = as_data(limits)
    facts = {"name": runtime.name, "fingerprint": runtime.fingerprint(), "limits": told}
    own_folders = getattr(runtime, "own_folders", "")
    return {**facts, "own_folders": own_folders} if own_folders else facts


AUTO = ("docker", "local")
"""The sandboxes that ``"auto"`` chooses from: they run code, and answer nothing else."""


def asked_runtime(name: str, options: Mapping[str, Any], *, needs: str) -> dict[str, Any]:
    """A runtime's setting as JSON data.

    Args:
        name: the runtime's.
        options: its options; those of the pool do not count.
        needs: what it is for.
    """
    of_pool = inspect.signature(SandboxPool).parameters
    rest = {name: as_data(value) for name, value in options.items() if name not in of_pool}
    asked = {"sandbox": name, "options": rest}
    return asked if needs == "sandbox:python" else {**asked, "needs": needs}


CachePlace = str | os.PathLike[str] | ReplayCache
"""Where results are kept: a URL, the path of a SQLite file, or a cache that is there."""


class ReplaySetting:
    """The replay mode that an environment was given, and its cache.

    Args:
        mode: one of ``MODES``.
        cache: a URL, the path of a SQLite file, or a cache that the caller keeps; not needed when
            ``mode`` is off.
        share_external: see ``Playback``.

    Raises:
        UsageError: The mode is unknown, or it needs a cache and there is none.
    """

    def __init__(self, mode: Mode, cache: CachePlace, *, share_external: bool) -> None:
        if mode not in MODES:
            raise UnknownNameError("a replay mode", mode, MODES)
        if mode != "off" and not cache:
            raise UsageError(f"replay={mode!r} needs a place: cache='sqlite:///cache.db'.")
        if isinstance(cache, os.PathLike):
            cache = f"sqlite:///{os.fspath(cache)}"
        if mode != "off" and not isinstance(cache, str | ReplayCache):
            raise UsageError(
                f"cache={cache!r:.200} is no cache: give a URL such as 'sqlite:///cache.db', the "
                "path of a file, or a ReplayCache."
            )
        self.mode = mode
        self._given = cache
        self._cache: ReplayCache | None = None
        if cache and mode != "off":
            # A replay of a cache that is not there would make an empty one and miss everything.
            self._cache = (
                ReplayCache(cache, create=mode != "replay") if isinstance(cache, str) else cache
            )
        self._owns_cache = isinstance(cache, str)
        self._share_external = share_external

    @property
    def starts_early(self) -> bool:
        """Whether a sandbox starts in ``reset``; else the cache may spare it."""
        return self.mode not in ("auto", "replay")

    async def find_runtime(
        self, runtime: Runtime, *, asked: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """``describe_runtime``, told to the cache; in a replay, what the cache was told.

        A replay needs no sandbox, so the machine need not have one: a name stands for what it stood
        for when something was recorded; if that was more than one thing, for this machine's or else
        for the newest.

        Args:
            runtime: the runtime.
            asked: the setting that chose it, see ``asked_runtime``.

        Raises:
            RuntimeFailure: It cannot be told here.
        """
        if self._cache is None or asked is None:
            return await _describe(runtime)
        if self.mode != "replay":
            own = await _describe(runtime)
            self._cache.see_runtime(asked, own)
            return own
        seen = _seen(self._cache, asked)
        if len(seen) > 1:
            with contextlib.suppress(RuntimeFailure):
                own = await _describe(runtime)
                seen = [own] if own in seen else seen
        return dict(seen[0]) if seen else {}

    def playback(
        self,
        *,
        runtimes: Mapping[str, Any],
        counts: MutableMapping[str, float],
    ) -> Playback | None:
        """What records and serves the calls; None when the mode is off. See ``Playback``.

        The cache is opened now, where its user sees what is wrong with it; later that costs time.

        Raises:
            UsageError: The cache cannot be used.
            RuntimeFailure: Its server does not answer.
        """
        if self.mode == "off" or self._cache is None:
            return None
        self._cache.open()
        return Playback(
            self.mode,
            self._cache,
            runtimes=runtimes,
            counts=counts,
            share_external=self._share_external,
        )

    def twin(self) -> ReplaySetting:
        """The same for a second environment, which closes what it opens itself."""
        return ReplaySetting(self.mode, self._given, share_external=self._share_external)

    def close(self) -> None:
        """Write what is left; let go of a cache that was given as a URL.

        A database that stays locked costs results, which the log tells, and ends no episode.
        """
        if self._cache is None:
            return
        if self._owns_cache:
            self._cache.close()
        else:
            self._cache.flush()


def _seen(cache: ReplayCache, asked: Mapping[str, Any]) -> list[Any]:
    """What a setting stood for; ``"auto"`` also for what it could have chosen by name."""
    seen = list(cache.seen_runtimes(asked))
    if seen or asked["sandbox"] != "auto":
        return seen
    chosen = ({**asked, "sandbox": name} for name in AUTO)
    return [facts for setting in chosen for facts in cache.seen_runtimes(setting)]


async def _describe(runtime: Runtime) -> dict[str, Any]:
    facts: dict[str, Any] = await Blocking(lambda: describe_runtime(runtime))
    return facts
