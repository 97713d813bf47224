"""The same on Spark, in local mode: few tests, as each statement takes a while."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from databases import batches_for, counter_in, mixed, records_of
from servers import absent
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
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.curator.database.table import DatabaseTable, open_database
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

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves sockets for Python to close:
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("pyspark") is None:
        absent("PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        absent("Java is not installed")
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
def counter(held: DatabaseTable) -> Counter:
    import ibis
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    connection = ibis.pyspark.connect(session)

    def place(content: Any) -> Any:
        session.createDataFrame(content).createOrReplaceTempView("content")
        return connection.table("content")

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


def test_what_cannot_be_opened_is_said(held: DatabaseTable, folder: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        open_database(ADDRESS, str(folder / "nothing.parquet"))
    with pytest.raises(DataError, match="there is no table 'nowhere'"):
        open_database(ADDRESS, "nowhere")
    with pytest.raises(UsageError, match="which table"):
        open_database(ADDRESS)
