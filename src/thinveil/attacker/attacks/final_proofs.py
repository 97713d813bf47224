"""Proofs that cells hold as many records as were found there, one by one or many at once.

If disjoint cells hold at least as many records each as is claimed, and the claims add up to all
records there are, every claim is exactly right. Many cells can be proved by one question about
their union; a record too many in one cell could then hide one that is missing from another. So
cells are put together at random, several times over: they would have to meet each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from thinveil.attacker.evidence.error_budget import Care, risky, undecided
from thinveil.attacker.evidence.likelihood import Laws, spread, weighed
from thinveil.attacker.evidence.proofs import Test, at_least, speed
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.fixed_order import drawn
from thinveil.attacker.terms import Attack
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Cells, Codes, Flags, Floats, QueryBatch
from thinveil.language.schema import MISSING

MOST_BOXES: Final = 256
"""The most cells that one question is about."""
_BOXES: Final = 180  # and how many it is about on average
_UNIONS: Final = 8  # fewer questions than this are not worth the trouble
_DOUBTED: Final = -10.0  # nats at which a claim is given up


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """Claims that cells, each narrowed to one value of a column, hold so many records.

    Args:
        cells: The cells, disjoint once they are narrowed.
        column: The column.
        code: For each cell, the value.
        width: The precision of the column.
        records: How many records each is claimed to hold, at least one.
    """

    cells: Cells
    column: int
    code: Codes
    width: int
    records: Codes

    def batch(self, boxes: Codes, offsets: Codes | None, threshold: Codes) -> QueryBatch:
        """Return questions about unions of cells."""
        low = self.code[boxes]
        high = low + np.where(low == MISSING, 1, self.width)
        column = np.full(len(boxes), self.column)
        return QueryBatch(self.cells, boxes, column, low, high, threshold, offsets)


def proved(facts: PublicFacts, claims: Claims, care: Care, about: About) -> Attack[Flags]:
    """Return which claims are right, each proved by itself; others may have fewer records."""
    rows = np.arange(len(claims.records))
    return (yield from _tested(facts, claims, [rows[:, None]], care, about))


def proved_in_bulk(facts: PublicFacts, claims: Claims, care: Care, about: About) -> Attack[Flags]:
    """Return which claims are right, proved many at a time by unions drawn at random.

    A wrong set of claims passes one drawing of r unions with a chance of at most 1 / r: given
    where all cells but one wrong one are put, at most one union balances that one.
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
        union = (drawn(many, seed) % np.uint64(unions)).astype(np.int64)
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
        right = yield from _tested(facts, claims, sets, care, about)
        failed = [each for each, fine in zip(sets, right.tolist(), strict=True) if not fine]
        sets = []
        for each in failed:
            if len(each) == 1:
                sure[each] = False
            else:
                sets += [each[: len(each) // 2], each[len(each) // 2 :]]
    return sure


def _tested(
    facts: PublicFacts, claims: Claims, sets: list[Codes], care: Care, about: About
) -> Attack[Flags]:
    """Tell for each set of cells whether it holds as many records as its claims add up to."""
    claim, n = facts.claim, facts.records
    if len(sets) == 1 and sets[0].ndim == 2:
        boxes, sizes = sets[0][:, 0], np.ones(len(sets[0]), np.int64)
    else:
        boxes, sizes = np.concatenate(sets), np.array([len(each) for each in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    records = np.add.reduceat(claims.records[boxes], starts)
    right = np.ones(len(sizes), np.bool_)
    nats = care.nats(len(sizes))
    usual, second, twice = at_least(claim, n, records)
    for test, mine in ((usual, np.arange(len(sizes))), (second, np.flatnonzero(twice))):
        asked = mine[right[mine]]
        led, drawn = np.zeros(len(sizes)), np.zeros(len(sizes), np.int64)
        epsilon = None if claim.protected else 1.0
        while len(asked):
            repeats = _repeats(facts, test, asked, nats - led[asked], epsilon, care)
            if (drawn[asked] >= care.most_repeats).any():
                raise undecided(care)
            repeats = np.minimum(repeats, np.maximum(care.most_repeats - drawn[asked], 1))
            part = sizes[asked]
            box = np.repeat(starts[asked] - (np.cumsum(part) - part), part)
            box = boxes[box + np.arange(len(box))]
            offsets = None if (part == 1).all() else np.concatenate([[0], np.cumsum(part)])
            batch = claims.batch(box, offsets, test.threshold[asked])
            batch = replace(batch, about=risky(about, care))
            if facts.policies.cache and not claim.reads_exactly:
                answers = yield varied(facts, batch, repeats, care)
            else:
                answers = yield replace(batch, repeats=repeats)
            if answers.epsilon is not None:
                epsilon = float(np.median(answers.epsilon))
            drawn[asked] += repeats
            led[asked] += _lead(facts, test, asked, answers, repeats)
            right[asked[led[asked] <= _DOUBTED]] = False
            asked = asked[(led[asked] < nats) & (led[asked] > _DOUBTED)]
    return right


def _repeats(
    facts: PublicFacts, test: Test, asked: Codes, gap: Floats, epsilon: float | None, care: Care
) -> Codes:
    """Return how many answers would about do."""
    claim = facts.claim
    if epsilon is None:
        return np.full(len(asked), Laws.of(claim).first)
    upper = (
        test.threshold[asked] >= test.yes[asked] if claim.reach else np.ones(len(asked), np.bool_)
    )
    paces = [speed(claim, facts.records, side, epsilon) for side in (False, True)]
    pace = np.where(upper, paces[1].proof, paces[0].proof)
    least = max(1, max(each.step for each in paces) // 2)
    wanted = np.ceil(np.maximum(0.75 * gap / pace, least))
    return np.minimum(wanted, care.most_repeats).astype(np.int64)


def _lead(facts: PublicFacts, test: Test, asked: Codes, answers: Answers, drawn: Codes) -> Floats:
    """Return by how many nats answers speak for the claims."""
    yes, no = (spread(each[asked], answers, drawn) for each in (test.yes, test.no))
    told = weighed(
        facts.claim,
        lambda _: np.stack([yes, no], axis=1),
        test.threshold[asked],
        facts.records,
        answers,
        drawn,
    )
    return told[:, 0] - told[:, 1]
