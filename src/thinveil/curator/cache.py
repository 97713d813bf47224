"""Answers given before, by the key of their question.

What is kept is the answer that was drawn, not the random word behind it: the same word at
two different epsilons would give the true bit away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinveil.language.normal import Keys
from thinveil.language.queries import Codes, Flags, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What the cache knows about the questions of one batch."""

    keys: Keys
    known: Flags  # whether each question was answered before
    value: Floats  # the answer, where it is known
    first: Codes  # for each question, the first one in the batch with the same key

    @property
    def fresh(self) -> Codes:
        """The questions whose answer has to be drawn, one for each new key."""
        return np.flatnonzero(~self.known & (self.first == np.arange(len(self.first))))


class AnswerCache:
    """A dictionary from keys to answers: some 200 bytes an answer."""

    def __init__(self) -> None:
        self._answers: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def look(self, keys: Keys) -> Looked:
        """Tell which questions are known, and change nothing."""
        names, many = _names(keys), keys.shape[1]
        places: dict[bytes, int] = {}
        first = (places.setdefault(name, place) for place, name in enumerate(names))
        value = np.fromiter((self._answers.get(name, np.nan) for name in names), np.float64, many)
        return Looked(keys, ~np.isnan(value), value, np.fromiter(first, np.int64, many))

    def settle(self, looked: Looked, drawn: Floats) -> Floats:
        """Keep the answers to fresh questions; return one answer to every question looked for."""
        fresh = looked.fresh
        self._answers.update(zip(_names(looked.keys[:, fresh]), drawn.tolist(), strict=True))
        settled = looked.value.copy()
        settled[fresh] = drawn
        return np.where(looked.known, settled, settled[looked.first])


def _names(keys: Keys) -> list[bytes]:
    """Return the sixteen bytes of each key."""
    names: list[bytes] = np.ascontiguousarray(keys.T).view("V16").reshape(-1).tolist()
    return names
