"""Mixing things up without chance: the same numbers in the same seeming disorder, always.

An attack must ask the same questions when it is run again, so it draws nothing at random. Where it
needs a typical part of something, or an order that has nothing to do with the data, it takes
it from here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thinveil.language.queries import Codes, Floats


def scrambled(many: int, seed: int = 0) -> npt.NDArray[np.uint64]:
    """Return 64 seemingly random bits for each of the numbers 0 .. many - 1 (splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, many + 1, dtype=np.uint64) + np.uint64(seed % 2**32) * np.uint64(2**32)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


def shuffled(many: int, seed: int = 0) -> Codes:
    """Return the numbers 0 .. many - 1 in a seemingly random order.

    >>> sorted(shuffled(5).tolist()), shuffled(5).tolist() == shuffled(5).tolist()
    ([0, 1, 2, 3, 4], True)
    """
    return np.argsort(scrambled(many, seed), kind="stable")


def shares(many: int, seed: int = 0) -> Floats:
    """Return numbers that seem to be drawn evenly between 0 and 1."""
    drawn: Floats = (scrambled(many, seed) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return drawn
