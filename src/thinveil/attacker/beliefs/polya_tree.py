"""What is believed about the values of one attribute, from its public domain and values found.

Before anything is found, half of the belief is even over the domain, and half is even over
orders of magnitude: a value needs no more than one question beyond halving, and small values need
far fewer. Where no bounds are public, only orders of magnitude are left.

Values found turn this into an *optional Polya tree* (Wong and Ma 2010): a range is
either believed to be as it was before, or it is split where half of the belief lay and each part
is judged by itself. All such trees are weighed at once by how well they predict what was found.
Smooth shapes need a few splits, and a value that many records share is split down to itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from math import exp, lgamma, log, log1p, log2
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import binned, summed
from thinveil.attacker.terms import Axis, Values
from thinveil.language.queries import Codes, Floats
from thinveil.language.schema import LIMIT, MISSING

_EVEN: Final = 64  # domains of so many values have no orders of magnitude
_GONE: Final = 0.1  # how many values are thought to be missing, where any may be
_KT: Final = 0.5  # a split is believed as if so many values had been seen on either side
_STOP: Final = 0.5  # how likely a range is to be as it was
_LEAST: Final = 1e-12  # no part of a domain is believed to be less likely
_CELLS: Final = 32  # contexts predict among so many parts of a domain
_WHOLE: Final = 2  # times as many values of a domain are told apart by themselves


class Places:
    """The places of one attribute: its steps in order, and one below them for a missing value.

    Without limits, every step that a code can have is possible. The order of categories says
    nothing.
    """

    def __init__(self, axis: Axis, category: bool = False) -> None:
        self.axis = axis
        open_ended = axis.lower is None
        if open_ended:
            axis = axis.within((1 - LIMIT) // axis.width, (LIMIT - 1) // axis.width)
        self.low, self.high = axis.limits[0], axis.limits[1] + 1
        self.first = self.low - axis.missing
        wide = self.high - self.low
        share = 1.0 if category or wide <= _EVEN else 0.0 if open_ended else 0.5
        self._even = share / max(wide, 1)
        self._scale = (1 - share) / _octaves(self.low, self.high) if share < 1 else 0.0
        self.halved = cache(self.cut)  # trees ask for the same ranges again and again

    def steps(self, values: Values) -> Values:
        """Return places with their counts as steps of the axis, missing values among them."""
        return [(MISSING if place < self.low else place, many) for place, many in values]

    def mass(self, low: int, high: int) -> float:
        """Return the first belief in a range of steps, missing values aside."""
        even = self._even * (high - low)
        return even + self._scale * _octaves(low, high) if self._scale else even

    def cut(self, low: int, high: int, share: float = 0.5) -> tuple[int, float]:
        """Return the step below which about a share of the first belief in a range lies.

        With it comes the share itself.
        """
        whole = self.mass(low, high)
        return _nearest(low, high, share, lambda place: self.mass(low, place) / whole)

    def learned(self, places: Codes) -> Density:
        """Return what is believed after values were found."""
        values = np.sort(places)
        gone = int(np.searchsorted(values, self.low))
        parts: list[tuple[int, float]] = []
        if self.axis.missing:
            known = 1.0 if self.low >= self.high else (gone + _GONE) / (len(values) + 1)
            parts.append((self.low, known))
        if self.low < self.high:
            parts += _Tree(self, values[gone:].tolist()).parts(1 - sum(known for _, known in parts))
        ends, masses = zip(*parts, strict=True)
        mass = np.maximum(np.array(masses), _LEAST)
        return Density(self, [self.first, *ends], mass / mass.sum())


def _nearest(low: int, high: int, target: float, upto: Callable[[int], float]) -> tuple[int, float]:
    """Return the place inside a range up to which about so much lies, and how much does."""
    first, last = low + 1, high - 1
    while first < last:
        middle = (first + last) // 2
        if upto(middle) >= target:
            last = middle
        else:
            first = middle + 1
    options = [(place, upto(place)) for place in range(first, max(first - 2, low), -1)]
    return min(options, key=lambda option: abs(option[1] - target))


def _octaves(low: int, high: int) -> float:
    """Return the belief in a range of steps that is even over orders of magnitude.

    Of steps of at least r, a share of 1 / (1 + log2(1 + r)) is left, on either side of zero.

    >>> round(_octaves(0, 1), 3), round(_octaves(0, 7), 3), _octaves(-1, 0) == _octaves(0, 1)
    (0.25, 0.375, True)
    """
    if low < 0 < high:
        return _octaves(0, -low) + _octaves(0, high)
    if high <= 0:
        low, high = -high, -low
    if low >= high:
        return 0.0
    wide = log1p((high - low) / (1 + low)) / log(2)
    before = 1 + log2(1 + low)
    return 0.5 * wide / (before * (before + wide))


class _Tree:
    """All ways to split a domain, weighed by values found."""

    def __init__(self, places: Places, values: Sequence[int]) -> None:
        self._places = places
        self._values = values
        logs = [log(max(places.mass(each, each + 1), 1e-300)) for each in values]
        self._logs = [0.0, *accumulate(logs)]
        self._stop: dict[tuple[int, int], float] = {}
        self._parts: list[tuple[int, float]] = []

    def parts(self, mass: float) -> list[tuple[int, float]]:
        """Return where each part of the domain ends, in order, and what is believed of it."""
        places, many = self._places, len(self._values)
        self._weigh(places.low, places.high, 0, many)
        self._share(places.low, places.high, 0, many, mass, 0.0)
        return self._parts

    def _weigh(self, low: int, high: int, first: int, end: int) -> float:
        """Return how well the values in a range are predicted by all ways to split it.

        One value is predicted by all of them alike.
        """
        many = end - first
        if many == 0 or high - low == 1:
            return 0.0
        whole = log(max(self._places.mass(low, high), 1e-300))
        even = self._logs[end] - self._logs[first] - many * whole
        if many == 1:
            return even
        cut, share = self._places.halved(low, high)
        middle = bisect_left(self._values, cut, first, end)
        split = _split(middle - first, end - middle, share)
        split += self._weigh(low, cut, first, middle) + self._weigh(cut, high, middle, end)
        stop, go = log(_STOP) + even, log(1 - _STOP) + split
        top = max(stop, go)
        total = top + log(exp(stop - top) + exp(go - top))
        self._stop[low, high] = exp(stop - total)
        return total

    def _share(self, low: int, high: int, first: int, end: int, split: float, even: float) -> None:
        """Hand out belief: `split` of it goes by this range's trees, `even` as it was."""
        if end - first < 2 or high - low == 1:
            self._parts.append((high, split + even))
            return
        stop = self._stop[low, high]
        even, split = even + stop * split, (1 - stop) * split
        cut, share = self._places.halved(low, high)
        middle = bisect_left(self._values, cut, first, end)
        lower = (middle - first + 2 * _KT * share) / (end - first + 2 * _KT)
        self._share(low, cut, first, middle, split * lower, even * share)
        self._share(cut, high, middle, end, split * (1 - lower), even * (1 - share))


def _split(lower: int, upper: int, share: float) -> float:
    """Return the log-probability of so many values on either side of a split."""
    a = 2 * _KT * min(max(share, 1e-9), 1 - 1e-9)
    b = 2 * _KT - a
    ways = lgamma(lower + a) - lgamma(a) + lgamma(upper + b) - lgamma(b)
    return ways - lgamma(lower + upper + 2 * _KT) + lgamma(2 * _KT)


class Density:
    """Belief over a domain: parts with masses, in *cells* of about equal mass.

    Within a part belief is as it was before anything was found; a person's own belief is a
    weight for each cell. Edges are where parts begin, and the end of the last.
    """

    def __init__(self, places: Places, edges: Sequence[int], mass: Floats) -> None:
        self.places = places
        self._edges = list(edges)
        parts = len(mass)
        cell = np.arange(parts) if parts <= _WHOLE * _CELLS else binned(mass, _CELLS)
        self.cells = int(cell[-1]) + 1
        self._ends: list[int] = np.searchsorted(cell, np.arange(self.cells + 1)).tolist()
        self._starts = [self._edges[end] for end in self._ends]
        self.mass: Floats = np.bincount(cell, mass, self.cells).astype(np.float64)
        self._below: list[float] = summed(mass).tolist()

    @property
    def entropy(self) -> float:
        """About how many bits one value tells."""
        mass = np.diff(self._below)
        wide = np.array([float(high - low) for low, high in pairwise(self._edges)])
        return float((mass * (np.log2(wide) - np.log2(mass))).sum())

    def cell(self, place: int) -> int:
        """Return the cell of a place."""
        return bisect_right(self._starts, place) - 1

    def levels(self, places: Codes) -> Codes:
        """Return the cells of many places."""
        found: Codes = np.searchsorted(np.array(self._starts, np.int64), places, "right") - 1
        return found

    def cut(
        self, below: Sequence[float], low: int, high: int, share: float = 0.5
    ) -> tuple[int, float]:
        """Return the place below which about a share of the belief in a range lies.

        With it comes the chance of the lower part. A range holds two places at least; of each
        cell, `below` is a person's belief that the value lies before it, at last 1.
        """
        if self._part(low) == self._part(high - 1):
            return self.places.cut(low, high, share)
        start, end = self.upto(below, low), self.upto(below, high)
        target = start + share * (end - start)
        cut, upto = _nearest(low, high, target, lambda place: self.upto(below, place))
        return cut, (upto - start) / (end - start) if end > start else 0.5

    def _part(self, place: int) -> int:
        return bisect_right(self._edges, place) - 1

    def _at(self, below: Sequence[float], edge: int) -> float:
        """Return a person's belief in all parts before one."""
        cell = bisect_right(self._ends, edge) - 1
        first = self._ends[cell]
        if edge == first:
            return below[cell]
        fine = self._below
        share = (fine[edge] - fine[first]) / (fine[self._ends[cell + 1]] - fine[first])
        return below[cell] + share * (below[cell + 1] - below[cell])

    def upto(self, below: Sequence[float], place: int) -> float:
        """Return a person's belief in all places before one."""
        part = self._part(place)
        at = self._at(below, part)
        low = self._edges[part]
        if place == low:
            return at
        mass = self.places.mass
        share = mass(low, place) / mass(low, self._edges[part + 1])
        return at + share * (self._at(below, part + 1) - at)
