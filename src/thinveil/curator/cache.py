"""Answers given before, by the key of their question.

What is kept is the answer that was drawn, not the random word behind it: the same word at
two different epsilons would give the true bit away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.language.normal import Keys
from thinveil.language.queries import Codes, Flags, Floats

_FIRST_BITS: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What the cache knows about the questions of one batch.

    Args:
        keys: The keys of the questions.
        known: For each question, whether it was answered before.
        value: The answer, where it is known.
        first: For each question, the first one in the batch with the same key.
    """

    keys: Keys
    known: Flags
    value: Floats
    first: Codes

    @property
    def fresh(self) -> Codes:
        """The questions whose answer has to be drawn, one for each new key."""
        return np.flatnonzero(~self.known & (self.first == np.arange(len(self.first))))


class AnswerCache:
    """A hash table from keys to answers, in plain arrays: up to 100 bytes an answer."""

    def __init__(self) -> None:
        self._bits = _FIRST_BITS
        self._used = 0
        self._make()

    def __len__(self) -> int:
        return self._used

    def _make(self) -> None:
        slots = 1 << self._bits
        self._taken = np.zeros(slots, np.bool_)
        self._words = np.zeros((2, slots), np.uint64)
        self._values = np.zeros(slots)

    def look(self, keys: Keys) -> Looked:
        """Tell which questions are known, and change nothing."""
        known, slot = self._find(keys)
        return Looked(keys, known, self._values[slot], _first_of(keys))

    def settle(self, looked: Looked, drawn: Floats) -> Floats:
        """Keep the answers to fresh questions; return one answer to every question looked for."""
        fresh = looked.fresh
        settled = looked.value.copy()
        settled[fresh] = drawn
        self._add(looked.keys[:, fresh], drawn)
        return np.where(looked.known, settled, settled[looked.first])

    def _find(self, keys: Keys) -> tuple[Flags, Codes]:
        """Return whether each key is there, and the slot where it is or would go."""
        slot = (keys[0] >> np.uint64(64 - self._bits)).astype(np.int64)
        known = np.zeros(len(slot), np.bool_)
        left = np.arange(len(slot))
        while len(left):
            place = slot[left]
            same = (self._words[:, place] == keys[:, left]).all(axis=0)
            taken = self._taken[place]
            known[left] = taken & same
            left = left[taken & ~same]
            slot[left] = (slot[left] + 1) & ((1 << self._bits) - 1)
        return known, slot

    def _add(self, keys: Keys, values: Floats) -> None:
        """Put in keys that are new and different from each other."""
        while 2 * (self._used + len(values)) > 1 << self._bits:
            self._grow()
        self._used += len(values)
        while len(values):
            slot, placed = np.unique(self._find(keys)[1], return_index=True)
            self._taken[slot] = True
            self._words[:, slot] = keys[:, placed]
            self._values[slot] = values[placed]
            keys, values = np.delete(keys, placed, axis=1), np.delete(values, placed)

    def _grow(self) -> None:
        keys, values = self._words[:, self._taken], self._values[self._taken]
        self._bits += 1
        self._used = 0
        self._make()
        self._add(keys, values)


def _first_of(keys: Keys) -> Codes:
    """Return, for each column of keys, the first column that equals it."""
    order = np.lexsort(keys)
    ordered = keys[:, order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    first = np.empty_like(order)
    first[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return first
