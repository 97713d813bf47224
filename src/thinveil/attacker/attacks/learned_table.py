"""The adaptive attack: learns what is likely while it asks (strategies adaptive and thrifty).

First come the histograms of all attributes, side by side. They decide the order: attributes
that tell least come first, so that groups of records stay large, and a question about a large
group tells about many records. Then each attribute is found in all groups, in batched
rounds, every split at the median of what is believed.

Where answers are limited, those that pay most come first: histograms one after the other, the
smallest domain first, then of as many records all attributes as the answers may last for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from thinveil.attacker.attacks.groups import Groups
from thinveil.attacker.attacks.table import Wish, column_found, in_order, known_alone, nothing_of
from thinveil.attacker.beliefs.arrays import Triple, joined, levels
from thinveil.attacker.engines.histograms import Columns, Histogram, Purse, histograms
from thinveil.attacker.engines.published import evenly
from thinveil.attacker.engines.stages import Stage
from thinveil.attacker.engines.unions import Thrift, ThriftyColumns, ThriftyStage
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.findings import ColumnFound, ColumnsFound, TableFound
from thinveil.attacker.fixed_order import shuffled
from thinveil.attacker.terms import Attack, Axis, Haste, Rules, axes_of
from thinveil.attacker.ways import log2_factorial
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Codes, Flags, QueryBatch

_SPARE: Final = 0.95  # the share of the answers left that is planned with


def table(facts: PublicFacts, care: Care, wish: Wish) -> Attack[TableFound]:
    """Reconstruct the whole table, learning what is likely on the way."""
    purse = Purse(wish.most)
    nothing = nothing_of(facts, wish.widths)
    rules = _rules(facts, wish)
    search = _searched(rules, axes_of(facts, wish.widths), wish.thrift)

    def so_far() -> TableFound:
        return known_alone(nothing, _margins(search))

    about = partial(_described, "histograms", 0.1, so_far)
    yield from _histograms(facts, care, search, purse, about)
    known = {axis.column: search.histogram(at) for at, axis in enumerate(search.axes)}
    bits = {column: each.entropy for column, each in known.items()}
    if rules.hasty is not None:  # a bit a question; which record is which need not be told
        alike = float(log2_factorial(np.array([facts.records])).sum())
        rules.hasty.expected = facts.records * sum(bits.values()) - alike
    axes = least_telling_first(search.axes, wish.order, bits)
    records = _Records(axes, known, _margins(search), facts.records, purse)
    while (depth := records.deepest) is not None:
        level, rows = records.levels[depth], records.rows(depth)
        histogram = known[axes[depth].column]
        begun = rules, histogram, level.groups.sizes, list(level.groups.contexts)
        more = rows, (level.found if len(level.found[0]) else None)
        stage = (
            Stage(*begun, *more)
            if wish.thrift is None
            else ThriftyStage(*begun, *more).opened(wish.thrift)
        )
        look = partial(records.table, depth, stage)
        yield from _search(facts, care, stage, level.groups, look, purse)
        records.take(depth, stage)
    return records.table()


def columns(facts: PublicFacts, care: Care, wish: Wish) -> Attack[ColumnsFound]:
    """Reconstruct columns, each by itself; they are searched side by side, if answers last."""
    axes = wish.axes(facts)
    search = _searched(_rules(facts, wish), axes, wish.thrift)

    def so_far() -> ColumnsFound:
        return ColumnsFound(tuple(each for each in _margins(search) if each.values))

    label = f"column {facts.schema[axes[0].column].name}" if len(axes) == 1 else "columns"
    about = partial(_described, label, 1.0, so_far)
    yield from _histograms(facts, care, search, Purse(wish.most), about)
    return so_far()


def _described(
    label: str, share: float, so_far: Callable[[], TableFound | ColumnsFound], done: float
) -> About:
    """Describe a round in which columns are found by themselves."""
    return About(label, share * done, so_far)


def _histograms(
    facts: PublicFacts,
    care: Care,
    search: Columns,
    purse: Purse,
    about: Callable[[float], About],
) -> Attack[None]:
    """Find all columns by themselves: side by side, or the smallest domain first."""
    axes, engine = search.axes, evenly(facts, care)
    bounds = replace(about(0.0), label="finding bounds")
    places = list(range(len(axes)))
    if purse.most is None:
        axes[:] = yield from engine.limits(axes, bounds)
        yield from histograms(facts, search, places, care, about, purse)
        return
    known = [place for place in places if axes[place].lower is not None]
    for place in sorted(known, key=lambda place: axes[place].size):
        yield from histograms(facts, search, [place], care, about, purse)
    others = [place for place in places if place not in known]
    found = yield from purse.paid(engine.limits([axes[place] for place in others], bounds))
    for place, axis in zip(others, found, strict=True):
        axes[place] = axis
    for place in sorted(others, key=lambda place: axes[place].size):
        yield from histograms(facts, search, [place], care, about, purse)


def _rules(facts: PublicFacts, wish: Wish) -> Rules:
    """Return the rules of a search; it is in no haste where answers are fewer than rounds."""
    return replace(Rules.of(facts), hasty=Haste() if wish.hasty and wish.most is None else None)


def _searched(rules: Rules, axes: Sequence[Axis], thrift: Thrift | None) -> Columns:
    """Return how columns are searched."""
    begun = rules, axes
    return Columns(*begun) if thrift is None else ThriftyColumns(*begun).opened(thrift, len(axes))


def _margins(search: Columns) -> tuple[ColumnFound, ...]:
    """Return what is known of columns by themselves."""
    ranges = search.ranges()
    return tuple(
        replace(
            column_found(axis, search.values(owner)),
            bits=float(search.told[owner]),
            ranges=ranges[owner],
            domain=axis.size,
        )
        for owner, axis in enumerate(search.axes)
        if axis.lower is not None and search.begun(owner)
    )


def least_telling_first(
    axes: Sequence[Axis], order: Sequence[int], bits: dict[int, float]
) -> list[Axis]:
    """Sort attributes as the user says, the rest by what their columns tell, least first."""
    ordered, first = in_order(axes, order), len(order)
    return ordered[:first] + sorted(ordered[first:], key=lambda axis: bits[axis.column])


def _none() -> Triple:
    return joined([])


@dataclass(slots=True, eq=False)
class _Level:
    """Groups that agree on so many attributes, and what was found of the next one."""

    groups: Groups
    searched: Flags
    found: Triple = field(default_factory=_none)
    bits: float = 0.0


class _Records:
    """The records as they are known: at each depth the groups that so much is known of.

    Without a limit all groups of a depth are searched at once. With one, as many as the answers
    left may last for; the others wait, and what was found of the first predicts them.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        known: dict[int, Histogram],
        margins: tuple[ColumnFound, ...],
        records: int,
        purse: Purse,
    ) -> None:
        self._known, self._margins, self._purse = known, margins, purse
        self._entropy = np.array([known[axis.column].entropy for axis in axes])
        whole = Groups.whole(axes, [records])
        self.levels = [_Level(whole, np.zeros(1, np.bool_))]
        self._axes = whole.axes
        self._over = 0  # so many levels are searched from the first on: no group is added there

    @property
    def deepest(self) -> int | None:
        """The depth at which to go on; None where nothing is left to search."""
        last = min(len(self._axes), len(self.levels))
        left = (at for at in range(last - 1, self._over - 1, -1) if not self._searched(at))
        return next(left, None)

    def _searched(self, depth: int) -> bool:
        return bool(self.levels[depth].searched.all())

    def rows(self, depth: int) -> Codes:
        """Return which groups are searched now: those that the answers left may last for."""
        level = self.levels[depth]
        rows, sizes = np.flatnonzero(~level.searched), level.groups.sizes
        if self._purse.most is None:
            return rows
        mine = sizes[rows]
        told = float(log2_factorial(mine).sum()) / mine.sum()  # which is which need not be told
        each = max(self._entropy[depth:].sum() - told, 0.01)
        most = _SPARE * max(self._purse.left, 0.0) / each
        if mine.sum() <= most or mine.max() > most:  # all, or groups too large to choose among
            return rows
        mixed = rows[shuffled(len(rows))]
        return np.sort(mixed[: max(int(np.searchsorted(np.cumsum(sizes[mixed]), most)), 1)])

    def take(self, depth: int, stage: Stage) -> None:
        """Take in what a stage has found."""
        level, histogram = self.levels[depth], stage.histogram
        group, place, size = found = stage.found()
        context = levels(histogram.counts)[place] if len(histogram.counts) > 1 else None
        after = level.groups.split(group, histogram.cuts(place), size, context)
        fresh = np.zeros(len(after.sizes), np.bool_)
        if depth + 1 == len(self.levels):
            self.levels.append(_Level(after, fresh))
        else:
            deeper = self.levels[depth + 1]
            deeper.groups = deeper.groups.plus(after)
            deeper.searched = np.concatenate([deeper.searched, fresh])
        level.bits += stage.bits
        level.searched[stage.rows] = True
        while self._over <= depth and self._searched(self._over):
            self._over += 1
        if self._over > depth:
            level.groups = replace(level.groups, codes=level.groups.codes[:0], contexts=())
        else:
            level.found = joined([level.found, found])

    def table(self, depth: int | None = None, stage: Stage | None = None) -> TableFound:
        """Return the table as it is known, perhaps with the next attribute of some half found."""
        parts: list[tuple[Groups, Codes, Codes | None]] = []
        for at, level in reversed(list(enumerate(self.levels))):
            rows = np.flatnonzero(~level.searched)
            if at == depth and stage is not None:
                rows = np.setdiff1d(rows, stage.rows)
                group, place, size = stage.found()
                half = level.groups.split(group, stage.histogram.cuts(place), size)
                parts.append((half, np.arange(len(size)), None))
                left = stage.rows[stage.groups.open[stage.rows] > 0]
                parts.append((level.groups, left, stage.groups.open[left]))
            parts.append((level.groups, rows, None))
        first = parts[0][0]
        all_of_it = replace(
            first, codes=first.codes[:0], sizes=first.sizes[:0], known=first.known[:0], contexts=()
        )
        for groups, rows, sizes in parts:
            all_of_it = all_of_it.joined(groups, rows, sizes)
        bits = self._bits(depth, stage)
        margins = self._margins if self.deepest is not None else ()
        return replace(all_of_it.table(), bits=bits, margins=margins)

    def _bits(self, depth: int | None, stage: Stage | None) -> tuple[float, ...]:
        """Return what each attribute that was searched was worth."""
        told = [each.bits for each in self.levels[: len(self._axes)]]
        if depth is not None and stage is not None:
            told[depth] += stage.bits
        elif len(self.levels) <= len(self._axes):
            told = told[:-1]
        margins = (self._known[axis.column].bits for axis in self._axes)
        return tuple(margin + more for margin, more in zip(margins, told, strict=False))


def _search(
    facts: PublicFacts,
    care: Care,
    stage: Stage,
    groups: Groups,
    look: Callable[[], TableFound],
    purse: Purse,
) -> Attack[None]:
    """Find one attribute in some groups."""
    cells, histogram = groups.cells(facts.records), stage.histogram
    while stage.done < 1:
        stage.advance()
        if not stage.waiting:
            continue
        offsets, nodes, threshold = stage.unions(purse.left)
        owner, first, end = stage.spans(nodes)
        box = np.full(len(nodes), histogram.axis.column), histogram.cuts(first), histogram.cuts(end)
        about = groups.about(facts, stage.done, look, 0.1)
        batch = QueryBatch(cells, owner, *box, threshold, offsets=offsets, about=about)
        purse.pay(batch)
        zone = yield from zones_of(facts, batch, care)
        stage.learn(zone)
