"""What a database holds: tables, columns and keys, as plain records."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Column(NamedTuple):
    """A column.

    Attributes:
        name: its name.
        type: its type as it was declared, ``""`` if none was.
        not_null: NULL is not allowed.
        primary_key: its place in the primary key from 1, 0 if it is not in it.
    """

    name: str
    type: str = ""
    not_null: bool = False
    primary_key: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; what is false or 0 is left out."""
        data: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.not_null:
            data["not_null"] = True
        if self.primary_key:
            data["primary_key"] = self.primary_key
        return data


class ForeignKey(NamedTuple):
    """``columns`` refer to the columns ``to`` of ``table``; () stands for its primary key."""

    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"columns": list(self.columns), "table": self.table, "to": list(self.to)}


class Table(NamedTuple):
    """A table or view.

    Attributes:
        name: its name, with its schema where it needs one (``"sales.orders"``).
        kind: which of the two.
        columns: in their order.
        foreign_keys: in their order.
        problem: why its columns are not known, ``""`` where they are.
        quoted_name: how a statement names it; ``""`` where that is its name in double quotes.
    """

    name: str
    kind: Literal["table", "view"] = "table"
    columns: tuple[Column, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    problem: str = ""
    quoted_name: str = ""

    @property
    def source(self) -> str:
        """How a statement names it."""
        return self.quoted_name or quoted(self.name)


def quoted(name: str) -> str:
    """``name`` as both engines take it in a statement, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'
