"""Cloud warehouses by a connection that somebody has opened: Trino, BigQuery, Snowflake, others.

Nothing is stored there. Statements are tested: they are kept in each dialect and run in DuckDB
after sqlglot has translated them. Connections are not: no warehouse was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, ClassVar, Final

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    listing,
    no_table,
    type_of,
)
from thinveil.curator.database.session import Session, opening
from thinveil.curator.database.table import DatabaseTable
from thinveil.curator.database.words import (
    Rows,
    call,
    cast,
    double,
    equal,
    exp,
    number,
    rounded,
    text,
)
from thinveil.curator.tables.files import reading_of
from thinveil.errors import UsageError
from thinveil.language.schema import Schema

_EPOCH: Final = "1970-01-01 00:00:00"
_PARTS: Final = ("numeric_precision", "numeric_scale")


class Warehouse(Engine):
    """What warehouses have in common: a connection as Python's DB-API 2.0 (PEP 249) has it."""

    schemes = ()
    round_seconds = 1.0  # a round figure: a statement there is planned, queued and billed
    begins: ClassVar[tuple[str, ...]] = ()
    """What is sent first, so that dates and times are written and counted alike everywhere."""
    described_by: ClassVar[tuple[str, ...]] = ("data_type",)
    """The columns of the catalogue that say the type of a column."""
    kinds: ClassVar[Mapping[str, str]] = {}
    """Types that are called otherwise than what they are, in sqlglot's words."""
    casts: ClassVar[Mapping[str, str]] = {}
    """Types that values are turned into, where sqlglot writes others than are meant."""

    def table(self, name: str | None, where: str) -> Rows:
        """Return a table by its schema and name; a catalogue or project may stand before them."""
        *above, schema, table = (name or "").split(".") if "." in (name or "") else ("", "")
        if not (schema and table) or len(above) > 1:
            raise UsageError(f"{where}: name the table as schema.table or catalogue.schema.table")
        with listing(where):
            found = self.rows(self._catalogue([*above, schema, table]))
        if not found:
            raise no_table([], name, where)
        source = exp.table_(table, db=schema, catalog=above[0] if above else None, quoted=True)
        kinds = tuple(self.kind(self._sized(*each[1:])) for each in found)
        return Rows(source, tuple(str(each[0]) for each in found), kinds)

    def _catalogue(self, name: list[str]) -> str:
        """Return the statement that describes the columns of a table."""
        *above, schema, table = name
        source = exp.to_table(".".join(["information_schema", "columns"]))
        if above:
            source.set("catalog", exp.to_identifier(above[0], quoted=True))
        asked = exp.select("column_name", *self.described_by).from_(source)
        asked = asked.where(exp.column("table_name").eq(text(table)))
        asked = asked.where(exp.column("table_schema").eq(text(schema)))
        return self.words(asked.order_by("ordinal_position"))

    def _sized(self, name: str, *parts: int | None) -> str:
        """Return a type with its size, where that stands beside its name."""
        sized = name.upper() in ("NUMBER", "NUMERIC", "DECIMAL") and None not in parts
        return f"{name}({', '.join(map(str, parts))})" if parts and sized else name

    def kind(self, words: str) -> Any:
        """Read the name of a type; one that is to be refused stays a text."""
        usual = self.kinds.get(words.upper())
        if usual is None:
            return super().kind(words)
        return words if usual == words.upper() else _type(usual)

    def begin(self) -> bool:
        """Send what comes first; no two statements are sure to see one state."""
        self.run(*self.begins)
        return False

    def end(self) -> None:
        """Do nothing: nothing was begun."""

    def change(self, name: str, value: str) -> str:
        """Change nothing: `begins` does, once and for all."""
        return value

    def words(self, query: Any) -> str:
        """Write a statement, with the types that are meant."""
        return str(query.transform(self._meant).sql(self.dialect))

    def _meant(self, node: Any) -> Any:
        if isinstance(node, exp.DataType) and node.this.name in self.casts:
            own = exp.DataType.Type.USERDEFINED  # or sqlglot would choose the words
            return exp.DataType(this=own, kind=self.casts[node.this.name])
        return node

    def plain(self, value: Any) -> Any:
        """Return a text as it is."""
        return value

    def micros(self, moment: Any) -> Any:
        """Count from the year 1970."""
        return self.between(cast(text(_EPOCH), "timestamp"), moment)

    def clock(self, time: Any) -> Any:
        """Count from midnight."""
        return self.between(cast(text("00:00:00"), "time"), time)

    def between(self, start: Any, moment: Any) -> Any:
        """Return microseconds from one time to another."""
        return _difference(start, moment, "MICROSECOND")

    def run(self, *statements: str) -> None:
        """Run statements that select nothing."""
        with closing(self._connection.cursor()) as cursor:
            for each in statements:
                cursor.execute(each)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)
            return [tuple(each) for each in cursor.fetchall()]


class Trino(Warehouse):
    """Trino. Times have milliseconds unless their type says more, and so have differences."""

    name, dialect = "Trino", "trino"
    casts: ClassVar = {"TIMESTAMP": "TIMESTAMP(6)", "TIMESTAMP_NS": "TIMESTAMP(9)"}

    def kind(self, words: str) -> Any:
        """Take times by how fine they are.

        Those with a time zone are refused as they are, and so are those of the day that have more
        than milliseconds, which no difference tells.
        """
        if " with time zone" in words:
            return words
        if words.startswith("timestamp"):
            fine = words in (f"timestamp({each})" for each in range(7))
            return _type("timestamp" if fine else "timestamp_ns")
        millis = ("time", *(f"time({each})" for each in range(4)))
        return words if words.startswith("time") and words not in millis else super().kind(words)

    def micros(self, moment: Any) -> Any:
        """Count whole seconds, then the rest as a float near zero, where it is exact."""
        whole = exp.TimestampTrunc(this=moment, unit=exp.Var(this="SECOND"))
        seconds = _difference(cast(text(_EPOCH), "timestamp"), whole, "SECOND")
        near = call("DATE_ADD", text("second"), exp.Neg(this=seconds), moment)
        rest = rounded(call("TO_UNIXTIME", near) * double(10**6))
        return exp.paren(seconds * 10**6 + cast(rest, "bigint"))

    def clock(self, time: Any) -> Any:
        """Count milliseconds from midnight."""
        return exp.paren(_difference(cast(text("00:00:00"), "time"), time, "MILLISECOND") * 1000)


class BigQuery(Warehouse):
    """BigQuery. Its driver takes two percent signs for one."""

    name, dialect = "BigQuery", "bigquery"
    any_year = False
    kinds: ClassVar = {"NUMERIC": "decimal(38, 9)", "BIGNUMERIC": "decimal(76, 38)"}

    def _catalogue(self, name: list[str]) -> str:
        *above, table = name
        dataset = ".".join(map(self.quoted, above))
        asked = exp.select("column_name", "data_type").from_(exp.to_table("columns"))
        asked = asked.where(exp.column("table_name").eq(text(table))).order_by("ordinal_position")
        return self.words(asked).replace(
            "FROM columns", f"FROM {dataset}.INFORMATION_SCHEMA.COLUMNS"
        )

    def plain(self, value: Any) -> Any:
        """Take the collation away."""
        return call("COLLATE", value, text(""))

    def between(self, start: Any, moment: Any) -> Any:
        """Count between two times without a time zone, or two of the day."""
        kind = exp.TimeDiff if start.to.this.name == "TIME" else exp.DatetimeDiff
        return kind(this=moment, expression=start, unit=exp.Var(this="MICROSECOND"))

    def inline(self, columns: Arrays) -> str:
        """Write a small table as a list of records: there are no VALUES behind FROM."""
        kinds = {"BIGINT": "INT64", "DOUBLE": "FLOAT64", "TEXT": "STRING"}
        fields = (f"{self.quoted(name)} {kinds[type_of(each)]}" for name, each in columns.items())
        rows = self.tuples(columns)
        return f"(SELECT * FROM UNNEST([STRUCT<{', '.join(fields)}>{rows}]))"

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        return super().rows(statement.replace("%", "%%"))


class Snowflake(Warehouse):
    """Snowflake. Floats have eight bytes, whatever they are called; a NaN equals itself."""

    name, dialect = "Snowflake", "snowflake"
    begins = ("ALTER SESSION SET TIMEZONE = 'UTC', DATE_OUTPUT_FORMAT = 'YYYY-MM-DD'",)
    described_by = ("data_type", *_PARTS)
    kinds: ClassVar = {
        **dict.fromkeys(("FLOAT", "FLOAT4", "FLOAT8", "REAL", "DOUBLE PRECISION"), "double"),
        "TIMESTAMP_NTZ": "timestamp_ns",
        "TIME": "time_ns",
        **{each: each for each in ("TIMESTAMP_TZ", "TIMESTAMP_LTZ")},
    }
    casts: ClassVar = {
        "TIMESTAMP": "TIMESTAMP_NTZ(6)",
        "TIMESTAMP_NS": "TIMESTAMP_NTZ(9)",
        "TIME": "TIME(6)",
        "TIME_NS": "TIME(9)",
    }

    def _sized(self, name: str, *parts: int | None) -> str:
        """Take numbers without decimals, of which none is too large to compare, as whole ones."""
        return "BIGINT" if name == "NUMBER" and parts[1] == 0 else super()._sized(name, *parts)

    def is_nan(self, value: Any) -> Any:
        """Compare with the one that is equal to itself here."""
        return equal(value, cast(text("NaN"), "double"))

    def plain(self, value: Any) -> Any:
        """Compare by bytes."""
        return call("COLLATE", value, text("utf8"))


class Databricks(Warehouse):
    """Databricks SQL. Texts with a collation have a type of their own, which is refused."""

    name, dialect = "Databricks", "databricks"
    begins = ("SET TIME ZONE 'UTC'",)
    described_by = ("full_data_type",)


class MSSQL(Warehouse):
    """Microsoft SQL Server. It takes texts that differ in spaces at their end for the same."""

    name, dialect = "Microsoft SQL Server", "tsql"
    described_by = ("data_type", *_PARTS)
    not_numbers: ClassVar[frozenset[str]] = frozenset()
    any_year = False
    kinds: ClassVar = {
        "FLOAT": "double",
        "REAL": "float",
        "BIT": "boolean",
        "DATETIME2": "timestamp_ns",
        "TIME": "time_ns",
        "DATETIMEOFFSET": "DATETIMEOFFSET",
    }
    casts: ClassVar = {
        "DOUBLE": "FLOAT(53)",
        "FLOAT": "REAL",
        "TEXT": "NVARCHAR(MAX)",
        "TIMESTAMP": "DATETIME2(6)",
        "TIMESTAMP_NS": "DATETIME2(7)",
        "TIME": "TIME(6)",
        "TIME_NS": "TIME(7)",
    }

    def _meant(self, node: Any) -> Any:
        if isinstance(node, exp.Literal) and node.is_string:
            return exp.National(this=node.name)  # others lose letters that a code page lacks
        if isinstance(node, exp.Round) and node.args.get("decimals") is None:
            node.set("decimals", number(0))
        if isinstance(node, exp.Div):
            node.set("typed", True)  # both are floats already
        return super()._meant(node)

    def holds(self, flag: Any) -> Any:
        """Compare a bit."""
        return equal(flag, number(1))

    def plain(self, value: Any) -> Any:
        """Compare by code points."""
        return exp.Collate(this=value, expression=exp.Var(this="Latin1_General_100_BIN2"))

    def between(self, start: Any, moment: Any) -> Any:
        """Count in eight bytes."""
        return call("DATEDIFF_BIG", exp.Var(this="MICROSECOND"), start, moment)


def _type(words: str) -> Any:
    """Return a type by a name of DuckDB's, which has one for each kind of times."""
    return exp.DataType.build(words, dialect="duckdb")


def _difference(start: Any, end: Any, unit: str) -> Any:
    """Return how many units lie between two times."""
    return exp.TimestampDiff(this=end, expression=start, unit=exp.Var(this=unit))


WAREHOUSES: Final[Mapping[str, type[Warehouse]]] = {
    each.dialect: each for each in (Trino, BigQuery, Snowflake, Databricks, MSSQL)
}
"""Warehouses by what sqlglot calls their dialects."""


def open_warehouse(
    connection: Any, dialect: str, table: str, schema: Schema | None = None, **how: Any
) -> DatabaseTable:
    """Open a table in a warehouse, by a connection of the driver of your choice.

    Args:
        connection: As Python's DB-API 2.0 has it; used by nobody else meanwhile.
        dialect: trino, bigquery, snowflake, databricks or tsql.
        table: The table as schema.table or catalogue.schema.table.
        schema: What is public about the columns; inferred where it is None.
        **how: How it is read, the fields of `Reading`, as for `load`.
    """
    if dialect not in WAREHOUSES:
        raise UsageError(f"dialect is one of {', '.join(WAREHOUSES)}")
    session = Session(WAREHOUSES[dialect](connection))
    with session.closed_on_failure(), opening(table):
        session.store_nothing()
        rows = session.engine.table(table, table)
    return DatabaseTable.of(session, rows, schema, reading_of(how), where=table)
