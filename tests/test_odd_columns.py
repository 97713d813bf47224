"""Columns that few tables have: in a database they are read as in memory, or refused."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases import PLACES, Place, in_engine, records_of
from test_bombs import _varint
from thinveil import Grid, Schema, load
from thinveil.curator.database.engines.duckdb import DuckDB
from thinveil.curator.database.engines.sqlite import SQLite
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError
from thinveil.language.schema import LIMIT


@pytest.fixture(params=list(PLACES.values()), ids=list(PLACES))
def place(request: pytest.FixtureRequest) -> Place:
    chosen: Place = request.param
    return chosen


def check(place: Place, content: pa.Table, missing: tuple[str, ...] = ()) -> DatabaseTable:
    """Hold a table to what memory makes of it, also by that schema."""
    expected = load(content, missing=missing)
    for schema in (None, expected.schema):
        table = DatabaseTable.of(*place(content), schema, Reading(missing=missing))
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)
    return table


# ---- numbers


@pytest.mark.parametrize(
    "values",
    [[LIMIT, 1], [-LIMIT, None, 3], [2**63 - 1, -(2**63), 0], [1 - LIMIT, LIMIT - 1, None]],
    ids=str,
)
def test_whole_numbers_that_codes_have_no_room_for(place: Place, values: list[Any]) -> None:
    check(place, pa.table({"x": pa.array(values, pa.int64())}))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**64 - 1, 5, None], pa.uint64()),
        pa.array([Decimal(10) ** 20 + 1, Decimal(1)], pa.decimal128(38, 0)),
        pa.array([Decimal(10**18), Decimal("0.5")], pa.decimal128(38, 1)),
        pa.array([Decimal(-(10**15)), Decimal("0.25")], pa.decimal128(38, 20)),
    ],
    ids=lambda column: str(column.type),
)
def test_other_numbers_that_codes_have_no_room_for(column: Any) -> None:
    check(PLACES["duckdb"], pa.table({"x": column}))


def test_numbers_beyond_all_decimals() -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT {2**127 - 1}::HUGEINT x UNION ALL SELECT 7")
    expected = load(pa.table({"x": [str(2**127 - 1), "7"]}))
    with DatabaseTable.of(*in_engine(DuckDB(connection), "t")) as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)
    with pytest.raises(DataError, match=r"1 row of column 'x' is not .* or too large for it"):
        DatabaseTable.of(*in_engine(DuckDB(connection), "t"), Schema((Grid("x"),)))
    connection.close()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([LIMIT, 1]), r"1 value too large \(codes end at 2\^62\), which"),
        (
            pa.array([Decimal(10**18), Decimal("0.5")], pa.decimal128(38, 1)),
            r"1 value too large \(codes end at 2\^62 steps\) or of more than 15 decimals",
        ),
        (pa.array([2**64 - 1, 1], pa.uint64()), "1 row is too large or too fine"),
    ],
    ids=["whole", "decimal", "unsigned"],
)
def test_elsewhere_too_large_numbers_are_told(
    column: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDB, "here", False)  # as if it were a server
    with pytest.raises(DataError, match=f"column 'x': {words}") as caught:
        DatabaseTable.of(*PLACES["duckdb"](pa.table({"x": column})))
    assert "bounds" not in str(caught.value)


def test_the_lowest_code_of_a_number_is_no_missing_value(place: Place) -> None:
    content = pa.table({"x": pa.array([-LIMIT, None])})
    with pytest.raises(DataError, match=r"1 row of column 'x' is not .* or too large for it"):
        DatabaseTable.of(*place(content), Schema((Grid("x", missing=True),)))


@pytest.mark.parametrize("step", [3, 7, 4095, 4096, 10**6 + 3])
def test_codes_of_coarse_steps_are_exact_as_far_as_they_go(place: Place, step: int) -> None:
    most = (LIMIT - 1) // step
    values = [step * (most - each) for each in range(9)] + [-step * most, 0, step, -step]
    content, schema = pa.table({"x": values}), Schema((Grid("x", step=Decimal(step)),))
    with DatabaseTable.of(*place(content), schema) as table:
        assert {*table.to_dataset().rows()} == {(value,) for value in values}
    for off in (step * most - 1, 1 - step * most, 2**63 - 1, -(2**63)):
        with pytest.raises(DataError, match="1 row of column 'x' is not"):
            DatabaseTable.of(*place(pa.table({"x": [off, step]})), schema)


@pytest.mark.parametrize("missing", [("inf",), ("-inf", "inf"), ("-inf", "0.5")], ids=str)
def test_infinite_texts_of_missing_values_mean_nothing_else(
    place: Place, missing: tuple[str, ...]
) -> None:
    check(place, pa.table({"x": [0.0, 0.5, 1.0, -2.0]}), missing)
    check(place, pa.table({"x": [0.0, float(missing[0]), 1.0]}), missing)


def test_infinite_floats_of_four_bytes_may_be_missing() -> None:
    content = pa.table({"x": pa.array([0.5, np.inf, 3e38, np.nan], pa.float32())})
    check(PLACES["duckdb"], content, ("inf",))


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0], [0.0]], ids=str)
def test_both_zeros_are_one_where_floats_are_listed(place: Place, zeros: list[float]) -> None:
    check(place, pa.table({"x": [*zeros, 1 / 3, None]}))


def test_a_flag_of_sqlite_is_one_of_truths_only() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x BOOLEAN)")
    connection.executemany("INSERT INTO t VALUES (?)", [(0,), (1,), (None,)])
    with DatabaseTable.of(*in_engine(SQLite(connection), "t")) as table:
        assert {*table.to_dataset().rows()} == {("false",), ("true",), (None,)}
    connection.executemany("INSERT INTO t VALUES (?)", [(2,), (-7,)])
    with DatabaseTable.of(*in_engine(SQLite(connection), "t")) as table:
        assert {*table.to_dataset().rows()} == {(0,), (1,), (None,), (2,), (-7,)}
    connection.close()


def test_times_of_the_day_finer_than_microseconds() -> None:
    fine = pa.table({"at": pa.array([10**9, 5000, None], pa.time64("ns"))})
    coarse = fine.cast(pa.schema([("at", pa.time64("us"))]))
    with DatabaseTable.of(*PLACES["duckdb"](fine)) as table:
        assert records_of(table.to_dataset()) == records_of(load(coarse))
    finer = pa.table({"at": pa.array([10**9, 1], pa.time64("ns"))})
    with pytest.raises(DataError, match="'at': 1 row is finer than microseconds"):
        DatabaseTable.of(*PLACES["duckdb"](finer))


# ---- Parquet files


@contextmanager
def both(path: Path) -> Iterator[list[Any]]:
    """Open a file in memory and by DuckDB."""
    with open_database(str(path)) as table:
        yield [load(path), table]


def test_parts_of_a_parquet_file_may_be_empty(tmp_path: Path) -> None:
    content = pa.table({"x": [1, 2], "word": ["a", None]})
    empty = content.slice(0, 0)
    with pq.ParquetWriter(tmp_path / "a.parquet", content.schema) as file:
        for each in (empty, content, empty):
            file.write_table(each)
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 3
    with both(tmp_path / "a.parquet") as (memory, table):
        assert memory.rows() == [(1, "a"), (2, None)]
        assert records_of(table.to_dataset()) == records_of(memory)
    pq.write_table(empty, tmp_path / "b.parquet")
    with open_database(str(tmp_path)) as table:
        assert table.records == 2
    for how in (load, open_database):
        with pytest.raises(DataError, match="the table has no records"):
            how(str(tmp_path / "b.parquet"))


def test_pages_of_rows_that_are_not_counted_are_not_read(tmp_path: Path) -> None:
    """A file that says of its only part that it is empty, though pages are there."""
    rows, written = 77_777, io.BytesIO()
    pq.write_table(pa.table({"x": np.arange(rows)}), written, row_group_size=rows)
    content = written.getvalue()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:].replace(_varint(rows), _varint(0, len(_varint(rows))))
    (tmp_path / "a.parquet").write_bytes(content[:start] + footer)
    assert pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0).num_values == 0
    for how in (load, open_database):
        with pytest.raises(DataError, match="the table has no records"):
            how(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("names", [("", "x"), ("x", "", "y", ""), ("x", "x"), ("x", "C1", "")])
def test_columns_that_duckdb_renames_are_called_as_in_memory(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    columns = [pa.array([at + 5, at + 9]) for at, _ in enumerate(names)]
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(pa.table(columns, names=[*names]), tmp_path / name)
    with both(tmp_path / "a.parquet") as (memory, table):
        assert table.schema == memory.schema
        assert table.remarks.assumed == memory.remarks.assumed
        assert records_of(table.to_dataset()) == records_of(memory)
    with open_database(str(tmp_path)) as table:
        assert table.schema == memory.schema
        assert table.records == 4
    pq.write_table(pa.table(columns, names=[*names[1:], "other"]), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="have the same columns"):
        open_database(str(tmp_path))


def test_columns_that_only_some_files_have_are_not_left_out(tmp_path: Path) -> None:
    for place, names in enumerate((["b", "a"], ["a", "c", "b"], ["a", "b"])):
        columns = [pa.array([place, 7])] * len(names)
        pq.write_table(pa.table(columns, names=names), tmp_path / f"p{place}.parquet")
    with pytest.raises(DataError, match="have the same columns"):
        open_database(str(tmp_path))
    (tmp_path / "p1.parquet").unlink()
    with open_database(str(tmp_path)) as table:  # in any order
        assert table.records == 4


def test_names_that_differ_only_by_case_are_refused_by_duckdb(tmp_path: Path) -> None:
    content = pa.table({"a": [1, 2], "A": [30, 40], "Ä": [5, 6], "ä": [7, 8]})
    pq.write_table(content, tmp_path / "t.parquet")
    lines = [",".join(content.column_names), *(",".join(map(str, each)) for each in rows(content))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("t.parquet", "t.csv"):
        path = tmp_path / name
        assert load(path).rows() == [(1, 30, 5, 7), (2, 40, 6, 8)]
        with pytest.raises(DataError, match=r"'a' and 'A' differ only by case.*engine memory"):
            open_database(str(path))
    pq.write_table(content.select(["Ä", "ä"]), tmp_path / "t.parquet")
    with both(tmp_path / "t.parquet") as (memory, table):
        assert records_of(table.to_dataset()) == records_of(memory)


def rows(content: pa.Table) -> list[tuple[Any, ...]]:
    return [*zip(*(each.to_pylist() for each in content.columns), strict=True)]
