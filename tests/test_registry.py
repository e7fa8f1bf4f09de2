"""A plugin is one file named as the plugin is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolenvs import ToolEnv, formats, tools
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.registry import Registry, class_name


def test_names_lists_files_without_underscore() -> None:
    """Every public file is a name, a private one is none."""
    assert {"python", "python_session", "submit"} <= set(tools.names())
    assert not [name for name in tools.names() if name.startswith("_")]


def test_make_builds_with_options() -> None:
    """``make`` passes keyword options on."""
    tool = tools.make("python", limit_chars=7)
    assert tool.name == "python"
    assert vars(tool)["limit_chars"] == 7


def test_an_unknown_name_names_the_nearest() -> None:
    """The message tells the nearest name and all known ones."""
    with pytest.raises(UnknownNameError, match=r"'pyton'.*Did you mean 'python'\?.*submit"):
        tools.make("pyton")


def test_a_name_is_never_silently_replaced() -> None:
    """Registering a taken name is an error; a free one works at once."""
    registry: Registry[object] = Registry("a tool", "toolenvs.tools")
    with pytest.raises(UsageError, match="already"):
        registry.register("python", object)
    registry.register("mine", dict)
    assert registry.make("mine", a=1) == {"a": 1}
    assert "mine" in registry.names()


def test_the_class_is_named_as_the_file() -> None:
    """``format_valid.py`` holds ``FormatValid``."""
    assert class_name("format_valid") == "FormatValid"


def test_options_are_checked_by_name() -> None:
    """An unknown option names the nearest; a missing one is named."""
    with pytest.raises(UnknownNameError, match=r"'limit_char'.*Did you mean 'limit_chars'"):
        tools.make("python", limit_char=7)
    registry: Registry[object] = Registry("a tool", "toolenvs.tools")

    def needy(url: str) -> object:
        return url

    registry.register("needy", needy)
    with pytest.raises(UsageError, match="needs the options: url"):
        registry.make("needy")


class _Plugin:
    def __init__(
        self,
        *,
        rows: int = 5,
        limit_s: float = 1.0,
        open_end_s: float = float("inf"),
        strict: bool = False,
        place: str | Path = "",
        names: Sequence[str] | None = None,
        files: Mapping[str, str | Path] | None = None,
        other: object = None,
        untyped: Any = None,
    ) -> None:
        self.given = (rows, limit_s, open_end_s, strict, place, names, files, other, untyped)


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("rows", 1.5, "a whole number"),
        ("rows", True, "a whole number"),
        ("rows", None, "a whole number"),
        ("limit_s", "x", "a finite number"),
        ("limit_s", math.nan, "a finite number"),
        ("limit_s", math.inf, "a finite number"),
        ("strict", 1, "True or False"),
        ("place", 5, "a text or a path"),
        ("names", "x", "a list or None"),
        ("files", "x", "a mapping or None"),
    ],
)
def test_options_are_checked_by_type(option: str, value: object, wanted: str) -> None:
    """Against the plugin's annotations; the message has the option, the value, what is allowed."""
    registry: Registry[object] = Registry("a tool", "toolenvs.tools")
    registry.register("mine", _Plugin)
    with pytest.raises(
        UsageError, match=f"the option {option} of a tool 'mine'.* must be {wanted}"
    ):
        registry.make("mine", **{option: value})


def test_values_of_their_types_pass() -> None:
    """A whole number is a number, a default is right, other annotations are let be."""
    registry: Registry[object] = Registry("a tool", "toolenvs.tools")
    registry.register("mine", _Plugin)
    registry.make("mine", rows=3, limit_s=2, open_end_s=math.inf, strict=True, place=Path("x"))
    registry.make("mine", names=["a"], files={"a": "b"}, other=5, untyped=5)
    registry.make("mine", names=None, place="x")


def test_a_whole_float_is_no_whole_number_be_it_the_default_or_not() -> None:
    """``3.0`` would fail where a count is used."""
    for rows in (3.0, 20.0):
        with pytest.raises(UsageError, match=r"sample_rows .* must be a whole number"):
            tools.make("sql_schema", sample_rows=rows)


def test_options_of_a_tool_are_given_by_name() -> None:
    """Not as a bare value."""
    with pytest.raises(UsageError, match="tool_options of 'sql_query' is 5"):
        ToolEnv("sql", tool_options={"sql_query": 5})  # type: ignore[dict-item]


def test_a_fault_of_a_plugin_is_told_as_the_plugins() -> None:
    """It is named with its kind, its module and what it raised."""

    def sums(location: str = "x") -> Any:
        return int(location)

    formats.register("broken", sums)
    try:
        with pytest.raises(UsageError, match=r"a format 'broken' of tests\..*ValueError: invalid"):
            formats.make("broken")
    finally:
        del formats.registry._registered["broken"]
