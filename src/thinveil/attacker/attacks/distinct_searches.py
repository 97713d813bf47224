"""Which records exist: all that Bootstrap DP shows (paper, section on Bootstrap DP).

An answer is noisy where some but not all records of the table satisfy the predicate; it is
exactly 0 where none does and exactly 1 where all do. So existence is read off one answer, and
the distinct records follow by splitting ranges; how often a record occurs stays unknown.

A mechanism that is always noisy makes "none" and "all" look alike. There the attack first
looks for a cut with records on both sides: within one side, "all" is impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from thinveil.attacker.attacks.table import cell_of
from thinveil.attacker.attacks.witness_cut import Box, Cut, Job, find_cut, labelled, one, side_jobs
from thinveil.attacker.doubling import doubled, within
from thinveil.attacker.engines.coroutines import WHOLE_CELL, Work, side_by_side
from thinveil.attacker.engines.protocol import SOME, Cohorts, Hints, Look
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Attack, Axis, Search, Values
from thinveil.errors import UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Flags
from thinveil.language.schema import INFINITE, LOWEST, MISSING

_GAP: Final = (MISSING, LOWEST)
_VALUES: Final = (LOWEST, INFINITE)
_EVERYTHING: Final = (MISSING, INFINITE)


def smallest_first(low: int, end: int, found: Values) -> Search[Values]:
    """Find all values in a range that is known to hold some, the smallest first.

    The range is halved down to its smallest value; the upper halves wait, the nearest is
    next. One question tells whether anything is left at all.
    """
    waiting: list[tuple[int, int]] = []
    high = end
    while True:
        while high - low > 1:
            middle = (low + high) // 2
            zone = yield low, middle, 0
            if zone == BELOW:
                low = middle
                continue
            if zone == NOISY:
                waiting.append((middle, high))
            else:
                waiting.clear()  # all records of the table are in the lower half
            high = middle
        found.append((low, 1))
        if not waiting or (yield low + 1, end, 0) == BELOW:
            return found
        while len(waiting) > 1:
            low, high = waiting.pop()
            if (yield low, high, 0) != BELOW:
                break
        else:
            low, high = waiting.pop()


def column(axis: Axis) -> Search[Values]:
    """Find all values of a group that has some record, missing ones first.

    Where "none" and "all" look alike, the group must not hold all records of the table.
    """
    lower, upper = axis.limits
    found: Values = []
    if lower > upper:  # nothing but missing values is possible
        return [(MISSING, 1)]
    if axis.missing:
        zone = yield (*_GAP, 0)
        if zone != BELOW:
            found.append((MISSING, 1))
        if zone == ABOVE or (zone == NOISY and (yield (*_VALUES, 0)) == BELOW):
            return found
    return (yield from smallest_first(lower, upper + 1, found))


def _reach(axis: Axis) -> Search[int]:
    """Double until no value lies outside -reach .. reach - 1: first above it, then below."""
    above = yield from doubled(axis.width, lambda reach: _some(reach, INFINITE))
    return (yield from doubled(axis.width, lambda reach: _some(LOWEST, -reach), above))


def _some(low: int, high: int) -> Search[bool]:
    return (yield from one(low, high)) != BELOW


def on_side(cells: Cells, cut: Cut, side: Codes) -> Cells:
    """Return cells, of which the first column is the cut's, each within one side of it."""
    first, end = np.array(cut.sides)[side].T
    low, high = cells.low.copy(), cells.high.copy()
    low[:, 0], high[:, 0] = np.maximum(low[:, 0], first), np.minimum(high[:, 0], end)
    return Cells(cells.columns, low, high)


class Existence:
    """An engine that tells none, some or all; values are those that occur, whatever their number.

    `care` says how sure decisions must be, where single answers do not tell.
    """

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        self.facts, self.care = facts, care
        self.cut: Cut | None = None  # one with records on both sides, once it was needed

    def check(self, axes: Sequence[Axis], groups: int) -> None:
        """Refuse nothing."""

    def _find_cut(self, so_far: Callable[[], Any]) -> Attack[None]:
        """Make sure that there is a cut where "none" and "all" look alike."""
        if self.cut is None and self.facts.claim.hides_direction:
            self.cut = yield from find_cut(self.facts, self.care, so_far)

    def limits(
        self, axes: Sequence[Axis], about: About, hints: Hints | None = None
    ) -> Attack[list[Axis]]:
        """Return axes with limits; for people they are found once it is known who is there."""
        if hints is not None:
            return list(axes)
        yield from self._find_cut(about.so_far)
        return (yield from self._limits(axes, about))

    def _limits(self, axes: Sequence[Axis], about: About) -> Attack[list[Axis]]:
        """Double until nothing lies beyond, on each side of a cut if there is one."""
        unknown = [axis for axis in axes if axis.lower is None]
        jobs = [job for axis in unknown for job in self._jobs(_reach, {}, axis)]
        reached = yield from side_jobs(self.facts, jobs, lambda *_: about, self.care)
        farthest: dict[int, int] = {}
        for job, reach in zip(jobs, reached, strict=True):
            farthest[job.axis.column] = max(farthest.get(job.axis.column, 1), reach)
        return [
            within(axis, farthest[axis.column]) if axis.lower is None else axis for axis in axes
        ]

    def _jobs(
        self, search: Callable[[Axis], Search[Any]], box: Box, axis: Axis, apart: bool = True
    ) -> list[Job]:
        """Return the search of a box, or one for each side of a cut if there is one."""
        if self.cut is None or not apart:
            return [Job(search(axis), box, axis)]
        parts = [search(self.cut.part(axis, side)) for side in (0, 1)]
        return [self.cut.job(part, box, axis, side) for side, part in enumerate(parts)]

    def more_than(self, groups: Cohorts, steps: Sequence[int], look: Look) -> Attack[Flags]:
        """Tell whether any record is there; more is not shown.

        Raises:
            UsageError: More is asked for.
        """
        if any(steps):
            raise UsageError(f"{self.facts.claim.name} shows which records exist, not how many")
        counts = yield from self.count(groups, look)
        return np.repeat(counts[:, None] != 0, len(steps), axis=1)

    def count(self, groups: Cohorts, look: Look, few: bool = False) -> Attack[Codes]:
        """Tell none, some or all of each group; where none and all look alike, by a cut."""
        so_far = look(0.0, [None] * len(groups.rows)).so_far
        zones = yield from self._zones(groups.cells, groups.rows, so_far)
        quiet = np.flatnonzero(zones == BELOW)
        if self.facts.claim.hides_direction and len(quiet):
            yield from self._find_cut(so_far)
            assert self.cut is not None
            first, end = self.cut.sides[0]
            halves = []
            for box in _boxes(groups, quiet):
                low, high = box.get(self.cut.column, _EVERYTHING)
                halves.append({**box, self.cut.column: (max(low, first), min(high, end))})
            cells, constant = cell_of(self.facts, halves)
            rows = np.flatnonzero([always is None for always in constant])
            sides = yield from self._zones(cells, rows, so_far)
            zones[quiet[rows[sides == NOISY]]] = ABOVE
        return np.array([0, SOME, self.facts.records])[zones]

    def _zones(self, cells: Cells, rows: Codes, so_far: Callable[[], Any]) -> Attack[Codes]:
        """Ask one question about each of some cells."""
        work = [Work(one(*_EVERYTHING), row, WHOLE_CELL) for row in rows.tolist()]
        look = labelled("existence", so_far)
        told = yield from side_by_side(self.facts, cells, work, look, self.care)
        return np.array(told, np.int64)

    def values(
        self, groups: Cohorts, axes: Sequence[Axis], look: Look, hints: Hints | None = None
    ) -> Attack[list[Values]]:
        """Find the values that occur in each group.

        Where the direction is hidden and a group is the whole table, both sides of a cut are
        searched.
        """
        every = groups.sizes == self.facts.records
        so_far = look(0.0, [None] * (len(groups.rows) * len(axes))).so_far
        if every.any() or any(axis.lower is None for axis in axes):
            yield from self._find_cut(so_far)
        axes = yield from self._limits(axes, About("finding bounds", 0.0, so_far))
        boxes = zip(_boxes(groups, np.arange(len(groups.rows))), every.tolist(), strict=True)
        jobs = [self._jobs(column, box, axis, apart) for box, apart in boxes for axis in axes]
        owner = [place for place, mine in enumerate(jobs) for _ in mine]

        def merged(results: Sequence[Values | None]) -> list[Any]:
            found: list[Any] = [[] for _ in jobs]
            for each, values in zip(owner, results, strict=True):
                unknown = values is None or found[each] is None
                found[each] = None if unknown else sorted({*found[each], *(values or ())})
            return found

        flat = [job for mine in jobs for job in mine]
        results = yield from side_jobs(
            self.facts, flat, lambda done, seen: look(done, merged(seen)), self.care
        )
        return merged(results)


def _boxes(groups: Cohorts, which: Codes) -> list[Box]:
    """Return groups as boxes."""
    cells, rows = groups.cells, groups.rows[which]
    ends = np.stack([cells.low[rows], cells.high[rows]], axis=2).tolist()
    return [dict(zip(cells.columns, map(tuple, each), strict=True)) for each in ends]
