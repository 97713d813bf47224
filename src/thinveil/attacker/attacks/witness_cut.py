"""Cuts with records on both sides, for mechanisms that make "none" and "all" look alike.

Within one side of a cut no predicate holds for all records of the table, so there "not
noisy" means that none does. A search of the whole table becomes two, one on each side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from thinveil.attacker.attacks.table import cell_of, in_order
from thinveil.attacker.engines.coroutines import Work, side_by_side
from thinveil.attacker.engines.protocol import Look
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import BELOW, NOISY, Attack, Axis, Search, axes_of, scaled
from thinveil.errors import Undecided
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING

_MOST_CUTS: Final = 4096
Range = tuple[int, int]
Box = dict[int, Range]


@dataclass(frozen=True, slots=True)
class Job:
    """A search among the records of a box."""

    search: Search[Any]
    box: Box
    axis: Axis


@dataclass(frozen=True, slots=True)
class Cut:
    """A place with records on both sides: below a code of some column, and from it on.

    Missing values are below every code; LOWEST cuts between them and all others.
    """

    column: int
    at: int

    @property
    def sides(self) -> tuple[Range, Range]:
        """Both sides, as ranges of codes."""
        return (MISSING, self.at), (self.at, INFINITE)

    def part(self, axis: Axis, side: int) -> Axis:
        """Return the part of an axis that one side can have values in, as far as that is known."""
        if axis.column != self.column or axis.lower is None:
            return axis
        lower, upper = axis.limits
        if side:
            return replace(axis, lower=max(lower, self.at // axis.width), missing=False)
        return replace(axis, upper=min(upper, (self.at - 1) // axis.width))

    def job(self, search: Search[Any], box: Box, axis: Axis, side: int) -> Job:
        """Return a search among the records of a box that lie on one side."""
        if axis.column != self.column:
            return Job(search, {**box, self.column: self.sides[side]}, axis)
        return Job(self.within(search, axis.width, side), box, replace(axis, width=1))

    def within(self, search: Search[Any], width: int, side: int) -> Search[Any]:
        """Run a search of steps on the cut's own column in codes, within one side of it."""
        first, end = self.sides[side]
        zone = None
        while True:
            try:
                low, high, b = next(search) if zone is None else search.send(zone)
            except StopIteration as stop:
                return stop.value
            low, high = scaled(np.array([low, high]), width).tolist()
            low, high = max(low, first), min(high, end)
            zone = (yield low, high, b) if low < high else BELOW


def _cuts(axis: Axis) -> Iterator[list[int]]:
    """Yield codes to cut an axis at, each list finer than the one before."""
    if axis.lower is None or axis.upper is None:
        powers = [2**place for place in range(62)]
        ends = [1 - LIMIT, *(-each for each in reversed(powers)), 0, *powers, LIMIT]
        cuts = ends[1:-1]
    else:
        ends = [axis.lower, axis.upper + 1]
        cuts = []
    if axis.missing and ends[0] < ends[-1]:
        cuts = [LOWEST, *cuts]
    if cuts:
        yield cuts
    while True:
        middles = [(low + high) // 2 for low, high in pairwise(ends)]
        cuts = sorted(set(middles) - set(ends))
        if not cuts:
            return
        yield cuts
        ends = sorted({*ends, *cuts})


def one(low: int, high: int) -> Search[int]:
    """Ask whether none, some or all records lie in a range."""
    return (yield low, high, 0)


def labelled(label: str, so_far: Callable[[], Any]) -> Look:
    """Describe rounds by a label alone."""
    return lambda done, _: About(label, done, so_far)


def find_cut(facts: PublicFacts, care: Care, so_far: Callable[[], Any]) -> Attack[Cut]:
    """Find a cut with records on both sides, one column after the other.

    Raises:
        Undecided: There is none; all records look equal, and nothing more can be learned.
    """
    tried, finest = 0, True
    for axis in in_order(axes_of(facts), None):
        label = f"looking for a cut: {facts.schema[axis.column].name}"
        look = labelled(label, so_far)
        left = _MOST_CUTS
        for cuts in _cuts(axis):
            cuts = cuts[:left]
            work = [Work(one(MISSING, cut), 0, axis) for cut in cuts]
            noisy = yield from side_by_side(facts, Cells.everything(), work, look, care)
            if NOISY in noisy:
                return Cut(axis.column, cuts[noisy.index(NOISY)])
            tried += len(cuts)
            left -= len(cuts)
            if not left:
                finest = False
                break
    so = "this attack goes no further; records may differ between the cuts it tried"
    if finest:
        so = "all records look equal, and this mechanism shows nothing more of such a table"
    raise Undecided(
        f"no cut was found to go on from: none of {tried:,} has records on both sides, so {so}"
    )


def side_jobs(facts: PublicFacts, jobs: Sequence[Job], look: Look, care: Care) -> Attack[list[Any]]:
    """Run searches side by side, boxes of the same columns at a time, those of fewest first."""
    results: list[Any] = [None] * len(jobs)
    before = 0
    for columns in sorted({tuple(job.box) for job in jobs}, key=len):
        numbers = [number for number, job in enumerate(jobs) if tuple(job.box) == columns]
        part = [jobs[number] for number in numbers]
        rows: dict[tuple[tuple[int, Range], ...], int] = {}
        row = [rows.setdefault(tuple(job.box.items()), len(rows)) for job in part]
        cells, _ = cell_of(facts, [dict(key) for key in rows])
        work = [Work(job.search, r, job.axis) for r, job in zip(row, part, strict=True)]
        look_on = partial(_look, look, results, numbers, before)
        _place(results, numbers, (yield from side_by_side(facts, cells, work, look_on, care)))
        before += len(numbers)
    return results


def _look(
    look: Look, results: list[Any], numbers: list[int], before: int, done: float, some: list[Any]
) -> About:
    """Describe one part of the jobs as a part of them all."""
    _place(results, numbers, some)
    return look((before + len(numbers) * done) / len(results), results)


def _place(results: list[Any], numbers: list[int], some: list[Any]) -> None:
    for number, result in zip(numbers, some, strict=True):
        results[number] = result
