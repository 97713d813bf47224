"""Different rows, held against what NumPy finds by sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil.language.numbers import different as module
from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes
from thinveil.language.schema import LIMIT, MISSING
from worlds import examples

CODES = st.sampled_from([MISSING, -LIMIT, -1, 0, 1, 2, 7, 10**6, LIMIT - 1]) | st.integers(0, 5)


@st.composite
def tables(draw: st.DrawFn) -> Codes:
    many, width = draw(st.integers(0, 30)), draw(st.integers(1, 5))
    cells = draw(st.lists(CODES, min_size=many * width, max_size=many * width))
    return np.array(cells, np.int64).reshape(many, width)


def check(table: Codes) -> None:
    found = Different.of(table)
    rows, first, place, often = np.unique(
        table, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    assert found.rows.tolist() == rows.tolist()
    assert found.first.tolist() == first.tolist()
    assert found.place.tolist() == place.reshape(-1).tolist()
    assert found.often.tolist() == often.tolist()


@examples(200)
@given(tables())
def test_different_rows_are_those_of_the_library(table: Codes) -> None:
    check(table)


@pytest.mark.parametrize("span", [1, 2_000_000])
def test_numbers_of_rows_never_overflow(span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve columns of 50,000 values: their product is far beyond 64 bits."""
    monkeypatch.setattr(module, "TABLE_SPAN", span)
    rng = np.random.default_rng(7)
    table = rng.integers(0, 10**6, (50_000, 12))
    check(np.concatenate([table, table[:100]]))
