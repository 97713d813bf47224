"""The same on Spark, in local mode: few tests, as each statement takes a while."""

from __future__ import annotations

import gc
import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases import (
    FILES,
    HOSTILE,
    VARIABLES,
    batches_for,
    check_hostile,
    check_hostile_names,
    counter_in,
    mixed,
    quoted,
    records_of,
)
from servers import needs_java
from test_counting import (  # the contract of every counter, on this one
    TABLE,
    test_a_union_is_the_sum_of_its_boxes,
    test_cells_of_several_patterns_in_one_batch,
    test_coarse_cells_keep_missing_values_apart,
    test_infinite_ends,
    test_missing_values_lie_below_all_others,
    test_points_narrowed_by_a_range,
    test_whole_cells_and_several_columns_in_one_batch,
)
from thinveil import Curator, audit, idp, load
from thinveil.commands.main import run
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.curator.database.engines.spark import Spark
from thinveil.curator.database.session import Session
from thinveil.curator.database.spark import warming
from thinveil.curator.database.table import DatabaseTable, open_database, open_frame
from thinveil.curator.database.words import Rows
from thinveil.errors import DataError, UsageError

CONTRACT = (
    test_a_union_is_the_sum_of_its_boxes,
    test_cells_of_several_patterns_in_one_batch,
    test_coarse_cells_keep_missing_values_apart,
    test_infinite_ends,
    test_missing_values_lie_below_all_others,
    test_points_narrowed_by_a_range,
    test_whole_cells_and_several_columns_in_one_batch,
)
ADDRESS = "spark://local[2]"
KILLED = """
import sys
from thinveil.curator.database.table import open_database

for life in range(2):
    table = open_database(*sys.argv[1:])
    print(table.records)
    if not life:
        from pyspark import SparkContext

        SparkContext._gateway.proc.kill()
        SparkContext._gateway.proc.wait()
    table.close()
"""

SIGNAL = """
import signal, sys
from thinveil.curator.database.table import open_database

before = signal.getsignal(signal.SIGINT)
with open_database(*sys.argv[1:]):
    print(signal.getsignal(signal.SIGINT) is before)
"""

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves sockets for Python to close:
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of pandas 3
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_java()
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def held(folder: Path) -> Iterator[DatabaseTable]:
    """A table of every kind, in a Spark session that lives as long as these tests."""
    path = folder / "mixed.parquet"
    pq.write_table(mixed(60), path)
    with open_database(ADDRESS, str(path)) as table:
        yield table
    gc.collect()


@pytest.fixture(scope="module")
def spark(held: DatabaseTable) -> Any:
    """The session itself, as somebody would have it who joins in."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    return session


@pytest.fixture(scope="module")
def counter(spark: Any) -> Counter:
    def place(content: Any) -> tuple[Session, Rows]:
        engine = Spark(spark)
        return Session(engine), engine.named(spark.createDataFrame(content), "here")

    return counter_in(place, TABLE)


def test_a_table_of_every_kind(held: DatabaseTable) -> None:
    expected = load(mixed(60))
    assert held.schema == expected.schema
    assert records_of(held.to_dataset()) == records_of(expected)


def test_counts_are_those_of_a_scan(held: DatabaseTable) -> None:
    codes = load(mixed(60)).codes
    scan, counter = ScanCounter(codes), held.counter()
    for batch in batches_for(codes, 1, 3):
        for _ in range(2):
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


def test_an_audit_ends_exact_and_leaves_nothing(held: DatabaseTable, folder: Path) -> None:
    path = folder / "some.parquet"
    pq.write_table(mixed(20).select([0, 2]), path)
    with open_database(ADDRESS, str(path)) as table:
        verdict = audit(Curator(table, idp()), truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
        assert table.statements <= verdict.run.meter.rounds + 4 * len(table.schema) + 20
        assert table.digest() == table.digest()
    assert held.records == 60  # the session was not ours to stop


def test_what_cannot_be_opened_is_said(spark: Any, folder: Path) -> None:
    for name in ("one", "two"):
        spark.range(1).createOrReplaceTempView(name)
    with pytest.raises(DataError, match="cannot be read"):
        open_database(ADDRESS, str(folder / "nothing.parquet"))
    with pytest.raises(DataError, match="there is no table 'nowhere'"):
        open_database(ADDRESS, "nowhere")
    with pytest.raises(UsageError, match="which table"):
        open_database(ADDRESS)


# ---- against whoever hands over a file or a catalogue, as for the other databases


def test_names_and_texts_are_nothing_but_themselves(spark: Any, tmp_path: Path) -> None:
    odd = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    before = {name: spark.conf.get(name) for name in odd}
    for name, value in odd.items():
        spark.conf.set(name, value)
    session = Session(Spark(spark))

    def place(content: pa.Table) -> tuple[Session, Rows]:
        pq.write_table(content, tmp_path / "hostile.parquet")
        return session, session.engine.table(str(tmp_path / "hostile.parquet"), "here")

    check_hostile(place, (*HOSTILE, "SELECT"))  # beside "select"
    session.close()
    assert {name: spark.conf.get(name) for name in odd} == odd  # its owner's settings again
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_name_means_the_one_table_that_has_it(spark: Any) -> None:
    def make(name: str, number: int) -> None:
        spark.sql(f"CREATE TEMPORARY VIEW {quoted(name, '`')} AS SELECT {number} AS x")

    session = Session(Spark(spark))
    # A slash makes a path of it, and Spark itself lists no name of several lines.
    check_hostile_names(lambda: session.engine, make, without="/\n\u2028")
    for each in spark.catalog.listTables():
        if not each.name.startswith("thinveil_"):
            spark.catalog.dropTempView(each.name)
    session.close()


def test_only_the_files_that_were_given_are_read(spark: Any, tmp_path: Path) -> None:
    session = Session(Spark(spark))
    for number, name in enumerate(FILES):
        pq.write_table(pa.table({"x": [number]}), tmp_path / name)
    for number, name in enumerate(FILES):
        table = session.engine.table(str(tmp_path / name), "here")
        assert session.rows(table) == [(number,)], name
    assert len(session.rows(session.engine.table(f"{tmp_path}/a*", "here"))) == 3
    session.close()


def test_no_variable_is_put_into_a_name(spark: Any, tmp_path: Path) -> None:
    for place, name in enumerate(VARIABLES):
        path = tmp_path / f"{place}.parquet"
        pq.write_table(pa.table({name: [1, 2], "x": [3, 4]}), path)
        with pytest.raises(DataError, match="does not read the column"):
            open_database(ADDRESS, str(path))
    with open_database(ADDRESS, str(path), drop=[name]) as table:
        assert sorted(table.to_dataset().rows()) == [(3,), (4,)]


@pytest.mark.parametrize("inside", [False, True])
def test_a_type_of_somebody_s_own_is_neither_imported_nor_unpickled(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    from pyspark.sql.types import UserDefinedType

    read: list[Any] = []
    monkeypatch.setattr(UserDefinedType, "fromJson", read.append)
    own: dict[str, Any] = {
        "type": "udt", "pyClass": "evil.Evil", "serializedClass": "gASVAAAA", "sqlType": "long"
    }  # fmt: skip
    kind = {"type": "array", "elementType": own, "containsNull": True} if inside else own
    field = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
    said = json.dumps({"type": "struct", "fields": [field]})
    values = pa.array([[1]] if inside else [1])
    content = pa.table({"x": values}).replace_schema_metadata(
        {"org.apache.spark.sql.parquet.row.metadata": said}
    )
    pq.write_table(content, tmp_path / "evil.parquet")
    with pytest.raises(DataError, match="'x' has a type that somebody has defined"):
        open_database(ADDRESS, str(tmp_path / "evil.parquet"))
    assert read == []


def test_a_table_of_a_schema_and_nothing_left_behind(spark: Any) -> None:
    before = spark.catalog.listTables()
    spark.sql("CREATE SCHEMA census")
    try:
        spark.sql("CREATE TABLE census.people USING parquet AS SELECT 7 AS age")
        for name in ("census.people", "spark_catalog.census.people"):
            with open_database(ADDRESS, name) as table:
                assert table.to_dataset().rows() == [(7,)]
        with pytest.raises(DataError, match=r"no table 'census.nobody'; its tables are 'people'"):
            open_database(ADDRESS, "census.nobody")
    finally:
        spark.sql("DROP SCHEMA census CASCADE")
    assert spark.catalog.listTables() == before


def test_nobody_else_on_the_machine_reads_along(spark: Any) -> None:
    settings = spark.sparkContext.getConf()
    assert stat.S_IMODE(os.stat(settings.get("spark.local.dir")).st_mode) == 0o700
    assert settings.get("spark.driver.bindAddress") == "127.0.0.1"
    assert settings.get("spark.authenticate") == "true"
    assert settings.get("spark.authenticate.secret") is None  # drawn, and written nowhere


def test_the_next_session_of_the_process_has_settings_of_its_own(spark: Any) -> None:
    """Java keeps what it was started with; a cluster would then want a secret, and not start."""
    from pyspark import SparkConf

    left = dict(SparkConf().getAll())  # with what Java has
    assert not left.keys() & {"spark.authenticate", "spark.local.dir", "spark.driver.host"}


@pytest.mark.parametrize("over", [warming.wait, warming.end])
def test_what_goes_first_is_over_before_anybody_counts(spark: Any, over: Any) -> None:
    """Waited for or ended, it holds no slot and keeps nothing; other tables stay."""
    context, java = spark.sparkContext, spark._jsc.sc()
    kept = spark._jsc.getPersistentRDDs().size()
    warming.begin(spark)
    thread = warming._begun[context]
    over(context)
    assert not thread.is_alive()
    assert context not in warming._begun
    assert [*context.statusTracker().getActiveJobsIds()] == []
    if over is warming.wait:
        assert spark._jsc.getPersistentRDDs().size() == kept
    assert not java.isStopped()
    over(context)  # nobody has begun anything: nothing happens


def test_what_fails_first_says_nothing() -> None:
    warming._first(object())


def test_a_file_that_was_written_again_is_read_again(spark: Any, folder: Path) -> None:
    """Spark takes equal plans for one frame: each opening has its own, and ends alone."""
    path, codes = folder / "again.parquet", []
    tables = []
    for seed in range(2):
        pq.write_table(pa.table({"age": [seed, 10 * seed + 1, 7]}), path)
        tables.append(open_database(ADDRESS, str(path), spark="sql"))
        codes.append(sorted(map(tuple, tables[-1].to_dataset().codes.tolist())))
    assert codes[0] != codes[1]
    assert tables[0].digest() != tables[1].digest()
    tables[0].close()
    pq.write_table(pa.table({"age": [99, 98, 97]}), path)
    assert sorted(map(tuple, tables[1].to_dataset().codes.tolist())) == codes[1]
    tables[1].close()


def test_one_counter_for_all_who_ask(held: DatabaseTable) -> None:
    """A second standing job would find no free slot, or take the last one."""
    assert held.counter() is held.counter()


def test_an_audit_with_exhibits_beside_a_standing_job(spark: Any, folder: Path) -> None:
    path = folder / "numbers.parquet"
    pq.write_table(pa.table({"age": [*range(20)], "group": [1, 2] * 10}), path)
    with open_database(ADDRESS, str(path)) as table:
        verdict = audit(table, exhibits=True, seed=1)
        assert verdict.run.ending == "complete"
        assert verdict.staircase is not None


def test_a_data_frame_may_be_counted_without_temporary_tables(spark: Any) -> None:
    said: list[str] = []
    frame = spark.createDataFrame(mixed(20).select([0, 2]))
    with open_frame(frame, temporary_tables=False, say=said.append) as table:
        assert audit(Curator(table, idp())).run.ending == "complete"
        assert not table._session.stores
    with open_frame(frame, say=said.append) as table:
        table.counter()
    assert any(each.startswith("Spark: ") for each in said)


def test_what_spark_does_is_said_while_a_command_runs(
    spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "some.parquet"
    pq.write_table(mixed(20).select([0, 2]), path)
    assert run(["audit", ADDRESS, "--table", str(path), "--spark", "jobs"]) == 0
    assert "Spark: one plain job a round over 1 part" in capsys.readouterr().err


def test_the_words_of_errors_are_not_written(spark: Any) -> None:
    """PySpark writes them before it raises; they quote values."""
    from pyspark.logger import PySparkLogger
    from pyspark.sql.functions import col

    written: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = written.append  # type: ignore[assignment]
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    logger.addHandler(handler)
    try:
        texts = spark.createDataFrame([("s3cr3t",), ("2",)], ["x"])
        frame = texts.select(col("x").cast("int").alias("x"))
        with open_frame(texts) as table:
            table.close()  # twice in all
        with pytest.raises(DataError, match="the database refused a statement") as caught:
            open_frame(frame)
        assert not written
        assert "s3cr3t" not in str(caught.value)
        with pytest.raises(Exception, match="s3cr3t"):
            frame.collect()
        assert not written  # another table is open in this process
    finally:
        logger.removeHandler(handler)


def test_a_stream_has_no_end(spark: Any) -> None:
    with pytest.raises(UsageError, match="a stream has no end"):
        open_frame(spark.readStream.format("rate").load())


def test_files_with_other_columns_are_refused(spark: Any, tmp_path: Path) -> None:
    for place, names in enumerate((["a"], ["a", "b"])):
        columns = [pa.array([1, 2])] * len(names)
        pq.write_table(pa.table(columns, names=names), tmp_path / f"p{place}.parquet")
    for name in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(DataError, match="have the same columns"):
            open_database(ADDRESS, str(name))
    (tmp_path / "p0.parquet").unlink()
    with open_database(ADDRESS, str(tmp_path)) as table:
        assert table.schema.names == ("a", "b")


def _alone(script: str, folder: Path) -> list[str]:
    """Run a script in a process of its own, on a small table, and return the words it prints."""
    path = folder / "alone.parquet"
    pq.write_table(mixed(20).select([0, 2]), path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, ADDRESS, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_an_interruption_is_python_s_own_again(folder: Path) -> None:
    """PySpark's own handler calls Java again from inside of a call to it."""
    assert _alone(SIGNAL, folder) == ["True"]


def test_the_python_of_this_machine_is_nobody_else_s(spark: Any) -> None:
    assert "PYSPARK_PYTHON" not in os.environ
    assert spark.sparkContext.pythonExec == sys.executable


def test_after_java_has_died_another_one_is_started(folder: Path) -> None:
    assert _alone(KILLED, folder) == ["20", "20"]
