"""SQLite: a file; temporary tables live in a temporary file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    ibis_backend,
    listed_types,
    opening_file,
    plain_rows,
)

_LONGEST: Final = 2**26
"""The most bytes of a value, so that no view makes a larger one; a row is as long at most."""


class SQLite(Engine):
    """A file whose columns hold anything, whatever their type says."""

    name = "SQLite"
    backend = "sqlite"
    schemes = ("sqlite",)
    here = True
    typed = False
    not_numbers: ClassVar[frozenset[str]] = frozenset()  # it stores NULL instead

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Open a file to read it."""
        module = ibis_backend("sqlite", "sqlite3")
        with opening_file(rest, where):
            import sqlite3

            uri = Path(rest).resolve().as_uri() + "?mode=ro"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            return module.from_connection(connection), True

    def words(self, statement: str) -> str:
        """Write remainders by the operator: SQLite's function MOD() goes by floats."""
        import sqlglot
        from sqlglot import expressions

        if "MOD(" not in statement:
            return statement
        tree = sqlglot.parse_one(statement, read="sqlite")
        for node in reversed(list(tree.find_all(expressions.Mod))):  # inner ones first
            node.replace(expressions.Paren(this=node.copy()))
        return tree.sql("sqlite")

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Insert all rows by one prepared statement."""
        made = f"CREATE TEMPORARY TABLE {name} ({listed_types(columns)})"
        self.run(f"DELETE FROM temp.{name}" if again else made)
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO temp.{name} VALUES ({marks})"
        self._connection.executemany(insert, plain_rows(columns))
        self._connection.commit()

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table and its index."""
        super().keep(name, columns, statement, index)
        if index:
            keys = ", ".join(index)
            self.run(f"CREATE INDEX temp.{name}_i ON {name} ({keys})", f"ANALYZE temp.{name}")
