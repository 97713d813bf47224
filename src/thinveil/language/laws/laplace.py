"""Laplace noise, the paper's: density rate/2 exp(-rate |x|) (double exponential)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from thinveil.language.contracts import Post, Words
from thinveil.language.laws.rounding import GRAIN, binary
from thinveil.language.queries import Codes, Flags, Floats

_SIGN: Final = np.uint64(1)


@dataclass(frozen=True, slots=True, repr=False)
class Laplace:
    """Laplace noise of scale S / epsilon: pure differential privacy for S the sensitivity."""

    name: ClassVar = "laplace"
    title: ClassVar = "Laplace"
    discrete: ClassVar = False
    silent: ClassVar = False
    level: ClassVar = True

    def __repr__(self) -> str:
        return repr(self.name)  # as fingerprints in transcripts have it

    def sized(self, what: str) -> str:
        """Say how wide the noise is."""
        return f"{what} / epsilon"

    def widen(self, epsilon: float | Floats | None) -> float:
        """Return 1."""
        return 1.0

    def delta(self, answers: int, epsilon: Fraction) -> Fraction:
        """Return 0: no chance of anything worse."""
        return Fraction(0)

    def loglik(self, value: Floats, bit: Flags, rate: Floats, post: Post, exact: bool) -> Floats:
        """Return the log density or log mass of answers."""
        far = np.abs(value - bit)
        if post == "integer":
            beside = np.log(-0.5 * np.expm1(-rate)) - rate * (far - 0.5)
            return np.where(far == 0, np.log(self.still(rate, post)), beside)
        if post == "binary":
            return binary(self, far, rate)
        density: Floats = np.log(rate / 2) - rate * far
        if not exact:
            return density
        by_chance = np.log(np.minimum(GRAIN * (1.0 + rate), 1.0))
        return np.where((value == 0) | (value == 1), by_chance, density)

    def row_loglik(
        self, values: Floats, starts: Codes, repeats: Codes, bit: Flags, rate: Floats
    ) -> Floats:
        """Add up over rows of answers: the sum of magnitudes suffices."""
        far = [np.add.reduceat(np.abs(values - each), starts)[:, None] for each in (0, 1)]
        told: Floats = repeats[:, None] * np.log(rate / 2) - rate * np.where(bit, far[1], far[0])
        return told

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return P(noise >= x) = exp(-rate x) / 2."""
        beyond: Floats = 0.5 * np.exp(-(x * rate))
        return beyond

    def still(self, rate: Floats, post: Post) -> Floats:
        """Return P(|noise| < 1/2) if rounded, else 0."""
        return -np.expm1(-rate / 2) if post == "integer" else np.zeros_like(rate)

    def quantile(self, u: Floats, scale: float) -> Floats:
        """Return the inverse of the distribution function."""
        noise: Floats = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
        return noise * scale

    def overlap(self, one: Floats, other: Floats, apart: Flags) -> Floats:
        """Return the Bhattacharyya coefficient; true bits apart at the larger scale."""
        larger = np.maximum(one, other)
        ratio = np.minimum(one, other) / larger
        alike = 2 * np.sqrt(ratio) / (1 + ratio)
        far = np.where(apart, 0.5 / larger, 0.0)
        both: Floats = alike * (1 + far) * np.exp(-far)
        return both

    def distance(self, one: float, other: float) -> float:
        """Return the total variation: the densities cross once on each side."""
        low, high = min(one, other), max(one, other)
        if low == high:
            return 0.0
        return math.pow(high / low, -low / (high - low)) * (high - low) / high

    def bits(self, rate: float) -> float:
        """Bound by two distances.

        That of the two laws from each other (total variation), and from the law halfway
        (relative entropy), which is far less at a small loss.
        """
        half = rate / 2
        entropy = half * half / 2 if half < 1e-4 else half + math.expm1(-half)
        return min(-math.expm1(-half), entropy / math.log(2))

    def draw(self, words: Words, bit: Floats, scale: float | Floats) -> Floats:
        """Draw from the ordinary one, of variance 2 (erratum 1).

        The lowest bit is the sign, the top 53 bits an exponential magnitude.
        """
        return bit + standard(words) * scale


def standard(words: Words) -> Floats:
    """Turn words into draws from Laplace(1)."""
    magnitude = -np.log(((words >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)
    noise: Floats = np.where(words & _SIGN, -magnitude, magnitude)
    return noise
