"""No protection: the true bit as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from thinveil.language.mechanisms.claim import Claim, Mechanism, Universe
from thinveil.language.shapes import Constant


@dataclass(frozen=True, slots=True)
class Insensitive(Constant):
    """Sensitivity taken as zero: the true bit is answered as it is."""

    title: ClassVar = "no sensitivity"
    size: ClassVar = 0.0


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
