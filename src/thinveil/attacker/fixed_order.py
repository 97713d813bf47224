"""Mixing things up without chance: the same numbers in the same seeming disorder, always.

An attack must ask the same questions when it is run again, so it draws nothing at random. Where it
needs a typical part of something, or an order that has nothing to do with the data, it takes
it from here. Where a chance of error is stated over such draws, they hang on the public seed of
the run: no table can be made against them without knowing it.
"""

from __future__ import annotations

import numpy as np

from thinveil.language.queries import Codes, Floats
from thinveil.language.scrambling import GOLDEN, Words, scrambled


def drawn(many: int, seed: int = 0, run: int = 0) -> Words:
    """Return 64 seemingly random bits for each of the numbers 0 .. many - 1.

    Other seeds give other bits, and so do other seeds of a whole run.
    """
    with np.errstate(over="ignore"):
        numbers = np.arange(1, many + 1, dtype=np.uint64)
        place = (numbers + np.uint64(seed % 2**32) * np.uint64(2**32)) * GOLDEN
        return scrambled(place ^ scrambled(np.array([run % 2**64], np.uint64)))


def shuffled(many: int, seed: int = 0) -> Codes:
    """Return the numbers 0 .. many - 1 in a seemingly random order.

    >>> sorted(shuffled(5).tolist()), shuffled(5).tolist() == shuffled(5).tolist()
    ([0, 1, 2, 3, 4], True)
    """
    return np.argsort(drawn(many, seed), kind="stable")


def shares(many: int, seed: int = 0) -> Floats:
    """Return numbers that seem to be drawn evenly between 0 and 1."""
    even: Floats = (drawn(many, seed) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return even
