"""The runtimes of one environment: a share in a pool for each thing that its tools need.

    sandbox:python     the sandbox that was asked for
    sandbox:sql        the same kind of sandbox, with the image and the data of databases
    service:postgres   a PostgreSQL server
    index              a search index, or a search engine

A pool is opened when an episode first needs it, and what runs in it starts later still. Private
calls of rewards get workers of their own, in which no agent's code ever ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from toolenvs import runtimes
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.locks import ForkLock
from toolenvs.pool import PoolHandle, SandboxPool, own_pool, sandbox_kind, shared_pool
from toolenvs.protocols import Runtime
from toolenvs.settings import AUTO, ReplaySetting, asked_runtime
from toolenvs.types import Limits

NEEDS = ("sandbox:python", "sandbox:sql", "service:postgres", "index")
"""What tools may need."""

_PROGRAMS = {"sandbox:sql": "sql"}
"""What a sandbox must hold other than Python's packages: image and preload have one name."""

_SERVICES = {"service:postgres": "postgres", "index": "index"}
"""Runtimes by name for what is no sandbox."""


_PLACES = ("data", "templates", "url", "corpus")
"""Options that say where on this machine, or on which server, something is."""

_RESULT_BYTES = 16 << 20
"""What a sandbox of databases may print in a call: a reward's whole result."""


class Pools:
    """Shares in pools, by what tools need.

    Args:
        sandbox: ``"docker"``, ``"local"``, ``"auto"``, a ``Runtime``, or a ``SandboxPool`` that
            the caller keeps: for everything that begins with ``sandbox:``.
        options: keyword options of a sandbox that is given by name.
        runtimes: by what tools need, a ``Runtime`` or keyword options; they win over all others.
        resources: options that the tasks ask for, see ``TaskSource``.

    Raises:
        UsageError: A setting has no meaning.
    """

    def __init__(
        self,
        sandbox: str | Runtime | SandboxPool,
        options: Mapping[str, Any] | None = None,
        *,
        runtimes: Mapping[str, Runtime | Mapping[str, Any]] | None = None,
        resources: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        _check(sandbox, options, runtimes or {})
        self._sandbox = sandbox
        self._options = dict(options or {})
        self._runtimes = dict(runtimes or {})
        self._resources = {needs: dict(of) for needs, of in (resources or {}).items()}
        self._open: dict[tuple[str, str], PoolHandle] = {}
        self._lock = ForkLock()  # over ``_open``: one share for each thing, whoever asks
        self.facts: dict[str, Any] = {}
        """What results depend on, by what tools need; known once ``make_ready`` was awaited."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy has the settings and no share."""
        return {**self.__dict__, "_open": {}, "facts": {}}

    def get(self, needs: str, whose: str = "agent") -> PoolHandle:
        """The share in the pool for ``needs``, opened if it is not; nothing starts.

        Args:
            needs: what a tool needs.
            whose: ``"agent"``, or ``"referee"`` for private calls.
        """
        key = (needs, whose)
        with self._lock:
            if key not in self._open:
                self._open[key] = self._share(needs, whose)
            return self._open[key]

    def all_for(self, needs: Iterable[str], whose: str = "agent") -> dict[str, PoolHandle]:
        """The shares for everything in ``needs`` but ``""``."""
        return {one: self.get(one, whose) for one in needs if one}

    @property
    def sandbox_name(self) -> str:
        """The kind of sandbox in use; before a pool is open, the one asked for."""
        for (needs, _), handle in list(self._open.items()):
            if needs.startswith("sandbox:"):
                return handle.name
        return self._sandbox if isinstance(self._sandbox, str) else type(self._sandbox).__name__

    async def make_ready(
        self, needs: Iterable[str], replay: ReplaySetting, *, private: Iterable[str] = ()
    ) -> None:
        """Learn what results depend on; start workers now unless the cache may spare them.

        Args:
            needs: what the agent's tools need.
            replay: the replay mode.
            private: what private calls need; their workers start when there is one.

        Raises:
            RuntimeFailure: Something cannot be started here; the message says what to do.
        """
        whose = {**dict.fromkeys(private, "referee"), **dict.fromkeys(needs, "agent")}
        for one, whom in whose.items():
            if not one:
                continue
            handle = self.get(one, whom)
            if replay.starts_early and whom == "agent":
                await handle.warm()
            if one not in self.facts:
                self.facts[one] = await replay.find_runtime(handle.runtime, asked=self._asked(one))

    def twin(self) -> Pools:
        """The same runtimes for a second environment, with shares of its own."""
        twin = object.__new__(Pools)
        twin.__dict__.update(self.__dict__)
        twin._open, twin._lock = {}, ForkLock()
        with ExitStack() as undone:
            undone.callback(twin.close)
            for needs, whose in list(self._open):
                twin.get(needs, whose)
            undone.pop_all()
        return twin

    def close(self) -> None:
        """End the shares; the last one of a pool ends its workers. Twice is harmless."""
        with self._lock:
            shares, self._open, self.facts = self._open, {}, {}
        with ExitStack() as each:
            for handle in shares.values():
                each.callback(handle.close)

    # -- inside ---------------------------------

    def _share(self, needs: str, whose: str) -> PoolHandle:
        options = self._options_of(needs)
        if options is None:
            given = self._runtimes.get(needs, self._sandbox)
            assert not isinstance(given, str | Mapping)
            return own_pool(given, whose)
        if needs in _SERVICES:
            return shared_pool(_SERVICES[needs], whose, **options)
        assert isinstance(self._sandbox, str)
        name = sandbox_kind(self._sandbox)
        program = _for_program(name, _PROGRAMS.get(needs, ""))
        return shared_pool(name, whose, **{**program, **options})

    def _options_of(self, needs: str) -> dict[str, Any] | None:
        """Keyword options of the runtime for ``needs``; None where an object was given for it."""
        own = self._runtimes.get(needs, {})
        if not isinstance(own, Mapping):
            return None
        resources = self._resources.get(needs, {})
        if needs in _SERVICES:
            return {**resources, **own}
        if not isinstance(self._sandbox, str):
            return None
        return {**self._options, **resources, **own}

    def _asked(self, needs: str) -> dict[str, Any] | None:
        """The setting that stands for a runtime in the cache: never a place of this machine."""
        options = self._options_of(needs)
        if options is None:
            return None
        told = {
            name: getattr(value, "digest", value)
            for name, value in options.items()
            if name not in _PLACES or hasattr(value, "digest")
        }
        name = _SERVICES.get(needs) or str(self._sandbox)
        return asked_runtime(name, told, needs=needs)


def _for_program(runtime_name: str, program: str) -> dict[str, Any]:
    if not program or runtime_name not in ("docker", "local"):
        return {}
    return {"image": program, "preload": program, "limits": Limits(output_bytes=_RESULT_BYTES)}


def _check(
    sandbox: object,
    options: Mapping[str, Any] | None,
    own: Mapping[str, Runtime | Mapping[str, Any]],
) -> None:
    if isinstance(sandbox, str) and sandbox not in ("auto", *runtimes.names()):
        raise UnknownNameError("a sandbox", sandbox, ["auto", *runtimes.names()])
    if options and not isinstance(sandbox, str):
        raise UsageError(
            "sandbox_options go with a sandbox's name; give them to the object instead."
        )
    _check_fits("sandbox:python", sandbox, "sandbox")
    for needs, runtime in own.items():
        if needs not in NEEDS:
            raise UnknownNameError("what a tool may need", needs, NEEDS)
        if not isinstance(runtime, Mapping):
            _check_fits(needs, runtime, f"runtimes[{needs!r}]")


def _check_fits(needs: str, given: object, setting: str) -> None:
    """Refuse a service where code is to run, and a sandbox where a service is to answer."""
    name = given if isinstance(given, str) else getattr(given, "name", "")
    service = next((one for one, known in _SERVICES.items() if known == name), "")
    if service and service != needs:
        fitting = f"runtimes={{{service!r}: ...}}"
        raise UsageError(
            f"{setting}={name!r} runs no code: it answers tools that need {service!r}. Give "
            f"sandbox='docker', 'local' or 'auto', and what is for the service as {fitting}."
        )
    if name in AUTO and needs in _SERVICES:
        raise UsageError(
            f"{setting} is the sandbox {name!r}, which answers no requests: give keyword options "
            f"of the runtime {_SERVICES[needs]!r}, or such a runtime."
        )
