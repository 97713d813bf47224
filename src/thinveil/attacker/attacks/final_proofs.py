"""Proofs that cells hold as many records as were found there, one by one or many at once.

If disjoint cells hold at least as many records each as is claimed, and the claims add up to all
records there are, every claim is exactly right. Many cells can be proved by one question about
their union; a record too many in one cell could then hide one that is missing from another. So
cells are put together at random, several times over: they would have to meet each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import spans, starts, summed
from thinveil.attacker.evidence.error_budget import Care, undecided
from thinveil.attacker.evidence.proofs import Paces, Test, at_least
from thinveil.attacker.evidence.sequential import until_sure
from thinveil.attacker.fixed_order import drawn
from thinveil.attacker.terms import Attack
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Cells, Codes, Flags, QueryBatch
from thinveil.language.schema import MISSING

MOST_BOXES: Final = 256
"""The most cells that one question is about."""
_BOXES: Final = 180  # and how many it is about on average
_UNIONS: Final = 8  # fewer questions than this are not worth the trouble
_DOUBTED: Final = -10.0  # nats at which a claim is given up


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """Claims that cells, each narrowed to one value of a column, hold so many records.

    Cells are disjoint once they are narrowed, and each is claimed to hold at least one record.
    """

    cells: Cells
    column: int
    code: Codes
    width: int
    records: Codes


def proved(facts: PublicFacts, claims: Claims, care: Care, about: About) -> Attack[Flags]:
    """Return which claims are right, each proved by itself; others may have fewer records."""
    rows = np.arange(len(claims.records))
    return (yield from _tested(facts, _Sets(claims, rows, np.ones_like(rows)), care, about))


def proved_in_bulk(facts: PublicFacts, claims: Claims, care: Care, about: About) -> Attack[Flags]:
    """Return which claims are right, proved many at a time by unions drawn at random.

    A wrong set of claims passes one drawing of r unions with a chance of at most 1 / r: given
    where all cells but one wrong one are put, at most one union balances that one. The chance
    is over the public seed of the run, which no table may have been made against.
    """
    many = len(claims.records)
    unions = -(-many // _BOXES)
    if unions < _UNIONS:
        return (yield from proved(facts, claims, care, about))
    sure = np.ones(many, np.bool_)
    drawings = math.ceil(care.nats(1) / math.log(unions))
    number = seed = 0
    while number < drawings:
        seed += 1
        union = (drawn(many, seed, care.seed) % np.uint64(unions)).astype(np.int64)
        if np.bincount(union, sure, unions).max() > MOST_BOXES:
            continue
        number += 1
        found = yield from _whole(facts, claims, union, sure, care, about)
        if number > 1 and (sure & ~found).any():
            number = 0  # earlier drawings counted on what is now known to be wrong
        sure &= found
    return sure


def _whole(
    facts: PublicFacts, claims: Claims, union: Codes, some: Flags, care: Care, about: About
) -> Attack[Flags]:
    """Prove unions; halve those that fail until the wrong claims are found."""
    sure = some.copy()
    rows = np.flatnonzero(some)
    order = rows[np.argsort(union[rows], kind="stable")]
    sets = np.split(order, np.flatnonzero(np.diff(union[order])) + 1)
    while sets:
        sizes = np.array([len(each) for each in sets], np.int64)
        whole = _Sets(claims, np.concatenate(sets), sizes)
        right = yield from _tested(facts, whole, care, about)
        failed = [each for each, fine in zip(sets, right.tolist(), strict=True) if not fine]
        sets = []
        for each in failed:
            if len(each) == 1:
                sure[each] = False
            else:
                sets += [each[: len(each) // 2], each[len(each) // 2 :]]
    return sure


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """Sets of claims, each of which is asked about at once: which claims, and how many a set."""

    claims: Claims
    which: Codes
    sizes: Codes

    def records(self) -> Codes:
        """Return how many records the claims of each set add up to."""
        return np.add.reduceat(self.claims.records[self.which], starts(self.sizes))

    def batch(self, rows: Codes, threshold: Codes, repeats: Codes, about: About) -> QueryBatch:
        """Return questions about the unions of some sets."""
        claims, sizes = self.claims, self.sizes[rows]
        box = self.which[spans(starts(self.sizes)[rows], sizes)]
        low = claims.code[box]
        high = low + np.where(low == MISSING, 1, claims.width)
        column = np.full(len(box), claims.column)
        offsets = None if (sizes == 1).all() else summed(sizes)
        return QueryBatch(claims.cells, box, column, low, high, threshold, offsets, repeats, about)


def _tested(facts: PublicFacts, sets: _Sets, care: Care, about: About) -> Attack[Flags]:
    """Tell for each set of claims whether it holds as many records as they add up to."""
    right = np.ones(len(sets.sizes), np.bool_)
    nats = care.nats(len(right))
    usual, second, twice = at_least(facts.claim, facts.records, sets.records())
    for test, mine in ((usual, np.arange(len(right))), (second, np.flatnonzero(twice))):
        proving = _Proving(facts, care, sets, test, mine[right[mine]], about, nats)
        yield from until_sure(facts, care, proving)
        right &= proving.led > _DOUBTED
    return right


class _Proving:
    """One test for each of some sets, until it is proved or given up. Conforms to `Inquiry`."""

    def __init__(
        self,
        facts: PublicFacts,
        care: Care,
        sets: _Sets,
        test: Test,
        asked: Codes,
        about: About,
        nats: float,
    ) -> None:
        self.facts, self.care, self.sets, self.test, self.about = facts, care, sets, test, about
        self.asked, self.nats = asked, nats  # the sets that are neither, and how sure to be
        self.led, self.drawn = np.zeros(len(test.yes)), np.zeros_like(test.yes)
        self.epsilon = None if facts.claim.protected else 1.0

    @property
    def running(self) -> bool:
        return len(self.asked) > 0

    def ask(self) -> QueryBatch:
        test, left = self.test.some(self.asked), self.care.most_repeats - self.drawn[self.asked]
        if (left <= 0).any():
            raise undecided(self.care, self.facts.claim.noise, self.nats)
        paces = Paces(self.facts, self.epsilon)
        repeats = np.minimum(paces.step, left)
        if self.epsilon is not None:
            gap = self.nats - self.led[self.asked]
            repeats = paces.answers(test, gap, max(1, paces.step // 2), left)
        return self.sets.batch(self.asked, test.threshold, repeats, self.about)

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        asked, drawn = self.asked, np.broadcast_to(batch.repeats, batch.threshold.shape)
        if answers.epsilon is not None:
            self.epsilon = float(np.median(answers.epsilon))
        self.drawn[asked] += drawn
        self.led[asked] += self.test.some(asked).lead(self.facts, answers, drawn)
        led = self.led[asked]
        self.asked = asked[(led < self.nats) & (led > _DOUBTED)]
