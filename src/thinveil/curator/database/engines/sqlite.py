"""SQLite: a file; temporary tables live in a temporary file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    ibis_backend,
    listed_types,
    plain_rows,
)
from thinveil.errors import DataError


class SQLite(Engine):
    """A file whose columns hold anything, whatever their type says."""

    name = "SQLite"
    backend = "sqlite"
    schemes = ("sqlite",)
    here = True
    typed = False
    not_numbers: ClassVar[frozenset[str]] = frozenset()  # it stores NULL instead

    def __init__(self, backend: Any, *, owned: bool) -> None:
        super().__init__(backend, owned=owned)
        self._sent: set[str] = set()

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Open a file to read it."""
        module = ibis_backend("sqlite", "sqlite3")
        check_file(Path(rest), where)
        try:
            import sqlite3

            uri = Path(rest).resolve().as_uri() + "?mode=ro"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            return module.from_connection(connection), True
        except Exception as error:
            raise unopened(where, error) from None

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

    def upload(self, name: str, columns: Arrays) -> None:
        """Insert all rows by one prepared statement."""
        if name in self._sent:
            self._connection.execute(f"DELETE FROM temp.{name}")
        else:
            self._connection.execute(f"CREATE TEMPORARY TABLE {name} ({listed_types(columns)})")
            self._sent.add(name)
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO temp.{name} VALUES ({marks})"
        self._connection.executemany(insert, plain_rows(columns))
        self._connection.commit()

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table and its index."""
        self._connection.execute(f"CREATE TEMPORARY TABLE {name} AS {statement}")
        if index:
            self._connection.execute(f"CREATE INDEX temp.{name}_i ON {name} ({', '.join(index)})")
            self._connection.execute(f"ANALYZE temp.{name}")

    def drop(self, name: str) -> None:
        """Drop a temporary table."""
        self._sent.discard(name)
        self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")


def check_file(path: Path, where: str) -> None:
    """Refuse a path at which there is no file.

    Raises:
        DataError: There is none.
    """
    if not path.is_file():
        raise DataError(f"{where}: there is no such file: check the path")


def unopened(where: str, error: Exception) -> DataError:
    """Say that a file cannot be opened as a database."""
    return DataError(
        f"{where}: cannot be opened ({type(error).__name__}): see that it is such a database, "
        "that nobody else is writing to it, and that you may read it"
    )
