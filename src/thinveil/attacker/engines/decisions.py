"""Deciding counts under any law: which threshold tells most, and when enough was heard.

A mechanism may have a law that no zones describe. It is public all the same, so every count has
a likelihood. A decision weighs all counts that are still possible; each round it asks at the
threshold where the likely ones differ most, and it ends when one count (or one side of a
question "more than t?") leads all others by as many nats as the attack's share of error asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.attacker.evidence.error_budget import Care, undecided
from thinveil.attacker.evidence.likelihood import row_loglik
from thinveil.attacker.evidence.sequential import answers_for, until_sure
from thinveil.attacker.terms import Attack
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Cells, Codes, Flags, Floats, QueryBatch

EXACTLY: Final = -1
"""In place of a t: how many records are there exactly?"""

_USUAL: Final = 1e-10  # what an answer is taken to cost before the first one came back
_SMALL: Final = 64  # tables of so few records have all their thresholds looked at
_NEAREST: Final = 24  # breakpoints around a threshold that are tried on every cut
_SPREAD: Final = 1024  # thresholds that are tried where no likely one tells anything
_CUTS: Final = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)
_TELLING: Final = 1e-12  # shares of difference below this are rounding
_ROUNDED: Final = 2.0**-50  # noise of a smaller scale is rounded away beside a true bit of 1
_STEP: Final = 0.5  # nats that a first step should about give
_PART: Final = 0.6  # the part of what is missing that a later step should about give


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be decided about ranges of one column in cells, as columns."""

    cell: Codes
    column: int  # the one that is narrowed, or WHOLE
    low: Codes
    high: Codes  # not included
    most: Codes  # the most records that there can be
    t: Codes  # decide whether there are more than so many; EXACTLY asks how many there are


class Book:
    """What thresholds tell of counts, under one law and at one loss."""

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        self.facts, self.care, self.epsilon = facts, care, _USUAL
        self._n = facts.records
        self._first: dict[tuple[int, int], tuple[int, float]] = {}
        around = np.unique(np.array([0, self._n // 2, self._n - 1]))
        cuts = facts.claim.sensitivity.breakpoints(around, self._n) - around[:, None]
        steps = np.unique(np.append(cuts, 0))
        near = np.argsort(np.abs(steps), kind="stable")[:_NEAREST]
        self._steps = np.concatenate([steps[near], steps[[0, -1]]])

    def decided(
        self, cells: Cells, wanted: Wanted, about: Callable[[float], About]
    ) -> Attack[Codes]:
        """Decide many counts side by side; return each count, or 1 and 0 for yes and no.

        Raises:
            Undecided: The law shows no usable difference.
        """
        deciding = _Deciding(self, cells, wanted, about)
        yield from until_sure(self.facts, self.care, deciding)
        return deciding.results

    def priced(self, answers: Answers) -> None:
        """Take note of what answers cost."""
        if answers.epsilon is not None and np.median(answers.epsilon) != self.epsilon:
            self.epsilon = float(np.median(answers.epsilon))
            self._first.clear()

    def first(self, most: int, t: int) -> tuple[int, float]:
        """Return the threshold to begin with, and how much one answer there tells."""
        if (most, t) not in self._first:
            self._first[most, t] = self.best(_before(most, t), t)
        return self._first[most, t]

    def best(self, belief: Floats, t: int) -> tuple[int, float]:
        """Return the threshold that tells most, and the distance that one answer gives there."""
        b = self._likely(belief, t)
        gain = self._gains(b, belief, t)
        if gain.max() <= _TELLING and len(b) < self._n:
            b = np.unique(np.linspace(0, self._n - 1, min(self._n, _SPREAD)).astype(np.int64))
            gain = self._gains(b, belief, t)
        gain = rounded(gain)
        place = int(np.argmax(gain))
        return int(b[place]), float(gain[place])

    def _likely(self, belief: Floats, t: int) -> Codes:
        """Return thresholds under which the law changes where belief is to be cut."""
        if self._n <= _SMALL:
            return np.arange(self._n)
        below = np.cumsum(belief)
        cuts = np.searchsorted(below, np.array(_CUTS) * below[-1])
        top = np.argsort(rounded(belief), kind="stable")[-2:]
        cuts = np.concatenate([cuts, top, top - 1, [max(t, 0)]])
        b = (cuts[:, None] - self._steps).ravel()
        return np.unique(np.minimum(np.maximum(b, 0), self._n - 1))

    def _gains(self, threshold: Codes, belief: Floats, t: int) -> Floats:
        """Return how far apart answers at each threshold put what must be told apart."""
        count = np.broadcast_to(np.arange(len(belief)), (len(threshold), len(belief)))
        b = np.broadcast_to(threshold[:, None], count.shape)
        claim, inside = self.facts.claim, np.zeros(count.shape, np.bool_)
        bit, scale = claim.law(count, b, inside, self._n, self.epsilon)
        laws, law = np.unique(scale + 1j * bit, return_inverse=True)
        law = law.reshape(count.shape)
        apart = 1.0 - alike(claim, laws.imag > 0, laws.real, self.epsilon)
        upper = belief * (np.arange(len(belief)) > t)
        lower = belief if t == EXACTLY else belief - upper
        one, other = (_masses(law, side, len(laws)) for side in (lower, upper))
        gain: Floats = ((one @ apart) * other).sum(axis=1)
        same = (belief**2).sum() if t == EXACTLY else 0.0
        return gain / max(float(lower.sum() * upper.sum() - same), 1e-300)


def alike(claim: Claim, bit: Flags, scale: Floats, epsilon: float) -> Floats:
    """Return how alike the answers of laws are, pair by pair: 1 the same, 0 never confused.

    This is the Bhattacharyya coefficient, or close to it: it decides what is asked, never what
    is believed.
    """
    noisy = (scale > 0) & (~bit | (scale > _ROUNDED * epsilon))
    wide = np.where(noisy, scale, 1.0) / epsilon
    law = claim.noise
    assert law is not None
    if claim.post == "binary":
        flipped = np.where(noisy, law.tail(0.5, 1 / wide), 0.0)
        one = np.where(bit, 1 - flipped, flipped)
        same: Floats = np.sqrt(np.outer(one, one)) + np.sqrt(np.outer(1 - one, 1 - one))
        return np.minimum(same, 1.0)
    overlap = law.overlap(wide[:, None], wide, bit[:, None] != bit)
    by_chance = np.sqrt(law.still(1 / wide, claim.post))
    one_only = np.where(noisy[:, None], by_chance[:, None], by_chance)
    others = np.where(noisy[:, None] | noisy, one_only, bit[:, None] == bit)
    return np.where(noisy[:, None] & noisy, overlap, others)


def _masses(law: Codes, belief: Floats, laws: int) -> Floats:
    """Return, a row a threshold, how likely each law is."""
    place = (np.arange(len(law))[:, None] * laws + law).ravel()
    weights = np.broadcast_to(belief, law.shape).ravel()
    masses = np.bincount(place, weights, len(law) * laws).reshape(-1, laws)
    return masses.astype(np.float64, copy=False)


@lru_cache(maxsize=4096)
def _before(most: int, t: int) -> Floats:
    """Return what is likely before anything is asked: small counts, and all of them."""
    belief = 1.0 / np.arange(1, most + 2)
    belief[-1] += 1.0 / (most + 1) + 0.25
    if t != EXACTLY:
        belief[: t + 1] /= belief[: t + 1].sum()
        belief[t + 1 :] /= belief[t + 1 :].sum()
    shares: Floats = belief / belief.sum()
    return shares


@dataclass(slots=True)
class _Decision:
    """One decision under way."""

    number: int
    most: int
    t: int
    nats: float
    loglik: Floats
    asked: dict[int, int] = field(default_factory=dict)  # answers that each threshold got
    threshold: int = 0
    repeats: int = 0

    def lead(self) -> float:
        """Return by how many nats the best count leads those it must be told from."""
        if self.t == EXACTLY:
            best = np.partition(self.loglik, -2)
            return float(best[-1] - best[-2])
        return abs(float(self.loglik[self.t + 1 :].max() - self.loglik[: self.t + 1].max()))

    def result(self) -> int:
        """Return the count, or whether there are more than t."""
        best = int(np.argmax(self.loglik))
        return best if self.t == EXACTLY else int(best > self.t)

    def plan(self, book: Book) -> None:
        """Choose the next threshold and how many answers it gets.

        Raises:
            Undecided: As many answers as allowed were heard.
        """
        drawn, lead, most = sum(self.asked.values()), self.lead(), book.care.most_repeats
        if drawn >= most * max(len(self.asked), 1):
            raise undecided(book.care, book.facts.claim.noise, self.nats)
        if drawn:
            likely = np.exp(self.loglik - self.loglik.max())
            b, apart = book.best(likely * _before(self.most, self.t), self.t)
        else:
            b, apart = book.first(self.most, self.t)
        distance = -math.log(max(1.0 - apart, 1e-15)) if apart > _TELLING else _TELLING
        # a step that grows with what was heard keeps rounds few, whatever was expected of it
        least = max(round(_STEP / distance), self.asked.get(b, 0) // 3, drawn // 32, 1)
        gap = self.nats - lead if lead > 1.0 else 0.0
        more = answers_for(gap, 4 * distance, share=_PART, least=least, most=most, up=False)
        self.threshold, self.repeats = b, int(more)
        self.asked[b] = self.asked.get(b, 0) + self.repeats


class _Deciding:
    """Decisions side by side. Conforms to `Inquiry`."""

    def __init__(
        self, book: Book, cells: Cells, wanted: Wanted, about: Callable[[float], About]
    ) -> None:
        self._book, self._cells, self._wanted, self._about = book, cells, wanted, about
        self.results = np.zeros(len(wanted.cell), np.int64)
        nats = book.care.nats(len(self.results)) if len(self.results) else 0.0
        self._open: list[_Decision] = []
        asked = zip(wanted.most.tolist(), wanted.t.tolist(), strict=True)
        for number, (most, t) in enumerate(asked):
            if most == 0 or (t != EXACTLY and not 0 <= t < most):
                self.results[number] = 0 if t == EXACTLY or t >= most else 1
                continue
            sure = nats + math.log(most + 1)
            self._open.append(_Decision(number, most, t, sure, np.zeros(most + 1)))
        self._total = max(len(self._open), 1)

    @property
    def running(self) -> bool:
        return len(self._open) > 0

    def ask(self) -> QueryBatch:
        for each in self._open:
            each.plan(self._book)
        wanted, rows = self._wanted, np.array([each.number for each in self._open], np.int64)
        return QueryBatch(
            self._cells,
            wanted.cell[rows],
            np.full(len(rows), wanted.column),
            wanted.low[rows],
            wanted.high[rows],
            np.array([each.threshold for each in self._open], np.int64),
            repeats=np.array([each.repeats for each in self._open], np.int64),
            about=self._about(1 - len(self._open) / self._total),
        )

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        """Weigh answers, those over as many counts together."""
        self._book.priced(answers)
        facts = self._book.facts
        drawn, epsilon = np.broadcast_to(batch.repeats, batch.threshold.shape), answers.epsilon
        sizes = np.array([each.most + 1 for each in self._open])
        for size in np.unique(sizes).tolist():
            mine = sizes == size
            values = answers.values[np.repeat(mine, drawn)]
            cost = epsilon[mine] if isinstance(epsilon, np.ndarray) else epsilon
            told = row_loglik(
                facts.claim,
                np.broadcast_to(np.arange(size), (len(drawn[mine]), size)),
                batch.threshold[mine],
                facts.records,
                Answers(values, drawn[mine], cost),
            )
            for place, row in zip(np.flatnonzero(mine).tolist(), told, strict=True):
                self._open[place].loglik = self._open[place].loglik + row
        sure = [each for each in self._open if each.lead() >= each.nats]
        self.results[[each.number for each in sure]] = [each.result() for each in sure]
        self._open = [each for each in self._open if each.lead() < each.nats]
