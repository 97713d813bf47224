"""Beliefs about counts of large groups, each held in as few parts as what was heard has.

What an answer tells is constant between a few breakpoints. So the counts of a group are cut at
the breakpoints of what was asked, and nowhere else: a part has one likelihood, and how much of
the belief lies on it is known from the curve (`count_curves`) by the two ends of the part. Work
and memory grow with the questions asked, not with how many counts are possible.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import evened, peaks, rounded, spans, starts, summed
from thinveil.attacker.beliefs.count_beliefs import CountBeliefs, Prior
from thinveil.attacker.beliefs.count_curves import Curves
from thinveil.attacker.evidence.likelihood import cut_up
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Flags, Floats

LARGE: Final = 2**20
"""Records of a table beyond which counts of large groups are held in parts."""
_SOONER: Final = (
    8  # times fewer where directions hide; half the answers from there on (bench large)
)
MOST: Final = 512
"""The highest count that is weighed one by one even so (as in `beta_binomial`)."""
_DOUBT: Final = 10.0
_FIRST: Final = 32  # windows by which a scan goes on to either side at first; then it doubles
_ELSEWHERE: Final = 0.5  # how likely the count must be where nothing was asked, to scan on
_AT_ONCE: Final = 2**19  # windows a round: some ten answers each, 40 MB an array of answers
_NEAR: Final = 0.02  # windows of this share of the best score are asked together: rounds are dear


def is_large(facts: PublicFacts) -> bool:
    """Tell whether a table is so large that not every count of it is weighed."""
    return facts.records > (LARGE // _SOONER if facts.claim.hides_direction else LARGE)


class PartBeliefs(CountBeliefs):
    """Beliefs about counts of large groups, each over parts that grow in number as it is asked."""

    def __init__(self, claim: Claim, records: int) -> None:
        super().__init__(claim, records)
        self._curves = Curves.nothing()
        self._near = _NEAR
        self._many = np.empty(0, np.int64)  # parts of each row
        self._last = np.empty(0, np.int64)  # the highest count of each part, a row after the other
        self._mass = np.empty(0)  # how likely each part is beforehand
        self._from = self._to = np.empty(0, np.int64)  # what was scanned, where directions hide

    def start(self, owner: Codes, curves: Curves, doubted: Codes | None = None) -> None:
        """Add beliefs for some owners: a count of at least two possible values above none."""
        self._known = None
        rows, first = np.arange(len(owner)), len(self.owner)
        size = curves.size
        self.owner = np.concatenate([self.owner, owner])
        self._size = np.concatenate([self._size, size + 1])
        self._curves = self._curves.joined(curves)
        self._many = np.concatenate([self._many, np.full(len(owner), 3)])
        last = np.stack([0 * size, size - 1, size], axis=1)
        low = np.stack([0 * size, 0 * size + 1, size], axis=1)
        mass = curves.between(np.repeat(rows, 3), low.ravel(), last.ravel())
        self._last = np.concatenate([self._last, last.ravel()])
        self._mass = np.concatenate([self._mass, mass])
        self._log = np.concatenate([self._log, np.zeros(3 * len(owner))])
        middle = np.rint(curves.middle).astype(np.int64)
        self._from, self._to = np.append(self._from, middle), np.append(self._to, middle)
        if doubted is not None and (doubted >= 0).any():
            some = np.flatnonzero(doubted >= 0)
            row, count = first + some, doubted[some]
            self._cut(np.tile(row, 2), np.concatenate([count - 1, count]))
            self._log[self._part(row, count)] -= _DOUBT

    def keep(self, rows: Flags) -> None:
        """Keep these rows only."""
        if rows.all():
            return
        self._known = None
        inside = np.repeat(rows, self._many)
        self._last = self._last[inside]
        self._mass, self._log = self._mass[inside], self._log[inside]
        self._curves = self._curves.some(rows)
        for name in ("owner", "_size", "_many", "_from", "_to"):
            setattr(self, name, getattr(self, name)[rows])

    # -- parts -----------------------------------------------------------------------------

    def _keys(self, row: Codes, count: Codes) -> Codes:
        """Return numbers that sort by row, then by count."""
        return row * (self._records + 2 + 4 * self._k) + count

    def _all(self) -> Codes:
        """Return the numbers of all parts."""
        return self._keys(np.repeat(np.arange(len(self._many)), self._many), self._last)

    def _lows(self) -> Codes:
        """Return the lowest count of each part."""
        low = np.empty_like(self._last)
        low[1:] = self._last[:-1] + 1
        low[starts(self._many)] = 0
        return low

    def _part(self, row: Codes, count: Codes) -> Codes:
        """Return the part that holds a count of each row."""
        part: Codes = np.searchsorted(self._all(), self._keys(row, count))
        return part

    def _cut(self, row: Codes, upto: Codes) -> None:
        """Cut the parts of rows after some counts."""
        inside = (upto >= 0) & (upto < self._size[row] - 1)
        old, more = self._all(), np.sort(self._keys(row[inside], upto[inside]))
        more = more[(np.diff(more, prepend=-1) > 0) & (old[np.searchsorted(old, more)] != more)]
        if not len(more):
            return
        new = np.sort(np.concatenate([old, more]), kind="stable")  # two runs: merged
        parent = np.searchsorted(old, new)
        owner = np.repeat(np.arange(len(self._many)), self._many)[parent]
        self._last = new - self._keys(owner, np.zeros_like(owner))
        self._many = np.bincount(owner, minlength=len(self._many))
        self._mass, self._log = self._mass[parent], self._log[parent]
        fresh = np.flatnonzero(np.bincount(parent)[parent] > 1)
        low = self._lows()[fresh]
        self._mass[fresh] = self._curves.between(owner[fresh], low, self._last[fresh])
        self._known = None

    def _belief(self) -> tuple[Floats, Floats]:
        """Return the probability of each part, and of that part or a lower one."""
        if self._known is None:
            self._keyed = self._all()
            mass = self._mass * np.exp(self._log - peaks(self._log, self._many))
            mass = rounded(evened(mass, self._many))
            total = summed(mass)
            self._known = mass, total[1:] - np.repeat(total[starts(self._many)], self._many)
        return self._known

    def best(self) -> tuple[Codes, Floats]:
        """Return the likeliest count of each row, and how likely it is."""
        mass, _ = self._belief()
        low = self._lows()
        each = mass / (self._last - low + 1)
        peak = peaks(each, self._many)
        _, place = np.unique(
            np.repeat(np.arange(len(self._many)), self._many)[each >= peak], return_index=True
        )
        at = np.flatnonzero(each >= peak)[place]
        return low[at], each[at]

    # -- what is asked ---------------------------------------------------------------------

    def _share(self, rows: Codes, upto: Codes) -> Floats:
        """Return how likely a count of at most `upto` is."""
        mass, below = self._belief()
        count = np.minimum(np.maximum(upto, 0), self._size[rows] - 1)
        part = np.searchsorted(self._keyed, self._keys(rows, count))
        share = below[part]
        inner = np.flatnonzero(self._last[part] != count)
        if len(inner):
            cut = part[inner]
            beyond = self._curves.between(rows[inner], count[inner] + 1, self._last[cut])
            share[inner] -= mass[cut] * np.minimum(beyond / self._mass[cut], 1.0)
        return np.where(upto < 0, 0.0, share)

    def _median(self) -> Codes:
        """Return the lowest count of each row up to which half of the belief lies."""
        mass, below = self._belief()
        first, rows = starts(self._many), np.arange(len(self._many))
        upto = np.flatnonzero(below >= 0.5)
        owner = np.repeat(rows, self._many)[upto]
        part = np.minimum(upto[np.searchsorted(owner, rows)], first + self._many - 1)
        low, high = self._lows()[part], self._last[part]
        rest = (0.5 - below[part] + mass[part]) / mass[part] * self._mass[part]
        target = self._curves.upto(rows, low - 1) + rest
        while len(rows := np.flatnonzero(low < high)):
            middle = (low[rows] + high[rows]) // 2
            enough = self._curves.upto(rows, middle) >= target[rows]
            low[rows] = np.where(enough, low[rows], middle + 1)
            high[rows] = np.where(enough, middle, high[rows])
        median: Codes = low
        return median

    def _laid(self, edge: Codes) -> tuple[Codes, Codes, Codes]:
        """Lay windows where counts are likely among those scanned, and some way to either side."""
        wide, rows = 2 * self._k, np.arange(len(self._many))
        mass, low = self._belief()[0], self._lows()
        each = np.where(self._last - low < wide, mass, 0.0)
        alive = np.flatnonzero(each * wide >= self._near * peaks(each, self._many))
        alive = alive[each[alive] > 0]
        most = max(_AT_ONCE // max(len(rows), 1), _FIRST)
        more = wide * np.clip((self._to - self._from) // wide, _FIRST, most)
        last = self._size - 1
        ends = np.array([np.maximum(self._from - more, 0), np.minimum(self._to + more, last)])
        self._ends = ends
        size = np.array([self._from - ends[0] + 1, ends[1] - self._to + 1])
        beyond = np.concatenate([spans(ends[0], size[0]), spans(self._to, size[1])])
        alone = np.repeat(rows, self._many)[alive]
        row = np.concatenate([alone, alone, np.repeat(rows, size[0]), np.repeat(rows, size[1])])
        # both ends of a part: it may lie in two windows, and be cut by the second only
        count = np.concatenate([low[alive], self._last[alive], beyond])
        first = edge[row] + (count - edge[row]) // wide * wide
        keys = np.sort(self._keys(row, first + wide))
        keys = keys[np.diff(keys, prepend=-1) > 0]
        row = keys // (self._records + 2 + 2 * wide)
        first = keys - self._keys(row, np.full_like(row, wide))
        number = np.bincount(row, minlength=len(rows))
        return row, number, np.clip(first + self._k - 1, 0, self._records - 1)

    def _scanned(self, row: Codes, b: Codes) -> Flags:
        """Return the windows by which scans go on: more likely than not, the count lies there.

        All windows up to the new ends are asked about, so that no count in between is left out.
        """
        owner = np.repeat(np.arange(len(self._many)), self._many)
        unheard = np.where(self._last - self._lows() < 2 * self._k, 0.0, self._belief()[0])
        on = np.bincount(owner, unheard, len(self._many)) > _ELSEWHERE
        beyond = (b + self._k > self._to[row]) | (b - self._k + 1 < self._from[row])
        self._from = np.where(on, self._ends[0], self._from)
        self._to = np.where(on, self._ends[1], self._to)
        scanned: Flags = beyond & on[row]
        return scanned

    def _told(self, row: Codes, edges: tuple[Codes, ...], told: Floats) -> None:
        """Add what each question tells of the counts between its breakpoints."""
        self._cut(np.tile(row, len(edges)), np.concatenate(edges))
        keys, self._known = self._all(), None
        first = starts(self._many)[row]
        stop = first + self._many[row]
        change = np.zeros(len(self._log) + 1)
        np.add.at(change, first, told[:, 0])
        for place, upto in enumerate(edges):
            at = np.searchsorted(keys, self._keys(row, np.maximum(upto, -1)), side="right")
            at = np.minimum(np.maximum(at, first), stop)
            np.add.at(change, at, told[:, place + 1] - told[:, place])
        np.subtract.at(change, stop, told[:, -1])
        self._log += np.cumsum(change)[:-1]


class LargeBeliefs:
    """Beliefs about counts in a large table: small counts one by one, large ones in parts.

    The same as `CountBeliefs` to whoever asks; rows of small counts come first.
    """

    def __init__(self, claim: Claim, records: int) -> None:
        self._small, self._wide = CountBeliefs(claim, records), PartBeliefs(claim, records)

    @property
    def owner(self) -> Codes:
        """Whom each row belongs to."""
        return np.concatenate([self._small.owner, self._wide.owner])

    @property
    def held(self) -> int:
        """How many parts of large counts there are: what a round costs grows with them."""
        return self._wide.held

    def begin(
        self,
        owner: Codes,
        size: Codes,
        evenly: bool = False,
        doubted: Codes | None = None,
        prior: Prior | None = None,
        chance: Floats | None = None,
    ) -> None:
        """Add beliefs for some owners: a count up to its size."""
        wide = size > MOST
        chance = np.zeros(len(size)) if chance is None else chance
        doubts = np.full(len(size), -1) if doubted is None else doubted
        if not wide.all():
            rest = None if doubted is None else doubts[~wide]
            some = owner[~wide], size[~wide]
            self._small.begin(*some, evenly, rest, prior, chance[~wide])
        if wide.any():
            if prior is not None:
                curves = prior.curves(size[wide], chance[wide])
            elif evenly:
                curves = Curves.of_halves(size[wide])
            else:
                curves = Curves.of_values(size[wide], doubts[wide] >= 0)
            self._wide.start(owner[wide], curves, doubts[wide])

    def keep(self, rows: Flags) -> None:
        """Keep these rows only."""
        few = len(self._small.owner)
        self._small.keep(rows[:few])
        self._wide.keep(rows[few:])

    def best(self) -> tuple[Codes, Floats]:
        """Return the likeliest count of each row, and how likely it is."""
        found = [each.best() for each in (self._small, self._wide) if len(each.owner)]
        count, share = zip(*found, strict=True)
        return np.concatenate(count), np.concatenate(share)

    def ask(self) -> tuple[Codes, Codes]:
        """Return rows and thresholds of the questions that would tell most."""
        few, parts = len(self._small.owner), []
        if few:
            parts.append(self._small.ask())
        self._few = len(parts[0][0]) if parts else 0
        if len(self._wide.owner):
            row, b = self._wide.ask()
            parts.append((few + row, b))
        row, b = (np.concatenate(each) for each in zip(*parts, strict=True))
        return row, b

    def weigh(self, row: Codes, threshold: Codes, answers: Answers, drawn: Codes) -> None:
        """Take in the answers to what was asked last."""
        few = self._few
        small, wide = cut_up(answers, drawn, np.array([few, len(row)]))
        if small is not None:
            self._small.weigh(row[:few], threshold[:few], *small)
        if wide is not None:
            self._wide.weigh(row[few:] - len(self._small.owner), threshold[few:], *wide)
