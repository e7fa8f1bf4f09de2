"""What ``--rewards`` takes: a preset's name, a rubric as JSON, or a file of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolenvs.errors import DataError, UsageError

REWARDS_HELP = "Rubric: gated, outcome, sql, search, a JSON object, or a FILE.json of one"


def read_rewards(text: str) -> str | dict[str, Any]:
    """A preset's name as it is, anything else as the data of a rubric that can be built.

    Raises:
        UsageError: It is no preset and no JSON object, or the rubric cannot be built.
        DataError: The file cannot be read; the message names it.
    """
    from toolenvs.rubric import make_rubric

    rubric: str | dict[str, Any] = text
    if text.lstrip().startswith(("{", "[")):
        rubric = _parsed(text, "--rewards")
    elif text.endswith(".json") or Path(text).is_file():
        rubric = _from_file(Path(text))
    if rubric:
        make_rubric(rubric)
    return rubric


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: the file of --rewards does not exist.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the file of --rewards cannot be read: {error}") from error
    return _parsed(text, str(path))


def _parsed(text: str, place: str) -> dict[str, Any]:
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: this is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(
            f'{place}: a rubric is a JSON object such as {{"terms": [{{"reward": "answer"}}]}}, '
            f"not a {type(found).__name__}."
        )
    return found
