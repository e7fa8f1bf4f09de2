"""A row that is laid out as a task: the fields of ``Task`` by name."""

from __future__ import annotations

from typing import Any

from toolenvs.errors import DataError, UsageError
from toolenvs.moments import epoch_ns
from toolenvs.sources._jsonlines import Row, json_type
from toolenvs.sources._layout import why_not_laid_out
from toolenvs.types import Task

_FIELDS = frozenset({"id", "prompt", "answer", "files", "grading", "gold_calls", "data", "now"})


def read_task(row: Row, family: str) -> Task:
    """Read the layout that ``Jsonl`` documents.

    Raises:
        DataError: A field is missing or of the wrong type.
    """
    row.require("prompt", "answer")
    if not isinstance(row.fields["prompt"], str):
        raise row.wrong_type("prompt", "a text")
    others = {key: value for key, value in row.fields.items() if key not in _FIELDS}
    return Task(
        id=_id(row),
        prompt=row.fields["prompt"],
        answer=row.text("answer"),
        family=family,
        files=_files(row),
        grading=_object(row, "grading"),
        gold_calls=_gold_calls(row),
        data={**others, **_object(row, "data")},
        now=_now(row),
    )


def _id(row: Row) -> str:
    if row.fields.get("id") is None:
        return row.default_id
    task_id = row.text("id")
    if not task_id.strip():
        raise DataError(f"{row.place}: field 'id' is empty; give the row an id or leave it out.")
    return task_id


def _object(row: Row, name: str) -> dict[str, Any]:
    value = row.fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise row.wrong_type(name, "an object")
    return value


def _files(row: Row) -> dict[str, str]:
    files = _object(row, "files")
    for name, text in files.items():
        if not isinstance(text, str):
            raise DataError(f"{row.place}: file {name!r} is {json_type(text)}; it must be a text.")
    if why := why_not_laid_out(files):
        raise DataError(f"{row.place}: {why}")
    return files


def _now(row: Row) -> str:
    moment = row.fields.get("now")
    if moment is None:
        return ""
    if not isinstance(moment, str):
        raise row.wrong_type("now", "a text")
    try:
        epoch_ns(moment)
    except UsageError as error:
        raise DataError(f"{row.place}: {error}") from None
    return moment


def _gold_calls(row: Row) -> tuple[dict[str, Any], ...]:
    calls = row.fields.get("gold_calls")
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise row.wrong_type("gold_calls", "a list")
    for number, call in enumerate(calls):
        if (
            not isinstance(call, dict)
            or not isinstance(call.get("name"), str)
            or not isinstance(call.get("arguments"), dict)
        ):
            raise DataError(
                f"{row.place}: gold_calls[{number}] must be an object with a text 'name' and an "
                "object 'arguments'."
            )
    return tuple(calls)
