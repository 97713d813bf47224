"""Which records are possible at all, and which predicates are therefore always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from thinveil.errors import UsageError
from thinveil.language.claims import Universe
from thinveil.language.queries import WHOLE, Cells, Codes, Flags, Floats, QueryBatch
from thinveil.language.schema import INFINITE, LOWEST, MISSING, Schema


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """The record universe of a claim, ready for arrays: which codes can occur at all."""

    low: Codes
    end: Codes
    missing: Flags

    @staticmethod
    def of(schema: Schema, universe: Universe) -> Extent:
        """Return the universe over which a claim on this schema is meant.

        Raises:
            UsageError: A bounded universe needs the bounds of every attribute.
        """
        low, end = [], []
        for attribute in schema:
            if universe == "unbounded":
                low.append(LOWEST)
                end.append(INFINITE)
            elif attribute.lower is None or attribute.upper is None:
                raise UsageError(
                    f"a bounded universe needs published bounds, and {attribute.name!r} has none: "
                    "give them in a schema file (thinveil schema TABLE drafts one)"
                )
            else:
                low.append(attribute.lower)
                end.append(attribute.upper + 1)
        return Extent(
            np.array(low, np.int64),
            np.array(end, np.int64),
            np.array([attribute.missing for attribute in schema], np.bool_),
        )

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
        rows = []
        for lows, highs in zip(low.tolist(), high.tolist(), strict=True):
            row = []
            for column, a, z in zip(columns, lows, highs, strict=True):
                inside = min(z, int(self.end[column])) - max(a, int(self.low[column]))
                gap = bool(self.missing[column]) and a <= MISSING < z
                row.append(max(0, inside) + gap)
            rows.append(row)
        return rows


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
            if cells.columns:
                empty, full = self.extent.judge(cells.columns, cells.low, cells.high)
                self._empty = np.any(empty, axis=1)
                self._full = np.all(full, axis=1)
            else:
                self._empty = np.zeros(len(cells), np.bool_)
                self._full = np.ones(len(cells), np.bool_)
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
        full = _product(self.extent.sizes(columns, *everything)[0])
        low, high = part.ranges(columns)
        filled = []
        for a, z in pairwise(part.offsets.tolist()):
            sizes_of = self.extent.sizes(columns, low[a:z], high[a:z])
            filled.append(sum(map(_product, sizes_of)) == full)
        return np.array(filled)


_NEAR: Final = 1 - 1e-6  # boxes that hold a smaller share of the universe do not fill it


def _distance(low: Codes, high: Codes) -> Floats:
    """Return how many whole numbers lie from low to below high; the difference can pass 2^63."""
    length = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    return np.where(low < high, length, 0.0)


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
