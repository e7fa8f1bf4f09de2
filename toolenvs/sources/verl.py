"""Parquet rows of verl, SkyRL, DAPO and Search-R1: a chat prompt, and the ground truth beside it.

Layout: https://verl.readthedocs.io (``data_source``, ``prompt``, ``reward_model``, ``extra_info``);
SkyRL-SQL has ``db_id``, ``data`` and ``reward_spec``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolenvs.errors import DataError, UsageError
from toolenvs.sources._calls import ready_call
from toolenvs.sources._databases import DataFolder
from toolenvs.sources._jsonlines import Row, json_type
from toolenvs.sources._location import split_location
from toolenvs.sources._parquet import ParquetRows
from toolenvs.sources._rowsource import path_of
from toolenvs.sources._sqlsource import Databases, SqlSource, database_file, number_of_instances
from toolenvs.sources._sqltask import Question
from toolenvs.types import Database, Task

_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "spider": ("spider/database",),
    "synsql": ("SynSQL-2.5M/databases", "synsql/databases"),
    "bird": ("bird/train/train_databases", "bird/dev_databases", "bird/database"),
}
"""Where the databases of SkyRL-SQL's data sets are, below one root."""

# How a question stands among instructions that belong to another format of calls, by family.
_FRAMES: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "math_tir": (
        re.compile(  # DAPO
            r"\ASolve the following math problem step by step\..*?\n\n(?P<question>.*?)"
            r'(?:\n\nRemember to put your answer on its own line after "Answer:"\.)?\s*\Z',
            re.DOTALL,
        ),
        re.compile(  # verl's GSM8K
            r"\A(?P<question>.*?)\s*Let's think step by step and output the final answer[^\n]*\Z",
            re.DOTALL,
        ),
    ),
    "search": (
        re.compile(
            r"\AAnswer the given question\..*Question:\s*(?P<question>.*)\Z", re.DOTALL
        ),  # Search-R1
    ),
    "sql": (
        re.compile(  # SkyRL-SQL
            r".*\bQuestion:\s*(?P<question>.+?)\s*"
            r"(?:\n\s*(?:Instructions?:|Output [Ff]ormat:|Use <).*)?\Z",
            re.DOTALL,
        ),
    ),
}


class Verl(SqlSource):
    """The rows of a Parquet file, such as ``verl:data/train.parquet``.

    The prompt is the question alone: ``extra_info.question`` or ``question``, else what the last
    message of the user asks, without the instructions of known data sets, which tell of another
    format of calls. The answer is the ground truth (``reward_model`` or ``reward_spec``); of a list
    of right answers the first, with the others in ``grading["aliases"]`` (family ``search``).

    For the family ``sql`` rows are SkyRL-SQL's: ``data`` names the data set, ``db_id`` the
    database, which is at ``ROOT/spider/database/NAME/NAME.sqlite``,
    ``ROOT/SynSQL-2.5M/databases/...`` or ``ROOT/bird/train/train_databases/...``.

    A task's id is ``verl-``, the file's stem and the row's number. ``read_parquet_rows`` in
    ``toolenvs.sources._parquet`` gives the bare rows.

    Args:
        location: path of the file; for ``sql`` with ``,databases=ROOT`` (else the file's folder)
            and ``,instances=3``, as for ``spider``.
        family: what the rows are about.

    Raises:
        UsageError: pyarrow is not installed.
        DataError: As ``RowSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "math_tir") -> None:
        path, options = split_location(str(location), ("databases", "instances"), source="verl")
        self._family = family
        rows = path_of(path, source="verl")
        if family != "sql" and options:
            raise UsageError(f"verl: {next(iter(options))}= has no use in {family!r}.")
        self._folders: dict[str, DataFolder] = {}
        if family == "sql":
            root = path_of(options.get("databases", str(rows.parent)), source="verl")
            self._folders = _folders(root)
            self._root = root
        instances = number_of_instances(options)
        folders = self._folders.values()
        databases = Databases(*folders, instances=instances) if family == "sql" else None
        super().__init__("verl", rows, databases=databases, layout=ParquetRows)

    def _question(self, row: Row) -> Question:
        row.require("db_id", "prompt")
        name, data_set = row.text("db_id"), str(row.fields.get("data", "spider")).lower()
        folder = self._folders.get(data_set)
        if folder is None:
            tried = " or ".join(_FOLDERS.get(data_set, (f"{data_set} (an unknown data set)",)))
            raise DataError(
                f"{row.place}: there is no folder of databases {tried} in {self._root}; write "
                "verl:PATH,databases=ROOT."
            )
        return Question(
            id=_id(row),
            text=asked(row, self._family),
            gold=_truth(row)[0],
            database=Database(name=name, place=folder.place(database_file(name))),
            data={"data_source": data_set},
        )

    def _written(self, row: Row) -> Task:
        if self._family == "sql":
            return super()._written(row)
        answer, *aliases = _truth(row)
        return Task(
            id=_id(row),
            prompt=asked(row, self._family),
            answer=answer,
            family=self._family,
            grading={"aliases": aliases} if aliases else {},
            gold_calls=(ready_call(),) if self._family == "math_tir" else (),
            data={n: row.fields[n] for n in ("data_source", "ability") if row.fields.get(n)},
        )


def asked(row: Row, family: str) -> str:
    """The question of a row in verl's layout, as a task of ``family``.

    Raises:
        DataError: It has neither a question nor a message of the user.
    """
    extra = row.fields.get("extra_info")
    for fields in (extra if isinstance(extra, dict) else {}, row.fields):
        question = fields.get("question")
        if isinstance(question, str) and question.strip():
            return question.strip()
    row.require("prompt")
    message = _last_of_user(row)
    for frame in _FRAMES.get(family, ()):
        if (found := frame.match(message)) and found["question"].strip():
            return found["question"].strip()
    return message.strip()


def _last_of_user(row: Row) -> str:
    prompt = row.fields["prompt"]
    if isinstance(prompt, str):
        return prompt
    messages = prompt if isinstance(prompt, list) else []
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            return str(message.get("content") or "")
    raise row.wrong_type("prompt", "a chat with a message of the user")


def _truth(row: Row) -> list[str]:
    """The right answers of a row, at least one."""
    name = "reward_spec" if "reward_spec" in row.fields else "reward_model"
    row.require(name)
    held: Any = row.fields[name]
    truth = held.get("ground_truth") if isinstance(held, dict) else None
    if isinstance(truth, dict):
        truth = truth.get("target")
    listed = truth if isinstance(truth, list) else [truth]
    answers = [str(answer) for answer in listed if isinstance(answer, str | int | float)]
    if not answers:
        found = json_type(truth)
        raise DataError(f"{row.place}: {name}.ground_truth is {found}; it must be an answer.")
    return answers


def _id(row: Row) -> str:
    return f"verl-{row.stem.replace('_', '-')}-{row.number}"


def _folders(root: Path) -> dict[str, DataFolder]:
    found: dict[str, DataFolder] = {}
    for data_set, places in _FOLDERS.items():
        for place in places:
            if (root / place).is_dir():
                found.setdefault(data_set, DataFolder(data_set, root / place))
    return found
