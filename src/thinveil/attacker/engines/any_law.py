"""An engine for mechanisms with a law of their own, that nobody here has written searches for.

Everything is made of counts: a range of values is halved, the records in its upper half are
counted, and so on down to single values. `decisions` decides each count by the law alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
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

    Args:
        facts: What is public.
        care: How sure decisions must be.

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
            left = left - (yield from self._missing(cells, axis, left, about))

        def beyond(reach: int) -> Generator[Any, Any, bool]:
            low, high = scaled(np.array([[-reach], [reach]]), axis.width)
            wanted = Wanted(np.zeros(1, np.int64), axis.column, low, high, left, left - 1)
            return bool(left[0]) and not (yield from self._decide(cells, wanted, about))[0]

        return within(axis, (yield from doubled(axis.width, beyond)))

    def _missing(
        self, cells: Cells, axis: Axis, sizes: Codes, about: Callable[[float], About]
    ) -> Attack[Codes]:
        groups, low, high, t = (
            np.arange(len(sizes)),
            *(np.full(len(sizes), each) for each in (MISSING, LOWEST, EXACTLY)),
        )
        wanted = Wanted(groups, axis.column, low, high, sizes, t)
        return (yield from self._decide(cells, wanted, about))

    def values(
        self, groups: Cohorts, axes: Sequence[Axis], look: Look, hints: Hints | None = None
    ) -> Attack[list[Values]]:
        """Find all values of each group, one axis after the other; hints are of no use."""
        search = partial(self._column, groups.alone(), groups.sizes)
        return (yield from in_turn(len(groups.rows), axes, look, search))

    def _column(self, cells: Cells, sizes: Codes, axis: Axis, look: Look) -> Attack[list[Values]]:
        """Find all values of each group on one axis, missing ones first."""
        found: list[Values] = [[] for _ in sizes]
        group, size, total = np.arange(len(sizes)), sizes, max(int(sizes.sum()), 1)
        if self.facts.claim.universe == "bounded" and axis.size == 1:
            only = MISSING if axis.missing else axis.limits[0]
            return [[(only, each)] for each in sizes.tolist()]

        def about(_: float) -> About:
            return look(1 - int(size.sum()) / total, found)

        if axis.missing:
            gone = yield from self._missing(cells, axis, sizes, about)
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
            ends = scaled(cut, axis.width), scaled(high, axis.width)
            wanted = Wanted(group, axis.column, *ends, size, np.full(len(group), EXACTLY))
            above = yield from self._decide(cells, wanted, about)
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
        many = len(groups.rows)
        low, high, t_of_each = (np.full(many, each) for each in (MISSING, INFINITE, t))
        wanted = Wanted(groups.rows, WHOLE, low, high, groups.sizes, t_of_each)
        about = partial(_nothing_yet, look, many)
        return (yield from self._decide(groups.cells, wanted, about))


def _nothing_yet(look: Look, many: int, done: float) -> About:
    return look(done, [None] * many)


def _note(found: list[Values], group: Codes, value: Codes, size: Codes) -> None:
    for mine, what, many in zip(group.tolist(), value.tolist(), size.tolist(), strict=True):
        if many:
            found[mine].append((what, many))
