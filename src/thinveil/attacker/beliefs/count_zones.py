"""Beliefs about many counts at once, narrowed by zones: which threshold tells most of each.

The beliefs of all rows stand one after the other in one flat array, so that a thousand small
counts and one of a million cost about the same work for each possible value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.beta_binomial import ramp
from thinveil.attacker.terms import BELOW, NOISY, Rules, contradiction
from thinveil.language.queries import Codes, Flags, Floats

_CANDIDATES: Final = 8
_FEW: Final = 64  # counts that are so few that each of them may ask several questions a round
_WIDE: Final = 16  # if it may have more than so many values
_LARGE: Final = 4096  # records of a table from which on rounds matter more
QUARTERS: Final = (0.25, 0.75)
"""Where further questions are asked at the same time, where there is hardly any work."""
_NEAR: Final = 0.5  # windows whose score is this share of the best are asked together


def few_of(rules: Rules) -> int:
    """Return how many counts are so few that each may ask several questions a round."""
    return 0 if rules.n < _LARGE else _FEW


class Counts:
    """Counts that are still searched for, each with what is believed of it.

    Args:
        rules: What thresholds tell.
        patient: Whether to save questions rather than rounds; small tables need few rounds.
    """

    def __init__(self, rules: Rules, patient: bool = False) -> None:
        self._rules = rules
        self._few = 0 if patient else few_of(rules)
        self.key = np.empty(0, np.int64)
        self._low = np.empty(0, np.int64)
        self._size = np.empty(0, np.int64)
        self._mass = np.empty(0)
        self._cost = np.empty(0)  # bits that each count has told so far

    def __len__(self) -> int:
        return len(self.key)

    def begin(self, key: Codes, low: Codes, high: Codes, mass: Floats) -> None:
        """Add counts between low and high, at least two values each, with flat beliefs."""
        self.key = np.concatenate([self.key, key])
        self._low = np.concatenate([self._low, low])
        self._size = np.concatenate([self._size, high - low + 1])
        self._mass = np.concatenate([self._mass, mass])
        self._cost = np.concatenate([self._cost, np.zeros(len(key))])

    def _cumulated(self) -> tuple[Codes, Floats]:
        """Return where rows start, and all beliefs added up with a zero in front."""
        starts = np.cumsum(self._size) - self._size
        return starts, np.concatenate([[0.0], np.cumsum(self._mass)])

    def ask(self) -> tuple[Codes, Codes]:
        """Return rows and thresholds of the questions that are expected to tell most.

        One for each row, except where the direction is hidden: there several windows of counts
        are looked through at the same time.
        """
        rules = self._rules
        n = rules.n
        starts, total = self._cumulated()
        before, whole = total[starts], total[starts + self._size] - total[starts]
        half = np.searchsorted(total, before + 0.5 * whole, side="left") - 1
        median = self._low + np.minimum(np.maximum(half - starts, 0), self._size - 1)
        rows = np.arange(len(self.key))
        if rules.hidden:
            self._row, self._asked = self._windows(median, starts, total, whole)
            return self._row, self._asked
        best = best_threshold(
            median, rules, lambda upto: self._share(rows, upto, starts, total) / whole
        )
        wide = np.flatnonzero(self._size > _WIDE) if len(rows) <= self._few else rows[:0]
        if len(wide):  # hardly any work: further questions at the same time save rounds
            more = []
            for share in QUARTERS:
                at = np.searchsorted(total, before[wide] + share * whole[wide], side="left") - 1
                inside = np.minimum(np.maximum(at - starts[wide], 0), self._size[wide] - 1)
                more.append(np.minimum(np.maximum(self._low[wide] + inside, 0), n - 1))
            rows, best = np.concatenate([rows, wide, wide]), np.concatenate([best, *more])
        self._row, self._asked = rows, best
        return rows, best

    def _windows(
        self, median: Codes, starts: Codes, total: Floats, whole: Floats
    ) -> tuple[Codes, Codes]:
        """Look through windows of 2k counts, with an edge at the median, the likely ones first.

        The first and the last window are moved to where a threshold exists.
        """
        k, wide, rows = self._rules.k, 2 * self._rules.k, np.arange(len(self.key))
        below = self._share(rows, median - 1, starts, total) / whole
        here = self._share(rows, median, starts, total) / whole
        edge = np.where(below <= 1 - here, median + 1, median)
        first = edge - -(-(edge - self._low) // wide) * wide
        number = (self._low + self._size - 1 - first) // wide + 1
        row = np.repeat(rows, number)
        low = first[row] + wide * ramp(number)
        b = np.minimum(np.maximum(low + k - 1, 0), self._rules.n - 1)
        inside = (
            self._share(row, b + k, starts, total) - self._share(row, b - k, starts, total)
        ) / whole[row]
        score = np.where(inside < 1 - 1e-12, np.minimum(inside, 1 - inside), 0.0)
        best = np.maximum.reduceat(score, np.cumsum(number) - number)
        asked = np.flatnonzero((score >= _NEAR * best[row]) & (score > 0))
        return row[asked], b[asked]

    def _share(self, rows: Codes, upto: Codes, starts: Codes, total: Floats) -> Floats:
        """Return how much belief of these rows lies on counts of at most `upto`."""
        inside = np.minimum(np.maximum(upto - self._low[rows] + 1, 0), self._size[rows])
        share: Floats = total[starts[rows] + inside] - total[starts[rows]]
        return share

    def tell(self, zone: Codes) -> tuple[Codes, Codes, Floats]:
        """Take in the zones of what was asked last.

        Returns keys and counts of those that are settled, and the bits that each told.
        """
        rules, b = self._rules, self._asked
        starts, total = self._cumulated()
        whole = total[starts + self._size] - total[starts]
        high = self._low + self._size - 1
        if rules.hidden:
            low, end = self._cut_out(zone == NOISY, starts)
        else:
            low, end = narrowed(rules, self._low, high, self._row, b, zone)
        if (low > end).any():
            raise contradiction()
        place = np.repeat(self._low, self._size) + ramp(self._size)
        keep = (place >= np.repeat(low, self._size)) & (place <= np.repeat(end, self._size))
        return self._kept(keep, low, end - low + 1, whole)

    def _cut_out(self, noisy: Flags, starts: Codes) -> tuple[Codes, Codes]:
        """Take quiet windows out of the beliefs; return what noisy ones leave of each row.

        A belief of zero means that a count is impossible.
        """
        k, row, b = self._rules.k, self._row, self._asked
        low, end = self._low.copy(), self._low + self._size - 1
        np.maximum.at(low, row[noisy], b[noisy] - k + 1)
        np.minimum.at(end, row[noisy], b[noisy] + k)
        quiet = row[~noisy]
        change = np.zeros(len(self._mass) + 1, np.int64)
        first = np.maximum(b[~noisy] - k + 1 - self._low[quiet], 0)
        last = np.minimum(b[~noisy] + k + 1 - self._low[quiet], self._size[quiet])
        np.add.at(change, starts[quiet] + first, 1)
        np.subtract.at(change, starts[quiet] + np.maximum(last, first), 1)
        self._mass = np.where(np.cumsum(change)[:-1] > 0, 0.0, self._mass)
        place = np.repeat(self._low, self._size) + ramp(self._size)
        inside = (place >= np.repeat(low, self._size)) & (place <= np.repeat(end, self._size))
        left = np.flatnonzero(inside & (self._mass > 0))
        owner = np.repeat(np.arange(len(self.key)), self._size)[left]
        rows = np.arange(len(self.key))
        if len(np.unique(owner)) < len(rows):
            raise contradiction()
        at = place[left]
        return at[np.searchsorted(owner, rows)], at[np.searchsorted(owner, rows, "right") - 1]

    def _kept(
        self, keep: Flags, low: Codes, size: Codes, whole: Floats
    ) -> tuple[Codes, Codes, Floats]:
        """Keep part of each row's beliefs; take out what is settled."""
        self._mass = self._mass[keep]
        self._low, self._size = low, size
        starts = np.cumsum(size) - size
        left = np.add.reduceat(self._mass, starts)
        self._cost -= np.log2(np.maximum(left / whole, 1e-300))
        self._mass /= np.repeat(left, size)
        done = size == 1
        keys, counts, costs = self.key[done], low[done], self._cost[done]
        if done.any():
            self._mass = self._mass[np.repeat(~done, size)]
            self.key, self._low, self._size = self.key[~done], low[~done], size[~done]
            self._cost = self._cost[~done]
        return keys, counts, costs

    def take(self, width: int) -> tuple[Codes, Codes, Codes, Floats, Floats]:
        """Hand over all counts of at most so many values.

        Returns keys, lows, sizes, beliefs (padded rows) and the bits that each told so far.
        """
        narrow = self._size <= width
        flat = np.repeat(narrow, self._size)
        size = self._size[narrow]
        mass = np.zeros((len(size), width))
        mass[np.repeat(np.arange(len(size)), size), ramp(size)] = self._mass[flat]
        taken = self.key[narrow], self._low[narrow], size, mass, self._cost[narrow]
        self._mass = self._mass[~flat]
        self.key, self._low = self.key[~narrow], self._low[~narrow]
        self._size, self._cost = self._size[~narrow], self._cost[~narrow]
        return taken


def best_threshold(median: Codes, rules: Rules, share: Callable[[Codes], Floats]) -> Codes:
    """Return, for each count, the threshold near its median that is expected to tell most.

    Args:
        median: The median of what is believed of each count.
        rules: What thresholds tell.
        share: Returns how much belief lies on counts of at most so many.
    """
    best_gain, best = np.full(len(median), -1.0), np.zeros(len(median), np.int64)
    for each in candidates(median, rules.k):
        b = np.minimum(np.maximum(each, 0), rules.n - 1)
        below, upto = share(b - rules.k), share(b + rules.k)
        gain = outcome_entropy(below, upto - below, 1 - upto)
        better = gain > best_gain + 1e-12
        best_gain, best = np.where(better, gain, best_gain), np.where(better, b, best)
    return best


def narrowed(
    rules: Rules, low: Codes, high: Codes, row: Codes, b: Codes, zone: Codes
) -> tuple[Codes, Codes]:
    """Return the limits of counts after the zones at these thresholds, several a row perhaps."""
    k = rules.k
    least = np.where(zone == BELOW, 0, np.where(zone == NOISY, b - k + 1, b + k + 1))
    most = np.where(zone == BELOW, b - k, np.where(zone == NOISY, b + k, rules.n))
    low, high = low.copy(), high.copy()
    np.maximum.at(low, row, least)
    np.minimum.at(high, row, most)
    return low, high


def candidates(median: Codes, k: int) -> list[Codes]:
    """Return thresholds around a median that are worth weighing against each other."""
    if k == 0:
        return [median, median - 1]
    offsets = list(range(-k - 1, k + 1))
    if len(offsets) > _CANDIDATES:
        picked = np.linspace(0, len(offsets) - 1, _CANDIDATES).round().astype(int)
        near = [offsets[0], offsets[1], offsets[-2], offsets[-1]]
        offsets = sorted({*(offsets[i] for i in picked.tolist()), *near})
    return [median + each for each in offsets]


def outcome_entropy(below: Floats, noisy: Floats, above: Floats) -> Floats:
    """Return the entropy of an answer, in nats, given how likely its zones are."""
    return _part(below) + _part(noisy) + _part(above)


def _part(share: Floats) -> Floats:
    share = np.maximum(share, 0.0)
    return -share * np.log(np.maximum(share, 1e-300))
