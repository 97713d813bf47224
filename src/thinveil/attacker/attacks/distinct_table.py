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


class _Groups:
    """The records as far as they are known: groups that agree on all attributes found."""

    def __init__(
        self, known: Sequence[Domain], seen: Sequence[Floats], records: int, cut: Cut | None
    ) -> None:
        self._domains, self._seen = tuple(known), tuple(seen)
        self._axes = tuple(each.axis for each in known)
        self._records, self._cut = records, cut
        first = known[0]
        if first.sides is None:
            self.places = np.arange(len(first.steps))[:, None]
            self.side = np.zeros(len(first.steps), np.int64)
        else:
            sides = [np.searchsorted(first.steps, each) for each in first.sides]
            self.places = np.concatenate(sides)[:, None]
            self.side = np.repeat([0, 1], [len(each) for each in sides])
        groups = len(self.places)
        self.rates = np.full(groups, records / groups)
        self._contexts = [self.places[:, 0] % LEVELS] if groups > 1 else []
        self.bits = [first.bits]

    @property
    def depth(self) -> int:
        """How many attributes are known."""
        return int(self.places.shape[1])

    def cells(self) -> Cells:
        """Return the groups as cells."""
        cells = Cells.points(
            tuple(axis.column for axis in self._axes[: self.depth]),
            self._codes(self.places),
            tuple(axis.width for axis in self._axes[: self.depth]),
        )
        return cells if self._cut is None else on_side(cells, self._cut, self.side)

    def _codes(self, places: Codes) -> Codes:
        codes = np.empty(places.shape, np.int64)
        for column in range(places.shape[1]):
            codes[:, column] = self._domains[column].low(places[:, column])
        return codes

    def stage(self, unions: bool) -> Stage:
        """Return the search for the next attribute."""
        spare = self._records - len(self.places)
        rates = self.rates * (spare / self.rates.sum())
        domain, seen = self._domains[self.depth], self._seen[self.depth]
        return Stage(domain, self._contexts, rates, spare, unions, seen)

    def take(self, stage: Stage) -> None:
        """Split the groups by what was found of the next attribute."""
        group, place, self.rates = stage.results()
        self.bits.append(stage.domain.bits + stage.bits)
        self.places = np.column_stack([self.places[group], place])
        self.side = self.side[group]
        self._contexts = [each[group] for each in self._contexts]
        level = stage.level(place)
        if level is not None:
            self._contexts.append(level)

    def found(self, stage: Stage | None = None) -> TableFound:
        """Return the records as they are known, perhaps with one more attribute half found."""
        places, known = self.places, np.full(len(self.places), self.depth)
        if stage is not None:
            group, place, _ = stage.results()
            left = np.flatnonzero(~stage.closed)
            places = np.vstack(
                [
                    np.column_stack([places[group], place]),
                    np.column_stack([places[left], np.zeros(len(left), np.int64)]),
                ]
            )
            known = np.concatenate([np.full(len(group), self.depth + 1), known[left]])
        codes = self._codes(places)
        codes[known == self.depth, self.depth :] = 0
        rest = np.zeros((len(codes), len(self._axes) - codes.shape[1]), np.int64)
        rows = np.column_stack([codes, rest, known])
        if self._cut is not None:  # a coarse record may lie on both sides
            rows = np.unique(rows, axis=0)
        return TableFound(
            tuple(axis.column for axis in self._axes),
            rows[:, :-1],
            rows[:, -1],
            np.ones(len(rows), np.int64),
            tuple(axis.width for axis in self._axes),
            True,
            tuple(self.bits),
        )


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
    groups = _Groups(ordered, [seen[each.axis.column] for each in ordered], facts.records, cut)
    for depth, domain in enumerate(ordered[1:], 1):
        label = f"attribute {depth + 1} of {len(axes)}: {facts.schema[domain.axis.column].name}"
        stage = groups.stage(thrifty)
        yield from _search(facts, stage, groups, label, care, thrifty)
        groups.take(stage)
    return groups.found()


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
    facts: PublicFacts, stage: Stage, groups: _Groups, label: str, care: Care, thrifty: bool
) -> Attack[None]:
    """Find one attribute in all groups."""
    cells = groups.cells()
    pools = Pools(MOST_BOXES // 2 if thrifty else 1)
    of = len(facts.schema)
    look = partial(groups.found, stage)
    while stage.running:
        pools.add(stage.advance())
        if not len(pools):
            continue
        offsets, rows = pools.questions(stage.chance, groups.side[stage.owner], thrifty)
        if not len(rows):
            offsets, rows = pools.questions(stage.chance, groups.side[stage.owner], False)
        done = (groups.depth + stage.over / len(stage.closed)) / of
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
