"""Tools as OpenAI's schema describes them, which most models were trained on."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolenvs.types import ToolSpec


def signatures(specs: Sequence[ToolSpec]) -> str:
    """The tools as JSON, one in a line."""
    return "\n".join(json.dumps(_signature(spec), ensure_ascii=False) for spec in specs)


def _signature(spec: ToolSpec) -> dict[str, object]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }
    return {"type": "function", "function": function}
