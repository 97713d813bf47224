"""What every database must do, one suite for all: a test class derives from one of these."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import test_counting
import test_database
from databases import PLACES, Place, check_every_kind, from_codes, mixed
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database.table import DatabaseTable
from thinveil.errors import DataError
from thinveil.language.queries import Codes, QueryBatch
from thinveil.language.schema import Grid, Schema

_SCHEMAS, _MISFITS = test_database.SCHEMAS, test_database.MISFITS
_READ_HERE = ("texts as numbers", "texts as days", "no number")
"""What only a database in this process does: the values of a text column are read by Python."""


def _some(cases: dict[str, Any], *, here: bool) -> list[Any]:
    return [
        pytest.param(case, id=name) for name, case in cases.items() if (name in _READ_HERE) == here
    ]


class Contract:
    """What is the same on a server; the module has fixtures `place`, which puts tables
    there, and `counter`."""

    test_a_union_is_the_sum_of_its_boxes = staticmethod(
        test_counting.test_a_union_is_the_sum_of_its_boxes
    )
    test_an_unknown_cell_stays_empty_whatever_was_asked_before = staticmethod(
        test_counting.test_an_unknown_cell_stays_empty_whatever_was_asked_before
    )
    test_cells_of_several_patterns_in_one_batch = staticmethod(
        test_counting.test_cells_of_several_patterns_in_one_batch
    )
    test_coarse_cells_keep_missing_values_apart = staticmethod(
        test_counting.test_coarse_cells_keep_missing_values_apart
    )
    test_empty_ranges_hold_nothing = staticmethod(test_counting.test_empty_ranges_hold_nothing)
    test_infinite_ends = staticmethod(test_counting.test_infinite_ends)
    test_missing_values_lie_below_all_others = staticmethod(
        test_counting.test_missing_values_lie_below_all_others
    )
    test_points_narrowed_by_a_range = staticmethod(test_counting.test_points_narrowed_by_a_range)
    test_single_ranges = staticmethod(test_counting.test_single_ranges)
    test_unknown_values_hold_nothing = staticmethod(test_counting.test_unknown_values_hold_nothing)
    test_whole_cells_and_several_columns_in_one_batch = staticmethod(
        test_counting.test_whole_cells_and_several_columns_in_one_batch
    )
    test_cells_of_very_many_shapes = staticmethod(test_database.test_cells_of_very_many_shapes)
    test_more_tables_at_once_than_are_kept = staticmethod(
        test_database.test_more_tables_at_once_than_are_kept
    )
    test_the_order_of_columns_is_the_schema_s = staticmethod(
        test_database.test_the_order_of_columns_is_the_schema_s
    )
    test_columns_must_be_those_of_the_schema = staticmethod(
        test_database.test_columns_must_be_those_of_the_schema
    )
    test_an_audit_ends_exact_by_one_statement_a_round = staticmethod(
        test_database.test_an_audit_ends_exact_by_one_statement_a_round
    )
    test_no_record_is_fetched_unless_it_is_allowed = staticmethod(
        test_database.test_no_record_is_fetched_unless_it_is_allowed
    )

    def test_a_table_of_every_kind(self, place: Place) -> None:
        check_every_kind(place)

    def test_the_fingerprint_is_that_of_duckdb(self, place: Place) -> None:
        content = mixed(60).select([0, 1, 3, 4, 5, 7, 8])
        with (
            DatabaseTable.of(*place(content)) as table,
            DatabaseTable.of(*PLACES["duckdb"](content)) as other,
        ):
            assert table.digest() == other.digest()

    @pytest.mark.parametrize("case", _some(_SCHEMAS, here=False))
    def test_a_given_schema_codes_as_in_memory(self, place: Place, case: Any) -> None:
        test_database.test_a_given_schema_codes_as_in_memory(place, case)

    @pytest.mark.parametrize("case", _some(_MISFITS, here=False))
    def test_what_does_not_fit_is_not_shown(self, place: Place, case: Any) -> None:
        test_database.test_what_does_not_fit_is_named_and_counted_but_not_shown(place, case)


class OnServer(Contract):
    """What a server does besides: values stay there."""

    def test_values_of_a_text_column_do_not_leave_to_be_read_as_numbers(self, place: Place) -> None:
        table = place(pa.table({"amount": ["31", "57"]}))
        with pytest.raises(DataError, match=r"'amount' is stored as text.*leave the database"):
            DatabaseTable.of(*table, Schema((Grid("amount"),)))


class InProcess(Contract):
    """What a database in this process does besides: Python may read texts as numbers."""

    @pytest.mark.parametrize("case", _some(_SCHEMAS, here=True))
    def test_texts_are_read_as_in_memory(self, place: Place, case: Any) -> None:
        test_database.test_a_given_schema_codes_as_in_memory(place, case)

    @pytest.mark.parametrize("case", _some(_MISFITS, here=True))
    def test_texts_that_do_not_fit_are_not_shown(self, place: Place, case: Any) -> None:
        test_database.test_what_does_not_fit_is_named_and_counted_but_not_shown(place, case)


def check_counts(place: Place, case: tuple[Codes, list[QueryBatch]]) -> None:
    """Hold the counts of batches to those of a scan, also when they are asked again."""
    codes, batches = case
    with DatabaseTable.of(*place(from_codes(codes))) as table:
        scan, counter = ScanCounter(codes), table.counter()
        for batch in [*batches, *(each for each in batches for _ in range(2))]:
            assert counter.count(batch).tolist() == scan.count(batch).tolist()
