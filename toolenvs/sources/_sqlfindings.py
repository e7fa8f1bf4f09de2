"""What was found of golds, kept in the user's cache: a file that was loaded before loads faster.

Only golds that are fit are kept, and only where all of it was examined: what else was found may
depend on how fast the machine was. What is kept holds for the same gold, policy, content of the
database, rules and libraries; a file that cannot be read or written is none.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.content import content_digest
from toolenvs.grading.sql_fitness import NOT_EXAMINED, GoldFinding
from toolenvs.grading.sql_policy import read_policy
from toolenvs.images import cache_folder
from toolenvs.sources._databases import whole_file
from toolenvs.sources._sqlgold import examine


class _Kept(msgspec.Struct):
    """What a file holds: the digest of the rules, and the notes of each fit gold by its key."""

    rules: str
    notes: dict[str, tuple[str, ...]]


class KeptFindings:
    """The findings of one file of questions.

    Args:
        rows: the file.
    """

    def __init__(self, rows: Path) -> None:
        self._name = hashlib.sha256(str(rows.absolute()).encode()).hexdigest()[:32]
        self._known = self._read()
        self._used: dict[str, tuple[str, ...]] = {}

    def examine(self, gold: str, database: Path, *, grading: Mapping[str, Any]) -> GoldFinding:
        """As ``_sqlgold.examine``, without running what is known."""
        policy = msgspec.to_builtins(read_policy(grading))
        asked = json.dumps([gold, content_digest([database]), policy], sort_keys=True)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key in self._known:
            found = GoldFinding(notes=self._known[key])
        else:
            found = examine(gold, database, grading=grading)
        if not found.unusable and not any(NOT_EXAMINED in note for note in found.notes):
            self._used[key] = found.notes
        return found

    def save(self) -> None:
        """Keep what was found, unless all of it was known."""
        if self._used == self._known:
            return
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home
            file = self._file()
            file.parent.mkdir(exist_ok=True)
            with whole_file(file) as part:
                part.write_bytes(msgspec.json.encode(_Kept(_rules(), self._used)))

    def _read(self) -> dict[str, tuple[str, ...]]:
        try:
            kept = msgspec.json.decode(self._file().read_bytes(), type=_Kept)
        except (OSError, RuntimeError, ValueError):
            return {}
        return kept.notes if kept.rules == _rules() else {}

    def _file(self) -> Path:
        return cache_folder() / "golds" / f"{self._name}.json"


@functools.cache
def _rules() -> str:
    """The digest of all that decides what is found of a gold."""
    from toolenvs import database, grading

    folders = [Path(package.__path__[0]) for package in (database, grading)]
    files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    files += sorted(Path(__file__).parent.glob("_sql*.py"))
    digest = hashlib.sha256(f"{sqlite3.sqlite_version} {version('sqlglot')}".encode())
    for file in files:
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()
