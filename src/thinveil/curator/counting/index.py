"""How many records satisfy each predicate of a batch.

Two implementations stand side by side: `ScanCounter` looks at every record for every box
and is the oracle; `IndexCounter` turns (group of records, range) into two positions of a
sorted array. Tests hold them equal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np

from thinveil.language.queries import WHOLE, Cells, Codes, Flags, QueryBatch
from thinveil.language.schema import INFINITE, MISSING


class Counter(Protocol):
    """Counts records. Conforms: `ScanCounter`, `IndexCounter`, `DatabaseCounter`."""

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        ...


class ScanCounter:
    """Counts by looking at every record for every box. Slow and plain."""

    def __init__(self, table: Codes) -> None:
        self._table = table

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        columns = batch.columns()
        low, high = batch.ranges(columns)
        table = self._table[:, columns]
        inside = [
            int(((table >= start) & (table < end)).all(axis=1).sum())
            for start, end in zip(low, high, strict=True)
        ]
        return batch.total(np.array(inside, np.int64))


Digit = tuple[int, int]
"""A column and the width at which it is looked at: code // width."""

_GENERAL: Final = -1  # the width of a range that is no single (coarse) value
_FEW_WIDTHS: Final = 3
_FEW_RECORDS: Final = 16
_MANY_GROUPS: Final = 16  # so many times more groups than ranges are not worth preparing for
_CHUNK: Final = 4_000_000
_TABLE_SPAN: Final = 2_000_000

_T = TypeVar("_T")


class _Kept(OrderedDict[Hashable, object]):
    """A few results by key; the one not used for longest goes first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def get_or(self, key: Hashable, make: Callable[[], _T]) -> _T:
        if key in self:
            self.move_to_end(key)
        else:
            self[key] = make()
            if len(self) > self._most:
                self.popitem(last=False)
        return self[key]  # type: ignore[return-value]


@dataclass(slots=True)
class _Ranks:
    """Places of codes among the distinct values of a column, by table where that is small."""

    values: Codes
    table: Codes | None = None

    @staticmethod
    def of(values: Codes) -> _Ranks:
        span = int(values[-1]) - int(values[0]) + 2
        if span > min(_TABLE_SPAN, 64 * len(values) + 1000):
            return _Ranks(values)
        table = np.zeros(span, np.int64)
        table[values - values[0] + 1] = 1
        return _Ranks(values, np.cumsum(table))

    def rank(self, ends: Codes) -> Codes:
        """Return how many distinct values lie below each end."""
        if self.table is None:
            return np.searchsorted(self.values, ends)
        first, last = self.values[0], self.values[-1]
        rank: Codes = self.table[np.minimum(np.maximum(ends, first), last + 1) - first]
        return rank


@dataclass(slots=True)
class _Groups:
    """Which records agree on some digits: an id for each record, and the way to look it up."""

    ids: Codes
    levels: tuple[tuple[Codes, Codes], ...]

    def find(self, digits: Codes) -> Codes:
        """Return the group of each row of digits, -1 where no record has them."""
        found = np.zeros(len(digits), np.int64)
        lost = np.zeros(len(digits), np.bool_)
        for place, (values, keys) in enumerate(self.levels):
            rank = _place(values, digits[:, place], lost)
            found = _place(keys, found * len(values) + rank, lost)
        found[lost] = -1
        return found


def _place(among: Codes, wanted: Codes, lost: Flags) -> Codes:
    """Return the place of each wanted value, and note in `lost` those that are not there."""
    place = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    lost |= among[place] != wanted
    return place


@dataclass(slots=True)
class _Lone:
    """How many records each group has and the value of its first: one is compared directly.

    A last entry stands for a group without records; it is the one at -1.
    """

    size: Codes
    value: Codes

    @staticmethod
    def of(keys: Codes, values: Codes, base: int, groups: int) -> _Lone | None:
        """Return None where few groups have a single record."""
        if groups <= len(keys) // 2:
            return None
        starts = np.flatnonzero(np.diff(keys // base, prepend=-1))
        size = np.diff(starts, append=[len(keys), len(keys)])
        value = values[keys[starts] % base]
        return _Lone(size, np.append(value, MISSING))


@dataclass(slots=True)
class _Index:
    """Records in order of (group, value of one column), as one sorted array of keys."""

    keys: Codes
    ranks: _Ranks
    base: int
    groups: int
    lone: _Lone | None = None
    starts: tuple[int, Codes] | None = None

    def inside(self, group: Codes, low: Codes, high: Codes) -> Codes:
        """Return how many records of each group lie in each range."""
        if self.lone is None:
            return self.between(group, low, high)
        size = self.lone.size[group]
        value = self.lone.value[group]
        inside: Codes = ((low <= value) & (value < high)) * size
        if len(several := np.flatnonzero(size > 1)):
            inside[several] = self.between(group[several], low[several], high[several])
        return inside

    def between(self, group: Codes, low: Codes, high: Codes) -> Codes:
        """Return the same by positions alone."""
        start, end = self.positions(group, low, high)
        inside: Codes = np.maximum(end - start, 0)
        inside[group < 0] = 0
        return inside

    def positions(self, group: Codes, low: Codes, high: Codes) -> tuple[Codes, Codes]:
        """Return how many records stand before (group, low) and before (group, high)."""
        if len(low) * _MANY_GROUPS >= self.groups and (low == low[0]).all():
            self._prepare(int(low[0]))
        return self._before(group, low), self._before(group, high)

    def _before(self, group: Codes, end: Codes) -> Codes:
        if self.starts is not None and end[0] == self.starts[0] and (end == end[0]).all():
            return self.starts[1][group]
        return np.searchsorted(self.keys, group * self.base + self.ranks.rank(end))

    def _prepare(self, end: int) -> None:
        """Remember the positions of one range end that a whole batch shares."""
        if self.starts is None or self.starts[0] != end:
            rank = self.ranks.rank(np.array([end]))
            starts = np.searchsorted(self.keys, np.arange(self.groups) * self.base + rank)
            self.starts = (end, starts)


@dataclass(slots=True)
class _Part:
    """Cells of one shape: the digits they fix and the columns they restrict otherwise."""

    digits: tuple[Digit, ...]
    general: tuple[int, ...]


@dataclass(slots=True)
class _Plan:
    """How to answer questions that start from one table of cells."""

    cells: Cells
    parts: list[_Part]
    part: Codes
    group: Codes


class IndexCounter:
    """Counts with sorted arrays, built when first needed and kept for a while.

    A cell that fixes columns to single values, or to aligned steps of one width, is a group
    of records with an id. Other ranges are checked record by record within the group.
    """

    def __init__(self, table: Codes) -> None:
        self._table = table
        self._records = len(table)
        self._plan: _Plan | None = None
        self._digits = _Kept(64)
        self._groups = _Kept(4)
        self._indexes = _Kept(24)
        self._orders = _Kept(4)

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        plan = self._plan
        if plan is None or plan.cells.digest != batch.cells.digest:
            plan = self._plan = self._plan_for(batch.cells)
        if len(plan.parts) == 1:
            inside = self._boxes(plan, 0, batch, slice(None))
        else:
            inside = np.empty(len(batch.cell), np.int64)
            part = plan.part[batch.cell]
            for number in np.unique(part).tolist():
                some = np.flatnonzero(part == number)
                inside[some] = self._boxes(plan, number, batch, some)
        return batch.total(inside)

    def _boxes(self, plan: _Plan, number: int, batch: QueryBatch, some: slice | Codes) -> Codes:
        part = plan.parts[number]
        column = batch.column[some]
        first = int(column[0])
        if (column == first).all():
            return self._range(
                plan, part, first, batch.cell[some], batch.low[some], batch.high[some]
            )
        inside = np.empty(len(column), np.int64)
        cell, low, high = batch.cell[some], batch.low[some], batch.high[some]
        for each in np.unique(column).tolist():
            mine = np.flatnonzero(column == each)
            inside[mine] = self._range(plan, part, each, cell[mine], low[mine], high[mine])
        return inside

    def _range(
        self, plan: _Plan, part: _Part, column: int, cell: Codes, low: Codes, high: Codes
    ) -> Codes:
        group = plan.group[cell]
        index = self._index(part.digits, column)
        if column == WHOLE:
            low, high = np.zeros_like(group), np.ones_like(group)
        if part.general:
            start, end = index.positions(group, low, high)
            return self._filtered(plan, part, column, cell, group, start, np.maximum(start, end))
        return index.inside(group, low, high)

    def _filtered(
        self,
        plan: _Plan,
        part: _Part,
        column: int,
        cell: Codes,
        group: Codes,
        start: Codes,
        end: Codes,
    ) -> Codes:
        """Check the remaining ranges on every record between two positions of the index."""
        order = self._order(part.digits, column)
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
            for other in part.general:
                own = plan.cells.columns.index(other)
                value = self._table[record, other]
                keep &= value >= plan.cells.low[cell[box], own]
                keep &= value < plan.cells.high[cell[box], own]
            inside[some] = np.bincount(box[keep] - first, minlength=last - first)
            first = last
        return inside

    def _plan_for(self, cells: Cells) -> _Plan:
        columns = cells.columns
        width = _widths(cells)
        if (plan := self._plan_by_common(cells, width)) is not None:
            return plan
        if (width == width[:1]).all():
            shapes, part = width[:1], np.zeros(len(cells), np.int64)
        else:
            shapes, part = np.unique(width, axis=0, return_inverse=True)
            part = part.reshape(-1)
        group = np.full(len(cells), -1, np.int64)
        parts = []
        for number, shape in enumerate(shapes.tolist()):
            fixed = [place for place, step in enumerate(shape) if step > 0]
            digits = tuple((columns[place], int(shape[place])) for place in fixed)
            general = tuple(columns[p] for p, step in enumerate(shape) if step == _GENERAL)
            rows = np.flatnonzero(part == number)
            values = cells.low[rows][:, fixed]
            for place, (_, step) in enumerate(digits):
                values[:, place] = _digit(values[:, place], step)
            group[rows] = self._group(digits).find(values)
            parts.append(_Part(digits, general))
        group[(cells.low >= cells.high).any(axis=1)] = -1
        return _Plan(cells, parts, part, group)

    def _plan_by_common(self, cells: Cells, width: Codes) -> _Plan | None:
        """Go by what cells of many shapes fix in common, where that leaves few records each.

        All other ranges are checked record by record. None where it would not pay.
        """
        same = (width == width[:1]).all(axis=0)
        common = np.flatnonzero(same & (width[0] > 0)) if len(cells) else np.empty(0, np.int64)
        if same.all() or not len(common):
            return None
        digits = tuple((cells.columns[place], int(width[0, place])) for place in common.tolist())
        values = cells.low[:, common].copy()
        for place, (_, step) in enumerate(digits):
            values[:, place] = _digit(values[:, place], step)
        groups = self._group(digits)
        group = groups.find(values)
        if np.bincount(groups.ids)[group[group >= 0]].sum() > _FEW_RECORDS * len(cells):
            return None
        fixed = {column for column, _ in digits}
        rest = tuple(column for column in cells.columns if column not in fixed)
        group[(cells.low >= cells.high).any(axis=1)] = -1
        return _Plan(cells, [_Part(digits, rest)], np.zeros(len(cells), np.int64), group)

    def _digit(self, digit: Digit) -> tuple[Codes, Codes]:
        """Return a digit's distinct values and, for each record, the place among them."""

        def make() -> tuple[Codes, Codes]:
            values, place = np.unique(
                _digit(self._table[:, digit[0]], digit[1]), return_inverse=True
            )
            return values, place.reshape(-1)

        return self._digits.get_or(digit, make)

    def _group(self, digits: tuple[Digit, ...]) -> _Groups:
        def make() -> _Groups:
            if not digits:
                return _Groups(np.zeros(self._records, np.int64), ())
            parent = self._group(digits[:-1])
            values, place = self._digit(digits[-1])
            keys, ids = np.unique(parent.ids * len(values) + place, return_inverse=True)
            return _Groups(ids.reshape(-1), (*parent.levels, (values, keys)))

        return self._groups.get_or(digits, make)

    def _keys(self, digits: tuple[Digit, ...], column: int) -> tuple[Codes, _Ranks, int, int]:
        groups = self._group(digits)
        number = len(groups.levels[-1][1]) if digits else 1
        if column == WHOLE:
            return groups.ids, _Ranks(np.zeros(1, np.int64)), 1, number
        values, place = self._digit((column, 1))
        base = len(values) + 1
        return groups.ids * base + place, _Ranks.of(values), base, number

    def _index(self, digits: tuple[Digit, ...], column: int) -> _Index:
        def make() -> _Index:
            keys, ranks, base, groups = self._keys(digits, column)
            keys = np.sort(keys)
            lone = _Lone.of(keys, ranks.values, base, groups)
            return _Index(keys, ranks, base, groups, lone)

        return self._indexes.get_or((digits, column), make)

    def _order(self, digits: tuple[Digit, ...], column: int) -> Codes:
        def make() -> Codes:
            return np.argsort(self._keys(digits, column)[0], kind="stable")

        return self._orders.get_or((digits, column), make)


def _digit(values: Codes, width: int) -> Codes:
    """Return values in steps of a width; a missing value stays what it is."""
    return values if width == 1 else np.where(values == MISSING, MISSING, values // width)


def _widths(cells: Cells) -> Codes:
    """Tell each range of each cell: 0 unrestricted, w one aligned step of w, else general."""
    low, high = cells.low, cells.high
    width = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.int64)
    aligned = (width == 1) | (
        (width > 1) & (low > -INFINITE // 2) & (low % np.maximum(width, 1) == 0)
    )
    width = np.where(aligned, width, _GENERAL)
    width[(low == MISSING) & (high == INFINITE)] = 0
    for place in range(width.shape[1]):
        column = width[:, place]
        if len(np.unique(column[column > 1])) > _FEW_WIDTHS:
            column[column > 1] = _GENERAL
    return width
