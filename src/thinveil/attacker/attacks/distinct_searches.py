"""Which records exist: all that Bootstrap DP shows (paper, section on Bootstrap DP).

An answer is noisy where some but not all records of the table satisfy the predicate; it is
exactly 0 where none does and exactly 1 where all do. So existence is read off one answer, and
the distinct records follow by splitting ranges; how often a record occurs stays unknown.

A mechanism that is always noisy makes "none" and "all" look alike. There the attack first
looks for a cut with records on both sides: within one side, "all" is impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from thinveil.attacker.attacks.table import (
    WHOLE_CELL,
    cell_of,
    column_found,
)
from thinveil.attacker.attacks.witness_cut import Box, Cut, Job, Range, find_cut, run_on_sides
from thinveil.attacker.engines.coroutines import Work, side_by_side
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.findings import (
    ColumnFound,
    CountFound,
    PeopleFound,
    PersonFound,
)
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Attack, Axis, Search, Values, axes_of
from thinveil.errors import EvidenceError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING

Person = dict[int, int]
_GAP: Final = (MISSING, LOWEST)
_VALUES: Final = (LOWEST, INFINITE)
_EVERYTHING: Final = (MISSING, INFINITE)


# ---- searches


def smallest_first(low: int, end: int, found: Values) -> Search[Values]:
    """Find all values in a range that is known to hold some, the smallest first.

    The range is halved down to its smallest value; the upper halves wait, the nearest is
    next. One question tells whether anything is left at all.
    """
    waiting: list[Range] = []
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


def column(axis: Axis, found: Values) -> Search[Values]:
    """Find all values of a group that has some record, missing ones first.

    Where "none" and "all" look alike, the group must not hold all records of the table.

    Args:
        axis: The attribute.
        found: Values are added here as they come.
    """
    lower, upper = axis.limits
    if lower > upper:  # nothing but missing values is possible
        found.append((MISSING, 1))
        return found
    if axis.missing:
        zone = yield (*_GAP, 0)
        if zone != BELOW:
            found.append((MISSING, 1))
        if zone == ABOVE or (zone == NOISY and (yield (*_VALUES, 0)) == BELOW):
            return found
    return (yield from smallest_first(lower, upper + 1, found))


def _reach(axis: Axis) -> Search[int]:
    """Double until no value lies outside -reach .. reach - 1."""
    reach = 1
    for upwards in (True, False):
        while (yield (*((reach, INFINITE) if upwards else (LOWEST, -reach)), 0)) != BELOW:
            reach *= 2
            if reach * axis.width >= 2 * LIMIT:
                raise EvidenceError("the answers leave some records outside every range of values")
    return reach


def _one(low: int, high: int) -> Search[int]:
    return (yield low, high, 0)


def _sides(cut: Cut | None) -> tuple[int | None, ...]:
    """Return the sides to search one after the other: the whole table has none."""
    return (None,) if cut is None else (0, 1)


def _column_job(axis: Axis, cut: Cut | None, side: int | None, box: Box, found: Values) -> Job:
    """Return the search for all values of a box, or of the records on one side of a cut."""
    part = axis
    if cut is not None and side is not None and axis.column == cut.column:
        part = cut.part(axis, side)
    return Job(column(part, found), box, axis, side)


def limited(
    facts: PublicFacts, axes: Sequence[Axis], cut: Cut | None, care: Care, so_far: Any
) -> Attack[list[Axis]]:
    """Return axes with limits, found by asking where they are not public."""
    unknown = [axis for axis in axes if axis.lower is None]
    sides = _sides(cut)
    reached = yield from run_on_sides(
        facts,
        [Job(_reach(axis), {}, axis, side) for axis in unknown for side in sides],
        cut,
        lambda _, __: About("finding bounds", 0.0, so_far),
        care,
    )
    known = {}
    for place, axis in enumerate(unknown):
        reach = max(reached[place * len(sides) : (place + 1) * len(sides)])
        ends = (1 - LIMIT) // axis.width, (LIMIT - 1) // axis.width
        known[axis.column] = axis.within(max(-reach, ends[0]), min(reach - 1, ends[1]))
    return [known.get(axis.column, axis) for axis in axes]


# ---- attacks


def on_side(cells: Cells, cut: Cut, side: Codes) -> Cells:
    """Return cells, of which the first column is the cut's, each within one side of it."""
    first, end = np.array(cut.sides)[side].T
    low, high = cells.low.copy(), cells.high.copy()
    low[:, 0], high[:, 0] = np.maximum(low[:, 0], first), np.minimum(high[:, 0], end)
    return Cells(cells.columns, low, high)


def _merged(lists: Sequence[Values]) -> list[int]:
    return sorted({step for values in lists for step, _ in values})


def _distinct(axis: Axis, steps: Sequence[int]) -> ColumnFound:
    found = column_found(axis, [(step, 1) for step in steps])
    return replace(found, distinct=True)


def exists(facts: PublicFacts, box: Box, care: Care | None = None) -> Attack[CountFound]:
    """Tell whether no record, some or every record satisfies a predicate."""
    zones, _ = yield from _zones(facts, [box], care or Care(), lambda: CountFound(None))
    if zones[0] == NOISY:
        return CountFound(None, True)
    return CountFound(0, False) if zones[0] == BELOW else CountFound(facts.records, True)


def membership(
    facts: PublicFacts, people: Sequence[Person], care: Care | None = None
) -> Attack[PeopleFound]:
    """Tell for each person whether anybody in the table fits, one question each."""
    nobody = PeopleFound(tuple(PersonFound() for _ in people))
    zones, _ = yield from _zones(facts, _boxes(people), care or Care(), lambda: nobody)
    return PeopleFound(tuple(PersonFound(present=zone != BELOW) for zone in zones))


def _boxes(people: Sequence[Person]) -> list[Box]:
    return [{column: (code, code + 1) for column, code in who.items()} for who in people]


def _zones(
    facts: PublicFacts, boxes: Sequence[Box], care: Care, so_far: Callable[[], Any]
) -> Attack[tuple[list[int], Cut | None]]:
    """Tell none, some or all for each box; "none" and "all" are told apart where hidden.

    Returns the cut as well, if one was needed.
    """
    zones = yield from _ask(facts, boxes, care, so_far)
    _, constant = cell_of(facts, boxes)
    quiet = [row for row, zone in enumerate(zones) if zone == BELOW and constant[row] is None]
    if not facts.claim.hides_direction or not quiet:
        return zones, None
    cut = yield from find_cut(facts, care, so_far)
    first, end = cut.sides[0]
    halves = []
    for row in quiet:
        low, high = boxes[row].get(cut.column, _EVERYTHING)
        halves.append({**boxes[row], cut.column: (max(low, first), min(high, end))})
    sides = yield from _ask(facts, halves, care, so_far)
    for row, zone in zip(quiet, sides, strict=True):
        zones[row] = ABOVE if zone == NOISY else BELOW
    return zones, cut


def _ask(
    facts: PublicFacts, boxes: Sequence[Box], care: Care, so_far: Callable[[], Any]
) -> Attack[list[int]]:
    """Ask one question about each box; what is constant over the universe is not asked."""
    cells, constant = cell_of(facts, boxes)
    zones = [ABOVE if always else BELOW for always in constant]
    rows = [row for row, always in enumerate(constant) if always is None]
    told = yield from side_by_side(
        facts,
        cells,
        [Work(_one(*_EVERYTHING), row, WHOLE_CELL) for row in rows],
        lambda done, _: About("existence", done, so_far),
        care,
    )
    for row, zone in zip(rows, told, strict=True):
        zones[row] = zone
    return zones


def attributes(
    facts: PublicFacts,
    people: Sequence[Person],
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[PeopleFound]:
    """Find the values that occur among the records that fit each person.

    Where the direction is hidden and all records of the table fit a person, both sides of a
    cut are searched.
    """
    care = care or Care()
    boxes = _boxes(people)
    nobody = PeopleFound(tuple(PersonFound() for _ in people))
    zones, cut = yield from _zones(facts, boxes, care, lambda: nobody)
    matched = [PersonFound(present=zone != BELOW) for zone in zones]
    axes = [axes_of(facts, widths)[each] for each in wanted]
    hidden = facts.claim.hides_direction
    if hidden and cut is None and (ABOVE in zones or any(axis.lower is None for axis in axes)):
        cut = yield from find_cut(facts, care, lambda: PeopleFound(tuple(matched)))
    axes = yield from limited(facts, axes, cut, care, lambda: PeopleFound(tuple(matched)))
    pairs = [
        (row, axis, side)
        for row, zone in enumerate(zones)
        if zone != BELOW
        for axis in axes
        for side in (_sides(cut) if zone == ABOVE and hidden else (None,))
    ]

    def so_far(results: Sequence[Any]) -> PeopleFound:
        found: dict[tuple[int, int], list[Any]] = {}
        for (row, axis, _), result in zip(pairs, results, strict=True):
            found.setdefault((row, axis.column), []).append(result)
        people = list(matched)
        for row, axis, side in pairs:
            lists = found[row, axis.column]
            if side != 1 and None not in lists:
                mine = _distinct(axis, _merged(lists))
                people[row] = replace(people[row], values=(*people[row].values, mine))
        return PeopleFound(tuple(people))

    results = yield from run_on_sides(
        facts,
        [_column_job(axis, cut, side, boxes[row], []) for row, axis, side in pairs],
        cut,
        lambda done, look: About("attributes", done, lambda: so_far(look())),
        care,
    )
    return so_far(results)
