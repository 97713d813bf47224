"""Which records exist, found with as few answers as beliefs allow (Bootstrap DP).

An answer tells none, some or all. First come the values of all columns (`distinct_columns`);
after that only values that occur are looked for. Then each attribute is found in all groups of
records that agree so far, each group a line (`line_search`). Groups that are over teach how
likely each value is beside others, and how many values to expect: the number of records is
public, so the fewer of them are not accounted for by the groups, the surer it is that a group
holds one. The thrifty form asks about many groups at once (`group_testing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from thinveil.attacker.attacks.distinct_columns import Domain, domains
from thinveil.attacker.attacks.distinct_searches import Existence, on_side
from thinveil.attacker.attacks.distinct_stages import Stage
from thinveil.attacker.attacks.groups import Groups
from thinveil.attacker.attacks.learned_table import least_telling_first
from thinveil.attacker.attacks.table import Wish, column_found, known_alone, nothing_of
from thinveil.attacker.attacks.witness_cut import Cut
from thinveil.attacker.beliefs.arrays import LEVELS, summed
from thinveil.attacker.engines.group_testing import Pools
from thinveil.attacker.engines.unions import BOXES
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.findings import ColumnFound, ColumnsFound, TableFound
from thinveil.attacker.fixed_order import shuffled
from thinveil.attacker.terms import ABOVE, BELOW, Attack, axes_of
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Floats, QueryBatch

_PILOT: Final = 40  # the most groups that show what is frequent
_ONCE: Final = 1.5  # what was seen less often than this was seen once
_FEW: Final = 4  # values of each of them that are looked at
_PER_PILOT: Final = 500  # one of them for so many records


class _Known:
    """The records as far as they are known, on which side of a cut, and how many seem to be."""

    def __init__(
        self,
        known: Sequence[Domain],
        records: int,
        cut: Cut | None,
        margins: tuple[ColumnFound, ...],
    ) -> None:
        first = known[0]
        steps = (first.steps,) if first.sides is None else first.sides
        place = np.searchsorted(first.steps, np.concatenate(steps))
        self.side = np.repeat(np.arange(len(steps)), [len(each) for each in steps])
        self._records, self._cut, self._margins = records, cut, margins
        whole = Groups.whole([each.axis for each in known], [1], bits=(), distinct=True)
        context = place % LEVELS if len(place) > 1 else None
        group = np.zeros_like(place)
        self.groups = whole.split(group, first.low(place), group + 1, context, first.bits)
        self.rates = np.full(len(place), records / len(place))

    def cells(self) -> Cells:
        """Return the groups as cells."""
        cells = self.groups.cells()
        return cells if self._cut is None else on_side(cells, self._cut, self.side)

    def stage(self, domain: Domain, seen: Floats, unions: bool) -> Stage:
        """Return the search for the next attribute."""
        spare = self._records - len(self.rates)
        rates = self.rates * (spare / self.rates.sum())
        return Stage(domain, list(self.groups.contexts), rates, spare, unions, seen)

    def take(self, stage: Stage) -> None:
        """Split the groups by what was found of the next attribute."""
        group, place, self.rates = stage.results()
        code, bits = stage.domain.low(place), stage.domain.bits + stage.bits
        one = np.ones_like(group)
        self.groups = self.groups.split(group, code, one, stage.level(place), bits)
        self.side = self.side[group]

    def found(self, stage: Stage | None = None) -> TableFound:
        """Return the records as they are known, perhaps with one more attribute half found."""
        groups = self.groups
        if stage is not None:
            group, place, _ = stage.results()
            groups = groups.split(group, stage.domain.low(place), np.ones_like(group))
            groups = groups.joined(self.groups, np.flatnonzero(~stage.closed))
        found = replace(groups.table(), margins=self._margins)
        if self._cut is None:
            return found
        rows = np.unique(np.column_stack([found.codes, found.known]), axis=0)
        one = np.ones(len(rows), np.int64)  # a coarse record may lie on both sides
        return replace(found, codes=rows[:, :-1], known=rows[:, -1], counts=one)


def table(facts: PublicFacts, care: Care, wish: Wish) -> Attack[TableFound]:
    """Find the distinct records of a table, learning what is likely on the way."""
    nothing = nothing_of(facts, wish.widths)
    unions = wish.thrift is not None and not wish.thrift.boxes_only
    if facts.policies.cache and not facts.claim.reads_exactly:
        unions = False  # new words are found for single boxes only (`rephrasing.varied`)
    engine, bounds = Existence(facts, care), About("finding bounds", 0.0, lambda: nothing)
    axes = yield from engine.limits(axes_of(facts, wish.widths), bounds)
    cut = engine.cut

    def about(look: Callable[[], list[Domain]], done: float) -> About:
        return About("values", 0.1 * done, lambda: known_alone(nothing, margins(look())))

    known = yield from domains(facts, axes, cut, care, about, in_turn=wish.most is not None)
    columns = margins(known)
    pilot = About("what is frequent", 0.1, lambda: known_alone(nothing, columns))
    seen = yield from _pilot(facts, known, care, pilot)
    bits = {column: entropy(mine) for column, mine in seen.items()}
    axes = least_telling_first(axes, wish.order, bits)
    if cut is not None:  # the column that splits the table comes first
        axes.sort(key=lambda axis: axis.column != cut.column)
    by_column = {each.axis.column: each for each in known}
    ordered = [by_column[axis.column] for axis in axes]
    records = _Known(ordered, facts.records, cut, columns)
    for domain in ordered[1:]:
        stage = records.stage(domain, seen[domain.axis.column], unions)
        yield from _search(facts, stage, records, care, unions)
        records.take(stage)
    return replace(records.found(), margins=())


def columns(facts: PublicFacts, care: Care, wish: Wish) -> Attack[ColumnsFound]:
    """Find the distinct values of columns, learning how dense they lie."""
    engine = Existence(facts, care)
    axes = yield from engine.limits(wish.axes(facts), About("finding bounds"))

    def about(look: Callable[[], list[Domain]], done: float) -> About:
        return About("columns", done, lambda: ColumnsFound(margins(look())))

    known = yield from domains(facts, axes, engine.cut, care, about, in_turn=wish.most is not None)
    return ColumnsFound(margins(known))


def margins(known: Sequence[Domain]) -> tuple[ColumnFound, ...]:
    """Return the values of columns as codes; columns without any are left out."""
    found = []
    for each in known:
        values = [(step, 1) for step in each.steps.tolist()]
        if values:
            column = column_found(each.axis, values, distinct=True)
            size = each.axis.size
            found.append(replace(column, bits=each.bits, domain=size, partial=not each.over))
    return tuple(found)


def entropy(seen: Floats) -> float:
    """Estimate the bits of a value from a few that were seen, and the number of values there are.

    As many as were seen only once is the share of those that were not seen at all (Good, Turing).

    >>> entropy(np.zeros(8)), entropy(np.array([6.0, 6.0]))
    (3.0, 1.0)
    """
    total, new = seen.sum(), np.count_nonzero(seen == 0)
    if not total:
        return float(np.log2(len(seen)))
    once = np.count_nonzero((seen > 0) & (seen < _ONCE))
    unseen = min(max(once, 1) / (total + 1), 0.99) if new else 0.0
    share = seen[seen > 0] / total * (1 - unseen)
    bits = -float((share * np.log2(share)).sum())
    return bits + (unseen * float(np.log2(new / unseen)) if new else 0.0)


def _pilot(
    facts: PublicFacts, known: Sequence[Domain], care: Care, about: About
) -> Attack[dict[int, Floats]]:
    """Look at a few records to see what is frequent.

    Records that share one value of the attribute with most values are a fair sample of all.
    """
    seen = {each.axis.column: np.zeros(len(each.steps)) for each in known}
    widest = max(known, key=lambda one: len(one.steps))
    values = len(widest.steps)
    many = min(_PILOT, facts.records // _PER_PILOT, values // 2)
    if not many:
        return seen
    place = shuffled(values)[:many]
    cells = Cells.points((widest.axis.column,), widest.low(place)[:, None], (widest.axis.width,))
    rates = np.full(many, facts.records / values)
    stages = [
        Stage(each, [], rates, facts.records, False, seen[each.axis.column])
        for each in known
        if each is not widest and len(each.steps) > 1
    ]
    for stage in stages:
        stage.most = _FEW
    left = {stage: stage.owner[:0] for stage in stages}
    while any(stage.done < 1 for stage in stages):
        left = {stage: np.concatenate([rows, stage.advance()]) for stage, rows in left.items()}
        asked = {stage: rows for stage, rows in left.items() if len(rows)}
        if not asked:
            continue
        parts = [_boxes(stage, rows)[0] for stage, rows in asked.items()]
        cell, column, low, high = np.hstack(parts)
        batch = QueryBatch(cells, cell, column, low, high, np.zeros_like(cell), about=about)
        zone = yield from zones_of(facts, batch, care)
        for stage, rows in asked.items():
            mine, zone = zone[: len(rows)], zone[len(rows) :]
            left[stage] = stage.tell(rows, mine != BELOW, mine == ABOVE)
    for stage in stages:  # a value of nearly all groups is more frequent than it was seen
        here = np.bincount(stage.results()[1], minlength=len(stage.domain.steps))
        seen[stage.domain.axis.column] = -many * np.log1p(-here / (many + 0.5))
    return seen


def _search(
    facts: PublicFacts, stage: Stage, known: _Known, care: Care, unions: bool
) -> Attack[None]:
    """Find one attribute in all groups."""
    cells, look = known.cells(), partial(known.found, stage)
    pools = Pools(BOXES // 2 if unions else 1)
    while stage.done < 1:
        pools.add(stage.advance())
        if not len(pools):
            continue
        offsets, rows = pools.questions(stage.chance, known.side[stage.owner], unions)
        if not len(rows):
            offsets, rows = pools.questions(stage.chance, known.side[stage.owner], False)
        (cell, column, low, high), sizes = _boxes(stage, rows)
        none = np.zeros(len(offsets) - 1, np.int64)
        ends = None if len(cell) == len(none) else summed(sizes)[offsets]
        about = known.groups.about(facts, stage.done, look, 0.1)
        batch = QueryBatch(cells, cell, column, low, high, none, offsets=ends, about=about)
        zone = yield from zones_of(facts, batch, care)
        pools.add(stage.tell(*pools.learn(zone != BELOW, zone == ABOVE)))


def _boxes(stage: Stage, rows: Codes) -> tuple[Codes, Codes]:
    """Return boxes (group, column, low, high) up to where lines are cut, and how many each has."""
    first = stage.places(rows, stage.low[rows])
    last = stage.places(rows, stage.cut[rows] - 1)
    down = stage.down[stage.owner[rows]]
    first, last = np.where(down, last, first), np.where(down, first, last)
    wrap = first > last
    sizes = 1 + wrap
    box = np.repeat(np.arange(len(rows)), sizes)
    second = np.concatenate([[False], box[1:] == box[:-1]])
    begin = np.where(second, 0, first[box])
    stop = np.where(wrap[box] & ~second, len(stage.domain.steps) - 1, last[box])
    column = np.full(len(box), stage.domain.axis.column)
    low, high = stage.domain.low(begin), stage.domain.high(stop)
    return np.stack([stage.owner[rows][box], column, low, high]), sizes
