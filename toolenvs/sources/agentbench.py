"""AgentBench's DBBench: questions about one table, and changes of it; the table is in the row.

Layout: Liu et al. 2023, arXiv:2308.03688; https://github.com/THUDM/AgentBench, ``data/dbbench``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolenvs.errors import DataError
from toolenvs.grading.sql import compare, read_policy
from toolenvs.sources._databases import Script, build, built_folder, folder_name, insert_statement
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._location import split_location
from toolenvs.sources._sqlgold import rows_of, with_plain_texts
from toolenvs.sources._sqlsource import Databases, SqlSource, number_of_instances
from toolenvs.sources._sqltask import Question
from toolenvs.types import Database

_CHANGES = ("INSERT", "UPDATE", "DELETE")
_TYPE = re.compile(r"[A-Za-z]+(?:\(\d+(?:,\s*\d+)?\))?")
_GRADING: Mapping[str, Any] = {"text_numbers": True, "order": "never", "decimals": 2}


class Agentbench(SqlSource):
    """The rows of a file of DBBench, such as ``agentbench:data/dbbench/dev.jsonl``.

    Each row's table becomes a SQLite database of its own, built once. Rows of the types INSERT,
    UPDATE and DELETE ask for a change, scored by the table afterwards. The others are scored by
    their ``label``, the values of the answer: as in AgentBench without order, numbers also where
    they are texts, to two decimals. The gold is the row's own query where it returns the label,
    else a query that writes the label out: many of the queries do not run as written, or return
    something else. A task with such a gold cannot tell a query from a guess that writes the answer
    out, and pays both; ``notes`` names each (14 of the 17 questions of ``dev``). The label
    ``none``, which stands for an empty result, is rejected.

    Args:
        location: path of the file, and ``,instances=3`` as for ``spider`` (tasks that read).
        family: taken by every source; these tasks are always ``sql``.

    Raises:
        DataError: As ``RowSource``; or a table is not laid out as AgentBench does.
    """

    def __init__(self, location: str | Path, *, family: str = "sql") -> None:
        path, options = split_location(str(location), ("instances",), source="agentbench")
        self._folder = built_folder()
        databases = Databases(self._folder, instances=number_of_instances(options))
        super().__init__("agentbench", path, databases=databases)

    def _question(self, row: Row) -> Question:
        row.require("description", "label", "table", "type")
        label, kinds = row.fields["label"], row.fields["type"]
        if not isinstance(label, list) or not label:
            raise row.wrong_type("label", "a list that is not empty")
        if not isinstance(kinds, list) or not kinds:
            raise row.wrong_type("type", "a list that is not empty")
        changes = kinds[0] in _CHANGES
        script = _script(row)
        place = build(script)
        gold = str(label[0]) if changes else self._gold(row, label, self._folder.file(place))
        stem = row.stem.replace("_", "-").removeprefix("dbbench-")
        return Question(
            id=f"agentbench-{stem}-{row.number}",
            text=row.text("description"),
            hint=row.fields.get("add_description") or "",
            gold=gold,
            database=Database(
                name=script.name, place=place, digest=script.digest, writable=changes
            ),
            grading={} if changes else _GRADING,
            data={"type": str(kinds[0]), "source": row.fields.get("source", "")},
        )

    def _gold(self, row: Row, label: Sequence[Any], file: Path) -> str:
        """The row's query if it returns the label, else one that writes the label out."""
        given = row.fields.get("sql")
        query = str(given.get("query", "")) if isinstance(given, dict) else ""
        wanted = {"columns": ["label"], "rows": [[str(value)] for value in label]}
        if query:
            found = rows_of(with_plain_texts(query, file), file)
            if compare(wanted, found, policy=read_policy(_GRADING)).correct:
                return query
        if wanted["rows"] == [["none"]]:
            return "SELECT NULL WHERE FALSE"  # no rows: the row will be rejected
        return "VALUES " + ", ".join(f"({_text(value)})" for value in label)


def _script(row: Row) -> Script:
    table = row.fields["table"]
    try:
        name, info = str(table["table_name"]), table["table_info"]
        columns = [(str(column["name"]), str(column["type"])) for column in info["columns"]]
        rows = [tuple(cells) for cells in info["rows"]]
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{row.place}: field 'table' must hold table_name and table_info with columns and rows."
        ) from error
    if not columns or any(len(cells) != len(columns) for cells in rows):
        raise DataError(f"{row.place}: a row of the table has not one value for each column.")
    heads = ", ".join(f"{_name(column)} {_type(kind)}" for column, kind in columns)
    lines = [f"CREATE TABLE {_name(name)} ({heads});"]
    lines += [insert_statement(_name(name), map(_text, cells)) for cells in rows]
    return Script(folder_name(name), "\n".join(lines))


def _type(kind: str) -> str:
    return kind if _TYPE.fullmatch(kind) else "TEXT"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("'", "''").replace("\0", "") + "'"
