"""The same on a real PostgreSQL server, which the project starts by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from contracts import OnServer, check_counts
from databases import (
    COLLATED,
    HOSTILE,
    VARIABLES,
    Place,
    check_codes,
    check_collated,
    check_hostile,
    check_hostile_names,
    contents,
    counter_in,
    from_codes,
    in_engine,
    mixed,
    quoted,
)
from servers import postgres
from test_counting import TABLE, tables_with_batches
from thinveil import Curator, audit, idp
from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.engines.postgres import PostgreSQL
from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes, QueryBatch
from worlds import examples, ranges


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as at:
        yield at


@pytest.fixture(scope="module")
def connection(address: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(address, autocommit=True) as raw:
        yield raw


@pytest.fixture(scope="module")
def engines(address: str) -> Iterator[Callable[[], Engine]]:
    """Connections of their own, as opening a table leaves the search path to the server's."""
    import psycopg

    with ExitStack() as opened:
        yield lambda: PostgreSQL(opened.enter_context(closing(psycopg.connect(address))))


@pytest.fixture(scope="module")
def place(connection: Any, engines: Callable[[], Engine]) -> Place:
    def put(content: pa.Table, name: str = 'a"; drop table x; --') -> Any:
        connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        listed = ", ".join(
            f"{quoted(column)} {_type(kind)}"
            for column, kind in zip(content.column_names, content.schema.types, strict=True)
        )
        connection.execute(f"CREATE TABLE {quoted(name)} ({listed})")
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {quoted(name)} FROM STDIN") as copy,
        ):
            for row in zip(*(each.to_pylist() for each in content.columns), strict=True):
                copy.write_row(row)
        return in_engine(engines(), f"public.{name}")

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


class TestContract(OnServer):
    """The suite of all databases."""


@pytest.mark.nightly
@examples(30)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(place: Place, content: pa.Table) -> None:
    check_codes(place, content)


@examples(30)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(place: Place, case: tuple[Codes, list[QueryBatch]]) -> None:
    check_counts(place, case)


def test_names_and_texts_are_nothing_but_themselves(place: Place) -> None:
    names = (*HOSTILE, *VARIABLES)
    check_hostile(place, names, without="\0")  # which no text in PostgreSQL can hold


def test_a_name_means_the_one_table_that_has_it(connection: Any) -> None:
    def make(name: str, number: int) -> None:
        connection.execute(f"CREATE TABLE hostile.{quoted(name)} AS SELECT {number} AS x")

    def opened() -> Engine:
        connection.execute("SET search_path = hostile")  # opening a table leaves it
        return PostgreSQL(connection)

    connection.execute("CREATE SCHEMA hostile")
    check_hostile_names(opened, make, without="\0")
    connection.execute("DROP SCHEMA hostile CASCADE; RESET search_path")


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
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'thinveil%' ORDER BY relname"
    ).fetchall()
    return list(found)


def test_values_that_only_postgres_has(connection: Any, engines: Any) -> None:
    connection.execute("DROP TABLE IF EXISTS odd; DROP TYPE IF EXISTS mood")
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    connection.execute(
        "CREATE TABLE odd (m mood, n numeric, c char(4), z timestamptz, u uuid, f float8)"
    )
    connection.execute(
        "INSERT INTO odd VALUES ('ok', 1.50, 'a', '2024-01-01 12:00+02', "
        "'00000000-0000-0000-0000-000000000001', 'NaN'), "
        "('sad', 'NaN', 'b', '2024-01-01 10:30+00', null, 2.5)"
    )
    with DatabaseTable.of(*in_engine(engines(), "public.odd")) as table:
        rows = table.to_dataset().rows()
        first = min(rows, key=lambda row: str(row[0]))
        assert first[:3] == ("ok", Decimal("1.5"), "a")
        assert str(first[3]) == "2024-01-01 10:00:00"
        assert first[5] is None
        assert table.schema[1].missing
    for column, value in (("f", "infinity"), ("z", "infinity"), ("n", "infinity")):
        connection.execute(f"UPDATE odd SET {column} = '{value}'")
        with pytest.raises(DataError, match=f"'{column}'") as caught:
            DatabaseTable.of(*in_engine(engines(), "public.odd"))
        assert "infinity" not in str(caught.value)


def test_texts_are_told_apart_whatever_their_collation(connection: Any, engines: Any) -> None:
    connection.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', "
                       "deterministic = false)")  # fmt: skip
    for kind in ("text", "varchar(9)"):
        connection.execute(f"CREATE TABLE collated (x {kind} COLLATE loose)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO collated VALUES (%s)", [(each,) for each in COLLATED])
        same = "SELECT count(DISTINCT x) FROM collated"
        assert connection.execute(same).fetchone() < (len(COLLATED),)
        check_collated(lambda: in_engine(engines(), "public.collated"))
        connection.execute("DROP TABLE collated")


def test_a_table_in_another_schema(address: str, connection: Any) -> None:
    connection.execute("DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other")
    connection.execute("CREATE TABLE other.people AS SELECT 7 AS age")
    with open_database(address, "other.people") as table:
        assert table.to_dataset().rows() == [(7,)]


def test_operators_of_others_are_not_run_in_our_name(address: str, connection: Any) -> None:
    """Whoever may create operators in a schema of the search path waits for a richer user."""
    connection.execute("CREATE SCHEMA shared; CREATE TABLE shared.caught (what text)")
    connection.execute("CREATE TYPE shared.mood AS ENUM ('sad', 'ok')")
    connection.execute(
        "CREATE TABLE shared.pay AS SELECT x * 1.25::float8 AS pay, x AS age, 'sad'::shared.mood "
        "AS mood FROM generate_series(1, 9) AS x"
    )
    kinds = ("float8", "int8", "numeric", "varchar", "information_schema.sql_identifier")
    for number, (sign, kind, other) in enumerate(itertools.product("=</%", kinds, kinds)):
        given, gives = f"({kind}, {other})", "boolean" if sign in "=<" else "numeric"
        connection.execute(
            f"CREATE FUNCTION shared.f{number}{given} RETURNS {gives} LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO shared.caught VALUES (current_user); RETURN NULL; END $$;"
            f"CREATE OPERATOR shared.{sign} (LEFTARG = {kind}, RIGHTARG = {other}, "
            f"FUNCTION = shared.f{number})"
        )
    with open_database(f"{address}?options=-csearch_path%3Dshared", "pay") as table:
        assert sorted(table.to_dataset().rows())[0] == (Decimal("1.25"), 1, "sad")
    assert connection.execute("SELECT count(*) FROM shared.caught").fetchone() == (0,)
    connection.execute("DROP SCHEMA shared CASCADE")


def test_what_cannot_be_opened_is_said_without_the_password(address: str, connection: Any) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS one (x int); TRUNCATE one")
    connection.execute("CREATE TABLE IF NOT EXISTS two (x int)")
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


def test_a_server_that_dies_ends_the_run_with_a_clear_word(
    address: str, connection: Any, place: Place, tmp_path: Any
) -> None:
    place(mixed(80).select([0, 2, 3]))
    kept = tmp_path / "run.transcript"
    with open_database(address, 'a"; drop table x; --') as table:

        def kill(meter: Any, about: Any) -> None:
            if meter.rounds == 3:
                connection.execute(
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
    with DatabaseTable.of(*source) as table:
        counter, before = table.counter(), table.digest()
        batch = ranges([0], [3], [4], [0])
        assert counter.count(batch).tolist() == [3]
        connection.execute("DELETE FROM written")
        assert counter.count(batch).tolist() == [3]
        assert table.digest() == before
