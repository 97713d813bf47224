"""Unions of many boxes: the quick ways are held equal to plain ones, box by box."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import QueryError
from thinveil.language import extents, queries
from thinveil.language.claims import Universe, idp
from thinveil.language.extents import Constants, Extent, check_disjoint
from thinveil.language.queries import WHOLE, Cells, Codes, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Grid, Schema
from worlds import boxes_of, ends, examples, schemas

Range = tuple[int, int]
Box = dict[int, Range]
COLUMNS = 4
EVERYTHING = (MISSING, INFINITE)


# ---- plain ways


def overlap(one: Box, other: Box) -> bool:
    for column in range(COLUMNS):
        (a, b), (c, d) = one.get(column, EVERYTHING), other.get(column, EVERYTHING)
        if max(a, c) >= min(b, d):
            return False
    return True


def named(batch: QueryBatch) -> int | None:
    """The question that is refused: the first of those that overlap with fewest boxes."""
    bad = [
        (len(union), number)
        for number, union in enumerate(boxes_of(batch))
        if any(overlap(one, other) for one, other in combinations(union, 2))
    ]
    return min(bad)[1] if bad else None


def values_in(extent: Extent, column: int, span: Range) -> int:
    """How many possible values lie in a range."""
    first, end = int(extent.low[column]), int(extent.end[column])
    missing = bool(extent.missing[column]) and span[0] <= MISSING < span[1]
    return max(0, min(span[1], end) - max(span[0], first)) + missing


def constant(extent: Extent, union: list[Box]) -> bool:
    """Whether disjoint boxes hold no possible record, or all of them."""
    columns = range(len(extent.low))
    held = sum(
        math.prod(values_in(extent, column, box.get(column, EVERYTHING)) for column in columns)
        for box in union
    )
    return held in (0, math.prod(values_in(extent, column, EVERYTHING) for column in columns))


# ---- random unions


@st.composite
def spans(draw: st.DrawFn) -> st.SearchStrategy[Range]:
    """The ranges of one column of a table of cells: values, steps of one width, or any."""
    kind = draw(st.sampled_from(["values", "steps", "cuts", "any", "mixed"]))
    point = st.sampled_from([MISSING, LOWEST, -1, 0, 1, 2]).map(lambda value: (value, value + 1))
    step = st.integers(-1, 2).map(lambda place: (3 * place, 3 * place + 3))
    if kind == "values":
        return point
    if kind == "steps":
        return st.one_of(step, st.just((MISSING, LOWEST)))
    if kind == "cuts":
        cuts = sorted(draw(st.sets(ends(around=3), min_size=2, max_size=5)))
        return st.sampled_from(list(pairwise(cuts)))
    any_range = st.one_of(st.tuples(ends(around=2), ends(around=2)), st.just(EVERYTHING))
    return any_range if kind == "any" else st.one_of(point, step, any_range)


@st.composite
def unions(draw: st.DrawFn, columns: int = COLUMNS, most: int = 6) -> QueryBatch:
    """Any unions over one table of cells, which may hold a cell twice."""
    own = draw(st.lists(st.integers(0, columns - 1), unique=True, max_size=columns))
    of_column = [draw(spans()) for _ in own]
    rows = draw(st.lists(st.tuples(*of_column), min_size=1, max_size=6))
    table = np.array(rows, np.int64).reshape(len(rows), len(own), 2)
    free = [column for column in range(columns) if column not in own]
    narrow = st.sampled_from([WHOLE, *free, *free, *free])
    span = st.one_of(
        st.tuples(ends(around=2), ends(around=2)),
        st.integers(-3, 3).map(lambda low: (low, low + 1)),
    )
    box = st.tuples(st.integers(0, len(rows) - 1), narrow, span)
    asked = draw(st.lists(st.lists(box, min_size=1, max_size=most), min_size=1, max_size=4))
    boxes = [each for union in asked for each in union]
    return QueryBatch(
        Cells(tuple(own), table[:, :, 0], table[:, :, 1]),
        np.array([cell for cell, _, _ in boxes]),
        np.array([column for _, column, _ in boxes]),
        np.array([low for _, _, (low, _) in boxes]),
        np.array([high for _, _, (_, high) in boxes]),
        np.zeros(len(asked), np.int64),
        offsets=np.cumsum([0, *map(len, asked)]),
    )


# ---- disjointness


def check(batch: QueryBatch) -> None:
    if (bad := named(batch)) is None:
        check_disjoint(batch)
    else:
        with pytest.raises(QueryError, match=rf"^question {bad} asks about boxes that overlap$"):
            check_disjoint(batch)


@examples(60)
@given(unions(), st.sampled_from([1, 1000]))
def test_overlaps_are_found_as_by_comparing_all_pairs(batch: QueryBatch, look: int) -> None:
    with mock.patch.object(queries, "LOOK", look):
        check(batch)


@pytest.mark.nightly
@examples(300)
@given(unions(), st.sampled_from([1, 1000]))
def test_overlaps_are_found_in_many_more(batch: QueryBatch, look: int) -> None:
    with mock.patch.object(queries, "LOOK", look):
        check(batch)


@examples(100)
@given(st.data())
def test_pieces_of_a_split_cell_are_disjoint_until_one_is_asked_twice(data: st.DataObject) -> None:
    """Rows of values, each cut along one column: what an attack asks about."""
    value = st.sampled_from([MISSING, 0, 1, 2])
    rows = data.draw(st.lists(st.tuples(value, value), unique=True, min_size=1, max_size=6))
    cuts = sorted(data.draw(st.sets(st.integers(-5, 5), min_size=2, max_size=6)))
    pieces = [(row, cut) for row in range(len(rows)) for cut in range(len(cuts) - 1)]
    chosen = data.draw(st.lists(st.sampled_from(pieces), unique=True, min_size=1))
    again = data.draw(st.lists(st.sampled_from(chosen), max_size=1))
    asked = [*again, *data.draw(st.permutations(chosen))]
    batch = QueryBatch(
        Cells.points((2, 0), rows),
        np.array([row for row, _ in asked]),
        np.full(len(asked), 1),
        np.array([cuts[cut] for _, cut in asked]),
        np.array([cuts[cut + 1] for _, cut in asked]),
        np.zeros(1, np.int64),
        offsets=np.array([0, len(asked)]),
    )
    assert named(batch) == (0 if again else None)
    check(batch)


def of_cells(cells: Cells, cell: Codes, low: Codes, size: int) -> QueryBatch:
    """Unions of `size` boxes each, one range a box on the column after the cells' own."""
    column = np.full(len(cell), len(cells.columns))
    boxes = np.arange(0, len(cell) + 1, size)
    return QueryBatch(
        cells, cell, column, low, low + 5, np.zeros(len(boxes) - 1, np.int64), offsets=boxes
    )


def test_boxes_of_different_cells_are_not_compared_at_all() -> None:
    """The cost of a batch of unions over many values is that of sorting its cells."""
    rng = np.random.default_rng(0)
    cells = Cells.points(range(3), np.unique(rng.integers(0, 40, (3000, 3)), axis=0))
    cell = np.concatenate([rng.permutation(len(cells))[:12] for _ in range(512)])
    with (
        mock.patch.object(extents, "_same_cell", side_effect=AssertionError),
        mock.patch.object(extents, "_any_cells", side_effect=AssertionError),
        mock.patch.object(QueryBatch, "ranges", side_effect=AssertionError),
    ):
        check_disjoint(of_cells(cells, cell, rng.integers(0, 9, len(cell)), 12))


def test_what_a_table_tells_is_worked_out_once() -> None:
    cells = Cells.points((0,), [[0], [1], [MISSING]])
    batch = of_cells(cells, np.array([0, 1, 2]), np.zeros(3, np.int64), 3)
    check_disjoint(batch)
    with mock.patch.object(queries.Kinds, "of", side_effect=AssertionError):
        check_disjoint(batch)


@pytest.mark.parametrize("overlapping", [False, True])
def test_a_union_of_thousands_of_boxes_of_any_shape_is_checked(overlapping: bool) -> None:
    """Two walls of bricks, one turned: no column alone tells any two cells apart."""
    wall = np.array([[7 * x + y, y] for x in range(60) for y in range(60)])
    low = np.vstack([wall, wall[:, ::-1] + [10_000, 0], [[45, 40 if overlapping else 90]]])
    high = low + np.repeat([[7, 1], [1, 7]], [len(wall), len(wall) + 1], axis=0)
    cells = Cells((0, 1), low, high)
    assert set(cells.kinds().number) == {0}
    batch = of_cells(cells, np.arange(len(low)), np.zeros(len(low), np.int64), len(low))
    if overlapping:
        with pytest.raises(QueryError, match="question 0 asks"):
            check_disjoint(batch)
    else:
        check_disjoint(batch)


# ---- constants


@examples(150)
@given(st.data())
def test_constants_equal_exact_volumes(data: st.DataObject) -> None:
    universe: Universe = data.draw(st.sampled_from(["bounded", "unbounded"]))
    schema = data.draw(schemas(bounds=universe == "bounded" or None))
    extent = Extent.of(schema, universe)
    constants = Constants(extent)
    for batch in (data.draw(unions(len(schema))), data.draw(unions(len(schema)))):
        expected = [constant(extent, union) for union in boxes_of(batch)]
        assert constants.among(batch).tolist() == expected


@examples(100)
@given(st.data())
def test_a_union_is_constant_when_its_pieces_fill_the_universe(data: st.DataObject) -> None:
    """Cells are a grid of two columns, boxes cut a third one: all pieces, or all but some."""
    universe: Universe = data.draw(st.sampled_from(["bounded", "unbounded"]))
    lower = data.draw(st.sampled_from([0, -3, LIMIT - 20, -LIMIT + 1]))
    schema = Schema(
        tuple(
            Grid(name, lower=lower, upper=lower + 4, missing=data.draw(st.booleans()))
            for name in "abc"
        )
    )
    inner = st.one_of(st.integers(lower - 1, lower + 6), st.just(LOWEST), ends())
    cuts = [
        sorted({MISSING, INFINITE, *data.draw(st.sets(inner, max_size=3))})
        for _ in range(len(schema))
    ]
    parts = [list(pairwise(each)) for each in cuts]
    table = np.array([[a, b] for a in parts[0] for b in parts[1]], np.int64)
    pieces = [(cell, span) for cell in range(len(table)) for span in parts[2]]
    left_out = data.draw(st.sets(st.sampled_from(pieces), max_size=min(2, len(pieces) - 1)))
    kept = [piece for piece in pieces if piece not in left_out]
    batch = QueryBatch(
        Cells((0, 1), table[:, :, 0], table[:, :, 1]),
        np.array([cell for cell, _ in kept] + [0, 0]),
        np.array([2] * (len(kept) + 1) + [WHOLE]),
        np.array([low for _, (low, _) in kept] + [MISSING, 0]),
        np.array([high for _, (_, high) in kept] + [LOWEST, 0]),
        np.zeros(3, np.int64),
        offsets=np.array([0, len(kept), len(kept) + 1, len(kept) + 2]),
    )
    check(batch)
    extent = Extent.of(schema, universe)
    expected = [constant(extent, union) for union in boxes_of(batch)]
    assert expected[0] or left_out
    assert Constants(extent).among(batch).tolist() == expected


def test_large_codes_do_not_hide_that_a_union_holds_everything() -> None:
    """Doubles near 2^62 lie hundreds apart; the ten values of this column are told apart."""
    schema = Schema((Grid("x", lower=LIMIT - 20, upper=LIMIT - 11),))
    batch = queries.batch_of(
        [([{0: (0, LIMIT - 15)}, {0: (LIMIT - 15, high)}], 0) for high in (LIMIT - 10, LIMIT - 11)]
    )
    assert Constants(Extent.of(schema, "bounded")).among(batch).tolist() == [True, False]


# ---- counts


@examples(60)
@given(st.data())
def test_both_counters_count_the_same(data: st.DataObject) -> None:
    count_twice(data)


@pytest.mark.nightly
@examples(150)
@given(st.data())
def test_both_counters_count_the_same_in_many_more(data: st.DataObject) -> None:
    count_twice(data)


def count_twice(data: st.DataObject) -> None:
    code = st.one_of(st.integers(-3, 3), st.sampled_from([MISSING, LIMIT - 1, 1 - LIMIT, 10**12]))
    rows = data.draw(st.lists(st.tuples(*[code] * COLUMNS), min_size=1, max_size=12))
    table = np.array(rows, np.int64, order="F")
    index, scan = IndexCounter(table), ScanCounter(table)
    for batch in (data.draw(unions()), data.draw(unions())):
        assert index.count(batch).tolist() == scan.count(batch).tolist()


@examples(150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 6), st.booleans())
def test_both_counters_count_the_same_where_most_records_stand_alone(
    seed: int, records: int, values: int, one_start: bool
) -> None:
    """Cells are the prefixes of records, some of them of no record."""
    rng = np.random.default_rng(seed)
    table = np.asfortranarray(rng.integers(0, values, (records, 4)))
    table[rng.random(table.shape) < 0.1] = MISSING
    others = rng.integers(0, values + 1, (5, 3))
    cells = Cells.points(range(3), np.unique(np.vstack([table[:, :3], others]), axis=0))
    boxes = rng.integers(1, 9, 10)
    cell = rng.integers(0, len(cells), int(boxes.sum()))
    low = rng.choice([MISSING, LOWEST, 0, 1, 2], len(cell))
    batch = QueryBatch(
        cells,
        cell,
        np.where(rng.random(len(cell)) < 0.1, WHOLE, 3) if seed % 2 else np.full(len(cell), 3),
        np.zeros(len(cell), np.int64) if one_start else low,
        rng.choice([MISSING, LOWEST, 1, 2, 4, INFINITE], len(cell)),
        np.zeros(10, np.int64),
        offsets=np.concatenate([[0], np.cumsum(boxes)]),
    )
    assert IndexCounter(table).count(batch).tolist() == ScanCounter(table).count(batch).tolist()


@pytest.mark.parametrize("universe", ["bounded", "unbounded"])
def test_a_curator_tells_unions_of_single_records_apart(universe: Universe) -> None:
    """With one record in twelve boxes, "more than 0?" is noisy and "more than 1?" is not 1."""
    rng = np.random.default_rng(3)
    table = np.unique(rng.integers(0, 30, (400, 3)), axis=0)
    schema = Schema(tuple(Grid(name, lower=0, upper=29) for name in "abc"))
    prefixes, first = np.unique(table[:, :2], axis=0, return_index=True)
    cells = Cells.points((0, 1), prefixes)
    cell = np.concatenate([rng.permutation(len(cells))[:12] for _ in range(64)])
    value = table[first, 2][cell]
    hit = np.arange(len(cell)) % 12 == 0
    batch = QueryBatch(
        cells,
        cell,
        np.full(len(cell), 2),
        np.where(hit, value, 40),
        np.where(hit, value + 1, 50),
        np.repeat([0, 3], 32),
        offsets=np.arange(0, len(cell) + 1, 12),
    )
    curator = Curator(Dataset(schema, table), idp(1, universe))
    values = curator.answer(batch.stamped(("run", 0), 1e-10)).values
    assert not np.isin(values[:32], (0.0, 1.0)).any()
    assert (values[32:] == 0).all()
