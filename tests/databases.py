"""Tables in databases for tests: the same content, wherever it is held."""

from __future__ import annotations

import datetime as dt
import itertools
import sqlite3
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from thinveil import load
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.curator.database.engines.duckdb import DuckDB
from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.engines.sqlite import SQLite
from thinveil.curator.database.session import Session
from thinveil.curator.database.table import DatabaseTable
from thinveil.curator.database.words import Rows
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError
from thinveil.language.queries import WHOLE, Cells, Codes, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, MISSING, Categories, Schema

Place = Callable[[pa.Table], tuple[Session, Rows]]
"""Puts a table into a database and returns the two."""

NASTY = ('a"; drop table x; --', "a b", "select", "größe, 数", "back`tick", "it's", "100%", "x.y")
"""Names that must be quoted."""

HOSTILE = (
    *NASTY, "'", '"', "`", "; DROP TABLE x; --", "*/ /*+ BROADCAST(x) */", "\\", "\\'\\u0041\\n",
    "new\nline\ttab", "nul\0x", "%s %(x)s {x} :x ? $1 @x", "a\u0301\u202e\u2028b\U0001f600",
    "csv.`secret.csv`", "read_csv('secret.csv')", "_metadata",
)  # fmt: skip
"""Names that would be more than themselves where a statement held them unquoted."""

VARIABLES = (
    "${env:HOME}", "${env.HOME}", "${user.name}", "${spark.app.name}", "${system:user.home}",
)  # fmt: skip
"""What Spark and Hadoop would put the values of variables in place of."""

HOSTILE_TEXTS = (
    *HOSTILE, "''", "``", "\\\\", "%", "_", "a%", "a_", ".*", "^a$", "[a]", "(?i)A", "\\b",
    "NULL", "NaN", "true", "--", "/*", "*/", "\r\n", "\u2028", "\x1b[2J", "' OR '1'='1",
    "1; SELECT 1", "'||(SELECT 1)||'", *VARIABLES,
)  # fmt: skip
"""The same of values; also patterns, and what statements have words for."""

COLLATED = ("a", "A", "a ", "\u00e4", "e", "\u00e9")
"""Texts that a collation may take for the same."""

FILES = (
    "a.parquet", "ab.parquet", "a*.parquet", "b [1]*.parquet", "b 1.parquet", "it's.parquet",
    "{a,ab}.parquet", "q?.parquet", "qu.parquet", "ba\\ck.parquet", "100%20.parquet", "#h.parquet",
    "'; --.parquet", "${user.name}.parquet", "`x`.parquet", "größe 数.parquet",
)  # fmt: skip
"""Names of files, some of which would be patterns that match others."""

_NUMBERS = itertools.count()


def _name(content: pa.Table) -> str:
    return f'{NASTY[0]} {next(_NUMBERS)}"'


def quoted(name: str, mark: str = '"') -> str:
    """Quote a name as SQL does."""
    return mark + name.replace(mark, 2 * mark) + mark


def in_engine(engine: Engine, name: str) -> tuple[Session, Rows]:
    """Return a table that is there."""
    session = Session(engine)
    return session, engine.table(name, "here")


def in_duckdb(connection: Any) -> Place:
    """Put tables into a DuckDB connection."""

    def place(content: pa.Table) -> tuple[Session, Rows]:
        name = _name(content)
        connection.register("content", content)
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM content")
        connection.unregister("content")
        return in_engine(DuckDB(connection), name)

    return place


def in_sqlite(connection: Any) -> Place:
    """Put tables into an SQLite connection; dates and times are texts there."""

    def place(content: pa.Table) -> tuple[Session, Rows]:
        name = _name(content)
        kinds = [_sqlite_type(each) for each in content.schema.types]
        listed = ", ".join(
            f"{quoted(column)} {kind}"
            for column, kind in zip(content.column_names, kinds, strict=True)
        )
        connection.execute(f"CREATE TABLE {quoted(name)} ({listed})")
        marks = ", ".join("?" * len(kinds))
        rows = zip(*map(_sqlite_values, content.columns), strict=True)
        connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)
        connection.commit()
        return in_engine(SQLite(connection), name)

    return place


def _sqlite_type(kind: Any) -> str:
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_integer(kind):
        return "INTEGER"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "REAL"
    return "TEXT"


def _sqlite_values(column: Any) -> list[Any]:
    """Return what SQLite stores; it has floats of eight bytes only."""
    if pa.types.is_float32(column.type):
        return [
            None if each is None else float(str(np.float32(each))) for each in column.to_pylist()
        ]
    return [_sqlite_value(each) for each in column.to_pylist()]


def _sqlite_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, dt.date) else value


PLACES: dict[str, Place] = {
    "duckdb": in_duckdb(duckdb.connect()),
    "sqlite": in_sqlite(sqlite3.connect(":memory:", check_same_thread=False)),
}
"""Databases in memory, open as long as the tests run."""


def from_codes(codes: Codes) -> pa.Table:
    """Return a table of whole numbers that has these codes."""
    return pa.table(
        {
            f"a{place}": pa.array(
                [None if each == MISSING else each for each in codes[:, place].tolist()], pa.int64()
            )
            for place in range(codes.shape[1])
        }
    )


def counter_in(place: Place, codes: Codes) -> Counter:
    """Return what counts these codes in a database."""
    return DatabaseTable.of(*place(from_codes(codes))).counter()


def duckdb_counter(codes: Codes) -> Counter:
    """Return what counts these codes in DuckDB."""
    return counter_in(PLACES["duckdb"], codes)


def sqlite_counter(codes: Codes) -> Counter:
    """Return what counts these codes in SQLite."""
    return counter_in(PLACES["sqlite"], codes)


def records_of(table: Dataset) -> list[list[int]]:
    """Return the records in order, as a database has none."""
    return sorted(table.codes.tolist())


# ---- random content

TEXTS = st.one_of(
    st.sampled_from(
        ["a", "A", "", "it's", 'say "hi"', "a,b;c|d", "back\\slash", "ß", "数", " a", "a "]
    ),
    st.sampled_from(
        ["NULL", "nan", "7", "007", "1e3", "2024-02-29", "2024-02-29 10:00", "{x}", "%s"]
    ),
    st.text(
        st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=6
    ),
)
_DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
_MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59))
KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "small": (pa.int32(), st.integers(-5, 5)),
    "large": (pa.int64(), st.integers(-LIMIT + 1, LIMIT - 1)),
    "text": (pa.string(), TEXTS),
    "flag": (pa.bool_(), st.booleans()),
    "cents": (pa.decimal128(12, 2), st.decimals(-(10**6), 10**6, places=2)),
    "float": (pa.float64(), st.integers(-(10**9), 10**9).map(lambda each: each / 1000)),
    "short": (pa.float32(), st.integers(-9999, 9999).map(lambda each: np.float32(each / 100))),
    "whole": (pa.float64(), st.sampled_from([0.0, -0.0, -3.0, 1e15, -(2.0**53)])),
    "day": (pa.date32(), _DAYS),
    "time": (pa.timestamp("us"), _MOMENTS),
    "hour": (
        pa.timestamp("us"),
        _MOMENTS.map(lambda at: at.replace(minute=0, second=0, microsecond=0)),
    ),
    "millis": (
        pa.timestamp("ms"),
        _MOMENTS.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    ),
    "nothing": (pa.int64(), st.none()),
}


@st.composite
def contents(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> pa.Table:
    """A small table of columns of any kinds, some values missing, under names to be quoted."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=5))
    names = draw(st.permutations(NASTY))
    rows = draw(st.integers(1, 8))
    columns = {}
    for name, kind in zip(names, chosen, strict=False):
        arrow, values = KINDS[kind]
        each = st.one_of(st.none(), values) if draw(st.booleans()) else values
        columns[name] = pa.array(draw(st.lists(each, min_size=rows, max_size=rows)), arrow)
    return pa.table(columns)


def mixed(rows: int, seed: int = 0) -> pa.Table:
    """A table with a column of every kind, from fixed randomness."""
    rng = np.random.default_rng(seed)
    words = ["", "it's", "b\\s", '"q"', "ß", "数", "a b", "NULL", " pad"]
    start = dt.datetime(1890, 1, 1)
    made: dict[str, tuple[Any, Callable[[], Any]]] = {
        "small": (pa.int32(), lambda: int(rng.integers(-5, 6))),
        "large": (pa.int64(), lambda: int(rng.integers(-LIMIT + 1, LIMIT))),
        "text": (pa.string(), lambda: words[rng.integers(len(words))]),
        "flag": (pa.bool_(), lambda: bool(rng.integers(2))),
        "cents": (pa.decimal128(12, 2), lambda: Decimal(int(rng.integers(-999, 999))) / 100),
        "float": (pa.float64(), lambda: int(rng.integers(-(10**9), 10**9)) / 1000),
        "short": (pa.float32(), lambda: np.float32(int(rng.integers(-999, 999)) / 100)),
        "day": (pa.date32(), lambda: start.date() + dt.timedelta(int(rng.integers(99_999)))),
        "time": (pa.timestamp("us"), lambda: start + dt.timedelta(0, 0, int(rng.integers(10**16)))),
        "hour": (pa.timestamp("us"), lambda: start + dt.timedelta(hours=int(rng.integers(10**6)))),
        "nothing": (pa.int64(), lambda: None),
    }
    return pa.table(
        {
            f"{NASTY[place % len(NASTY)]} {kind}": pa.array(
                [None if rng.random() < 0.1 and place % 2 else draw() for _ in range(rows)], arrow
            )
            for place, (kind, (arrow, draw)) in enumerate(made.items())
        }
    )


def batches_for(codes: Codes, seed: int = 0, number: int = 12) -> list[QueryBatch]:
    """Batches of many shapes: points, coarse cells, ranges, unions, empty and infinite ends."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        columns = rng.permutation(codes.shape[1])[: rng.integers(0, 4)].tolist()
        picks = codes[rng.integers(len(codes), size=6)][:, columns]
        if rng.random() < 0.3:
            high = np.where(picks == MISSING, MISSING + 1, np.minimum(picks, LIMIT - 9) + 7)
            cells = Cells(tuple(columns), picks, high)
        else:
            widths = rng.choice([1, 1, 5], len(columns)).tolist()
            aligned = np.where(picks == MISSING, picks, picks - picks % np.array(widths, np.int64))
            cells = Cells.points(columns, aligned, widths) if columns else Cells.everything()
        free = [WHOLE, *(each for each in range(codes.shape[1]) if each not in columns)]
        boxes = 20
        narrow = rng.choice(free[:4], boxes)
        ends = [MISSING, MISSING + 1, INFINITE, 0, *codes.ravel()[:40].tolist()]
        cuts = np.unique([0, boxes, *rng.integers(1, boxes, 4)]) if rng.random() < 0.5 else None
        found.append(
            QueryBatch(
                cells,
                rng.integers(0, len(cells), boxes),
                narrow,
                rng.choice(ends, boxes),
                rng.choice(ends, boxes),
                np.zeros(boxes if cuts is None else len(cuts) - 1, np.int64),
                cuts,
            )
        )
    return found


def check_hostile(place: Place, names: Iterable[str], without: str = "") -> None:
    """Hold hostile names, texts and texts of missing values to what memory makes of them.

    What the database cannot hold at all is left out: all that has one of some characters.
    """
    texts, *columns = (
        [each for each in every if not set(without) & set(each)] for every in (HOSTILE_TEXTS, names)
    )
    numbers = pa.array(range(len(texts)), pa.int64())
    content = pa.table({each: texts if each == "'" else numbers for each in columns[0]})
    missing = ("it's", "%", "_", "\\", "back`tick")
    expected = load(content, missing=missing)
    with DatabaseTable.of(*place(content), reading=Reading(missing=missing)) as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)


def check_collated(opened: Callable[[], tuple[Session, Rows]]) -> None:
    """Hold a table whose column x has `COLLATED`, and a collation, to what memory makes of them.

    They are told apart by lists of texts in the statement, and by joined ones, sent or written.
    """
    content = pa.table({"x": COLLATED})
    listed = Schema((Categories("x", COLLATED),))
    longer = Schema((Categories("x", (*COLLATED, *(f"other {each}" for each in range(100)))),))
    for schema, stores in itertools.product((None, listed, longer), (True, False)):
        session, rows = opened()
        if not stores:
            session.store_nothing()
        expected = load(content, schema)
        with DatabaseTable.of(session, rows, schema) as table:
            assert table.schema == expected.schema
            assert table.records == expected.records
            assert records_of(table.to_dataset()) == records_of(expected)


def check_hostile_names(
    opened: Callable[[], Engine], make: Callable[[str, int], None], without: str = ""
) -> None:
    """Hold a database to the one table of each hostile name; `make` makes it, of one number."""
    names = [each for each in HOSTILE if not set(without) & set(each)]
    for number, name in enumerate(names):
        make(name, number)
    for number, name in enumerate(names):
        engine = opened()
        table = engine.table(name, "here")
        assert engine.rows(engine.words(table.query)) == [(number,)], name
    for name in ("x", "csv.`secret`", "read_csv('secret')", "\\`", "'; SELECT 1 --", *VARIABLES):
        with pytest.raises(DataError, match="there is no table"):
            opened().table(name, "here")


def check_codes(place: Place, content: pa.Table) -> None:
    """Hold the schema and the codes of a table in a database to what memory makes of it."""
    try:
        expected = load(content)
    except DataError:  # such as a text of a number beyond any grid
        with pytest.raises(DataError):
            DatabaseTable.of(*place(content))
        return
    with DatabaseTable.of(*place(content)) as table:
        assert table.schema == expected.schema
        assert table.records == expected.records
        assert records_of(table.to_dataset()) == records_of(expected)
    with DatabaseTable.of(*place(content), expected.schema) as again:
        assert records_of(again.to_dataset()) == records_of(expected)


def check_every_kind(place: Place, batches: int = 20) -> None:
    """Hold a table with columns of every kind, and counts on it, to memory and a scan."""
    content = mixed(60)
    expected = load(content)
    with DatabaseTable.of(*place(content)) as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)
        scan, counter = ScanCounter(expected.codes), table.counter()
        for batch in batches_for(expected.codes, 1, batches):
            for _ in range(2):
                assert counter.count(batch).tolist() == scan.count(batch).tolist()
