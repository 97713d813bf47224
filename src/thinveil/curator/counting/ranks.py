"""Places of codes among the distinct values of a column, by tables where codes lie close together.

Ranks: what sorting and bisection find, without either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinveil.language.numbers.different import DENSE, TABLE_SPAN
from thinveil.language.queries import Codes


@dataclass(slots=True)
class Ranks:
    """Places of codes among the distinct values of a column, by table where that is small."""

    values: Codes
    table: Codes | None = None

    @staticmethod
    def of(values: Codes) -> Ranks:
        """Return the places of distinct values that are in order."""
        span = int(values[-1]) - int(values[0]) + 2
        if span > min(TABLE_SPAN, 64 * len(values) + 1000):
            return Ranks(values)
        table = np.zeros(span, np.int64)
        table[values - values[0] + 1] = 1
        return Ranks(values, np.cumsum(table))

    def rank(self, ends: Codes) -> Codes:
        """Return how many distinct values lie below each end."""
        if self.table is None:
            return np.searchsorted(self.values, ends)
        first, last = self.values[0], self.values[-1]
        rank: Codes = self.table[np.minimum(np.maximum(ends, first), last + 1) - first]
        return rank


def in_order(keys: Codes, end: int) -> Codes:
    """Return keys from zero up to some end in order: what `np.sort` does, by counting them."""
    if end > min(TABLE_SPAN, DENSE * len(keys)):
        return np.sort(keys)
    return np.repeat(np.arange(end), np.bincount(keys, minlength=end))
