"""What laws share that add noise to the true bit: rounding, and what is usual."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from thinveil.language.contracts import Post, Words
from thinveil.language.queries import Flags, Floats, Loss

GRAIN: Final = 2.0**-52
"""Bounds what a draw from 2^53 equally likely magnitudes puts on exactly 0 and 1 (derived).

Each of the two is hit with probability at most 2^-53; the rounding of the sum near 1 adds at
most rate * 2^-52.
"""


class Additive:
    """The usual parts of `contracts.Law`; a law adds `density`, `whole`, tails and the rest."""

    name: ClassVar[str]
    title: ClassVar[str]
    discrete: ClassVar = False
    silent: ClassVar = False
    level: ClassVar = True
    __slots__ = ()

    def __repr__(self) -> str:
        return repr(self.name)  # as fingerprints in transcripts have it

    def sized(self, what: str) -> str:
        """Say how wide the noise is: sensitivity over epsilon."""
        return f"{what} / epsilon"

    def widen(self, epsilon: Loss) -> float | Floats:
        """Return 1: the scale is the sensitivity over epsilon."""
        return 1.0

    def deltas(self, answers: int, epsilon: Fraction) -> Fraction:
        """Return 0: no chance of anything worse than epsilon."""
        return Fraction(0)

    # of how far an answer is off the true bit, and the rate: the log density, or the log mass of a
    # whole number after rounding; draws at scale 1
    density: ClassVar[Callable[..., Floats]]
    whole: ClassVar[Callable[..., Floats]]
    tail: ClassVar[Callable[..., Floats]]
    standard: ClassVar[Callable[..., Floats]]

    def loglik(self, value: Floats, bit: Flags, rate: Floats, post: Post, exact: bool) -> Floats:
        """Return the log density or log mass of answers."""
        far = np.abs(value - bit)
        if post == "integer":
            return self.whole(far, rate)
        if post == "binary":  # the other value comes back: noise of more than a half, one way
            flipped = self.tail(0.5, rate)
            mass: Floats = np.log(np.where(far == 0, 1 - flipped, flipped))
            return mass
        density = self.density(far, rate)
        if not exact:
            return density
        by_chance = np.log(np.minimum(GRAIN * (1.0 + rate), 1.0))
        return np.where((value == 0) | (value == 1), by_chance, density)

    def still(self, rate: Floats, post: Post) -> Floats:
        """Return how likely noise leaves the true bit as it is: never, unless rounded."""
        never: Floats = np.zeros(np.shape(rate))
        return np.exp(self.whole(never, rate)) if post == "integer" else never

    def draw(self, words: Words, bit: Floats, scale: float | Floats) -> Floats:
        """Return a true bit and noise for each word."""
        return bit + self.standard(words) * scale


def uniform(words: Words) -> Floats:
    """Return the top 53 bits as a number above 0, up to 1."""
    return np.asarray((words >> np.uint64(11)) + np.uint64(1), np.float64) * 2.0**-53


def signed(words: Words, magnitude: Floats) -> Floats:
    """Return magnitudes with the lowest bit as their sign."""
    return np.where(words & np.uint64(1), -magnitude, magnitude)


def rounded(values: Floats, post: Post) -> Floats:
    """Do to answers what the claim says: it costs nothing and draws nothing; silence stays."""
    if post == "integer":
        return np.rint(values)
    if post == "binary":
        return np.where(np.isnan(values), values, (values > 0.5).astype(np.float64))
    return values
