"""Discrete Laplace noise: whole numbers z with mass tanh(rate/2) exp(-rate |z|).

Also called the two-sided geometric distribution. With p = exp(-rate), a sensitivity of 1 moves
the mass of any whole number by a factor of at most 1/p: pure differential privacy at epsilon =
rate, as for the continuous one (Ghosh, Roughgarden and Sundararajan 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from thinveil.language.contracts import Words
from thinveil.language.laws.additive import Additive, signed, uniform
from thinveil.language.queries import Flags, Floats


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Additive):
    """Two-sided geometric noise: answers are whole numbers, with exact masses."""

    name: ClassVar = "discrete-laplace"
    title: ClassVar = "Discrete Laplace"
    discrete: ClassVar = True

    def whole(self, far: Floats, rate: Floats) -> Floats:
        """Return the log mass; what is no whole number never comes."""
        mass = np.log(np.tanh(rate / 2)) - rate * far
        return np.where(far == np.rint(far), mass, -np.inf)

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return P(noise >= x): exp(-rate m) / (1 + p) from the next whole number m on."""
        beyond: Floats = np.exp(-np.ceil(x) * rate) / (1 + np.exp(-np.asarray(rate)))
        return beyond

    def quantile(self, u: Floats, scale: float) -> Floats:
        """Return the least whole number z with P(noise <= z) >= u."""
        upper = np.maximum(u, 1 - u)
        # P(noise > m) = p^(m + 1) / (1 + p) <= 1 - u, solved for m
        beyond = -np.log(1 - upper) - np.log1p(math.exp(-1 / scale))
        m = np.maximum(np.ceil(beyond * scale - 1), 0.0)
        noise: Floats = np.where(u < 0.5, -m, m)
        return noise

    def overlap(self, one: Floats, other: Floats, apart: Flags) -> Floats:
        """Return the Bhattacharyya coefficient: two geometric series.

        With a = exp(-1/2 one), b = exp(-1/2 other), the sum of a^|z| b^|z| is (1 + ab)/(1 - ab),
        and that of a^|z| b^|z - 1| is (a + b)/(1 - ab).
        """
        a, b = np.exp(-0.5 / one), np.exp(-0.5 / other)
        series = np.where(apart, a + b, 1 + a * b) / -np.expm1(-0.5 / one - 0.5 / other)
        both: Floats = np.sqrt(np.tanh(0.5 / one)) * np.sqrt(np.tanh(0.5 / other)) * series
        return np.minimum(both, 1.0)

    def distance(self, one: float, other: float) -> float:
        """Return the total variation: the wider law has more mass beyond some whole number."""
        low, high = min(one, other), max(one, other)
        if low == high:
            return 0.0
        steep, flat = 1 / low, 1 / high
        cross = math.log(math.tanh(steep / 2) / math.tanh(flat / 2)) / (steep - flat)
        beyond = math.floor(cross) + 1.0
        return 2 * float(self.tail(beyond, flat) - self.tail(beyond, steep))

    def bits(self, rate: float) -> float:
        """Return the capacity: an answer at most 0, or above, is a coin with odds e^rate."""
        if rate < 1e-3:
            return rate * rate / (8 * math.log(2))
        wrong = 1 / (1 + math.exp(min(rate, 700.0)))
        right = 1 - wrong
        return max(1 + wrong * math.log2(wrong) + right * math.log2(right), 0.0)

    def draw(self, words: Words, bit: Floats, scale: float | Floats) -> Floats:
        """Draw by inversion: the lowest bit is the sign, the top 53 bits a magnitude.

        P(|noise| >= m) = 2 p^m / (1 + p) for m >= 1, so a uniform u gives the largest m with
        u <= 2 p^m / (1 + p).
        """
        rate = 1 / np.asarray(scale)
        left = -np.log(uniform(words)) - np.log1p(np.expm1(-rate) / 2)
        return bit + signed(words, np.maximum(np.floor(left * scale), 0.0))
