"""Privacy losses without rounding.

The loss of a pair of data sets is the logarithm of the worst ratio of two probabilities. For a
finite mechanism that ratio is a fraction; for Laplace noise it is a fraction times e to the
power of another fraction. A `Loss` keeps both, so sums and comparisons are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final, TypeAlias

from thinveil.errors import EpsilonError
from thinveil.paper.theory.functions import Number


@dataclass(frozen=True, slots=True)
class Loss:
    """A privacy loss of ln(ratio) + power, both exact; without a ratio, infinite.

    No two different pairs make the same loss: e to the power of a fraction other than 0 is
    never a fraction.

    >>> twice = Loss(Fraction(2)) + Loss(Fraction(2))
    >>> str(twice), twice == Loss(Fraction(4)), twice <= Loss.of(Fraction(3, 2))
    ('ln 4', True, True)
    """

    ratio: Fraction | None = Fraction(1)
    power: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.ratio is not None and self.ratio <= 0:
            raise EpsilonError("a worst ratio of probabilities is above zero")

    @staticmethod
    def of(epsilon: Number) -> Loss:
        """Return a given epsilon as a loss."""
        return INFINITE if epsilon == math.inf else Loss(power=Fraction(epsilon))

    @property
    def epsilon(self) -> float:
        """The loss as a floating-point number."""
        if self.ratio is None:
            return math.inf
        near = self.ratio - 1
        if abs(near) < Fraction(1, 1000):
            return math.log1p(float(near)) + float(self.power)
        return math.log(self.ratio.numerator) - math.log(self.ratio.denominator) + float(self.power)

    def __add__(self, other: Loss) -> Loss:
        if self.ratio is None or other.ratio is None:
            return INFINITE
        return Loss(self.ratio * other.ratio, self.power + other.power)

    def __lt__(self, other: Loss) -> bool:
        if self.ratio is None:
            return False
        if other.ratio is None:
            return True
        return _sign(self.ratio / other.ratio, other.power - self.power) < 0

    def __le__(self, other: Loss) -> bool:
        return not other < self

    def __str__(self) -> str:
        if self.ratio is None:
            return "infinite"
        parts = [f"ln {_short(self.ratio)}"] * (self.ratio != 1)
        if self.power or not parts:
            parts.append(_short(self.power))
        return " + ".join(parts)


NOTHING: Final = Loss()
"""No loss at all: the two laws are the same."""
INFINITE: Final = Loss(None)
"""Some output is possible on one data set only."""

Bound: TypeAlias = Number | Loss


def bound(epsilon: Bound) -> Loss:
    """Return what a privacy loss is held against.

    Give a `Loss` for an epsilon such as ln 2, which is not a fraction and no double.

    Raises:
        EpsilonError: It is not above zero.
    """
    if isinstance(epsilon, Loss):
        if epsilon <= NOTHING:
            raise EpsilonError(f"epsilon must be above zero, not {epsilon}")
        return epsilon
    if not 0 < epsilon < math.inf:
        raise EpsilonError(f"epsilon must be a number above zero, not {epsilon}")
    return Loss.of(epsilon)


def _short(number: Fraction) -> str:
    if number.denominator <= 1000 and abs(number.numerator) <= 10**6:
        return str(number)
    return f"{float(number):.4g}"


def _sign(ratio: Fraction, power: Fraction) -> int:
    """Return the sign of ln(ratio) - power, however close the two are."""
    if power == 0:
        return (ratio > 1) - (ratio < 1)
    if ratio == 1:
        return -1 if power > 0 else 1
    digits = 30
    while True:
        with localcontext(Context(prec=digits)):
            logarithm = (Decimal(ratio.numerator) / ratio.denominator).ln()
            other = Decimal(power.numerator) / power.denominator
            gap = logarithm - other
            error = max(Decimal(1), abs(logarithm), abs(other)).scaleb(3 - digits)
            if abs(gap) > error:
                return 1 if gap > 0 else -1
        digits *= 2
