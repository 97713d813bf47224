"""Counts of large groups, each narrowed between two limits by the curve that is believed of it.

A belief about each of fifty million counts would fill the memory. What zones leave of a count is
all that lies between two limits, so a curve that is written down (`count_curves`) says what is
likely there: work grows with the questions asked, not with how many counts are possible.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.count_curves import Curves, Widths
from thinveil.attacker.beliefs.count_zones import QUARTERS, best_threshold, few_of, narrowed
from thinveil.attacker.terms import Rules, contradiction
from thinveil.language.queries import Codes, Flags, Floats

MOST: Final = 128
"""Values of a count beyond which they are not weighed one by one, in a large table."""
_LARGE: Final = 2**20  # records of a table from which on that matters
_LEARNED: Final = 200  # counts that are learned from at a time, as in `beta_binomial`
_STEPS: Final = 2.0**44  # curves are rounded to such a part: last bits differ between machines
_NO_ROWS: Final = np.empty(0, np.int64)


class WideCounts:
    """Counts with many possible values, each with its limits and the curve that is believed of it.

    The patient save questions rather than rounds.
    """

    def __init__(self, rules: Rules, patient: bool = False) -> None:
        self._rules = rules
        self._few = 0 if patient else few_of(rules)
        self._widths = Widths()
        self._curves = Curves.nothing()
        self.key = self._low = self._high = _NO_ROWS
        self._chance = self._cost = self._below = self._whole = np.empty(0)

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
        self._curves = self._curves.joined(self._widths.curves(size, chance))
        self._chance = np.concatenate([self._chance, chance])
        self._low, self._high = np.append(self._low, low), np.append(self._high, high)
        self._cost = np.append(self._cost, np.zeros(len(key)))
        self._weigh()

    def extremes(
        self, size: Codes, chance: Floats, low: Codes, high: Codes
    ) -> tuple[Floats, Floats]:
        """Return how likely counts are to be none at all, and all, before anything is asked."""
        curves = self._widths.curves(size, chance)
        below, upto = _upto(curves, low - 1), _upto(curves, high)
        none, every = _upto(curves, 0 * size) - below, upto - _upto(curves, size - 1)
        whole = upto - below
        return np.where(low == 0, none, 0.0) / whole, np.where(high == size, every, 0.0) / whole

    def _weigh(self) -> None:
        """Note what the curves have below the limits, and between them."""
        self._below = _upto(self._curves, self._low - 1)
        self._whole = _upto(self._curves, self._high) - self._below

    def _share(self, upto: Codes) -> Floats:
        """Return how much of each belief lies on counts of at most `upto`."""
        inside = np.clip(upto, self._low - 1, self._high)
        share: Floats = (_upto(self._curves, inside) - self._below) / self._whole
        return share

    def ask(self) -> tuple[Codes, Codes]:
        """Return rows and thresholds of the questions that are expected to tell most."""
        rows = np.arange(len(self.key))
        best = best_threshold(self._at(0.5), self._rules, self._share)
        if len(rows) <= self._few:  # hardly any work: further questions at once save rounds
            more = [np.clip(self._at(part), 0, self._rules.n - 1) for part in QUARTERS]
            rows, best = np.tile(rows, 1 + len(more)), np.concatenate([best, *more])
        self._row, self._asked = rows, best
        return rows, best

    def _at(self, part: float) -> Codes:
        """Return the lowest counts up to which such a part of each belief lies (by bisection)."""
        low, high = self._low.copy(), self._high.copy()
        target = self._below + part * self._whole
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            enough = _upto(self._curves, middle) >= target
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        lowest: Codes = np.minimum(low, self._high)
        return lowest

    def fewer(self, many: int) -> None:
        """Ask no more than the first so many of the questions that were returned last."""
        self._row, self._asked = self._row[:many], self._asked[:many]

    def tell(self, zone: Codes) -> tuple[Codes, Codes, Floats]:
        """Take in the zones of what was asked last.

        Returns keys and counts of those that are settled, and the bits that each told.
        """
        low, high = narrowed(self._rules, self._low, self._high, self._row, self._asked, zone)
        if (low > high).any():
            raise contradiction()
        before = self._whole
        self._low, self._high = low, high
        self._weigh()
        self._cost -= np.log2(self._whole / before)
        done = low == high
        settled = self.key[done], low[done], self._cost[done]
        if done.any():
            first = np.flatnonzero(done)[:_LEARNED]
            self._widths.learn(self._curves.size[first], self._chance[first], low[first])
            self._curves = self._curves.some(~done)
            for name in ("key", "_low", "_high", "_chance", "_cost", "_below", "_whole"):
                setattr(self, name, getattr(self, name)[~done])
        return settled


def _upto(curves: Curves, count: Codes) -> Floats:
    """Return how likely a count of at most so many is; a little more for each further one."""
    steps = np.rint(curves.upto(slice(None), count) * _STEPS)
    more: Floats = (steps + (count + 1) * 2.0**-8) / _STEPS
    return more
