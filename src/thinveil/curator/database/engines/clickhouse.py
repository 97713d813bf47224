"""ClickHouse: the folder of its tables, read in this process through chDB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    everything,
    listing,
    needed,
    told,
    type_of,
)
from thinveil.curator.database.words import (
    Rows,
    call,
    cast,
    exp,
    number,
    places_of,
    rewritten,
)
from thinveil.curator.tables.kinds.limits import half_of_memory
from thinveil.errors import DataError
from thinveil.language.queries import Codes

_STORED: Final = r"(?:Replicated|Shared)?\w*MergeTree|Log|TinyLog|StripeLog|Memory"
"""The kinds of tables that hold their own rows. Others read files, addresses or programs, as views
can, with the rights of whoever opens them."""
_AROUND: Final = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")
_CONSTANT: Final = re.compile(r"[-+]?[\d.]+|'(?:[^'\\]|\\.|'')*'|true|false|NULL", re.I | re.S)
"""A default that names no other column."""
_FINE: Final = re.compile(r"DateTime64\([789]\b.*")
_KINDS: Final = {
    "Int8": "TINYINT", "Int16": "SMALLINT", "Int32": "INT", "Int64": "BIGINT", "UInt8": "SMALLINT",
    "UInt16": "INT", "UInt32": "BIGINT", "UInt64": "UBIGINT", "Float32": "FLOAT",
    "Float64": "DOUBLE", "String": "TEXT", "FixedString": "TEXT", "Enum8": "ENUM", "Enum16": "ENUM",
    "Bool": "BOOLEAN", "UUID": "UUID", "Date": "DATE", "Date32": "DATE", "DateTime": "TIMESTAMP",
    "DateTime64": "TIMESTAMP", "Nothing": "NULL",
}  # fmt: skip
"""What sqlglot calls the types of ClickHouse; decimals have digits as well. Wider whole numbers are
turned into no decimals there."""
_CASTS: Final = {
    "DATE": "Nullable(Date32)",
    "TIMESTAMP": "Nullable(DateTime64(6, 'UTC'))",
    "TIMESTAMP_NS": "Nullable(DateTime64(9, 'UTC'))",
}
_WIDEST: Final = "decimal(76, 0)"


class ClickHouse(Engine):
    """A folder that chDB keeps tables in; a process can have one of them open at a time."""

    name = "ClickHouse"
    dialect = "clickhouse"
    schemes = ("chdb",)
    settings: ClassVar = {
        "session_timezone": "UTC",
        "join_use_nulls": "1",
        "precise_float_parsing": "1",  # to the nearest float, as everybody else
        "prefer_column_name_to_alias": "1",  # x0 is the column, not what is called so beside it
        "max_memory_usage": str(half_of_memory()),
    }
    here = True

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> ClickHouse:
        """Open a folder to read it, and write temporary tables alone."""
        needed("ClickHouse", "chdb", "clickhouse")
        path = Path(rest)
        if not (path / "store").is_dir() and not (path / "data").is_dir():
            raise DataError(f"{where}: this is no folder of chDB: check the path")
        if "?" in rest:
            raise DataError(f"{where}: chDB opens no folder with a ? in its path: rename it")
        advice = "see that nobody else has it open; a process can open one folder at a time"
        with told(f"{where}: cannot be opened", advice):
            import chdb

            return cls(chdb.connect(f"{path.absolute()}?mode=ro"), owned=True)

    def table(self, name: str | None, where: str) -> Rows:
        """Return a table of the database `default`, or of another: database.table."""
        with listing(where):
            ((usual,),) = self.rows("SELECT currentDatabase()")
        return self.inside(name, usual, where)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables of a database that hold their rows themselves."""
        stored, inside = _quoted(f"^({_STORED})$"), _quoted(schema or "default")
        found = self.rows(
            f"SELECT name FROM system.tables WHERE match(engine, {stored}) AND "
            f"database = {inside} AND NOT is_temporary"
        )
        return [name for (name,) in found]

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns; none may be computed when it is read.

        An alias is not read, unless the default of another column may name it.
        """
        asked = (
            "SELECT name, default_kind, default_expression FROM system.columns WHERE database = "
            f"{_quoted(rows.source.db)} AND table = {_quoted(rows.source.name)} AND "
            "default_kind != ''"
        )
        computed = self.rows(asked)
        read = any(kind != "ALIAS" and not _CONSTANT.fullmatch(how) for _, kind, how in computed)
        for name, kind, how in computed:
            if read and "(" in how:
                raise DataError(
                    f"column {name!r} has a default that calls a function, which would be run "
                    f"here: take it away (ALTER TABLE ... MODIFY COLUMN ... REMOVE {kind})"
                )
        found = self.rows(f"DESCRIBE ({self.words(everything(rows))})")
        return [(name, self.kind(kind)) for name, kind, *_ in found]

    def kind(self, words: str) -> Any:
        """Read the name of a type without what may stand around it; an unknown one stays a text."""
        while around := _AROUND.fullmatch(words):
            words = around[1]
        if words.startswith("Decimal("):
            return super().kind(words)
        plain = "TIMESTAMP_NS" if _FINE.fullmatch(words) else _KINDS.get(words.partition("(")[0])
        return words if plain is None else exp.DataType(this=exp.DataType.Type[plain])

    def plain(self, value: Any) -> Any:
        """Return a text, without the zeros that fill one of fixed size."""
        return cast(value, "text")

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970."""
        return call("toUnixTimestamp64Micro", moment)

    def words(self, query: Any) -> str:
        """Write a statement in which times reach as far as days do."""
        return super().words(rewritten(query, (exp.Cast, exp.Floor), _own))

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        ((before,),) = self.rows(f"SELECT toString(getSetting('{name}'))")
        self.run(f"SET {name} = {value if value.isdigit() else _quoted(value)}")
        return str(before)

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Send all rows as Arrow has them."""
        import pyarrow as pa

        kinds = {"BIGINT": "Int64", "DOUBLE": "Float64", "TEXT": "String"}
        listed = ", ".join(f"`{each}` {kinds[type_of(of)]}" for each, of in columns.items())
        made = f"CREATE TEMPORARY TABLE {name} ({listed}) ENGINE = Memory"
        self.run(f"TRUNCATE TEMPORARY TABLE {name}" if again else made)
        content, sink = arrow_table(columns), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, content.schema) as stream:
            stream.write_table(content)
        with self._connection.send_insert(f"INSERT INTO {name}", "ArrowStream") as sent:
            sent.append(sink.getvalue().to_pybytes())
            sent.finish()

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Compute a temporary table in memory: others would be files of its own folder."""
        self.run(f"CREATE TEMPORARY TABLE {name} ENGINE = Memory AS {statement}")

    def drop(self, name: str) -> None:
        """Take a temporary table away."""
        self.run(f"DROP TEMPORARY TABLE IF EXISTS {name}")

    def run(self, *statements: str) -> None:
        """Run statements that select nothing."""
        for each in statements:
            self._connection.query(each)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        found = self._connection.query(statement, "ArrowTable")
        return list(zip(*(each.to_pylist() for each in found.columns), strict=True))

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        found = self._connection.query(statement, "ArrowTable")
        if not found.num_columns:  # of no rows, chDB knows no columns either
            return np.empty((0, width), np.int64)
        return np.column_stack([each.to_numpy().astype(np.int64) for each in found.columns])


def _quoted(value: str) -> str:
    """Return a text as ClickHouse reads it."""
    return str(exp.Literal.string(value).sql("clickhouse"))


def _own(node: Any) -> Any:
    """Return a part of a statement in ClickHouse's own types.

    Its plain dates and times begin in 1970. Decimals are compared with whole numbers of as many
    digits as they have, and lose the zeros at their end unless it is told how many there are.
    """
    if isinstance(node, exp.Floor):
        return cast(node.copy(), _WIDEST)
    if (places := places_of(node)) is not None:
        return call("toDecimalString", node.this, number(places))
    kind = _CASTS.get(node.to.this.name)
    if kind is None:
        return node
    return exp.Cast(this=node.this, to=exp.DataType.build(kind, dialect="clickhouse"))
