"""Where databases are: folders of a data set, and a cache for those that are built here.

A task names a database by its place, ``"spider/singer/singer.sqlite"``: the name of a data folder
and a path in it. Only a ``DataFolder`` knows where that is on this machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from toolenvs.content import BUILT
from toolenvs.errors import DataError

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class DataFolder(msgspec.Struct, frozen=True):
    """A folder of databases.

    Attributes:
        name: what it is called in places, the same on every machine.
        path: where it is on this machine.
    """

    name: str
    path: Path

    def place(self, relative: str) -> str:
        """The place of the file at ``relative``.

        Raises:
            DataError: It leads out of the folder.
        """
        path = PurePosixPath(relative)
        if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in relative:
            raise DataError(f"{relative!r} names no file inside {self.path}.")
        return f"{self.name}/{path}"

    def file(self, place: str) -> Path:
        """Where the file at a place of this folder is."""
        return self.path / place.removeprefix(f"{self.name}/")


def folder_name(text: str) -> str:
    """``text`` as the name of a data folder: letters, digits, dots and dashes."""
    return _NOT_IN_A_NAME.sub("-", text).strip("-._")[:64] or "data"


# -- databases built here -------------------------------------------------------------------------


class Script(msgspec.Struct, frozen=True):
    """A database as the SQL that makes it; its digest is that of the text, on every machine.

    Attributes:
        name: name of its file, without the ending.
        text: statements of SQLite.
    """

    name: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of name and text, hexadecimal."""
        return hashlib.sha256(f"{self.name}\n{self.text}".encode()).hexdigest()

    @property
    def place(self) -> str:
        """The place of the built file; its content follows from it."""
        return f"{BUILT}/{self.digest[:32]}/{self.name}.sqlite"


def insert_statement(table: str, values: Iterable[str]) -> str:
    """The statement that adds a row; the name and the values are written as SQL has them."""
    return f"INSERT INTO {table} VALUES ({', '.join(values)});"  # noqa: S608 - quoted by the caller


def built_folder() -> DataFolder:
    """The folder of built databases; it is made if it is not there.

    Raises:
        DataError: It cannot be made; the message says how to choose another.
    """
    root = os.environ.get("TOOLENVS_DATABASES", "")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    path = Path(root or Path(cache or Path.home() / ".cache") / "toolenvs" / "databases")
    try:
        _make_readable_folder(path)
    except OSError as error:
        raise DataError(
            f"{path}: no databases can be kept there: {error.strerror}. Name another folder by "
            "TOOLENVS_DATABASES."
        ) from error
    return DataFolder(BUILT, path)


def build(script: Script) -> str:
    """Make sure that the database of ``script`` is there, and return its place.

    Any number of processes may do so at once: a file appears whole or not at all.

    Raises:
        DataError: The script fails, or the file cannot be written.
    """
    file = built_folder().file(script.place)
    if not file.is_file():
        try:
            _make_readable_folder(file.parent)
            _write(script, file)
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"{file}: the database cannot be built: {error}.") from error
    return script.place


def keep_text(text: str, *, name: str, digest: str) -> Path:
    """Keep a script that a server is to run beside the built databases, and return its path.

    Raises:
        DataError: It cannot be written.
    """
    file = built_folder().path / digest[:32] / name
    if not file.is_file():
        try:
            _make_readable_folder(file.parent)
            with whole_file(file) as part:
                part.write_text(text, encoding="utf-8")
        except OSError as error:
            raise DataError(f"{file}: the script cannot be kept: {error}.") from error
    return file


def _make_readable_folder(path: Path) -> None:
    """Sandboxes run as users of their own, so others must be able to read, whatever the umask."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        with contextlib.suppress(FileNotFoundError):
            folder.chmod(0o755)


def _write(script: Script, file: Path) -> None:
    with whole_file(file) as part, contextlib.closing(sqlite3.connect(part)) as connection:
        # Without a journal a failed write leaves a broken file, which is thrown away here.
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
        connection.executescript(f"BEGIN;\n{script.text}\nCOMMIT;")


@contextlib.contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """A file to write to, which becomes ``file`` when all went well."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=file.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
