"""Cauchy noise, for smooth sensitivity: density rate / (pi (1 + (rate x)^2)) (Lorentz)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.language.contracts import Post, Words
from thinveil.language.laws.additive import Additive, uniform
from thinveil.language.laws.laplace import Laplace
from thinveil.language.queries import Flags, Floats, Loss

CAUCHY: Final = 6.0
"""Cauchy noise needs scale 6 S / epsilon, and S smooth at rate epsilon / 6, for pure DP."""

_HUGE: Final = float(np.finfo(np.float64).max)  # a draw may pass it at the smallest epsilons
_LEAST: Final = float(np.finfo(np.float64).tiny)  # has a logarithm, as 0 has not
_FLAT: Final = 1e-290  # below, a mass is its density to all digits, and soon no double


@dataclass(frozen=True, slots=True, repr=False)
class Cauchy(Additive):
    """Cauchy noise of scale 6 S / epsilon: pure differential privacy for S a smooth bound."""

    name: ClassVar = "cauchy"
    title: ClassVar = "Cauchy"
    level: ClassVar = False

    def sized(self, what: str) -> str:
        """Say how wide the noise is."""
        return f"{CAUCHY:g} x {what} / epsilon"

    def widen(self, epsilon: Loss) -> float:
        """Return 6."""
        return CAUCHY

    def loglik(self, value: Floats, bit: Flags, rate: Floats, post: Post, exact: bool) -> Floats:
        """Return the log density or log mass of answers; exact ones count by their density."""
        return Additive.loglik(self, value, bit, rate, post, False)

    def density(self, far: Floats, rate: Floats) -> Floats:
        """Return the log density, also where the square of rate x is more than a double holds."""
        with np.errstate(over="ignore"):
            square = (rate * far) ** 2
        huge = 2 * (np.log(rate) + np.log(np.maximum(far, _LEAST)))
        log: Floats = np.log(rate / np.pi) - np.where(square < np.inf, np.log1p(square), huge)
        return log

    def whole(self, far: Floats, rate: Floats) -> Floats:
        """Return the log mass of a whole number: arctan(high) - arctan(low), stably."""
        with np.errstate(over="ignore"):
            low, high = rate * (far - 0.5), rate * (far + 0.5)
            inside = np.arctan2(rate, 1 + low * high)
        near = inside > _FLAT
        log: Floats = np.log(np.where(near, inside, 1.0) / np.pi)
        return np.where(near, log, self.density(far, rate))

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return 1/2 - arctan(rate x) / pi."""
        beyond: Floats = 0.5 - np.arctan(x * rate) / np.pi
        return beyond

    def quantile(self, u: Floats, scale: float) -> Floats:
        """Return the inverse of the distribution function."""
        noise: Floats = np.tan(np.pi * (u - 0.5))
        return noise * scale

    def overlap(self, one: Floats, other: Floats, apart: Flags) -> Floats:
        """Return the coefficient of Laplace noise, which is close: the exact one is elliptic."""
        return Laplace().overlap(one, other, apart)

    def distance(self, one: float, other: float) -> float:
        """Return the total variation: the densities cross at the geometric mean of the scales."""
        low, high = sorted((math.sqrt(one / other), math.sqrt(other / one)))
        return 2 / math.pi * (math.atan(high) - math.atan(low))

    def bits(self, rate: float) -> float:
        """Bound by the total variation, and by the relative entropy from the law halfway."""
        half = rate / 2
        return min(2 / math.pi * math.atan(half), math.log1p(half * half / 4) / math.log(2))

    def draw(self, words: Words, bit: Floats, scale: float | Floats) -> Floats:
        """Draw answers, none of them infinite."""
        with np.errstate(over="ignore"):
            return np.clip(Additive.draw(self, words, bit, scale), -_HUGE, _HUGE)

    def standard(self, words: Words) -> Floats:
        """Draw by the inverse of the distribution function."""
        return self.drawn(uniform(words))

    def drawn(self, u: Floats) -> Floats:
        """Return what a uniform number becomes, sign and all."""
        return self.quantile(u, 1.0)

    def undrawn(self, x: Floats) -> Floats:
        """Return about which uniform number becomes this one."""
        u: Floats = np.arctan(x) / np.pi + 0.5
        return u
