"""What a statement may do in SQLite, decided while SQLite compiles it.

SQLite asks about each thing that a statement would do, whatever its spelling: ``WITH ... DELETE``
is a deletion, ``VACUUM INTO`` attaches a file.

Source: SQLite, sqlite3_set_authorizer.
"""

from __future__ import annotations

import sqlite3

_READS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE))
_HISTORY = "sqlite_stmt"  # lists earlier statements: a read must not show that there were others
_ROWS = frozenset((sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE))
_NEVER = {
    sqlite3.SQLITE_ATTACH: "ATTACH or VACUUM",  # which attaches its copy
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE",
    sqlite3.SQLITE_DROP_VTABLE: "DROP of a virtual table",
}
_CHANGES = {
    sqlite3.SQLITE_INSERT: "INSERT",
    sqlite3.SQLITE_UPDATE: "UPDATE",
    sqlite3.SQLITE_DELETE: "DELETE",
    sqlite3.SQLITE_CREATE_TABLE: "CREATE TABLE",
    sqlite3.SQLITE_CREATE_VIEW: "CREATE VIEW",
    sqlite3.SQLITE_CREATE_INDEX: "CREATE INDEX",
    sqlite3.SQLITE_CREATE_TRIGGER: "CREATE TRIGGER",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "CREATE TEMP TABLE",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "CREATE TEMP VIEW",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "CREATE INDEX",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "CREATE TEMP TRIGGER",
    sqlite3.SQLITE_DROP_TABLE: "DROP TABLE",
    sqlite3.SQLITE_DROP_VIEW: "DROP VIEW",
    sqlite3.SQLITE_DROP_INDEX: "DROP INDEX",
    sqlite3.SQLITE_DROP_TRIGGER: "DROP TRIGGER",
    sqlite3.SQLITE_DROP_TEMP_TABLE: "DROP TABLE",
    sqlite3.SQLITE_DROP_TEMP_VIEW: "DROP VIEW",
    sqlite3.SQLITE_DROP_TEMP_INDEX: "DROP INDEX",
    sqlite3.SQLITE_DROP_TEMP_TRIGGER: "DROP TRIGGER",
    sqlite3.SQLITE_ALTER_TABLE: "ALTER TABLE",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
    sqlite3.SQLITE_REINDEX: "REINDEX",
    sqlite3.SQLITE_TRANSACTION: "BEGIN, COMMIT or ROLLBACK",
    sqlite3.SQLITE_SAVEPOINT: "SAVEPOINT",
}
_SCHEMA_TABLES = frozenset(("sqlite_master", "sqlite_temp_master"))  # DROP deletes from them
# A virtual table, such as ``json_each``, is declared when it is first read. Without the setting
# ``writable_schema`` no statement can do this by itself.
_DECLARATION = (sqlite3.SQLITE_UPDATE, "sqlite_master")
_FUNCTIONS_REFUSED = frozenset(("load_extension", "fts3_tokenizer"))

_PRAGMAS_OF_A_NAME = frozenset(
    (
        *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"),
        *("foreign_key_list", "foreign_key_check", "integrity_check", "quick_check"),
    )
)
_PRAGMAS_READ = _PRAGMAS_OF_A_NAME | frozenset(
    (
        *("application_id", "collation_list", "compile_options", "data_version", "encoding"),
        *("foreign_keys", "freelist_count", "function_list", "module_list", "page_count"),
        *("page_size", "pragma_list", "schema_version", "user_version"),
    )
)


class Permissions:
    """An authorizer that remembers what it refused.

    Args:
        writable: changes are allowed.
    """

    def __init__(self, *, writable: bool) -> None:
        self._writable = writable
        self.inner_tables: frozenset[str] = frozenset()
        """Tables in which virtual ones keep their content. Even to read an R*Tree, SQLite compiles
        changes of them; those of statements are refused by ``SQLITE_DBCONFIG_DEFENSIVE``."""
        self.refusal = ""
        """Why a statement was refused, one sentence; emptied by whoever runs the next one."""

    def __call__(
        self, action: int, one: str | None, two: str | None, schema: str | None, by: str | None
    ) -> int:
        """Answer SQLite; the meaning of ``one`` and ``two`` depends on the action."""
        if action == sqlite3.SQLITE_READ and one != _HISTORY:
            return sqlite3.SQLITE_OK
        why = self._why_not(action, one or "", two)
        if not why:
            return sqlite3.SQLITE_OK
        self.refusal = self.refusal or why
        return sqlite3.SQLITE_DENY

    def _why_not(self, action: int, one: str, two: str | None) -> str:
        if action in _READS or (action, one) == _DECLARATION:
            return ""
        if action in _ROWS and one in self.inner_tables:
            return ""
        if action == sqlite3.SQLITE_READ:
            return f"Reading {one} is refused."
        if action == sqlite3.SQLITE_FUNCTION:
            name = (two or "").lower()
            return f"The function {name} is refused." if name in _FUNCTIONS_REFUSED else ""
        if action == sqlite3.SQLITE_PRAGMA:
            return _why_no_pragma(one.lower(), two)
        if action in _NEVER:
            return f"{_NEVER[action]} is refused: there is no other database than this one."
        if action not in _CHANGES:
            return "The statement is refused."
        if self._writable:
            return ""
        change = "A change of the schema" if one in _SCHEMA_TABLES else _CHANGES[action]
        return f"{change} is refused: the database is read-only."


def _why_no_pragma(name: str, argument: str | None) -> str:
    allowed = _PRAGMAS_READ if argument is None else _PRAGMAS_OF_A_NAME
    if name in allowed:
        return ""
    if name in _PRAGMAS_READ:
        return f"PRAGMA {name} is refused with a value: settings cannot be changed."
    return f"PRAGMA {name} is refused."
