"""Honest differential privacy: Cauchy noise scaled by smooth sensitivity, drawn exactly.

The scale follows the data, so neither it nor an answer may be a rounded number: an answer is the
exact real one, cut to a grid that does not hang on the data (`curator.exact.cauchy_cells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.language.laws.cauchy import CAUCHY, Cauchy
from thinveil.language.mechanisms.claim import Claim, Mechanism
from thinveil.language.queries import Codes, Floats, Loss
from thinveil.language.shapes import EVEN


@dataclass(frozen=True, slots=True)
class Smooth:
    """Smooth sensitivity: local sensitivity that fades slowly with distance.

    S = exp(-(epsilon / 6) * d), where d = max(b - c, c - b - 1, 0) is how many records must
    change before a further one can flip the answer.
    """

    title: ClassVar = "smooth sensitivity"
    size: ClassVar = 1.0
    shape: ClassVar = EVEN  # but for so little, at a small loss, that the true bit tells more

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        """Return the smooth sensitivity; it needs the loss of the answer."""
        far = self.distance(count, threshold)
        fade: Floats = np.exp(-(0.0 if epsilon is None else epsilon) / CAUCHY * far)
        return fade

    def distance(self, count: Codes, threshold: Codes) -> Codes:
        """Return d."""
        far: Codes = np.maximum(np.maximum(threshold - count, count - threshold - 1), 0)
        return far

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """Every count has a law of its own."""
        return np.broadcast_to(np.arange(records), (len(threshold), records))


MECHANISMS: Final = (
    Mechanism(
        "dp-smooth",
        "differential privacy (smooth sensitivity)",
        lambda k, universe: Claim("dp-smooth", Smooth(), Cauchy(), universe, sampler="exact"),
        leaks=False,
    ),
)
