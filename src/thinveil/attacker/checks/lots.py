"""Lots drawn by a public seed, the same ones always: an attack has no chance of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinveil.language.scrambling import GOLDEN, scrambled


@dataclass(slots=True)
class Lots:
    """Whole numbers that look random, drawn one after the other (SplitMix64).

    >>> lots = Lots(7)
    >>> [lots.below(6) for _ in range(5)]
    [4, 4, 4, 0, 0]
    """

    seed: int
    drawn: int = 0

    def below(self, end: int) -> int:
        """Return a whole number from 0 on, below the end."""
        self.drawn += 1
        place = (self.seed % 2**32 * 2**32 + self.drawn) % 2**64
        with np.errstate(over="ignore"):
            word = scrambled(np.array([place], np.uint64) * GOLDEN)
        return int(word[0]) % end
