"""Gaussian noise, calibrated exactly (normal distribution; Balle and Wang 2018, theorem 8).

Noise of standard deviation s on a query of sensitivity 1 is (epsilon, delta)-differentially
private exactly if

    Phi(1/(2s) - epsilon s) - exp(epsilon) Phi(-1/(2s) - epsilon s) <= delta.

The left side is P(L > epsilon) - exp(epsilon) P'(L > epsilon), where L is the privacy loss, which
is itself normal: mean 1/(2 s^2) on the one table, minus that on the other, variance 1/s^2. It
falls as s grows, so the least s is found by halving, for any epsilon (the textbook's
sqrt(2 ln(1.25/delta))/epsilon holds below 1 only). Sensitivity S takes S times as much.

With x = 1/(2s) and y = epsilon s the left side is

    (Phi(x - y) - Phi(-x - y)) - (exp(epsilon) - 1) Phi(-x - y),

whose first part is computed by erf where y is small and by erfc in the tail: nothing cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, Final

import numpy as np

from thinveil.errors import BudgetError, UsageError
from thinveil.language.contracts import Words
from thinveil.language.laws.additive import Additive, signed, uniform
from thinveil.language.queries import Codes, Flags, Floats, Loss

SMALLEST_DELTA: Final = 1e-290
"""Below this the noise of some answer could overflow a double."""
_ROOT: Final = math.sqrt(2.0)
_LOG_ROOT: Final = math.log(2 * math.pi) / 2
_SPARE: Final = 1e-9  # so much more noise than needed outweighs all rounding of the calibration
_FINE: Final = 1e-4  # a density is constant over so little of its scale, to 1e-9
_erfc: Final = np.frompyfunc(math.erfc, 1, 1)
_inverse: Final = np.frompyfunc(NormalDist().inv_cdf, 1, 1)


@dataclass(frozen=True, slots=True)
class Gaussian(Additive):
    """Gaussian noise: differential privacy but for a chance delta of anything worse.

    Args:
        delta: That of an answer, between 0 and 1.
        per: An answer at loss epsilon has the delta times epsilon / per, so that delta is
            shared out as epsilon is. None gives every answer the same delta.

    >>> round(Gaussian(1e-5).deviation(1.0), 4)
    3.7306
    """

    name: ClassVar = "gaussian"
    title: ClassVar = "Gaussian"

    delta: float
    per: float | None = None

    def __post_init__(self) -> None:
        if not SMALLEST_DELTA <= self.delta < 1:
            raise UsageError(f"the delta must lie between {SMALLEST_DELTA} and 1")
        if self.per is not None and not 0 < self.per < math.inf:
            raise UsageError("the loss that a delta goes with must be above zero")

    def sized(self, what: str) -> str:
        """Say how wide the noise is."""
        return f"{what} x s(epsilon, delta = {self.delta:g})"

    def widen(self, epsilon: Loss) -> float | Floats:
        """Return epsilon times the standard deviation."""
        assert epsilon is not None
        if not isinstance(epsilon, np.ndarray):
            return float(epsilon) * self.deviation(float(epsilon))
        each, place = np.unique(epsilon, return_inverse=True)
        wide = np.array([self.deviation(loss) for loss in each.tolist()])
        spread: Floats = epsilon * wide[place].reshape(epsilon.shape)
        return spread

    def deviation(self, epsilon: float) -> float:
        """Return the standard deviation that an answer at this loss needs."""
        delta = self.delta * (1.0 if self.per is None else epsilon / self.per)
        if not 0 < delta < 1:
            raise BudgetError(f"an answer at epsilon {epsilon:g} would have a delta of {delta:g}")
        return calibrated(epsilon, delta)

    def deltas(self, answers: int, epsilon: Fraction) -> Fraction:
        """Return the deltas of so many answers together, exactly."""
        delta = Fraction(repr(self.delta))
        return delta * answers if self.per is None else delta * epsilon / Fraction(repr(self.per))

    def density(self, far: Floats, rate: Floats) -> Floats:
        """Return the log density."""
        log: Floats = np.log(rate) - _LOG_ROOT - (rate * far) ** 2 / 2
        return log

    def whole(self, far: Floats, rate: Floats) -> Floats:
        """Return the log mass of a whole number; of narrow ones by the density."""
        near = _log_tail(rate * np.maximum(far - 0.5, 0.5))
        beyond = _log_tail(rate * (far + 0.5))
        with np.errstate(divide="ignore", invalid="ignore"):
            beside = near + np.log1p(-np.exp(np.minimum(beyond - near, 0.0)))
            middle = np.log1p(-2 * np.exp(beyond))
        return np.where(rate < _FINE, self.density(far, rate), np.where(far == 0, middle, beside))

    def row_loglik(
        self, values: Floats, starts: Codes, repeats: Codes, bit: Flags, rate: Floats
    ) -> Floats:
        """Add up over rows of answers: the sum of squares suffices."""
        # the rate goes inside: squares of answers at the smallest losses overflow
        scale = rate.max(axis=1, keepdims=True)
        by_answer = np.repeat(scale[:, 0], repeats)
        far = [
            np.add.reduceat(((values - each) * by_answer) ** 2, starts)[:, None] for each in (0, 1)
        ]
        told: Floats = repeats[:, None] * (np.log(rate) - _LOG_ROOT) - (rate / scale) ** 2 / 2 * (
            np.where(bit, far[1], far[0])
        )
        return told

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return P(noise >= x)."""
        return _upper(x * np.asarray(rate))

    def quantile(self, u: Floats, scale: float) -> Floats:
        """Return the inverse of the distribution function."""
        return _at(u) * scale

    def overlap(self, one: Floats, other: Floats, apart: Flags) -> Floats:
        """Return the Bhattacharyya coefficient of two normal distributions."""
        larger = np.maximum(one, other)
        ratio = np.minimum(one, other) / larger
        squares = 1 + ratio * ratio
        far = np.where(apart, 1 / larger, 0.0)
        both: Floats = np.sqrt(2 * ratio / squares) * np.exp(-(far**2) / (4 * squares))
        return both

    def distance(self, one: float, other: float) -> float:
        """Return the total variation: the densities cross once on each side."""
        ratio = max(one, other) / min(one, other)
        if ratio == 1:
            return 0.0
        cross = ratio * math.sqrt(2 * math.log(ratio) / (ratio * ratio - 1))
        return math.erf(cross / _ROOT) - math.erf(cross / ratio / _ROOT)

    def bits(self, rate: float) -> float:
        """Bound by the total variation, and by the relative entropy from the law halfway."""
        half = rate / 2
        return min(math.erf(half / _ROOT), half * half / 2 / math.log(2))

    def standard(self, words: Words) -> Floats:
        """Draw by inversion: the top 53 bits are a tail."""
        return signed(words, self.drawn(uniform(words)))

    def drawn(self, u: Floats) -> Floats:
        """Return the magnitude that a uniform number becomes: where both tails hold so much."""
        return -_at(u / 2)

    def undrawn(self, x: Floats) -> Floats:
        """Return about which uniform number becomes this magnitude."""
        return 2 * _upper(np.abs(x))


@lru_cache(maxsize=2**16)
def calibrated(epsilon: float, delta: float) -> float:
    """Return the least standard deviation for (epsilon, delta) and sensitivity 1."""
    # without any epsilon, Phi(x) - Phi(-x) <= 2 x / sqrt(2 pi) bounds delta
    low, high = 1e-6, 1 / (delta * math.sqrt(2 * math.pi)) + 1e-6
    while high / low > 1 + 2.0**-50:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if least_delta(epsilon, middle) > delta else (low, middle)
    return high * (1 + _SPARE)


def least_delta(epsilon: float, deviation: float) -> float:
    """Return the least delta of noise with this standard deviation (the formula above)."""
    x, y = 0.5 / deviation, epsilon * deviation
    if y - x > 0.5:
        both = (math.erfc((y - x) / _ROOT) - math.erfc((y + x) / _ROOT)) / 2
    else:
        both = (math.erf((x - y) / _ROOT) + math.erf((x + y) / _ROOT)) / 2
    if epsilon < 1:
        return both - math.expm1(epsilon) * math.erfc((x + y) / _ROOT) / 2
    direct = math.erfc((y - x) / _ROOT) / 2
    return direct - math.exp(min(epsilon + float(_log_tail(np.array(x + y))), 0.0))


def _upper(x: Floats) -> Floats:
    """Return P(Z >= x) for a standard normal Z."""
    return np.asarray(_erfc(x / _ROOT), np.float64) / 2


def _at(u: Floats) -> Floats:
    """Return the quantiles of a standard normal."""
    return np.asarray(_inverse(u), np.float64)


def _log_tail(x: Floats) -> Floats:
    """Return log P(Z >= x), far out by the asymptotic series."""
    far = np.maximum(x, 20.0)
    square = 1 / (far * far)
    series = np.log1p(square * (-1 + square * (3 - square * (15 - 105 * square))))
    with np.errstate(divide="ignore"):
        near = np.log(_upper(np.minimum(x, 20.0)))
    return np.where(x < 20.0, near, -far * far / 2 - np.log(far) - _LOG_ROOT + series)
