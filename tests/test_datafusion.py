"""The same in DataFusion: Parquet files, and a session that somebody has."""

from __future__ import annotations

import datetime as dt
import importlib.util
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from contracts import InProcess, check_counts
from databases import (
    FILES,
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
from thinveil import Curator, audit, idp, load
from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.engines.datafusion import DataFusion
from thinveil.curator.database.table import DatabaseTable, open_database
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError
from thinveil.language.queries import Codes, QueryBatch
from worlds import examples

pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def context() -> Any:
    if importlib.util.find_spec("datafusion") is None:
        absent("DataFusion is not installed")
    from datafusion import SessionContext

    return SessionContext()


@pytest.fixture(scope="module")
def place(context: Any) -> Place:
    def put(content: pa.Table) -> Any:
        name = 'a"; drop table x; --'
        if name in DataFusion(context).tables(None):
            context.deregister_table(quoted(name))
        empty = pa.RecordBatch.from_pylist([], schema=content.schema)
        context.register_record_batches(quoted(name), [[empty, *content.to_batches()]])
        return in_engine(DataFusion(context), name)

    return put


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
    names = (*HOSTILE, *VARIABLES)
    check_hostile(place, names, without="\0")  # which ends a name between Arrow and Python


def test_a_name_means_the_one_table_that_has_it() -> None:
    from datafusion import SessionContext

    context = SessionContext()

    def make(name: str, number: int) -> None:
        batch = pa.RecordBatch.from_pydict({"x": [number]})
        context.register_record_batches(quoted(name), [[batch]])

    check_hostile_names(lambda: DataFusion(context), make)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = mixed(60)
    pq.write_table(content.slice(0, 20), tmp_path / "a.parquet")
    (tmp_path / "deeper").mkdir()
    pq.write_table(content.slice(20), tmp_path / "deeper" / "b.pq")
    return tmp_path


def test_an_audit_by_address_ends_exact(folder: Path) -> None:
    with open_database(f"datafusion://{folder}") as table:
        assert records_of(table.to_dataset()) == records_of(load(mixed(60)))
    pq.write_table(mixed(60).select([0, 2, 3, 4, 7]), folder / "a.parquet")
    with open_database(f"datafusion://{folder / 'a.parquet'}") as table:
        verdict = audit(Curator(table, idp()), truth=table.to_dataset())
        assert verdict.score is not None
        assert verdict.score.exact
    with pytest.raises(DataError, match="same columns"):
        open_database(f"datafusion://{folder}")


def test_nothing_stays_in_a_session_of_somebody_else(context: Any, place: Place) -> None:
    def ours() -> set[str]:
        return {each for each in DataFusion(context).tables(None) if each.startswith("thinveil_")}

    before = ours()  # of other tests, which are still open
    with DatabaseTable.of(*place(mixed(20).select([0, 2]))) as table:
        assert ours() > before
        audit(Curator(table, idp()))
    assert ours() == before


def test_a_path_means_the_one_file_that_has_it(tmp_path: Path) -> None:
    for number, name in enumerate(FILES):
        pq.write_table(pa.table({"x": [number]}), tmp_path / name)
    for number, name in enumerate(FILES):
        with open_database(f"datafusion://{tmp_path / name}") as table:
            assert table.to_dataset().rows() == [(number,)], name


def test_types_of_arrow(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 1, 10)
    content = pa.table({
        "u": pa.array([2**60], pa.uint64()),
        "n": pa.array([moment], pa.timestamp("ns")),
        "z": pa.array([moment], pa.timestamp("us", "Asia/Tokyo")),
        "c": pa.array([dt.time(10, 30)], pa.time64("us")),
        "d": pa.array(["a"]).dictionary_encode(),
        "l": pa.array([Decimal("1.25")], pa.decimal128(38, 20)),
    })  # fmt: skip
    path = tmp_path / "a.parquet"
    pq.write_table(content, path)
    with open_database(f"datafusion://{path}") as table:
        expected = load(content)
        assert table.schema == expected.schema
        assert records_of(table.to_dataset()) == records_of(expected)
    for odd, said in ((pa.array([[1]]), "list"), (pa.array([b"x"]), "binary")):
        pq.write_table(pa.table({"the column": odd}), path)
        with pytest.raises(DataError, match=f"'the column' has the type {said}"):
            open_database(f"datafusion://{path}")
    fine = pa.array([1], pa.timestamp("ns"))
    pq.write_table(pa.table({"x": fine}), path)
    with pytest.raises(DataError, match="too fine"):
        open_database(f"datafusion://{path}")


def test_parts_of_a_file_may_be_empty(tmp_path: Path) -> None:
    content = pa.table({"x": [1, 2], "word": ["a", None]})
    with pq.ParquetWriter(tmp_path / "a.parquet", content.schema) as file:
        for each in (content.slice(0, 0), content):
            file.write_table(each)
    pq.write_table(content.slice(0, 0), tmp_path / "b.parquet")
    with open_database(f"datafusion://{tmp_path}") as table:
        assert records_of(table.to_dataset()) == records_of(load(content))


def test_odd_numbers_and_names_are_those_of_memory(place: Place) -> None:
    for values, kind in (
        ([2**62, 1, None], pa.int64()),
        ([2**64 - 1, 5], pa.uint64()),
        ([Decimal(10**18), Decimal("0.5")], pa.decimal128(38, 1)),
        ([Decimal(7), Decimal("0.5")], pa.decimal128(38, 20)),
        ([0.0, -0.0, 1 / 3], pa.float64()),
    ):
        content = pa.table({"a": pa.array(values, kind), "A": range(len(values))})
        check_codes(place, content)
    content = pa.table({"x": [0.0, 0.5, float("inf"), float("-inf")]})
    missing = ("inf", "-inf", "0.5")
    with DatabaseTable.of(*place(content), reading=Reading(missing=missing)) as table:
        assert records_of(table.to_dataset()) == records_of(load(content, missing=missing))


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 broken")
    for name, words in (
        ("a.csv", "counts Parquet files here"),
        ("none.parquet", "no such file"),
        ("a.parquet", "damaged"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            open_database(f"datafusion://{tmp_path / name}")
        assert caught.value.__cause__ is None
