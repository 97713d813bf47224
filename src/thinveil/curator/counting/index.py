"""How many records satisfy each predicate of a batch, by positions in sorted arrays.

A group of records and a range become two positions, found by bisection (an inverted index).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.curator.counting.keeping import Kept
from thinveil.curator.counting.ranks import Ranks, in_order
from thinveil.curator.counting.shapes import Digit, Shape, each_kind, shapes_of, widths_of
from thinveil.language.numbers.different import placed
from thinveil.language.queries import WHOLE, Cells, Codes, Flags, QueryBatch
from thinveil.language.schema import MISSING

# Round figures that hardly matter: they choose between two ways to the same counts.
_FEW_WIDTHS: Final = 3  # of more, each with groups of its own, a column is looked at by record
_FEW_RECORDS: Final = 16  # in a cell, on average, may be looked at one by one
_MANY_GROUPS: Final = 16  # so many times more groups than ranges are not worth preparing for
_POSSIBLE: Final = 2  # so many times more keys than there are may have a table of positions
_CHUNK: Final = 4_000_000  # pairs of box and record at once: some 200 MB
_KEPT: Final = 1_000_000  # codes of columns that are kept sorted: some 30 MB


@dataclass(slots=True)
class _Groups:
    """Which records agree on some digits: an id for each record, and the way to look it up.

    A level is a digit that tells records apart that agree on those before it: its place, its
    values, and the pairs of group and value that occur. In every other digit all records of a
    group are alike, so one of them is compared.
    """

    ids: Codes
    number: int = 1
    levels: tuple[tuple[int, Codes, Codes], ...] = ()

    def split(self, place: int, values: Codes, rank: Codes) -> _Groups:
        """Return the groups that one more digit makes, given its values and each record's."""
        keys, ids = placed(self.ids * len(values) + rank)
        if len(keys) == self.number:
            return self
        level = (place, values, keys)
        return _Groups(ids, len(keys), (*self.levels, level))

    def find(self, digits: Codes, of: Callable[[Codes, Codes], Codes]) -> Codes:
        """Return the group of each row of digits, -1 where no record has them.

        `of` gives the digits of some records at some places.
        """
        found = np.zeros(len(digits), np.int64)
        lost = np.zeros(len(digits), np.bool_)
        for place, values, keys in self.levels:
            rank = _place(values, digits[:, place], lost)
            found = _place(keys, found * len(values) + rank, lost)
        alike = np.ones(digits.shape[1], np.bool_)
        alike[[place for place, *_ in self.levels]] = False
        places = np.flatnonzero(alike)
        if len(places):
            some = np.zeros(self.number, np.int64)
            some[self.ids] = np.arange(len(self.ids))
            lost |= (of(some[found], places) != digits[:, places]).any(axis=1)
        found[lost] = -1
        return found


def _place(among: Codes, wanted: Codes, lost: Flags) -> Codes:
    """Return the place of each wanted value, and note in `lost` those that are not there."""
    place = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    lost |= among[place] != wanted
    return place


@dataclass(slots=True)
class _Lone:
    """How many rows each group has and the value of its first: one is compared directly.

    A last entry stands for a group without records; it is the one at -1. A row of a table of
    different records stands for as many as `many` says.
    """

    size: Codes
    value: Codes
    many: Codes

    @staticmethod
    def of(
        keys: Codes, values: Codes, base: int, groups: int, summed: Codes | None
    ) -> _Lone | None:
        """Return None where few groups have a single row."""
        if groups <= len(keys) // 2:
            return None
        starts = np.flatnonzero(np.diff(keys // base, prepend=-1))
        size = np.diff(starts, append=[len(keys), len(keys)])
        value = values[keys[starts] % base]
        many = size if summed is None else np.append(summed[starts + 1] - summed[starts], 0)
        return _Lone(size, np.append(value, MISSING), many)


@dataclass(slots=True)
class _Index:
    """Records in order of (group, value of one column), as one sorted array of keys.

    Where a row stands for several records, each key is there once, and `summed` says how many
    records stand before it.
    """

    keys: Codes
    ranks: Ranks
    base: int
    groups: int
    lone: _Lone | None = None
    starts: tuple[int, Codes] | None = None
    summed: Codes | None = None
    table: Codes | None = None  # how many keys stand before each that is possible, if they are few

    def inside(self, group: Codes, low: Codes, high: Codes) -> Codes:
        """Return how many records of each group lie in each range."""
        if self.lone is None:
            return self.between(group, low, high)
        size = self.lone.size[group]
        value = self.lone.value[group]
        inside: Codes = ((low <= value) & (value < high)) * self.lone.many[group]
        if len(several := np.flatnonzero(size > 1)):
            inside[several] = self.between(group[several], low[several], high[several])
        return inside

    def between(self, group: Codes, low: Codes, high: Codes) -> Codes:
        """Return the same by positions alone."""
        start, end = self.positions(group, low, high)
        if self.summed is not None:
            start, end = self.summed[start], self.summed[end]
        inside: Codes = np.maximum(end - start, 0)
        inside[group < 0] = 0
        return inside

    def positions(self, group: Codes, low: Codes, high: Codes) -> tuple[Codes, Codes]:
        """Return how many keys stand before (group, low) and before (group, high)."""
        if len(low) * _MANY_GROUPS >= self.groups and (low == low[0]).all():
            self._prepare(int(low[0]))
        return self._before(group, low), self._before(group, high)

    def _before(self, group: Codes, end: Codes) -> Codes:
        if self.starts is not None and end[0] == self.starts[0] and (end == end[0]).all():
            return self.starts[1][group]
        wanted = group * self.base + self.ranks.rank(end)
        if self.groups * self.base > _POSSIBLE * len(self.keys):
            return np.searchsorted(self.keys, wanted)
        if self.table is None:
            many = np.bincount(self.keys, minlength=self.groups * self.base)
            self.table = np.append(0, np.cumsum(many))
        before: Codes = self.table[wanted]
        return before

    def _prepare(self, end: int) -> None:
        """Remember the positions of one range end that a whole batch shares."""
        if self.starts is None or self.starts[0] != end:
            rank = self.ranks.rank(np.array([end]))
            starts = np.searchsorted(self.keys, np.arange(self.groups) * self.base + rank)
            self.starts = (end, starts)


@dataclass(slots=True)
class _Plan:
    """How to answer questions that start from one table of cells."""

    cells: Cells
    shapes: list[Shape]
    shape: Codes
    group: Codes


class IndexCounter:
    """Counts with sorted arrays, built when first needed and kept for a while.

    A cell that fixes columns to single values, or to aligned steps of one width, is a group
    of records with an id. Other ranges are checked record by record within the group. A row of
    the table may stand for as many records as `many` says.
    """

    def __init__(self, table: Codes, many: Codes | None = None) -> None:
        self._table, self._many = table, many
        self._records = len(table)
        self._plans: Kept[_Plan] = Kept(1)
        columns = _KEPT // max(len(table), 1)
        self._digits: Kept[tuple[Codes, Codes]] = Kept(max(columns, 64))
        self._groups: Kept[_Groups] = Kept(4)
        self._wholes: Kept[_Index] = Kept(max(columns, 24))  # of columns by themselves
        self._indexes: Kept[_Index] = Kept(24)
        self._orders: Kept[Codes] = Kept(4)
        self._firsts: Kept[Codes] = Kept(4)

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        plan = self._plans.get_or(batch.cells.digest, lambda: self._plan_for(batch.cells))
        cell, low, high = batch.cell, batch.low, batch.high
        inside = np.zeros(len(cell), np.int64)
        for number, some in each_kind(plan.shape[cell]):
            for column, mine in each_kind(batch.column[some]):
                asked = mine if isinstance(some, slice) else some[mine]
                inside[asked] = self._range(
                    plan, plan.shapes[number], column, cell[asked], low[asked], high[asked]
                )
        return batch.total(inside)

    def _range(
        self, plan: _Plan, shape: Shape, column: int, cell: Codes, low: Codes, high: Codes
    ) -> Codes:
        group = plan.group[cell]
        index = self._index(shape.fixed, column)
        if column == WHOLE:
            low, high = np.zeros_like(group), np.ones_like(group)
        if shape.ranged:
            start, end = index.positions(group, low, high)
            return self._filtered(plan, shape, column, cell, group, start, np.maximum(start, end))
        return index.inside(group, low, high)

    def _filtered(
        self,
        plan: _Plan,
        shape: Shape,
        column: int,
        cell: Codes,
        group: Codes,
        start: Codes,
        end: Codes,
    ) -> Codes:
        """Check the remaining ranges on every record between two positions of the index."""
        order = self._order(shape.fixed, column)
        if self._many is not None:  # from places among different keys to places among rows
            first_row = self._first_rows(shape.fixed, column)
            start, end = first_row[start], first_row[end]
        length = np.where(group < 0, 0, end - start)
        inside = np.zeros(len(cell), np.int64)
        ends = np.cumsum(length)
        first = 0
        while first < len(cell):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK)))
            some = slice(first, last)
            box = np.repeat(np.arange(first, last), length[some])
            place = np.arange(len(box)) - np.repeat(
                ends[some] - length[some] - before, length[some]
            )
            record = order[np.repeat(start[some], length[some]) + place]
            keep: Flags = np.ones(len(box), np.bool_)
            for other in shape.ranged:
                own = plan.cells.columns.index(other)
                value = self._table[record, other]
                keep &= value >= plan.cells.low[cell[box], own]
                keep &= value < plan.cells.high[cell[box], own]
            weight = None if self._many is None else self._many[record[keep]]
            found = np.bincount(box[keep] - first, weight, minlength=last - first)
            inside[some] = found.astype(np.int64)  # sums of counts: whole, far below 2^53
            first = last
        return inside

    def _plan_for(self, cells: Cells) -> _Plan:
        width = widths_of(cells, _FEW_WIDTHS)
        if (plan := self._plan_by_common(cells, width)) is None:
            shapes, shape = shapes_of(cells.columns, width)
            group = np.full(len(cells), -1, np.int64)
            for number, each in enumerate(shapes):
                rows = np.flatnonzero(shape == number)
                group[rows] = self._find(each.fixed, cells, rows)
            plan = _Plan(cells, shapes, shape, group)
        plan.group[(cells.low >= cells.high).any(axis=1)] = -1
        return plan

    def _plan_by_common(self, cells: Cells, width: Codes) -> _Plan | None:
        """Go by what cells of many shapes fix in common, where that leaves few records each.

        All other ranges are checked record by record. None where it would not pay.
        """
        same = (width == width[:1]).all(axis=0)
        common = np.flatnonzero(same & (width[0] > 0)) if len(cells) else np.empty(0, np.int64)
        if same.all() or not len(common):
            return None
        fixed = tuple((cells.columns[place], int(width[0, place])) for place in common.tolist())
        group = self._find(fixed, cells, np.arange(len(cells)))
        sizes = np.bincount(self._group(fixed).ids)
        if sizes[group[group >= 0]].sum() > _FEW_RECORDS * len(cells):
            return None
        taken = dict(fixed)
        rest = tuple(each for each in cells.columns if each not in taken)
        return _Plan(cells, [Shape(fixed, rest)], np.zeros(len(cells), np.int64), group)

    def _find(self, fixed: tuple[Digit, ...], cells: Cells, rows: Codes) -> Codes:
        """Return the group of records that each of some cells fixes, -1 where there is none."""
        place = {column: place for place, column in enumerate(cells.columns)}
        column, step = np.array(fixed, np.int64).reshape(-1, 2).T
        values = cells.low[rows][:, [place[each] for each in column.tolist()]]

        def of(records: Codes, places: Codes) -> Codes:
            return _digits(self._table[records[:, None], column[places]], step[places])

        return self._group(fixed).find(_digits(values, step), of)

    def _digit(self, digit: Digit) -> tuple[Codes, Codes]:
        """Return a digit's distinct values and, for each record, the place among them."""
        return self._digits.get_or(
            digit, lambda: placed(_digits(self._table[:, digit[0]], np.array(digit[1])))
        )

    def _group(self, digits: tuple[Digit, ...]) -> _Groups:
        def make() -> _Groups:
            if not digits:
                return _Groups(np.zeros(self._records, np.int64))
            parent = self._group(digits[:-1])
            return parent.split(len(digits) - 1, *self._digit(digits[-1]))

        return self._groups.get_or(digits, make)

    def _keys(self, digits: tuple[Digit, ...], column: int) -> tuple[Codes, Ranks, int, int]:
        groups = self._group(digits)
        number = groups.number
        if column == WHOLE:
            return groups.ids, Ranks(np.zeros(1, np.int64)), 1, number
        values, place = self._digit((column, 1))
        base = len(values) + 1
        return groups.ids * base + place, Ranks.of(values), base, number

    def _index(self, digits: tuple[Digit, ...], column: int) -> _Index:
        def make() -> _Index:
            keys, ranks, base, groups = self._keys(digits, column)
            summed: Codes | None = None
            if self._many is None:
                keys = in_order(keys, groups * base)
            else:
                keys, summed = self._added(keys)
            lone = _Lone.of(keys, ranks.values, base, groups, summed)
            return _Index(keys, ranks, base, groups, lone, summed=summed)

        if not digits:
            return self._wholes.get_or(column, make)
        return self._indexes.get_or((digits, column), make)

    def _added(self, keys: Codes) -> tuple[Codes, Codes]:
        """Return the different keys, and how many records stand before each of them."""
        assert self._many is not None
        order = np.argsort(keys)
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        summed = np.append(0, np.cumsum(self._many[order]))
        return keys[first], summed[np.append(first, len(keys))]

    def _first_rows(self, digits: tuple[Digit, ...], column: int) -> Codes:
        """Return where the rows of each key of an index begin in their order, and their end."""

        def make() -> Codes:
            keys = np.sort(self._keys(digits, column)[0])
            return np.append(np.flatnonzero(np.diff(keys, prepend=-1)), len(keys))

        return self._firsts.get_or((digits, column), make)

    def _order(self, digits: tuple[Digit, ...], column: int) -> Codes:
        return self._orders.get_or(
            (digits, column), lambda: np.argsort(self._keys(digits, column)[0], kind="stable")
        )


def _digits(values: Codes, width: Codes) -> Codes:
    """Return values in steps of a width, one for all or one a column; a missing one stays."""
    return values if (width == 1).all() else np.where(values == MISSING, MISSING, values // width)
