"""Every interval of a result.

A share measured on some trials gets the interval of Clopper and Pearson, which holds at its
confidence whatever the true share is. There is no other kind. A result has one confidence, and of
a comparison all intervals hold together at it.
What they say about differential privacy is in `guesses` and `tradeoff`.

The two quantiles of the beta distribution that this takes are found here by bisection, so
that the package needs no SciPy; a test holds them against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Final

from thinveil.verdicts.typed import OMIT, Mark

_HALVINGS: Final = 80
_TERMS: Final = 10_000
_TINY: Final = 1e-300
_ROUNDING: Final = 1e-9  # far below one person, far above the last bit of a share


@lru_cache(maxsize=4096)
def clopper_pearson(right: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the two-sided interval of a share; each end errs with half of what is allowed.

    >>> tuple(round(end, 4) for end in clopper_pearson(1000, 1000, 0.999))
    (0.9924, 1.0)
    """
    if trials == 0:
        return 0.0, 1.0
    side = (1 - confidence) / 2
    low = 0.0 if right == 0 else _quantile(right, trials - right + 1, side)
    high = 1.0 if right == trials else 1 - _quantile(trials - right, right + 1, side)
    return low, high


@lru_cache(maxsize=65_536)
def at_least(right: int, trials: int, error: float) -> float:
    """Return the lower end of a share that is too high with at most this chance.

    The one-sided interval of Clopper and Pearson: so many successes or more would come from a
    share at this end with just the chance `error`.

    >>> round(at_least(20, 20, 0.001), 4)
    0.7079
    """
    return 0.0 if right <= 0 else _quantile(right, trials - right + 1, error)


def chance_of(least: int, trials: int, share: float) -> float:
    """Return the chance of so many successes or more: the upper tail of the binomial.

    >>> round(chance_of(2, 2, 0.5), 9)
    0.25
    """
    if least <= 0:
        return 1.0
    return 0.0 if least > trials else _below(least, trials - least + 1, share)


def interval_of_people(share: float, people: int, confidence: float) -> tuple[float, float]:
    """Return the interval of a share of values of so many people who were drawn.

    The values of one person are one draw, which may be right in part. The share is rounded outwards
    to whole people, since Clopper and Pearson count whole successes. A sum of draws between 0
    and 1 goes beyond a value at most e times as often as the binomial of the same mean does
    (Bentkus, "On Hoeffding's inequalities", 2004), and is all or nothing no more often at all.

    >>> tuple(round(end, 3) for end in interval_of_people(1.0, 40, 0.95))
    (0.912, 1.0)
    """
    if 0 < share < 1:
        confidence = 1 - (1 - confidence) / math.e
    low, _ = clopper_pearson(math.floor(share * people + _ROUNDING), people, confidence)
    _, high = clopper_pearson(math.ceil(share * people - _ROUNDING), people, confidence)
    return low, high


def checked(right: int, trials: int, confidence: float) -> None:
    """Make sure that an interval can be computed from what a file says.

    Raises:
        ValueError: There are more successes than trials, or the confidence is none.
    """
    if not 0 <= right <= trials or not 0 < confidence < 1:
        raise ValueError("counts or the confidence do not fit each other")


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some things an attack got right, beside what the baselines get right.

    Who asks nothing gets `nothing` right (an average, or None where that is masked), who knows the
    marginals `marginals`, and who knows all other records `others` (None where that is no
    question). Somebody who has the table gets `possible_share`, or all. There is no interval: what
    one run says of a table is no sample of anything.
    """

    DERIVED: ClassVar = ("right", "share", "nothing_share", "marginals_share", "others_share")

    right: Annotated[int, Mark("recovered")]
    of: int
    nothing: float | None
    marginals: float | None
    possible_share: Annotated[float | None, OMIT] = None
    others: Annotated[float | None, OMIT] = None

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.of:
            raise ValueError("counts do not fit each other")

    @property
    def share(self) -> float:
        """The share that is right."""
        return self.right / max(self.of, 1)

    @property
    def nothing_share(self) -> float | None:
        """The share of somebody who asks nothing."""
        return None if self.nothing is None else self.nothing / max(self.of, 1)

    @property
    def marginals_share(self) -> float | None:
        """The share of somebody who knows the marginals."""
        return None if self.marginals is None else self.marginals / max(self.of, 1)

    @property
    def others_share(self) -> float | None:
        """The share of somebody who knows all other records."""
        return None if self.others is None else self.others / max(self.of, 1)

    @property
    def guess(self) -> float:
        """The best share of all guessers; 0 where they are masked."""
        shares = (self.nothing_share, self.marginals_share, self.others_share)
        return max(each or 0.0 for each in shares)


def _quantile(a: int, b: int, chance: float) -> float:
    """Return where the beta distribution with these parameters has this much mass below."""
    if b == 1:
        return float(chance ** (1 / a))
    if a == 1:
        return -math.expm1(math.log1p(-chance) / b)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):  # no double lies between
            break
        if _below(a, b, middle) < chance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _below(a: int, b: int, x: float) -> float:
    """Return the mass of a beta distribution below x (its regularised incomplete function)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _below(b, a, 1 - x)
    front = a * math.log(x) + b * math.log1p(-x)
    front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) / (a * _fraction(a, b, x))


def _fraction(a: int, b: int, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    value = up = 1.0
    down = 0.0
    for term in range(1, _TERMS):
        m, odd = divmod(term, 2)
        if odd:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        down = 1 + step * down
        down = 1 / (down if abs(down) > _TINY else _TINY)
        up = 1 + step / (up if abs(up) > _TINY else _TINY)
        value *= up * down
        if abs(up * down - 1) < 1e-15:
            break
    return value
