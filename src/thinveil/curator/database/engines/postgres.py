"""PostgreSQL: a server; arrays go in by COPY in the binary format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    ibis_backend,
    listed_types,
    plain_rows,
    told,
    type_of,
)
from thinveil.language.queries import Codes

_BINARY: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_PACK: Final = 500_000  # rows in one string, which must stay below a gigabyte
_MOST_KEYS: Final = 30  # PostgreSQL takes at most 32 columns in an index


class PostgreSQL(Engine):
    """A server that is reached over a socket."""

    name = "PostgreSQL"
    backend = "postgres"
    schemes = ("postgres", "postgresql")
    settings: ClassVar = {"TimeZone": "UTC", "DateStyle": "ISO", "jit": "off"}
    not_numbers = frozenset({"float", "decimal"})
    temporary = "pg_temp"

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Connect as psql would: sockets, services and options of the address work."""
        module = ibis_backend("postgres", "psycopg", "postgres")
        advice = "check host, port, user, password and the database's name, and that the server is"
        with told(f"{where}: no connection", f"{advice} running"):
            import psycopg

            return module.from_connection(psycopg.connect(f"postgresql://{rest}")), True

    def table(self, name: str | None, where: str) -> Any:
        """Split schema.table, unless there is a table whose name has the dot in it.

        From then on operators and functions are the server's own (CVE-2018-1058): others who may
        create some in a schema of the search path would have them run in our user's name.
        """
        schema, dot, inside = (name or "").partition(".")
        usual = self._backend.current_database
        if not dot or name in self.tables(usual):
            found = self.found(name, usual, where)
        else:
            found = self.found(inside, schema, where)
        self.run("SET search_path = pg_catalog")
        return found

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables of a schema, by operators of the server's own."""
        with self._connection.transaction():
            self._connection.execute("SET LOCAL search_path = pg_catalog")
            return super().tables(schema)

    def micros(self, moment: Any) -> Any:
        """Go by the database's own type, which is exact; Ibis takes it for whole seconds."""
        return (moment.epoch_seconds() * 10**6).cast("decimal(38, 0)").cast("int64")

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Copy all rows into a temporary table."""
        made = f"CREATE TEMPORARY TABLE {name} ({listed_types(columns)})"
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE pg_temp.{name}" if again else made)
            if any(type_of(values) == "TEXT" for values in columns.values()):
                with cursor.copy(f"COPY pg_temp.{name} FROM STDIN") as copy:
                    for row in plain_rows(columns):
                        copy.write_row(row)
            else:
                with cursor.copy(f"COPY pg_temp.{name} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.write(_packed(list(columns.values())))

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Create a temporary table, its index, and the statistics that choose the index."""
        with self._connection.transaction():
            super().keep(name, columns, _whole(statement, columns), index)
            if index:
                keys = ", ".join(index[:_MOST_KEYS])
                self.run(f"CREATE INDEX ON pg_temp.{name} ({keys})", f"ANALYZE pg_temp.{name}")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            return list(cursor.execute(statement).fetchall())

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch the rows packed into a few long strings of bytes."""
        columns = [f"v{each}" for each in range(width)]
        packed = " || ".join(f"int8send({each})" for each in columns)
        numbered = (
            f"SELECT *, row_number() OVER () / {_PACK} AS pack "
            f"FROM ({_whole(statement, columns)}) AS rows"
        )
        statement = f"SELECT string_agg({packed}, '') FROM ({numbered}) AS packs GROUP BY pack"
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            found = cursor.execute(statement).fetchall()
        data = b"".join(bytes(pack) for (pack,) in found)
        return np.frombuffer(data, ">i8").astype(np.int64).reshape(-1, width)

    def run(self, *statements: str) -> None:
        """Run statements together, or none of them."""
        with self._connection.transaction():
            super().run(*statements)


def _whole(statement: str, columns: Sequence[str]) -> str:
    """Return a statement whose columns have eight bytes: PostgreSQL's sums have any number."""
    chosen = ", ".join(f"{each}::bigint" for each in columns)
    return f"SELECT {chosen} FROM ({statement}) AS selected ({', '.join(columns)})"


def _packed(columns: Sequence[Any]) -> bytes:
    """Return rows of whole numbers as COPY wants them: how many, then size and value of each."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for place in range(len(columns)):
        fields += [(f"s{place}", ">i4"), (f"v{place}", ">i8")]
    body = np.empty(len(columns[0]), np.dtype(fields))
    body["fields"] = len(columns)
    for place, values in enumerate(columns):
        body[f"s{place}"] = 8
        body[f"v{place}"] = values
    return _BINARY + body.tobytes() + b"\xff\xff"
