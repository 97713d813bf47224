"""Attacks on mechanisms with a law of their own, that nobody here has written searches for.

Everything is made of counts: a range of values is halved, the records in its upper half are
counted, and so on down to single values. `decisions` decides each count by the law alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from thinveil.attacker.attacks.table import cell_of, column_found, in_order, nothing_of, split
from thinveil.attacker.engines.decisions import EXACTLY, Book, Wanted, decided
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.findings import (
    ColumnsFound,
    CountFound,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.attacker.terms import Attack, Axis, Person, Values, axes_of, scaled
from thinveil.errors import EvidenceError, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Cells, Codes
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING

_Look = Callable[[float], About]


class Counts:
    """Counts records in ranges of cells, by whatever law the mechanism has.

    Args:
        facts: What is public.
        care: How sure decisions must be.

    Raises:
        UsageError: The curator caches its answers, and they would have to be repeated.
    """

    def __init__(self, facts: PublicFacts, care: Care | None = None) -> None:
        if facts.policies.cache:
            raise UsageError(
                f"the mechanism {facts.claim.name} has a law of its own, and its answers must be "
                "repeated; against a curator that caches them there is no attack here"
            )
        self.facts, self.care = facts, care or Care()
        self.book = Book(facts)

    def ask(
        self,
        cells: Cells,
        column: int,
        low: Codes,
        high: Codes,
        most: Codes,
        t: int,
        about: _Look,
        cell: Codes | None = None,
    ) -> Attack[Codes]:
        """Count the records of ranges, or tell which hold more than t."""
        cell = np.arange(len(low)) if cell is None else cell
        wanted = Wanted(cell, column, low, high, most, np.full(len(low), t))
        return (yield from decided(self.facts, self.care, self.book, cells, wanted, about))

    def wholly(
        self, cells: Cells, constant: list[int | None], t: int, about: _Look
    ) -> Attack[Codes]:
        """Count the records of cells as they are; constant ones are known without asking."""
        n = self.facts.records
        known = [None if each is None else n * each for each in constant]
        found = np.array(
            [each or 0 if t == EXACTLY else int((each or 0) > t) for each in known], np.int64
        )
        rows = np.flatnonzero([each is None for each in known])
        if len(rows):
            many = len(rows)
            low, high = np.full(many, MISSING), np.full(many, INFINITE)
            found[rows] = yield from self.ask(
                cells, WHOLE, low, high, np.full(many, n), t, about, rows
            )
        return found

    def values(self, cells: Cells, axis: Axis, sizes: Codes, about: _Look) -> Attack[list[Values]]:
        """Find all values of each group of records on one axis, missing ones first."""
        found: list[Values] = [[] for _ in sizes]
        everyone = np.arange(len(sizes))
        if self.facts.claim.universe == "bounded" and axis.size == 1:
            code = MISSING if axis.missing else axis.limits[0]
            return [[(code, size)] for size in sizes.tolist()]
        left = sizes
        if axis.missing:
            gone = yield from self._missing(cells, axis, sizes, about)
            _note(found, everyone, np.full(len(sizes), MISSING), gone)
            left = sizes - gone
        lower, upper = axis.limits
        group, size = everyone, left
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
            above = yield from self.ask(
                cells,
                axis.column,
                scaled(cut, axis.width),
                scaled(high, axis.width),
                size,
                EXACTLY,
                about,
                group,
            )
            group, size = np.tile(group, 2), np.concatenate([size - above, above])
            low, high = np.concatenate([low, cut]), np.concatenate([cut, high])

    def _missing(self, cells: Cells, axis: Axis, sizes: Codes, about: _Look) -> Attack[Codes]:
        many = len(sizes)
        low, high = np.full(many, MISSING), np.full(many, LOWEST)
        return (yield from self.ask(cells, axis.column, low, high, sizes, EXACTLY, about))

    def limited(self, axes: Sequence[Axis], about: _Look) -> Attack[list[Axis]]:
        """Return axes with limits, found by doubling where they are not public."""
        found = list(axes)
        for place, axis in enumerate(axes):
            if axis.lower is None:
                found[place] = yield from self._limits(axis, about)
        return found

    def _limits(self, axis: Axis, about: _Look) -> Attack[Axis]:
        cells, left = Cells.everything(), np.array([self.facts.records])
        if axis.missing:
            left = left - (yield from self._missing(cells, axis, left, about))
        reach, s = 1, int(left[0])
        while s:
            low, high = (
                scaled(np.array([-reach]), axis.width),
                scaled(np.array([reach]), axis.width),
            )
            all_inside = yield from self.ask(cells, axis.column, low, high, left, s - 1, about)
            if all_inside[0]:
                break
            reach *= 2
            if reach * axis.width >= 2 * LIMIT:
                raise EvidenceError("the answers leave some records outside every range of values")
        ends = (1 - LIMIT) // axis.width, (LIMIT - 1) // axis.width
        return axis.within(max(-reach, ends[0]), min(reach - 1, ends[1]))


def _note(found: list[Values], group: Codes, value: Codes, size: Codes) -> None:
    for mine, what, many in zip(group.tolist(), value.tolist(), size.tolist(), strict=True):
        if many:
            found[mine].append((what, many))


def table(
    facts: PublicFacts,
    order: Sequence[int] | None = None,
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[TableFound]:
    """Reconstruct the whole table, attribute after attribute."""
    counts = Counts(facts, care)
    nothing = nothing_of(facts, widths)
    axes = yield from counts.limited(
        axes_of(facts, widths), lambda _: About("finding bounds", 0.0, lambda: nothing)
    )
    axes = in_order(axes, order)
    columns = tuple(axis.column for axis in axes)
    all_widths = tuple(axis.width for axis in axes)
    codes, sizes = np.empty((1, 0), np.int64), np.array([facts.records], np.int64)

    def found(codes: Codes, sizes: Codes) -> TableFound:
        depth = codes.shape[1]
        rest = np.zeros((len(codes), len(axes) - depth), np.int64)
        known = np.full(len(codes), depth)
        return TableFound(columns, np.hstack([codes, rest]), known, sizes, all_widths)

    for depth, axis in enumerate(axes):
        label = f"attribute {depth + 1} of {len(axes)}: {facts.schema[axis.column].name}"
        cells = Cells.points(columns[:depth], codes, all_widths[:depth])
        look = partial(_at_depth, label, depth, len(axes), partial(found, codes, sizes))
        results = yield from counts.values(cells, axis, sizes, look)
        _, codes, sizes = split(codes, axis, results)
    return found(codes, sizes)


def _at_depth(label: str, depth: int, of: int, look: Callable[[], Any], done: float) -> About:
    return About(label, (depth + done) / of, look)


def columns(
    facts: PublicFacts,
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[ColumnsFound]:
    """Reconstruct columns, each by itself."""
    counts = Counts(facts, care)
    found: list[Any] = []

    def look(done: float) -> About:
        share = (len(found) + done) / (len(wanted) + 1)
        return About("columns", share, lambda: ColumnsFound(tuple(found)))

    axes = yield from counts.limited([axes_of(facts, widths)[column] for column in wanted], look)
    everybody = np.array([facts.records], np.int64)
    for axis in axes:
        (values,) = yield from counts.values(Cells.everything(), axis, everybody, look)
        found.append(column_found(axis, values))
    return ColumnsFound(tuple(found))


def count(
    facts: PublicFacts, box: dict[int, tuple[int, int]], care: Care | None = None
) -> Attack[CountFound]:
    """Count the records in a box exactly."""
    counts = Counts(facts, care)
    cells, constant = cell_of(facts, [box])
    many = yield from counts.wholly(
        cells, constant, EXACTLY, lambda done: About("counting", done, lambda: CountFound(None))
    )
    return CountFound(int(many[0]))


def membership(
    facts: PublicFacts, people: Sequence[Person], care: Care | None = None
) -> Attack[PeopleFound]:
    """Tell for each person whether anybody in the table fits."""
    present = yield from _more_than(Counts(facts, care), people, 0, "membership")
    return PeopleFound(tuple(PersonFound(present=bool(each)) for each in present.tolist()))


def uniqueness(
    facts: PublicFacts, people: Sequence[Person], present: bool = False, care: Care | None = None
) -> Attack[PeopleFound]:
    """Tell for each person whether exactly one record fits."""
    counts = Counts(facts, care)
    there = np.ones(len(people), np.int64)
    if not present:
        there = yield from _more_than(counts, people, 0, "uniqueness")
    several = yield from _more_than(counts, people, 1, "uniqueness")
    return PeopleFound(
        tuple(
            PersonFound(present=bool(one), unique=bool(one and not many))
            for one, many in zip(there.tolist(), several.tolist(), strict=True)
        )
    )


def _more_than(counts: Counts, people: Sequence[Person], t: int, label: str) -> Attack[Codes]:
    nobody = PeopleFound(tuple(PersonFound() for _ in people))
    cells, constant = _cells(counts.facts, people)
    return (
        yield from counts.wholly(
            cells, constant, t, lambda done: About(label, done, lambda: nobody)
        )
    )


def _cells(facts: PublicFacts, people: Sequence[Person]) -> tuple[Cells, list[int | None]]:
    return cell_of(
        facts, [{column: (code, code + 1) for column, code in who.items()} for who in people]
    )


def attributes(
    facts: PublicFacts,
    people: Sequence[Person],
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[PeopleFound]:
    """Find unknown attributes of people from the known ones."""
    counts = Counts(facts, care)
    found = [PersonFound() for _ in people]

    def look(done: float) -> About:
        return About("attributes", done, lambda: PeopleFound(tuple(found)))

    axes = yield from counts.limited([axes_of(facts, widths)[column] for column in wanted], look)
    cells, constant = _cells(facts, people)
    matches = yield from counts.wholly(cells, constant, EXACTLY, look)
    for place, many in enumerate(matches.tolist()):
        found[place] = PersonFound(present=many > 0, unique=many == 1, matches=many)
    there = np.flatnonzero(matches)
    mine = Cells(cells.columns, cells.low[there], cells.high[there])
    for axis in axes if len(there) else ():
        values = yield from counts.values(mine, axis, matches[there], look)
        for place, each in zip(there.tolist(), values, strict=True):
            known = (*found[place].values, column_found(axis, each))
            found[place] = replace(found[place], values=known)
    return PeopleFound(tuple(found))
