"""The same in ClickHouse, in a folder of chDB."""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from contracts import InProcess, check_counts
from databases import (
    HOSTILE,
    VARIABLES,
    Place,
    check_codes,
    check_hostile,
    check_hostile_names,
    contents,
    counter_in,
    in_engine,
    mixed,
    quoted,
    records_of,
)
from servers import absent
from test_counting import TABLE, tables_with_batches
from thinveil import Categories, Curator, Schema, audit, idp, load
from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.engines.clickhouse import ClickHouse
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes, QueryBatch
from worlds import examples

pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("chdb") is None:
        absent("chDB is not installed")
    return tmp_path_factory.mktemp("chdb") / "it's [a] 100% größe"


@pytest.fixture(scope="module")
def owner(folder: Path) -> Iterator[Any]:
    """A connection that may write; chDB has one folder open in a process."""
    import chdb

    connection = chdb.connect(str(folder))
    connection.query("CREATE TABLE first (x Int64) ENGINE = MergeTree ORDER BY x")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def engine(folder: Path, owner: Any) -> Iterator[ClickHouse]:
    opened = ClickHouse.connect("", str(folder), "here")
    yield ClickHouse(opened._connection)
    opened.close()


@pytest.fixture(scope="module")
def place(owner: Any, engine: ClickHouse) -> Place:
    def put(content: pa.Table, name: str = "a`; drop table x; --") -> Any:
        there = _quoted(name)
        owner.query(f"DROP TABLE IF EXISTS {there}")
        listed = ", ".join(
            f"{_quoted(column)} Nullable({_type(kind)})"
            for column, kind in zip(content.column_names, content.schema.types, strict=True)
        )
        owner.query(f"CREATE TABLE {there} ({listed}) ENGINE = MergeTree ORDER BY tuple()")
        plain = content.rename_columns([f"x{each}" for each in range(content.num_columns)])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, plain.schema) as stream:
            stream.write_table(plain)
        columns = ", ".join(f"x{each}" for each in range(content.num_columns))
        kinds = ", ".join(
            f"x{at} Nullable({_type(kind)})" for at, kind in enumerate(content.schema.types)
        )
        owner.query(f"CREATE OR REPLACE TABLE plain ({kinds}) ENGINE = Memory")
        with owner.send_insert(f"INSERT INTO plain ({columns})", "ArrowStream") as sent:
            sent.append(sink.getvalue().to_pybytes())
            sent.finish()
        owner.query(f"INSERT INTO {there} SELECT * FROM plain")
        owner.query("DROP TABLE plain")
        return in_engine(engine, name)

    return put


def _quoted(name: str) -> str:
    return quoted(name.replace("\\", "\\\\"), "`")


def _type(kind: Any) -> str:
    if pa.types.is_decimal(kind):
        return f"Decimal({kind.precision}, {kind.scale})"
    known = {
        pa.int32(): "Int32",
        pa.int64(): "Int64",
        pa.float32(): "Float32",
        pa.float64(): "Float64",
        pa.bool_(): "Bool",
        pa.date32(): "Date32",
        pa.string(): "String",
    }
    return known.get(kind, "DateTime64(6, 'UTC')")


@pytest.fixture(scope="module")
def counter(place: Place) -> Counter:
    return counter_in(place, TABLE)


class TestContract(InProcess):
    """The suite of all databases."""


@examples(50)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(place: Place, content: pa.Table) -> None:
    check_codes(place, content)


@examples(50)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(place: Place, case: tuple[Codes, list[QueryBatch]]) -> None:
    check_counts(place, case)


def test_names_and_texts_are_nothing_but_themselves(place: Place) -> None:
    check_hostile(place, (*HOSTILE, *VARIABLES))


def test_a_name_means_the_one_table_that_has_it(owner: Any, engine: ClickHouse) -> None:
    def make(name: str, number: int) -> None:
        there = f"CREATE TABLE hostile.{_quoted(name)} (x Int64) ENGINE = MergeTree ORDER BY x"
        owner.query(there)
        owner.query(f"INSERT INTO hostile.{_quoted(name)} VALUES ({number})")

    owner.query("CREATE DATABASE hostile")
    engine.run("USE hostile")
    check_hostile_names(lambda: engine, make)
    engine.run("USE default")
    owner.query("DROP DATABASE hostile")


def test_an_audit_by_address_ends_exact_and_leaves_nothing(
    folder: Path, owner: Any, place: Place
) -> None:
    place(mixed(60).select([0, 2, 3, 4, 7]), "people")  # type: ignore[call-arg]
    before = _files(folder)
    with open_database(f"chdb://{folder}", "default.people") as table:
        verdict = audit(Curator(table, idp()), truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
        with pytest.raises(Exception, match="readonly"):
            table._session.engine.run("INSERT INTO first VALUES (1)")
    assert _files(folder) == before


def _files(folder: Path) -> dict[str, int]:
    return {str(each): each.stat().st_mtime_ns for each in folder.rglob("*") if each.is_file()}


def test_values_that_only_clickhouse_has(owner: Any, engine: ClickHouse) -> None:
    owner.query(
        "CREATE OR REPLACE TABLE odd (l LowCardinality(Nullable(String)), f FixedString(4), "
        "e Enum8('b' = 1, 'a' = 2), u UInt64, d Date, t DateTime('Asia/Tokyo'), "
        "n DateTime64(9, 'Asia/Tokyo'), i UUID, w Decimal(70, 3), h Float32, "
        "m Int64 MATERIALIZED 1, a Int64 ALIAS 2) ENGINE = MergeTree ORDER BY tuple()"
    )
    owner.query(
        "INSERT INTO odd VALUES (NULL, 'ab', 'a', 4000000000000000000, '2020-02-29', "
        "'2020-01-01 10:00:00', '2020-01-01 10:00:00', '00000000-0000-0000-0000-000000000001', "
        "1.25, 0.1)"
    )
    with DatabaseTable.of(*in_engine(engine, "odd")) as table:
        hour = dt.datetime(2020, 1, 1, 1)
        assert table.to_dataset().rows() == [
            (
                None, "ab", "a", 4 * 10**18, dt.date(2020, 2, 29), hour, hour,
                f"{0:08}-0000-0000-0000-{1:012}", Decimal("1.25"), Decimal("0.1"),
            )
        ]  # fmt: skip
    for kind, value, words in (
        ("Array(Int64)", "[77]", r"'the column' has the type array\(int64\)"),
        ("Int128", "77", "'the column' has the type int128"),
        ("DateTime64(9)", "'2020-01-01 10:00:00.123456789'", "too fine"),
        ("Float64", "inf", "1 row is infinite"),
        ("Int64 DEFAULT length(file('/etc/hostname'))", "77", "calls a function"),
    ):
        owner.query(
            f"CREATE OR REPLACE TABLE strange (`the column` {kind}) ENGINE = MergeTree "
            f"ORDER BY tuple() AS SELECT {value} AS `the column`"
        )
        with pytest.raises(DataError, match=words) as caught:
            DatabaseTable.of(*in_engine(engine, "strange"))
        assert value.strip("'") not in str(caught.value).replace("infinite", "")


def test_a_default_that_reads_an_alias_reads_no_file(
    owner: Any, engine: ClickHouse, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("s3cr3tX")
    called = f"file('{tmp_path}/secret.txt')"
    owner.query("CREATE OR REPLACE TABLE old (n Int64) ENGINE = MergeTree ORDER BY n")
    owner.query("INSERT INTO old VALUES (1)")
    for added in (
        f"y String ALIAS {called}",
        "z String DEFAULT 'it''s (\\'' ",
        "d Int64 DEFAULT -5",
    ):
        owner.query(f"ALTER TABLE old ADD COLUMN {added}")
    with DatabaseTable.of(*in_engine(engine, "old")) as table:
        assert table.to_dataset().rows() == [(1, "it's ('", -5)]
    for way in ("DEFAULT y", "MATERIALIZED `y`", "DEFAULT 'a' || y || 'b'"):
        owner.query(f"ALTER TABLE old ADD COLUMN x String {way}")
        with pytest.raises(
            DataError, match=r"'[xy]' has a default that calls a function"
        ) as caught:
            DatabaseTable.of(*in_engine(engine, "old"))
        assert "s3cr3tX" not in str(caught.value)
        owner.query("ALTER TABLE old DROP COLUMN x")


def test_decimals_keep_the_zeros_at_their_end(place: Place) -> None:
    values = [Decimal("1.10"), Decimal("-99.00"), None]
    content = pa.table({"x": pa.array(values, pa.decimal128(10, 2))})
    for missing in (("-99.00",), ("-99",), ("1.1",)):
        with DatabaseTable.of(*place(content), reading=Reading(missing=missing)) as table:
            assert records_of(table.to_dataset()) == records_of(load(content, missing=missing))
    schema = Schema((Categories("x", ("1.10", "-99.00"), missing=True),))
    with DatabaseTable.of(*place(content), schema) as table:
        assert records_of(table.to_dataset()) == records_of(load(content, schema))


def test_odd_numbers_are_those_of_memory(owner: Any, engine: ClickHouse, place: Place) -> None:
    for values, kind in (
        ([-0.0, 0.0, 1 / 3], pa.float64()),
        ([2**62, 1, None], pa.int64()),
        ([Decimal(10**18), Decimal("0.5")], pa.decimal128(38, 1)),
        ([Decimal(7), Decimal("0.5")], pa.decimal128(38, 20)),
    ):
        check_codes(place, pa.table({"x": pa.array(values, kind)}))
    content = pa.table({"x": [0.0, 0.5, float("inf"), float("-inf")]})
    missing = ("inf", "-inf", "0.5")
    with DatabaseTable.of(*place(content), reading=Reading(missing=missing)) as table:
        assert records_of(table.to_dataset()) == records_of(load(content, missing=missing))
    owner.query("CREATE OR REPLACE TABLE wide (x UInt64) ENGINE = Memory")
    owner.query(f"INSERT INTO wide VALUES ({2**64 - 1}), (7)")
    expected = load(pa.table({"x": pa.array([2**64 - 1, 7], pa.uint64())}))
    with DatabaseTable.of(*in_engine(engine, "wide")) as table:
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)


def test_views_and_other_tables_of_files_are_not_read(owner: Any, folder: Path) -> None:
    owner.query("CREATE OR REPLACE VIEW hosts AS SELECT * FROM file('/etc/hosts', 'LineAsString')")
    owner.query("CREATE TABLE IF NOT EXISTS named (x String) ENGINE = File(CSV)")
    for name in ("hosts", "named", "nothing", "system.users"):
        with pytest.raises(DataError, match="there is no table"):
            open_database(f"chdb://{folder}", name)
    with pytest.raises(UsageError, match="which table"):
        open_database(f"chdb://{folder}")


def test_what_cannot_be_opened_is_said(owner: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "a?b" / "store").mkdir(parents=True)
    for path, words in (
        (tmp_path, "a process can open one folder"),
        (tmp_path / "a?b", "with a [?] in its path"),
        (tmp_path / "nothing", "this is no folder of chDB"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            open_database(f"chdb://{path}", "x")
        assert caught.value.__cause__ is None
