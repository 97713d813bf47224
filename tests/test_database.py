"""Tables that stay in DuckDB and SQLite: the same schema, codes, counts and audits as in memory."""

from __future__ import annotations

from collections.abc import Callable

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings

from databases import (
    Place,
    contents,
    from_codes,
    in_duckdb,
    in_sqlite,
    records_of,
)
from test_counting import tables_with_batches
from thinveil import load
from thinveil.curator.counting import ScanCounter
from thinveil.curator.database import DatabaseTable
from thinveil.errors import DataError
from thinveil.language.queries import Codes, QueryBatch

PLACES: dict[str, Place] = {
    "duckdb": in_duckdb(ibis.duckdb.connect()),
    "sqlite": in_sqlite(ibis.sqlite.connect()),
}


@pytest.fixture(params=PLACES.values(), ids=PLACES.keys())
def place(request: pytest.FixtureRequest) -> Place:
    return request.param


def on_both(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())(test)


@on_both
@settings(max_examples=60, deadline=None)
@given(content=contents())
def test_schema_and_codes_are_those_of_memory(place: Place, content: pa.Table) -> None:
    try:
        expected = load(content)
    except DataError:  # such as a text of a number beyond any grid
        with pytest.raises(DataError):
            DatabaseTable.of(place(content))
        return
    with DatabaseTable.of(place(content)) as table:
        assert table.schema == expected.schema
        assert table.records == expected.records
        assert records_of(table.to_dataset()) == records_of(expected)
    with DatabaseTable.of(place(content), expected.schema) as again:
        assert records_of(again.to_dataset()) == records_of(expected)


@on_both
@settings(max_examples=60, deadline=None)
@given(case=tables_with_batches())
def test_counts_are_those_of_a_scan(place: Place, case: tuple[Codes, list[QueryBatch]]) -> None:
    codes, batches = case
    with DatabaseTable.of(place(from_codes(codes))) as table:
        scan, counter = ScanCounter(codes), table.counter()
        for batch in [*batches, *batches, *(each for each in batches for _ in range(2))]:
            assert counter.count(batch).tolist() == scan.count(batch).tolist()
