"""Which records exist: all that Bootstrap DP shows (paper, section on Bootstrap DP).

An answer is noisy where some but not all records of the table satisfy the predicate; it is
exactly 0 where none does and exactly 1 where all do. So existence is read off one answer, and
the distinct records follow by splitting ranges; how often a record occurs stays unknown.

A mechanism that is always noisy makes "none" and "all" look alike. There the attack first
looks for a cut with records on both sides: within one side, "all" is impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from thinveil.attacker.care import Care
from thinveil.attacker.evidence import ABOVE, BELOW, NOISY
from thinveil.attacker.found import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.attacker.search import Attack, Axis, Search, Values, Work, axes_of, side_by_side
from thinveil.attacker.table import WHOLE_CELL, about_depth, cell_of, column_found, in_order, split
from thinveil.errors import EvidenceError, Undecided
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING

_MOST_CUTS: Final = 4096
Person = dict[int, int]
Range = tuple[int, int]
_GAP: Final = (MISSING, LOWEST)
_VALUES: Final = (LOWEST, INFINITE)


def smallest_first(ranges: Sequence[Range], found: Values) -> Search[Values]:
    """Find all values in ranges that are known to hold some, the smallest first.

    A range is halved down to its smallest value; the upper halves wait, the nearest is next.
    One question tells whether anything is left at all.
    """
    for low, end in ranges:
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
                break
            while len(waiting) > 1:
                low, high = waiting.pop()
                if (yield low, high, 0) != BELOW:
                    break
            else:
                low, high = waiting.pop()
    return found


def column(axis: Axis, found: Values, cut: int | None = None) -> Search[Values]:
    """Find all values of a group that has some record, missing ones first.

    Args:
        axis: The attribute.
        found: Values are added here as they come.
        cut: A cut with records on both sides, where one had to be found beforehand. MISSING
            stands for the cut between missing values and all others.
    """
    lower, upper = axis.limits
    ranges = [(lower, upper + 1)]
    if cut is not None and cut != MISSING:
        ranges = [(lower, cut), (cut, upper + 1)]
    if axis.missing:
        zone = NOISY if cut == MISSING else (yield (*_GAP, 0))
        if zone != BELOW:
            found.append((MISSING, 1))
        if zone == ABOVE or lower > upper:
            return found
        if zone == NOISY and cut is None and (yield (*_VALUES, 0)) == BELOW:
            return found
    return (yield from smallest_first(ranges, found))


@dataclass(frozen=True, slots=True)
class Cut:
    """A place with records on both sides: some column below a cut (or missing) and not."""

    column: int
    at: int
    width: int

    @property
    def side(self) -> Range:
        """One of the two sides, as a range of codes."""
        return _GAP if self.at == MISSING else (LOWEST, self.at * self.width)


def _cuts(axis: Axis) -> list[int]:
    """Return cuts to try on an axis, the coarsest first; all of them where they are few."""
    lower, upper = axis.limits
    cuts: list[int] = [MISSING] if axis.missing else []
    level = [(lower, upper + 1)]
    while level and len(cuts) < _MOST_CUTS:
        halves = []
        for low, high in level:
            if high - low > 1:
                middle = (low + high) // 2
                cuts.append(middle)
                halves += [(low, middle), (middle, high)]
        level = halves
    return cuts[:_MOST_CUTS]


def find_cut(
    facts: PublicFacts, axes: Sequence[Axis], care: Care, so_far: Callable[[], Any]
) -> Attack[Cut]:
    """Find a cut with records on both sides, one column after the other.

    Raises:
        Undecided: There is none; all records look equal, and nothing more can be learned.
    """
    asked = 0
    for axis in sorted((each for each in axes if each.lower is not None), key=lambda a: a.size):
        cuts = _cuts(axis)
        if not cuts:
            continue
        asked += len(cuts)
        work = [Work(_is_noisy(axis, cut), 0, axis) for cut in cuts]
        label = f"looking for a cut: {facts.schema[axis.column].name}"
        noisy = yield from side_by_side(
            facts, Cells.everything(), work, about_depth(label, 0, 1, lambda _: so_far()), care
        )
        if any(noisy):
            return Cut(axis.column, cuts[noisy.index(True)], axis.width)
    raise Undecided(
        f"no usable difference was found: none of {asked:,} cuts has records on both sides, so "
        "all records look equal, and this mechanism shows nothing more of such a table"
    )


def _is_noisy(axis: Axis, cut: int) -> Search[bool]:
    low, high = _GAP if cut == MISSING else (axis.limits[0], cut)
    return (yield low, high, 0) == NOISY


def _ready(
    facts: PublicFacts, axes: Sequence[Axis], care: Care, so_far: Any
) -> Attack[tuple[list[Axis], Cut | None]]:
    """Return axes with limits, and a cut where the mechanism makes one necessary."""
    cut = None
    frame = Cells.everything()
    if facts.claim.hides_direction:
        cut = yield from find_cut(facts, axes_of(facts), care, so_far)
        low, high = cut.side
        other = (LOWEST, INFINITE) if cut.at == MISSING else (high, INFINITE)
        frame = Cells((cut.column,), np.array([[low], [other[0]]]), np.array([[high], [other[1]]]))
    unknown = [axis for axis in axes if axis.lower is None]
    reached = yield from side_by_side(
        facts,
        frame,
        [Work(_reach(axis), row, axis) for axis in unknown for row in range(len(frame))],
        lambda _, __: About("finding bounds", 0.0, so_far),
        care,
    )
    known = {}
    for place, axis in enumerate(unknown):
        reach = max(reached[place * len(frame) : (place + 1) * len(frame)])
        ends = (1 - LIMIT) // axis.width, (LIMIT - 1) // axis.width
        known[axis.column] = axis.within(max(-reach, ends[0]), min(reach - 1, ends[1]))
    return [known.get(axis.column, axis) for axis in axes], cut


def _reach(axis: Axis) -> Search[int]:
    """Double until no value lies outside -reach .. reach - 1."""
    reach = 1
    for low, high in ((1, INFINITE), (LOWEST, -1)):
        while (yield (reach if low == 1 else LOWEST, high if low == 1 else -reach, 0)) != BELOW:
            reach *= 2
            if reach * axis.width >= 2 * LIMIT:
                raise EvidenceError("the answers leave some records outside every range of values")
    return reach


def table(
    facts: PublicFacts,
    order: Sequence[int] | None = None,
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[TableFound]:
    """Find the distinct records of a table, attribute after attribute."""
    care = care or Care()
    axes = axes_of(facts, widths)
    nothing = TableFound(
        columns=tuple(axis.column for axis in axes),
        codes=np.zeros((1, len(axes)), np.int64),
        known=np.zeros(1, np.int64),
        counts=np.ones(1, np.int64),
        widths=tuple(axis.width for axis in axes),
        distinct=True,
    )
    axes, cut = yield from _ready(facts, axes, care, lambda: nothing)
    axes = in_order(axes, order)
    if cut is not None:  # the column that splits the table comes first
        axes.sort(key=lambda axis: axis.column != cut.column)
    columns = tuple(axis.column for axis in axes)
    all_widths = tuple(axis.width for axis in axes)
    codes = np.empty((1, 0), np.int64)

    def found(codes: Codes, known: Codes) -> TableFound:
        rest = np.zeros((len(codes), len(axes) - codes.shape[1]), np.int64)
        one = np.ones(len(codes), np.int64)
        return TableFound(columns, np.hstack([codes, rest]), known, one, all_widths, True)

    def so_far(codes: Codes, axis: Axis, results: Sequence[Any]) -> TableFound:
        known = np.array([result is not None for result in results], np.int64)
        open_ends = [[(0, 1)] if result is None else result for result in results]
        parent, codes, _ = split(codes, axis, open_ends)
        return found(codes, codes.shape[1] - 1 + known[parent])

    for depth, axis in enumerate(axes):
        label = f"attribute {depth + 1} of {len(axes)}: {facts.schema[axis.column].name}"
        first = _cut_at(cut, axis) if depth == 0 else None
        results = yield from side_by_side(
            facts,
            Cells.points(columns[:depth], codes, all_widths[:depth]),
            [Work(column(axis, [], first), group, axis) for group in range(len(codes))],
            about_depth(label, depth, len(axes), partial(so_far, codes, axis)),
            care,
        )
        _, codes, _ = split(codes, axis, results)
    return found(codes, np.full(len(codes), len(axes)))


def _cut_at(cut: Cut | None, axis: Axis) -> int | None:
    """Return a cut in the steps of an axis, which may be coarser than the cut's own."""
    if cut is None or cut.column != axis.column or cut.at == MISSING:
        return None if cut is None or cut.column != axis.column else cut.at
    return cut.at * cut.width // axis.width if cut.at * cut.width % axis.width == 0 else None


def columns(
    facts: PublicFacts,
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[ColumnsFound]:
    """Find the distinct values of columns."""
    care = care or Care()
    axes = [axes_of(facts, widths)[each] for each in wanted]
    axes, cut = yield from _ready(facts, axes, care, lambda: None)
    cells, rows = _sides(cut, axes)
    found: list[Values] = [[] for _ in rows]

    def so_far() -> ColumnsFound:
        merged: dict[int, set[int]] = {}
        for (axis, _), values in zip(rows, found, strict=True):
            merged.setdefault(axis.column, set()).update(step for step, _ in values)
        return ColumnsFound(
            tuple(
                _distinct(axis, sorted(merged[axis.column]))
                for axis in axes
                if merged.get(axis.column)
            )
        )

    yield from side_by_side(
        facts,
        cells,
        [
            Work(_column_of_side(axis, values, cut, row), row, axis)
            for (axis, row), values in zip(rows, found, strict=True)
        ],
        lambda done, _: About("columns", done, so_far),
        care,
    )
    return so_far()


def _sides(cut: Cut | None, axes: Sequence[Axis]) -> tuple[Cells, list[tuple[Axis, int]]]:
    """Return the cells that columns are searched in: the whole table, or a cut's two sides."""
    if cut is None:
        return Cells.everything(), [(axis, 0) for axis in axes]
    low, high = cut.side
    start = LOWEST if cut.at == MISSING else high
    whole = (MISSING, INFINITE)
    ends = np.array([whole, (low, high), (start, INFINITE)])
    cells = Cells((cut.column,), ends[:, :1], ends[:, 1:])
    return cells, [
        (axis, row) for axis in axes for row in ((0,) if axis.column == cut.column else (1, 2))
    ]


def _column_of_side(axis: Axis, found: Values, cut: Cut | None, row: int) -> Search[Values]:
    return column(axis, found, _cut_at(cut, axis) if row == 0 else None)


def _distinct(axis: Axis, steps: Sequence[int]) -> ColumnFound:
    found = column_found(axis, [(step, 1) for step in steps])
    return replace(found, distinct=True)


def exists(
    facts: PublicFacts, box: dict[int, tuple[int, int]], care: Care | None = None
) -> Attack[CountFound]:
    """Tell whether no record, some or every record satisfies a predicate."""
    care = care or Care()
    cells, constant = cell_of(facts, [box])
    if constant[0] is not None:
        return CountFound(facts.records * constant[0], bool(constant[0]))
    zone = (yield from _zones(facts, cells, care, lambda: CountFound(None)))[0]
    if zone == NOISY:
        return CountFound(None, True)
    return CountFound(0, False) if zone == BELOW else CountFound(facts.records, True)


def membership(
    facts: PublicFacts, people: Sequence[Person], care: Care | None = None
) -> Attack[PeopleFound]:
    """Tell for each person whether anybody in the table fits, one question each."""
    care = care or Care()
    cells, _ = cell_of(facts, [{c: (code, code + 1) for c, code in who.items()} for who in people])
    nobody = PeopleFound(tuple(PersonFound() for _ in people))
    zones = yield from _zones(facts, cells, care, lambda: nobody)
    return PeopleFound(tuple(PersonFound(present=zone != BELOW) for zone in zones))


def _zones(facts: PublicFacts, cells: Cells, care: Care, so_far: Any) -> Attack[list[int]]:
    """Tell none, some or all for each cell; "none" and "all" are told apart where hidden."""
    cut = None
    if facts.claim.hides_direction:
        cut = yield from find_cut(facts, axes_of(facts), care, so_far)
    work = [Work(_one(MISSING, INFINITE), row, WHOLE_CELL) for row in range(len(cells))]
    asked = yield from side_by_side(
        facts, cells, work, lambda done, _: About("existence", done, so_far), care
    )
    zones: list[int] = asked
    if cut is None or cut.column in cells.columns:
        return zones  # where the cut's own column is fixed, no cell holds all records
    quiet = [row for row, zone in enumerate(zones) if zone == BELOW]
    axis = Axis(cut.column, 0, 0)
    low, high = cut.side
    sides = yield from side_by_side(
        facts,
        cells,
        [Work(_one(low, high), row, axis) for row in quiet],
        lambda done, _: About("existence", done, so_far),
        care,
    )
    for row, zone in zip(quiet, sides, strict=True):
        zones[row] = ABOVE if zone == NOISY else BELOW
    return zones


def _one(low: int, high: int) -> Search[int]:
    return (yield low, high, 0)


def attributes(
    facts: PublicFacts,
    people: Sequence[Person],
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[PeopleFound]:
    """Find the values that occur among the records that fit each person."""
    care = care or Care()
    matched = yield from membership(facts, people, care)
    axes = [axes_of(facts, widths)[each] for each in wanted]
    axes, _ = yield from _ready(facts, axes, care, lambda: matched)
    cells, _ = cell_of(facts, [{c: (code, code + 1) for c, code in who.items()} for who in people])
    there = [row for row, person in enumerate(matched.people) if person.present]
    pairs = [(row, axis) for row in there for axis in axes]

    def so_far(results: Sequence[Any]) -> PeopleFound:
        people = list(matched.people)
        for (row, axis), values in zip(pairs, results, strict=True):
            if values is not None:
                mine = _distinct(axis, sorted(step for step, _ in values))
                people[row] = replace(people[row], values=(*people[row].values, mine))
        return PeopleFound(tuple(people))

    results = yield from side_by_side(
        facts,
        cells,
        [Work(column(axis, []), row, axis) for row, axis in pairs],
        lambda done, results: About("attributes", done, lambda: so_far(results)),
        care,
    )
    return so_far(results)
