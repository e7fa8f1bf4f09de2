"""Episodes that InterCode recorded on MySQL give the same rows here, but for a listed remainder."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from toolenvs.database import Answerer, SqliteEngine, encoded
from toolenvs.grading.sql import compare

CASE = "MySQL compares texts without regard to case and trailing blanks"
TIE = "a tie at the LIMIT, which each engine breaks its own way"
DIGITS = "MySQL's AVG of integers has four digits"
NUMBERS = "a TEXT column that MySQL compares as a number"
DATES = "MySQL's column is a DATETIME, SQLite's a text"
ROWS = {
    "11": CASE,
    "28": CASE,
    "73": CASE,
    "105": NUMBERS,
    "130": CASE,
    "169": DIGITS,
    "176": DIGITS,
    "181": TIE,
    "184": CASE,
    "242": DIGITS,
    "285": TIE,
    "332": CASE,
    "340": TIE,
    "353": DATES,
    "361": CASE,
}
"""Episodes with a statement that runs on both and gives other rows, and why."""

RUNS = {
    "9": "CURDATE and TIMESTAMPDIFF are MySQL's",
    "17": "information_schema is MySQL's",
    "22": "information_schema is MySQL's",
    "51": "the recorded database held tables of another one",
    "217": "the recorded database held a column of another version",
    "241": "MySQL refuses a bare column beside an aggregate",
    "306": "CONCAT came with SQLite 3.44",
    "359": "CONCAT came with SQLite 3.44",
}
"""Episodes with a statement that runs on one side only, and why."""


@pytest.mark.shared
def test_recorded_rows_come_back(shared: Path) -> None:
    """No statement differs that is not listed, none is listed in vain."""
    data = shared / "data"
    answerer = Answerer({"sqlite": SqliteEngine({"spider": str(data / "sql/spider/database")})})
    episodes = json.loads((data / "traj/intercode/sql_gpt4.json").read_text())
    counts: Counter[str] = Counter()
    other_rows, other_runs = set(), set()
    for number, episode in episodes.items():
        for statement, observation in _queries(episode):
            ours = _ours(answerer, episode["db"], statement)
            failed = observation.startswith("Error")
            if failed or "error" in ours:
                counts["fails on both" if failed and "error" in ours else "runs on one"] += 1
                if failed != ("error" in ours):
                    other_runs.add(number)
            elif compare(_recorded(observation, ours["columns"]), ours).correct:
                counts["same"] += 1
            else:
                counts["other rows"] += 1
                other_rows.add(number)
    assert other_rows == set(ROWS)
    assert other_runs == set(RUNS)
    assert counts == {"same": 347, "other rows": 22, "fails on both": 324, "runs on one": 12}


def _queries(episode: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    turns = episode["turn_history"]
    for statement, observation in zip(turns["actions"], turns["observations"], strict=True):
        if re.match(r"\s*\(?\s*(select|with)\b", statement, re.IGNORECASE):
            yield statement, observation


def _ours(answerer: Answerer, database: str, statement: str) -> dict[str, Any]:
    place = {"engine": "sqlite", "place": f"spider/{database}/{database}.sqlite"}
    request = {"op": "query", "database": place, "sql": statement, "max_rows": 5000}
    answer: dict[str, Any] = json.loads(answerer.answer(json.dumps(request)))
    return answer


def _recorded(observation: str, columns: list[str]) -> dict[str, Any]:
    """The rows of a Python literal that may hold decimals, dates and bytes."""
    plain = re.sub(r"Decimal\('([^']*)'\)", r"('Decimal', '\1')", observation)
    plain = re.sub(r"datetime\.datetime\(([^)]*)\)", r"('datetime', \1)", plain)
    rows = [[encoded(_value(cell)) for cell in row] for row in ast.literal_eval(plain or "[]")]
    return {"columns": columns, "rows": rows, "row_count": len(rows), "cut": False}


def _value(cell: Any) -> Any:
    if isinstance(cell, tuple) and cell[0] == "Decimal":
        return Decimal(cell[1])
    if isinstance(cell, tuple):
        return datetime(*cell[1:])
    return cell.decode() if isinstance(cell, bytes) else cell
