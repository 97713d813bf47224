"""Honest differential privacy: Laplace noise that the OpenDP library draws."""

from __future__ import annotations

from typing import Final

from thinveil.language.claim import Claim, Mechanism
from thinveil.language.laws import Laplace
from thinveil.language.mechanisms.dp_laplace import Global

MECHANISM: Final = Mechanism(
    "dp-opendp",
    "differential privacy (Laplace noise drawn by OpenDP)",
    lambda k, universe: Claim("dp-opendp", Global(), Laplace(), universe, sampler="opendp"),
    leaks=False,
)
