"""The tools of one environment: the agent's, and those for private calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs import tools
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.executor import as_external, bound_tools, tool_spec
from toolenvs.families import Family
from toolenvs.pools import NEEDS, Pools
from toolenvs.protocols import Tool
from toolenvs.types import Task, ToolSpec


class Toolbox:
    """What can be called in an environment.

    Args:
        family: what it brings when nothing else is chosen.
        chosen: names or ``Tool`` objects; the family's own when None.
        options: keyword options by tool name, those for private calls among them.

    Attributes:
        own: the agent's tools, by name.
        options: the options that each of them was made with; None for one given as an object.

    Raises:
        UsageError: A tool or an option has no meaning.
    """

    def __init__(
        self,
        family: Family,
        chosen: Sequence[str | Tool] | None,
        options: Mapping[str, Mapping[str, Any]],
    ) -> None:
        if isinstance(chosen, str):
            raise UsageError(f"tools={chosen!r} is one text: give a list, [{chosen!r}].")
        if chosen is None:
            chosen = family.tools
            options = {**family.tool_options, **options}
        self.own = _made(chosen, options)
        private = _made(family.referee, options)
        self._private = {**private, **self.own}
        for name in options:
            if name not in self._private:
                raise UnknownNameError("a tool of this environment", name, self.own)
            if self._private[name] in chosen:
                raise UsageError(
                    f"tool_options[{name!r}]: this tool was given as an object, which has its "
                    f"options already; build it with them, or give the name, tools=[{name!r}, ...]."
                )
        self.options = {
            name: None if tool in chosen else options.get(name, {})
            for name, tool in self.own.items()
        }

    @property
    def specs(self) -> list[ToolSpec]:
        """What the agent is told of its tools, in their order."""
        return [tool_spec(tool) for tool in self.own.values()]

    def bound(self, task: Task, pools: Pools, whose: str = "agent") -> dict[str, Tool]:
        """The tools as they are for a task, on the runtimes that there are.

        Args:
            task: the task.
            pools: the runtimes.
            whose: ``"agent"``, or ``"referee"`` for private calls.
        """
        bound = bound_tools(self._private if whose == "referee" else self.own, task)
        for name, tool in bound.items():
            if tool.needs and getattr(pools.get(tool.needs, whose).runtime, "external", False):
                bound[name] = as_external(tool)
        return bound


def _made(
    chosen: Sequence[str | Tool], options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Tool]:
    for name, given in options.items():
        if not isinstance(given, Mapping):
            raise UsageError(f"tool_options of {name!r} is {given!r}; give its options by name.")
    made = [
        tools.make(tool, **options.get(tool, {})) if isinstance(tool, str) else tool
        for tool in chosen
    ]
    for tool in made:
        if not isinstance(tool, Tool):
            raise UsageError(f"{tool!r} is no tool: it lacks a member of protocols.Tool.")
        if tool.needs and tool.needs not in NEEDS:
            raise UnknownNameError(f"what {tool.name!r} may need", tool.needs, NEEDS)
    by_name = {tool.name: tool for tool in made}
    if len(by_name) < len(made):
        raise UsageError(f"two tools have one name: {[tool.name for tool in made]}.")
    return by_name
