"""What differs between databases: how arrays get in, how temporary tables are made.

Everything else is written once, as Ibis expressions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from thinveil.language.queries import Codes

Arrays = Mapping[str, Codes | Sequence[str]]
"""The columns of a small table to be sent: codes or texts."""


class Engine(Protocol):
    """One kind of database. Conforms: `DuckDB`, `SQLite`, `PostgreSQL`, `Spark`.

    Names of tables and columns given here are the session's own and need no quoting.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """What a session must have set, by name."""
        ...

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ...

    def upload(self, name: str, columns: Arrays) -> None:
        """Send a small table; one of the same name and columns is replaced."""
        ...

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Store whole numbers that a statement selects in a temporary table, to be looked up."""
        ...

    def drop(self, name: str) -> None:
        """Take a temporary table away."""
        ...

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        ...

    def codes(self, statement: str, width: int) -> Codes:
        """Return whole numbers that a statement selects, a row an array of this width."""
        ...

    def close(self) -> None:
        """Leave the database."""
        ...


class DuckDB:
    """In this process; larger tables than memory are spilled to a temporary folder."""

    name = "DuckDB"
    settings: ClassVar = {"TimeZone": "UTC", "preserve_insertion_order": "false"}  # saves memory

    def __init__(self, backend: Any) -> None:
        self._connection = backend.con

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ((before,),) = self.rows(f"SELECT current_setting('{name}')")
        self._connection.execute(f"SET {name} = '{value}'")
        return str(before)

    def upload(self, name: str, columns: Arrays) -> None:
        """Show DuckDB the arrays where they are."""
        self._connection.register(name, _arrow(columns))

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table; DuckDB needs no index on it."""
        self._connection.execute(f"CREATE TEMPORARY TABLE {name} AS {statement}")

    def drop(self, name: str) -> None:
        """Drop a temporary table or forget an array."""
        self._connection.unregister(name)
        self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        return list(self._connection.execute(statement).fetchall())

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        found = self._connection.execute(statement).fetchnumpy()
        return np.column_stack([np.asarray(each, np.int64) for each in found.values()])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class SQLite:
    """A file; temporary tables live in a temporary file of their own."""

    name = "SQLite"
    settings: ClassVar[dict[str, str]] = {}

    def __init__(self, backend: Any) -> None:
        self._connection = backend.con
        self._sent: set[str] = set()

    def change(self, name: str, value: str) -> str:
        """There is nothing to be set."""
        return value

    def upload(self, name: str, columns: Arrays) -> None:
        """Insert all rows by one prepared statement."""
        if name in self._sent:
            self._connection.execute(f"DELETE FROM temp.{name}")
        else:
            listed = ", ".join(f"{each} {type_of(value)}" for each, value in columns.items())
            self._connection.execute(f"CREATE TEMPORARY TABLE {name} ({listed})")
            self._sent.add(name)
        marks = ", ".join("?" * len(columns))
        rows = zip(*(_plain(values) for values in columns.values()), strict=True)
        self._connection.executemany(f"INSERT INTO temp.{name} VALUES ({marks})", rows)
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

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        return list(self._connection.execute(statement).fetchall())

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch all rows."""
        return np.array(self.rows(statement), np.int64).reshape(-1, width)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


_BINARY: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_PACK: Final = 500_000  # rows in one string, which must stay below a gigabyte
_MOST_KEYS: Final = 30  # PostgreSQL takes at most 32 columns in an index


class PostgreSQL:
    """A server; arrays go in by COPY in the binary format."""

    name = "PostgreSQL"
    settings: ClassVar = {"TimeZone": "UTC", "DateStyle": "ISO", "jit": "off"}

    def __init__(self, backend: Any) -> None:
        self._connection = backend.con
        self._sent: set[str] = set()

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ((before,),) = self.rows(f"SELECT current_setting('{name}')")
        self._run(f"SET {name} = '{value}'")
        return str(before)

    def upload(self, name: str, columns: Arrays) -> None:
        """Copy all rows into a temporary table."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            if name in self._sent:
                cursor.execute(f"TRUNCATE pg_temp.{name}")
            else:
                listed = ", ".join(f"{each} {type_of(value)}" for each, value in columns.items())
                cursor.execute(f"CREATE TEMPORARY TABLE {name} ({listed})")
            if any(type_of(values) == "TEXT" for values in columns.values()):
                with cursor.copy(f"COPY pg_temp.{name} FROM STDIN") as copy:
                    for row in zip(*(_plain(each) for each in columns.values()), strict=True):
                        copy.write_row(row)
            else:
                with cursor.copy(f"COPY pg_temp.{name} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.write(_packed(list(columns.values())))
        self._sent.add(name)

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table, its index, and the statistics that choose the index."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMPORARY TABLE {name} AS {_whole(statement, columns)}")
            if index:
                keys = ", ".join(index[:_MOST_KEYS])
                cursor.execute(f"CREATE INDEX ON pg_temp.{name} ({keys})")
                cursor.execute(f"ANALYZE pg_temp.{name}")

    def drop(self, name: str) -> None:
        """Drop a temporary table."""
        self._sent.discard(name)
        self._run(f"DROP TABLE IF EXISTS pg_temp.{name}")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            return list(cursor.execute(statement).fetchall())

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch the rows packed into a few long strings of bytes."""
        columns = [f"v{each}" for each in range(width)]
        statement = _whole(statement, columns)
        packed = " || ".join(f"int8send({each})" for each in columns)
        numbered = f"SELECT *, row_number() OVER () / {_PACK} AS pack FROM ({statement}) AS rows"
        statement = f"SELECT string_agg({packed}, '') FROM ({numbered}) AS packs GROUP BY pack"
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            found = cursor.execute(statement).fetchall()
        data = b"".join(bytes(pack) for (pack,) in found)
        return np.frombuffer(data, ">i8").astype(np.int64).reshape(-1, width)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _run(self, statement: str) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(statement)


class Spark:
    """A cluster, or threads of this machine; temporary tables are checkpoints with a name."""

    name = "Spark"
    settings: ClassVar = {"spark.sql.session.timeZone": "UTC"}

    def __init__(self, backend: Any) -> None:
        self._session = backend._session
        self._kept: dict[str, Any] = {}

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        before = self._session.conf.get(name)
        self._session.conf.set(name, value)
        return str(before)

    def upload(self, name: str, columns: Arrays) -> None:
        """Make a data frame of the arrays and name it."""
        with _open_sockets():
            self._session.createDataFrame(_arrow(columns)).createOrReplaceTempView(name)

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Compute a data frame once and name it."""
        frame = self._session.sql(statement).localCheckpoint(eager=True)
        frame.createOrReplaceTempView(name)
        self._kept[name] = frame

    def drop(self, name: str) -> None:
        """Forget a data frame."""
        self._session.catalog.dropTempView(name)
        if (frame := self._kept.pop(name, None)) is not None:
            frame.unpersist()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        with _open_sockets():
            return [tuple(row) for row in self._session.sql(statement).collect()]

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        with _open_sockets():
            found = self._session.sql(statement).toArrow()
        return np.column_stack([each.to_numpy().astype(np.int64) for each in found.columns])

    def close(self) -> None:
        """Stop the session."""
        with _open_sockets():
            self._session.stop()


@contextmanager
def _open_sockets() -> Iterator[None]:
    """Keep quiet about sockets that PySpark leaves for Python to close."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


ENGINES: Final[Mapping[str, type[Engine]]] = {
    "duckdb": DuckDB,
    "sqlite": SQLite,
    "postgres": PostgreSQL,
    "pyspark": Spark,
}


def type_of(values: Codes | Sequence[str]) -> str:
    """Return the SQL type of a column to be sent."""
    return "BIGINT" if isinstance(values, np.ndarray) else "TEXT"


def _plain(values: Codes | Sequence[str]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _arrow(columns: Arrays) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values, pa.int64() if type_of(values) == "BIGINT" else pa.string())
            for name, values in columns.items()
        }
    )


def _whole(statement: str, columns: Sequence[str]) -> str:
    """Return a statement whose columns have eight bytes: PostgreSQL's sums have any number."""
    chosen = ", ".join(f"{each}::bigint" for each in columns)
    return f"SELECT {chosen} FROM ({statement}) AS selected ({', '.join(columns)})"


def _row(width: int) -> np.dtype[np.void]:
    """Return how PostgreSQL writes a row of whole numbers: their number, then size and value."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for each in range(width):
        fields += [(f"s{each}", ">i4"), (f"v{each}", ">i8")]
    return np.dtype(fields)


def _packed(columns: Sequence[Any]) -> bytes:
    body = np.empty(len(columns[0]), _row(len(columns)))
    body["fields"] = len(columns)
    for place, values in enumerate(columns):
        body[f"s{place}"] = 8
        body[f"v{place}"] = values
    return _BINARY + body.tobytes() + b"\xff\xff"
