"""How many records somebody gets right on average who joins columns by chance.

The expected overlap of two multisets, where the columns of one are permuted independently.

Let a record r occur a times in the true table, and let column j of the other table, of n rows, hold
its value c_j times. M rows of the permuted table equal r. How many ways there are to choose k of
them has an expectation that is known exactly, since columns are permuted independently:

    S_k  =  E[C(M, k)]  =  C(n, k) * product over j of C(c_j, k) / C(n, k),

and min(a, M), which is what counts as right, has the expectation

    E[min(a, M)]  =  S_1 - C(a-1, a-1) S_(a+1) + C(a, a-1) S_(a+2) - C(a+1, a-1) S_(a+3) + ...

(Feller, "An introduction to probability theory and its applications", volume 1, chapter IV.5,
summed over t from 1 to a for "at least t of them"). That sum is used where S_1 is at most
`_SERIES`: its rounding is then far below a millionth of a record. Where more rows than that are to
be expected, M is taken as normal with its true mean and variance. By Szegő's composition theorem
the generating function of M, whose coefficients in powers of x - 1 are the S_k, has real roots
only; so M is a sum of independent coins, and the first Wasserstein distance of such a sum and its
normal law is at most 1 (Goldstein, "Bounds on the constant in the mean central limit theorem",
2010). So for each different record the expectation is off by at most 1 there, and in practice by
far less: a test compares.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np

from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes, Floats

_SERIES: Final = 8.0
"""Up to how many expected rows the alternating sum is used: its terms stay below e^8 or so."""
_TERMS: Final = 200  # far more than any sum takes
_SMALL: Final = 1e-13


def expected_overlap(actual: Codes, other: Codes, distinct: bool) -> float:
    """Return how many rows are right, on average, where the columns of the other are permuted.

    Of different records each counts once, however often it occurs.

    >>> table = np.array([[0, 0], [1, 1]])
    >>> expected_overlap(table, table, distinct=False)
    1.0
    """
    there = Different.of(actual)
    rows, often = there.rows, np.ones_like(there.often) if distinct else there.often
    known = np.column_stack(
        [held(column, values) for column, values in zip(other.T, rows.T, strict=True)]
    )
    return round(float(_capped(known.astype(np.float64), len(other), often).sum()), 9)


def held(column: Codes, values: Codes) -> Codes:
    """Return how often a column holds each of some values."""
    kinds, counts = np.unique(column, return_counts=True)
    place = np.minimum(np.searchsorted(kinds, values), len(kinds) - 1)
    often: Codes = np.where(kinds[place] == values, counts[place], 0)
    return often


def _capped(known: Floats, rows: int, often: Codes) -> Floats:
    """Return E[min(a, M)] for each record, by what columns hold of it and how often it occurs."""
    mean = rows * np.prod(known / rows, axis=1)
    few = mean <= _SERIES
    right = np.empty(len(known))
    for copies in np.unique(often[few]).tolist():
        mine = few & (often == copies)
        right[mine] = _series(known[mine], rows, copies)
    rest = np.flatnonzero(~few)
    pairs = np.prod((known[rest] - 1) / max(rows - 1, 1), axis=1) * mean[rest] * (rows - 1)
    variance = np.maximum(pairs + mean[rest] - mean[rest] ** 2, 0.0)
    for place, spread in zip(rest.tolist(), np.sqrt(variance).tolist(), strict=True):
        right[place] = _normal(float(mean[place]), spread, int(often[place]))
    return np.clip(right, 0.0, np.minimum(often, mean))


def _series(known: Floats, rows: int, copies: int) -> Floats:
    """Return E[min(a, M)] by the alternating sum, for records that occur equally often."""
    total = np.zeros(len(known))
    term = np.full(len(known), 1.0)  # S_k
    live = np.arange(len(known))
    for k in range(1, _TERMS):
        term = term * np.prod(np.maximum(known[live] - k + 1, 0.0) / (rows - k + 1), axis=1)
        term *= (rows - k + 1) / k
        if k == 1:
            total[live] = term
        elif k > copies:
            sign = 1 if (k + copies) % 2 == 0 else -1
            total[live] += sign * math.comb(k - 2, copies - 1) * term
        # what comes is smaller from here on: S_(k+1) is at most S_k S_1 / (k + 1)
        on = term * float(math.comb(max(k - 1, copies), copies)) > _SMALL
        term, live = term[on], live[on]
        if not len(live) or k == rows:
            break
    return total


def _normal(mean: float, spread: float, copies: int) -> float:
    """Return E[min(a, M)] for a normal M."""
    if spread < 1e-9:
        return min(float(copies), mean)
    off = (mean - copies) / spread
    law = NormalDist()
    return mean - (mean - copies) * law.cdf(off) - spread * law.pdf(off)
