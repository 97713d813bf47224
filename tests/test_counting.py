"""Counting: one contract for every counter, and the fast one held equal to the plain one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import duckdb_counter, sqlite_counter
from thinveil.curator.counting import index as counting
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.keeping import Kept
from thinveil.curator.counting.ranks import in_order
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.curator.counting.shapes import RANGE, Shape, shapes_of, widths_of
from thinveil.errors import QueryError
from thinveil.language.extents import check_disjoint
from thinveil.language.numbers.different import placed
from thinveil.language.queries import WHOLE, Cells, Codes, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING
from worlds import boxes_of, ends, examples, inside, ranges

COUNTERS: list[Callable[[Codes], Counter]] = [
    ScanCounter,
    IndexCounter,
    duckdb_counter,
    sqlite_counter,
]
FAR = LIMIT - 1
TABLE = np.array(
    [
        # age, income, place
        [3, 10, 0],
        [3, 10, 0],
        [3, -7, 1],
        [8, MISSING, 1],
        [8, MISSING, 2],
        [8, 10, 2],
        [MISSING, FAR, 0],
        [-4, -FAR, 2],
    ],
    dtype=np.int64,
    order="F",
)


@pytest.fixture(params=COUNTERS, ids=lambda each: each.__name__)
def counter(request: pytest.FixtureRequest) -> Counter:
    made: Counter = request.param(TABLE)
    return made


def counted(counter: Counter, *questions: list[dict[int, tuple[int, int]]]) -> list[int]:
    counts: list[int] = counter.count(batch_of([(boxes, 0) for boxes in questions])).tolist()
    return counts


def test_single_ranges(counter: Counter) -> None:
    batch = ranges([0, 0, 0, 0], [3, 4, -4, -5], [4, 8, 9, -4], [0] * 4)
    assert counter.count(batch).tolist() == [3, 0, 7, 0]


def test_infinite_ends(counter: Counter) -> None:
    batch = ranges(
        [1] * 5,
        [MISSING, LOWEST, LOWEST, 10, MISSING],
        [INFINITE, INFINITE, 10, INFINITE, MISSING],
        [0] * 5,
    )
    assert counter.count(batch).tolist() == [8, 6, 2, 4, 0]


def test_missing_values_lie_below_all_others(counter: Counter) -> None:
    batch = ranges([1, 0, 2], [MISSING] * 3, [LOWEST] * 3, [0] * 3)
    assert counter.count(batch).tolist() == [2, 1, 0]


@pytest.mark.parametrize("high", [3, 2, -9, MISSING])
def test_empty_ranges_hold_nothing(counter: Counter, high: int) -> None:
    assert counter.count(ranges([0], [3], [high], [0])).tolist() == [0]
    assert counted(counter, [{0: (3, high)}], [{0: (3, high), 1: (10, 11)}]) == [0, 0]


def test_unknown_values_hold_nothing(counter: Counter) -> None:
    assert counted(counter, [{0: (5, 6)}], [{0: (3, 4), 1: (11, 12)}], [{2: (7, 8)}]) == [0, 0, 0]


def test_points_narrowed_by_a_range(counter: Counter) -> None:
    cells = Cells.points((0, 2), [[3, 0], [3, 1], [8, 2], [MISSING, 0], [9, 9]])
    batch = QueryBatch(
        cells,
        np.array([0, 1, 2, 3, 4, 2, 2]),
        np.array([1] * 7),
        np.array([LOWEST, LOWEST, LOWEST, LOWEST, LOWEST, MISSING, MISSING]),
        np.array([INFINITE] * 6 + [LOWEST]),
        np.zeros(7, np.int64),
    )
    assert counter.count(batch).tolist() == [2, 1, 1, 1, 0, 2, 1]


def test_whole_cells_and_several_columns_in_one_batch(counter: Counter) -> None:
    cells = Cells.points((0,), [[3], [8]])
    batch = QueryBatch(
        cells,
        np.array([0, 0, 1, 1]),
        np.array([WHOLE, 1, 2, WHOLE]),
        np.array([7, 10, 2, 99]),
        np.array([7, 11, 3, -99]),
        np.zeros(4, np.int64),
    )
    assert counter.count(batch).tolist() == [3, 2, 2, 3]


def test_coarse_cells_keep_missing_values_apart(counter: Counter) -> None:
    cells = Cells.points((0,), [[0], [5], [-5], [MISSING]], (5,))
    batch = QueryBatch(
        cells,
        np.arange(4),
        np.full(4, WHOLE),
        np.zeros(4, np.int64),
        np.zeros(4, np.int64),
        np.zeros(4, np.int64),
    )
    assert counter.count(batch).tolist() == [3, 3, 1, 1]


def test_cells_of_several_patterns_in_one_batch(counter: Counter) -> None:
    assert counted(
        counter,
        [{0: (3, 4), 2: (0, 1)}],
        [{0: (0, 5)}],
        [{0: (1, 9), 1: (-7, 11)}],
        [{}],
        [{0: (MISSING, LOWEST), 1: (0, INFINITE)}],
        [{0: (MISSING, 4), 2: (0, 2)}],
    ) == [2, 3, 4, 8, 1, 4]


def test_a_union_is_the_sum_of_its_boxes(counter: Counter) -> None:
    assert counted(
        counter,
        [{0: (3, 4)}, {0: (8, 9), 1: (10, 11)}],
        [{2: (0, 1)}],
        [{2: (0, 1)}, {2: (1, 2)}, {2: (2, 3)}],
    ) == [4, 3, 8]


def test_an_unknown_cell_stays_empty_whatever_was_asked_before(counter: Counter) -> None:
    cells = Cells.points((0,), [[3], [99]])
    cell, column, zeros = np.array([0, 1]), np.array([2, 2]), np.zeros(2, np.int64)
    for low, high in ([2, 2], [9, 9]), ([0, 1], [2, 2]), ([1, 1], [2, 2]), ([0, 0], [1, 2]):
        batch = QueryBatch(cells, cell, column, np.array(low), np.array(high), zeros)
        assert counter.count(batch).tolist() == by_hand(TABLE, batch)


def test_a_table_of_one_record() -> None:
    for kind in COUNTERS:
        counter = kind(np.array([[5]], np.int64, order="F"))
        assert counter.count(ranges([0, 0], [5, 6], [6, INFINITE], [0, 0])).tolist() == [1, 0]


# ---- fast equals plain, and both equal a loop in Python

VALUES = st.one_of(
    st.integers(-5, 5), st.sampled_from([MISSING, FAR, -FAR, 0, 0]), st.integers(-FAR, FAR)
)


@st.composite
def cell_range(draw: st.DrawFn, known: list[int]) -> tuple[int, int]:
    """One range of a cell: a value, a coarse step, everything, or anything else."""
    kind = draw(st.sampled_from(["point", "coarse", "whole", "general", "general"]))
    if kind == "whole":
        return MISSING, INFINITE
    if kind == "general":
        return draw(ends()), draw(ends())
    value = draw(st.one_of(st.sampled_from(known), st.integers(-6, 6)))
    if kind == "point" or value == MISSING:
        return value, value + 1
    width = draw(st.sampled_from([2, 3, 5, 1000, 7, 4]))
    return value // width * width, value // width * width + width


@st.composite
def questions(draw: st.DrawFn, table: Codes) -> QueryBatch:
    columns = list(range(table.shape[1]))
    fixed = draw(st.lists(st.sampled_from(columns), unique=True))
    rows = draw(st.integers(1, 6))
    if len(fixed) > 0 and draw(st.booleans()):
        picks = draw(st.lists(st.integers(0, len(table) - 1), min_size=rows, max_size=rows))
        widths = [draw(st.sampled_from([1, 1, 2, 10])) for _ in fixed]
        values = [
            [
                int(table[pick, column])
                if table[pick, column] == MISSING
                else int(table[pick, column]) // width * width
                for column, width in zip(fixed, widths, strict=True)
            ]
            for pick in picks
        ]
        cells = Cells.points(fixed, values, widths)
    else:
        table_of_cells = [
            [draw(cell_range(table[:, column].tolist())) for column in fixed] for _ in range(rows)
        ]
        bounds = np.array(table_of_cells, np.int64).reshape(rows, len(fixed), 2)
        cells = Cells(tuple(fixed), bounds[:, :, 0], bounds[:, :, 1])
    free = [WHOLE, *(column for column in columns if column not in fixed)]
    narrow = draw(st.lists(st.sampled_from(free), min_size=1, max_size=12))
    if draw(st.booleans()):
        narrow = [narrow[0]] * len(narrow)
    boxes = len(narrow)
    many: dict[str, Any] = {"min_size": boxes, "max_size": boxes}
    low = draw(st.lists(ends(), **many))
    if draw(st.booleans()):
        low = [low[0]] * boxes
    offsets = None
    threshold = boxes
    if draw(st.booleans()):
        cuts = draw(st.sets(st.integers(1, boxes)))
        offsets = np.array(sorted({0, boxes, *cuts}), np.int64)
        threshold = len(offsets) - 1
    return QueryBatch(
        cells,
        np.array(draw(st.lists(st.integers(0, rows - 1), **many)), np.int64),
        np.array(narrow, np.int64),
        np.array(low, np.int64),
        np.array(draw(st.lists(ends(), **many)), np.int64),
        np.zeros(threshold, np.int64),
        offsets,
    )


@st.composite
def tables_with_batches(draw: st.DrawFn) -> tuple[Codes, list[QueryBatch]]:
    columns = draw(st.integers(1, 4))
    row = st.lists(VALUES, min_size=columns, max_size=columns)
    rows = draw(st.lists(row, min_size=1, max_size=12))
    table = np.asfortranarray(np.array(rows, np.int64))
    return table, draw(st.lists(questions(table), min_size=1, max_size=4))


def by_hand(table: Codes, batch: QueryBatch) -> list[int]:
    rows = table.tolist()
    return [sum(inside(row, box) for box in boxes for row in rows) for boxes in boxes_of(batch)]


@examples(300)
@given(tables_with_batches())
def test_fast_plain_and_by_hand_agree(case: tuple[Codes, list[QueryBatch]]) -> None:
    table, batches = case
    scan, index = ScanCounter(table), IndexCounter(table)
    different = IndexCounter(*np.unique(table, axis=0, return_counts=True))
    for batch in [*batches, *batches]:
        expected = by_hand(table, batch)
        assert scan.count(batch).tolist() == expected
        assert index.count(batch).tolist() == expected
        assert different.count(batch).tolist() == expected


@examples(60)
@given(tables_with_batches(), st.integers(1, 5))
def test_the_size_of_chunks_does_not_matter(
    case: tuple[Codes, list[QueryBatch]], chunk: int
) -> None:
    table, batches = case
    with mock.patch.object(counting, "_CHUNK", chunk):
        index = IndexCounter(table)
        for batch in batches:
            assert index.count(batch).tolist() == by_hand(table, batch)


@examples(300)
@given(
    st.lists(st.integers(-9, 9) | st.sampled_from([MISSING, FAR, -FAR, 300]), min_size=1)
    | st.lists(st.integers(-3, 40) | st.just(MISSING), min_size=1, max_size=300)
)
def test_places_by_a_table_are_those_by_sorting(codes: list[int]) -> None:
    given = np.array(codes, np.int64)
    values, place = placed(given)
    expected = np.unique(given, return_inverse=True)
    assert values.tolist() == expected[0].tolist()
    assert place.tolist() == expected[1].reshape(-1).tolist()
    for end in (len(values), 100 * len(codes)):
        assert in_order(place, end).tolist() == np.sort(place).tolist()


def test_many_patterns_of_cells_push_old_indexes_out() -> None:
    rng = np.random.default_rng(1)
    table = np.asfortranarray(rng.integers(-3, 4, (50, 6)))
    scan, index = ScanCounter(table), IndexCounter(table)
    kept: list[tuple[QueryBatch, list[int]]] = []
    for first in range(6):
        for second in range(6):
            for narrow in range(6):
                if len({first, second, narrow}) == 3:
                    cells = Cells.points((first, second), table[:8, [first, second]])
                    batch = QueryBatch(
                        cells,
                        np.arange(8),
                        np.full(8, narrow),
                        np.full(8, -2),
                        np.arange(8) - 3,
                        np.zeros(8, np.int64),
                    )
                    kept.append((batch, scan.count(batch).tolist()))
    for batch, expected in [*kept, *kept]:
        assert index.count(batch).tolist() == expected


# ---- unions must be disjoint

Boxes = list[dict[int, tuple[int, int]]]
SMALL = st.dictionaries(
    st.integers(0, 1), st.tuples(st.integers(-1, 3), st.integers(-1, 3)), max_size=2
)


@examples(300)
@given(st.lists(st.lists(SMALL, min_size=1, max_size=4), min_size=1, max_size=4))
def test_overlapping_boxes_are_refused_and_disjoint_ones_are_not(unions: list[Boxes]) -> None:
    grid = [(a, b) for a in range(-2, 4) for b in range(-2, 4)]
    overlapping = [
        number
        for number, boxes in enumerate(unions)
        if any(sum(inside(point, box) for box in boxes) > 1 for point in grid)
    ]
    batch = batch_of([(boxes, 0) for boxes in unions])
    if overlapping:
        with pytest.raises(QueryError, match="overlap") as caught:
            check_disjoint(batch)
        named = int(str(caught.value).split()[1])
        assert named in overlapping
    else:
        check_disjoint(batch)


REFUSED: dict[str, Callable[[], object]] = {
    "a cell that does not exist": lambda: QueryBatch(
        Cells.everything(),
        np.array([1]),
        np.array([0]),
        np.array([0]),
        np.array([1]),
        np.array([0]),
    ),
    "a column narrowed twice": lambda: QueryBatch(
        Cells.points((0,), [[3]]),
        np.array([0]),
        np.array([0]),
        np.array([0]),
        np.array([1]),
        np.array([0]),
    ),
    "no question": lambda: ranges([], [], [], []),
    "a box without a column": lambda: ranges([0], [0, 1], [1, 2], [0, 0]),
    "a threshold too few": lambda: ranges([0, 0], [0, 1], [1, 2], [0]),
    "no answers wanted": lambda: ranges([0], [0], [1], [0], repeats=0),
    "no answers wanted of one": lambda: ranges(
        [0, 0], [0, 1], [1, 2], [0, 0], repeats=np.array([1, 0])
    ),
    "repeats of the wrong length": lambda: ranges(
        [0, 0], [0, 1], [1, 2], [0, 0], repeats=np.array([2])
    ),
    "a question without a box": lambda: ranges([0], [0], [1], [0, 0], offsets=np.array([0, 0, 1])),
    "boxes left over": lambda: ranges([0, 0], [0, 1], [1, 2], [0], offsets=np.array([0, 1])),
    "a cell with one end": lambda: Cells((0,), np.zeros((1, 1), int), np.zeros((1, 2), int)),
    "a cell with a column twice": lambda: Cells((0, 0), np.array([[0, 0]]), np.array([[1, 1]])),
    "a cell with a negative column": lambda: Cells((-1,), np.array([[0]]), np.array([[1]])),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_malformed_batches_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(QueryError):
        make()


# ---- what is shared with databases


def test_what_is_not_used_for_longest_goes_first() -> None:
    made: list[int] = []

    def make(key: int) -> int:
        made.append(key)
        return key * 10

    kept: Kept[int] = Kept(2)
    for key in (1, 2, 1, 3, 1, 2):  # 2 goes for 3, then 3 for 2
        assert kept.get_or(key, partial(make, key)) == key * 10
    assert made == [1, 2, 3, 2]


def test_what_has_to_be_dropped_waits_until_nobody_needs_it() -> None:
    dropped: list[str] = []
    kept = Kept(1, dropped.append)
    for key in "abc":
        kept.get_or(key, partial(str, key))
    assert dropped == []
    kept.trim()
    assert dropped == ["a", "b"]


def test_shapes_tell_what_is_fixed_from_what_is_limited() -> None:
    low = np.array([[5, 0, MISSING], [5, 4, MISSING], [5, 3, MISSING], [6, 8, 1]])
    high = np.array([[6, 4, INFINITE], [6, 8, INFINITE], [6, 8, INFINITE], [7, 12, 9]])
    cells = Cells((0, 2, 7), low, high)
    shapes, which = shapes_of(cells.columns, widths_of(cells, 3))
    steps = Shape(((0, 1), (2, 4)), ())
    ranged = Shape(((0, 1),), (2,))
    assert [shapes[each] for each in which.tolist()] == [
        steps, steps, ranged, Shape(((0, 1), (2, 4)), (7,))
    ]  # fmt: skip
    assert (widths_of(cells, 0)[:, 1] == RANGE).all()
