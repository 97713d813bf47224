"""Asking until it is sure enough: questions are repeated and weighed answer by answer.

`until_sure` is the one loop behind all engines: ask, weigh, ask again what is not sure yet.
Where zones are to be told apart, each question is a sequential likelihood-ratio test (Wald's)
between the few laws that its answers can follow. It ends as soon as one zone leads all others
by as many nats as the attack's share of error asks for, so easy questions cost a few answers
and hard ones more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np

from thinveil.attacker.evidence.error_budget import SEQUENTIAL, Care, undecided
from thinveil.attacker.evidence.likelihood import Laws, weighed, zones
from thinveil.attacker.evidence.noise_tests import FixedTally
from thinveil.attacker.evidence.rephrasing import leaving
from thinveil.attacker.terms import Attack
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Flags, QueryBatch

_TELLING: Final = 0.5  # nats of a lead from which on it shows how fast evidence grows
_A_NAT: Final = (
    4  # answers that a nat takes at most on average, between scales of 1 and 2 (3.3 to 5)
)
_BEYOND: Final = 1.05  # a little more than the gap, so that another round is seldom needed


class Inquiry(Protocol):
    """Something that is found out by asking until it is sure: ask, then tell."""

    @property
    def running(self) -> bool:
        """Whether anything is not sure enough yet."""
        ...

    def ask(self) -> QueryBatch:
        """Return the questions worth asking now, and how many answers each wants."""
        ...

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        """Weigh the answers to the questions that were asked last."""
        ...


def until_sure(facts: PublicFacts, care: Care, inquiry: Inquiry) -> Attack[None]:
    """Ask, weigh, and ask again, until an inquiry is sure enough."""
    while inquiry.running:
        batch = inquiry.ask()
        answers = yield leaving(facts, care, batch)
        inquiry.learn(batch, answers)


def answers_for(
    gap: Any, nats: Any, answers: Any = 1, *, share: float, least: Any, most: Any, up: bool = True
) -> Codes:
    """Return how many further answers would about close a gap of so many nats.

    So many nats came, or are expected, from so many answers; none at all want as many answers as
    there may be. A share of the gap is to be closed now. `least` are worth a round, and `most`
    has the last word. It is rounded up, or to the nearest number.
    """
    with np.errstate(divide="ignore"):
        wanted = (np.ceil if up else np.rint)(share * gap * answers / nats)
    more: Codes = np.minimum(np.maximum(wanted, least), most).astype(np.int64)
    return more


class Single:
    """Takes each answer at its word, where one tells its zone."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    def begin(self, fresh: Flags) -> None:
        """Start anew: there is nothing to remember."""

    def keep(self, rows: Flags) -> None:
        """Forget rows: there is nothing to forget."""

    def repeats(self) -> int:
        """Return that one answer is enough."""
        return 1

    def add(self, batch: QueryBatch, answers: Answers) -> tuple[Flags, list[int]]:
        """Return that all questions are settled, and the zone of each."""
        return np.ones(batch.questions, np.bool_), zones(self._claim, answers)


class Tally:
    """The running sequential tests of many questions at once."""

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        self._facts, self._care = facts, care
        self._laws = Laws.of(facts.claim, facts.records)
        self._zone = np.array(self._laws.zones)
        self._loglik = np.empty((0, len(self._zone)))
        self._asked = np.empty(0, np.int64)
        self._nats = np.empty(0)
        self._lead = np.empty(0)

    def begin(self, fresh: Flags) -> None:
        """Start new tests in the given rows; all others go on."""
        if len(fresh) != len(self._asked):
            many = len(fresh)
            self._loglik = np.zeros((many, len(self._zone)))
            self._asked = np.zeros(many, np.int64)
            self._nats, self._lead = np.zeros(many), np.zeros(many)
        for each in (self._loglik, self._asked, self._lead):
            each[fresh] = 0
        nats = self._care.nats(int(np.count_nonzero(fresh)))
        self._nats[fresh] = nats + math.log(len(self._zone) - 1)

    def keep(self, rows: Flags) -> None:
        """Forget the tests of all other rows."""
        self._loglik, self._asked = self._loglik[rows], self._asked[rows]
        self._nats, self._lead = self._nats[rows], self._lead[rows]

    def repeats(self) -> Codes:
        """Return how many further answers each question wants: at most twice what it had."""
        asked = self._asked
        first = np.minimum(self._laws.first, np.ceil(_A_NAT * self._nats)).astype(np.int64)
        more = answers_for(
            np.maximum(self._nats - self._lead, 0.0),
            np.where(self._lead > _TELLING, self._lead, 0.0),
            np.maximum(asked, 1),
            share=_BEYOND,
            least=np.maximum(1, first // 8),
            most=asked,
        )
        left = np.maximum(self._care.most_repeats - asked, 1)
        return np.minimum(np.where(asked == 0, first, more), left)

    def add(self, batch: QueryBatch, answers: Answers) -> tuple[Flags, list[int]]:
        """Weigh further answers; return which questions are settled, and the zone of each.

        Raises:
            Undecided: A question has had as many answers as it may have and is not settled.
        """
        drawn = np.broadcast_to(batch.repeats, batch.threshold.shape)
        b, claim, records = batch.threshold, self._facts.claim, self._facts.records
        counts = self._laws.counts(claim, b, records)
        self._loglik += weighed(claim, counts, b, records, answers, drawn)
        self._asked += drawn
        best = np.argmax(self._loglik, axis=1)
        zone = self._zone[best]
        rival = np.where(self._zone == zone[:, None], -np.inf, self._loglik).max(axis=1)
        self._lead = self._loglik[np.arange(len(best)), best] - rival
        settled = self._lead >= self._nats
        if (~settled & (self._asked >= self._care.most_repeats)).any():
            raise undecided(self._care, self._facts.claim.noise, float(self._nats.max()))
        found: list[int] = zone.tolist()
        return settled, found


Settling = Single | Tally | FixedTally
"""Settles the zones of many questions at once: begins, keeps, repeats and adds."""


def settling(facts: PublicFacts, care: Care) -> Settling:
    """Return what settles questions: single answers, or the test that the attack is to use."""
    if facts.claim.reads_exactly:
        return Single(facts.claim)
    return Tally(facts, care) if care.test == SEQUENTIAL else FixedTally(facts, care)


class _Zones:
    """The zones of a batch; only questions that are not sure yet are asked again."""

    def __init__(self, facts: PublicFacts, batch: QueryBatch, care: Care) -> None:
        self._batch = batch
        self._left = np.arange(batch.questions)
        self._tally = settling(facts, care)
        self._tally.begin(np.ones(batch.questions, np.bool_))
        self.found = np.zeros(batch.questions, np.int64)

    @property
    def running(self) -> bool:
        return len(self._left) > 0

    def ask(self) -> QueryBatch:
        part, repeats = self._batch, self._tally.repeats()
        if len(self._left) < part.questions:
            part = part.some(self._left)
        return part if isinstance(repeats, int) else replace(part, repeats=repeats)

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        decided, zone = self._tally.add(batch, answers)
        self.found[self._left[decided]] = np.array(zone, np.int64)[decided]
        self._left = self._left[~decided]
        self._tally.keep(~decided)
        self._tally.begin(np.zeros(len(self._left), np.bool_))


def zones_of(facts: PublicFacts, batch: QueryBatch, care: Care) -> Attack[Codes]:
    """Ask a batch, as often as that takes, and return the zone of each question."""
    inquiry = _Zones(facts, batch, care)
    yield from until_sure(facts, care, inquiry)
    return inquiry.found
