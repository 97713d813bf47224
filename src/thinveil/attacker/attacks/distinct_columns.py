"""The values of whole columns that occur, where answers tell none, some or all.

All columns are searched side by side, each in many lines (`line_search`) that learn how dense
values lie where they look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from thinveil.attacker.attacks.witness_cut import Cut
from thinveil.attacker.engines.line_search import Frontiers
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Attack, Axis, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Floats, QueryBatch
from thinveil.language.schema import INFINITE, LOWEST, MISSING

_PARTS: Final = 256  # into so many lines a domain may be cut before anything is known of it
_EXPECTED: Final = 12.0  # a line that seems to hold more values is shared out
_SHAPE: Final = 2.0  # how firmly the gap between values is believed to be what it was
_FADING: Final = 0.5  # how much of its logarithm is remembered at the next value
_TRUSTED: Final = 2048  # and tells of no more than this many others
_MOST: Final = 9e18  # about the largest number that a place can be
Stretch = tuple[int, int, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """The values of one column that occur, in order, missing first."""

    axis: Axis
    steps: Codes  # the values, in steps of the axis
    sides: tuple[Codes, Codes] | None  # those on either side of the cut, of the column that has one
    bits: float  # what all this was worth under the beliefs it was found with
    over: bool = True  # whether these are all values

    def low(self, place: Codes) -> Codes:
        """Return the codes where values begin."""
        return scaled(self.steps[place], self.axis.width)

    def high(self, place: Codes) -> Codes:
        """Return the codes where values end."""
        step = self.steps[place]
        missing = step == MISSING
        return scaled(np.where(missing, LOWEST, np.where(missing, 0, step) + 1), self.axis.width)


@dataclass(slots=True)
class _Column:
    """A column, or the part of it on one side of a cut, and what is known of its values."""

    axis: Axis
    codes: tuple[int, int] = MISSING, INFINITE
    found: list[int] = field(default_factory=list)
    bits: float = 0.0
    over: bool = False

    @property
    def base(self) -> int:
        return self.axis.limits[0]

    @property
    def size(self) -> int:
        lower, upper = self.axis.limits
        return max(upper - lower + 1, 0)


class _Lines(Frontiers):
    """Lines of columns; places count from the lowest possible value."""

    def __init__(
        self, columns: Sequence[_Column], stretches: Sequence[Sequence[Stretch]], records: int
    ) -> None:
        self._columns = columns
        parts = [(owner, *each) for owner, mine in enumerate(stretches) for each in mine]
        owner, low, end, known = np.array(parts, np.int64).reshape(-1, 4).T
        self._size = np.array([max(each.size, 1) for each in columns], np.float64)
        trials = np.maximum(self._size[owner] / 2, 1.0)
        super().__init__(owner, low, end, known == 1, np.ones(len(parts)), trials)
        parts_of = min(_PARTS, max(records // 4, 1))
        self._wide = np.array([max(column.size // parts_of, 1) for column in columns], np.int64)
        self._left = np.array([records - len(column.found) for column in columns], np.int64)
        kinds = [(each.axis.column, each.axis.width, each.base, *each.codes) for each in columns]
        self._kinds = np.array(kinds, np.int64).reshape(-1, 5)

    def batch(self, cells: Cells, rows: Codes, about: Callable[[float], About]) -> QueryBatch:
        """Ask whether lines have anything up to where they are cut."""
        owner, none = self.owner[rows], np.zeros(len(rows), np.int64)
        column, width, base, first, end = self._kinds[owner].T
        low = np.maximum(scaled(base + self.low[rows], width), first)
        high = np.minimum(scaled(base + self.cut[rows], width), end)
        share = (self.end[rows] - self.low[rows]) / self._size[owner]
        left = np.bincount(owner, share, len(self._columns)).mean()
        told = about(float(np.clip(1 - left, 0, 1)))
        return QueryBatch(cells, none, column, low, high, none, about=told)

    def mass(self, rows: Codes, low: Codes, high: Codes) -> Floats:
        """Every place counts the same."""
        return (high - low).astype(np.float64)

    def reach(self, rows: Codes, low: Codes, mass: Floats) -> Codes:
        """Every place counts the same."""
        return low + np.minimum(mass, _MOST).astype(np.int64)

    def found(self, rows: Codes, places: Codes) -> None:
        """Note values; how dense they lie changes from here to there."""
        for owner, place in zip(self.owner[rows].tolist(), places.tolist(), strict=True):
            column = self._columns[owner]
            column.found.append(column.base + place)
        self._left -= np.bincount(self.owner[rows], minlength=len(self._left))
        gap = self.trials[rows] / self.hits[rows]
        gap = gap**_FADING * (places + 1.0 - self.last[rows]) ** (1 - _FADING)
        self.last[rows] = places + 1
        self.hits[rows] = _SHAPE - 1  # this value is about to be counted
        self.trials[rows] = np.maximum(_SHAPE * gap - 1, 0.5)

    def charge(self, rows: Codes, bits: Floats) -> None:
        """Add what answers were worth to their columns."""
        told = np.bincount(self.owner[rows], bits, len(self._columns))
        for column, more in zip(self._columns, told.tolist(), strict=True):
            column.bits += more

    def split(self, rows: Codes) -> tuple[Codes, Codes]:
        """Share out lines that are wide or seem to hold much.

        How dense values lie tells little of what is far away, and there are no more values than
        records: beyond as many as that a line begins anew.
        """
        owner, known = self.owner[rows], self.known[rows]
        first = np.where(known, self.high[rows], self.low[rows])
        left = self.end[rows] - first
        gap = self.trials[rows] / self.hits[rows]
        trusted = np.minimum(self._left[owner], _TRUSTED)
        much = (left > _EXPECTED * gap) & (trusted > _EXPECTED)
        far = much & (left > 2 * trusted * gap)
        split = (left > 1) & (much | (known & (left >= self._wide[owner])))
        near = np.where(far, np.maximum(trusted * gap, 1), left // 2)[split].astype(np.int64)
        low = first[split] + np.where(known[split], 0, near)
        fresh = self.add(rows[split], low)
        strange = fresh[(far & ~known)[split]]
        length = self.end[strange] - self.low[strange]
        self.trials[strange] = self.hits[strange] * length / _EXPECTED
        return rows[split], fresh


def domains(
    facts: PublicFacts,
    axes: Sequence[Axis],
    cut: Cut | None,
    care: Care,
    about: Callable[[Callable[[], list[Domain]], float], About],
    in_turn: bool = False,
) -> Attack[list[Domain]]:
    """Find all values of each column: side by side, or in turn, the smallest domain first.

    Where "none" and "all" look alike, values are looked for on one side of a cut, and then among
    all records between those that were found: no stretch there can hold all records.

    Rounds are described by a look at what is known so far, and the settled share.
    """
    everything = Cells.everything()
    parts = [
        [_Column(axis)]
        if cut is None or axis.column != cut.column
        else [_Column(cut.part(axis, side), codes) for side, codes in enumerate(cut.sides)]
        for axis in axes
    ]

    def look() -> list[Domain]:
        return [_domain(axis, mine) for axis, mine in zip(axes, parts, strict=True)]

    told = partial(about, look)
    if cut is None:
        together = [[mine for (mine,) in parts]]
        if in_turn:
            together = [[each] for each in sorted(together[0], key=lambda each: each.size)]
        for columns in together:
            yield from _search(facts, everything, columns, care, told)
        return look()
    own = [column for mine in parts if len(mine) == 2 for column in mine]
    others = [mine[0] for mine in parts if len(mine) == 1]
    first = np.array([cut.sides[0]], np.int64)
    half = Cells((cut.column,), first[:, :1], first[:, 1:])
    yield from _search(facts, everything, own, care, told)
    yield from _search(facts, half, others, care, told, last=False)
    yield from _search(facts, everything, others, care, told, between=True)
    return look()


def _domain(axis: Axis, parts: Sequence[_Column]) -> Domain:
    steps = [np.array(sorted(part.found), np.int64) for part in parts]
    sides = (steps[0], steps[1]) if len(steps) == 2 else None
    bits, over = sum(part.bits for part in parts), all(part.over for part in parts)
    return Domain(axis, np.unique(np.concatenate(steps)), sides, bits, over)


def _search(
    facts: PublicFacts,
    cells: Cells,
    columns: Sequence[_Column],
    care: Care,
    about: Callable[[float], About],
    between: bool = False,
    last: bool = True,
) -> Attack[None]:
    """Find values of columns, all of them or those between what was found before.

    Unless more will be searched, columns without a line that is open are over.
    """
    zones = yield from _missing(facts, cells, columns, care, about)
    stretches = []
    for column, zone in zip(columns, zones, strict=True):
        if zone == NOISY or (not between and (zone == ABOVE or not column.size)):
            column.found.append(MISSING)
        if between:
            ends = sorted(step - column.base for step in column.found if step != MISSING)
            gaps = pairwise([-1, *ends, column.size])
            stretches.append([(low + 1, end, False) for low, end in gaps if low + 1 < end])
        else:
            known = zone == BELOW or (facts.claim.reads_exactly and zone == NOISY)
            some = column.size and zone != ABOVE
            stretches.append([(0, column.size, known)] if some else [])
    lines = _Lines(columns, stretches, facts.records)
    rows = lines.begin(np.arange(len(lines.owner)))
    while len(rows):
        told = yield from zones_of(facts, lines.batch(cells, rows, about), care)
        rows = lines.told(rows, told != BELOW, told == ABOVE)
        for owner in np.setdiff1d(np.arange(len(columns)), lines.owner[rows]).tolist():
            columns[owner].over = last
    for column in columns:
        column.over = last


def _missing(
    facts: PublicFacts,
    cells: Cells,
    columns: Sequence[_Column],
    care: Care,
    about: Callable[[float], About],
) -> Attack[list[int]]:
    """Tell of each column whether no value is missing, some are, or all."""
    zones = np.full(len(columns), BELOW)
    asked = [
        place
        for place, each in enumerate(columns)
        if each.axis.missing and each.size and MISSING not in each.found
    ]
    if asked:
        column = np.array([columns[place].axis.column for place in asked], np.int64)
        none = np.zeros_like(column)
        low, high = none + MISSING, none + LOWEST
        batch = QueryBatch(cells, none, column, low, high, none, about=about(0.0))
        zones[asked] = yield from zones_of(facts, batch, care)
        for place in asked:
            columns[place].bits += 1.0
    return zones.tolist()
