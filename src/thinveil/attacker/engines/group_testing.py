"""Testing for many things at once whether there is any of them.

Where each of many stretches is almost surely empty, one question about all of them together
settles most: "none" settles the whole set. After "some" the set is cut where its first part
holds something as likely as not; if the first part holds nothing, the rest does, unasked; if it
does, the rest is as unknown as it was and goes back to where sets are made from.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded, spans, starts, summed
from thinveil.language.queries import Codes, Flags, Floats

_HALF: Final = float(np.log(2.0))
_ALONE: Final = 0.382  # what is likelier is asked by itself (the golden section, squared)
_FULL: Final = 0.7  # a set that is less likely to hold something waits for more


class Pools:
    """Tests in sets of at most so many, each named by a number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ready = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)  # sets that hold something, one after the other
        self._sizes = np.empty(0, np.int64)
        self._parts = np.empty(0, np.int64)  # how much of each set is asked about now

    def __len__(self) -> int:
        return len(self._ready) + len(self._rows)

    def add(self, tests: Codes) -> None:
        """Add tests."""
        self._ready = np.concatenate([self._ready, tests])

    def questions(self, chance: Floats, kind: Codes, patient: bool) -> tuple[Codes, Codes]:
        """Return where each question begins among the tests, and the tests.

        Every test has a chance that there is something, and a kind; a set is of one kind. The
        patient let sets that are not full wait.
        """
        self._parts = self._halved(chance)
        self._fill(chance, kind, patient)
        asked = self._rows[spans(starts(self._sizes), self._parts)]
        return summed(self._parts), asked

    def _halved(self, chance: Floats) -> Codes:
        """Return how much of each set to ask about, so that both answers are likely."""
        if not len(self._sizes):
            return self._sizes
        weight = np.cumsum(rounded(-np.log1p(-chance[self._rows])))
        last = np.cumsum(self._sizes) - 1
        before = np.concatenate([[0.0], weight[last[:-1]]])
        some = -np.expm1(before - weight[last])
        target = before + rounded(-np.log1p(-some / 2))
        after = np.minimum(np.searchsorted(weight, target), last)
        lower = np.where(after > 0, weight[after - 1], 0.0)
        first = last - self._sizes + 1
        cut = np.where(weight[after] - target < target - lower, after + 1, after) - first
        parts: Codes = np.minimum(np.maximum(cut, 1), self._sizes - 1)
        return parts

    def _fill(self, chance: Floats, kind: Codes, patient: bool) -> None:
        """Make sets of what is ready, likely things first."""
        ready = self._ready
        if not len(ready):
            return
        ready = ready[np.lexsort((-chance[ready], kind[ready]))]
        mine, of = chance[ready], kind[ready]
        weight = np.maximum(rounded(-np.log1p(-mine)), _HALF / self._most)
        weight = np.where(mine > _ALONE, _HALF, weight)
        total = np.cumsum(weight)
        fresh = np.concatenate([[True], of[1:] != of[:-1]])
        begin = np.flatnonzero(fresh)
        base = (total - weight)[begin][np.cumsum(fresh) - 1]
        number = np.floor((total - base - weight / 2) / _HALF)
        first = np.flatnonzero(
            fresh | np.concatenate([[True], (number[1:] != number[:-1]) | (mine[:-1] > _ALONE)])
        )
        sizes = np.diff(np.concatenate([first, [len(ready)]]))
        wait = np.zeros(len(sizes), np.bool_)
        if patient:
            wait = (np.add.reduceat(weight, first) < _FULL * _HALF) & (sizes < self._most)
        self._ready = ready[np.repeat(wait, sizes)]
        self._rows = np.concatenate([self._rows, ready[np.repeat(~wait, sizes)]])
        self._sizes = np.concatenate([self._sizes, sizes[~wait]])
        self._parts = np.concatenate([self._parts, sizes[~wait]])

    def learn(self, some: Flags, every: Flags) -> tuple[Codes, Flags, Flags]:
        """Take in, for each question, whether there is something, and if there is nothing else.

        Returns tests that are settled, whether there is something, and whether that is all.
        """
        rows, sizes, parts = self._rows, self._sizes, self._parts
        first, rest = starts(sizes), sizes - parts

        def asked(sets: Flags) -> Codes:
            return rows[spans(first[sets], parts[sets])]

        def others(sets: Flags) -> Codes:
            return rows[spans((first + parts)[sets], rest[sets])]

        found, sure = some & (parts == 1), ~some & (rest == 1)
        on, left = some & (parts > 1), ~some & (rest > 1)
        self._ready = np.concatenate([self._ready, others(some)])
        self._rows = np.concatenate([asked(on), others(left)])
        self._sizes = self._parts = np.concatenate([parts[on], rest[left]])
        done = np.concatenate([asked(found), others(sure), asked(~some)])
        held = np.arange(len(done)) < np.count_nonzero(found) + np.count_nonzero(sure)
        whole = np.zeros(len(done), np.bool_)
        whole[: np.count_nonzero(found)] = every[found]
        return done, held, whole
