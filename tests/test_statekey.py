"""State keys: what may change a result changes the key, and nothing else does."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolenvs.tools as tool_plugins
from toolenvs import exactjson, statekey, tools
from toolenvs.errors import UsageError
from toolenvs.protocols import ToolKind
from toolenvs.statekey import (
    CallKey,
    StateKeys,
    Surroundings,
    digest,
    identity,
    next_state,
    options_of,
)
from toolenvs.types import Database, Task, ToolResult

GOLDEN = Path(__file__).parent / "golden" / "tool_versions.json"
TASK = Task(id="t", prompt="p", files={"a.txt": "x"})


class Look:
    """A tool with arguments of every kind."""

    name = "look"
    description = "looks"
    needs = "index"
    kind: ToolKind = "pure"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        query: str = ""
        topk: int = 1
        share: float = 0.0
        more: Any = None

    def __init__(self, *, corpus: str = "v1", _seen: list[str] | None = None) -> None:
        self._corpus = corpus
        self._seen = _seen

    async def run(self, args: Any, context: Any) -> ToolResult:
        """Do nothing."""
        return ToolResult("")


def key_of(
    arguments: dict[str, Any] | None = None,
    *,
    tool: Any = None,
    after: str = "",
    restarted: bool = False,
    **around: Any,
) -> CallKey:
    """The key of a call of ``tool``."""
    tool = tool or Look()
    facts: dict[str, Any] = {
        "task": TASK,
        "seed": 1,
        "runtimes": {"index": {"fingerprint": "v1", "limits": {"timeout_s": 10.0}}},
    }
    keys = StateKeys(Surroundings(**{**facts, **around}), tools={tool.name: identity(tool)})
    args = msgspec.convert(arguments or {}, tool.Args)
    return keys.key(tool, args, after=after, restarted=restarted)


def changed(**attributes: Any) -> Any:
    """A ``Look`` with other class attributes."""
    return type("Look", (Look,), attributes)()


@pytest.mark.parametrize(
    "other",
    [
        key_of({"query": "lyon", "topk": 3}),
        key_of({"query": "Lyon"}),
        key_of({"query": "lyon", "more": True}),
        key_of({"query": "lyon"}, seed=2),
        key_of({"query": "lyon"}, after="0" * 64),
        key_of({"query": "lyon"}, restarted=True),
        key_of({"query": "lyon"}, tool=Look(corpus="v2")),
        key_of({"query": "lyon"}, tool=changed(version="2")),
        key_of({"query": "lyon"}, tool=changed(name="gaze")),
        key_of({"query": "lyon"}, tool=changed(kind="stateful")),
        key_of({"query": "lyon"}, task=Task(id="t", prompt="p", files={"a.txt": "y"})),
        key_of({"query": "lyon"}, task=Task(id="t", prompt="q", files={"a.txt": "x"})),
        key_of({"query": "lyon"}, task=msgspec.structs.replace(TASK, now="2024-06-15")),
        key_of({"query": "lyon"}, runtimes={"index": {"fingerprint": "v2"}}),
        key_of(
            {"query": "lyon"},
            runtimes={"index": {"fingerprint": "v1", "limits": {"timeout_s": 1.0}}},
        ),
    ],
)
def test_R03_what_may_change_a_result_changes_the_key(other: CallKey) -> None:
    """R03: arguments, history, seed, files, runtime, limits, options and version all count."""
    assert key_of({"query": "lyon"}).key != other.key


def test_R03_equal_requests_have_equal_keys() -> None:
    """R03: the order of keys is free, a number field is a number, defaults are said or not."""
    one = key_of({"query": "a", "topk": 1, "share": 1})
    assert one == key_of({"topk": 1, "share": 1.0, "query": "a", "more": None})
    assert one == key_of({"share": 1, "query": "a"})
    assert key_of({"more": {"k": 1, "q": "a"}}) == key_of({"more": {"q": "a", "k": 1}})


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, True),
        (1, "1"),
        (0, False),
        (1, 1.0),
        (None, "null"),
        ("\u00e9", "e\u0301"),
        ("\U0001f600", "\ud83d\ude00"),
        ([["a"], "b"], [["a", "b"]]),
        ({"$float": "inf"}, float("inf")),
    ],
)
def test_R03_different_values_never_meet(one: Any, two: Any) -> None:
    """R03: true is not 1, text is not a number, and a text is the bytes that the tool gets."""
    assert key_of({"more": one}).key != key_of({"more": two}).key


@given(*[st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)] * 2)
def test_keys_are_equal_exactly_when_the_values_are(one: Any, two: Any) -> None:
    """For all values: equal bytes, equal keys."""
    same = exactjson.encode(one) == exactjson.encode(two)
    assert (key_of({"more": one}) == key_of({"more": two})) == same


def test_the_request_is_stored_whole_and_the_key_is_its_hash() -> None:
    """What a record belongs to can be read from it."""
    key = key_of({"query": "lyon"}, after="ab")
    request = json.loads(key.request)
    assert hashlib.sha256(key.request).digest() == key.key
    assert request["arguments"] == {"query": "lyon", "topk": 1, "share": 0.0, "more": None}
    assert request["state"]["runtime"]["fingerprint"] == "v1"
    assert (request["state"]["seed"], request["after"]) == (1, "ab")
    assert request["tool"]["options"]["corpus"] == "v1"


def test_the_chain_depends_on_every_call_and_every_result() -> None:
    """Two histories that differ anywhere lead to different states."""
    a, b = key_of({"query": "a"}), key_of({"query": "b"})
    one, two = (digest(ToolResult(text)) for text in ("1", "2"))
    states = {next_state(key, content) for key in (a, b) for content in (one, two)}
    assert len(states) == 4


def test_the_outside_world_is_keyed_by_episode_and_place() -> None:
    """An external call belongs to its episode, unless it is shared."""
    tool = changed(kind="external")
    mine = key_of(tool=tool, episode="a", after="1")
    assert mine != key_of(tool=tool, episode="b", after="1")
    assert mine != key_of(tool=tool, episode="a", after="2")


def test_an_option_that_cannot_be_found_makes_every_attribute_count() -> None:
    """Too much in a key costs a run; too little would serve a wrong result."""

    class Hidden(Look):
        def __init__(self, topk: int) -> None:
            self.k = topk
            self.limit = 5

    assert options_of(Hidden(3)) == {"k": 3, "limit": 5}
    assert options_of(Look(corpus="v2")) == {"corpus": "v2", "_seen": None}
    assert options_of(changed()) == {"corpus": "v1", "_seen": None}


class Scale:
    """An option with a state and no way to tell it."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, number: int) -> int:
        return number * self.factor


class Told(Scale):
    """One that tells it."""

    def fingerprint(self) -> str:
        """Its state."""
        return str(self.factor)


class Record(msgspec.Struct):
    """An option that is a record."""

    factor: int


class Other(msgspec.Struct):
    """Another one with the same fields."""

    factor: int


class Slotted(Look):
    """A tool that keeps its option in a slot of another name."""

    __slots__ = ("_kept",)

    def __init__(self, limit: int) -> None:
        self._kept = limit


class Shadowed(Look):
    """A tool whose class has a default of its option's name, kept elsewhere."""

    limit = 5

    def __init__(self, limit: int) -> None:
        self._kept = limit


def with_option(value: Any) -> Any:
    """A tool with this option."""
    return Look(corpus=value)


@pytest.mark.parametrize(
    "value",
    [
        Scale(1),
        lambda x: x,
        Scale(1).__call__,
        [Scale(1)],
        {"scale": Scale(1)},
        {1: "a"},
        {"a", "b"},
        b"raw",
        object(),
    ],
)
def test_an_option_that_cannot_be_told_from_another_has_no_key(value: Any) -> None:
    """It would serve one tool's results for another; the message says what to do."""
    with pytest.raises(UsageError, match=r"corpus|text keys"):
        identity(with_option(value))
    assert options_of(with_option(value))["corpus"]  # a record may name the class alone


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Told(1), Told(2)),
        ([Told(1)], [Told(2)]),
        (len, max),
        (Scale, Told),
        (Path("/a"), Path("/b")),
        (Record(1), Record(2)),
        (Record(1), Other(1)),
        ({"a": (1, 2)}, {"a": [1, 3]}),
    ],
)
def test_options_that_differ_have_different_keys(one: Any, two: Any) -> None:
    """Data, paths, records, what can be imported, and objects with a fingerprint."""
    assert identity(with_option(one)) == identity(with_option(one))
    assert identity(with_option(one)) != identity(with_option(two))


@pytest.mark.parametrize("kind", [Slotted, Shadowed])
def test_an_option_is_found_where_it_is_kept(kind: Any) -> None:
    """In a slot too, and never in the class."""
    assert identity(kind(1)) != identity(kind(2))
    assert options_of(kind(1))["_kept"] == 1


def test_a_tool_may_tell_its_own_fingerprint() -> None:
    """It then stands for all options."""
    one, two = (changed(fingerprint=lambda self, told=told: told) for told in "ab")
    one._corpus = two._corpus = object()
    assert identity(one) != identity(two)


@pytest.mark.parametrize("value", [b"raw", {1, 2}, {1: "a"}, object()])
def test_results_that_are_no_json_still_have_a_digest(value: object) -> None:
    """Catch-up compares whatever a tool returns."""
    assert len(digest(ToolResult("x", {"v": value}))) == 64


@pytest.mark.parametrize("name", tools.names())
def test_a_tool_can_be_made_again_from_its_options(name: str) -> None:
    """What a trajectory records of a tool makes an equal one."""
    made = tools.make(name)
    assert identity(tools.make(name, **options_of(made))) == identity(made)


# -- versions ---------------------------------


def source_of(name: str) -> str:
    """SHA-256 of a tool's module and of the private modules beside it that it may use."""
    folder = Path(tool_plugins.__path__[0])
    text = (folder / f"{name}.py").read_bytes()
    for helper in sorted(folder.glob("_*.py")):
        if helper.stem.encode() in text and helper.stem != "__init__":
            text += helper.read_bytes()
    return hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("name", tools.names())
def test_a_tool_that_changes_has_a_new_version(name: str) -> None:
    """Old recordings must not be served for new code.

    When a call may give another result now, raise the tool's ``version``; then, or when it cannot,
    run this test with TOOLENVS_UPDATE_GOLDEN=1.
    """
    known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    now = {"version": getattr(tools.get(name), "version", ""), "source": source_of(name)}
    if os.environ.get("TOOLENVS_UPDATE_GOLDEN") == "1":
        known[name] = now
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    assert known.get(name) == now, test_a_tool_that_changes_has_a_new_version.__doc__


def test_a_field_that_came_later_changes_no_key() -> None:
    """Caches made before a task could pin the clock go on being served."""
    task = Task(id="t", prompt="p", database=Database(name="d", place="d.sqlite"))
    assert hashlib.sha256(exactjson.encode(statekey._told(task))).hexdigest() == (
        "e4fb834ab0d2a112abace094647b9bc5a8db0b59cd891d0ea856d0837b6bddf5"
    )
    assert statekey._told(msgspec.structs.replace(task, now="2024-06-15"))["now"] == "2024-06-15"
