"""Beliefs about many counts at once, narrowed by zones: which threshold tells most of each.

The beliefs of all rows stand one after the other in one flat array, so that a thousand small
counts and one of a million cost about the same work for each possible value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import peaks, ramp, spans, starts, summed
from thinveil.attacker.terms import BELOW, NOISY, Haste, Rules, contradiction
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


def spare_of(n: int, haste: Haste) -> int:
    """Return how many questions about counts a round may have where rounds are dear.

    They are 33 of 2,000 records and 502 of 45,000 at most. Chosen on made up tables and the bank's.
    """
    return min(math.isqrt(n) * n.bit_length() ** 3 // 1728, haste.spare)


class Counts:
    """Counts that are still searched for, each with what is believed of it.

    The patient save questions rather than rounds; small tables need few rounds.
    """

    def __init__(self, rules: Rules, patient: bool = False) -> None:
        self._rules = rules
        self._few = 0 if patient else few_of(rules)
        self._haste = None if patient else rules.hasty
        self.key = self._low = self._size = np.empty(0, np.int64)
        self._mass = self._cost = np.empty(0)  # beliefs; bits that each count has told so far

    def __len__(self) -> int:
        return len(self.key)

    def begin(self, key: Codes, low: Codes, high: Codes, mass: Floats) -> None:
        """Add counts between low and high, at least two values each, with flat beliefs."""
        self.key = np.concatenate([self.key, key])
        self._low = np.concatenate([self._low, low])
        self._size = np.concatenate([self._size, high - low + 1])
        self._mass = np.concatenate([self._mass, mass])
        self._cost = np.concatenate([self._cost, np.zeros(len(key))])

    def ask(self) -> tuple[Codes, Codes]:
        """Return rows and thresholds of the questions that are expected to tell most.

        One for each row, except where the direction is hidden: there several windows of counts
        are looked through at the same time.
        """
        rules = self._rules
        n = rules.n
        rows, first = np.arange(len(self.key)), starts(self._size)
        total = summed(self._mass)
        before, whole = total[first], total[first + self._size] - total[first]

        def at(rows: Codes, part: float) -> Codes:
            """Return the counts below which a part of the belief lies."""
            place = np.searchsorted(total, before[rows] + part * whole[rows], side="left") - 1
            count: Codes = self._low[rows] + np.clip(place - first[rows], 0, self._size[rows] - 1)
            return count

        def share(rows: Codes, upto: Codes) -> Floats:
            """Return how much belief lies on counts of at most `upto`."""
            inside = np.minimum(np.maximum(upto - self._low[rows] + 1, 0), self._size[rows])
            lower: Floats = total[first[rows] + inside] - before[rows]
            return lower

        median = at(rows, 0.5)
        if rules.hidden:
            below, here = share(rows, median - 1) / whole, share(rows, median) / whole
            edge = np.where(below <= 1 - here, median + 1, median)
            row, number, b = windows_at(edge, self._low, self._size, rules.k, n)
            inside = (share(row, b + rules.k) - share(row, b - rules.k)) / whole[row]
            score = np.where(inside < 1 - 1e-12, np.minimum(inside, 1 - inside), 0.0)
            asked = (score >= _NEAR * peaks(score, number)) & (score > 0)
            self._row, self._asked = row[asked], b[asked]
            return self._row, self._asked
        best = best_threshold(median, rules, lambda upto: share(rows, upto) / whole)
        few = len(rows) <= self._few
        if self._haste is not None and (many := spare_of(n, self._haste) // len(rows)) > 2:
            rows, best = self._several(many, best, at)
            self._haste.besides += len(rows) - len(self.key)
            few = False
        wide = np.flatnonzero(self._size > _WIDE) if few else rows[:0]
        if len(wide):  # hardly any work: further questions at the same time save rounds
            more = [np.clip(at(wide, part), 0, n - 1) for part in QUARTERS]
            rows, best = np.concatenate([rows, wide, wide]), np.concatenate([best, *more])
        self._row, self._asked = rows, best
        return rows, best

    def _several(
        self, many: int, best: Codes, at: Callable[[Codes, float], Codes]
    ) -> tuple[Codes, Codes]:
        """Return rows and thresholds, up to so many a row, at even shares of belief."""
        rows, steps = np.arange(len(self.key)), 2 * ((many + 1) // 2)
        parts = [part / steps for part in range(1, steps) if part != steps // 2]
        more = [np.clip(at(rows, part), 0, self._rules.n - 1) for part in parts]
        each = np.stack([np.tile(rows, 1 + len(parts)), np.concatenate([best, *more])])
        row, asked = np.unique(each, axis=1)
        return row, asked

    def fewer(self, many: int) -> None:
        """Ask no more than the first so many of the questions that were returned last."""
        self._row, self._asked = self._row[:many], self._asked[:many]

    def tell(self, zone: Codes) -> tuple[Codes, Codes, Floats]:
        """Take in the zones of what was asked last.

        Returns keys and counts of those that are settled, and the bits that each told.
        """
        first, total = starts(self._size), summed(self._mass)
        whole = total[first + self._size] - total[first]
        if self._rules.hidden:
            low, end = self._cut_out(zone == NOISY, first)
        else:
            high = self._low + self._size - 1
            low, end = narrowed(self._rules, self._low, high, self._row, self._asked, zone)
        if (low > end).any():
            raise contradiction()
        return self._kept(self._between(low, end), low, end - low + 1, whole)

    def _between(self, low: Codes, end: Codes) -> Flags:
        """Return which counts of all rows lie between limits of their rows."""
        place = spans(self._low, self._size)
        inside: Flags = place >= np.repeat(low, self._size)
        inside &= place <= np.repeat(end, self._size)
        return inside

    def _cut_out(self, noisy: Flags, begin: Codes) -> tuple[Codes, Codes]:
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
        np.add.at(change, begin[quiet] + first, 1)
        np.subtract.at(change, begin[quiet] + np.maximum(last, first), 1)
        self._mass = np.where(np.cumsum(change)[:-1] > 0, 0.0, self._mass)
        left = np.flatnonzero(self._between(low, end) & (self._mass > 0))
        rows = np.arange(len(self.key))
        owner = np.repeat(rows, self._size)[left]
        if len(np.unique(owner)) < len(rows):
            raise contradiction()
        at = spans(self._low, self._size)[left]
        return at[np.searchsorted(owner, rows)], at[np.searchsorted(owner, rows, "right") - 1]

    def _kept(
        self, keep: Flags, low: Codes, size: Codes, whole: Floats
    ) -> tuple[Codes, Codes, Floats]:
        """Keep part of each row's beliefs; take out what is settled."""
        self._mass = self._mass[keep]
        self._low, self._size = low, size
        left = np.add.reduceat(self._mass, starts(size))
        self._cost -= np.log2(np.maximum(left / whole, 1e-300))
        self._mass /= np.repeat(left, size)
        done = size == 1
        settled = self.key[done], low[done], self._cost[done]
        self._drop(done)
        return settled

    def _drop(self, rows: Flags) -> None:
        """Let go of rows."""
        self._mass = self._mass[np.repeat(~rows, self._size)]
        self.key, self._low = self.key[~rows], self._low[~rows]
        self._size, self._cost = self._size[~rows], self._cost[~rows]

    def take(self, width: int) -> tuple[Codes, Codes, Codes, Floats, Floats]:
        """Hand over all counts of at most so many values.

        Returns keys, lows, sizes, beliefs (padded rows) and the bits that each told so far.
        """
        narrow = self._size <= width
        size = self._size[narrow]
        mass = np.zeros((len(size), width))
        owner = np.repeat(np.arange(len(size)), size)
        mass[owner, ramp(size)] = self._mass[np.repeat(narrow, self._size)]
        taken = self.key[narrow], self._low[narrow], size, mass, self._cost[narrow]
        self._drop(narrow)
        return taken


def windows_at(edge: Codes, low: Codes, size: Codes, k: int, n: int) -> tuple[Codes, Codes, Codes]:
    """Return rows, windows a row, and thresholds of windows of 2k counts with an edge at one.

    The first and the last window of a row are moved to where a threshold exists.
    """
    wide = 2 * k
    first = edge - -(-(edge - low) // wide) * wide
    number = (low + size - 1 - first) // wide + 1
    row = np.repeat(np.arange(len(edge)), number)
    return row, number, np.clip(first[row] + wide * ramp(number) + k - 1, 0, n - 1)


def best_threshold(median: Codes, rules: Rules, share: Callable[[Codes], Floats]) -> Codes:
    """Return, for each count, the threshold near its median that is expected to tell most.

    `share` returns how much belief lies on counts of at most so many.
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
    return entropy(below) + entropy(noisy) + entropy(above)


def entropy(share: Floats) -> Floats:
    """Return what an outcome of this chance adds to the entropy, in nats."""
    share = np.maximum(share, 0.0)
    return -share * np.log(np.maximum(share, 1e-300))
