"""Finding the bounds of an attribute by doubling (paper, footnote to Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from thinveil.attacker.terms import Axis
from thinveil.errors import EvidenceError
from thinveil.language.schema import LIMIT


def doubled(
    width: int, beyond: Callable[[int], Generator[Any, Any, bool]], reach: int = 1
) -> Generator[Any, Any, int]:
    """Double a reach until no value lies beyond it, outside of -reach .. reach - 1.

    Raises:
        EvidenceError: Values seem to lie outside the whole grid.
    """
    while (yield from beyond(reach)):
        reach *= 2
        if reach * width >= 2 * LIMIT:
            raise EvidenceError("the answers leave some records outside every range of values")
    return reach


def ends(width: int, reach: int) -> tuple[int, int]:
    """Return the lowest and highest step within a reach that a grid has."""
    return max(-reach, (1 - LIMIT) // width), min(reach - 1, (LIMIT - 1) // width)


def within(axis: Axis, reach: int) -> Axis:
    """Return an axis whose values lie within a reach."""
    return axis.within(*ends(axis.width, reach))
