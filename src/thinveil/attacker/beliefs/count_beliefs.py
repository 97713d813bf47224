"""Beliefs about counts: many of them side by side, each over its own range of counts."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from thinveil.attacker.beliefs.arrays import evened, peaks, ramp, rounded, starts, summed
from thinveil.attacker.beliefs.count_curves import Curves
from thinveil.attacker.beliefs.count_zones import entropy, outcome_entropy, windows_at
from thinveil.attacker.evidence.likelihood import Laws, weighed
from thinveil.language.claims import Claim
from thinveil.language.queries import Answers, Codes, Flags, Floats

_NONE: Final = 0.003  # how likely it is at first that no record has the value
_HALVES: Final = 0.2  # how likely, about, one half of a range holds none or all
_DOUBT: Final = 10.0
_NEAR: Final = 0.25  # windows whose score is this share of the best are asked together


class Prior(Protocol):
    """What is likely of counts beforehand. Conforms: `good_turing.View`."""

    def counts(self, records: Codes, chance: Floats) -> Floats:
        """Return how likely each count is, a row after the other."""
        ...

    def curves(self, records: Codes, chance: Floats) -> Curves:
        """Return the same of large groups, as curves."""
        ...


class CountBeliefs:
    """For each of several groups of s records, how many of them have a certain value: 0 .. s.

    None at all is unlikely but possible: whoever guessed the value may have been wrong. The
    beliefs of all groups stand one after the other in one flat array.
    """

    def __init__(self, claim: Claim, records: int) -> None:
        self._claim, self._records, self._k = claim, records, claim.reach
        self._laws, self._near = Laws.of(claim), _NEAR
        self.owner, self._size = np.empty(0, np.int64), np.empty(0, np.int64)
        self._log = np.empty(0)
        self._known: tuple[Floats, Floats] | None = None

    @property
    def held(self) -> int:
        """How many beliefs there are: what a round costs grows with them."""
        return len(self._log)

    def begin(
        self,
        owner: Codes,
        size: Codes,
        evenly: bool = False,
        doubted: Codes | None = None,
        prior: Prior | None = None,
        chance: Floats | None = None,
    ) -> None:
        """Add beliefs for some owners: a count up to its size.

        For a single value, small counts are likelier, and all records having it is likelier
        than its neighbours. Over half a range (`evenly`) any count is as likely as another,
        none and all more so; a prior, if there is one, says how likely each is, given the chance
        of a record to be counted. A doubted count (-1 for none) failed to be proved: it must gather
        new evidence before it is believed again.
        """
        self._known = None
        ends = np.cumsum(size + 1) - 1
        if prior is not None and chance is not None:
            log = np.log(prior.counts(size, chance))
        elif evenly:
            log = np.zeros(int((size + 1).sum()))
            log[ends] = log[ends - size] = np.log1p(_HALVES * size)
        else:
            log = -np.log(np.maximum(ramp(size + 1), 1))
            log[ends] = np.log(1 / size + 0.25 * (np.log(size) + 1))
            log[ends - size] = np.log(_NONE * (np.log(size) + 1))
        if doubted is not None and not evenly:
            log[(ends - size)[doubted >= 0]] += _DOUBT / 2  # perhaps no record has the value
        if doubted is not None:
            log[(ends - size + doubted)[doubted >= 0]] -= _DOUBT
        self.owner = np.concatenate([self.owner, owner])
        self._size = np.concatenate([self._size, size + 1])
        self._log = np.concatenate([self._log, log])

    def keep(self, rows: Flags) -> None:
        """Keep these rows only."""
        if rows.all():
            return
        self._known = None
        self._log = self._log[np.repeat(rows, self._size)]
        self.owner, self._size = self.owner[rows], self._size[rows]

    def _belief(self) -> tuple[Floats, Floats]:
        """Return the probability of each count, and of that count or less, flat."""
        if self._known is not None:
            return self._known
        mass = rounded(evened(np.exp(self._log - peaks(self._log, self._size)), self._size))
        total = summed(mass)
        before = total[starts(self._size)]
        self._known = mass, total[1:] - np.repeat(before, self._size)
        return self._known

    def best(self) -> tuple[Codes, Floats]:
        """Return the likeliest count of each row, and how likely it is."""
        mass, _ = self._belief()
        peak = peaks(mass, self._size)
        at = self._first(mass >= peak)
        return at, peak[starts(self._size) + at]

    def _first(self, true: Flags) -> Codes:
        """Return the first count of each row for which something is true."""
        rows = np.arange(len(self._size))
        places = np.flatnonzero(true)
        at = np.searchsorted(np.repeat(rows, self._size)[places], rows)
        first: Codes = places[at] - starts(self._size)
        return first

    def _share(self, rows: Codes, upto: Codes) -> Floats:
        """Return how likely a count of at most `upto` is."""
        _, below = self._belief()
        inside = np.minimum(np.maximum(upto, 0), self._size[rows] - 1)
        return np.where(upto < 0, 0.0, below[starts(self._size)[rows] + inside])

    def _median(self) -> Codes:
        """Return the lowest count of each row up to which half of the belief lies."""
        return self._first(self._belief()[1] >= 0.5)

    def _laid(self, edge: Codes) -> tuple[Codes, Codes, Codes]:
        """Return rows, windows a row, and thresholds of windows, one of which ends at an edge."""
        return windows_at(edge, np.zeros_like(edge), self._size, self._k, self._records)

    def _scanned(self, row: Codes, b: Codes) -> Flags:
        """Return which windows are asked about whatever they score, to save rounds: none."""
        return np.zeros(len(row), np.bool_)

    def ask(self) -> tuple[Codes, Codes]:
        """Return rows and thresholds of the questions that would tell most."""
        rows, median = np.arange(len(self._size)), self._median()
        k, n, share = self._k, self._records, self._share
        if self._claim.hides_direction:
            lighter_below = share(rows, median - 1) <= 1 - share(rows, median)
            edge = np.where(lighter_below, median + 1, median)
            row, number, b = self._laid(edge)
            inside = share(row, b + k) - share(row, b - k)
            score = inside * (1 - inside)
            asked = (score >= self._near * peaks(score, number)) | self._scanned(row, b)
            return row[asked], b[asked]
        thresholds = np.stack([np.clip(median + each, 0, n - 1) for each in _tried(k)])
        gains = []
        for b in thresholds:
            low, high = share(rows, b - k), 1 - share(rows, b + k)
            gains.append(_gain(self._claim, low, 1 - low - high, high))
        return rows, thresholds[np.argmax(rounded(np.array(gains)), axis=0), rows]

    def weigh(self, row: Codes, threshold: Codes, answers: Answers, drawn: Codes) -> None:
        """Take in the answers to questions about these rows."""
        claim, n, k = self._claim, self._records, self._k
        counts = self._laws.counts(claim, threshold, n)
        told = weighed(claim, counts, threshold, n, answers, drawn)
        edges = (threshold - k, threshold, threshold + k) if k else (threshold,)
        self._told(row, edges, told)
        self._known = None

    def _told(self, row: Codes, edges: tuple[Codes, ...], told: Floats) -> None:
        """Add what each question tells of the counts between its breakpoints."""
        first = starts(self._size)[row]
        stop = first + self._size[row]
        change = np.zeros(len(self._log) + 1)
        np.add.at(change, first, told[:, 0])
        for place, upto in enumerate(edges):
            at = np.minimum(first + np.maximum(upto + 1, 0), stop)
            np.add.at(change, at, told[:, place + 1] - told[:, place])
        ends = np.zeros(len(self._log) + 1)
        np.add.at(ends, stop, told[:, -1])
        self._log += np.cumsum(change - ends)[:-1]


def _tried(k: int) -> list[int]:
    """Return how far thresholds may lie from a median: around it, or an edge right beside it.

    Near 0 and near n only one of the two edges can be asked about.
    """
    return [0, k, k - 1, -k, -k - 1] if k else [0, -1]


def _gain(claim: Claim, low: Floats, noisy: Floats, high: Floats) -> Floats:
    """Return how much one answer tells, in nats, if the zones are this likely."""
    if claim.post == "binary" or not claim.leaks:
        ones = high + noisy / 2
        told: Floats = entropy(ones) + entropy(1 - ones) - noisy * np.log(2)
        return told
    return outcome_entropy(low, noisy, high)
