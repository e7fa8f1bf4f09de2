"""Task families: the tools, format and rubric that each brings when nothing else is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Family(msgspec.Struct, frozen=True):
    """A task family.

    Attributes:
        tools: what the agent can call.
        format: how calls are written.
        rewards: the rubric.
        referee: further tools, for private calls of rewards only.
        tool_options: options by tool name.
    """

    tools: tuple[str, ...]
    format: str
    rewards: str
    referee: tuple[str, ...] = ()
    tool_options: Mapping[str, Mapping[str, Any]] = {}


FAMILIES: Mapping[str, Family] = {
    "math_tir": Family(tools=("python", "submit"), format="hermes", rewards="gated"),
    "sql": Family(
        tools=("sql_schema", "sql_query", "submit_sql"),
        format="hermes",
        rewards="sql",
        referee=("sql_rows", "sql_after"),
    ),
    "search": Family(
        tools=("search", "open_page", "submit"),
        format="hermes",
        rewards="search",
        tool_options={"submit": {"cites": True}},
    ),
}

SUBMITS: Mapping[str, str] = {"submit": "answer", "submit_sql": "sql"}
"""Tools that hand in an answer, and the argument that holds it."""

IMAGES: Mapping[str, str] = {"math_tir": "python", "sql": "sql"}
"""The sandbox image of a family; one that is not here runs nothing of the agent's."""
