"""The same on a real MariaDB server, which the project starts by itself."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
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
from servers import mariadb
from test_counting import TABLE, tables_with_batches
from thinveil import Curator, audit, idp, load
from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.engines.mariadb import MariaDB, _parts
from thinveil.curator.database.engines.protocol import Engine
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes, QueryBatch
from worlds import examples, ranges

UNNAMED = "\0\U0001f600"
"""What no name in MariaDB can hold: NUL, and all beyond the basic plane of Unicode."""

AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBejCCAR+gAwIBAgIUcWLi2IEThPg9L7sV8/2a/xF/rUUwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYSB0ZXN0MCAXDTI2MTExOTAyMjY1OFoYDzIxMjYxMDI2MDIy
NjU4WjARMQ8wDQYDVQQDDAZhIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATSMNusStJ8//k4oIFZsI4Y2wGlh/9+4Ekc2xIP9mZX7PQZvacXzEzvr4P7+2ds
UGojrJU7IFgtCKARqAnAiAb4o1MwUTAdBgNVHQ4EFgQUjgzXI62dwmjR+6M42Jrp
way7C48wHwYDVR0jBBgwFoAUjgzXI62dwmjR+6M42Jrpway7C48wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAspT1/4cGc24leQBkYUmcScHKYZNQ
3p6BJeIDMtOeKZkCIQC856kUO0WSZAVW5KP9iAt1i+UbOmsKTx1DGRRXbCUIwA==
-----END CERTIFICATE-----
"""
"""A certificate of nobody, made for this test: openssl req -x509 -newkey ec."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with mariadb() as at:
        yield at


@pytest.fixture(scope="module")
def engines(address: str) -> Iterator[Callable[[], MariaDB]]:
    with ExitStack() as opened:

        def connect() -> MariaDB:
            engine = MariaDB.connect(address, address.partition("://")[2], "here")
            opened.callback(engine.close)
            return MariaDB(engine._connection)

        yield connect


@pytest.fixture(scope="module")
def run(engines: Callable[[], MariaDB]) -> Any:
    return engines().rows


@pytest.fixture(scope="module")
def place(run: Any, engines: Callable[[], MariaDB]) -> Place:
    owner = engines()

    def put(content: pa.Table, name: str = "a`; drop table x; --") -> Any:
        there = quoted(name, "`")
        run(f"DROP TABLE IF EXISTS {there}")
        listed = ", ".join(
            f"{quoted(column, '`')} {_type(kind)}"
            for column, kind in zip(content.column_names, content.schema.types, strict=True)
        )
        run(f"CREATE TABLE {there} ({listed})")
        rows = list(zip(*(map(_value, each.to_pylist()) for each in content.columns), strict=True))
        marks = ", ".join(["%s"] * content.num_columns)
        with owner._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {there.replace('%', '%%')} VALUES ({marks})", rows)
        owner._connection.commit()
        return in_engine(engines(), name)

    return put


def _type(kind: Any) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    known = {
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.date32(): "DATE",
        pa.string(): "TEXT",
    }
    return known.get(kind, "DATETIME(6)")


def _value(value: Any) -> Any:
    """Return a value as PyMySQL writes it: years before 1000 without zeros are other ones."""
    return str(value) if isinstance(value, dt.date) else value


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
    check_hostile(place, (*HOSTILE, *VARIABLES), without=UNNAMED)


def test_a_name_means_the_one_table_that_has_it(run: Any, address: str) -> None:
    def make(name: str, number: int) -> None:
        run(f"CREATE TABLE hostile.{quoted(name, '`')} AS SELECT {number} AS x")

    def opened() -> Engine:
        at = address.replace("/census", "/hostile")
        return MariaDB.connect(at, at.partition("://")[2], "here")

    run("CREATE DATABASE hostile")
    check_hostile_names(opened, make, without=UNNAMED)
    run("DROP DATABASE hostile")


# ---- by address


def test_an_audit_by_address_ends_exact_and_leaves_nothing(
    address: str, run: Any, place: Place
) -> None:
    """A user who may read, and make temporary tables, does; rights beyond that are not needed."""
    place(mixed(80).select([0, 2, 3, 4, 7]), "people")  # type: ignore[call-arg]
    run("CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'hunter2'")
    run("GRANT SELECT, CREATE TEMPORARY TABLES ON census.* TO reader@'%'")
    at = address.replace("thinveil@", "reader:hunter2@")
    with open_database(at, "people") as table:
        verdict = audit(Curator(table, idp()), truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
        assert table.statements <= verdict.run.meter.rounds + 4 * len(table.schema) + 20
    left = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'thinveil%'"
    assert run(left) == []
    with open_database(address, "census.people") as table:
        assert table.records == 80
    run("REVOKE CREATE TEMPORARY TABLES ON census.* FROM reader@'%'")
    with open_database(at, "people") as table:  # without that right, by statements that scan
        assert any("no temporary tables" in each for each in table.remarks.all())
        again = audit(Curator(table, idp()), truth=load(mixed(80).select([0, 2, 3, 4, 7])))
        assert again.score is not None
        assert again.score.exact


def test_a_connection_of_somebody_else_keeps_its_settings(engines: Any, run: Any) -> None:
    run("CREATE OR REPLACE TABLE kept (x TIMESTAMP)")
    run("SET time_zone = '+00:00'")
    run("INSERT INTO kept VALUES ('2020-01-01 10:00:00')")
    engine = engines()
    before = {"time_zone": "+09:00", "sql_mode": "ANSI_QUOTES", "sql_select_limit": "1"}
    for name, value in before.items():
        engine.change(name, value)
    with DatabaseTable.of(*in_engine(engine, "kept")) as table:
        assert table.to_dataset().rows() == [(dt.datetime(2020, 1, 1, 10),)]
    assert {name: engine.change(name, before[name]) for name in before} == before


def test_values_that_only_mariadb_has(run: Any, engines: Any) -> None:
    run("SET sql_mode = ''")  # which takes days that are none
    run(
        "CREATE OR REPLACE TABLE odd (t TINYINT(1), b TINYINT(1), u BIGINT UNSIGNED, y YEAR, "
        "d DECIMAL(65, 30), c TIME(6), e ENUM('b', 'B ', 'a'), s SET('p', 'q'), v VARCHAR(9) "
        "CHARACTER SET latin1 COLLATE latin1_swedish_ci, i UUID, z TIMESTAMP(6), j JSON)"
    )
    run(
        "INSERT INTO odd VALUES (1, 7, 4000000000000000000, 1999, 1.5, '10:30:00.5', 'b', 'p,q', "
        "'\u00e4', '00000000-0000-0000-0000-000000000001', '2024-01-01 12:00:00', '[1]'), "
        "(0, 0, 3, 2000, 2.25, '00:00:00', 'a', 'p', "
        "'a', NULL, '2024-01-01 13:00:00', '{}')"
    )
    with DatabaseTable.of(*in_engine(engines(), "odd")) as table:
        found = table.to_dataset().rows()
        assert max(found, key=lambda row: int(str(row[1]))) == (
            "true", 7, 4 * 10**18, 1999, Decimal("1.5"), dt.time(10, 30, 0, 500_000), "b",
            "p,q", "\u00e4", f"{0:08}-0000-0000-0000-{1:012}", dt.datetime(2024, 1, 1, 12), "[1]",
        )  # fmt: skip
    for kind, value, words in (
        ("DATE", "'0000-00-00'", "beyond the years 1 to 9999"),
        ("DATE", "'2020-00-07'", "1 row of column 'the column'"),
        ("DATETIME", "'0000-00-00 00:00:00'", "beyond the years 1 to 9999"),
        ("TIME", "'-10:00:00'", "1 row of column 'the column'"),
        ("TIME", "'30:00:00'", "1 row of column 'the column'"),
        ("BIGINT UNSIGNED", "18446744073709551615", "1 row is too large"),
        ("BLOB", "'s3cr3t'", "'the column' has the type blob"),
        ("BIT(9)", "77", "'the column' has the type bit"),
        ("POINT", "NULL", "'the column' has the type point"),
    ):
        run(f"CREATE OR REPLACE TABLE strange (`the column` {kind})")
        run(f"INSERT INTO strange VALUES ({value})")
        with pytest.raises(DataError, match=words) as caught:
            DatabaseTable.of(*in_engine(engines(), "strange"))
        assert value.strip("'") not in str(caught.value).replace("years 1 to", "")


def test_what_cannot_be_opened_is_said_without_the_password(address: str, run: Any) -> None:
    run("CREATE OR REPLACE TABLE one (x INT)")
    run("CREATE OR REPLACE TABLE two (x INT)")
    run("CREATE OR REPLACE USER guest@'%' IDENTIFIED BY 'hun/ter2'")
    run("GRANT SELECT, CREATE TEMPORARY TABLES ON census.* TO guest@'%'")
    at = address.replace("thinveil@", "guest:hun%2Fter2@")
    for where, name, kind, words in (
        (at, "nothing", DataError, "there is no table 'nothing'"),
        (at, None, UsageError, "which table"),
        (at, "one", DataError, "no records"),
        (at.replace("/census", "/nowhere"), "one", DataError, "no connection"),
        (at.replace("ter2", "ter3"), "one", DataError, "no connection"),
        (at.replace("/census", ""), "one", UsageError, "which database"),
        (f"{at}?sslmode=require", "one", UsageError, "unknown 'sslmode'"),
        (at.replace(":hun", ":99999999/hun"), "one", UsageError, "no address"),
    ):
        with pytest.raises(kind, match=words) as caught:
            open_database(where, name)
        assert "ter2" not in repr(caught.value)
        assert "ter3" not in repr(caught.value)
        assert caught.value.__cause__ is None


def test_a_server_that_dies_ends_the_run_with_a_clear_word(
    address: str, run: Any, place: Place, tmp_path: Any
) -> None:
    place(mixed(80).select([0, 2, 3]), "people")  # type: ignore[call-arg]
    kept = tmp_path / "run.transcript"
    with open_database(address, "people") as table:

        def kill(meter: Any, about: Any) -> None:
            if meter.rounds == 3:
                own = "SELECT id FROM information_schema.processlist WHERE id <> connection_id()"
                for (each,) in run(f"{own} AND db = 'census' ORDER BY id DESC LIMIT 1"):
                    run(f"KILL CONNECTION {each}")

        verdict = audit(Curator(table, idp()), transcript=kept, observer=kill)
        assert verdict.run.ending == "target"
        assert "failed while it counted" in str(verdict.run.reason)
    with open_database(address, "people") as again:
        verdict = audit(Curator(again, idp()), resume=kept, truth=again.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
        assert verdict.run.meter.replayed == 3


def test_others_write_while_we_count(run: Any, place: Place) -> None:
    source = place(from_codes(TABLE), "written")  # type: ignore[call-arg]
    with DatabaseTable.of(*source) as table:
        counter, before = table.counter(), table.digest()
        batch = ranges([0], [3], [4], [0])
        assert counter.count(batch).tolist() == [3]
        run("DELETE FROM written")
        assert counter.count(batch).tolist() == [3]
        assert table.digest() == before


@pytest.mark.parametrize("isolation", ["REPEATABLE-READ", "READ-COMMITTED"])
def test_others_write_while_each_statement_scans(
    address: str, run: Any, place: Place, isolation: str
) -> None:
    """One state is seen, also where transactions usually see what others commit meanwhile."""
    place(from_codes(TABLE), "written")  # type: ignore[call-arg]
    run(f"SET GLOBAL tx_isolation = '{isolation}'")
    with open_database(address, "written", temporary_tables=False) as table:
        assert not table.remarks.assumed
        counter, before = table.counter(), table.digest()
        batch = ranges([0], [3], [4], [0])
        assert counter.count(batch).tolist() == [3]
        run("DELETE FROM written WHERE a0 = 3")
        assert counter.count(batch).tolist() == [3]
        object.__setattr__(table, "_digest", "")
        assert table.digest() == before
    with open_database(address, "written", temporary_tables=False) as table:
        assert table.counter().count(batch).tolist() == [0]
    run("SET GLOBAL tx_isolation = 'REPEATABLE-READ'")


def test_texts_are_told_apart_whatever_their_collation(run: Any, engines: Any) -> None:
    run("CREATE OR REPLACE TABLE collated (x VARCHAR(9) COLLATE utf8mb4_general_ci)")
    run("INSERT INTO collated VALUES " + ", ".join(f"('{each}')" for each in COLLATED))
    assert run("SELECT count(DISTINCT x) FROM collated")[0][0] < len(COLLATED)
    check_collated(lambda: in_engine(engines(), "collated"))


def test_a_file_of_authorities_has_the_server_checked(tmp_path: Path) -> None:
    import pymysql

    file = tmp_path / "ca.pem"
    file.write_text(AUTHORITY)
    told = _parts(f"ann@census.example/people?ssl_ca={file}", "here")
    context = pymysql.Connection(**told, defer_connect=True).ctx
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_mysql_is_told_from_mariadb(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MariaDB, "rows", lambda self, statement: [("9.4.0",)])
    with pytest.raises(DataError, match="this is a server of MySQL"):
        open_database(address.replace("mariadb://", "mysql://"), "one")
