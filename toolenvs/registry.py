"""One registry class for every kind of plugin: a plugin is one file, named as the plugin is.

A plugin module ``toolenvs/rewards/format_valid.py`` holds the class ``FormatValid``; the registry
finds both by the name ``format_valid`` without importing any other. Outside the tree the same
works by an entry point (group ``toolenvs.rewards``), or by ``register`` at run time.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from numbers import Integral, Real
from typing import Any, Generic, TypeVar

from toolenvs.errors import ToolenvsError, UnknownNameError, UsageError

T = TypeVar("T")

_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda v: not isinstance(v, bool) and isinstance(v, Integral)),
    "float": (
        "a finite number",
        lambda v: not isinstance(v, bool) and isinstance(v, Real) and math.isfinite(v),
    ),
    "bool": ("True or False", lambda v: isinstance(v, bool)),
    "str": ("a text", lambda v: isinstance(v, str)),
    "None": ("None", lambda v: v is None),
    "Path": ("a path", lambda v: isinstance(v, os.PathLike)),
    "PathLike": ("a path", lambda v: isinstance(v, os.PathLike)),
    "Mapping": ("a mapping", lambda v: isinstance(v, Mapping)),
    "Sequence": (
        "a list",
        lambda v: isinstance(v, Sequence) and not isinstance(v, str | bytes),
    ),
}
"""Types of options that are checked, as annotations name them: what they are, and a test."""


class Registry(Generic[T]):
    """The plugins of one kind.

    Args:
        kind: what one plugin is, with its article, for messages: ``"a reward"``.
        package: dotted name of the package whose modules are the plugins; also the group of
            entry points that is read.
        aliases: other names of plugins, for those that no file can have, such as ``2wiki``.
    """

    def __init__(
        self, kind: str, package: str, *, aliases: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.package = package
        self.aliases: Mapping[str, str] = dict(aliases or {})
        self._registered: dict[str, Callable[..., T]] = {}

    def register(self, name: str, factory: Callable[..., T]) -> None:
        """Add a plugin of your own.

        Raises:
            UsageError: The name is taken; names are never silently replaced.
        """
        if name in self.names():
            raise UsageError(f"{name!r} is already the name of {self.kind}; choose another.")
        self._registered[name] = factory

    def names(self) -> list[str]:
        """Every name that ``make`` accepts, sorted; imports no plugin."""
        found = {*self._files(), *self._entry_points(), *self._registered, *self.aliases}
        return sorted(found)

    def get(self, name: str) -> Callable[..., T]:
        """The plugin's class or factory.

        Raises:
            UnknownNameError: No plugin has that name; the message names the nearest.
        """
        name = self.aliases.get(name, name)
        if name in self._registered:
            return self._registered[name]
        if name in self._files():
            module = importlib.import_module(f"{self.package}.{name}")
            factory: Callable[..., T] = getattr(module, class_name(name))
            return factory
        points = self._entry_points()
        if name in points:
            loaded: Callable[..., T] = points[name].load()
            return loaded
        raise UnknownNameError(self.kind, name, self.names())

    def make(self, name: str, /, **options: Any) -> T:
        """Build the plugin called ``name`` with its own keyword options.

        Raises:
            UnknownNameError: No plugin, or no option of it, has that name.
            UsageError: An option that it needs is missing, or a value is of another type than the
                plugin's annotation says (numbers are finite), or out of range; or a plugin that is
                not of this package raised something else.
        """
        factory = self.get(name)
        self._check_options(name, factory, options)
        try:
            return factory(**options)
        except ToolenvsError:
            raise
        except Exception as error:
            if factory.__module__.partition(".")[0] == __package__:
                raise
            what = f"{self.kind} {name!r} of {factory.__module__} cannot be made"
            raise UsageError(f"{what}: {type(error).__name__}: {error}") from error

    def _check_options(self, name: str, factory: Callable[..., T], options: dict[str, Any]) -> None:
        try:
            taken = inspect.signature(factory).parameters
        except ValueError:  # a callable written in C tells nothing
            return
        if not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            for option in options:
                if option not in taken:
                    raise UnknownNameError(f"an option of {name!r}", option, taken)
        missing = [
            p.name
            for p in taken.values()
            if p.default is p.empty
            and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            and p.name not in options
        ]
        if missing:
            raise UsageError(f"{self.kind} {name!r} needs the options: {', '.join(missing)}.")
        for option, value in options.items():
            if option in taken and (wanted := _wanted(value, taken[option])):
                raise UsageError(
                    f"the option {option} of {self.kind} {name!r} is {value!r:.200}; it must be "
                    f"{wanted}."
                )

    def _files(self) -> set[str]:
        path = importlib.import_module(self.package).__path__
        return {m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_")}

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.package)}


def class_name(name: str) -> str:
    """The class that a plugin's module holds: ``format_valid`` gives ``FormatValid``."""
    return "".join(part.capitalize() for part in name.split("_"))


def _wanted(value: Any, option: inspect.Parameter) -> str:
    """What an option's value must be, ``""`` where it is that, or nobody can tell."""
    noted = option.annotation
    both = isinstance(value, float) and isinstance(option.default, float)  # inf, for one
    is_default = value is option.default or (both and value == option.default)
    if is_default or noted is option.empty:
        return ""
    text = noted if isinstance(noted, str) else getattr(noted, "__name__", "")
    parts = [part.partition("[")[0] for part in _alternatives(text)]
    if not parts or not all(part in _TYPES for part in parts):
        return ""
    if any(_TYPES[part][1](value) for part in parts):
        return ""
    return " or ".join(dict.fromkeys(_TYPES[part][0] for part in parts))


def _alternatives(annotation: str) -> list[str]:
    """The parts of ``"str | Sequence[str] | None"``; what stands in brackets is left whole."""
    parts, depth = [""], 0
    for character in annotation:
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
