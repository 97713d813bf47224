"""Reconstructing counts, columns and whole tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from thinveil.attacker.attacks.doubling import with_limits
from thinveil.attacker.engines.coroutines import Work, side_by_side
from thinveil.attacker.engines.posterior.engine import columns_of
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.findings import ColumnFound, ColumnsFound, CountFound, TableFound
from thinveil.attacker.strategies import Strategy
from thinveil.attacker.terms import Attack, Axis, Rules, Values, axes_of, scaled
from thinveil.errors import UsageError
from thinveil.language.extents import Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Cells, Codes
from thinveil.language.schema import INFINITE, MISSING

WHOLE_CELL: Final = Axis(WHOLE, 0, 0)
"""Where a question is about a cell as it is."""


def count(
    facts: PublicFacts,
    strategy: Strategy,
    box: dict[int, tuple[int, int]],
    force: bool = False,
    care: Care | None = None,
) -> Attack[CountFound]:
    """Count the records in a box exactly (Algorithm 1)."""
    care = care or Care()
    rules = Rules.of(facts)
    cells, constant = cell_of(facts, [box])
    if constant[0] is not None:
        return CountFound(rules.n * constant[0])
    strategy.check(rules, [WHOLE_CELL], 1, force)
    found = yield from side_by_side(
        facts,
        cells,
        [Work(strategy.count(rules, MISSING, INFINITE, rules.n), 0, WHOLE_CELL)],
        lambda done, _: About("counting", done, lambda: CountFound(None)),
        care,
    )
    return CountFound(found[0])


def cell_of(
    facts: PublicFacts, boxes: Sequence[dict[int, tuple[int, int]]]
) -> tuple[Cells, list[int | None]]:
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


def columns(
    facts: PublicFacts,
    strategy: Strategy,
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    force: bool = False,
    care: Care | None = None,
) -> Attack[ColumnsFound]:
    """Reconstruct columns, each by itself (Algorithm 2); they are searched side by side."""
    care = care or Care()
    rules = Rules.of(facts)

    def check(axes: Sequence[Axis]) -> None:
        for axis in axes:
            strategy.check(rules, [axis], 1, force)

    axes = [axes_of(facts, widths)[column] for column in wanted]
    axes = yield from with_limits(facts, strategy, axes, check, care=care)
    found: list[Values] = [[] for _ in axes]

    def so_far() -> ColumnsFound:
        return ColumnsFound(
            tuple(
                column_found(axis, values)
                for axis, values in zip(axes, found, strict=True)
                if values
            )
        )

    label = f"column {facts.schema[wanted[0]].name}" if len(wanted) == 1 else "columns"
    settled = _Settled(found, rules.n * len(axes))
    if strategy.beliefs:
        for axis, values in zip(axes, found, strict=True):
            (mine,) = yield from columns_of(
                facts,
                strategy,
                Cells.everything(),
                axis,
                np.array([rules.n], np.int64),
                care,
                lambda done, _: About(label, settled.share() + done / len(axes), so_far),
            )
            values += mine
        return so_far()
    yield from side_by_side(
        facts,
        Cells.everything(),
        [
            Work(strategy.column(rules, axis, rules.n, values), 0, axis)
            for axis, values in zip(axes, found, strict=True)
        ],
        lambda _, __: About(label, settled.share(), so_far),
        care,
    )
    return so_far()


@dataclass(slots=True)
class _Settled:
    """Adds up how many records lists of values stand for, each entry once."""

    lists: list[Values]
    of: int
    total: int = 0
    _seen: list[int] = field(default_factory=list)

    def share(self) -> float:
        """Return the settled share of all records."""
        self._seen = self._seen or [0] * len(self.lists)
        for place, values in enumerate(self.lists):
            for _, count in values[self._seen[place] :]:
                self.total += count
            self._seen[place] = len(values)
        return self.total / self.of


def column_found(axis: Axis, values: Values) -> ColumnFound:
    """Return the values of a search as codes, in order."""
    return ColumnFound(
        axis.column, sorted((axis.code(step), count) for step, count in values), axis.width
    )


def nothing_of(facts: PublicFacts, widths: dict[int, int] | None = None) -> TableFound:
    """Return a table of which nothing is known but how many records it has."""
    axes = axes_of(facts, widths)
    counts = facts.claim.counts
    return TableFound(
        columns=tuple(axis.column for axis in axes),
        codes=np.zeros((1, len(axes)), np.int64),
        known=np.zeros(1, np.int64),
        counts=np.array([facts.records if counts else 1], np.int64),
        widths=tuple(axis.width for axis in axes),
        distinct=not counts,
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


def table(
    facts: PublicFacts,
    strategy: Strategy,
    order: Sequence[int] | None = None,
    widths: dict[int, int] | None = None,
    force: bool = False,
    care: Care | None = None,
) -> Attack[TableFound]:
    """Reconstruct the whole table, attribute after attribute (paper, "full data set").

    The records found so far fall into groups that agree on everything known; the next
    attribute is searched in all groups side by side.
    """
    care = care or Care()
    rules = Rules.of(facts)
    axes = axes_of(facts, widths)
    nothing = nothing_of(facts, widths)
    axes = yield from with_limits(
        facts,
        strategy,
        axes,
        lambda axes: strategy.check(rules, in_order(axes, order), 1, force),
        lambda: nothing,
        care,
    )
    axes = in_order(axes, order)
    all_columns = tuple(axis.column for axis in axes)
    all_widths = tuple(axis.width for axis in axes)
    codes = np.empty((1, 0), np.int64)
    counts = np.array([rules.n], np.int64)

    def found(codes: Codes, counts: Codes, known: Codes) -> TableFound:
        rest = np.zeros((len(codes), len(axes) - codes.shape[1]), np.int64)
        return TableFound(all_columns, np.hstack([codes, rest]), known, counts, all_widths)

    def so_far(codes: Codes, counts: Codes, axis: Axis, results: Sequence[Any]) -> TableFound:
        known = np.array([result is not None for result in results], np.int64)
        open_ends = [
            result if result is not None else [(0, size)]
            for result, size in zip(results, counts.tolist(), strict=True)
        ]
        parent, codes, counts = split(codes, axis, open_ends)
        return found(codes, counts, codes.shape[1] - 1 + known[parent])

    for depth, axis in enumerate(axes):
        label = f"attribute {depth + 1} of {len(axes)}: {facts.schema[axis.column].name}"
        cells = Cells.points(all_columns[:depth], codes, all_widths[:depth])
        about = about_depth(label, depth, len(axes), partial(so_far, codes, counts, axis))
        if strategy.beliefs:
            results = yield from columns_of(facts, strategy, cells, axis, counts, care, about)
        else:
            results = yield from side_by_side(
                facts,
                cells,
                (
                    Work(strategy.column(rules, axis, size), group, axis, size)
                    for group, size in enumerate(counts.tolist())
                ),
                about,
                care,
            )
        _, codes, counts = split(codes, axis, results)
    return found(codes, counts, np.full(len(codes), len(axes)))


def about_depth(
    label: str, depth: int, of: int, look: Callable[[Sequence[Any]], Any]
) -> Callable[[float, Sequence[Any]], About]:
    """Describe the rounds of one attribute out of several."""
    return lambda done, results: About(label, (depth + done) / of, partial(look, results))


def split(codes: Codes, axis: Axis, results: Sequence[Values]) -> tuple[Codes, Codes, Codes]:
    """Split groups by the values found in them: parents, longer codes and counts."""
    parent = np.repeat(np.arange(len(results)), [len(result) for result in results])
    steps = np.array([step for result in results for step, _ in result], np.int64)
    counts = np.array([count for result in results for _, count in result], np.int64)
    return parent, np.column_stack([codes[parent], scaled(steps, axis.width)]), counts
