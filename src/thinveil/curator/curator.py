"""The curator: counts, a claim and a ledger make answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from thinveil.curator.cache import AnswerCache, Looked
from thinveil.curator.counting.scan import Counter
from thinveil.curator.drawing import (
    NoiseStream,
    RandomWords,
    Truth,
    distances,
    draw,
    opendp,
)
from thinveil.curator.ledger import Event, Ledger, PostProcessing, Spend, spread
from thinveil.curator.tables.dataset import Held
from thinveil.errors import BudgetError, QueryError, TargetError
from thinveil.language.claims import SMALLEST_EPSILON, Claim
from thinveil.language.contracts import Law, Words
from thinveil.language.extents import Constants, Extent, check_disjoint
from thinveil.language.facts import PublicFacts
from thinveil.language.laws.additive import rounded
from thinveil.language.mechanisms.claim import trivially
from thinveil.language.normal import Keys, Normal
from thinveil.language.policies import NO_POLICIES, Policies
from thinveil.language.queries import WHOLE, Answers, Codes, Floats, QueryBatch


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The answers to a batch, and what is to be recorded with them."""

    values: Floats
    cost: Fraction
    keys: Keys | None = None  # of questions whose answer shall be given again, by a policy
    firsts: Floats | None = None  # the answers to these questions


_Found = tuple[Looked | None, QueryBatch | None, Event]
"""What is known about a batch, what of it is new, and its price."""


class Curator:
    """Answers batches about one table under one claim. It is a target by itself.

    Args:
        table: The confidential table, in memory or in a database.
        claim: The mechanism to draw from.
        seed: Noise is a function of this seed and the ordinal of each answer.
        cap: The claimed loss above which a batch is refused, whole and unanswered.
        counter: How to count; the table's own way unless given.
        policies: What is refused, and whether a question is ever answered twice.
        words: Where random words come from; a stream that the seed decides unless given.
    """

    def __init__(
        self,
        table: Held,
        claim: Claim,
        *,
        seed: int = 0,
        cap: Fraction | None = None,
        counter: Counter | None = None,
        policies: Policies = NO_POLICIES,
        words: RandomWords | None = None,
    ) -> None:
        self.facts = PublicFacts(table.records, table.schema, claim, policies)
        if claim.sampler == "opendp":
            opendp()  # what is missing is missed before anything is charged
        self.ledger = Ledger(cap)
        self._table = table
        self._counter = counter if counter is not None else table.counter()
        self.seed = seed
        self._noise: RandomWords = NoiseStream(seed) if words is None else words
        self._drawn = 0
        self._last = 0
        self._paid = 0
        extent = Extent.of(table.schema, claim.universe)
        self._constants = Constants(extent)
        self._normal = Normal(extent, table.records)
        self._cache = AnswerCache() if policies.cache else None
        self._recalled: AnswerCache | None = None
        self._priced: tuple[QueryBatch, _Found] | None = None

    @cached_property
    def fingerprint(self) -> str:
        """What tells this table from others."""
        return f"table:{self._table.digest()}"

    @property
    def round_seconds(self) -> float:
        """What a round costs besides its questions, as its counter states it."""
        return float(getattr(self._counter, "round_seconds", 0.0))

    def answer(self, batch: QueryBatch) -> Answers:
        """Answer a stamped batch, or refuse it whole, as `release` does."""
        return Answers(self.release(batch).values, batch.repeats, batch.epsilon)

    def release(self, batch: QueryBatch) -> Release:
        """Answer a stamped batch and say what it cost and what is new, or refuse it whole.

        Where answers are remembered, one is drawn for each new question, with the random word
        that stands at its first place in the batch; what was answered before is given again.

        Raises:
            QueryError: A column does not exist, or boxes of one question overlap.
            BudgetError: The batch carries no usable privacy budget, or a share that is too small.
            BudgetSpent: The cap or the number of answers would be passed; nothing was answered.
        """
        looked, part, price = self._look(batch)
        if part is None:
            assert looked is not None
            self._charge(batch, price)
            return Release(spread(looked.value, batch.repeats), price.cost)
        if self._paid != batch.queries:
            self.ledger.admit(price)  # what is refused is not counted: its time would tell, free
        truth = self._truth(part)
        words = self._charge(batch, price)
        if looked is None or self._cache is None:
            return Release(self._protect(part, truth, words), price.cost)
        fresh = looked.fresh
        firsts = self._protect(part, truth, words[_starts(batch)[fresh]])
        values = spread(self._cache.settle(looked, firsts), batch.repeats)
        return Release(values, price.cost, looked.keys[:, fresh], firsts)

    def _truth(self, batch: QueryBatch) -> Truth:
        """Return the true bits, and what scales their noise."""
        records, claim = self.facts.records, self.facts.claim
        counts = self._counter.count(batch)
        threshold = np.minimum(np.maximum(batch.threshold, -1), records)
        if not claim.protected:
            return Truth((counts > threshold).astype(np.float64), np.zeros(batch.questions))
        constant = self._constants.among(batch)
        bits, scale = claim.law(counts, threshold, constant, records, batch.epsilon)
        trivial = trivially(threshold, constant, records)
        far = distances(claim, counts, threshold, trivial)
        return Truth(bits.astype(np.float64), scale, far)

    def price(self, batch: QueryBatch) -> Event:
        """Return what answering a batch would cost, or refuse it as `answer` would.

        Nothing is drawn, charged or remembered, and the cap is not asked.
        """
        return self._look(batch)[2]

    def _look(self, batch: QueryBatch) -> _Found:
        """Refuse what must not be answered; else say what is known, what is new, and the price."""
        if self._priced is not None and self._priced[0] is batch:
            return self._priced[1]
        self._check(batch)
        self.facts.policies.admit(batch, self._drawn)
        looked = None if self._cache is None else self._cache.look(self._normal.keys(batch))
        found = looked, *_new(batch, looked, self.facts.claim.noise)
        self._priced = batch, found
        return found

    def _charge(self, batch: QueryBatch, price: Event) -> Words:
        """Charge for a batch, unless it was paid for before its answers got lost.

        Return its random words, one for each of its answers, new or not.
        """
        if self._paid == batch.queries:
            self._paid = 0
            self.ledger.charge(PostProcessing("a batch sent again after its answers were lost"))
        else:
            self.ledger.charge(price)
        self._priced = None
        self._last = batch.queries
        self._drawn += batch.queries
        return self._noise.take(batch.queries)

    def recall(self, batch: QueryBatch, answers: Answers, drawn: int) -> Event:
        """Hear a batch of an interrupted run again; return what it cost.

        The first batch of a run is the one before which nothing was drawn. What was heard
        becomes the cache when the run is restored, and is forgotten if it never is.
        """
        if self._cache is None:
            return Spend.of(batch, self.facts.claim.noise)
        if self._recalled is None or drawn == 0:
            self._recalled = AnswerCache()
        looked = self._recalled.look(self._normal.keys(batch))
        self._recalled.settle(looked, answers.values[_starts(batch)[looked.fresh]])
        return _new(batch, looked, self.facts.claim.noise)[1]

    def remember(self, keys: Keys, firsts: Floats) -> None:
        """Take answers of an earlier life into the cache, where there is one."""
        if self._cache is not None:
            looked = self._cache.look(keys)
            self._cache.settle(looked, firsts[looked.fresh])

    def restore(self, answers: int, events: Iterable[Event]) -> None:
        """Continue an earlier run: its noise goes on where it stopped, its spending counts.

        A curator that drew these answers itself has them in its ledger already. If the answers
        to its last batch got lost, it draws them again and charges nothing. A cache holds
        what was recalled before.

        Raises:
            TargetError: This curator has answered something else before.
        """
        if self._drawn == 0:
            for event in events:
                self.ledger.charge(event)
        elif self._drawn - answers not in (0, self._last):
            raise TargetError("the target has answered other questions; resume with a fresh one")
        else:
            self._paid = self._drawn - answers
        if self._recalled is not None:
            self._cache, self._recalled = self._recalled, None
        self._priced = None
        self._drawn = answers
        self._noise.skip_to(answers)

    def _check(self, batch: QueryBatch) -> None:
        attributes = len(self.facts.schema)
        if (
            batch.column.max() >= attributes
            or batch.column.min() < WHOLE
            or max(batch.cells.columns, default=0) >= attributes
        ):
            raise QueryError(f"a question names a column beyond the table's {attributes}")
        check_disjoint(batch)
        if self.facts.claim.protected:
            epsilon = batch.epsilon
            if epsilon is None or not np.all(np.isfinite(epsilon)):
                raise BudgetError("every protected answer needs a privacy budget")
            if np.min(epsilon) < SMALLEST_EPSILON:
                raise BudgetError(
                    "every protected answer needs a privacy budget above zero, and at least "
                    f"{SMALLEST_EPSILON}: below that its noise could overflow"
                )
            if isinstance(epsilon, np.ndarray) and epsilon.shape != batch.threshold.shape:
                raise BudgetError("a batch needs one privacy budget, or one for each question")

    def _protect(self, batch: QueryBatch, truth: Truth, words: Words) -> Floats:
        """Add noise at scale / epsilon; at scale zero the bit stays as it is."""
        claim = self.facts.claim
        truth = truth.spread(batch.repeats)
        values, noisy = truth.bits, truth.noisy(claim)
        if len(noisy):
            epsilon = batch.epsilon
            if isinstance(epsilon, np.ndarray):
                epsilon = spread(epsilon, batch.repeats)[noisy]
            values[noisy] = draw(claim, self._noise, words[noisy], truth.some(noisy), epsilon)
        return rounded(values, claim.post)


def _new(
    batch: QueryBatch, looked: Looked | None, law: Law | None
) -> tuple[QueryBatch | None, Event]:
    """Return what of a batch has to be drawn, and what that costs: of the cache, nothing."""
    if looked is None:
        return batch, Spend.of(batch, law)
    fresh, epsilon = looked.fresh, batch.epsilon
    if not len(fresh):
        return None, PostProcessing("answers that were given before")
    if isinstance(epsilon, np.ndarray):
        epsilon = epsilon[fresh]
    part = replace(batch.some(fresh), repeats=1, epsilon=epsilon)
    return part, Spend.of(part, law)


def _starts(batch: QueryBatch) -> Codes:
    """Return, for each question of a batch, which of all answers is its first."""
    if isinstance(batch.repeats, int):
        return np.arange(batch.questions) * batch.repeats
    starts: Codes = np.cumsum(batch.repeats) - batch.repeats
    return starts
