"""Different codes and different rows of a table, in order, and where each of them stands.

What `np.unique` does, also by rows; by tables instead of sorting where codes lie close together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.language.queries import Codes
from thinveil.language.schema import INFINITE, MISSING

# Round figures that hardly matter: they choose between two ways to the same places.
TABLE_SPAN: Final = 2_000_000
"""Codes in a table of places at most: 16 MB."""
DENSE: Final = 8
"""So many codes in such a table for each record are sooner counted than sorted."""
_MOST: Final = 2**62  # numbers of rows stay below


def placed(codes: Codes) -> tuple[Codes, Codes]:
    """Return the distinct codes in order, and the place of each code among them.

    What `np.unique` does; where codes lie close together, by a table instead of sorting.
    """
    low = int(codes.min(where=codes != MISSING, initial=INFINITE))
    span = int(codes.max(initial=MISSING)) - low + 2
    if not 0 < span <= min(TABLE_SPAN, DENSE * len(codes)):
        values, place = np.unique(codes, return_inverse=True)
        return values, place.reshape(-1)
    slot = np.maximum(codes, low - 1) - (low - 1)  # missing ones come first
    used = np.zeros(span, np.bool_)
    used[slot] = True
    values = np.flatnonzero(used) + (low - 1)
    if used[0]:
        values[0] = MISSING
    return values, (np.cumsum(used) - 1)[slot]


@dataclass(frozen=True, slots=True, eq=False)
class Different:
    """The different rows of a table, in the order of their codes.

    >>> each = Different.of(np.array([[2, 1], [1, 5], [2, 1]]))
    >>> each.rows.tolist(), each.first.tolist(), each.place.tolist(), each.often.tolist()
    ([[1, 5], [2, 1]], [1, 0], [1, 0, 1], [1, 2])
    """

    rows: Codes
    first: Codes  # where each stands first in the table
    place: Codes  # for each row of the table, which of them it is
    often: Codes  # how many rows of the table are each

    @classmethod
    def of(cls, rows: Codes) -> Different:
        """Number the rows of a table column by column, so that one number tells them apart."""
        number, many = np.zeros(len(rows), np.int64), min(len(rows), 1)
        for column in rows.T:
            values, place = placed(column)
            if many * len(values) > _MOST:
                kinds, number = placed(number)
                many = len(kinds)
            number, many = number * len(values) + place, many * len(values)
        kinds, place = placed(number)
        first = np.empty(len(kinds), np.int64)
        first[place[::-1]] = np.arange(len(rows))[::-1]  # the first is written last
        return cls(rows[first], first, place, np.bincount(place, minlength=len(kinds)))
