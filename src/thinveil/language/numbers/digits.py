"""The digits of a number as it is written, and what of them a double holds.

Everything here is exact: texts and whole numbers, no arithmetic that rounds.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final, NamedTuple

SURE: Final = 15
"""A double holds every number of so many significant digits (DBL_DIG of IEEE 754 binary64)."""
SHORT: Final = 12
"""A number that has so few digits once it is read to 15 carries the noise of arithmetic after them,
as 0.1 + 0.2 does: a measured one has three zeros there by chance once in 1,000 times."""
_FIFTEEN: Final = Context(prec=SURE, rounding=ROUND_HALF_EVEN, Emin=-99_999, Emax=99_999)
_LONGEST: Final = 40  # digits beyond which no code reaches; 2^62 has 19


class Digits(NamedTuple):
    """A number as it is written: its significant digits, times a power of ten."""

    negative: bool
    digits: str  # without zeros at either end; empty for zero
    exponent: int

    @property
    def leading(self) -> int:
        """The power of ten just above the number: 3 for 123.4, 0 for 0.5."""
        return len(self.digits) + self.exponent

    def around(self, exponent: int) -> tuple[int, int]:
        """Return the whole numbers of steps of ten to a power next to it, below and above.

        Raises:
            ValueError: They are too large for any grid.

        >>> digits_of("12.345").around(-2), digits_of("-7").around(-1), digits_of("-7").around(1)
        ((1234, 1235), (-70, -70), (-1, 0))
        """
        shift = self.exponent - exponent
        if self.digits and self.leading - exponent > _LONGEST:
            raise ValueError("too large for a grid of 2^62 steps")
        if shift >= 0 or not self.digits:
            exact = int(self.digits or "0") * 10 ** max(shift, 0)
            return (-exact, -exact) if self.negative else (exact, exact)
        below = int(self.digits[:shift] or "0") if -shift < len(self.digits) else 0
        return (-below - 1, -below) if self.negative else (below, below + 1)


def digits_of(text: str) -> Digits:
    """Return the digits of a plain number, such as -12.50 or 1e-05.

    >>> digits_of("-12.50")
    Digits(negative=True, digits='125', exponent=-1)
    """
    mantissa, _, power = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    digits = (whole + fraction).lstrip("0")
    short = digits.rstrip("0")
    if not short:
        return Digits(False, "", 0)
    exponent = (int(power) if power else 0) - len(fraction) + len(digits) - len(short)
    return Digits(text[0] == "-", short, exponent)


def fifteen(number: Decimal | str) -> Decimal:
    """Return a number rounded to the 15 significant digits that every double holds."""
    return _FIFTEEN.create_decimal(number).normalize(_FIFTEEN)


def without_noise(number: Decimal) -> Decimal:
    """Return a number without the noise of arithmetic on doubles, or as it is where there is none.

    >>> without_noise(Decimal("0.30000000000000004")), without_noise(Decimal("0.1234567890123456"))
    (Decimal('0.3'), Decimal('0.1234567890123456'))
    """
    read = fifteen(number)
    noisy = len(read.as_tuple().digits) <= SHORT and held(number, float(number))
    return read if noisy else number


def held(number: Decimal, double: float) -> bool:
    """Tell whether a number is what the nearest double holds, rounded to as many digits.

    Half a digit may be rounded either way: programs that write numbers differ in that.
    """
    if not number or not double or math.isinf(double):
        return number == double
    last = number.as_tuple().exponent
    assert isinstance(last, int)
    return 2 * abs(Fraction(double) - Fraction(number)) <= Fraction(10) ** last
