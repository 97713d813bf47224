"""Tables that stay in DuckDB and SQLite: the same schema, codes, counts and audits as in memory."""

from __future__ import annotations

import datetime as dt
import importlib.util
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from databases import (
    PLACES,
    Place,
    batches_for,
    check_codes,
    check_every_kind,
    contents,
    from_codes,
    in_engine,
    mixed,
    quoted,
    records_of,
)
from test_counting import tables_with_batches
from thinveil import Categories, Curator, Grid, Schema, audit, idp, load
from thinveil.auditing.sources import kind_of
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database import checking, engines
from thinveil.curator.database.engines import duckdb as duckdb_engine
from thinveil.curator.database.engines.duckdb import DuckDB
from thinveil.curator.database.engines.sqlite import SQLite
from thinveil.curator.database.fields import counts_of
from thinveil.curator.database.ibis_tables import of_ibis
from thinveil.curator.database.session import Session
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError, MissingExtra, TargetError, TranscriptError, UsageError
from thinveil.language.queries import Cells, Codes, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, MISSING
from thinveil.passwords import shown
from worlds import examples, ranges, sweep

SECRET = "s3cr3t"


@pytest.fixture(params=list(PLACES.values()), ids=list(PLACES))
def place(request: pytest.FixtureRequest) -> Place:
    chosen: Place = request.param
    return chosen


def on_both(test: Callable[..., None]) -> Callable[..., None]:
    """Run a costly test on DuckDB always, and on SQLite at night."""
    places = sweep(PLACES.values(), len(PLACES))
    marked: Callable[..., None] = pytest.mark.parametrize("place", places, ids=PLACES)(test)
    return marked


def held(
    place: Place, schema: Schema | None = None, missing: Any = (), **columns: Any
) -> DatabaseTable:
    return DatabaseTable.of(*place(pa.table(columns)), schema, Reading(missing=missing))


# ---- the same as in memory


@on_both
@examples(50)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(place: Place, content: pa.Table) -> None:
    check_codes(place, content)


@pytest.mark.parametrize("batches", sweep([8, 20], 2))
def test_a_table_of_every_kind(place: Place, batches: int) -> None:
    check_every_kind(place, batches)


@on_both
@examples(50)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(place: Place, case: tuple[Codes, list[QueryBatch]]) -> None:
    codes, batches = case
    with DatabaseTable.of(*place(from_codes(codes))) as table:
        scan, counter = ScanCounter(codes), table.counter()
        for batch in [*batches, *batches, *(each for each in batches for _ in range(2))]:
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


def test_cells_of_very_many_shapes(place: Place) -> None:
    rng = np.random.default_rng(3)
    codes = np.asfortranarray(rng.integers(-3, 4, (80, 5)))
    whole = (MISSING, INFINITE)
    boxes = [
        {
            column: [(value, value + 1), whole, (value, value + 3)][rng.integers(3)]
            for column, value in enumerate(codes[rng.integers(80)].tolist())
        }
        for _ in range(60)
    ]
    batch = batch_of([([box], 0) for box in boxes])
    with DatabaseTable.of(*place(from_codes(codes))) as table:
        assert table.counter().count(batch).tolist() == ScanCounter(codes).count(batch).tolist()


def test_more_tables_at_once_than_are_kept(place: Place) -> None:
    rng = np.random.default_rng(4)
    codes = np.asfortranarray(rng.integers(-2, 3, (60, 8)))
    low = np.full((8, 3), MISSING)
    high = np.full((8, 3), INFINITE)
    for shape in range(8):  # each cell fixes other columns
        fixed = [column for column in range(3) if shape >> column & 1]
        low[shape, fixed], high[shape, fixed] = codes[shape, fixed], codes[shape, fixed] + 1
    cell, column = (each.ravel() for each in np.meshgrid(np.arange(8), np.arange(3, 8)))
    zeros = np.zeros(40, np.int64)
    batch = QueryBatch(Cells((0, 1, 2), low, high), cell, column, zeros - 1, zeros + 1, zeros)
    with DatabaseTable.of(*place(from_codes(codes))) as table:
        counter = table.counter()
        for _ in range(3):
            assert counter.count(batch).tolist() == ScanCounter(codes).count(batch).tolist()


SCHEMAS: dict[str, tuple[Any, Any, Any]] = {
    "whole numbers in fives": ([5, -10, None], Grid("x", step=Decimal(5), missing=True), ()),
    "whole numbers in twentieths": ([5, -10], Grid("x", "decimal", Decimal("0.05")), ()),
    "floats in steps of 2.5": ([2.5, -7.5, 0.0], Grid("x", "decimal", Decimal("2.5")), ()),
    "decimals in fives": (
        [Decimal("0.05"), Decimal("1.10")],
        Grid("x", "decimal", Decimal("0.05")),
        (),
    ),
    "days in weeks": (
        [dt.date(1970, 1, 8), dt.date(1969, 12, 25)],
        Grid("x", "date", Decimal(7)),
        (),
    ),
    "days as moments": ([dt.date(2020, 2, 29)], Grid("x", "datetime", Decimal(3600)), ()),
    "moments as days": ([dt.datetime(2020, 2, 29)], Grid("x", "date"), ()),
    "numbers as categories": ([3, 1, 3], Categories("x", ("3", "2", "1")), ()),
    "days as categories": ([dt.date(2020, 2, 29)], Categories("x", ("2020-02-29",)), ()),
    "flags as categories": ([True, False], Categories("x", ("true", "false")), ()),
    "texts as numbers": ([" 7", "1e2"], Grid("x"), ()),
    "texts as days": (["2020-02-29"], Grid("x", "date"), ()),
    "missing numbers": ([-1, 5], Grid("x", missing=True), ("-1", "x")),
    "missing floats": ([-1.0, 5.5], Grid("x", "decimal", Decimal("0.5"), missing=True), ("-1",)),
    "missing days": ([dt.date(1, 1, 1)], Grid("x", "date", missing=True), ("0001-01-01",)),
    "missing moments": (
        [dt.datetime(1, 1, 1, 1), dt.datetime(1, 1, 1, 2)],
        Grid("x", "datetime", missing=True),
        ("0001-01-01T01:00:00",),
    ),
    "missing texts": (["?", "a"], Categories("x", ("a",), missing=True), "?"),
}


@pytest.mark.parametrize("case", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_a_given_schema_codes_as_in_memory(place: Place, case: tuple[Any, Any, Any]) -> None:
    values, attribute, missing = case
    content, how = pa.table({"x": values}), Reading(missing=missing)
    expected = load(content, Schema((attribute,)), missing=missing)
    with DatabaseTable.of(*place(content), Schema((attribute,)), how) as table:
        assert records_of(table.to_dataset()) == records_of(expected)
    inferred = load(content, missing=missing)
    with DatabaseTable.of(*place(content), reading=how) as table:
        assert table.schema == inferred.schema


def test_the_order_of_columns_is_the_schema_s(place: Place) -> None:
    schema = Schema((Grid("b"), Grid("a")))
    with held(place, schema, a=[1, 2], b=[30, 40]) as table:
        assert sorted(table.to_dataset().rows()) == [(30, 1), (40, 2)]


MISFITS: dict[str, tuple[Any, Any, str]] = {
    "outside": ([4, 99, 98], Grid("x", lower=0, upper=9), "2 rows of column 'x' lie outside"),
    "missing": ([4, None], Grid("x"), "1 row of column 'x' has no value"),
    "category": (["a", SECRET], Categories("x", ("a",)), "1 row of column 'x' holds a text"),
    "step": ([5, 7], Grid("x", step=Decimal(5)), "1 row of column 'x' is not of kind"),
    "fine": ([0.5, 0.25], Grid("x", "decimal", Decimal("0.1")), "1 row of column 'x'"),
    "no number": (["1", SECRET], Grid("x"), "1 row of column 'x' is not of kind"),
    "too large": ([2**62, 1], Grid("x"), "1 row of column 'x'"),
    "too large for its decimals": ([2**61], Grid("x", "decimal", Decimal("0.1")), "1 row of"),
    "another kind": ([1, 2], Grid("x", "date"), "the schema says date"),
    "floats as categories": ([1.5], Categories("x", ("1.5",)), "the schema says category"),
}


@pytest.mark.parametrize("case", MISFITS.values(), ids=MISFITS.keys())
def test_what_does_not_fit_is_named_and_counted_but_not_shown(
    place: Place, case: tuple[Any, Any, str]
) -> None:
    values, attribute, words = case
    with pytest.raises(DataError, match=words) as caught:
        held(place, Schema((attribute,)), x=values)
    assert SECRET not in str(caught.value)


def test_columns_must_be_those_of_the_schema(place: Place) -> None:
    with pytest.raises(DataError, match="has a column 'y' that the schema does not describe"):
        held(place, Schema((Grid("x"),)), x=[1], y=[2])
    with pytest.raises(DataError, match="has no column 'z'"):
        held(place, Schema((Grid("x"), Grid("z"))), x=[1])


def test_what_no_grid_can_hold_is_refused(place: Place) -> None:
    for values, words in (
        ([0.1, float("inf")], "1 row is infinite"),
        (["inf", "1"], "infinite or have too many decimals"),
        (pa.array([], pa.int64()), "no records"),
    ):
        with pytest.raises(DataError, match=words):
            held(place, x=values)


# ---- what only one of them has


def test_types_of_duckdb() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT 4::hugeint h, 5::ubigint u, "
        "TIMESTAMP_NS '2020-01-01 10:00:00' n, TIMESTAMPTZ '2020-01-01 10:00:00+02' z, "
        "'a'::enum('b', 'a') e, NULL AS o, "
        "'00000000-0000-0000-0000-000000000001'::uuid i"
    )
    with DatabaseTable.of(*in_engine(DuckDB(connection), "t")) as table:
        hour = dt.datetime(2020, 1, 1, 10)
        assert table.to_dataset().rows() == [
            (4, 5, hour, hour - dt.timedelta(hours=2), "a", None, f"{0:08}-0000-0000-0000-{1:012}")
        ]
    for column, kind in (
        ("[1]", "int"),
        ("'x'::blob", "blob"),
        ("INTERVAL 1 DAY", "interval"),
    ):
        connection.execute(f'CREATE OR REPLACE TABLE t AS SELECT {column} AS "the column"')
        with pytest.raises(DataError, match=f"'the column' has the type {kind}"):
            DatabaseTable.of(*in_engine(DuckDB(connection), "t"))
    connection.execute(
        "CREATE OR REPLACE TABLE t AS SELECT TIMESTAMP_NS '2020-01-01 10:00:00.123456789' n"
    )
    with pytest.raises(DataError, match="too fine"):
        DatabaseTable.of(*in_engine(DuckDB(connection), "t"))
    connection.close()


def test_sqlite_is_told_by_what_it_stores() -> None:
    connection = sqlite3.connect(":memory:")
    run = connection.execute
    run("CREATE TABLE t (i INTEGER, c TEXT COLLATE NOCASE, n NUMERIC, b BOOLEAN, free)")
    run("INSERT INTO t VALUES ('seven', 'a', 1, 1, 1.5), (8, 'A', 2.5, 0, 'x')")
    with DatabaseTable.of(*in_engine(SQLite(connection), "t")) as table:
        assert sorted(table.to_dataset().rows(), key=str) == [
            ("8", "A", Decimal("2.5"), "false", "x"),
            ("seven", "a", Decimal("1.0"), "true", "1.5"),
        ]
    session, rows = in_engine(SQLite(connection), "t")
    with pytest.raises(DataError, match="1 row of column 'i'"):
        DatabaseTable.of(session, rows, Schema((Grid("i"),)), Reading(only=("i",)))
    run("UPDATE t SET i = x'00'")
    with pytest.raises(DataError, match="'i' has the type blob"):
        DatabaseTable.of(*in_engine(SQLite(connection), "t"))
    connection.close()


# ---- audits


def test_an_audit_ends_exact_by_one_statement_a_round(place: Place) -> None:
    content = mixed(40).select([0, 2, 3, 4, 7])
    with DatabaseTable.of(*place(content)) as table:
        verdict = audit(Curator(table, idp()), truth=load(content))
        assert verdict.score is not None
        assert verdict.score.exact
        columns = len(table.schema)
        opening, stage = 5 + columns, 4
        assert table.statements <= verdict.run.meter.rounds + stage * columns + opening


def test_a_connection_of_somebody_else_keeps_its_settings() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("CREATE TABLE t AS SELECT TIMESTAMPTZ '2020-01-01 10:00:00+09' AS z")
    with DatabaseTable.of(*in_engine(DuckDB(connection), "t")) as table:
        assert table.to_dataset().rows() == [(dt.datetime(2020, 1, 1, 1),)]
    ((zone,),) = connection.execute("SELECT current_setting('TimeZone')").fetchall()
    assert zone == "Asia/Tokyo"
    connection.close()


def test_no_record_is_fetched_unless_it_is_allowed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[Any] = []
    for name in ("rows", "codes"):
        plain = getattr(Session, name)

        def watched(self: Session, *args: Any, plain: Any = plain) -> Any:
            found = plain(self, *args)
            fetched.append(found)
            return found

        monkeypatch.setattr(Session, name, watched)
    content = mixed(30).select([0, 1, 5])  # whole numbers and floats: no list of categories
    with DatabaseTable.of(*place(content)) as table:
        opened = len(fetched)
        assert all(len(rows) == 1 for rows in fetched), "aggregates have one row"
        curator = Curator(table, idp())
        verdict = audit(curator)
        assert verdict.run.ending == "complete"
        digest, *counts = fetched[opened:]
        assert len(digest) == 1
        assert all(each.shape[1] == 2 for each in counts), "a box and its count"
        values = set(load(content).codes[:, 1].tolist()) - {MISSING}
        assert not values & {int(each) for rows in counts for each in rows[:, 1]}
        fetched.clear()
        table.to_dataset()
        assert fetched[0].shape == (30, 3)


def test_a_database_that_fails_ends_the_run(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.register("content", mixed(60).select([0, 2]))
    with DatabaseTable.of(*in_engine(DuckDB(connection), "content")) as table:
        counter = table.counter()
        connection.close()
        with pytest.raises(TargetError, match="failed while it counted") as caught:
            counter.count(ranges([0], [0], [3], [0]))
        assert caught.value.__cause__ is None


def test_a_run_is_resumed_on_the_same_content_only(tmp_path: Path) -> None:
    content = mixed(60).select([0, 2])
    kept, file = tmp_path / "run.transcript", tmp_path / "data.parquet"

    def stop(meter: Any, about: Any) -> None:
        if meter.rounds == 5:
            raise KeyboardInterrupt

    pq.write_table(content, file)
    with open_database(str(file)) as table:
        assert (
            audit(Curator(table, idp()), transcript=kept, observer=stop).run.ending == "interrupted"
        )
    pq.write_table(content.take(list(range(59, -1, -1))), file)  # in another order
    with open_database(str(file)) as table:
        verdict = audit(Curator(table, idp()), resume=kept, truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
    pq.write_table(content.slice(1), file)
    with open_database(str(file)) as table, pytest.raises(TranscriptError):
        audit(Curator(table, idp()), resume=kept)


def test_the_fingerprint_is_of_the_records_in_any_order() -> None:
    def digest(place: Place, rows: list[tuple[int | None, ...]]) -> str:
        columns = {
            f"c{at}": pa.array(each, pa.int64()) for at, each in enumerate(zip(*rows, strict=True))
        }
        with held(place, Schema((Grid("c0", missing=True), Grid("c1"))), **columns) as table:
            return table.digest()

    one, two = PLACES["duckdb"], PLACES["sqlite"]
    rows: list[tuple[int | None, ...]] = [(1, 2), (3, 4), (None, 2**61), (5, -(2**61))]
    base = digest(one, rows)
    assert base == digest(two, rows) == digest(one, rows[::-1])
    changed: list[list[tuple[int | None, ...]]] = [
        [*rows, rows[0]],
        rows[1:],
        [(1, 4), (3, 2), *rows[2:]],
        [(2, 1), *rows[1:]],
        [(1, 2), (3, 4), (0, 2**61), (5, -(2**61))],
        [(1, 3), (3, 3), *rows[2:]],
        [*rows[:2], (None, 2**61 - 1), rows[3]],
    ]
    found = {digest(each, every) for each in (one, two) for every in changed}
    assert len(found) == len(changed)
    assert base not in found


def test_several_threads_may_ask(tmp_path: Path) -> None:
    codes = load(mixed(80).select([0, 5])).codes
    batches = batches_for(codes, 2, 8)
    path = tmp_path / "table.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
    rows = [[None if each == MISSING else each for each in row] for row in codes.tolist()]
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    with open_database(f"sqlite://{path}") as table, ThreadPoolExecutor(4) as pool:
        counter = table.counter()
        found = pool.map(lambda batch: counter.count(batch).tolist(), batches * 3)
        assert list(found) == [ScanCounter(codes).count(batch).tolist() for batch in batches] * 3


# ---- addresses


def test_parquet_files_by_path_pattern_and_folder(tmp_path: Path) -> None:
    content = mixed(60)
    expected = load(content)
    folder = tmp_path / "it's [all]"
    (folder / "deeper").mkdir(parents=True)
    pq.write_table(content.slice(0, 20), folder / "a.parquet")
    pq.write_table(content.slice(20), folder / "deeper" / "b.pq")
    with open_database(str(folder)) as table:
        assert records_of(table.to_dataset()) == records_of(expected)
        assert table.schema == expected.schema
    pq.write_table(content.slice(0, 20), tmp_path / "c.parquet")
    pq.write_table(content.slice(20), tmp_path / "d.parquet")
    with open_database(str(tmp_path / "*.parquet")) as table:
        assert table.records == 60
    with open_database(str(tmp_path / "c.parquet")) as table:
        assert table.records == 20


@pytest.mark.parametrize(
    ("separator", "quote", "encoding"),
    [(",", '"', "utf-8"), (";", "'", "latin-1"), ("\t", "", "utf-8")],
)
def test_a_text_file_is_read_as_in_memory(
    tmp_path: Path, separator: str, quote: str, encoding: str
) -> None:
    q, s = quote, separator
    rows = [
        ["n", "it", "day", "t"],
        ["007", f"{q}a b{q}", "2020-02-29", "ß"],
        ["1e3", "NULL", "", "1"],
    ]
    path = tmp_path / "table.csv"
    path.write_bytes("".join(s.join(row) + "\n" for row in rows).encode(encoding))
    expected = load(path, quote=quote, encoding=encoding)
    with open_database(str(path), quote=quote, encoding=encoding) as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)


def test_database_files_are_read_and_not_changed(tmp_path: Path) -> None:
    name = 'a"; drop table x; --'
    for kind, connect in (("sqlite", sqlite3.connect), ("duckdb", duckdb.connect)):
        path = tmp_path / f"a b.{kind}"
        with connect(path) as connection:
            connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT 7 AS {quoted(name)}")
        connection.close()
        before = path.read_bytes()
        with open_database(f"{kind}://{path}") as table:
            assert table.schema.names == (name,)
            counter = table.counter()
            assert counter.count(ranges([0], [7], [8], [0])).tolist() == [1]
        assert path.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == [path.name]
        with connect(path) as connection:
            connection.execute("CREATE TABLE other AS SELECT 1 AS x")
        connection.close()
        with pytest.raises(UsageError, match=r"which table\? its tables are .*'other'"):
            open_database(f"{kind}://{path}")
        with open_database(f"{kind}://{path}", "other") as table:
            assert table.to_dataset().rows() == [(1,)]
        with pytest.raises(DataError, match="there is no table 'none'"):
            open_database(f"{kind}://{path}", "none")
        path.unlink()
        with pytest.raises(DataError, match="no such file"):
            open_database(f"{kind}://{path}")
        path.write_text("this is no database at all " * 1000)
        with pytest.raises(DataError, match="database"):
            open_database(f"{kind}://{path}")
        path.unlink()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_database(str(tmp_path / "*.parquet"))
    with pytest.raises(DataError, match="no Parquet files"):
        open_database(str(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(DataError, match="damaged"):
        open_database(str(tmp_path / "a.parquet"))
    (tmp_path / "b.csv").write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match=r"b\.csv"):
        open_database(str(tmp_path / "b.csv"))
    with pytest.raises(UsageError, match="Parquet files"):
        open_database(str(tmp_path / "[ab].*"))
    with pytest.raises(UsageError, match="--table"):
        open_database(str(tmp_path / "b.csv"), "b")


def test_passwords_are_never_shown() -> None:
    for address, plain in (
        (f"postgresql://ann:{SECRET}@host:1/db", "postgresql://ann@host:1/db"),
        (f"postgresql://host/db?user=ann&password={SECRET}", "postgresql://host/db?user=ann&"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        (f"postgres://ann:{SECRET}%40@host/db", "postgres://ann@host/db"),
        ("data/a:b@c.parquet", "data/a:b@c.parquet"),
    ):
        assert shown(address) == plain
    with pytest.raises(DataError, match="no connection") as caught:
        open_database(f"postgresql://ann:{SECRET}@127.0.0.1:1/db?connect_timeout=2", "t")
    assert SECRET not in repr(caught.value)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = PLACES["duckdb"](pa.table({"x": [1]}))
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlglot.expressions", None)
        for attempt in (
            lambda: DatabaseTable.of(*table),
            lambda: open_database(str(tmp_path / "a.parquet")),
        ):
            with pytest.raises(MissingExtra, match="databases"):
                attempt()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for address, extra in (
        ("spark://local[1]", "spark"),
        ("postgresql://host/db", "postgres"),
        (str(tmp_path / "a.parquet"), "databases"),
    ):
        with pytest.raises(MissingExtra, match=extra):
            open_database(address)


def test_other_things_are_refused() -> None:
    with pytest.raises(UsageError, match="give an Ibis table"):
        of_ibis([1, 2])
    mysql = SimpleNamespace(name="mssql")
    with pytest.raises(UsageError, match="mssql"):
        of_ibis(SimpleNamespace(columns=[], get_backend=lambda: mysql))


def test_a_table_larger_than_its_memory_is_spilled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = 1_000_000
    columns = {f"c{each}": rng.integers(-(2**60), 2**60, rows) for each in range(8)}
    columns["c3"] = rng.integers(-2_000, 2_000, rows)  # its groups fit, the table does not
    content = pa.table(columns)
    pq.write_table(content, tmp_path / "large.parquet", row_group_size=20_000)
    monkeypatch.setattr(duckdb_engine, "memory_limit", lambda: "48MiB")  # the codes alone take 54
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spill))
    values = content["c3"].to_numpy()
    with open_database(str(tmp_path / "large.parquet")) as table:
        assert table.counter().count(ranges([3, 3], [0, -5], [2**59, 2**40], [0, 0])).tolist() == [
            int(((values >= low) & (values < high)).sum())
            for low, high in ((0, 2**59), (-5, 2**40))
        ]
        assert any(spill.rglob("*"))
    assert not any(spill.iterdir())


def test_every_engine_is_a_file_and_known_by_its_address() -> None:
    folder = Path(engines.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "protocol"}
    assert {each.__module__.rpartition(".")[2] for each in engines.ENGINES} == files
    assert len(engines.ENGINES) == len(files)
    assert {*engines.BY_SCHEME.values()} == {*engines.ENGINES}
    for scheme in engines.BY_SCHEME:
        assert kind_of(f"{scheme.upper()}://somewhere") == "database"


def test_rows_that_fit_again_when_they_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody wrote to the table between two looks: nothing is taken for sound."""
    pq.write_table(pa.table({"age": [1, 200]}), tmp_path / "people.parquet")
    schema = Schema((Grid("age", lower=0, upper=120),))
    with pytest.raises(DataError, match="1 row of column 'age' lies outside the bounds"):
        open_database(str(tmp_path), schema=schema)
    looks = []

    def look(session: Session, rows: Any, tests: dict[str, Any]) -> dict[str, int]:
        looks.append(tests)
        found = counts_of(session, rows, tests)
        return found if len(looks) == 1 else dict.fromkeys(found, 0)

    monkeypatch.setattr(checking, "counts_of", look)
    with pytest.raises(DataError, match="was changed while it was read"):
        open_database(str(tmp_path), schema=schema)
    assert len(looks) == 2
