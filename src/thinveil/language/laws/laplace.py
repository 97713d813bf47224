"""Laplace noise, the paper's: density rate/2 exp(-rate |x|) (double exponential)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thinveil.language.contracts import Post, Words
from thinveil.language.laws.additive import Additive, signed, uniform
from thinveil.language.queries import Codes, Flags, Floats


@dataclass(frozen=True, slots=True, repr=False)
class Laplace(Additive):
    """Laplace noise of scale S / epsilon: pure differential privacy for S the sensitivity.

    The ordinary one, of variance 2 at scale 1 (erratum 1).
    """

    name: ClassVar = "laplace"
    title: ClassVar = "Laplace"

    def density(self, far: Floats, rate: Floats) -> Floats:
        """Return the log density."""
        log: Floats = np.log(rate / 2) - rate * far
        return log

    def whole(self, far: Floats, rate: Floats) -> Floats:
        """Return the log mass of a whole number."""
        beside = np.log(-0.5 * np.expm1(-rate)) - rate * (far - 0.5)
        return np.where(far == 0, np.log(-np.expm1(-rate / 2)), beside)

    def still(self, rate: Floats, post: Post) -> Floats:
        """Return P(|noise| < 1/2) if rounded, else 0."""
        return -np.expm1(-rate / 2) if post == "integer" else np.zeros_like(rate)

    def row_loglik(
        self, values: Floats, starts: Codes, repeats: Codes, bit: Flags, rate: Floats
    ) -> Floats:
        """Add up over rows of answers: the sum of magnitudes suffices."""
        far = [np.add.reduceat(np.abs(values - each), starts)[:, None] for each in (0, 1)]
        told: Floats = repeats[:, None] * np.log(rate / 2) - rate * np.where(bit, far[1], far[0])
        return told

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return exp(-rate x) / 2."""
        beyond: Floats = 0.5 * np.exp(-(x * rate))
        return beyond

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

    def standard(self, words: Words) -> Floats:
        """Draw an exponential magnitude and a sign."""
        return signed(words, self.drawn(uniform(words)))

    def drawn(self, u: Floats) -> Floats:
        """Return the magnitude that a uniform number becomes: -log u."""
        magnitude: Floats = -np.log(u)
        return magnitude

    def undrawn(self, x: Floats) -> Floats:
        """Return about which uniform number becomes this magnitude."""
        u: Floats = np.exp(-np.abs(x))
        return u
