"""The values of whole columns, all columns side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.engines.splitting import Splits
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.terms import Attack, Axis, Rules, Values, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Floats, QueryBatch
from thinveil.language.schema import LOWEST, MISSING

GAP: Final = -1
"""The place of a missing value, before all others."""
_RARE: Final = 0.1  # how many values are thought to be missing, where any may be
_LEAN: Final = 0.25  # how much of that is believed; 0.5 would be right for an exponential


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """The values of one column that occur, in order, missing first, and how often each does.

    Args:
        axis: The attribute.
        steps: The values, in steps of the axis.
        counts: The records that have each.
        bits: The code length of all this under the beliefs it was found with.
    """

    axis: Axis
    steps: Codes
    counts: Codes
    bits: float

    def cuts(self, place: Codes) -> Codes:
        """Return codes that lie above all values before each place, and not above the rest."""
        steps = np.append(self.steps, max(int(self.steps[-1]), LOWEST) + 1)
        return scaled(steps[place], self.axis.width)

    @property
    def entropy(self) -> float:
        """The bits that one value tells, on average."""
        share = self.counts / self.counts.sum()
        return float(-(share * np.log2(share)).sum())


class Columns(Splits):
    """Splits the domains of columns; an owner is a column, the place -1 is a missing value."""

    leaning = True

    def __init__(self, rules: Rules, axes: Sequence[Axis]) -> None:
        super().__init__(rules)
        self._gap = np.array([axis.missing for axis in axes], np.int64)
        self.found: list[Values] = [[] for _ in axes]
        self.left = np.full(len(axes), rules.n)
        self.told = np.zeros(len(axes))

    def charge(self, nodes: Codes, bits: Floats) -> None:
        """Add what was told about nodes to their columns."""
        np.add.at(self.told, self.owner[nodes], bits)

    def begin(self, owner: Codes, places: Codes) -> None:
        """Add the whole domains of columns, of so many places beside a missing one."""
        size = np.full(len(owner), self.rules.n)
        self.add(owner, -self._gap[owner], places, size)

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
            self.found[owner].append((place, size))
        np.subtract.at(self.left, self.owner[nodes], self.size[nodes])


def histograms(
    facts: PublicFacts,
    axes: Sequence[Axis],
    care: Care,
    about: Callable[[float, Callable[[int], Values]], About],
    columns: Columns | None = None,
) -> Attack[list[Histogram]]:
    """Find all values of each column with their counts.

    Args:
        facts: What is public.
        axes: The columns, with known limits.
        care: How sure decisions must be.
        about: Called each round with the settled share, and a way to look at a column's values.
        columns: How to search; each column by itself unless given.
    """
    rules = Rules.of(facts)
    columns = columns or Columns(rules, axes)
    places = np.array([axis.size - axis.missing for axis in axes], np.int64)
    columns.begin(np.arange(len(axes)), places)
    each = [(axis.limits[0], axis.column, axis.width) for axis in axes]
    base, column, width = np.array(each, np.int64).T
    total = rules.n * len(axes)

    def values(owner: int) -> Values:
        return [
            (MISSING if place == GAP else int(base[owner]) + place, size)
            for place, size in sorted(columns.found[owner])
        ]

    while columns.waiting:
        offsets, nodes, threshold = columns.unions()
        owner, first, end = columns.spans(nodes)
        low = np.where(first == GAP, MISSING, base[owner] + first)
        high = base[owner] + end
        batch = QueryBatch(
            Cells.everything(),
            np.zeros(len(nodes), np.int64),
            column[owner],
            scaled(low, width[owner]),
            scaled(high, width[owner]),
            threshold,
            offsets=offsets,
            about=about(1 - columns.left.sum() / total, values),
        )
        zone = yield from zones_of(facts, batch, care)
        columns.learn(zone)
    found = [np.array(values(place), np.int64).T for place in range(len(axes))]
    bits = columns.told.tolist()
    return [
        Histogram(axis, steps, counts, told)
        for axis, (steps, counts), told in zip(axes, found, bits, strict=True)
    ]
