"""State keys: what a call's result may depend on, written out, and its hash.

A request is everything a result may depend on, as canonical JSON:

    tool       name, version, kind, needs and options
    arguments  as they were validated: 1 and 1.0 are one for a float field, true is never 1
    state      the runtime's fingerprint and limits, the task as tools see it, the sandbox seed
    after      the chain of earlier stateful calls: hash(request, digest of its result), or ""

The key is the request's SHA-256. The request is stored beside it, so that a record can be read, and
a collision is seen and not served.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from toolenvs import exactjson
from toolenvs.errors import UsageError
from toolenvs.protocols import Tool
from toolenvs.types import Task, ToolResult

VERSION = 1
"""Raised when equal requests may mean something else than before."""


class CallKey(msgspec.Struct, frozen=True):
    """One call in one state.

    Attributes:
        key: SHA-256 of ``request``, 32 bytes.
        request: the whole request, canonical JSON.
        tool: the tool's name.
        call: 16 bytes that name tool and arguments, whatever the state.
        state: 16 bytes that name the state, whatever the call.
    """

    key: bytes
    request: bytes
    tool: str
    call: bytes
    state: bytes


class Surroundings(msgspec.Struct, frozen=True):
    """What every call of an episode depends on.

    Attributes:
        task: the task as tools see it, gold answer blanked.
        seed: start of the sandbox's random streams.
        runtimes: facts of each runtime, by what tools ``need``: fingerprint and limits.
        episode: names the episode for calls of the outside world.
    """

    task: Task
    seed: int
    runtimes: Mapping[str, Any]
    episode: str = ""


class StateKeys:
    """Makes the keys of one episode's calls.

    Args:
        around: what all of them depend on.
        tools: the tools by name, as ``identity`` wrote them.
        share_external: calls of the outside world are keyed without the episode.

    Raises:
        UsageError: The task holds what is no JSON.
    """

    def __init__(
        self,
        around: Surroundings,
        *,
        tools: Mapping[str, bytes],
        share_external: bool = False,
    ) -> None:
        self._around = around
        self._tools = tools
        self.share_external = share_external
        self._states: dict[tuple[str, str], bytes] = {}

    def key(
        self, tool: Tool, args: msgspec.Struct, *, after: str = "", restarted: bool = False
    ) -> CallKey:
        """The key of one call.

        Args:
            tool: the tool.
            args: its validated arguments.
            after: where the chain of earlier calls stands, ``""`` at its start.
            restarted: the session before this one was lost.

        Raises:
            UsageError: The arguments hold what is no JSON.
        """
        arguments = _arguments(args)
        identity = self._tools[tool.name]
        state = self._state(tool)
        before = f'"after":"{after}","restarted":{"true" if restarted else "false"}'.encode()
        request = b'{%b,"arguments":%b,"state":%b,"tool":%b,"version":%d}' % (
            before,
            arguments,
            state,
            identity,
            VERSION,
        )
        return CallKey(
            key=hashlib.sha256(request).digest(),
            request=request,
            tool=tool.name,
            call=_short(tool.name.encode(), arguments),
            state=_short(before, state),
        )

    def _state(self, tool: Tool) -> bytes:
        known = self._states.get((tool.kind, tool.needs))
        if known is None:
            known = exactjson.encode(self._facts(tool), name="state")
            self._states[tool.kind, tool.needs] = known
        return known

    def _facts(self, tool: Tool) -> dict[str, Any]:
        around = self._around
        # Without its facts nothing could tell one runtime's results from another's.
        facts: dict[str, Any] = {"runtime": around.runtimes[tool.needs] if tool.needs else {}}
        if tool.kind == "external":
            return facts if self.share_external else facts | {"episode": around.episode}
        seen = hashlib.sha256(exactjson.encode(_told(around.task), name="task")).hexdigest()
        return facts | {"seed": around.seed, "task": {"id": around.task.id, "content": seen}}


def _told(task: Task) -> dict[str, Any]:
    """What a task says. A field that came later is left out where it is unused: keys stay."""
    told = msgspec.structs.asdict(task)
    return told if task.now else {name: told[name] for name in told if name != "now"}


def next_state(key: CallKey, digest: str) -> str:
    """Where the chain stands after a call that gave a result with this digest."""
    return hashlib.sha256(key.key + digest.encode()).hexdigest()


def digest(result: ToolResult) -> str:
    """Content hash of a result, equal for equal results in every process."""
    try:
        content = msgspec.json.encode(result, order="sorted")
    except (TypeError, ValueError, OverflowError):  # what JSON does not hold is told by its repr
        content = repr(result).encode("utf-8", "backslashreplace")
    return hashlib.sha256(content).hexdigest()


def identity(tool: Tool) -> bytes:
    """Name, version, kind, needs and options of a tool, as canonical JSON.

    Raises:
        UsageError: An option is no data and has no ``fingerprint()``, so that results of two tools
            that differ in it could not be told apart; the message says what to do.
    """
    facts = {
        "name": tool.name,
        "version": tool.version,
        "kind": tool.kind,
        "needs": tool.needs,
        "options": _exact_options(tool),
    }
    return exactjson.encode(facts, name=f"tool {tool.name!r}")


def _exact_options(tool: Tool) -> dict[str, Any]:
    if callable(getattr(tool, "fingerprint", None)):
        return {"fingerprint": tool.fingerprint()}  # type: ignore[attr-defined]
    return {
        name: exact_data(value, f"the option {name!r} of the tool {tool.name!r}")
        for name, value in _option_values(tool).items()
    }


def options_of(tool: Any) -> dict[str, Any]:
    """The keyword options that a plugin was built with, as JSON data, for a record to tell.

    They are its constructor's parameters, kept as attributes of the same name (an underscore before
    it is allowed). Where one is not found, every attribute counts: a key that says too much costs a
    second run, one that says too little serves a wrong result.
    """
    return {name: as_data(value) for name, value in _option_values(tool).items()}


def _option_values(tool: Any) -> dict[str, Any]:
    kept = _attributes(tool)
    found: dict[str, Any] = {}
    for name in _parameters(tool.__class__):
        own = next((one for one in (name, f"_{name}") if one in kept), "")
        if own:
            found[name] = kept[own]
        elif isinstance(getattr(tool.__class__, name, None), property):
            found[name] = getattr(tool, name)
        else:
            found = kept
            break
    return dict(sorted(found.items()))


def _attributes(tool: Any) -> dict[str, Any]:
    """What an object itself holds, in its dictionary and in slots; never what its class has."""
    slots = [
        name
        for kind in tool.__class__.__mro__
        for name, member in vars(kind).items()
        if inspect.ismemberdescriptor(member)
    ]
    held = {name: getattr(tool, name) for name in slots if hasattr(tool, name)}
    return {**held, **getattr(tool, "__dict__", {})}


@functools.cache
def _parameters(kind: type[Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(kind).parameters)
    except ValueError:  # written in C: nothing is known of it
        return ("*",)


def as_data(value: Any) -> Any:
    """JSON data that stands for an option in a record; an object is told by its class at least."""
    try:
        plain = value if isinstance(value, msgspec.Struct) else exact_data(value, "an option")
        return exactjson.decode(exactjson.encode(plain))
    except UsageError:
        return {"name": name_of(value)}


def exact_data(value: Any, name: str) -> Any:
    """JSON data by which an option is told from every other that may give another result.

    Args:
        value: JSON data, a path, a record, a function or class that can be imported, an object with
            ``fingerprint() -> str``, or lists and mappings of these.
        name: what it is called in messages.

    Raises:
        UsageError: It is something else.
    """
    if callable(getattr(value, "fingerprint", None)) and not isinstance(value, type):
        return {"type": name_of(value), "fingerprint": value.fingerprint()}
    if isinstance(value, list | tuple):
        return [exact_data(item, f"{name}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {key: exact_data(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        fields = {field: getattr(value, field) for field in value.__struct_fields__}
        return {"type": name_of(value), "fields": exact_data(fields, name)}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if _importable(value):
        return {"name": name_of(value)}
    try:
        return exactjson.decode(exactjson.encode(value))
    except UsageError:
        raise UsageError(
            f"{name} is of type {name_of(type(value))}, which is no data: two that differ could "
            "not be told apart in the cache. Give JSON data instead, or give the object "
            "fingerprint() -> str, which changes whenever a result may."
        ) from None


def _importable(value: Any) -> bool:
    """Whether a function or class is what its name means in every process.

    Its code may change as the tool's own may: that is what a tool's ``version`` is for.
    """
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or module is sys.modules["__main__"]:  # another script has another of it
        return False
    found: Any = module
    for part in str(getattr(value, "__qualname__", "")).split("."):
        found = getattr(found, part, None)
    return found is value


def name_of(what: Any) -> str:
    """Module and name of a class or function, or of an object's class."""
    what = what if hasattr(what, "__qualname__") else type(what)
    return f"{what.__module__}.{what.__qualname__}"


def _arguments(args: msgspec.Struct) -> bytes:
    encoded = exactjson.encode(args, name="arguments")
    if b"\\ud" not in encoded:
        return encoded
    # Two lone surrogates side by side are written as the character they denote is, but a tool sees
    # two texts: the code points tell them apart.
    points = "".join(_texts(msgspec.structs.asdict(args))).encode("utf-8", "surrogatepass")
    return b'{"$points":"%b","value":%b}' % (_short(points).hex().encode(), encoded)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.items() for part in item for text in _texts(part)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, msgspec.Struct):
        return _texts(msgspec.structs.asdict(value))
    return []


def _short(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\0".join(parts)).digest()[:16]
