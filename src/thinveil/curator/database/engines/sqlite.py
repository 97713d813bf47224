"""SQLite: a file; temporary tables live in a temporary file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    everything,
    listed_types,
    needed,
    opening_file,
    plain_rows,
)
from thinveil.curator.database.words import Rows, cast, exp

_LISTED: Final = 10_000
"""The most rows of one list of values: of 32,766 and more, SQLite 3.40 makes no index to join them
by, as it takes their number for a negative one."""
_LONGEST: Final = 2**26
"""The most bytes of a value, so that no view makes a larger one; a row is as long at most."""


class SQLite(Engine):
    """A file whose columns hold anything, whatever their type says."""

    name = "SQLite"
    dialect = backend = "sqlite"
    schemes = ("sqlite",)
    here = True
    typed = False
    not_numbers: ClassVar[frozenset[str]] = frozenset()  # it stores NULL instead
    snapshot = "BEGIN"
    longest = 2_000_000  # in this process; a round figure

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> SQLite:
        """Open a file to read it."""
        needed("SQLite", "sqlite3")
        with opening_file(rest, where):
            import sqlite3

            uri = Path(rest).resolve().as_uri() + "?mode=ro"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            return cls(connection, owned=True)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables and views."""
        kinds = "type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        return [name for (name,) in self.rows(f"SELECT name FROM main.sqlite_master WHERE {kinds}")]

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return columns; of their types only that somebody called them Boolean matters."""
        cursor = self._connection.execute(f"{self.words(everything(rows))} LIMIT 0")
        names = [each[0] for each in cursor.description]
        declared = {}
        if isinstance(rows.source.this, exp.Identifier):
            asked = "SELECT name, type FROM pragma_table_info(?)"
            declared = dict(self._connection.execute(asked, [rows.source.name]).fetchall())
        flags = {name for name, kind in declared.items() if kind.upper() in ("BOOLEAN", "BOOL")}
        return [(name, self.kind("BOOLEAN" if name in flags else "TEXT")) for name in names]

    def words(self, query: Any) -> str:
        """Write a statement; a text with a NUL, which would end it, is written by its bytes."""
        written = super().words(query)
        return super().words(query.transform(_whole)) if "\0" in written else written

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Insert all rows by one prepared statement."""
        made = f"CREATE TEMPORARY TABLE {name} ({listed_types(columns, self.dialect)})"
        self.run(f"DELETE FROM temp.{name}" if again else made)
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO temp.{name} VALUES ({marks})"
        self._connection.executemany(insert, plain_rows(columns))
        self._connection.commit()

    def inline(self, columns: Arrays) -> str:
        """Write a small table; its columns have names of SQLite's own at first."""
        named = (f"column{place + 1} AS {self.quoted(each)}" for place, each in enumerate(columns))
        first = f"SELECT {', '.join(named)} FROM"
        rows = len(next(iter(columns.values())))
        lists = (
            self.tuples({name: each[start : start + _LISTED] for name, each in columns.items()})
            for start in range(0, rows, _LISTED)
        )
        return f"({' UNION ALL '.join(f'{first} (VALUES {each})' for each in lists)})"

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table and its index."""
        super().keep(name, columns, statement, index)
        if index:
            keys = ", ".join(index)
            self.run(f"CREATE INDEX temp.{name}_i ON {name} ({keys})", f"ANALYZE temp.{name}")


def _whole(node: Any) -> Any:
    """Return a text with a NUL by its bytes, and anything else as it is."""
    if not (isinstance(node, exp.Literal) and "\0" in node.name):
        return node
    return cast(exp.HexString(this=node.name.encode().hex()), "text")
