"""No protection: the true bit as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.language.mechanisms.claim import Claim, Mechanism, Universe
from thinveil.language.queries import Codes, Floats
from thinveil.language.shapes import EVEN


@dataclass(frozen=True, slots=True)
class Insensitive:
    """Sensitivity taken as zero: the true bit is answered as it is."""

    title: ClassVar = "no sensitivity"
    shape: ClassVar = EVEN

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return zero everywhere."""
        return np.zeros(count.shape)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The answer changes with the true bit only: at b."""
        return threshold[:, None]


def unprotected(universe: Universe = "unbounded") -> Claim:
    """Return the claim of a curator who answers truthfully."""
    return Claim("unprotected", Insensitive(), None, universe)


MECHANISMS: Final = (
    Mechanism(
        "unprotected",
        "true answers, without protection",
        lambda k, universe: unprotected(universe),
        leaks=False,
    ),
)
