"""Counts of very large groups, narrowed before each possible value is weighed by itself.

A belief about each of fifty million counts would fill the memory. While a count may have very
many values, its belief is a smooth curve that a few hundred bins describe well: even ones
between its limits, and ever finer ones towards none and all, where the curve may be steep.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.attacker.beliefs.beta_binomial import rough
from thinveil.attacker.beliefs.count_zones import QUARTERS, best_threshold, few_of, narrowed
from thinveil.attacker.terms import Rules, contradiction
from thinveil.language.queries import Codes, Flags, Floats

MOST: Final = 4096
"""Values of a count beyond which they are not weighed one by one, in a large table."""
_LARGE: Final = 2**20  # records of a table from which on that matters
_EVEN: Final = 64
_OCTAVE: Final = 8  # bins in which the distance to none or all doubles


class WideCounts:
    """Counts with very many possible values, each with the curve that is believed of it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._few = few_of(rules)
        steps = np.arange(_OCTAVE * int(np.ceil(np.log2(max(rules.n, 2)))) + 1)
        self._ladder = np.unique(np.append(0, np.round(2.0 ** (steps / _OCTAVE)).astype(np.int64)))
        self.key = self._low = self._high = self._size = np.empty(0, np.int64)
        self._chance = self._cost = np.empty(0)

    def __len__(self) -> int:
        return len(self.key)

    def wanted(self, low: Codes, high: Codes) -> Flags:
        """Tell which counts between these limits are better off here."""
        if self._rules.n <= _LARGE or self._rules.hidden:
            return np.zeros(len(low), np.bool_)
        wanted: Flags = high - low >= MOST
        return wanted

    def begin(self, key: Codes, size: Codes, chance: Floats, low: Codes, high: Codes) -> None:
        """Add counts of groups of so many records, each counted with this chance."""
        self.key = np.concatenate([self.key, key])
        self._size = np.concatenate([self._size, size])
        self._chance = np.concatenate([self._chance, chance])
        self._low, self._high = np.append(self._low, low), np.append(self._high, high)
        self._cost = np.append(self._cost, np.zeros(len(key)))

    def _curve(self) -> tuple[Codes, Floats]:
        """Return the edges of all bins, a row a count, and the belief below each edge."""
        low, end = self._low[:, None], self._high[:, None] + 1
        even = low + np.round((end - low) * np.linspace(0.0, 1.0, _EVEN + 1)).astype(np.int64)
        near = [
            np.clip(each, low, end) for each in (self._ladder, self._size[:, None] - self._ladder)
        ]
        edges = np.concatenate([even, *near], axis=1)
        edges.sort(axis=1)
        width = np.diff(edges, axis=1)
        middle = np.minimum(edges[:, :-1] + np.maximum(width - 1, 0) / 2, self._high[:, None])
        mass = rounded(rough(middle, self._size[:, None], self._chance[:, None])) * width
        below = np.concatenate([np.zeros((len(low), 1)), np.cumsum(mass, axis=1)], axis=1)
        return edges, below / below[:, -1:]

    def ask(self) -> tuple[Codes, Codes]:
        """Return rows and thresholds of the questions that are expected to tell most."""
        n = self._rules.n
        edges, below = self._curve()
        rows = np.arange(len(self.key))
        best = best_threshold(
            self._at(0.5, edges, below), self._rules, lambda upto: _share(upto, edges, below)
        )
        if len(rows) <= self._few:  # hardly any work: further questions at once save rounds
            more = [np.clip(self._at(share, edges, below), 0, n - 1) for share in QUARTERS]
            rows, best = np.tile(rows, 1 + len(more)), np.concatenate([best, *more])
        self._row, self._asked = rows, best
        return rows, best

    def _at(self, share: float, edges: Codes, below: Floats) -> Codes:
        """Return the count below which so much of the belief lies."""
        place = np.minimum((below < share).sum(axis=1), below.shape[1] - 1)[:, None]
        before = np.maximum(place - 1, 0)
        low, high = np.take_along_axis(edges, before, 1), np.take_along_axis(edges, place, 1)
        start = np.take_along_axis(below, before, 1)
        rise = np.take_along_axis(below, place, 1) - start
        part = np.divide(share - start, rise, out=np.zeros_like(rise), where=rise > 0)
        found = (low + np.floor(part * (high - low))).astype(np.int64)[:, 0]
        inside: Codes = np.minimum(np.maximum(found, self._low), self._high)
        return inside

    def fewer(self, many: int) -> None:
        """Ask no more than the first so many of the questions that were returned last."""
        self._row, self._asked = self._row[:many], self._asked[:many]

    def tell(self, zone: Codes) -> tuple[Codes, Codes, Codes, Floats]:
        """Take in the zones of what was asked last.

        Returns keys, lowest and highest counts of those that are narrow now, and the bits that
        each told.
        """
        edges, below = self._curve()
        low, high = narrowed(self._rules, self._low, self._high, self._row, self._asked, zone)
        if (low > high).any():
            raise contradiction()
        left = _share(high, edges, below) - _share(low - 1, edges, below)
        even = (high - low + 1) / (self._high - self._low + 1)  # where the curve is too rough
        self._cost -= np.log2(np.where(left > 0, left, even))
        self._low, self._high = low, high
        done = high - low < MOST
        narrow = self.key[done], low[done], high[done], self._cost[done]
        for name in ("key", "_low", "_high", "_size", "_chance", "_cost"):
            setattr(self, name, getattr(self, name)[~done])
        return narrow


def _share(upto: Codes, edges: Codes, below: Floats) -> Floats:
    """Return how much of each belief lies on counts of at most `upto`."""
    end = np.minimum(np.maximum(upto + 1, edges[:, 0]), edges[:, -1])[:, None]
    place = np.minimum((edges <= end).sum(axis=1), edges.shape[1] - 1)[:, None]
    low, high = np.take_along_axis(edges, place - 1, 1), np.take_along_axis(edges, place, 1)
    start, stop = np.take_along_axis(below, place - 1, 1), np.take_along_axis(below, place, 1)
    width = (high - low).astype(np.float64)
    part = np.divide(end - low, width, out=np.ones_like(width), where=width > 0)
    share: Floats = (start + part * (stop - start))[:, 0]
    return share
