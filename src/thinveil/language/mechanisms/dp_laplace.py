"""Laplace noise scaled by global sensitivity: drawn exactly, by OpenDP, or as textbooks do it.

The first two are honest. The exact one counts steps of a grid that does not hang on the data
(`curator.exact.laplace_steps`). The third adds doubles to doubles, and which doubles can come out
tells the true bit (Mironov 2012, "On significance of the least significant bits").
"""

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
        lambda k, universe: Claim("dp-laplace", Global(), Laplace(), universe, sampler="exact"),
        leaks=False,
    ),
    Mechanism(
        "dp-opendp",
        "differential privacy (Laplace noise drawn by OpenDP)",
        lambda k, universe: Claim("dp-opendp", Global(), Laplace(), universe, sampler="opendp"),
        leaks=False,
    ),
    Mechanism(
        "dp-textbook",
        "differential privacy as textbooks draw it (leaks by its doubles)",
        lambda k, universe: Claim("dp-textbook", Global(), Laplace(), universe),
        leaks=False,
    ),
)
