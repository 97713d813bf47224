"""Individual DP and Group IDP: noise scaled by k-local sensitivity (Lemma 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.errors import UsageError
from thinveil.language.laws import Laplace
from thinveil.language.mechanisms.claim import Claim, Mechanism, Universe
from thinveil.language.queries import Codes, Floats, Loss
from thinveil.language.shapes import Shape

_USUAL: Final = 1.0  # the offset a of the section "Ensuring all answers are noisy"


@dataclass(frozen=True, slots=True)
class KLocal:
    """k-local sensitivity: how far k changed records can move the answer (Lemma 1).

    It is 1 where b - k < c <= b + k and 0 elsewhere. k = 1 is local sensitivity.
    """

    k: int

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1:
            raise UsageError(f"the group size k must be a whole number of at least 1, not {self.k}")

    @property
    def title(self) -> str:
        """What it is called."""
        return f"{self.k}-local sensitivity"

    @property
    def shape(self) -> Shape:
        """It is 1 in a window around the threshold."""
        return Shape(reach=self.k)

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        """Return 1 in the noisy zone, 0 outside it."""
        above = count - threshold
        return ((above > -self.k) & (above <= self.k)).astype(np.float64)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The law changes at b - k, b and b + k."""
        return np.stack([threshold - self.k, threshold, threshold + self.k], axis=1)


def idp(k: int = 1, universe: Universe = "unbounded") -> Claim:
    """Return the k-Laplace mechanism: Individual DP for k = 1, Group IDP for any k."""
    return Claim("idp", KLocal(k), Laplace(), universe)


MECHANISMS: Final = (
    Mechanism("idp", "Individual DP", idp),
    Mechanism("idp-binary", "Individual DP, answers rounded to 0 or 1", idp, post="binary"),
    Mechanism(
        "idp-integer", "Individual DP, answers rounded to whole numbers", idp, post="integer"
    ),
    Mechanism("idp-noisy", "Individual DP with noise in every answer", idp, offset=_USUAL),
)
