"""When two questions are the same, however they are written.

The normal form of a question is one of two constants, or a region and a threshold between 0
and n - 1. A region is clipped to the record universe of the claim; a range that covers all
possible values is no restriction; which ranges stand in the cell and which in the box does
not matter. A union of boxes is cut into slabs: along the first attribute into the longest
ranges over which the rest of the region stays the same, and so on with the next attribute.
That form belongs to the region, not to the boxes that described it.

Normal forms are handed out as keys of 128 bits, good against chance: among a hundred
million different questions, two share a key with a probability below 10^-22.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from thinveil.language.extents import Extent
from thinveil.language.queries import WHOLE, Cells, Codes, Flags, QueryBatch, Range
from thinveil.language.schema import MISSING
from thinveil.language.scrambling import GOLDEN, Words, scrambled

Keys = Words
"""Two words a question, in two rows."""

_SEEDS: Final = np.array([[GOLDEN], [0xC2B2AE3D27D4EB4F]], np.uint64)
_MOST_COLUMNS: Final = 100


@dataclass(slots=True)
class Normal:
    """Gives every question the key of its normal form.

    Equal keys mean the same question. The converse holds as well, except for a union so
    fragmented that its slabs would be far more than its boxes: it keeps its boxes as they are.

    Args:
        extent: The record universe of the claim.
        records: The size of the table; thresholds from 0 to one less can be crossed.
    """

    extent: Extent
    records: int
    _cells: Cells | None = None
    _shape: _Shape = field(init=False)

    def keys(self, batch: QueryBatch) -> Keys:
        """Return the keys of a batch's questions."""
        if self._cells is None or batch.cells.digest != self._cells.digest:
            cells = self._cells = batch.cells
            clipped = self._clip(cells.columns, cells.low, cells.high)
            self._shape = _of_boxes(cells.columns, *clipped)
        low, high, full = self._clip(batch.column, batch.low, batch.high)
        own = _of_ranges(batch.column, low, high, full | (batch.column == WHOLE))
        shape = self._shape.take(batch.cell).within(own)
        region = scrambled(shape.words)
        if batch.offsets is None:
            empty, full = shape.empty, ~shape.empty & (shape.restricted == 0)
        else:
            region, empty, full = self._unions(batch, shape, region)
        threshold = np.minimum(np.maximum(batch.threshold, -1), self.records)
        keys = scrambled(region + threshold.astype(np.uint64))
        keys[:, (threshold < 0) | (full & (threshold < self.records))] = 1
        keys[:, (threshold >= self.records) | (empty & (threshold >= 0))] = 0
        return keys

    def _clip(
        self, columns: Codes | Sequence[int], low: Codes, high: Codes
    ) -> tuple[Codes, Codes, Flags]:
        """Clip ranges to the possible values, the missing one just below all others."""
        columns = np.asarray(columns, np.int64)
        first, end = self.extent.low[columns], self.extent.end[columns]
        start = first - self.extent.missing[columns]
        low = np.where(low == MISSING, start, np.minimum(np.maximum(low, first), end))
        high = np.where(high == MISSING, start, np.minimum(np.maximum(high, first), end))
        return low, high, (low == start) & (high == end)

    def _unions(self, batch: QueryBatch, shape: _Shape, region: Keys) -> tuple[Keys, Flags, Flags]:
        """Add up the boxes of each question, once more than one box was brought to slabs."""
        assert batch.offsets is not None
        starts = batch.offsets[:-1]
        region[:, shape.empty] = 0
        boxes = np.add.reduceat(~shape.empty, starts, dtype=np.int64)
        whole = ~shape.empty & (shape.restricted == 0)
        region = np.add.reduceat(region, starts, axis=1)
        full = np.logical_or.reduceat(whole, starts)
        several = np.flatnonzero(boxes > 1)
        if len(several):
            columns = batch.columns()
            low, high, _ = self._clip(columns, *batch.ranges(columns))
            whole_low = np.full((1, len(columns)), MISSING)
            [limits] = _boxes(*self._clip(columns, whole_low, self.extent.end[columns][None])[:2])
            found: list[_Ranges] = []
            sizes = []
            for question in several.tolist():
                part = slice(batch.offsets[question], batch.offsets[question + 1])
                keep = ~shape.empty[part]
                slabs = _canonical(_boxes(low[part][keep], high[part][keep]), limits)
                found += slabs
                sizes.append(len(slabs))
            ends = np.array(found, np.int64).reshape(len(found), len(columns), 2)
            full_ranges = (ends == np.array(limits, np.int64)).all(axis=2)
            parts = _of_boxes(columns, ends[:, :, 0], ends[:, :, 1], full_ranges)
            first = np.cumsum(sizes) - np.array(sizes, np.int64)
            region[:, several] = np.add.reduceat(scrambled(parts.words), first, axis=1)
            full[several] = np.logical_or.reduceat(parts.restricted == 0, first)
        return region, boxes == 0, full


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """Boxes in normal form: the sum of their ranges' words, and how many ranges there are."""

    words: Keys
    empty: Flags
    restricted: Codes

    def take(self, places: Codes) -> _Shape:
        return _Shape(self.words[:, places], self.empty[places], self.restricted[places])

    def within(self, other: _Shape) -> _Shape:
        return _Shape(
            self.words + other.words, self.empty | other.empty, self.restricted + other.restricted
        )


def _of_boxes(columns: Sequence[int], low: Codes, high: Codes, full: Flags) -> _Shape:
    """Return the shapes of boxes, given their clipped ranges on some columns."""
    nothing = np.zeros(len(low), np.int64)
    shape = _Shape(np.zeros((2, len(low)), np.uint64), nothing != 0, nothing)
    for place, column in enumerate(columns):
        each = np.full(len(low), column)
        shape = shape.within(_of_ranges(each, low[:, place], high[:, place], full[:, place]))
    return shape


def _of_ranges(column: Codes, low: Codes, high: Codes, full: Flags) -> _Shape:
    words = scrambled(column.astype(np.uint64) + _SEEDS)
    words = scrambled(scrambled(words ^ low.astype(np.uint64)) + high.astype(np.uint64))
    words[:, full] = 0
    return _Shape(words, ~full & (low >= high), (~full).astype(np.int64))


_Ranges = tuple[Range, ...]


def _boxes(low: Codes, high: Codes) -> list[_Ranges]:
    return [
        tuple(zip(lows, highs, strict=True))
        for lows, highs in zip(low.tolist(), high.tolist(), strict=True)
    ]


class _TooManySlabs(Exception):
    """A union falls to pieces when it is cut into slabs."""


def _canonical(union: list[_Ranges], limits: Sequence[Range]) -> list[_Ranges]:
    """Return the one list of disjoint boxes that stands for a union, or the union itself."""
    cut = [place for place, limit in enumerate(limits) if any(box[place] != limit for box in union)]
    if len(cut) > _MOST_COLUMNS:
        return sorted(union)
    left = [1000 + 64 * len(union) * len(cut)]
    try:
        slabs = _slabs([tuple(box[place] for place in cut) for box in union], left)
    except _TooManySlabs:
        return sorted(union)
    result = []
    for slab in slabs:
        box = list(limits)
        for place, span in zip(cut, slab, strict=True):
            box[place] = span
        result.append(tuple(box))
    return result


def _slabs(boxes: Iterable[_Ranges], left: list[int]) -> tuple[_Ranges, ...]:
    """Cut a union of disjoint boxes into slabs along its first attribute, and so on."""
    rest_of: dict[Range, list[_Ranges]] = {}
    for box in boxes:
        if not box:
            return ((),)
        rest_of.setdefault(box[0], []).append(box[1:])
        left[0] -= 1
    spans = sorted(rest_of)
    if any(before[1] > after[0] for before, after in pairwise(spans)):
        rest_of = _cut_up(rest_of, left)
        spans = sorted(rest_of)
    joined: list[tuple[int, int, tuple[_Ranges, ...]]] = []
    for low, high in spans:
        rest = _slabs(rest_of[low, high], left)
        if joined and joined[-1][1] == low and joined[-1][2] == rest:
            low = joined.pop()[0]
        joined.append((low, high, rest))
    return tuple(((low, high), *each) for low, high, rest in joined for each in rest)


def _cut_up(rest_of: dict[Range, list[_Ranges]], left: list[int]) -> dict[Range, list[_Ranges]]:
    """Cut ranges that overlap at each other's ends."""
    ends = sorted({end for span in rest_of for end in span})
    pieces: dict[Range, list[_Ranges]] = {}
    for (low, high), rest in rest_of.items():
        inside = ends[bisect_left(ends, low) : bisect_left(ends, high) + 1]
        left[0] -= len(inside) * len(rest)
        if left[0] < 0:
            raise _TooManySlabs
        for span in pairwise(inside):
            pieces.setdefault(span, []).extend(rest)
    return pieces
