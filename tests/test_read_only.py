"""Databases in which nothing may be stored: the same codes, counts and audits, by scanning."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given

from databases import (
    COLLATED,
    HOSTILE,
    PLACES,
    VARIABLES,
    Place,
    check_codes,
    check_collated,
    check_every_kind,
    check_hostile,
    contents,
    from_codes,
    in_duckdb,
    in_engine,
    in_sqlite,
    mixed,
)
from servers import postgres
from test_counting import TABLE, tables_with_batches
from thinveil import Curator, Schema, audit, idp, load
from thinveil.commands.main import cli
from thinveil.commands.shared.resuming import recorded_origin
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database.checking import check_joined
from thinveil.curator.database.engines.duckdb import DuckDB
from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.engines.sqlite import SQLite
from thinveil.curator.database.session import Session
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.curator.database.words import Rows, column
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes, QueryBatch
from thinveil.language.schema import Categories
from worlds import examples, ranges


def storing_nothing(place: Place) -> Place:
    """Put tables where a place puts them, and store nothing from then on."""

    def put(content: pa.Table) -> Any:
        session, rows = place(content)
        session.store_nothing()
        return session, rows

    return put


@pytest.fixture(params=["duckdb", "sqlite"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "duckdb":
        base: Any = duckdb.connect()
        yield storing_nothing(in_duckdb(base))
    else:
        base = sqlite3.connect(":memory:", check_same_thread=False)
        yield storing_nothing(in_sqlite(base))
    base.close()


def test_a_table_of_every_kind(place: Place) -> None:
    check_every_kind(place, 8)


@pytest.mark.parametrize("name", list(PLACES))
@examples(20)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(name: str, content: pa.Table) -> None:
    check_codes(storing_nothing(PLACES[name]), content)


@pytest.mark.parametrize("name", list(PLACES))
@examples(30)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(name: str, case: tuple[Codes, list[QueryBatch]]) -> None:
    codes, batches = case
    with DatabaseTable.of(*storing_nothing(PLACES[name])(from_codes(codes))) as table:
        scan, counter = ScanCounter(codes), table.counter()
        for batch in [*batches, *batches]:
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


def test_names_and_texts_are_nothing_but_themselves(place: Place) -> None:
    names = (each for each in (*HOSTILE, *VARIABLES) if "\0" not in each)  # which no name can hold
    check_hostile(place, names)


@pytest.mark.parametrize("name", list(PLACES))
def test_the_same_audit_as_with_temporary_tables(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = mixed(40).select([0, 2, 3, 4, 7])
    found = []
    for put in (PLACES[name], storing_nothing(PLACES[name])):
        with DatabaseTable.of(*put(content)) as table:
            verdict = audit(Curator(table, idp()), truth=load(content))
            assert verdict.score is not None
            assert verdict.score.exact
            extremes = [each.tolist() for each in table.extremes()]
            found.append((table.digest(), extremes, verdict.run.meter.queries))
        monkeypatch.setattr(Session, "_name", None)  # what names a temporary table
    assert found[0] == found[1]


def test_statements_stay_short(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    plain = Session.codes

    def watched(self: Session, statement: str, width: int) -> Codes:
        sent.append(statement)
        return plain(self, statement, width)

    monkeypatch.setattr(Session, "codes", watched)
    for engine in (DuckDB, SQLite):
        monkeypatch.setattr(engine, "longest", 12_000)
    with DatabaseTable.of(*place(from_codes(TABLE))) as table:
        boxes = 3000
        batch = ranges([each % 2 for each in range(boxes)], [0] * boxes, [4] * boxes, [0] * boxes)
        counts = table.counter().count(batch)
    assert counts.tolist() == ScanCounter(TABLE).count(batch).tolist()
    assert len(sent) > 3
    assert max(map(len, sent)) < 12_000


def test_more_texts_than_a_statement_lists_are_joined(place: Place) -> None:
    texts = ["nul\0", "nul", *(f"it's {each}" for each in range(98))]
    content = pa.table({"text": texts, "x": list(range(100))})
    expected = load(
        content, Schema((Categories("text", (*texts, "else")), load(content).schema[1]))
    )
    with DatabaseTable.of(*place(content), expected.schema) as table:
        scan, counter = ScanCounter(expected.codes), table.counter()
        for batch in (ranges([0], [3], [50], [0]), ranges([1], [3], [50], [0])):
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


def test_statements_stay_short_besides_their_lists_of_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lists that leave room to boxes are counted, and longer ones leave them a share."""
    sent: list[str] = []

    def watched(self: DuckDB, statement: str, width: int) -> Codes:
        sent.append(statement)
        return np.empty((0, width), np.int64)

    monkeypatch.setattr(DuckDB, "codes", watched)
    texts = [f"a long text {each}" for each in range(300)]
    content = pa.table({"x": texts, "y": [f"{each}!" for each in texts]})
    boxes = 2000
    batch = ranges([each % 2 for each in range(boxes)], [0] * boxes, [4] * boxes, [0] * boxes)
    with DatabaseTable.of(*storing_nothing(PLACES["duckdb"])(content)) as table:
        lists = len(table._session.sql(table._codes))
        for longest, most in ((2 * lists, 2 * lists), (lists // 2, lists + lists // 2)):
            monkeypatch.setattr(DuckDB, "longest", longest)
            sent.clear()
            table.counter().count(batch)
            assert len(sent) > 1
            assert max(map(len, sent)) <= most


@pytest.mark.parametrize("texts", [20_000, 33_000, 50_000])
def test_sqlite_looks_many_texts_up_by_an_index(texts: int) -> None:
    """Of 32,766 rows in one list, 3.40 would look at each for each record."""
    engine = SQLite(sqlite3.connect(":memory:"))
    engine.run("CREATE TABLE held (x TEXT)")
    numbers = np.arange(texts)
    listed = engine.inline({"key": [f"text {each}" for each in range(texts)], "code": numbers})
    joined = f'SELECT sum(m."code") FROM held LEFT JOIN {listed} AS m ON (x || \'\') = m."key"'
    plan = [row[3] for row in engine.rows(f"EXPLAIN QUERY PLAN {joined}")]
    assert any("USING AUTOMATIC" in each for each in plan)
    engine.run("INSERT INTO held VALUES ('text 7'), ('text 19999'), ('none')")
    assert engine.rows(joined) == [(20_006,)]
    engine._connection.close()


# ---- collations


def _collated(name: str, collation: str) -> Any:
    """Return what opens a table whose column has a collation."""
    base: Any = duckdb.connect() if name == "duckdb" else sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE collated (x VARCHAR COLLATE {collation})")
    base.executemany("INSERT INTO collated VALUES (?)", [(each,) for each in COLLATED])
    base.commit()
    ((kept,),) = base.execute("SELECT count(DISTINCT x) FROM collated").fetchall()
    assert kept < len(COLLATED)
    return lambda: in_engine((DuckDB if name == "duckdb" else SQLite)(base), "collated")


@pytest.mark.parametrize(
    ("name", "collation"),
    [
        ("duckdb", "NOCASE"),
        ("duckdb", "NOCASE.NOACCENT"),
        ("sqlite", "NOCASE"),
        ("sqlite", "RTRIM"),
    ],
)
def test_texts_are_told_apart_whatever_their_collation(name: str, collation: str) -> None:
    check_collated(_collated(name, collation))


def test_rows_that_lists_of_texts_multiply_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema, opened = Schema((Categories("x", COLLATED),)), _collated("duckdb", "NOCASE")
    session, rows = opened()
    plain = rows.select({"x0": column("x")})

    def joined(texts: int) -> Rows:
        sent = session.put({"key": ["a"] * texts}).at("m0")
        return Rows(plain.query.join(sent, on="TRUE", join_type="left"), ("c0",))

    check_joined(session, plain, plain, 7, "here")  # nothing is joined
    check_joined(session, plain, joined(1), 7, "here")  # others wrote between two statements
    with pytest.raises(DataError, match="6 rows became 12 when texts were looked up"):
        check_joined(session, plain, joined(2), 12, "here")
    monkeypatch.setattr(DuckDB, "plain", Engine.plain)  # which leaves a text its collation
    with pytest.raises(DataError, match="6 rows became 8 when texts were looked up"):
        DatabaseTable.of(session, rows, schema)


def test_a_file_shows_no_single_state_and_the_remark_says_so(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(mixed(20).select([0, 2]), path)
    with open_database(str(path), temporary_tables=False) as table:
        assert any("as long as nobody writes" in each for each in table.remarks.assumed)
    with open_database(str(path)) as table:
        assert not table.remarks.assumed


def test_the_option_is_kept_for_a_run_that_is_resumed(tmp_path: Path) -> None:
    base, kept = tmp_path / "a.duckdb", tmp_path / "run.transcript"
    with duckdb.connect(str(base)) as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS x FROM range(20)")
    words = ["audit", f"duckdb://{base}", "--no-temporary-tables"]
    done = CliRunner().invoke(cli, [*words, "--transcript", str(kept)], obj=[])
    assert done.exit_code in (0, 1), done.output
    assert recorded_origin(kept, None)["no_temporary_tables"] is True
    refused = CliRunner().invoke(cli, ["audit", "--no-temporary-tables"], obj=[])
    assert isinstance(refused.exception, (UsageError, SystemExit))
    assert refused.exit_code != 0


# ---- PostgreSQL


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as at:
        yield at


@pytest.fixture
def reader(address: str) -> Iterator[Callable[[str], str]]:
    """Return the address of a role that may do nothing but read some tables."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS seen; DROP ROLE IF EXISTS reader")
        base.execute("CREATE TABLE seen AS SELECT x % 7 AS x, 'it''s ' || x % 3 AS t "
                     "FROM generate_series(1, 60) AS x")  # fmt: skip
        base.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON seen TO reader")
        base.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")

        def told(statement: str = "") -> str:
            if statement:
                base.execute(statement)
            return address.replace("thinveil@", "reader@")

        yield told
        base.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")
        base.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_user_who_may_only_read(address: str, reader: Any) -> None:
    with open_database(address, "seen") as table:
        expected = (table.digest(), sorted(table.to_dataset().rows()))
        assert not table.remarks.assumed
    with open_database(reader(), "seen") as table:
        assert any("scans the whole table" in each for each in table.remarks.assumed)
        assert (table.digest(), sorted(table.to_dataset().rows())) == expected
        verdict = audit(Curator(table, idp()), truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
    at = reader("REVOKE SELECT ON seen FROM reader")
    with pytest.raises(DataError, match="that you may read it"):
        open_database(at, "seen")


def test_a_session_that_only_reads(address: str, reader: Any) -> None:
    at = f"{address}?options=-cdefault_transaction_read_only%3Don"
    with open_database(at, "seen") as table:
        assert any("scans the whole table" in each for each in table.remarks.assumed)
        assert len(table.to_dataset().rows()) == 60


def test_others_write_meanwhile(address: str, reader: Any) -> None:
    with open_database(address, "seen", temporary_tables=False) as table:
        counter, before = table.counter(), table.digest()
        batch = ranges([0], [3], [4], [0])
        counts = counter.count(batch).tolist()
        reader("DELETE FROM seen WHERE x = 3")
        assert counter.count(batch).tolist() == counts
        object.__setattr__(table, "_digest", "")
        assert table.digest() == before
    with open_database(address, "seen", temporary_tables=False) as table:
        assert table.counter().count(batch).tolist() == [0]


def test_every_kind_in_postgres(address: str) -> None:
    import psycopg

    from test_postgres import _type

    content = mixed(60)
    names = [f"c{place}" for place in range(content.num_columns)]
    content = content.rename_columns(names)
    with psycopg.connect(address, autocommit=True) as base:
        pairs = zip(names, map(_type, content.schema.types), strict=True)
        base.execute(f"CREATE TABLE every ({', '.join(map(' '.join, pairs))})")
        with base.cursor() as cursor, cursor.copy("COPY every FROM STDIN") as copy:
            for row in zip(*(each.to_pylist() for each in content.columns), strict=True):
                copy.write_row(row)
    with open_database(address, "every", temporary_tables=False) as table:
        expected = load(content)
        assert table.schema == expected.schema
        assert sorted(table.to_dataset().codes.tolist()) == sorted(expected.codes.tolist())
        verdict = audit(Curator(table, idp()), truth=expected)
        assert verdict.score is not None
        assert verdict.score.exact
