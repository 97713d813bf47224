"""Which values occur in each group of records: one attribute of all groups, in waves.

Groups that are over teach how likely each value is beside others, and how many values to expect.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.attacks.distinct_columns import Domain
from thinveil.attacker.beliefs.arrays import CELLS, Triple, binned, by_group, joined, levels, summed
from thinveil.attacker.beliefs.contexts import Mixer
from thinveil.attacker.engines.line_search import Frontiers
from thinveil.attacker.engines.waves import Pace, Waves
from thinveil.attacker.fixed_order import shuffled
from thinveil.language.queries import Codes, Flags, Floats

_WORTH: Final = 4  # a wave is at least such a part of the groups that are over
_LATE: Final = 8  # a wave is learned from without the last of so many
_RENEW: Final = 0.08  # predictions are renewed when so much more is known
_GUESS: Final = 0.5  # how often every value seems to have been seen before the first time
_LEAST: Final = 1e-9  # no group is expected to have fewer records, no value to be less likely
_ROUNDS: Final = 6  # of expectation and maximisation, for the records of groups
_SMALL: Final = 2.0  # groups with fewer records are likely to have their likeliest value only
_SWIFT: Final = 0.25  # how much of the logarithm of a gap is believed at once
_EXPECTED: Final = 12.0  # a line that seems to hold more values is shared out


class _Seen(Mixer):
    """Predicts from what was found alone: how often a value occurs in the table is not known."""

    def __init__(self, contexts: list[Codes], guess: Floats) -> None:
        self._seen = guess.copy()
        super().__init__(contexts, np.ones(len(guess), np.int64))
        self._share = (guess / guess.sum()).astype(np.float32)

    def refresh(self) -> None:
        """Take in what was found since."""
        for _, cells, counts in self._waiting:
            np.add.at(self._seen, cells, counts)
        self._share = (self._seen / self._seen.sum()).astype(np.float32)
        super().refresh()

    def _log_left(self) -> Floats:
        logs: Floats = np.log(self._seen / self._seen.sum()).astype(np.float32)
        return logs


class Stage(Frontiers):
    """The search for one attribute in groups of records that agree on all earlier ones.

    Contexts are, for each earlier attribute, the number of each group's value (or bin). Rates say
    how many records each group was expected to have, before it was known to exist; `spare` are
    left beside one of each. Values may have been seen before. With unions, a question may be
    about more than one stretch of values.
    """

    def __init__(
        self,
        domain: Domain,
        contexts: list[Codes],
        rates: Floats,
        spare: int,
        unions: bool,
        seen: Floats,
    ) -> None:
        groups, values = len(rates), len(domain.steps)
        zero, one, known = np.zeros(groups, np.int64), np.ones(groups), np.ones(groups, np.bool_)
        end, trials = np.full(groups, values), 1 / np.maximum(rates, _LEAST)
        super().__init__(np.arange(groups), zero, end, known, one, trials)
        self.domain, self.bits = domain, 0.0
        self.most = values  # so many values of a group are enough
        self._contexts, self._rates, self._spare, self._unions = contexts, rates, spare, unions
        self._values, self._seen = values, _GUESS + seen
        self._set_cells(np.arange(values) if values <= 2 * CELLS else np.zeros(values, np.int64))
        self._start = zero.copy()  # the place of the value that each line begins with
        self.down = ~known  # whether lines go from the last value to the first
        self.groups = Waves(shuffled(groups), Pace.of(groups), late=_LATE)
        self._many = zero.copy()  # values found of each group
        self._found: list[Triple] = []
        self._size = np.clip(np.log2(np.maximum(rates, _LEAST)) / 1.5 + 5, 0, 7).astype(np.int64)
        self._open = np.ones(groups, np.int64)  # lines of each group that are not over

    # -- beliefs ---------------------------------------------------------------------------

    def _set_cells(self, cell: Codes) -> None:
        """Predict by cells of values from now on."""
        cells = int(cell[-1]) + 1
        self._cell = np.concatenate([cell, [cells]])
        self._edge = np.searchsorted(cell, np.arange(cells + 1))
        self._steps = int(np.ceil(np.log2(cells))) if cells > 1 else 0
        self._coarse = cells < self._values
        self._mixer = _Seen(self._contexts, np.bincount(cell, self._seen, cells).astype(float))
        self._table = np.zeros((len(self._rates), cells + 1), np.float32)
        self._refresh()

    def _refresh(self) -> None:
        self._cumulated = summed(self._seen)
        first, cell = self._edge[:-1], self._cell[:-1]
        share = self._seen / np.add.reduceat(self._seen, first)[cell]
        top = np.maximum.reduceat(share, first)
        place = np.where(share == top[cell], np.arange(self._values), self._values)
        self._top, self._top_share = np.minimum.reduceat(place, first), top

    def _ends(self, cell: Codes) -> tuple[Floats, Floats]:
        """Return how often values before and up to the end of cells were seen."""
        return self._cumulated[self._edge[cell]], self._cumulated[self._edge[cell + 1]]

    def _sum(self, rows: Codes, place: Codes) -> Floats:
        """Return how likely a value before a place is."""
        rows, cell = self.owner[rows], self._cell[place]
        below: Floats = self._table[rows, cell].astype(np.float64)
        inner = place > self._edge[cell]
        if inner.any():
            rows, place, cell = rows[inner], place[inner], cell[inner]
            start, end = self._ends(cell)
            share = (self._cumulated[place] - start) / (end - start)
            below[inner] += share * (self._table[rows, cell + 1] - below[inner])
        return below

    def _place(self, rows: Codes, mass: Floats) -> Codes:
        """Return the last place with at most so much before it."""
        rows, low = self.owner[rows], np.zeros(len(rows), np.int64)
        high = np.full(len(rows), self._table.shape[1] - 2)
        for _ in range(self._steps):
            middle = (low + high + 1) // 2
            fits = self._table[rows, middle] <= mass
            low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
        if not self._coarse:
            return low
        start, end = self._ends(low)
        below = self._table[rows, low]
        inside = np.maximum(self._table[rows, low + 1] - below, 1e-12)
        target = start + np.clip((mass - below) / inside, 0, 1) * (end - start)
        place = np.searchsorted(self._cumulated, target, side="right") - 1
        inner: Codes = np.minimum(np.maximum(place, self._edge[low]), self._edge[low + 1])
        return inner

    def _upto(self, rows: Codes, position: Codes) -> Floats:
        """Return how likely a value before a position of a line is, plus a constant."""
        values, down = self._values, self.down[self.owner[rows]]
        place = np.where(down, values - position, self._start[self.owner[rows]] + position)
        wrap = place > values
        below = self._sum(rows, np.where(wrap, place - values, place))
        return np.where(down, -below, below + wrap)

    def mass(self, rows: Codes, low: Codes, high: Codes) -> Floats:
        """Return how likely each group's values are to lie in a stretch of its line."""
        return np.maximum(self._upto(rows, high) - self._upto(rows, low), 0.0)

    def reach(self, rows: Codes, low: Codes, mass: Floats) -> Codes:
        """Return how far to go for so much."""
        values, down = self._values, self.down[self.owner[rows]]
        target = self._upto(rows, low) + mass
        wrap = target >= 1
        place = self._place(rows, np.where(down, -target, target - wrap))
        return np.where(
            down, values - 1 - place, place + wrap * values - self._start[self.owner[rows]]
        )

    def places(self, rows: Codes, position: Codes) -> Codes:
        """Return the places of values from positions in lines."""
        values, group = self._values, self.owner[rows]
        return np.where(
            self.down[group], values - 1 - position, (self._start[group] + position) % values
        )

    # -- groups take their turn ------------------------------------------------------------

    @property
    def done(self) -> float:
        """The share of groups that are over."""
        return self.groups.pace.over / len(self._rates)

    @property
    def closed(self) -> Flags:
        """Which groups are over."""
        closed: Flags = self.groups.open == 0
        return closed

    def advance(self) -> Codes:
        """Let further groups take their turn; return those that have something to ask."""
        pace = self.groups.pace
        room = pace.room(pace.over // _WORTH)
        if not self.groups.waiting or not room:
            return self.owner[:0]
        if self._coarse and self._table.shape[1] == 2 and self.groups.members:
            if pace.flying:
                return self.owner[:0]
            self._learn_cells()
        mine = self.groups.begin(room)
        if self._mixer.waiting > max(_RENEW * self._mixer.records, 16):
            self._mixer.refresh()
            self._refresh()
        rows = self._mixer.predict(mine)
        self._head(mine, rows)
        np.cumsum(rows, axis=1, out=rows)
        rows[:, -1] = 1.0
        self._table[mine, 1:] = rows
        left = self.begin(mine)
        self._close(mine)
        return left

    def _learn_cells(self) -> None:
        """Cut the values into cells by what the first wave found."""
        self._set_cells(binned(np.ceil(self._seen * 2).astype(np.int64), CELLS))
        group, place, _ = joined(self._found)
        self._mixer.learn(group, self._cell[place], np.ones(len(group), np.int64))

    def _head(self, rows: Codes, chance: Floats) -> None:
        """Put the likeliest value of each group last: if nothing else is there, it is."""
        few = (self._rates[rows] < _SMALL) & self._unions
        self.down[rows] = (chance[:, 0] > chance[:, -1]) & ~few
        last = self._top[np.argmax(chance * self._top_share, axis=1)]
        self._start[rows] = np.where(few, (last + 1) % self._values, 0)

    def shared(self, rows: Codes) -> Codes:
        """Return open lines and new ones; end all where every record is accounted for."""
        if not self._spare:
            known = self.known[rows]
            self.end[rows] = np.where(known, self.high[rows], self.low[rows])
            return rows[known]
        if self.most < self._values:
            enough = self._many[self.owner[rows]] >= self.most
            self.end[rows[enough]] = self.low[rows[enough]]
            rows = rows[~enough]
        return super().shared(rows)

    def split(self, rows: Codes) -> tuple[Codes, Codes]:
        """Share out lines that seem to hold much."""
        rows = rows[self.hits[rows] > _EXPECTED * self.trials[rows]]
        first, end = np.where(self.known[rows], self.high[rows], self.low[rows]), self.end[rows]
        mass = self.mass(rows, first, end)
        split = (self.hits[rows] * mass > _EXPECTED * self.trials[rows]) & (end - first > 1)
        parent, first, end = rows[split], first[split], end[split]
        middle = np.clip(self.reach(parent, first, mass[split] / 2), first + 1, end - 1)
        fresh = self.add(parent, np.where(self.known[parent], first, middle))
        np.add.at(self._open, self.owner[parent], 1)
        return parent, fresh

    def found(self, rows: Codes, places: Codes) -> None:
        """Note values of groups."""
        group, place = self.owner[rows], self.places(rows, places)
        chance = np.maximum(self.mass(rows, places, places + 1), _LEAST)
        self._spare -= len(group) - len(np.unique(group[self._many[group] == 0]))
        np.add.at(self._many, group, 1)
        self._adapt(rows, places)
        self.groups.hold(group, place, chance)

    def _adapt(self, rows: Codes, places: Codes) -> None:
        """Believe in larger groups where values follow each other closely."""
        again = self.hits[rows] > 1
        mine, place = rows[again], places[again]
        hits, trials = self.hits[mine], self.trials[mine]
        gap = np.maximum(self.mass(mine, self.last[mine], place + 1), _LEAST)
        gap = (trials / hits) ** (1 - _SWIFT) * gap**_SWIFT
        self.trials[mine] = np.minimum(trials, hits * gap)
        self.last[rows] = places + 1

    def kind(self, rows: Codes) -> Codes:
        """Tell lines apart by how many values were found, and by how large groups seem."""
        group = self.owner[rows]
        return np.minimum(self._many[group], 2) * 8 + self._size[group]

    def charge(self, rows: Codes, bits: Floats) -> None:
        """Add what answers were worth."""
        self.bits += float(bits.sum())

    def tell(self, rows: Codes, some: Flags, every: Flags) -> Codes:
        """Take in answers; return the groups that go on."""
        left = self.told(rows, some, every)
        self._close(rows)
        return left

    def _close(self, rows: Codes) -> None:
        """Note which groups are over; a wave is learned from when nearly all of it is."""
        group = self.owner[rows[self.low[rows] >= self.end[rows]]]
        np.subtract.at(self._open, group, 1)
        done = np.unique(group)
        done = done[self._open[done] == 0]
        for wave in self.groups.end(done, np.ones(len(done), np.int64)):
            self._learn(wave)

    def _learn(self, wave: int) -> None:
        """Learn from a wave: which values are likely, and how many records groups have."""
        group, place, chance = self.groups.take(wave)
        done = self.closed[group]
        self.groups.held[wave] = [(group[~done], place[~done], chance[~done])]
        group, place, chance = group[done], place[done], chance[done]
        np.add.at(self._seen, place, 1.0)
        self._mixer.learn(group, self._cell[place], np.ones(len(group), np.int64))
        mine, number = np.unique(group, return_inverse=True)
        prior = rate = self._rates[mine]
        for _ in range(_ROUNDS):
            here = rate[number] * chance
            records = np.bincount(number, here / -np.expm1(-np.maximum(here, _LEAST)))
            rate = (1 + records) / (1 / np.maximum(prior, _LEAST) + 1)
        self._found.append((group, place, rate[number] * chance))

    def results(self) -> tuple[Codes, Codes, Floats]:
        """Return group, place and rate of all that was found in groups that are over."""
        held = [(mine, place, p * self._rates[mine]) for mine, place, p in self.groups.left()]
        group, place, rate = by_group([*self._found, *held])
        done = self.closed[group]
        return group[done], place[done], rate[done]

    def level(self, place: Codes) -> Codes | None:
        """Return values as a context for later attributes: few numbers."""
        if self._values == 1:
            return None
        level: Codes = levels(np.ceil(self._seen * 2).astype(np.int64))[place]
        return level
