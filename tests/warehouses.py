"""A warehouse for tests: DuckDB, which is sent what was written in another dialect."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from databases import quoted
from thinveil import Curator, audit, idp
from thinveil.curator.database.warehouses import open_warehouse

DIALECTS = ("trino", "bigquery", "snowflake", "databricks", "tsql")

_TYPES = {
    "trino": {
        "INTEGER": "integer", "BIGINT": "bigint", "VARCHAR": "varchar", "BOOLEAN": "boolean",
        "DECIMAL(12,2)": "decimal(12,2)", "DOUBLE": "double", "FLOAT": "real", "DATE": "date",
        "TIMESTAMP": "timestamp(6)", "TIME": "time(3)", "TIME_NS": "time(9)",
    },
    "bigquery": {
        "INTEGER": "INT64", "BIGINT": "INT64", "VARCHAR": "STRING", "BOOLEAN": "BOOL",
        "DECIMAL(12,2)": "NUMERIC(12, 2)", "DOUBLE": "FLOAT64", "DATE": "DATE",
        "TIMESTAMP": "DATETIME", "TIME": "TIME",
    },
    "snowflake": {
        "INTEGER": ("NUMBER", 38, 0), "BIGINT": ("NUMBER", 38, 0), "VARCHAR": "TEXT",
        "BOOLEAN": "BOOLEAN", "DECIMAL(12,2)": ("NUMBER", 12, 2), "DOUBLE": "FLOAT",
        "DATE": "DATE", "TIMESTAMP": "TIMESTAMP_NTZ", "TIME": "TIME", "TIME_NS": "TIME",
    },
    "databricks": {
        "INTEGER": "int", "BIGINT": "bigint", "VARCHAR": "string", "BOOLEAN": "boolean",
        "DECIMAL(12,2)": "decimal(12,2)", "DOUBLE": "double", "FLOAT": "float", "DATE": "date",
        "TIMESTAMP": "timestamp_ntz",
    },
    "tsql": {
        "INTEGER": ("int", 10, 0), "BIGINT": ("bigint", 19, 0), "VARCHAR": "nvarchar",
        "BOOLEAN": "bit", "DECIMAL(12,2)": ("decimal", 12, 2), "DOUBLE": "float", "FLOAT": "real",
        "DATE": "date", "TIMESTAMP": "datetime2", "TIME": "time",
    },
}  # fmt: skip
"""What the catalogue of each warehouse calls the types of DuckDB, of those that it has."""


class Translated:
    """A connection as a driver has it, to DuckDB behind sqlglot; it keeps what it was sent."""

    def __init__(self, dialect: str, content: pa.Table, name: str = "people") -> None:
        self.dialect, self.sent = dialect, list[str]()
        self._base = duckdb.connect()
        self._base.execute("SET TimeZone = 'UTC'")
        self._base.register("content", content)
        self._base.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM content")
        self._name = name
        self._found: Any = None

    def cursor(self) -> Translated:
        return self

    def close(self) -> None:
        """Leave all open: cursors are closed, too."""

    def execute(self, statement: str) -> None:
        self.sent.append(statement)
        if "information_schema" in statement.lower():
            self._found = self._columns()
        elif statement.startswith(("SELECT", "WITH")):
            self._found = self._base.execute(translated(statement, self.dialect)).fetchall()

    def fetchall(self) -> Any:
        return self._found

    def _columns(self) -> list[tuple[Any, ...]]:
        wide = 2 if self.dialect in ("snowflake", "tsql") else 0
        found = []
        for name, kind, *_ in self._base.execute(f"DESCRIBE {quoted(self._name)}").fetchall():
            said = _TYPES[self.dialect][kind]  # type: ignore[index]
            found.append((name, *((said, *[None] * wide) if isinstance(said, str) else said)))
        return found


def held(kind: pa.DataType, dialect: str) -> bool:
    """Tell whether a warehouse has a type."""
    lacking = {"bigquery": (pa.float32(),), "snowflake": (pa.float32(),)}
    return kind not in lacking.get(dialect, ())


def translated(statement: str, dialect: str) -> str:
    """Write a statement of a dialect as DuckDB has it."""
    if dialect == "bigquery":
        statement = statement.replace("%%", "%")  # as its driver does
    tree = sqlglot.parse_one(statement, read=dialect).transform(_for_duckdb, dialect)
    return str(tree.sql("duckdb"))


def _for_duckdb(node: Any, dialect: str) -> Any:
    """Change what sqlglot leaves as it is, though DuckDB has another word for it, or none."""
    if isinstance(node, exp.Collate):
        return node.this  # DuckDB compares letter by letter
    if isinstance(node, exp.National):
        return exp.Literal.string(node.name)
    if isinstance(node, exp.Table) and node.args.get("db") is not None:
        node.set("db", None)
        node.set("catalog", None)
    if isinstance(node, exp.DataType):
        if node.this.name == "TIME" and _fine(node):
            return exp.DataType.build("time_ns", dialect="duckdb")
        plain = re.sub(r"\(.*\)", "", node.sql("duckdb"))
        if dialect == "tsql" and node.this.name == "FLOAT" and node.expressions:
            return exp.DataType.build("double")  # FLOAT(53) has eight bytes
        if node.this.name in ("TIMESTAMPTZ",):
            return exp.DataType.build("timestamp")  # in UTC here
        if node.expressions and not plain.startswith(("DECIMAL", "STRUCT")):
            return exp.DataType.build(plain, dialect="duckdb")
    if isinstance(node, exp.Unnest):
        return _values(node.expressions[0].expressions)
    return node


def _fine(kind: Any) -> bool:
    """Tell whether a type has more than microseconds."""
    return any(int(each.name) > 6 for each in kind.expressions)


def _values(records: list[Any]) -> Any:
    """Write a list of records as VALUES: the first one names the fields for all."""
    first, *others = records
    names = [each.name for each in first.to.expressions]
    rows = [first.this, *others]
    tuples = [exp.Tuple(expressions=each.expressions or [each.this]) for each in rows]
    columns = [exp.to_identifier(each, quoted=True) for each in names]
    alias = exp.TableAlias(this=exp.to_identifier("v"), columns=columns)
    return exp.Values(expressions=tuples, alias=alias)


# ---- the statements of an audit, one of each kind

GOLDEN = Path(__file__).parent / "golden" / "sql"
_OWN = re.compile(r"thinveil_[0-9a-f]{10}")
_ROWS = re.compile(r"(VALUES|STRUCT<[^>]*>) ?\(.*?\)(, \([^)]*\))*")


def small() -> pa.Table:
    """A table of few records with a column of most kinds."""
    return pa.table(
        {
            "age": pa.array([31, 57, None, 8, 31, 44], pa.int64()),
            "it's": ["a", "it's", "a", "100%", "a", "b\\c"],
            "pay": pa.array([Decimal("1.50"), Decimal("2.25"), None] * 2, pa.decimal128(12, 2)),
            "born": pa.array([dt.date(1990, 1, each) for each in (1, 2, 3, 1, 2, 9)]),
            "seen": pa.array([dt.datetime(2020, 1, 1, 10, 30, each) for each in range(6)]),
            "flag": [True, False, True, None, True, False],
        }
    )


def statements(dialect: str) -> list[str]:
    """Return the statements of an audit in a dialect, the first of each kind."""
    connection = Translated(dialect, small())
    with open_warehouse(connection, dialect, "census.people") as table:
        table.digest()
        table.extremes()
        audit(Curator(table, idp()))
    kinds: dict[str, str] = {}
    for statement in connection.sent:
        named = _OWN.sub("thinveil", statement)
        kinds.setdefault(re.sub(r"\d+", "0", _ROWS.sub("", named)), named)
    first = [*kinds.values()]
    return first[:_OPENING] + _spread(first[_OPENING:])


_OPENING = 7
_COUNTING = 6


def _spread(found: list[str]) -> list[str]:
    """Return some of many statements, the shortest and the longest among them."""
    found = sorted(found, key=lambda each: (len(each), each))
    step = max(1, (len(found) - 1) // (_COUNTING - 1))
    return found[::step][:_COUNTING]


def written(dialect: str) -> str:
    """Return what is kept of a dialect."""
    return "".join(f"{each};\n" for each in statements(dialect))


if __name__ == "__main__":  # writes them anew: PYTHONPATH=src:tests python tests/warehouses.py
    GOLDEN.mkdir(exist_ok=True)
    for each in DIALECTS:
        (GOLDEN / f"{each}.sql").write_text(written(each), encoding="utf-8")
