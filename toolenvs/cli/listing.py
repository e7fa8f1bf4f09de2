"""``toolenvs list``: what there is, one line each."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolenvs.cli.terminal import console, print_json
from toolenvs.errors import UnknownNameError

if TYPE_CHECKING:
    from toolenvs.registry import Registry


def list_plugins(
    kind: Annotated[str, typer.Argument(help="One kind, such as tools; all if left out.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List families, tools, formats, rewards, backends, runtimes, sources, layouts and policies."""
    found = catalogue()
    if kind:
        if kind not in found:
            raise UnknownNameError("a kind of plugin", kind, found)
        found = {kind: found[kind]}
    if as_json:
        print_json(found)
        return
    from toolenvs.cli.tables import plain_table

    rows = [(kind, *item) for kind, plugins in found.items() for item in plugins.items()]
    console().print(plain_table("", ("kind", "name", "what it is"), rows, sections=True))


def catalogue() -> dict[str, dict[str, str]]:
    """Everything that can be named, by kind: name and one sentence."""
    from toolenvs import backends, formats, importers, runtimes, sources, tools
    from toolenvs import rewards as components
    from toolenvs.families import FAMILIES
    from toolenvs.policies import FEIGNED
    from toolenvs.rubric import PRESETS

    families = {
        name: f"tools {', '.join(family.tools)}; format {family.format}; rubric {family.rewards}"
        for name, family in FAMILIES.items()
    }
    of_referees = {name for family in FAMILIES.values() for name in family.referee}
    offered = _plugins(tools.registry)
    return {
        "families": families,
        "tools": {name: about for name, about in offered.items() if name not in of_referees},
        "formats": _plugins(formats.registry),
        "rewards": _plugins(components.registry),
        "rubrics": {name: _parts(preset) for name, preset in PRESETS.items()},
        "backends": _plugins(backends.registry),
        "runtimes": _plugins(runtimes.registry),
        "sources": _plugins(sources.registry),
        "layouts": _plugins(importers.registry),
        "policies": {
            **{name: _sentence(type(make(0))) for name, make in FEIGNED.items()},
            "FILE": "Says what a file says: JSON Lines of task_id and turns.",
        },
    }


def _plugins(registry: Registry[Any]) -> dict[str, str]:
    return {name: _about(registry, name) for name in registry.names()}


def _about(registry: Registry[Any], name: str) -> str:
    try:
        return _sentence(registry.get(name))
    except (ImportError, AttributeError) as error:
        return f"not usable here: {error}"


def _sentence(thing: object) -> str:
    """The first sentence of a docstring, on one line."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    match = re.match(r".*?[.](?=\s|$)", text)
    return (match[0] if match else text.rstrip(":")).replace("``", "")


def _parts(preset: Any) -> str:
    terms = [f"{term.get('weight', 1.0):g} {term['reward']}" for term in preset["terms"]]
    gates = [f"{gate['reward']} ({gate['scope']})" for gate in preset.get("gates", ())]
    return " + ".join(terms) + (f", gated by {', '.join(gates)}" if gates else "")
