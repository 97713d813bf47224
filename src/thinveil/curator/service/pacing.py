"""Holds every batch for a whole number of equal spells, so that time does not tell of counting.

Constant-time padding. Boxes with few records are counted faster than others, so the time of a reply
tells of the table what no noise covers. Here the curator's thread itself stays taken until the
spell is over, refusals included (what is malformed never comes here, and tells nothing of the
table): batches behind this one, of whomever, start as late as it ends, and a queue of them adds up
to nothing but spells. What takes longer than a spell takes two: that still tells, so a spell should
be longer than the slowest batch. How busy the machine is meanwhile, this does not hide.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a spell is, in seconds; 0 holds nothing back."""

    spell: float = 0.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def begin(self) -> float:
        """Return when something began."""
        return self.clock()

    def end(self, began: float) -> None:
        """Wait until a whole number of spells is over, at least one."""
        if self.spell > 0:
            now = self.clock()
            spells = math.floor((now - began) / self.spell) + 1
            self.sleep(max(began + spells * self.spell - now, 0.0))
