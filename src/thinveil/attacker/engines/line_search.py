"""Finding all places of a line that hold something, by asking whether stretches do.

A *line* (the domain of a column, the values of one group of records) is searched from one end.
What lies before `low` is settled. Either the stretch from `low` to `high` is known to hold
something, or nothing is known of what follows. A question is about a first part of that, cut
off where belief says that "none" and "some" are equally likely.

Belief: places are hit at a rate that is not known, gamma distributed; every hit and every empty
stretch sharpens it. So a line that seems to hold one value is halved, and at its end one question
tells that nothing is left; a line that seems full is asked place by place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.language.queries import Codes, Flags, Floats

KINDS: Final = 24
"""How many kinds of lines have chances of their own."""
_EDGE: Final = 1e-6  # nothing is believed to be less likely than this
_WHOLE: Final = 0.6  # all that is left is asked for at once, if it holds something less likely
_CELLS: Final = 32  # chances are corrected in so many steps
_FIRM: Final = 24.0  # and only by what was seen more often than this


class Calibration:
    """Corrects chances by how often what they foretold came true."""

    def __init__(self, kinds: int) -> None:
        self._hits = np.zeros((kinds, _CELLS))
        self._seen = np.zeros((kinds, _CELLS))

    def _cell(self, chance: Floats) -> Codes:
        logit = rounded(np.log(chance / (1 - chance)))
        return np.clip((logit + 14) * (_CELLS / 18), 0, _CELLS - 1).astype(np.int64)

    def corrected(self, kind: Codes, chance: Floats) -> Floats:
        """Return better chances."""
        cell = self._cell(chance)
        hits, seen = self._hits[kind, cell], self._seen[kind, cell]
        return np.clip((hits + _FIRM * chance) / (seen + _FIRM), _EDGE, 1 - _EDGE)

    def learn(self, kind: Codes, chance: Floats, came: Flags) -> None:
        """Take in what came true, given the chances before correction."""
        cell = kind * _CELLS + self._cell(chance)
        size = self._seen.size
        self._seen += np.bincount(cell, minlength=size).reshape(self._seen.shape)
        self._hits += np.bincount(cell, came, size).reshape(self._seen.shape)


class Frontiers(ABC):
    """Lines that are searched side by side; subclasses say how likely places are.

    Each line has an owner, begins and ends somewhere, and may be known to hold something. The
    belief about its rate is as if so many hits had been seen in so many trials.
    """

    def __init__(
        self, owner: Codes, low: Codes, end: Codes, known: Flags, hits: Floats, trials: Floats
    ) -> None:
        self.owner, self.low, self.end = owner.copy(), low.copy(), end.copy()
        self.known = known.copy()
        self.high = np.where(known, end, low)
        self.hits, self.trials = hits.copy(), trials.copy()
        self.cut = self.low.copy()
        self.last = self.low.copy()  # where the place found last ends
        self.sort = np.zeros(len(owner), np.int64)
        self.raw = np.full(len(owner), 0.5)
        self.chance = np.full(len(owner), 0.5)
        self.calibration = Calibration(2 * KINDS)

    # -- what subclasses say ---------------------------------------------------------------

    @abstractmethod
    def mass(self, rows: Codes, low: Codes, high: Codes) -> Floats:
        """Return how much of the belief lies in stretches of lines."""

    @abstractmethod
    def reach(self, rows: Codes, low: Codes, mass: Floats) -> Codes:
        """Return the last places before which so much of the belief lies, counted from `low`."""

    @abstractmethod
    def split(self, rows: Codes) -> tuple[Codes, Codes]:
        """Share out lines that seem to hold much (by `add`); return which, and the new ones."""

    def kind(self, rows: Codes) -> Codes:
        """Return numbers below KINDS; lines with the same one are surprising in the same way."""
        return np.zeros(len(rows), np.int64)

    @abstractmethod
    def found(self, rows: Codes, places: Codes) -> None:
        """Note places that hold something."""

    @abstractmethod
    def charge(self, rows: Codes, bits: Floats) -> None:
        """Note what answers were worth."""

    # -- questions -------------------------------------------------------------------------

    def begin(self, rows: Codes) -> Codes:
        """Settle what is known without asking; return the lines that are left, planned."""
        return self._plan(self.shared(self._settle(rows)))

    def shared(self, rows: Codes) -> Codes:
        """Return open lines, and new ones that take over a part of those that are shared out."""
        new = rows
        while len(new):
            parent, fresh = self.split(new)
            rows, new = np.concatenate([rows, fresh]), np.concatenate([parent, fresh])
        return rows

    def add(self, parent: Codes, low: Codes) -> Codes:
        """Add lines that take over from others at some place, not known to hold anything."""
        rows = np.arange(len(self.owner), len(self.owner) + len(parent))
        if not len(rows):
            return rows
        for name in ("owner", "end", "hits", "trials", "raw", "chance", "sort"):
            mine = getattr(self, name)
            setattr(self, name, np.concatenate([mine, mine[parent]]))
        for name in ("low", "high", "cut", "last"):
            setattr(self, name, np.concatenate([getattr(self, name), low]))
        self.known = np.concatenate([self.known, np.zeros(len(parent), np.bool_)])
        self.end[parent] = low
        return rows

    def _plan(self, rows: Codes) -> Codes:
        """Choose the next question of each line."""
        low, known = self.low[rows], self.known[rows]
        stop = np.where(known, self.high[rows], self.end[rows])
        a, b = self.hits[rows], self.trials[rows]
        whole = np.maximum(self.mass(rows, low, stop), 1e-12)
        some = rounded(-np.expm1(-a * np.log1p(whole / b)))
        part = np.where(known, some / 2, 0.5)
        target = np.minimum(rounded(b * np.expm1(-np.log1p(-part) / a)), whole)
        last = np.where(known, stop - 1, stop)
        cut = np.minimum(np.maximum(self.reach(rows, low, target), low + 1), last)
        after = np.minimum(cut + 1, last)
        chance = self._chance(rows, low, cut, a, b)
        later = self._chance(rows, low, after, a, b)
        given = np.where(known, np.maximum(some, 1e-300), 1.0)
        chance, later = chance / given, later / given
        nearer = np.abs(later - 0.5) < np.abs(chance - 0.5)
        cut, chance = np.where(nearer, after, cut), np.where(nearer, later, chance)
        ends = ~known & (some <= _WHOLE)
        cut, chance = np.where(ends, stop, cut), np.where(ends, some, chance)
        self.cut[rows] = cut
        self.raw[rows] = np.clip(chance, _EDGE, 1 - _EDGE)
        self.sort[rows] = 2 * self.kind(rows) + known
        self.chance[rows] = self.calibration.corrected(self.sort[rows], self.raw[rows])
        return rows

    def _chance(self, rows: Codes, low: Codes, cut: Codes, a: Floats, b: Floats) -> Floats:
        return rounded(-np.expm1(-a * np.log1p(self.mass(rows, low, cut) / b)))

    def told(self, rows: Codes, some: Flags, every: Flags) -> Codes:
        """Take in whether stretches up to cuts hold something, or everything there is.

        Returns the lines that are not over, with their next questions.
        """
        chance = np.clip(self.chance[rows], _EDGE, 1 - _EDGE)
        self.charge(rows, -np.log2(np.where(some, chance, 1 - chance)))
        self.calibration.learn(self.sort[rows], self.raw[rows], some)
        cut = self.cut[rows]
        hit, none = rows[some], rows[~some]
        self.high[hit] = cut[some]
        self.known[hit] = True
        self.end[rows[every]] = cut[every]
        self.trials[none] += self.mass(none, self.low[none], cut[~some])
        self.low[none] = cut[~some]
        return self.begin(rows)

    def _settle(self, rows: Codes) -> Codes:
        """Note places that are found, and return the lines that are not over."""
        alone = self.known[rows] & (self.high[rows] - self.low[rows] == 1)
        mine = rows[alone]
        if len(mine):
            place = self.low[mine]
            self.found(mine, place)
            self.trials[mine] += self.mass(mine, place, place + 1)
            self.hits[mine] += 1
            self.low[mine] += 1
            self.known[mine] = False
        return rows[self.low[rows] < self.end[rows]]
