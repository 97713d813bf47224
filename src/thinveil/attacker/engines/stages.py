"""One attribute of all groups of records at a time, by what was learned of it before.

The histogram of the attribute is known, so only values that occur are looked for, and those that
are used up are not. Groups take their turn while others still run: what is found of the first
makes predictions for the next.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import CELLS, Triple, binned, by_group, summed
from thinveil.attacker.beliefs.contexts import Mixer
from thinveil.attacker.engines.histograms import Histogram
from thinveil.attacker.engines.quarters import Quarters
from thinveil.attacker.engines.waves import Pace, Waves, large, turns
from thinveil.attacker.terms import Rules
from thinveil.language.queries import Codes, Floats

_RENEW: Final = 0.08  # predictions are renewed when so many more records are known
_LATE: Final = 8  # in haste such a part of a wave is not waited for before it is learned from
_WORTH: Final = 16  # a wave is at least such a part of what is over


class Stage(Quarters):
    """The search for one attribute in groups of records that agree on all earlier ones.

    Contexts are, for each earlier attribute, the number of each group's value (or bin). Where
    answers are limited, only some rows of the groups are searched now; what was found of others
    before is `given`.
    """

    # In haste: how many are searched for each that is over, where groups have fewer records than
    # that on average. Twice as many save up to a seventh of the rounds, and ask up to a tenth more
    # where one column follows from another (six tables).
    ahead, small = 1.5, 4

    def __init__(
        self,
        rules: Rules,
        histogram: Histogram,
        sizes: Codes,
        contexts: list[Codes],
        rows: Codes | None = None,
        given: Triple | None = None,
    ) -> None:
        super().__init__(rules)
        self.histogram = histogram
        self.sizes = sizes
        counts = histogram.counts
        values = len(counts)
        self._cell = np.arange(values) if values <= 2 * CELLS else binned(counts, CELLS)
        cells = int(self._cell[-1]) + 1
        self._edge = np.searchsorted(self._cell, np.arange(cells + 1))
        self._steps = max(1, int(np.ceil(np.log2(cells + 1))))
        self.mixer = Mixer(contexts, np.bincount(self._cell, counts, cells).astype(np.int64))
        self._cumulated = np.zeros((len(sizes), cells + 1), np.float32)
        self._left = counts.copy()
        self._below = summed(counts)
        self._later = counts.copy()  # what is left when all waves that are over are taken away
        self._waves = summed(counts)
        order, self._total = turns(np.where(large(sizes), sizes, 0)), int(sizes.sum())
        if rows is not None:
            order, self._total = order[np.isin(order, rows)], int(sizes[rows].sum())
        self.rows = np.sort(order)
        # Large groups use values up, which those that wait need not look for.
        hasty = rules.hasty is not None and self._total < self.small * len(order)
        ahead = self.ahead if hasty else 0.0
        self.records, pace = Pace.of(self._total, ahead), Pace.of(len(order), ahead)
        self.groups = Waves(order, pace, sizes, _LATE if rules.hasty else 0)
        self._found: list[Triple] = []
        if given is not None:
            self._learn_given(*given)

    def _learn_given(self, group: Codes, place: Codes, many: Codes) -> None:
        """Take in what was found of other groups before."""
        self.mixer.learn(group, self._cell[place], many)
        self.mixer.refresh()
        for left in (self._left, self._later):
            np.subtract.at(left, place, many)
        self._below, self._waves = summed(self._left), summed(self._later)

    # -- groups take their turn ------------------------------------------------------------

    @property
    def done(self) -> float:
        """The share of records that have a value."""
        return self.records.over / self._total

    def room(self) -> int:
        """Return how many groups may take their turn now: as many as are over, about.

        Counted in records as well: a large group is worth many small ones.
        """
        paces = self.groups.pace, self.records
        groups, records = (pace.room(pace.over // _WORTH) for pace in paces)
        return self.groups.upto(records, groups) if groups and records else 0

    def advance(self) -> None:
        """Let further groups take their turn, predicted by what is known now."""
        while self.groups.waiting and (many := self.room()):
            self._begin(self.groups.begin(many))

    def _begin(self, groups: Codes) -> None:
        self.records.flying += int(self.sizes[groups].sum())
        if self.mixer.waiting > max(_RENEW * self.mixer.records, 32):
            self.mixer.refresh()
        rows = self.mixer.predict(groups)
        np.cumsum(rows, axis=1, out=rows)
        self._cumulated[groups, 1:] = rows
        last = np.full(len(groups), len(self._left))
        self.add(groups, np.zeros(len(groups), np.int64), last, self.sizes[groups])

    # -- nodes -----------------------------------------------------------------------------

    def plan(self, nodes: Codes) -> tuple[Codes, Floats, Codes, Codes]:
        """Cut where half of the belief lies on either side."""
        first, end, size = self.first[nodes], self.end[nodes], self.size[nodes]
        cut, chance = np.empty_like(first), np.empty(len(nodes))
        left, right = self._cell[first], self._cell[end - 1] + 1
        coarse = np.flatnonzero(right - left > 1)
        if len(coarse):
            owner = self.owner[nodes[coarse]]
            at, chance[coarse] = self._coarse(owner, left[coarse], right[coarse])
            cut[coarse] = self._edge[at]
        fine = np.flatnonzero(right - left <= 1)
        if len(fine):
            cut[fine], chance[fine] = self._fine(first[fine], end[fine])
        below = self._below
        low = np.maximum(size - (below[end] - below[cut]), 0)
        high = np.minimum(size, below[cut] - below[first])
        return cut, chance, low, high

    def _coarse(self, group: Codes, left: Codes, right: Codes) -> tuple[Codes, Floats]:
        """Halve a group's own prediction over cells."""
        table = self._cumulated
        start = table[group, left].astype(np.float64)
        whole = table[group, right] - start
        target = start + 0.5 * whole
        low, high = left + 1, right - 1  # the cut lies strictly inside
        for _ in range(self._steps):
            middle = (low + high) // 2
            reached = table[group, middle] >= target
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + 1, right - 1))
        before = np.maximum(high - 1, left + 1)
        here, lower = table[group, high] - target, table[group, before] - target
        at = np.where(np.abs(lower) < np.abs(here), before, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = (table[group, at] - start) / whole
        return at, np.where(whole > 0, chance, 0.5)

    def _fine(self, first: Codes, end: Codes) -> tuple[Codes, Floats]:
        """Halve what later waves have to find of the attribute's values, and this one too."""
        below = self._waves
        start, whole = below[first], below[end] - below[first]
        target = start + whole / 2
        cut = np.searchsorted(below, target, side="left")
        cut = np.minimum(np.maximum(cut, first + 1), end - 1)
        before = np.maximum(cut - 1, first + 1)
        nearer = np.abs(below[before] - target) < np.abs(below[cut] - target)
        cut = np.where(nearer, before, cut)
        return cut, (below[cut] - start) / np.maximum(whole, 1)

    def settle(self, nodes: Codes) -> None:
        """Note records whose value is found; a wave is learned from when all of it is over."""
        owner, value, size = self.owner[nodes], self.first[nodes], self.size[nodes]
        np.subtract.at(self._left, value, size)
        self.records.end(int(size.sum()))
        self._below = summed(self._left)
        self.groups.hold(owner, value, size)
        for wave in self.groups.end(owner, size):
            group, place, many = found = self.groups.take(wave)
            self._found.append(found)
            self.mixer.learn(group, self._cell[place], many)
            np.subtract.at(self._later, place, many)
            self._waves = summed(self._later)

    def found(self) -> Triple:
        """Return group, place of the value and number of records of all that is found."""
        return by_group([*self._found, *self.groups.left()])
