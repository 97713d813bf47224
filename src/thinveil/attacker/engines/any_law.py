"""An engine for mechanisms with a law of their own, that nobody here has written searches for.

Everything is made of counts: a range of values is halved, the records in its upper half are
counted, and so on down to single values. `decisions` decides each count by the law alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np

from thinveil.attacker.doubling import doubled, within
from thinveil.attacker.engines.decisions import EXACTLY, Book, Wanted
from thinveil.attacker.engines.protocol import Cohorts, Hints, Look, in_turn
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import Attack, Axis, Values, scaled
from thinveil.errors import UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Cells, Codes, Flags
from thinveil.language.schema import INFINITE, LOWEST, MISSING


class AnyLaw:
    """Counts records in ranges of cells, by whatever law the mechanism has.

    Raises:
        UsageError: The curator caches its answers, and they would have to be repeated.
    """

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        if facts.policies.cache:
            raise UsageError(
                f"the mechanism {facts.claim.name} has a law of its own, and its answers must be "
                "repeated; against a curator that caches them there is no attack here"
            )
        self.facts, self.care = facts, care
        self._decide = Book(facts, care).decided

    def check(self, axes: Sequence[Axis], groups: int) -> None:
        """Refuse nothing."""

    def limits(
        self, axes: Sequence[Axis], about: About, hints: Hints | None = None
    ) -> Attack[list[Axis]]:
        """Return axes with limits, found by doubling where they are not public."""
        found = list(axes)
        for place, axis in enumerate(axes):
            if axis.lower is None:
                found[place] = yield from self._limits(axis, lambda _: about)
        return found

    def _limits(self, axis: Axis, about: Callable[[float], About]) -> Attack[Axis]:
        cells, left = Cells.everything(), np.array([self.facts.records])
        if axis.missing:
            missing = _wanted(axis.column, (MISSING, LOWEST), left)
            left = left - (yield from self._decide(cells, missing, about))

        def beyond(reach: int) -> Generator[Any, Any, bool]:
            ends = scaled(np.array([[-reach], [reach]]), axis.width)
            inside = _wanted(axis.column, ends, left, t=left - 1)
            return bool(left[0]) and not (yield from self._decide(cells, inside, about))[0]

        return within(axis, (yield from doubled(axis.width, beyond)))

    def values(
        self, groups: Cohorts, axes: Sequence[Axis], look: Look, hints: Hints | None = None
    ) -> Attack[list[Values]]:
        """Find all values of each group, one axis after the other; hints are of no use."""
        return in_turn(self.facts, groups, axes, look, self._column)

    def _column(self, cells: Cells, sizes: Codes, axis: Axis, look: Look) -> Attack[list[Values]]:
        """Find all values of each group on one axis, missing ones first."""
        found: list[Values] = [[] for _ in sizes]
        group, size, total = np.arange(len(sizes)), sizes, max(int(sizes.sum()), 1)

        def about(_: float) -> About:
            return look(1 - int(size.sum()) / total, found)

        if axis.missing:
            missing = _wanted(axis.column, (MISSING, LOWEST), sizes)
            gone = yield from self._decide(cells, missing, about)
            _note(found, group, np.full(len(sizes), MISSING), gone)
            size = sizes - gone
        lower, upper = axis.limits
        low, high = np.full(len(sizes), lower), np.full(len(sizes), upper + 1)
        while True:
            there = size > 0
            group, low, high, size = group[there], low[there], high[there], size[there]
            single = high - low <= 1
            _note(found, group[single], low[single], size[single])
            group, low, high, size = group[~single], low[~single], high[~single], size[~single]
            if not len(group):
                return found
            cut = (low + high) // 2
            ends = scaled(np.stack([cut, high]), axis.width)
            upper_half = _wanted(axis.column, ends, size, group)
            above = yield from self._decide(cells, upper_half, about)
            group, size = np.tile(group, 2), np.concatenate([size - above, above])
            low, high = np.concatenate([low, cut]), np.concatenate([cut, high])

    def more_than(self, groups: Cohorts, steps: Sequence[int], look: Look) -> Attack[Flags]:
        """Tell whether groups hold more records than each step says, one step after the other."""
        told: list[Codes] = []
        for step in steps:
            told += [(yield from self._whole(groups, step, look))]
        return np.stack(told, axis=1) > 0

    def count(self, groups: Cohorts, look: Look, few: bool = False) -> Attack[Codes]:
        """Count the records of each group."""
        return (yield from self._whole(groups, EXACTLY, look))

    def _whole(self, groups: Cohorts, t: int, look: Look) -> Attack[Codes]:
        """Count the records of cells as they are, or tell which hold more than t."""
        wanted = _wanted(WHOLE, (MISSING, INFINITE), groups.sizes, groups.rows, t)

        def about(done: float) -> About:
            return look(done, [None] * len(groups.rows))

        return (yield from self._decide(groups.cells, wanted, about))


def _wanted(
    column: int, ends: Iterable[Any], most: Codes, cell: Codes | None = None, t: Any = EXACTLY
) -> Wanted:
    """Return what is to be decided of ranges; each has its own ends and t, or all the same."""
    low, high, t = (np.full(len(most), each) for each in (*ends, t))
    return Wanted(np.arange(len(most)) if cell is None else cell, column, low, high, most, t)


def _note(found: list[Values], group: Codes, value: Codes, size: Codes) -> None:
    for mine, what, many in zip(group.tolist(), value.tolist(), size.tolist(), strict=True):
        if many:
            found[mine].append((what, many))
