"""Which records exist, found with as few answers as beliefs allow (Bootstrap DP).

An answer tells none, some or all. First come the values of all columns (`domains`); after that
only values that occur are looked for. Then each attribute is found in all groups of records that
agree on the attributes before it, each group a line (`frontiers`). Groups that are over teach how
likely each value is beside others, and how many values to expect: the number of records is
public, so the fewer of them are not accounted for by the groups, the surer it is that a group
holds one. The thrifty form asks about many groups at once (`pools`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from thinveil.attacker.attacks.distinct_columns import Domain, domains
from thinveil.attacker.attacks.distinct_searches import limited, on_side
from thinveil.attacker.attacks.distinct_stages import Stage
from thinveil.attacker.attacks.groups import Groups
from thinveil.attacker.attacks.table import column_found, in_order, nothing_of
from thinveil.attacker.attacks.witness_cut import Cut, find_cut
from thinveil.attacker.beliefs.arrays import LEVELS
from thinveil.attacker.engines.group_testing import Pools
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.findings import ColumnsFound, TableFound
from thinveil.attacker.fixed_order import shuffled
from thinveil.attacker.terms import ABOVE, BELOW, Attack, axes_of
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Floats, QueryBatch

MOST_BOXES: Final = 256
"""The most boxes in a question of the thrifty form."""
_PILOT: Final = 40  # the most groups that show what is frequent
_ONCE: Final = 1.5
_FEW: Final = 4  # values of each of them that are looked at
_PER_PILOT: Final = 500  # one of them for so many records


class _Known:
    """The records as far as they are known, on which side of a cut, and how many seem to be."""

    def __init__(self, known: Sequence[Domain], records: int, cut: Cut | None) -> None:
        first = known[0]
        steps = (first.steps,) if first.sides is None else first.sides
        place = np.searchsorted(first.steps, np.concatenate(steps))
        self.side = np.repeat(np.arange(len(steps)), [len(each) for each in steps])
        self._records, self._cut = records, cut
        whole = Groups.whole([each.axis for each in known], [1], bits=(), distinct=True)
        self.groups = whole.split(
            np.zeros(len(place), np.int64),
            first.low(place),
            np.ones(len(place), np.int64),
            place % LEVELS if len(place) > 1 else None,
            first.bits,
        )
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
        ones = np.ones(len(group), np.int64)
        self.groups = self.groups.split(
            group,
            stage.domain.low(place),
            ones,
            stage.level(place),
            stage.domain.bits + stage.bits,
        )
        self.side = self.side[group]

    def found(self, stage: Stage | None = None) -> TableFound:
        """Return the records as they are known, perhaps with one more attribute half found."""
        groups = self.groups
        if stage is not None:
            group, place, _ = stage.results()
            groups = groups.split(group, stage.domain.low(place), np.ones(len(group), np.int64))
            groups = groups.joined(self.groups, np.flatnonzero(~stage.closed))
        found = groups.table()
        if self._cut is None:
            return found
        rows = np.unique(np.column_stack([found.codes, found.known]), axis=0)
        one = np.ones(len(rows), np.int64)  # a coarse record may lie on both sides
        return replace(found, codes=rows[:, :-1], known=rows[:, -1], counts=one)


def table(
    facts: PublicFacts,
    order: Sequence[int] | None = None,
    widths: dict[int, int] | None = None,
    care: Care | None = None,
    thrifty: bool = False,
) -> Attack[TableFound]:
    """Find the distinct records of a table, learning what is likely on the way.

    Args:
        facts: What is public.
        order: Columns to begin with, where the user wants a say.
        widths: A coarser precision for some columns.
        care: How sure decisions must be, where single answers do not tell.
        thrifty: Whether to ask about many groups at once, if the curator's cache lets us.
    """
    care = care or Care()
    nothing = nothing_of(facts, widths)
    if facts.policies.cache and not facts.claim.reads_exactly:
        thrifty = False  # new words are found for single boxes only (`wording.varied`)
    cut = None
    if facts.claim.hides_direction:
        cut = yield from find_cut(facts, care, lambda: nothing)
    axes = yield from limited(facts, axes_of(facts, widths), cut, care, lambda: nothing)
    known = yield from domains(
        facts, axes, cut, care, lambda _, done: About("values", 0.1 * done, lambda: nothing)
    )
    seen = yield from _pilot(
        facts, known, care, lambda: About("what is frequent", 0.1, lambda: nothing)
    )
    ordered = _ordered(known, seen, order, cut)
    records = _Known(ordered, facts.records, cut)
    for depth, domain in enumerate(ordered[1:], 1):
        label = f"attribute {depth + 1} of {len(axes)}: {facts.schema[domain.axis.column].name}"
        stage = records.stage(domain, seen[domain.axis.column], thrifty)
        yield from _search(facts, stage, records, label, care, thrifty)
        records.take(stage)
    return records.found()


def columns(
    facts: PublicFacts,
    wanted: Sequence[int],
    widths: dict[int, int] | None = None,
    care: Care | None = None,
) -> Attack[ColumnsFound]:
    """Find the distinct values of columns, learning how dense they lie."""
    care = care or Care()
    axes = [axes_of(facts, widths)[each] for each in wanted]
    cut = None
    if facts.claim.hides_direction:
        cut = yield from find_cut(facts, care, lambda: None)
    axes = yield from limited(facts, axes, cut, care, lambda: None)
    known = yield from domains(
        facts,
        axes,
        cut,
        care,
        lambda look, done: About("columns", done, lambda: _columns_found(look())),
    )
    return _columns_found(known)


def _columns_found(known: Sequence[Domain]) -> ColumnsFound:
    """Return the values of columns as codes; columns without any are left out."""
    return ColumnsFound(
        tuple(
            replace(
                column_found(each.axis, [(step, 1) for step in each.steps.tolist()]),
                distinct=True,
                bits=each.bits,
            )
            for each in known
            if len(each.steps)
        )
    )


def _ordered(
    known: Sequence[Domain],
    seen: dict[int, Floats],
    order: Sequence[int] | None,
    cut: Cut | None,
) -> list[Domain]:
    """Sort attributes as the user says, the rest by what they tell; a cut's comes first."""
    by_column = {each.axis.column: each for each in known}
    axes = in_order([each.axis for each in known], order)
    first = len(order or ())
    rest = sorted(axes[first:], key=lambda axis: entropy(seen[axis.column]))
    ordered = [by_column[axis.column] for axis in (*axes[:first], *rest)]
    if cut is not None:
        ordered.sort(key=lambda one: one.axis.column != cut.column)
    return ordered


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
    facts: PublicFacts, known: Sequence[Domain], care: Care, about: Callable[[], About]
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
    open_rows = [stage.owner[:0] for stage in stages]
    while any(stage.running for stage in stages):
        parts = []
        for place_of, stage in enumerate(stages):
            open_rows[place_of] = np.concatenate([open_rows[place_of], stage.advance()])
            if len(rows := open_rows[place_of]):
                parts.append(_batch(cells, stage, np.arange(len(rows) + 1), rows, about()))
        if not parts:
            continue
        zone = yield from zones_of(facts, _together(parts), care)
        for place_of, stage in enumerate(stages):
            if len(rows := open_rows[place_of]):
                mine, zone = zone[: len(rows)], zone[len(rows) :]
                open_rows[place_of] = stage.tell(rows, mine != BELOW, mine == ABOVE)
    for stage in stages:  # a value of nearly all groups is more frequent than it was seen
        here = np.bincount(stage.results()[1], minlength=len(stage.domain.steps))
        seen[stage.domain.axis.column] = -many * np.log1p(-here / (many + 0.5))
    return seen


def _together(parts: Sequence[QueryBatch]) -> QueryBatch:
    """Return batches about single boxes of the same cells as one."""
    return QueryBatch(
        parts[0].cells,
        np.concatenate([part.cell for part in parts]),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.threshold for part in parts]),
        about=parts[0].about,
    )


def _search(
    facts: PublicFacts, stage: Stage, known: _Known, label: str, care: Care, thrifty: bool
) -> Attack[None]:
    """Find one attribute in all groups."""
    cells = known.cells()
    pools = Pools(MOST_BOXES // 2 if thrifty else 1)
    of = len(facts.schema)
    look = partial(known.found, stage)
    while stage.running:
        pools.add(stage.advance())
        if not len(pools):
            continue
        offsets, rows = pools.questions(stage.chance, known.side[stage.owner], thrifty)
        if not len(rows):
            offsets, rows = pools.questions(stage.chance, known.side[stage.owner], False)
        done = (known.groups.depth + stage.done) / of
        batch = _batch(cells, stage, offsets, rows, About(label, 0.1 + 0.9 * done, look))
        zone = yield from zones_of(facts, batch, care)
        pools.add(stage.tell(*pools.learn(zone != BELOW, zone == ABOVE)))


def _batch(cells: Cells, stage: Stage, offsets: Codes, rows: Codes, about: About) -> QueryBatch:
    """Ask whether groups have anything up to where they are cut."""
    first = stage.places(rows, stage.low[rows])
    last = stage.places(rows, stage.cut[rows] - 1)
    down = stage.down[stage.owner[rows]]
    first, last = np.where(down, last, first), np.where(down, first, last)
    wrap = first > last
    sizes = 1 + wrap
    box = np.repeat(np.arange(len(rows)), sizes)
    second = np.concatenate([[False], box[1:] == box[:-1]])
    begin, stop = first[box], last[box]
    split = wrap[box]
    stop = np.where(split & ~second, len(stage.domain.steps) - 1, stop)
    begin = np.where(second, 0, begin)
    ends = np.concatenate([[0], np.cumsum(sizes)])[offsets]
    return QueryBatch(
        cells,
        stage.owner[rows][box],
        np.full(len(box), stage.domain.axis.column),
        stage.domain.low(begin),
        stage.domain.high(stop),
        np.zeros(len(offsets) - 1, np.int64),
        offsets=None if len(box) == len(offsets) - 1 else ends,
        about=about,
    )
