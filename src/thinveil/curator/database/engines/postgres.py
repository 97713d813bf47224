"""PostgreSQL: a server; arrays go in by COPY in the binary format."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    everything,
    listed_types,
    listing,
    needed,
    plain_rows,
    told,
    type_of,
)
from thinveil.curator.database.words import Rows, cast, exp
from thinveil.language.queries import Codes

_BINARY: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_PACK: Final = 500_000  # rows in one string, which must stay below a gigabyte
_LETTERS: Final = 'pg_catalog."C"'
"""The collation that compares letter by letter: others may take different texts for the same."""
_MOST_KEYS: Final = 30  # PostgreSQL takes at most 32 columns in an index


class PostgreSQL(Engine):
    """A server that is reached over a socket."""

    name = "PostgreSQL"
    dialect = backend = "postgres"
    schemes = ("postgres", "postgresql")
    settings: ClassVar = {"TimeZone": "UTC", "DateStyle": "ISO", "jit": "off"}
    not_numbers = frozenset({"float", "decimal"})
    temporary = "pg_temp"
    round_seconds = 0.02
    snapshot = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
    longest = 2_000_000  # of a gigabyte that it takes; a round figure

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> PostgreSQL:
        """Connect as psql would: sockets, services and options of the address work."""
        needed("PostgreSQL", "psycopg", "postgres")
        advice = "check host, port, user, password and the database's name, and that the server is"
        with told(f"{where}: no connection", f"{advice} running"):
            import psycopg

            # what it writes beside the errors it raises; a program that keeps a log gets it still
            logging.getLogger("psycopg").addHandler(logging.NullHandler())

            return cls(psycopg.connect(f"postgresql://{rest}"), owned=True)

    def table(self, name: str | None, where: str) -> Rows:
        """Return a table of the usual schema, or of another: schema.table.

        From then on operators and functions are the server's own (CVE-2018-1058): others who may
        create some in a schema of the search path would have them run in our user's name.
        """
        with listing(where):
            ((usual,),) = self.rows("SELECT pg_catalog.current_schema()")
            self.run("SET search_path = pg_catalog")
        return self.inside(name, usual, where)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables and views of a schema."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            found = cursor.execute(
                "SELECT c.relname::text FROM pg_catalog.pg_class AS c "
                "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
                "WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'f', 'p')",
                [schema],
            )
            return [name for (name,) in found]

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns; a type that lists its texts is one of texts."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(f"{self.words(everything(rows))} LIMIT 0")
            described = list(cursor.description)
            asked = "SELECT oid, typname::text, typtype::text FROM pg_type WHERE oid = ANY(%s)"
            types = {
                oid: "enum" if kind == "e" else name
                for oid, name, kind in cursor.execute(
                    asked, [[each.type_code for each in described]]
                )
            }
        found = []
        for each in described:
            words = types.get(each.type_code, "unknown")
            if words == "numeric" and each.scale is not None:
                words = f"numeric({each.precision}, {each.scale})"
            found.append((each.name, words if words.startswith("_") else self.kind(words)))
        return found

    def plain(self, value: Any) -> Any:
        """Return a text that is compared letter by letter, whatever the collation of its column."""
        return exp.Collate(this=cast(value, "text"), expression=exp.Var(this=_LETTERS))

    def is_nan(self, value: Any) -> Any:
        """Compare with the one that is equal to itself here."""
        return exp.paren(value.eq(cast(exp.Literal.string("NaN"), "double")))

    def micros(self, moment: Any) -> Any:
        """Go by the database's own type, which is exact."""
        seconds = exp.Extract(this=exp.Var(this="epoch"), expression=moment)
        return cast(cast(exp.paren(seconds * 10**6), "decimal(38, 0)"), "bigint")

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Copy all rows into a temporary table."""
        made = f"CREATE TEMPORARY TABLE {name} ({listed_types(columns, self.dialect)})"
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

    def begin(self) -> bool:
        """Begin a transaction, unless somebody else has begun one."""
        from psycopg.pq import TransactionStatus

        free = bool(self._connection.info.transaction_status == TransactionStatus.IDLE)
        if free:  # psycopg sends BEGIN by itself, unless that is turned off
            first = "BEGIN" if self._connection.autocommit else "SET TRANSACTION"
            self._connection.execute(f"{first} {self.snapshot}")
        self._began = free
        return free

    def end(self) -> None:
        """End the transaction that was begun here."""
        if self._began:
            self._connection.rollback()

    _began = False

    def no_right(self, error: Exception) -> bool:
        """Tell by the codes for a missing right, and for a session or server that only reads."""
        return getattr(error, "sqlstate", None) in ("42501", "25006")

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
