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
_TEXT = {"type": "string"}
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
    """A slot by its own name for each tool but ``submit`` that one text can call, or none."""
    arguments = {spec.name: _text_of(spec) for spec in specs if spec.name != SUBMIT}
    slots = {
        name: slot_for(name, name, argument)
        for name, argument in arguments.items()
        if argument is not None and _NAME.fullmatch(name)
    }
    # What runs Python takes code, whatever a call without any looks like.
    return {name: slot for name, slot in slots.items() if slot.argument or slot.syntax != "python"}


def specs_of(calls: Sequence[ToolCall]) -> list[ToolSpec]:
    """The specs that calls with one text argument, or none, would have."""
    return [
        ToolSpec(call.name, "", {"required": names, "properties": dict.fromkeys(names, _TEXT)})
        for call in calls
        for names in [list(call.arguments)[:1]]
    ]


def slot_of(call: ToolCall, slots: Slots) -> tuple[str, str]:
    """Find the first word that expresses ``call``, and its payload.

    Raises:
        UsageError: None does: its tool has no slot, or it has other arguments.
    """
    for word, slot in slots.items():
        if slot.tool != call.name:
            continue
        payload = call.arguments.get(slot.argument)
        if len(call.arguments) == 1 and isinstance(payload, str):
            return word, payload
        if not call.arguments and not slot.argument:
            return word, ""
    raise UsageError(
        f"this format writes calls with one text argument or none; it cannot express "
        f"{call.name}({', '.join(map(str, call.arguments))})."
    )


def stripped(call: ToolCall) -> tuple[str, dict[str, str]]:
    """What of a call is the same before and after its payload is stripped."""
    return call.name, {key: str(value).strip() for key, value in call.arguments.items()}


def _text_of(spec: ToolSpec) -> str | None:
    """The argument that a payload stands for, ``""`` for none, None where one text cannot call it.

    It is the only required argument; of a tool that requires none the first, if it is a text.
    """
    required = list(spec.parameters.get("required", ()))
    properties = spec.parameters.get("properties", {})
    first = (required or list(properties))[:1]
    is_text = bool(first) and properties.get(first[0], {}).get("type") == "string"
    if len(required) > 1 or (required and not is_text):
        return None
    return str(first[0]) if is_text else ""
