"""The adaptive attack: learns what is likely while it asks (strategies adaptive and thrifty).

First come the histograms of all attributes, side by side. They decide the order: attributes
that tell least come first, so that groups of records stay large, and a question about a large
group tells about many records. Then each attribute is found in all groups, in batched
rounds, every split at the median of what is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from thinveil.attacker.attacks.groups import Groups
from thinveil.attacker.attacks.table import Wish, column_found, in_order, nothing_of
from thinveil.attacker.beliefs.arrays import levels
from thinveil.attacker.engines.histograms import Columns, histograms
from thinveil.attacker.engines.published import evenly
from thinveil.attacker.engines.stages import Stage
from thinveil.attacker.engines.unions import Thrift, ThriftyColumns, ThriftyStage
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.findings import ColumnsFound, TableFound
from thinveil.attacker.terms import Attack, Axis, Rules, axes_of
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, QueryBatch


def table(facts: PublicFacts, care: Care, wish: Wish) -> Attack[TableFound]:
    """Reconstruct the whole table, learning what is likely on the way."""
    rules, thrift = Rules.of(facts), wish.thrift
    nothing = nothing_of(facts, wish.widths)
    bounds = About("finding bounds", 0.0, lambda: nothing)
    axes = yield from evenly(facts, care).limits(axes_of(facts, wish.widths), bounds)
    search = _searched(facts, axes, thrift)
    known = yield from histograms(
        facts, search, care, lambda done: About("histograms", 0.1 * done, lambda: nothing)
    )
    by_column = {each.axis.column: each for each in known}
    bits = {column: each.entropy for column, each in by_column.items()}
    axes = least_telling_first(axes, wish.order, bits)
    groups = Groups.whole(axes, [rules.n], bits=())
    for axis in axes:
        histogram = by_column[axis.column]
        begun = rules, histogram, groups.sizes, list(groups.contexts)
        stage = Stage(*begun) if thrift is None else ThriftyStage(*begun).opened(thrift)
        yield from _search(facts, stage, groups, care)
        groups = _split(groups, stage)
    return groups.table()


def columns(facts: PublicFacts, care: Care, wish: Wish) -> Attack[ColumnsFound]:
    """Reconstruct columns, each by itself; they are searched side by side."""
    axes = yield from evenly(facts, care).limits(wish.axes(facts), About("finding bounds"))
    label = f"column {facts.schema[axes[0].column].name}" if len(axes) == 1 else "columns"
    search = _searched(facts, axes, wish.thrift)

    def so_far() -> ColumnsFound:
        found = (column_found(axis, search.values(owner)) for owner, axis in enumerate(axes))
        return ColumnsFound(tuple(each for each in found if each.values))

    yield from histograms(facts, search, care, lambda done: About(label, done, so_far))
    found = zip(so_far().columns, search.told.tolist(), strict=True)
    return ColumnsFound(tuple(replace(each, bits=bits) for each, bits in found))


def _searched(facts: PublicFacts, axes: Sequence[Axis], thrift: Thrift | None) -> Columns:
    """Return how columns are searched."""
    begun = Rules.of(facts), axes
    return Columns(*begun) if thrift is None else ThriftyColumns(*begun).opened(thrift, len(axes))


def least_telling_first(
    axes: Sequence[Axis], order: Sequence[int], bits: dict[int, float]
) -> list[Axis]:
    """Sort attributes as the user says, the rest by what their columns tell, least first."""
    ordered, first = in_order(axes, order), len(order)
    return ordered[:first] + sorted(ordered[first:], key=lambda axis: bits[axis.column])


def _split(groups: Groups, stage: Stage) -> Groups:
    """Return what the values found of the next attribute make of groups."""
    group, place, size = stage.found()
    histogram = stage.histogram
    context = levels(histogram.counts)[place] if len(histogram.counts) > 1 else None
    bits = histogram.bits + stage.bits
    return groups.split(group, histogram.cuts(place), size, context, bits)


def _so_far(groups: Groups, stage: Stage) -> TableFound:
    """Return the table with one more attribute half found."""
    group, place, size = stage.found()
    left = np.flatnonzero(stage.groups.open)
    found = groups.split(group, stage.histogram.cuts(place), size)
    return found.joined(groups, left, stage.groups.open[left]).table()


def _search(facts: PublicFacts, stage: Stage, groups: Groups, care: Care) -> Attack[None]:
    """Find one attribute in all groups."""
    cells, histogram = groups.cells(), stage.histogram
    look = partial(_so_far, groups, stage)
    while stage.done < 1:
        stage.advance()
        if not stage.waiting:
            continue
        offsets, nodes, threshold = stage.unions()
        owner, first, end = stage.spans(nodes)
        box = np.full(len(nodes), histogram.axis.column), histogram.cuts(first), histogram.cuts(end)
        about = groups.about(facts, stage.done, look, 0.1)
        batch = QueryBatch(cells, owner, *box, threshold, offsets=offsets, about=about)
        zone = yield from zones_of(facts, batch, care)
        stage.learn(zone)
