"""Groups take their turn in waves: what is found of the early ones predicts the later ones.

Learning in batches that double. Nothing is learned from half a wave: values with short ways are
found first, so what is known of it by then is not typical (length-biased sampling).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.attacker.beliefs.arrays import Triple, joined, ramp
from thinveil.attacker.fixed_order import shuffled
from thinveil.language.queries import Codes, Flags

_LARGE: Final = 64  # a large group has at least such a part of all records; hardly matters
_AT_FIRST: Final = 16  # such a part is searched before anything is learned
_FEWEST: Final = 48  # or so many, where that is more
_HASTY: Final = 12  # the same in haste, and
_MORE: Final = 100


def large(sizes: Codes) -> Flags:
    """Tell which groups hold so many records that nothing can be predicted before they are over."""
    return sizes >= max(int(sizes.sum()) // _LARGE, 2)


def turns(rank: Codes) -> Codes:
    """Return an order of groups: high ranks first, others mixed, so that early ones are typical."""
    mixed = shuffled(len(rank))
    return mixed[np.argsort(-rank[mixed], kind="stable")]


def smallest_first(sizes: Codes, parent: Codes) -> Codes:
    """Return an order of groups: the smallest one of each parent, then the second ones, and so on.

    >>> smallest_first(np.array([9, 1, 7, 2]), np.array([0, 0, 1, 0])).tolist()
    [1, 2, 3, 0]
    """
    order = np.lexsort((sizes, parent))
    rank = np.empty_like(order)
    rank[order] = ramp(np.unique(parent, return_counts=True)[1])
    return np.lexsort((sizes, rank))


@dataclass(slots=True)
class Pace:
    """How many are searched now, and how many are over: groups, records or people."""

    least: int  # how many may be searched before anything is learned
    share: float = 1.0  # how many may be searched at a time later, for each that is over
    flying: int = 0
    over: int = 0

    @classmethod
    def of(cls, many: int, ahead: float = 0.0) -> Pace:
        """Return the pace at which so many are searched; in haste it says how many at a time."""
        if ahead:
            return cls(max(many // _HASTY, _MORE), ahead)
        return cls(max(many // _AT_FIRST, _FEWEST))

    def room(self, worth: int) -> int:
        """Return how many more may begin; fewer than are worth it wait for others to end."""
        room = max(self.least, int(self.share * self.over)) - self.flying
        return 0 if room <= 0 or (self.flying and room < worth) else room

    def end(self, many: int) -> None:
        """Note that so many are over."""
        self.flying -= many
        self.over += many


class Waves:
    """Whose turn it is, and what each wave has found until it is over.

    All may begin at once unless a pace is given, and each has one record unless sizes are. A wave
    counts as over without the last of `late` records; 0 waits for all.
    """

    def __init__(
        self, order: Codes, pace: Pace | None = None, sizes: Codes | None = None, late: int = 0
    ) -> None:
        self._order, self.pace, self._late = order, pace or Pace(len(order)), late
        one = np.ones(int(order.max(initial=-1)) + 1, np.int64)
        self._sizes = one if sizes is None else sizes
        self.open = self._sizes.copy()  # the records of each that are not over
        self._next = 0
        self._wave = np.full(len(self.open), -1)
        self._left: list[int] = []  # the records of each wave that are not over
        self._enough: list[int] = []  # and how many of them are not waited for
        self.members: list[Codes] = []  # of each wave
        self.held: list[list[Triple]] = []  # findings of each wave that were not learned from

    @property
    def waiting(self) -> bool:
        """Whether anybody has not begun yet."""
        return self._next < len(self._order)

    def upto(self, records: int, most: int | None = None) -> int:
        """Return how many of the next have no more than so many records, at least one."""
        ahead = self._sizes[self._order[self._next :][:most]]
        return max(int(np.searchsorted(np.cumsum(ahead), records, side="right")), 1)

    def begin(self, many: int) -> Codes:
        """Let the next so many begin as one wave."""
        wave = self._order[self._next : self._next + many]
        self._next += len(wave)
        self.pace.flying += len(wave)
        self._wave[wave] = len(self.members)
        self._left.append(int(self._sizes[wave].sum()))
        self._enough.append(self._left[-1] // self._late if self._late else 0)
        self.members.append(wave)
        self.held.append([])
        return wave

    def hold(self, group: Codes, place: Codes, many: npt.NDArray[Any]) -> None:
        """Put findings aside until the waves of their groups are over."""
        waves = self._wave[group]
        for wave in np.unique(waves).tolist():
            mine = waves == wave
            self.held[wave].append((group[mine], place[mine], many[mine]))

    def end(self, group: Codes, records: Codes) -> list[int]:
        """Note that records of groups are over; return the waves that are over by that."""
        np.subtract.at(self.open, group, records)
        self.pace.end(int(np.count_nonzero(self.open[np.unique(group)] == 0)))
        gone = np.bincount(self._wave[group], records, len(self.members))
        touched = np.flatnonzero(gone).tolist()
        for wave in touched:
            self._left[wave] -= int(gone[wave])
        return [wave for wave in touched if self._left[wave] <= self._enough[wave]]

    def take(self, wave: int) -> Triple:
        """Return what a wave has found, to learn from it."""
        found = joined(self.held[wave])
        self.held[wave] = []
        return found

    def left(self) -> list[Triple]:
        """Return the findings that were not learned from."""
        return [each for wave in self.held for each in wave]
