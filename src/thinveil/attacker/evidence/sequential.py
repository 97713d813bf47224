"""Asking until it is sure enough: repeated questions, weighed answer by answer.

Each question is a sequential likelihood-ratio test between the few laws that its answers can
follow. It ends as soon as one zone leads all others by as many nats as the attack's share
of error asks for, so easy questions cost a few answers and hard ones more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from thinveil.attacker.evidence.error_budget import SEQUENTIAL, Care, risky, undecided
from thinveil.attacker.evidence.likelihood import Laws, weighed, zones
from thinveil.attacker.evidence.noise_tests import FixedTally
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.terms import Attack
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Flags, QueryBatch


class Settling(Protocol):
    """Settles many repeated questions at once. Conforms: `Tally`, `noise_tests.FixedTally`."""

    def begin(self, fresh: Flags) -> None:
        """Start new tests in the given rows; all others go on."""
        ...

    def keep(self, rows: Flags) -> None:
        """Forget the tests of all other rows."""
        ...

    def repeats(self) -> Codes:
        """Return how many further answers each question wants."""
        ...

    def add(self, threshold: Codes, answers: Answers, drawn: Codes) -> tuple[Flags, list[int]]:
        """Weigh further answers; return which questions are settled, and the zone of each."""
        ...


class Tally:
    """The running sequential tests of many questions at once. Conforms to `Settling`.

    Args:
        facts: What is public.
        care: How sure each decision must be.
    """

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        self._claim = facts.claim
        self._records = facts.records
        self._care = care
        self._laws = Laws.of(facts.claim, facts.records)
        self._zone = np.array(self._laws.zones)
        self._loglik = np.empty((0, len(self._zone)))
        self._asked = np.empty(0, np.int64)
        self._nats = np.empty(0)
        self._lead = np.empty(0)

    def begin(self, fresh: Flags) -> None:
        """Start new tests in the given rows; all others go on."""
        if len(fresh) != len(self._asked):
            shape = (len(fresh), len(self._zone))
            self._loglik = np.zeros(shape)
            self._asked = np.zeros(len(fresh), np.int64)
            self._nats, self._lead = np.zeros(len(fresh)), np.zeros(len(fresh))
        self._loglik[fresh] = 0.0
        self._asked[fresh] = 0
        self._lead[fresh] = 0.0
        nats = self._care.nats(int(np.count_nonzero(fresh)))
        self._nats[fresh] = nats + math.log(len(self._zone) - 1)

    def keep(self, rows: Flags) -> None:
        """Forget the tests of all other rows."""
        self._loglik, self._asked = self._loglik[rows], self._asked[rows]
        self._nats, self._lead = self._nats[rows], self._lead[rows]

    def repeats(self) -> Codes:
        """Return how many further answers each question wants."""
        first = self._laws.first
        gap = np.maximum(self._nats - self._lead, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.ceil(1.05 * gap * self._asked / self._lead)
        needed = np.where(self._lead > 0.5, needed, np.inf)
        more = np.minimum(np.maximum(needed, max(1, first // 8)), self._asked)
        more = np.where(self._asked == 0, first, more)
        left = np.maximum(self._care.most_repeats - self._asked, 1)
        return np.minimum(more, left).astype(np.int64)

    def add(self, threshold: Codes, answers: Answers, drawn: Codes) -> tuple[Flags, list[int]]:
        """Weigh further answers; return which questions are settled, and the zone of each.

        Args:
            threshold: The threshold of each question.
            answers: What came back, as rows of repeats or as varied questions in a row.
            drawn: How many answers each question got.

        Raises:
            Undecided: A question has had as many answers as it may have and is not settled.
        """
        claim, records = self._claim, self._records
        self._loglik += weighed(
            claim,
            lambda b: self._laws.counts(claim, b, records),
            threshold,
            records,
            answers,
            drawn,
        )
        self._asked += drawn
        best = np.argmax(self._loglik, axis=1)
        zone = self._zone[best]
        rival = np.where(self._zone == zone[:, None], -np.inf, self._loglik).max(axis=1)
        self._lead = self._loglik[np.arange(len(best)), best] - rival
        settled = self._lead >= self._nats
        if (~settled & (self._asked >= self._care.most_repeats)).any():
            raise undecided(self._care)
        found: list[int] = zone.tolist()
        return settled, found


def settling(facts: PublicFacts, care: Care) -> Settling:
    """Return what settles repeated questions, by the test that the attack is to use."""
    if care.test == SEQUENTIAL:
        return Tally(facts, care)
    return FixedTally(facts, care)


def zones_of(facts: PublicFacts, batch: QueryBatch, care: Care) -> Attack[Codes]:
    """Ask a batch and return the zone of each question.

    Where single answers do not tell, each question is asked again until its zone is sure
    enough; only those that are not sure yet are asked again.
    """
    if facts.claim.reads_exactly:
        answers = yield batch
        return np.array(zones(facts.claim, answers), np.int64)
    found = np.zeros(batch.questions, np.int64)
    left = np.arange(batch.questions)
    tally = settling(facts, care)
    tally.begin(np.ones(batch.questions, np.bool_))
    while len(left):
        part = batch if len(left) == batch.questions else batch.some(left)
        repeats = tally.repeats()
        part = replace(part, about=risky(part.about, care))
        if facts.policies.cache:
            assert part.offsets is None, "unions cannot be put in new words"
            asks = varied(facts, part, repeats, care)
        else:
            asks = replace(part, repeats=repeats)
        answers = yield asks
        decided, zone = tally.add(part.threshold, answers, repeats)
        found[left[decided]] = np.array(zone, np.int64)[decided]
        left = left[~decided]
        tally.keep(~decided)
        tally.begin(np.zeros(len(left), np.bool_))
    return found
