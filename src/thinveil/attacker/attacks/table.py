"""Reconstructing counts, columns and whole tables, by whatever engine finds counts and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from thinveil.attacker.attacks.groups import Groups
from thinveil.attacker.beliefs.arrays import flattened
from thinveil.attacker.beliefs.count_zones import narrowed
from thinveil.attacker.engines.protocol import SOME, Cohorts, Engine, Hints, Look
from thinveil.attacker.engines.unions import Thrift
from thinveil.attacker.evidence.likelihood import zones
from thinveil.attacker.findings import ColumnFound, ColumnsFound, CountFound, TableFound
from thinveil.attacker.terms import Attack, Axis, Person, Rules, Values, axes_of, scaled
from thinveil.errors import UsageError
from thinveil.language.extents import Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Box, Cells

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Wish:
    """What an attack is to find, and what it may take for granted.

    Of people the codes of known columns are given, the same columns for all. Priors are bounds,
    in codes, that their values are believed to lie in; they are checked, and dropped for a person
    where they fail.
    """

    columns: Sequence[int] = ()  # to find
    order: Sequence[int] = ()  # of a table, columns to begin with, where the user wants a say
    widths: dict[int, int] = field(default_factory=dict)  # a coarser precision for some columns
    box: Box = field(default_factory=dict)  # the predicate to count
    people: Sequence[Person] = ()
    priors: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    present: bool = False  # whether all people are known to be in the table
    alone: bool = False  # whether they are known to be unique, too
    shortcut: bool = True  # whether a binary attribute of a unique person is a membership question
    force: bool = False  # whether to go ahead with a very long attack
    thrift: Thrift | None = None  # how to ask about many groups at once, not each by itself
    most: int | None = None  # how many answers there will be; None where nobody says
    hasty: bool = False  # whether rounds are dear, so that more is asked at once

    def axes(self, facts: PublicFacts) -> list[Axis]:
        """Return the axes of the columns to find."""
        axes = axes_of(facts, self.widths)
        return [axes[column] for column in self.columns]


def count(engine: Engine, wish: Wish) -> Attack[CountFound]:
    """Count the records in a box exactly (Algorithm 1)."""
    facts = engine.facts
    cells, constant = cell_of(facts, [wish.box])
    if constant[0] is not None:
        return _count_found(facts, facts.records * constant[0])
    if not wish.force:
        engine.check([Axis(0, 0, 0)], 1)
    limits = [0, facts.records]

    def so_far() -> CountFound:
        known = tuple(limits) != (0, facts.records)
        return CountFound(None, between=(limits[0], limits[1]) if known else None)

    counting = engine.count(
        Cohorts(cells, np.zeros(1, np.int64), np.array([facts.records])),
        lambda done, _: About("counting", done, so_far),
    )
    found = yield from _narrowing(facts, counting, limits)
    return _count_found(facts, int(found[0]))


def _narrowing(facts: PublicFacts, attack: Attack[_T], limits: list[int]) -> Attack[_T]:
    """Pass a search for one count on, and note between which limits it must lie.

    Only where each answer tells its zone: else answers prove nothing one by one.
    """
    plain = facts.claim.counts and facts.claim.reads_exactly and not facts.claim.hides_direction
    try:
        batch = next(attack)
        while True:
            answers = yield batch
            if plain:
                b = batch.threshold
                zone, row = np.array(zones(facts.claim, answers)), np.zeros(len(b), np.int64)
                mine = (b >= 0) & (b < facts.records)  # all others are answered without the table
                low, high = (np.array([each]) for each in limits)
                told = narrowed(Rules.of(facts), low, high, row[mine], b[mine], zone[mine])
                limits[:] = [int(each[0]) for each in told]
            batch = attack.send(answers)
    except StopIteration as stop:
        found: _T = stop.value
        return found


def _count_found(facts: PublicFacts, count: int) -> CountFound:
    if facts.claim.counts:
        return CountFound(count)
    return CountFound(None if count == SOME else count, count != 0)


def cell_of(facts: PublicFacts, boxes: Sequence[Box]) -> tuple[Cells, list[int | None]]:
    """Return cells for boxes, and for each whether it is known to be always true or false.

    In a bounded universe a constant predicate is answered exactly, which would mislead a
    search; it need not be asked. All boxes must restrict the same columns.
    """
    columns = tuple(boxes[0])
    low = np.array([[box[column][0] for column in columns] for box in boxes], np.int64)
    high = np.array([[box[column][1] for column in columns] for box in boxes], np.int64)
    cells = Cells(columns, low.reshape(len(boxes), -1), high.reshape(len(boxes), -1))
    if not columns:
        return cells, [1] * len(boxes)
    extent = Extent.of(facts.schema, facts.claim.universe)
    empty, full = extent.judge(columns, cells.low, cells.high)
    never: list[bool] = np.any(empty, axis=1).tolist()
    always: list[bool] = np.all(full, axis=1).tolist()
    return cells, [0 if no else 1 if yes else None for no, yes in zip(never, always, strict=True)]


def limited(
    engine: Engine,
    wish: Wish,
    axes: Sequence[Axis],
    so_far: Callable[[], Any] = lambda: None,
    hints: Hints | None = None,
) -> Attack[list[Axis]]:
    """Return axes with limits; what would take too long is refused as soon as that is known."""
    _check(engine, wish, axes)
    found = yield from engine.limits(axes, About("finding bounds", 0.0, so_far), hints)
    _check(engine, wish, found)
    return found


def _check(engine: Engine, wish: Wish, axes: Sequence[Axis]) -> None:
    """Refuse a search that is too long: of single columns, or of the whole table in its order."""
    chains = [[axis] for axis in axes] if wish.columns else [in_order(axes, wish.order)]
    for chain in () if wish.force else chains:
        engine.check(chain, len(wish.people) or 1)


def columns(engine: Engine, wish: Wish) -> Attack[ColumnsFound]:
    """Reconstruct columns, each by itself (Algorithm 2)."""
    facts = engine.facts
    axes = yield from limited(engine, wish, wish.axes(facts))

    def so_far(results: Sequence[Any]) -> ColumnsFound:
        pairs = zip(axes, results, strict=True)
        return ColumnsFound(tuple(column_found(axis, values) for axis, values in pairs if values))

    label = f"column {facts.schema[axes[0].column].name}" if len(axes) == 1 else "columns"
    share = _Share(facts.records * len(axes))
    results = yield from engine.values(
        Cohorts.everybody(facts),
        axes,
        lambda done, results: About(label, max(done, share.of(results)), partial(so_far, results)),
    )
    return so_far(results)


@dataclass(slots=True)
class _Share:
    """Adds up how many records growing lists of values stand for, each entry once."""

    records: int
    _total: int = 0
    _seen: dict[int, int] = field(default_factory=dict)

    def of(self, lists: Sequence[Values | None]) -> float:
        """Return the settled share of all records."""
        for place, values in enumerate(lists):
            if values:
                self._total += sum(count for _, count in values[self._seen.get(place, 0) :])
                self._seen[place] = len(values)
        return self._total / self.records


def column_found(axis: Axis, values: Values, distinct: bool = False) -> ColumnFound:
    """Return the values of a search as codes, in order."""
    codes = sorted((axis.code(step), count) for step, count in values)
    return ColumnFound(axis.column, codes, axis.width, distinct)


def nothing_of(facts: PublicFacts, widths: dict[int, int] | None = None) -> TableFound:
    """Return a table of which nothing is known but how many records it has."""
    counts = facts.claim.counts
    records = facts.records if counts else 1
    return Groups.whole(axes_of(facts, widths), [records], distinct=not counts).table()


def known_alone(nothing: TableFound, margins: tuple[ColumnFound, ...]) -> TableFound:
    """Return a table of which columns are known by themselves.

    Where it has one column, its values are its records: they are rebuilt, not a margin only.
    """
    found = replace(nothing, margins=margins)
    if len(found.columns) > 1 or not margins or not margins[0].values:
        return found
    (column,) = margins
    codes, counts = np.array(column.values, np.int64).T
    left = int(column.partial if found.distinct else found.counts.sum() - counts.sum())
    if left:
        codes, counts = np.append(codes, 0), np.append(counts, left)
    known = np.arange(len(codes)) < len(column.values)
    return replace(
        found,
        codes=codes[:, None],
        known=known.astype(np.int64),
        counts=counts,
        bits=None if column.bits is None else (column.bits,),
    )


def in_order(axes: Sequence[Axis], order: Sequence[int] | None) -> list[Axis]:
    """Sort axes as the user says, the rest by public domain size, ties in schema order.

    Those whose bounds are not known yet come last.

    Raises:
        UsageError: The user's order names a column twice.
    """
    first = list(order or ())
    if len(set(first)) != len(first):
        raise UsageError("the order names a column twice")
    rest = sorted(
        (axis for axis in axes if axis.column not in first),
        key=lambda axis: math.inf if axis.lower is None else axis.size,
    )
    return [axes[column] for column in first] + rest


def table(engine: Engine, wish: Wish) -> Attack[TableFound]:
    """Reconstruct the whole table, attribute after attribute (paper, "full data set").

    The records found so far fall into groups that agree on everything known; the next
    attribute is searched in all groups side by side.
    """
    facts = engine.facts
    nothing = nothing_of(facts, wish.widths)
    axes = yield from limited(engine, wish, axes_of(facts, wish.widths), lambda: nothing)
    groups = Groups.whole(in_order(axes, wish.order), [facts.records])
    for axis in groups.axes:
        look = _looking(facts, groups)
        mine = Cohorts(groups.cells(), np.arange(len(groups.sizes)), groups.sizes)
        results = yield from engine.values(mine, [axis], look)
        group, step, count = flattened(results)
        groups = groups.split(group, scaled(step, axis.width), count)
    return groups.table()


def _looking(facts: PublicFacts, groups: Groups) -> Look:
    """Describe rounds of the search for the next attribute of groups."""
    return lambda done, results: groups.about(facts, done, partial(_so_far, groups, results))


def _so_far(groups: Groups, results: Sequence[Values | None]) -> TableFound:
    """Return the table as it is known, with the values found so far of the next attribute."""
    group, step, count = flattened([values or () for values in results])
    left = groups.sizes - np.bincount(group, count, len(results)).astype(np.int64)
    known = groups.split(group, scaled(step, groups.axes[groups.depth].width), count)
    rows = np.flatnonzero(left)
    return known.joined(groups, rows, left[rows]).table()
