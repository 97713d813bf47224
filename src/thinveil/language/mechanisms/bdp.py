"""Bootstrap DP: noise scaled by what resampling the records at hand can move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.language.laws import Laplace
from thinveil.language.mechanisms.claim import Claim, Mechanism, Universe
from thinveil.language.queries import Codes, Floats, Loss
from thinveil.language.shapes import Shape


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Bootstrap sensitivity: how far resampling the records at hand can move the answer.

    It is 1 where some but not all records satisfy the predicate, whatever the threshold
    between 0 and n - 1 (Lemma on existence queries, and erratum 9).
    """

    title: ClassVar = "bootstrap sensitivity"
    shape: ClassVar = Shape(presence=True)

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        """Return 1 where some but not all records satisfy the predicate."""
        return ((count > 0) & (count < records)).astype(np.float64)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The law changes at 0, b and n - 1."""
        inside = np.minimum(np.maximum(threshold, 0), records - 1)
        return np.stack([np.zeros_like(inside), inside, np.full_like(inside, records - 1)], axis=1)


def bdp(universe: Universe = "unbounded") -> Claim:
    """Return the bootstrap Laplace mechanism."""
    return Claim("bdp", Bootstrap(), Laplace(), universe)


MECHANISMS: Final = (Mechanism("bdp", "Bootstrap DP", lambda k, universe: bdp(universe)),)
