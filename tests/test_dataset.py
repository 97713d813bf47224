"""The coded table: what it holds and what it refuses."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import DataError
from thinveil.language.schema import LIMIT, MISSING, Categories, Grid, Schema

SCHEMA = Schema(
    (
        Grid("age", lower=0, upper=99),
        Grid("salary", "decimal", Decimal("0.01"), missing=True),
        Categories("job", ("nurse", "teacher")),
    )
)
CODES = np.array([[30, 1234, 1], [40, MISSING, 0], [50, -5, 1]])


def test_holds_read_only_columns_of_its_own() -> None:
    codes = CODES.copy()
    table = Dataset(SCHEMA, codes)
    codes[0, 0] = 77
    assert table.codes.dtype == np.int64
    assert table.codes.flags.f_contiguous
    assert table.column(0).tolist() == [30, 40, 50]
    with pytest.raises(ValueError, match="read-only"):
        table.codes[0, 0] = 1


def test_a_read_only_view_of_writable_memory_is_copied() -> None:
    codes = np.asfortranarray(CODES)
    view = codes.view()
    view.flags.writeable = False
    table = Dataset(SCHEMA, view)
    codes[0, 0] = 77
    assert table.column(0)[0] == 30


def test_frozen_codes_are_not_copied() -> None:
    codes = np.array(CODES, order="F")
    codes.flags.writeable = False
    assert Dataset(SCHEMA, codes).codes is codes


def test_decodes_rows() -> None:
    assert Dataset(SCHEMA, CODES).rows() == [
        (30, Decimal("12.34"), "teacher"),
        (40, None, "nurse"),
        (50, Decimal("-0.05"), "teacher"),
    ]


def test_samples_rows_by_place_and_by_mask() -> None:
    table = Dataset(SCHEMA, CODES)
    assert table.sample([2, 0]).codes.tolist() == CODES[[2, 0]].tolist()
    assert table.sample(table.column(2) == 0).codes.tolist() == CODES[[1]].tolist()
    assert table.sample([2, 0]).codes.flags.f_contiguous
    with pytest.raises(DataError, match="no records"):
        table.sample(np.zeros(3, bool))


def test_digest_tells_tables_apart() -> None:
    table = Dataset(SCHEMA, CODES)
    assert table.digest() == Dataset(SCHEMA, CODES.astype(np.int64)).digest()
    assert table.digest() != table.sample([1, 0, 2]).digest()
    assert table.digest() != table.sample([0, 1]).digest()
    grid = Dataset(Schema((Grid("a"), Grid("b"))), np.array([[1, 2]]))
    assert grid.digest() != Dataset(Schema((Grid("a"), Grid("c"))), np.array([[1, 2]])).digest()
    assert grid.digest() != Dataset(Schema((Grid("a"), Grid("b"))), np.array([[2, 1]])).digest()


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.empty((0, 3), np.int64), "the table has no records"),
        (np.zeros((2, 2), np.int64), "the schema has 3 columns"),
        (np.zeros(3, np.int64), "the schema has 3 columns"),
        (np.zeros((1, 3)), "whole numbers"),
        ([[1, 2, 0], [100, 2, 0]], "row 2 of column 'age' lies outside the bounds"),
        ([[-1, 2, 0]], "row 1 of column 'age' .* widen the bounds"),
        ([[1, 2, 0], [1, 2, 0], [1, 2, 2]], "row 3 of column 'job'"),
        ([[1, LIMIT, 0]], "row 1 of column 'salary' .* coarser step"),
        ([[1, 2, 0], [MISSING, 2, 0]], "row 2 of column 'age' has no value.* missing = true"),
    ],
)
def test_refuses_what_does_not_fit(codes: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset(SCHEMA, np.asarray(codes))


def test_a_column_that_is_always_missing() -> None:
    schema = Schema((Categories("gone", (), missing=True),))
    assert Dataset(schema, np.array([[MISSING]])).rows() == [(None,)]
    with pytest.raises(DataError, match="row 1 of column 'gone'"):
        Dataset(schema, np.array([[0]]))
