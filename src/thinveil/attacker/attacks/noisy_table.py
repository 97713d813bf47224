"""The adaptive attack where a single answer does not tell its zone.

Each attribute is searched by carrying beliefs (`posterior`), which start from what was learned
of the records found before (`good_turing`). On the way everything is checked only in haste: that
every record is where it is thought to be is proved at the end, once for all its attributes.
What cannot be proved is traced back to the last cell that surely holds it and searched again
from there, with proofs. So the error bound rests on fresh answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from thinveil.attacker.attacks import learned_table
from thinveil.attacker.attacks.final_proofs import Claims, proved, proved_in_bulk
from thinveil.attacker.attacks.groups import Groups, Tree, codes_of
from thinveil.attacker.attacks.table import Wish, in_order, nothing_of
from thinveil.attacker.beliefs.arrays import Triple, by_group, flattened
from thinveil.attacker.beliefs.count_parts import is_large
from thinveil.attacker.beliefs.good_turing import Outlook, View
from thinveil.attacker.engines.posterior.engine import Asking
from thinveil.attacker.engines.posterior.searches import Searches
from thinveil.attacker.engines.posterior.state import Manner
from thinveil.attacker.engines.published import evenly
from thinveil.attacker.engines.waves import Waves, large, smallest_first, turns
from thinveil.attacker.evidence.error_budget import Care, risky
from thinveil.attacker.evidence.likelihood import cut_up
from thinveil.attacker.evidence.rephrasing import leaving
from thinveil.attacker.evidence.sequential import until_sure
from thinveil.attacker.findings import TableFound
from thinveil.attacker.terms import Attack, Axis, axes_of
from thinveil.errors import EvidenceError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Flags, QueryBatch
from thinveil.language.schema import INFINITE

_BIG: Final = 4096  # records of a table whose rounds are long enough to want fewer of them
_ROUNDS: Final = 2.0  # how long steps are then
_ANSWERS: Final = 0.5  # and where answers matter more than rounds, and each tells little
_PATIENT: Final = 4.0  # how long steps are where few searches are left
_CHECK: Final = 6.0  # nats by which something is checked in haste
_HASTE: Final = 0.01  # the chance that a whole attack in haste has to be done again
_NEARLY: Final = 1e-3  # the loss of an answer up to which noise is hardly ever rounded away
_FIRST: Final = 27  # the share of records that is searched before anything is learned
_FIRST_SCANNED: Final = 256  # the same where counts are looked through, which is dear
_SINGLY: Final = 32  # values of a domain that are then counted one by one, until some are known
_FEW: Final = 16  # or so many, where that is more
_LEAST: Final = 4  # groups that are searched at a time at least, where rounds matter
_ALMOST: Final = 0.05  # the share of a wave that may still run when the next one begins
_WIDEST: Final = 2**48  # the widest domain whose places are counted exactly by doubles


def table(facts: PublicFacts, care: Care, wish: Wish) -> Attack[TableFound]:
    """Reconstruct the whole table from answers that tell little by themselves."""
    claim, thrift, proving = facts.claim, wish.thrift, proved
    if thrift is not None and not thrift.boxes_only and not facts.policies.cache:
        proving = proved_in_bulk
    axes = axes_of(facts, wish.widths)
    if claim.post == "integer" and not claim.hides_direction and claim.leaks:
        prove = None if _constant(facts, axes) else partial(proving, facts, care=care)
        found = yield from _hasty(facts, care, wish, prove)
        if found is not None:
            return found
    nothing = nothing_of(facts, wish.widths)
    bounds = About("finding bounds", 0.0, lambda: nothing)
    axes = yield from evenly(facts, care).limits(axes, bounds)
    axes = [_countable(axis) for axis in in_order(axes, wish.order)]
    tree = Tree(axes, facts.records)
    patience = 1.0
    if thrift is not None and claim.hides_direction:
        patience = _ANSWERS
    elif thrift is None and facts.records >= _BIG and not _scans(facts):
        patience = _ROUNDS
    for _ in axes:
        stage = _Stage(facts, care, tree, patience)
        yield from _search(facts, care, stage, tree)
        tree.grow(stage.found(), stage.lost, stage.closed, stage.bits)
    if not _constant(facts, axes):
        yield from _settle(facts, care, tree, proving)
    return tree.groups.table()


def _scans(facts: PublicFacts) -> bool:
    """Tell whether a table is large and directions hide, so that counts are looked through.

    Whether a count lies in a window is all that answers tell then: the questions about a count
    grow with how many values it may have. So what predicts counts is learned from the smallest
    groups first.
    """
    return is_large(facts) and facts.claim.hides_direction


def _hasty(
    facts: PublicFacts, care: Care, wish: Wish, prove: Callable[..., Attack[Flags]] | None
) -> Attack[TableFound | None]:
    """Search in haste and prove all records at the end; where that fails, search with care.

    Returns None where answers cost so much that noise is often rounded away: then one answer
    is not nearly enough, and evidence had better be carried along.
    """
    quick = Care(_HASTE, care.most_repeats, 32 * facts.records * len(facts.schema))
    quick.empty = care.empty
    attack = learned_table.table(facts, quick, wish)
    try:
        batch = next(attack)
        while True:
            quick.words = max(quick.words, care.words)
            answers = yield replace(batch, about=replace(risky(batch.about, care), proved=False))
            care.words = max(quick.words, care.words)
            if answers.epsilon is not None and float(np.median(answers.epsilon)) > _NEARLY:
                attack.close()
                return None
            batch = attack.send(answers)
    except StopIteration as stop:
        found: TableFound = stop.value
    except EvidenceError:
        return (yield from learned_table.table(facts, care, wish))
    if prove is None:
        return found
    claims = _claims(found, found.counts)
    sure = yield from prove(claims, about=About("proving", 1.0, lambda: found, proved=False))
    return found if sure.all() else (yield from learned_table.table(facts, care, wish))


def _claims(found: Groups | TableFound, records: Codes, rows: Codes | None = None) -> Claims:
    """Return the claim that so many records have each row of codes, or some of the rows."""
    rows = np.arange(len(records)) if rows is None else rows
    columns, codes, widths = found.columns, found.codes[rows], found.widths
    cells = Cells.points(columns[:-1], codes[:, :-1], widths[:-1])
    return Claims(cells, columns[-1], codes[:, -1], widths[-1], records[rows])


def _constant(facts: PublicFacts, axes: Sequence[Axis]) -> bool:
    """Tell whether a bounded universe has room for one record only, so that nothing is asked."""
    bounded = facts.claim.universe == "bounded"
    return bounded and all(axis.lower is not None and axis.size == 1 for axis in axes)


# -- one attribute ------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Wave:
    """Groups that are searched together, by what was known when they began."""

    groups: Codes
    searches: Searches
    view: View | None
    records: int
    over: bool = False


def _countable(axis: Axis) -> Axis:
    """Return an axis whose places eight bytes count: of 2^63 values, the lowest is left out."""
    lower, upper = axis.limits
    return axis.within(lower + 1, upper) if axis.size > INFINITE else axis


class _Stage:
    """The search for one attribute in all groups that are not lost; early ones teach later ones."""

    def __init__(self, facts: PublicFacts, care: Care, tree: Tree, patience: float) -> None:
        sizes, lost, axis = tree.groups.sizes, tree.lost, tree.groups.axes[tree.groups.depth]
        self._facts, self.axis, self._sizes, self._care = facts, axis, sizes, care
        self._patience = patience
        self._places = Axis(axis.column, 0, axis.size - 1)
        outlook = Outlook(axis.size, list(tree.groups.contexts))
        self._outlook = outlook if axis.size <= _WIDEST else None
        self.lost, self.closed, self.bits = lost.copy(), lost.copy(), 0.0
        there = np.flatnonzero(~lost)
        self._scans = _scans(facts)
        if self._scans:
            order = smallest_first(sizes[there], tree.parents[tree.groups.depth][there])
        else:
            order = turns(large(sizes)[there].astype(np.int64))
        self._turns = Waves(there[order], sizes=sizes)
        self._waves: list[_Wave] = []
        self._records = int(sizes.sum())
        self._found: list[Triple] = []

    @property
    def running(self) -> bool:
        """Whether anything is left to find."""
        return self._turns.waiting or any(not wave.over for wave in self._waves)

    @property
    def done(self) -> float:
        """The share of records that have a value."""
        done = sum(wave.records - wave.searches.finds.left for wave in self._waves)
        return done / self._records

    def advance(self) -> None:
        """Begin another wave when hardly anything of the earlier ones is left."""
        begun = sum(wave.records for wave in self._waves)
        left = sum(wave.searches.finds.left for wave in self._waves if not wave.over)
        last = self._waves[-1].records if self._waves else 0
        if not self._turns.waiting or left > _ALMOST * last:
            return
        for wave in self._waves:
            self._take(wave)
        first = self._records // (_FIRST_SCANNED if self._scans else _FIRST)
        many = self._turns.upto(max(first, _FEW, 2 * begun))
        groups = self._turns.begin(max(many, _LEAST if self._patience > 1 else 1))
        view = None if self._outlook is None else self._outlook.view(groups, self._found)
        sizes = self._sizes[groups]
        epsilon = self._waves[-1].searches.epsilon if self._waves else None
        singly = self._scans and not begun and self.axis.size <= _SINGLY
        manner = Manner(view, _CHECK, epsilon, self._patience, singly)
        searches = Searches(self._facts, self._places, sizes, self._care, manner)
        self._waves.append(_Wave(groups, searches, view, int(sizes.sum())))

    def _take(self, wave: _Wave) -> None:
        """Note what a wave has found, once all of it, or nearly so, is over."""
        searches = wave.searches
        if wave.over:
            return
        closed = searches.finds.done
        fresh = closed & ~self.closed[wave.groups]
        self.closed[wave.groups] |= closed
        self.lost[wave.groups] |= searches.lost
        wave.over = not searches.running
        mine = np.flatnonzero(fresh & ~searches.lost)
        found = [searches.finds.values[each] for each in mine.tolist()]
        row, value, size = flattened(found)
        if not len(row):
            return
        local = mine[row]
        group = wave.groups[local]
        self._found.append((group, value, size))
        if wave.view is not None:
            self.bits += wave.view.bits(local, value, size)

    def found(self) -> Triple:
        """Return group, place and number of records of all that is found."""
        for wave in self._waves:
            self._take(wave)
        return by_group(self._found)

    def so_far(self) -> Triple:
        """Return the same, and values found of groups that are not over yet."""
        parts = [self.found()]
        for wave in self._waves:
            searches = wave.searches
            for local in np.flatnonzero(~searches.finds.done & ~searches.lost).tolist():
                row, value, size = flattened([searches.finds.values[local]])
                parts.append((row + wave.groups[local], value, size))
        return by_group(parts)

    def asking(self) -> list[_Wave]:
        """Return the waves that have something to ask."""
        for wave in self._waves:
            if not wave.over and not wave.searches.running:
                self._take(wave)
        return [wave for wave in self._waves if not wave.over]


def _search(facts: PublicFacts, care: Care, stage: _Stage, tree: Tree) -> Attack[None]:
    """Find one attribute in all groups."""
    axis, groups, cells = stage.axis, tree.groups, tree.groups.cells()
    while stage.running:
        stage.advance()
        waves = stage.asking()
        if not waves:
            continue
        asked = [wave.searches.questions() for wave in waves]
        cell = [
            wave.groups[wave.searches.state.group[part[0]]]
            for wave, part in zip(waves, asked, strict=True)
        ]
        low, high, threshold, repeats = (
            np.concatenate([part[place] for part in asked]) for place in range(1, 5)
        )
        box = np.full(len(low), axis.column), codes_of(axis, low), codes_of(axis, high)
        about = groups.about(facts, stage.done, lambda: tree.partly(stage.so_far()))
        about = replace(about, proved=False)
        batch = QueryBatch(
            cells, np.concatenate(cell), *box, threshold, repeats=repeats, about=about
        )
        answers = yield leaving(facts, care, batch)
        ends = np.cumsum([len(part[0]) for part in asked])
        for wave, piece in zip(waves, cut_up(answers, repeats, ends), strict=True):
            if piece is not None:
                wave.searches.learn(piece[0])


# -- proofs at the end, and what they find wrong ------------------------------------------


def _settle(
    facts: PublicFacts, care: Care, tree: Tree, proving: Callable[..., Attack[Flags]]
) -> Attack[None]:
    """Prove all records; search again for those that are not where they were thought to be."""
    last = len(tree.groups.axes)
    about = About("proving", 1.0, tree.groups.table, proved=False)
    rows = np.flatnonzero(~tree.lost)
    wrong = [np.unique(each) for each in tree.bad]
    if len(rows):
        claims = _claims(tree.groups, tree.groups.sizes, rows)
        sure = yield from proving(facts, claims, care, about)
        wrong[-1] = np.union1d(wrong[-1], tree.parents[last][rows[~sure]])
    roots: list[Codes] = [np.empty(0, np.int64)] * last
    for depth in range(last - 1, -1, -1):
        groups = wrong[depth].astype(np.int64)
        if depth and len(groups):
            claims = _claims(tree.earlier[depth], tree.earlier[depth].sizes, groups)
            sure = yield from proved(facts, claims, care, about)
            parents = tree.parents[depth][groups[~sure]]
            wrong[depth - 1] = np.union1d(wrong[depth - 1], parents)
            groups = groups[sure]
        roots[depth] = groups
    if any(len(each) for each in roots):
        yield from _again(facts, care, tree, tree.topmost(roots))


def _again(facts: PublicFacts, care: Care, tree: Tree, roots: list[Codes]) -> Attack[None]:
    """Search groups that surely hold their records once more, with proofs at each step."""
    groups = Groups.whole(tree.groups.axes, [])
    about = About("searching again", 1.0, tree.groups.table, proved=False)
    for axis, earlier, mine in zip(groups.axes, tree.earlier, roots, strict=False):
        groups = groups.joined(earlier, mine)
        places, codes = Axis(axis.column, 0, axis.size - 1), partial(codes_of, axis)
        searches = Searches(facts, places, groups.sizes, care, Manner(patience=_PATIENT))
        asking = Asking(searches, groups.cells(), axis.column, codes, lambda: about)
        yield from until_sure(facts, care, asking)
        group, place, size = flattened(searches.finds.values)
        groups = groups.split(group, codes_of(axis, place), size)
    tree.regrow(roots, groups)
