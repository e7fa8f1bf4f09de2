"""A plugin is one file named as the plugin is."""

from __future__ import annotations

import pytest

from toolenvs import tools
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
