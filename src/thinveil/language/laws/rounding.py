"""What rounding makes of any law: shared by the files of this folder."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from thinveil.language.contracts import Post
from thinveil.language.queries import Floats

GRAIN: Final = 2.0**-52
"""Twice what a draw from 2^53 equally likely magnitudes puts on one double (derived).

Each of the two values 0 and 1 is hit with probability at most 2^-53; the rounding of the sum
near 1 adds at most rate * 2^-52.
"""


class Tailed(Protocol):
    """A law with tails."""

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return how likely noise is at least x."""
        ...


def binary(law: Tailed, far: Floats, rate: Floats) -> Floats:
    """Return the log mass of answers rounded to 0 or 1, so far off their true bits.

    The other value comes back where noise of more than a half goes one way.
    """
    flipped = law.tail(0.5, rate)
    mass: Floats = np.log(np.where(far == 0, 1 - flipped, flipped))
    return mass


def rounded(values: Floats, post: Post) -> Floats:
    """Do to answers what the claim says: it costs nothing and draws nothing; silence stays."""
    if post == "integer":
        return np.rint(values)
    if post == "binary":
        return np.where(np.isnan(values), values, (values > 0.5).astype(np.float64))
    return values
