"""Equal records of a large table are kept once, with how often they occur: the same counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from databases import PLACES, check_codes, check_every_kind, contents, from_codes, records_of
from test_counting import tables_with_batches
from thinveil import Categories, Curator, Grid, Schema, audit, idp, load
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database import table as module
from thinveil.curator.database.counting import DatabaseCounter
from thinveil.curator.database.session import Session
from thinveil.curator.database.table import DatabaseTable
from thinveil.errors import DataError
from thinveil.language.queries import Codes, QueryBatch
from worlds import examples

DUCKDB = PLACES["duckdb"]


@pytest.fixture(autouse=True, params=[2**32, 0], ids=["index", "statements"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Take every table for a large one; its different records fit into memory, or do not."""
    most: int = request.param
    monkeypatch.setattr(module, "_kept", lambda session, codes: session.keep(module._once(codes)))
    monkeypatch.setattr(module, "half_of_memory", lambda: most)
    return most


@examples(20)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(content: pa.Table) -> None:
    check_codes(DUCKDB, content)


def test_a_table_of_every_kind() -> None:
    check_every_kind(DUCKDB, 8)


@examples(20)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(case: tuple[Codes, list[QueryBatch]]) -> None:
    codes, batches = case
    with DatabaseTable.of(*DUCKDB(from_codes(codes))) as table:
        scan, counter = ScanCounter(codes), table.counter()
        for batch in [*batches, *batches, *(each for each in batches for _ in range(2))]:
            assert counter.count(batch).tolist() == scan.count(batch).tolist()


def test_an_audit_asks_the_same_as_in_memory(memory: int) -> None:
    rng = np.random.default_rng(7)
    content = from_codes(rng.integers(0, 4, (300, 3)))
    held = load(content)
    with DatabaseTable.of(*DUCKDB(content), held.schema) as table:
        kind = IndexCounter if memory else DatabaseCounter
        assert isinstance(table.counter(), kind)
        verdict = audit(Curator(table, idp()), truth=held)
        assert records_of(table.to_dataset()) == records_of(held)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.run.meter.queries == audit(Curator(held, idp())).run.meter.queries


def test_fingerprint_extremes_and_records_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema((Grid("a"), Categories("b", ("x", "y"), missing=True)))
    content = pa.table({"a": [5, 5, 5, -1], "b": ["x", "x", None, "y"]})
    with DatabaseTable.of(*DUCKDB(content), schema) as once:
        monkeypatch.setattr(module, "_kept", lambda session, codes: session.keep(codes))
        with DatabaseTable.of(*DUCKDB(content), schema) as plain:
            assert once.digest() == plain.digest()
            assert once.records == plain.records == 4
            pairs = zip(once.extremes(), plain.extremes(), strict=True)
            assert all(np.array_equal(*pair) for pair in pairs)


def test_rows_that_do_not_fit_are_counted_as_records() -> None:
    schema = Schema((Grid("a", lower=0, upper=3),))
    with pytest.raises(DataError, match=r"^3 rows of column 'a' lie outside"):
        DatabaseTable.of(*DUCKDB(pa.table({"a": [7, 7, 9, 1]})), schema)


@pytest.mark.parametrize(
    ("first", "once"), [([1, 2, 2, 3], True), ([1, 2, 3, 3], False), ([1, 2], False)]
)
def test_which_tables_are_kept_so(
    first: list[int], once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(module, "_LARGE", 3)
    with DatabaseTable.of(*DUCKDB(pa.table({"a": first}))) as table:
        assert isinstance(table.counter(), IndexCounter) == once
        assert table.records == len(first)


def test_what_cannot_be_grouped_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(module, "_LARGE", 3)
    keep = Session.keep

    def full(self: Session, *expressions: Any, **how: Any) -> Any:
        if "n" in expressions[0].columns and "c0" in expressions[0].columns:
            raise MemoryError
        return keep(self, *expressions, **how)

    monkeypatch.setattr(Session, "keep", full)
    with DatabaseTable.of(*DUCKDB(pa.table({"a": [4, 4, 4, 5]}))) as table:
        assert isinstance(table.counter(), DatabaseCounter)
        assert table.records == 4
