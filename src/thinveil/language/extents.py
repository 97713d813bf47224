"""Which records are possible, which predicates are always the same, which boxes overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from thinveil.errors import QueryError, UsageError
from thinveil.language.claims import Universe
from thinveil.language.queries import LOOK, WHOLE, Cells, Codes, Flags, Floats, QueryBatch
from thinveil.language.schema import INFINITE, LOWEST, MISSING, Schema


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """The record universe of a claim, ready for arrays: which codes can occur at all."""

    low: Codes
    end: Codes
    missing: Flags

    @staticmethod
    def of(schema: Schema, universe: Universe) -> Extent:
        """Return the universe over which a claim on this schema is meant."""
        rows = []
        for each in schema:
            low, end = LOWEST, INFINITE
            if universe == "bounded":
                if each.lower is None or each.upper is None:
                    raise UsageError(
                        f"a bounded universe needs published bounds, and {each.name!r} has none: "
                        "give them in a schema file (thinveil schema TABLE drafts one)"
                    )
                low, end = each.lower, each.upper + 1
            rows.append((low, end, each.missing))
        table = np.array(rows, np.int64).T
        return Extent(table[0], table[1], table[2] != 0)

    def judge(self, columns: Codes | Sequence[int], low: Codes, high: Codes) -> tuple[Flags, Flags]:
        """Tell for each range whether it holds no possible value, and whether all of them."""
        columns = np.asarray(columns)  # a tuple would be taken for coordinates
        first, end, gaps = self.low[columns], self.end[columns], self.missing[columns]
        no_gap = low > MISSING
        empty = (np.maximum(low, first) >= np.minimum(high, end)) & (
            no_gap | ~gaps | (high <= MISSING)
        )
        full = ((first >= end) | ((low <= first) & (high >= end))) & (
            ~gaps | (~no_gap & (high > MISSING))
        )
        return empty, full

    def shares(self, columns: Codes | Sequence[int], low: Codes, high: Codes) -> Floats:
        """Return about which share of its column's possible values each range holds."""
        columns = np.asarray(columns)
        first, end, gaps = self.low[columns], self.end[columns], self.missing[columns]
        inside = _distance(np.maximum(low, first), np.minimum(high, end))
        gap = gaps & (low == MISSING) & (high > MISSING)
        shares: Floats = (inside + gap) / np.maximum(_distance(first, end) + gaps, 1.0)
        return shares

    def sizes(self, columns: Sequence[int], low: Codes, high: Codes) -> list[list[int]]:
        """Count the possible values in each range, exactly, a row a box."""
        places = np.asarray(columns, np.int64)
        parts = (self.low[places], self.end[places], self.missing[places])
        possible = list(zip(*(part.tolist() for part in parts), strict=True))
        return [
            [
                max(0, min(z, end) - max(a, first)) + (gaps and a <= MISSING < z)
                for (first, end, gaps), a, z in zip(possible, lows, highs, strict=True)
            ]
            for lows, highs in zip(low.tolist(), high.tolist(), strict=True)
        ]


@dataclass(slots=True)
class Constants:
    """Finds questions whose predicate is the same for every possible record.

    What holds for a table of cells is worked out once and kept while batches share it.
    """

    extent: Extent
    _cells: Cells | None = None
    _empty: Flags | None = None
    _full: Flags | None = None
    _share: Floats | None = None

    def among(self, batch: QueryBatch) -> Flags:
        """Return, for each question, whether its predicate is always true or always false."""
        cells = batch.cells
        if self._cells is None or cells.digest != self._cells.digest:
            columns = np.array(cells.columns, np.int64)
            empty, full = self.extent.judge(columns, cells.low, cells.high)
            self._empty, self._full = np.any(empty, axis=1), np.all(full, axis=1)
            self._share = None
            self._cells = cells
        assert self._empty is not None
        assert self._full is not None
        empty, full = self.extent.judge(batch.column, batch.low, batch.high)
        if (whole := batch.column == WHOLE).any():
            empty, full = empty & ~whole, full | whole
        empty, full = empty | self._empty[batch.cell], full & self._full[batch.cell]
        if batch.offsets is None:
            return empty | full
        return self._unions(batch, empty)

    def _unions(self, batch: QueryBatch, empty: Flags) -> Flags:
        """Judge unions by their exact volume: disjoint boxes fill the universe or do not.

        Shares of the universe, first those of whole cells, tell which unions come near.
        """
        assert batch.offsets is not None
        cells = batch.cells
        if self._share is None:
            shares = self.extent.shares(np.array(cells.columns, np.int64), cells.low, cells.high)
            self._share = np.prod(shares, axis=1)
        starts = batch.offsets[:-1]
        constant: Flags = np.logical_and.reduceat(empty, starts)
        share = self._share[batch.cell]
        if (np.add.reduceat(share, starts) > _NEAR).any():
            own = self.extent.shares(batch.column, batch.low, batch.high)
            share = share * np.where(batch.column == WHOLE, 1.0, own)
            near = np.add.reduceat(share, starts) > _NEAR
            if near.any():
                constant[near] |= self._fill(batch, near)
        return constant

    def _fill(self, batch: QueryBatch, some: Flags) -> Flags:
        """Tell which of some unions hold every possible record, by whole numbers."""
        part = batch.some(np.flatnonzero(some))
        assert part.offsets is not None
        columns = part.columns()
        everything = np.full((1, len(columns)), MISSING), np.full((1, len(columns)), INFINITE)
        full = math.prod(self.extent.sizes(columns, *everything)[0])
        volumes = [math.prod(sizes) for sizes in self.extent.sizes(columns, *part.ranges(columns))]
        return np.array([sum(volumes[a:z]) == full for a, z in pairwise(part.offsets.tolist())])


_NEAR: Final = 1 - 1e-6  # boxes that hold a smaller share of the universe do not fill it


def _distance(low: Codes, high: Codes) -> Floats:
    """Return how many whole numbers lie from low to below high; the difference can pass 2^63."""
    length = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    return np.where(low < high, length, 0.0)


def check_disjoint(batch: QueryBatch) -> None:
    """Refuse a batch in which two boxes of one question overlap.

    Boxes that start from cells of different kinds lie apart; what is left is compared. The
    QueryError names the first question whose boxes overlap, of those with fewest boxes.
    """
    if batch.offsets is None:
        return
    kinds, sizes = batch.cells.kinds(), np.diff(batch.offsets)
    start = np.repeat(np.arange(len(sizes)) * len(batch.cells), sizes)
    group = start + kinds.number[batch.cell]
    ordered = np.sort(group)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(shared):
        return
    place = np.minimum(np.searchsorted(shared, group), len(shared) - 1)
    filled = kinds.filled[batch.cell] & ((batch.column == WHOLE) | (batch.low < batch.high))
    some = np.flatnonzero((shared[place] == group) & filled)
    overlap = (_same_cell if kinds.exact else _any_cells)(batch, some, group[some])
    if len(overlap):
        bad = np.searchsorted(batch.offsets, np.sort(some[overlap]), side="right") - 1
        raise QueryError(f"question {bad[sizes[bad].argmin()]} asks about boxes that overlap")


def _same_cell(batch: QueryBatch, some: Codes, group: Codes) -> Codes:
    """Return places of boxes that overlap another of their group, where groups share a cell.

    Only ranges of one column can lie apart, and then neighbours in order do.
    """
    column, low, high = batch.column[some], batch.low[some], batch.high[some]
    order = np.lexsort((low, column, group))
    left, right = order[:-1], order[1:]
    apart = (column[left] == column[right]) & (column[left] != WHOLE) & (high[left] <= low[right])
    clash: Codes = left[(group[left] == group[right]) & ~apart]
    return clash


def _any_cells(batch: QueryBatch, some: Codes, group: Codes) -> Codes:
    """Return places of boxes that overlap another of their group, at least one a question.

    All pairs whose ranges overlap in one column, the one with most starts, are compared.
    """
    columns = batch.columns()
    low, high = (ends[some] for ends in batch.ranges(columns))
    sweep = max(range(len(columns)), key=lambda place: len(np.unique(low[:LOOK, place])))
    order = np.lexsort((low[:, sweep], group))
    low, high, group = low[order], high[order], group[order]
    found: list[Codes] = []
    left = np.arange(len(order))
    for step in range(1, len(order)):
        left = left[left < len(order) - step]
        near = group[left] == group[left + step]
        near &= low[left + step, sweep] < high[left, sweep]
        left = left[near]
        if not len(left):
            break
        overlap = np.ones(len(left), np.bool_)
        for place in range(len(columns)):
            start = np.maximum(low[left, place], low[left + step, place])
            overlap &= start < np.minimum(high[left, place], high[left + step, place])
        if overlap.any():
            found.append(left[overlap])
            left = left[~np.isin(group[left], group[left[overlap]])]
    return order[np.concatenate(found)] if found else np.empty(0, np.int64)
