"""One trial of membership: how much the answers speak for "in", as a number, never silence.

A log-likelihood ratio, the best test there is of two simple hypotheses (Neyman and Pearson). The
attacker knows every attribute of a target who is alone in them: the count of this box is 1, or 0
where the record was replaced, and the claim makes public how answers follow from either. Asking
goes on as in Wald's sequential test until the ratio is sure enough. Where answers run out before,
the ratio of those that came is the score all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.attacks.people import cells_of
from thinveil.attacker.engines.decisions import Book, alike
from thinveil.attacker.evidence.doubles import reachable, tells
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import weighed
from thinveil.attacker.evidence.rephrasing import find_empty
from thinveil.attacker.evidence.sequential import answers_for, until_sure
from thinveil.attacker.terms import Attack, Person
from thinveil.errors import Undecided
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Answers, Cells, Codes, QueryBatch
from thinveil.language.schema import INFINITE, MISSING

SURE: Final = 1e4
"""No score is farther from 0: as many nats as an answer tells that one side cannot give."""
_EVEN: Final = np.array([0.5, 0.5])  # before anything is asked: in or not, by a coin
_STEP: Final = 0.5  # nats that a first step should about give, as in engines/decisions
_PART: Final = 0.6  # the part of what is missing that a later step should about give, likewise
_LEAST: Final = 1e-12  # nats an answer, where the laws differ by no more than rounding


@dataclass(frozen=True, slots=True)
class Means:
    """What a trial has to spend.

    Args:
        loss: The claimed loss of its first answer; None where nothing is claimed.
        answers: How many answers it can have, by a cap or a schedule; None where that is not
            known beforehand. It asks for one more, so that whoever refuses says why.
        even: Whether every answer costs the same; where shares shrink, a batch gets the smallest
            of them, so few are asked at a time.
        doubles: Whether to look at which doubles can come out: one that only one of the two
            worlds can give settles the score.
    """

    loss: float | None
    answers: int | None = None
    even: bool = True
    doubles: bool = False


def score(facts: PublicFacts, care: Care, person: Person, means: Means) -> Attack[float]:
    """Ask about somebody who is alone in what is known; return nats in favour of "in".

    Raises:
        Undecided: A curator that remembers its answers has no more to say to new words; what is
            known by then is the score.
    """
    cells, constant = cells_of(facts, [person])
    if constant[0] is not None:  # true or false of any record: no answer could tell
        return 0.0
    ratio = _Ratio(facts, care, cells, means)
    claim = facts.claim
    if facts.policies.cache and not claim.reads_exactly and claim.universe == "bounded":
        try:
            care.empty = yield from find_empty(facts, care, lambda: ratio.score)
        except Undecided:  # there are no new words, so the same ones, once
            batch = ratio.once()
            ratio.learn(batch, (yield batch))
            raise
    yield from until_sure(facts, care, ratio)
    return ratio.score


class _Ratio:
    """The running ratio of one trial. Conforms to `Inquiry`."""

    def __init__(self, facts: PublicFacts, care: Care, cells: Cells, means: Means) -> None:
        self._facts, self._care, self._cells = facts, care, cells
        self._sure = -math.log(care.error)
        self._most = 1 if facts.claim.reads_exactly else care.most_repeats
        limits = (means.answers, facts.policies.max_queries)
        self._allowed = min((each for each in limits if each is not None), default=None)
        self._nats, self._asked, self._means = 0.0, 0, means
        self._loss: float | None = None
        self._choose(means.loss)

    @property
    def score(self) -> float:
        """Nats in favour of "in", finite."""
        return min(max(self._nats, -SURE), SURE)

    @property
    def running(self) -> bool:
        return abs(self._nats) < self._sure and self._asked < self._most

    def ask(self) -> QueryBatch:
        return self._batch(np.array([self._repeats()]))

    def once(self) -> QueryBatch:
        """Return the question as it is, for one answer."""
        return self._batch(1)

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        drawn = np.broadcast_to(batch.repeats, batch.threshold.shape)
        claim, records = self._facts.claim, self._facts.records
        told = weighed(claim, np.array([[0, 1]]), batch.threshold, records, answers, drawn)
        self._nats += float(told[0, 1] - told[0, 0])
        self._asked += int(drawn.sum())
        if self._means.doubles:
            self._nats += SURE * _settled(self._facts, int(batch.threshold[0]), answers)
        if answers.epsilon is not None:
            self._choose(float(np.median(answers.epsilon)))

    def _choose(self, loss: float | None) -> None:
        """Take the threshold that tells most at this loss, and note what an answer tells there."""
        if self._asked and loss == self._loss:
            return
        self._loss = loss
        self._threshold, apart = best_threshold(self._facts, self._care, loss)
        self._distance = max(-math.log(max(1 - apart, 1e-15)), _LEAST)

    def _repeats(self) -> int:
        """Return how many answers to ask for: few at first, and as many as may be missing."""
        left = self._most - self._asked
        if self._allowed is not None:
            left = min(left, max(self._allowed - self._asked, 1))
        lead, least = abs(self._nats), max(self._asked // 3, 1)
        if self._means.doubles or not self._means.even:
            return min(least, left)
        gap = self._sure - lead if lead > 1.0 else 0.0
        least = max(round(_STEP / self._distance), least)
        # laws that are this far apart give about four times as many nats an answer
        nats = 4 * self._distance
        return int(answers_for(gap, nats, share=_PART, least=least, most=left, up=False))

    def _batch(self, repeats: int | Codes) -> QueryBatch:
        cell, column, low, high, threshold = np.array(
            [[0], [WHOLE], [MISSING], [INFINITE], [self._threshold]]
        )
        about = About("a trial of membership", self._asked / self._most, lambda: self.score)
        whole = (cell, column, low, high, threshold)
        return QueryBatch(self._cells, *whole, repeats=repeats, about=about)


def best_threshold(facts: PublicFacts, care: Care, loss: float | None) -> tuple[int, float]:
    """Return the threshold at which answers about one record and about none differ most.

    Also how much: 1 less the Bhattacharyya coefficient of the two laws. Noise around b tells at
    b = k, the true bit at b = 0; which of them tells more depends on the loss of an answer.
    """
    claim = facts.claim
    if not claim.protected or loss is None:
        return 0, 1.0
    if not claim.zoned:
        book = Book(facts, care)
        book.epsilon = loss
        return book.best(_EVEN, 0)
    b = np.array([claim.reach, 0])
    apart = [_apart(facts, each, loss) for each in b.tolist()]
    place = int(np.argmax(apart))
    return int(b[place]), apart[place]


def _settled(facts: PublicFacts, threshold: int, answers: Answers) -> int:
    """Return 1 where some double can come from one record only, -1 from none only, else 0.

    Nothing is believed where both are said: then the noise is not drawn as we think.
    """
    claim, values, epsilon = facts.claim, answers.values, answers.epsilon
    if epsilon is None or not tells(claim.noise):
        return 0
    loss = np.resize(np.asarray(epsilon, np.float64), values.shape)
    b, inside = np.full(values.shape, threshold), np.zeros(values.shape, np.bool_)
    possible = []
    for count in (0, 1):
        bit, scale = claim.law(np.full_like(b, count), b, inside, facts.records, loss)
        noisy, centre = scale > 0, bit.astype(np.float64)
        wide = np.where(noisy, scale, 1.0) / loss
        drawn = reachable(claim.noise, values, centre, wide)
        possible.append(np.where(noisy, drawn, values == centre))
    none, one = possible
    return int((one & ~none).any()) - int((none & ~one).any())


def _apart(facts: PublicFacts, threshold: int, loss: float) -> float:
    count, inside = np.arange(2), np.zeros(2, np.bool_)
    b = np.full(2, threshold)
    bit, scale = facts.claim.law(count, b, inside, facts.records, loss)
    return 1.0 - float(alike(facts.claim, bit, scale, loss)[0, 1])
