"""Read what the task's database holds: tables, columns, keys, a few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from toolenvs.cut import cut
from toolenvs.errors import UsageError
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools import _sql
from toolenvs.types import Task, ToolResult

_MAX_BYTES = 256 << 10


class SqlSchema:
    """Tables and views with their columns, keys, number of rows and some sample rows.

    Args:
        sample_rows: rows shown of each table, 0 for none.
        limit_chars: most characters that the agent reads.
        timeout_s: seconds for one of the statements behind it.

    Raises:
        UsageError: A number is out of range.
    """

    name = "sql_schema"
    description = "Show tables, columns, keys and sample rows of the database."
    needs = "sandbox:sql"
    kind: ToolKind = "reads"
    version = "1"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        tables: Annotated[
            list[str], msgspec.Meta(description="Names of tables; all tables if left out.")
        ] = []

    def __init__(
        self, *, sample_rows: int = 3, limit_chars: int = 8000, timeout_s: float = 10.0
    ) -> None:
        if sample_rows < 0 or limit_chars < 100 or timeout_s <= 0:
            raise UsageError(
                f"sample_rows={sample_rows}, limit_chars={limit_chars}, timeout_s={timeout_s}: "
                "give at least 0, at least 100, and more than 0."
            )
        self.sample_rows = sample_rows
        self.limit_chars = limit_chars
        self.timeout_s = timeout_s

    def bound(self, task: Task) -> SqlSchema:
        """The tool for the engine of the task's database."""
        return _sql.bound(self, task)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        database = context.task.database
        writable = database is not None and database.writable
        request = {
            "op": "schema",
            "database": _sql.target(database, writable=writable),
            "tables": args.tables,
            "sample_rows": self.sample_rows,
            "max_bytes": _MAX_BYTES,
            "timeout_s": self.timeout_s,
        }
        answer = await _sql.ask(context, request)
        if "error" in answer:
            return _sql.refused(answer)
        tables = answer["tables"]
        assert database is not None
        shown = [_table(table, database.engine) for table in tables]
        whole = "\n\n".join(shown) or "The database has no tables."
        if answer["left_out"]:
            more = answer["left_out_count"] - len(answer["left_out"])
            names = ", ".join(_table_name(name, database.engine) for name in answer["left_out"])
            whole += f"\n\nNot shown: {names}{f' and {more} more' if more else ''}."
        text, was_cut = cut(whole, self.limit_chars)
        described = [table["name"] for table in tables]
        return ToolResult(text, data={"tables": described}, truncated=was_cut or answer["cut"])


def _table(table: Mapping[str, Any], engine: str) -> str:
    count = table.get("row_count")
    more = " or more" if table.get("more_rows") else ""
    size = "" if count is None else f", {count}{more} row{'' if count == 1 else 's'}"
    lines = [f"{_table_name(table['name'], engine)} ({table['kind']}{size})"]
    lines += [f"  {_column(column, engine)}" for column in table["columns"]]
    if table.get("columns_left_out"):
        lines.append(f"  ... ({table['columns_left_out']} more columns)")
    for key in table["foreign_keys"]:
        there = f" ({_names(key['to'], engine)})" if key["to"] else ""
        other = _table_name(key["table"], engine)
        lines.append(f"  foreign key ({_names(key['columns'], engine)}) -> {other}{there}")
    if table.get("problem"):
        lines.append(f"  it cannot be read: {_sql.cell_text(table['problem'])}")
    sample = table.get("sample")
    if sample:
        lines.append(f"  first {len(sample)} row{'' if len(sample) == 1 else 's'}:")
        lines += [f"    {_sql.row_text(row)}" for row in sample]
    return "\n".join(lines)


def _column(column: Mapping[str, Any], engine: str) -> str:
    words = [_sql.name_text(column["name"], engine), _sql.cell_text(column["type"])]
    words += ["not null"] if column.get("not_null") else []
    words += ["primary key"] if column.get("primary_key") else []
    return " ".join(filter(None, words))


def _names(names: Sequence[str], engine: str) -> str:
    return ", ".join(_sql.name_text(name, engine) for name in names)


def _table_name(name: str, engine: str) -> str:
    """Its name; in PostgreSQL the schema stands before it, unless that is ``public``."""
    parts = name.split(".") if engine == "postgres" else [name]
    return ".".join(_sql.name_text(part, engine) for part in parts)
