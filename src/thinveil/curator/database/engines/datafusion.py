"""DataFusion: Parquet files, read in this process; tables that are kept lie in its memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    everything,
    needed,
    told,
)
from thinveil.curator.database.parquet_files import WHOLE, check_parquet, parquet_in
from thinveil.curator.database.words import Rows, call, exp, rewritten, text
from thinveil.curator.tables.kinds.limits import half_of_memory
from thinveil.errors import DataError
from thinveil.language.queries import Codes

_ARROW: Final = {
    "BIGINT": "Int64", "FLOAT": "Float32", "DOUBLE": "Float64", "TEXT": "Utf8", "DATE": "Date32",
    "TIMESTAMP": 'Timestamp(Microsecond, Some("+00:00"))',
    "TIMESTAMP_NS": 'Timestamp(Nanosecond, Some("+00:00"))',
}  # fmt: skip
"""What values are cast to, by sqlglot's names; decimals have digits as well."""
_DECIMAL: Final = "Decimal128"
_DIGITS: Final = 38
"""The most digits of a decimal that it computes with as with all others."""
_KINDS: Final = {
    "bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
    "uint8": "utinyint", "uint16": "usmallint", "uint32": "uinteger", "uint64": "ubigint",
    "float": "float", "double": "double", "string": "text", "large_string": "text",
    "string_view": "text", "date32[day]": "date", "date64[ms]": "timestamp", "null": "null",
    "timestamp": "timestamp", "timestamp_ns": "timestamp_ns", "time32[s]": "time",
    "time32[ms]": "time", "time64[us]": "time",
}  # fmt: skip
"""What DuckDB calls the types of Arrow."""


class DataFusion(Engine):
    """A session of DataFusion, with the files that were opened or what is registered in it."""

    name = "DataFusion"
    dialect = "postgres"  # which its words are taken from; `words` has what differs
    schemes = ("datafusion",)
    settings: ClassVar = {}
    here = True

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> DataFusion:
        """Open a Parquet file, or those of a folder or a pattern, as the only table.

        It takes every path for a pattern, unless it is an address.
        """
        needed("DataFusion", "datafusion", "datafusion")
        files = [Path(each).absolute().as_uri() for each in _parquet(rest, where)]
        with told(f"{where}: cannot be read", WHOLE):
            from datafusion import RuntimeEnvBuilder, SessionContext

            room = RuntimeEnvBuilder().with_disk_manager_os()
            context = SessionContext(runtime=room.with_fair_spill_pool(half_of_memory()))
            frames = [context.read_parquet(each, file_extension="") for each in files]
            if any(each.schema() != frames[0].schema() for each in frames):
                raise DataError(f"{where}: cannot be read: {WHOLE}")
            context.register_view(Path(rest).stem, reduce(lambda a, b: a.union(b), frames))
            return cls(context, owned=True)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables and views."""
        return list(self._connection.catalog().schema().names())

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns."""
        found = self._connection.sql(self.words(everything(rows))).schema()
        return [(each.name, self.kind(_type(each.type))) for each in found]

    def kind(self, words: str) -> Any:
        """Read the name of a type that is known; another stays a text."""
        known = words in _KINDS.values() or words.startswith("decimal(")
        return exp.DataType.build(words, dialect="duckdb") if known else words

    def is_nan(self, value: Any) -> Any:
        """Tell whether a float is not a number."""
        return call("isnan", value)

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970."""
        return call("arrow_cast", moment, text("Int64"))

    def clock(self, time: Any) -> Any:
        """Return microseconds since midnight of a time of day."""
        fine = call("arrow_cast", time, text("Time64(Microsecond)"))
        return call("arrow_cast", fine, text("Int64"))

    def words(self, query: Any) -> str:
        """Write a statement, with what PostgreSQL has other words for."""
        return super().words(rewritten(query, (exp.Cast, exp.Round), _own))

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Show DataFusion the arrays where they are."""
        if again:
            self._connection.deregister_table(name)
        self._connection.register_record_batches(name, [arrow_table(columns).to_batches()])

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Compute a table in memory: it has no other ones."""
        self.run(f"CREATE TABLE {name} AS {statement}")

    def drop(self, name: str) -> None:
        """Forget a table."""
        self._connection.deregister_table(name)

    def run(self, *statements: str) -> None:
        """Run statements that select nothing."""
        for each in statements:
            self._connection.sql(each).collect()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        found = self._connection.sql(statement).to_arrow_table()
        return list(zip(*(each.to_pylist() for each in found.columns), strict=True))

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        found = self._connection.sql(statement).to_arrow_table()
        return np.column_stack([each.to_numpy().astype(np.int64) for each in found.columns])

    def close(self) -> None:
        """Forget the session, which nothing else holds if it was opened here."""
        self._connection = None


def _parquet(path: str, where: str) -> list[str]:
    """Return the Parquet files that an address means; none may unpack to more than there is."""
    files = parquet_in(path)
    if not files:
        raise DataError(
            f"{where}: DataFusion counts Parquet files here, and this is none: save it as one"
        )
    check_parquet(files)
    return files


def _type(kind: Any) -> str:
    """Return the name of one of Arrow's types, for sqlglot where it has one."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_decimal(kind) and kind.precision <= _DIGITS:
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ns" if kind.unit == "ns" else "timestamp"
    return _KINDS.get(str(kind), str(kind))


def _own(node: Any) -> Any:
    """Return a part of a statement in DataFusion's own words.

    Two sums that differ by a CAST alone have one name there, and are refused. Decimals that were
    rounded are of a type that it does not compare. Its times have nanoseconds, which end in 2262.
    """
    if isinstance(node, exp.Round) and node.args.get("decimals") is not None:
        places = node.args["decimals"].name
        return call("arrow_cast", node.this, text(f"{_DECIMAL}({_DIGITS}, {places})"))
    if isinstance(node, exp.Cast):
        kind = _ARROW.get(node.to.this.name) or node.to.sql("postgres").replace("DECIMAL", _DECIMAL)
        return call("arrow_cast", node.this, text(kind))
    return node
