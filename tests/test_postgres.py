"""The same on a real PostgreSQL server, which the project starts by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given

from databases import (
    HOSTILE,
    VARIABLES,
    Place,
    check_codes,
    check_every_kind,
    check_hostile,
    check_hostile_names,
    contents,
    counter_in,
    from_codes,
    mixed,
    quoted,
)
from servers import postgres
from test_counting import (  # the contract of every counter, on this one
    TABLE,
    tables_with_batches,
    test_a_union_is_the_sum_of_its_boxes,
    test_an_unknown_cell_stays_empty_whatever_was_asked_before,
    test_cells_of_several_patterns_in_one_batch,
    test_coarse_cells_keep_missing_values_apart,
    test_empty_ranges_hold_nothing,
    test_infinite_ends,
    test_missing_values_lie_below_all_others,
    test_points_narrowed_by_a_range,
    test_single_ranges,
    test_unknown_values_hold_nothing,
    test_whole_cells_and_several_columns_in_one_batch,
)
from thinveil import Curator, audit, idp
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.session import Session
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes, QueryBatch
from thinveil.language.schema import Grid, Schema
from worlds import examples, ranges

CONTRACT = (
    test_a_union_is_the_sum_of_its_boxes,
    test_an_unknown_cell_stays_empty_whatever_was_asked_before,
    test_cells_of_several_patterns_in_one_batch,
    test_coarse_cells_keep_missing_values_apart,
    test_empty_ranges_hold_nothing,
    test_infinite_ends,
    test_missing_values_lie_below_all_others,
    test_points_narrowed_by_a_range,
    test_single_ranges,
    test_unknown_values_hold_nothing,
    test_whole_cells_and_several_columns_in_one_batch,
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as at:
        yield at


@pytest.fixture(scope="module")
def connection(address: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(address, autocommit=True) as raw:
        yield ibis.postgres.from_connection(raw)


@pytest.fixture(scope="module")
def place(connection: Any) -> Place:
    def put(content: pa.Table, name: str = 'a"; drop table x; --') -> Any:
        connection.con.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        listed = ", ".join(
            f"{quoted(column)} {_type(kind)}"
            for column, kind in zip(content.column_names, content.schema.types, strict=True)
        )
        connection.con.execute(f"CREATE TABLE {quoted(name)} ({listed})")
        with (
            connection.con.cursor() as cursor,
            cursor.copy(f"COPY {quoted(name)} FROM STDIN") as copy,
        ):
            for row in zip(*(each.to_pylist() for each in content.columns), strict=True):
                copy.write_row(row)
        return connection.table(name)

    return put


def _type(kind: Any) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    known = {
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.string(): "text",
    }
    return known.get(kind, "timestamp")


@pytest.fixture(scope="module")
def counter(place: Place) -> Counter:
    return counter_in(place, TABLE)


def test_a_table_of_every_kind(place: Place) -> None:
    check_every_kind(place)


@pytest.mark.nightly
@examples(30)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(place: Place, content: pa.Table) -> None:
    check_codes(place, content)


@examples(30)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(place: Place, case: tuple[Codes, list[QueryBatch]]) -> None:
    codes, batches = case
    with DatabaseTable.of(place(from_codes(codes))) as table:
        scan, counter = ScanCounter(codes), table.counter()
        for batch in [*batches, *(each for each in batches for _ in range(2))]:
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


def test_names_and_texts_are_nothing_but_themselves(place: Place) -> None:
    names = (*HOSTILE, *VARIABLES)
    check_hostile(place, names, without="\0")  # which no text in PostgreSQL can hold


def test_a_name_means_the_one_table_that_has_it(connection: Any) -> None:
    def make(name: str, number: int) -> None:
        connection.con.execute(f"CREATE TABLE hostile.{quoted(name)} AS SELECT {number} AS x")

    def opened() -> Engine:
        connection.con.execute("SET search_path = hostile")  # opening a table leaves it
        return Session(connection).engine

    connection.con.execute("CREATE SCHEMA hostile")
    check_hostile_names(opened, make, without="\0")
    connection.con.execute("DROP SCHEMA hostile CASCADE; RESET search_path")


def test_an_audit_by_address_ends_exact_and_leaves_nothing(
    address: str, connection: Any, place: Place
) -> None:
    content = mixed(80).select([0, 2, 3, 4, 7])
    place(content)
    before = _relations(connection)
    with open_database(address, 'a"; drop table x; --') as table:
        verdict = audit(Curator(table, idp()), truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
        assert table.statements <= verdict.run.meter.rounds + 4 * len(table.schema) + 20
    assert _relations(connection) == before


def _relations(connection: Any) -> list[Any]:
    found = connection.con.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'thinveil%' ORDER BY relname"
    ).fetchall()
    return list(found)


def test_values_that_only_postgres_has(connection: Any) -> None:
    connection.con.execute("DROP TABLE IF EXISTS odd; DROP TYPE IF EXISTS mood")
    connection.con.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    connection.con.execute(
        "CREATE TABLE odd (m mood, n numeric, c char(4), z timestamptz, u uuid, f float8)"
    )
    connection.con.execute(
        "INSERT INTO odd VALUES ('ok', 1.50, 'a', '2024-01-01 12:00+02', "
        "'00000000-0000-0000-0000-000000000001', 'NaN'), "
        "('sad', 'NaN', 'b', '2024-01-01 10:30+00', null, 2.5)"
    )
    with DatabaseTable.of(connection.table("odd")) as table:
        rows = table.to_dataset().rows()
        first = min(rows, key=lambda row: str(row[0]))
        assert first[:3] == ("ok", Decimal("1.5"), "a")
        assert str(first[3]) == "2024-01-01 10:00:00"
        assert first[5] is None
        assert table.schema[1].missing
    for column, value in (("f", "infinity"), ("z", "infinity"), ("n", "infinity")):
        connection.con.execute(f"UPDATE odd SET {column} = '{value}'")
        with pytest.raises(DataError, match=f"'{column}'") as caught:
            DatabaseTable.of(connection.table("odd"))
        assert "infinity" not in str(caught.value)


def test_a_table_in_another_schema(address: str, connection: Any) -> None:
    connection.con.execute("DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other")
    connection.con.execute("CREATE TABLE other.people AS SELECT 7 AS age")
    with open_database(address, "other.people") as table:
        assert table.to_dataset().rows() == [(7,)]


def test_operators_of_others_are_not_run_in_our_name(address: str, connection: Any) -> None:
    """Whoever may create operators in a schema of the search path waits for a richer user."""
    connection.con.execute("CREATE SCHEMA shared; CREATE TABLE shared.caught (what text)")
    connection.con.execute("CREATE TYPE shared.mood AS ENUM ('sad', 'ok')")
    connection.con.execute(
        "CREATE TABLE shared.pay AS SELECT x * 1.25::float8 AS pay, x AS age, 'sad'::shared.mood "
        "AS mood FROM generate_series(1, 9) AS x"
    )
    kinds = ("float8", "int8", "numeric", "varchar", "information_schema.sql_identifier")
    for number, (sign, kind, other) in enumerate(itertools.product("=</%", kinds, kinds)):
        given, gives = f"({kind}, {other})", "boolean" if sign in "=<" else "numeric"
        connection.con.execute(
            f"CREATE FUNCTION shared.f{number}{given} RETURNS {gives} LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO shared.caught VALUES (current_user); RETURN NULL; END $$;"
            f"CREATE OPERATOR shared.{sign} (LEFTARG = {kind}, RIGHTARG = {other}, "
            f"FUNCTION = shared.f{number})"
        )
    with open_database(f"{address}?options=-csearch_path%3Dshared", "pay") as table:
        assert sorted(table.to_dataset().rows())[0] == (Decimal("1.25"), 1, "sad")
    assert connection.con.execute("SELECT count(*) FROM shared.caught").fetchone() == (0,)
    connection.con.execute("DROP SCHEMA shared CASCADE")


def test_what_cannot_be_opened_is_said_without_the_password(address: str, connection: Any) -> None:
    connection.con.execute("CREATE TABLE IF NOT EXISTS one (x int); TRUNCATE one")
    connection.con.execute("CREATE TABLE IF NOT EXISTS two (x int)")
    with_password = address.replace("thinveil@", "thinveil:hunter2@")
    for at, name, kind, words in (
        (with_password, "nothing", DataError, "there is no table 'nothing'"),
        (with_password, None, UsageError, "which table"),
        (with_password, "one", DataError, "no records"),
        (with_password.replace("/postgres", "/nowhere"), "one", DataError, "no connection"),
    ):
        with pytest.raises(kind, match=words) as caught:
            open_database(at, name)
        assert "hunter2" not in repr(caught.value)
        assert caught.value.__cause__ is None


def test_nobody_may_make_temporary_tables(address: str, connection: Any) -> None:
    connection.con.execute("CREATE TABLE IF NOT EXISTS seen AS SELECT 1 AS x")
    connection.con.execute(
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; "
        "GRANT SELECT ON seen TO reader; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC"
    )
    try:
        with pytest.raises(DataError, match="GRANT TEMPORARY"):
            open_database(address.replace("thinveil@", "reader@"), "seen")
    finally:
        connection.con.execute(
            "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC; REVOKE ALL ON seen FROM reader"
        )


def test_a_server_that_dies_ends_the_run_with_a_clear_word(
    address: str, connection: Any, place: Place, tmp_path: Any
) -> None:
    place(mixed(80).select([0, 2, 3]))
    kept = tmp_path / "run.transcript"
    with open_database(address, 'a"; drop table x; --') as table:

        def kill(meter: Any, about: Any) -> None:
            if meter.rounds == 3:
                connection.con.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )

        verdict = audit(Curator(table, idp()), transcript=kept, observer=kill)
        assert verdict.run.ending == "target"
        assert "failed while it counted" in str(verdict.run.reason)
    with open_database(address, 'a"; drop table x; --') as again:
        verdict = audit(Curator(again, idp()), resume=kept, truth=again.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
        assert verdict.run.meter.replayed == 3


def test_others_write_while_we_count(connection: Any, place: Place) -> None:
    source = place(from_codes(TABLE), "written")  # type: ignore[call-arg]
    with DatabaseTable.of(source) as table:
        counter, before = table.counter(), table.digest()
        batch = ranges([0], [3], [4], [0])
        assert counter.count(batch).tolist() == [3]
        connection.con.execute("DELETE FROM written")
        assert counter.count(batch).tolist() == [3]
        assert table.digest() == before


def test_values_of_a_text_column_do_not_leave_to_be_read_as_numbers(place):
    table = place(pa.table({"amount": ["31", "57"]}))
    with pytest.raises(DataError, match=r"'amount' is stored as text.*leave the database"):
        DatabaseTable.of(table, Schema((Grid("amount"),)))
