"""Honest differential privacy: Cauchy noise scaled by smooth sensitivity."""

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
    shape: ClassVar = EVEN  # but for so little, at a small loss, that the true bit tells more

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        """Return the smooth sensitivity; it needs the loss of the answer."""
        far = np.maximum(np.maximum(threshold - count, count - threshold - 1), 0)
        fade: Floats = np.exp(-(0.0 if epsilon is None else epsilon) / CAUCHY * far)
        return fade

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
