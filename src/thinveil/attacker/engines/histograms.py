"""The values of whole columns, all columns side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from thinveil.attacker.engines.quarters import Quarters
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.findings import Stretch
from thinveil.attacker.terms import Attack, Axis, Rules, Values, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Floats, QueryBatch
from thinveil.language.schema import LOWEST, MISSING

_T = TypeVar("_T")
GAP: Final = -1
"""The place of a missing value, before all others."""
_RARE: Final = 0.1  # how many values are thought to be missing, where any may be
_LEAN: Final = 0.25  # how much of that is believed; 0.5 would be right for an exponential


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """The values of one column that occur, in order, missing first, and how often each does."""

    axis: Axis
    steps: Codes  # the values, in steps of the axis
    counts: Codes  # the records that have each
    bits: float  # the code length of all this under the beliefs it was found with

    def cuts(self, place: Codes) -> Codes:
        """Return codes that lie above all values before each place, and not above the rest."""
        steps = np.append(self.steps, max(int(self.steps[-1]), LOWEST) + 1)
        return scaled(steps[place], self.axis.width)

    @property
    def entropy(self) -> float:
        """The bits that one value tells, on average."""
        share = self.counts / self.counts.sum()
        return float(-(share * np.log2(share)).sum())


@dataclass(slots=True)
class Purse:
    """How many answers an attack may have, and how many it has asked for."""

    most: int | None = None
    asked: int = 0

    @property
    def left(self) -> float:
        """How many may still be asked for; infinite where nobody said."""
        return math.inf if self.most is None else self.most - self.asked

    def pay(self, batch: QueryBatch) -> None:
        """Count the answers of a batch."""
        self.asked += batch.queries

    def paid(self, attack: Attack[_T]) -> Attack[_T]:
        """Pass a part of an attack on, and count its answers."""
        try:
            batch = next(attack)
            while True:
                self.pay(batch)
                batch = attack.send((yield batch))
        except StopIteration as stop:
            found: _T = stop.value
            return found


class Columns(Quarters):
    """Splits the domains of columns; an owner is a column, the place -1 is a missing value."""

    def __init__(self, rules: Rules, axes: Sequence[Axis]) -> None:
        super().__init__(rules)
        self.axes = list(axes)
        self._found: list[Values] = [[] for _ in axes]
        self.left = np.full(len(axes), rules.n)
        self.told = np.zeros(len(axes))
        self._owners: set[int] = set()
        self._open = np.zeros(1024, np.bool_)  # nodes whose split was asked for and is not over

    def charge(self, nodes: Codes, bits: Floats) -> None:
        """Add what was told about nodes to their columns."""
        np.add.at(self.told, self.owner[nodes], bits)

    def begin(self, owners: Sequence[int]) -> None:
        """Add the whole domains of columns, whose limits are known."""
        axes = [self.axes[owner] for owner in owners]
        gap = np.array([axis.missing for axis in axes], np.int64)
        places = np.array([axis.size - axis.missing for axis in axes], np.int64)
        self._owners.update(owners)
        self.add(np.array(owners, np.int64), -gap, places, np.full(len(gap), self.rules.n))

    def histogram(self, owner: int) -> Histogram:
        """Return a column that is all found."""
        steps, counts = np.array(self.values(owner), np.int64).T
        return Histogram(self.axes[owner], steps, counts, float(self.told[owner]))

    def values(self, owner: int) -> Values:
        """Return the values of a column that were found, in order, and how often each occurs."""
        base = self.axes[owner].limits[0]
        found = sorted(self._found[owner])
        return [(MISSING if place == GAP else base + place, size) for place, size in found]

    def begun(self, owner: int) -> bool:
        """Tell whether a column is searched, or was."""
        return owner in self._owners

    def ranges(self) -> list[tuple[Stretch, ...]]:
        """Return for each column the ranges that are not split yet."""
        nodes = np.flatnonzero(self._open[: self._used])
        found: list[list[Stretch]] = [[] for _ in self.axes]
        each = np.stack([self.owner[nodes], self.first[nodes], self.end[nodes], self.size[nodes]])
        for owner, first, end, records in each.T.tolist():
            begin = None if first == GAP else (self.axes[owner].lower or 0) + first
            found[owner].append((begin, end - first, records))  # whole numbers: 2^63 occurs
        return [tuple(stretches) for stretches in found]

    def _room(self, many: int) -> Codes:
        nodes = super()._room(many)
        if self._used > len(self._open):
            more = np.zeros(2 * self._used - len(self._open), np.bool_)
            self._open = np.concatenate([self._open, more])
        return nodes

    def _dispatch(self, nodes: Codes, low: Codes, high: Codes) -> None:
        """Remember which nodes are searched."""
        self._open[nodes] = True
        super()._dispatch(nodes, low, high)

    def split(self, nodes: Codes, count: Codes) -> None:
        """Remember which nodes are over."""
        self._open[nodes] = False
        super().split(nodes, count)

    def passed(self, nodes: Codes) -> None:
        """Remember which nodes are over, as others stand for them."""
        self._open[nodes] = False

    def plan(self, nodes: Codes) -> tuple[Codes, Floats, Codes, Codes]:
        """Cut in the middle; missing values are cut off first."""
        first, end, size = self.first[nodes], self.end[nodes], self.size[nodes]
        gap = first == GAP
        cut = np.where(gap, 0, first + (end - np.maximum(first, 0)) // 2)
        even = np.log((cut - first) / (end - cut))
        # where the lower half of the parent was denser, the lower half of each part is, too
        chance = np.where(gap, _RARE, 1 / (1 + np.exp(-even - _LEAN * self.lean[nodes])))
        return cut, chance, np.zeros_like(size), size

    def settle(self, nodes: Codes) -> None:
        """Note values with their counts."""
        each = np.stack([self.owner[nodes], self.first[nodes], self.size[nodes]], axis=1)
        for owner, place, size in each.tolist():
            self._found[owner].append((place, size))
        np.subtract.at(self.left, self.owner[nodes], self.size[nodes])


def histograms(
    facts: PublicFacts,
    columns: Columns,
    owners: Sequence[int],
    care: Care,
    about: Callable[[float], About],
    purse: Purse,
) -> Attack[None]:
    """Find all values of some columns, whose limits are known, with their counts.

    Rounds are described by the settled share of all columns.
    """
    columns.begin(owners)
    axes, total = columns.axes, facts.records * len(columns.axes)
    each = [(axis.lower or 0, axis.column, axis.width) for axis in axes]
    base, column, width = np.array(each, np.int64).T
    while columns.waiting:
        offsets, nodes, threshold = columns.unions(purse.left)
        owner, first, end = columns.spans(nodes)
        low = np.where(first == GAP, MISSING, base[owner] + first)
        batch = QueryBatch(
            Cells.everything(),
            np.zeros(len(nodes), np.int64),
            column[owner],
            scaled(low, width[owner]),
            scaled(base[owner] + end, width[owner]),
            threshold,
            offsets=offsets,
            about=about(1 - columns.left.sum() / total),
        )
        purse.pay(batch)
        columns.learn((yield from zones_of(facts, batch, care)))
