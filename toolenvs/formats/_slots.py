"""Tables of slots: which tag or block language stands for which argument of which tool."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from toolenvs.errors import UsageError
from toolenvs.formats._message import SUBMIT
from toolenvs.formats._quoted import Syntax
from toolenvs.formats._tagged import Slot
from toolenvs.types import ToolCall, ToolSpec

Slots = Mapping[str, Slot]
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def slot_for(word: str, tool: str, argument: str) -> Slot:
    """Make a slot; its syntax follows from the names: ``python`` or ``code``, ``sql``, else text.

    >>> slot_for("sql", "sql_query", "query").syntax
    'sql'
    """
    names = f"{word} {tool}".lower()
    syntax: Syntax = "text"
    if "python" in names or word == "code":
        syntax = "python"
    elif "sql" in names:
        syntax = "sql"
    return Slot(tool, argument, syntax)


def check_table(
    table: Mapping[str, Sequence[str]], *, option: str, taken: Collection[str]
) -> dict[str, Slot]:
    """Turn the option ``{word: (tool, argument)}`` into slots.

    Raises:
        UsageError: A word is no name or is taken, or its value is not a pair of texts.
    """
    slots = {}
    for word, pair in table.items():
        if not _NAME.fullmatch(word) or word.lower() in taken:
            raise UsageError(
                f"{option}: {word!r} cannot be used; give a name, but none of {sorted(taken)}."
            )
        if isinstance(pair, str) or len(pair) != 2:
            raise UsageError(f"{option}[{word!r}] is {pair!r}; give (tool, argument).")
        slots[word] = slot_for(word, *pair)
    return slots


def own_slots(specs: Sequence[ToolSpec]) -> dict[str, Slot]:
    """A slot by its own name for each tool but ``submit`` whose only required argument is text."""
    arguments = {spec.name: _only_text(spec) for spec in specs if spec.name != SUBMIT}
    return {
        name: slot_for(name, name, argument)
        for name, argument in arguments.items()
        if argument and _NAME.fullmatch(name)
    }


def specs_of(calls: Sequence[ToolCall]) -> list[ToolSpec]:
    """The specs that calls with one text argument would have."""
    return [
        ToolSpec(call.name, "", {"required": [name], "properties": {name: {"type": "string"}}})
        for call in calls
        for name in list(call.arguments)[:1]
    ]


def slot_of(call: ToolCall, slots: Slots) -> tuple[str, str]:
    """Find the first word that expresses ``call``, and its payload.

    Raises:
        UsageError: None does: its tool has no slot, or it has other arguments.
    """
    for word, slot in slots.items():
        payload = call.arguments.get(slot.argument)
        if slot.tool == call.name and len(call.arguments) == 1 and isinstance(payload, str):
            return word, payload
    known = "; ".join(f"{slot.tool}({slot.argument}) by {word}" for word, slot in slots.items())
    raise UsageError(
        f"this format cannot express {call.name}({', '.join(map(str, call.arguments))}) with one "
        f"text argument; it writes {known or 'nothing'}."
    )


def stripped(call: ToolCall) -> tuple[str, dict[str, str]]:
    """What of a call is the same before and after its payload is stripped."""
    return call.name, {key: str(value).strip() for key, value in call.arguments.items()}


def _only_text(spec: ToolSpec) -> str:
    """The one required argument of a tool if it is a text, else ``""``."""
    required = list(spec.parameters.get("required", ()))
    properties = spec.parameters.get("properties", {})
    if len(required) == 1 and properties.get(required[0], {}).get("type") == "string":
        return str(required[0])
    return ""
