"""Honest differential privacy: Laplace noise scaled by global sensitivity, ours or OpenDP's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.language.laws import Laplace
from thinveil.language.mechanisms.claim import Claim, Mechanism
from thinveil.language.queries import Codes, Floats
from thinveil.language.shapes import EVEN


@dataclass(frozen=True, slots=True)
class Global:
    """Global sensitivity: some record of some table can move the answer, so it is 1."""

    title: ClassVar = "global sensitivity"
    shape: ClassVar = EVEN

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return one everywhere."""
        return np.ones(count.shape)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The answer's law changes with the true bit only: at b."""
        return threshold[:, None]


MECHANISMS: Final = (
    Mechanism(
        "dp-laplace",
        "differential privacy (Laplace noise)",
        lambda k, universe: Claim("dp-laplace", Global(), Laplace(), universe),
        leaks=False,
    ),
    Mechanism(
        "dp-opendp",
        "differential privacy (Laplace noise drawn by OpenDP)",
        lambda k, universe: Claim("dp-opendp", Global(), Laplace(), universe, sampler="opendp"),
        leaks=False,
    ),
)
