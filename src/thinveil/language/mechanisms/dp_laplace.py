"""Honest differential privacy: Laplace noise scaled by global sensitivity, ours or OpenDP's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from thinveil.language.laws import Laplace
from thinveil.language.mechanisms.claim import Claim, Mechanism
from thinveil.language.shapes import Constant


@dataclass(frozen=True, slots=True)
class Global(Constant):
    """Global sensitivity: some record of some table can move the answer, so it is 1."""

    title: ClassVar = "global sensitivity"
    size: ClassVar = 1.0


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
