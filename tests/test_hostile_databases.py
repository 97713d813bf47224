"""Against whoever hands a database over: names and texts stay such, views reach nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases import FILES, HOSTILE, PLACES, VARIABLES, check_hostile, check_hostile_names, quoted
from thinveil.curator.database.engines.duckdb import DuckDB, open_duckdb
from thinveil.curator.database.engines.spark import _CLUSTER
from thinveil.curator.database.engines.sqlite import SQLite
from thinveil.curator.database.spark import warming
from thinveil.curator.database.spark.starting import THREADS, started
from thinveil.curator.database.table import open_database
from thinveil.errors import DataError, UsageError

SECRET = "s3cr3tX"
NEVER = "\0"
"""What no name in DuckDB or SQLite can hold."""


@pytest.mark.parametrize("kind", PLACES)
def test_names_and_texts_are_nothing_but_themselves(kind: str) -> None:
    check_hostile(PLACES[kind], (*HOSTILE, *VARIABLES), without=NEVER)


@pytest.mark.parametrize("kind", PLACES)
def test_a_name_means_the_one_table_that_has_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.csv").write_text(f"x\n{SECRET}\n")
    connection: Any = duckdb.connect() if kind == "duckdb" else sqlite3.connect(":memory:")
    engine = DuckDB(connection) if kind == "duckdb" else SQLite(connection)

    def make(name: str, number: int) -> None:
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT {number} AS x")

    check_hostile_names(lambda: engine, make, without=NEVER)
    connection.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder with files that belong to somebody else."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "a.csv").write_text(f"x\n{SECRET}\n{SECRET}2\n")
    (folder / "a.json").write_text(f'{{"x": "{SECRET}"}}\n')
    pq.write_table(pa.table({"x": [SECRET]}), folder / "a.parquet")
    with duckdb.connect(str(folder / "a.duckdb")) as other:
        other.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS x")
    return folder


def test_a_hostile_view_of_duckdb_reads_no_file(tmp_path: Path, secret: Path) -> None:
    path = tmp_path / "hostile.duckdb"
    readers = (
        "read_csv('{0}/a.csv')", "read_csv_auto('{0}/*.csv')", "read_text('{0}/a.csv')",
        "read_blob('{0}/*')", "read_parquet('{0}/a.parquet')", "glob('{0}/*')", "'{0}/a.csv'",
        "'{0}/a.parquet'", "read_json('{0}/a.json')", "parquet_schema('{0}/a.parquet')",
        "parquet_metadata('{0}/a.parquet')", "sniff_csv('{0}/a.csv')",
        "(SELECT * FROM query('SELECT * FROM read_text(''{0}/a.csv'')'))",
        "(SELECT * FROM query_table('{0}/a.csv'))",
        "read_csv('/proc/self/environ')", "duckdb_secrets()",
    )  # fmt: skip
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE people AS SELECT range AS age FROM range(5)")
        base.execute("CREATE VIEW old AS SELECT age + 60 AS age FROM people WHERE age > 2")
        base.execute(f"CREATE MACRO reads() AS TABLE SELECT * FROM read_text('{secret}/a.csv')")
        base.execute("CREATE VIEW by_macro AS SELECT * FROM reads()")
        made = ["by_macro"]
        for number, each in enumerate(readers):
            try:
                base.execute(f"CREATE VIEW v{number} AS SELECT * FROM {each.format(secret)}")
                made.append(f"v{number}")
            except duckdb.Error:  # this version of DuckDB has no such function
                continue
    assert len(made) > 12
    with open_database(f"duckdb://{path}", "old") as table:
        assert sorted(table.to_dataset().rows()) == [(63,), (64,)]
    backend = open_duckdb(str(path))
    for name in made:
        with pytest.raises(duckdb.Error):
            backend._connection.execute(f"SELECT * FROM {name}").fetchall()
    backend.close()
    for name in made[:2]:
        with pytest.raises(DataError) as caught:
            open_database(f"duckdb://{path}", name)
        assert SECRET not in str(caught.value)


def test_hostile_macros_do_not_answer_for_duckdb(tmp_path: Path, secret: Path) -> None:
    """A database that names somebody's folder as the temporary one would have it emptied."""
    path, macros = tmp_path / "hostile.duckdb", ("current_setting(x)", "epoch_us(x)", "range(x)")
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE people AS SELECT range AS age FROM range(5)")
        for each in macros:
            base.execute(f"CREATE MACRO {each} AS '{secret}'")
    before = sorted(secret.iterdir())
    with open_database(f"duckdb://{path}") as table:
        assert table.records == 5
        folder = Path(table._session.engine._connection.sql(
            "SELECT system.main.current_setting('temp_directory')").fetchall()[0][0])  # fmt: skip
        assert folder.is_dir()
    assert sorted(secret.iterdir()) == before
    assert not folder.exists()


def test_a_log_that_is_a_link_is_not_read(tmp_path: Path, secret: Path) -> None:
    """DuckDB lets views read its own log, which an archive can make a link to anything."""
    path, log = tmp_path / "hostile.duckdb", tmp_path / "hostile.duckdb.wal"
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE people AS SELECT range AS age FROM range(5)")
    log.symlink_to(secret / "a.csv")
    with pytest.raises(DataError, match=r"hostile\.duckdb\.wal is a link"):
        open_database(f"duckdb://{path}", "people")


def test_what_is_shut_stays_shut(tmp_path: Path, secret: Path) -> None:
    path = tmp_path / "a.duckdb"
    duckdb.connect(str(path)).close()
    for backend in (open_duckdb(str(path)), open_duckdb(files=[str(tmp_path / "b.parquet")])):
        for statement in (
            "SET enable_external_access = true",
            f"SET allowed_paths = ['{secret}/a.csv']",
            f"SET allowed_directories = ['{secret}']",
            f"SET temp_directory = '{secret}'",
            "INSTALL httpfs",
            "LOAD httpfs",
            f"ATTACH '{secret}/a.duckdb'",
            f"COPY (SELECT 1) TO '{secret}/b.csv'",
            f"EXPORT DATABASE '{secret}'",
            f"SELECT * FROM read_text('{secret}/a.csv')",
        ):
            with pytest.raises(duckdb.Error):
                backend._connection.execute(statement)
        backend.close()
    assert len([*secret.iterdir()]) == 4


def test_only_the_files_that_were_given_are_read(tmp_path: Path) -> None:
    for number, name in enumerate(FILES):
        pq.write_table(pa.table({"x": [number]}), tmp_path / name)
    for number, name in enumerate(FILES):
        with open_database(str(tmp_path / name)) as held:
            assert held.to_dataset().rows() == [(number,)], name
    with open_database(str(tmp_path)) as held:
        assert held.records == len(FILES)
    for number, name in enumerate(FILES[:4]):
        (tmp_path / name).with_suffix(".csv").write_text(f"x\n{number}\n")
    for number, name in enumerate(FILES[:4]):
        with open_database(str((tmp_path / name).with_suffix(".csv"))) as held:
            assert held.to_dataset().rows() == [(number,)], name


def test_a_hostile_view_of_sqlite_runs_no_function_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE people (age INTEGER)")
        base.executemany("INSERT INTO people VALUES (?)", [(each,) for each in range(5)])
        base.execute("CREATE VIEW old AS SELECT age + 60 AS age FROM people WHERE age > 2")
        base.execute("CREATE VIEW loads AS SELECT load_extension('/tmp/evil.so') AS x")
        base.execute("CREATE VIEW large AS SELECT hex(zeroblob(1000000000)) AS x")
        base.execute("CREATE VIEW calls AS SELECT no_such_function('x') AS x")
    base.close()
    with open_database(f"sqlite://{path}", "old") as table:
        assert sorted(table.to_dataset().rows()) == [(63,), (64,)]
    for name in ("loads", "large", "calls"):
        with pytest.raises(DataError):
            open_database(f"sqlite://{path}", name)


def test_an_address_of_spark_has_no_room_for_more() -> None:
    for rest in (
        "ann:s3cr3tX@host:7077", "local[2]?spark.jars=evil.jar", "local[2];spark.plugins=Evil",
        "local[2] --conf spark.plugins=Evil", "local[2]\n", "local[]", "local-cluster[2,1,1024]",
        "yarn", "k8s://https://host:443", "mesos://host:1", "jdbc:postgresql://host/db", "", "host",
        "host:7077/x", "host:7077?spark.plugins=Evil", "host:7077,other", "sc://host:15002",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="no address of Spark") as caught:
            open_database(f"spark://{rest}", "t")
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("rest", "master"),
    [
        ("local", "local"), ("local[*]", "local[*]"), ("local[2, 3]", "local[2, 3]"),
        ("localhost:7077", "spark://localhost:7077"), ("[::1]:7077", "spark://[::1]:7077"),
        ("one:7077,two.example:7078", "spark://one:7077,two.example:7078"),
    ],
)  # fmt: skip
def test_an_address_of_spark_is_a_cluster_or_this_machine(
    rest: str, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "begin", lambda _: None)
    builder = MagicMock()
    builder.appName.return_value = builder.master.return_value = builder
    builder.config.return_value = builder
    started(SimpleNamespace(builder=builder), rest)
    builder.master.assert_called_once_with(master)
    settings = dict(call.args for call in builder.config.call_args_list)
    assert settings.get("spark.authenticate") == ("true" if master == rest else None)
    assert _CLUSTER.fullmatch(rest) or THREADS.fullmatch(rest)
