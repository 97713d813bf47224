"""Telling zones apart where one answer does not: repeated questions, weighed sequentially.

Each question is a sequential likelihood-ratio test between the few laws that its answers can
follow. It ends as soon as one zone leads all others by as many nats as the attack's share
of error asks for, so easy questions cost a few answers and hard ones more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import ABOVE, BELOW, NOISY, loglik
from thinveil.errors import EvidenceError, Undecided
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Codes, Flags, Floats

IMPOSSIBLE: Final = -1e4
"""The log-likelihood of what cannot happen, kept finite so that sums stay numbers."""


@dataclass(frozen=True, slots=True)
class Laws:
    """The laws that answers can follow, one for each kind of count.

    Args:
        zones: For each law, the zone that it belongs to.
        first: How many answers a question gets at first.
    """

    zones: tuple[int, ...]
    first: int

    @staticmethod
    def of(claim: Claim, records: int | None = None) -> Laws:
        """Return the laws of a mechanism, for a table of so many records."""
        if not claim.counts and records == 1:
            # one record is none or all, so nothing is ever noisy
            return Laws((BELOW, BELOW if claim.hides_direction else ABOVE), 1)
        by_noise = claim.leaks_by_noise
        zones = (BELOW, NOISY, NOISY, ABOVE) if by_noise else (BELOW, ABOVE)
        if claim.hides_direction:
            zones = (BELOW, NOISY, NOISY, BELOW)
        elif not claim.counts and claim.post != "none":
            zones = (BELOW, NOISY, NOISY, NOISY)  # some or all: either way, there is one
        if not claim.protected:
            first = 1
        elif not by_noise or claim.offset:
            first = 48
        else:
            first = {"none": 1, "integer": 1, "binary": 3}[claim.post]
        return Laws(zones, first)

    def counts(self, claim: Claim, threshold: Codes, records: int) -> Codes:
        """Return one count of each kind, a row a question."""
        b = threshold
        if k := claim.reach:
            return np.stack([b - k, b, b + 1, b + k + 1], axis=1)
        if not claim.counts:
            if records == 1:
                return np.stack([np.zeros_like(b), np.ones_like(b)], axis=1)
            low, high = (np.clip(each, 1, records - 1) for each in (b, b + 1))
            return np.stack([np.zeros_like(b), low, high, np.full_like(b, records)], axis=1)
        return np.stack([b, b + 1], axis=1)


def row_loglik(
    claim: Claim, counts: Codes, threshold: Codes, records: int, answers: Answers
) -> Floats:
    """Return the log-likelihood of each row of answers, were each of these the true count.

    Args:
        claim: What the mechanism does.
        counts: A row a question, one column for each count to compare.
        threshold: The threshold of each question; trivial ones are not meant to be asked.
        records: The number of records in the table.
        answers: What came back.

    Raises:
        EvidenceError: A rounded mechanism answered something that is not rounded.
    """
    b = np.broadcast_to(threshold[:, None], counts.shape)
    epsilon = answers.epsilon
    if isinstance(epsilon, np.ndarray):
        epsilon = epsilon[:, None]
    bit, scale = claim.law(counts, b, np.zeros(counts.shape, np.bool_), records, epsilon)
    rate = np.divide(
        1.0 if epsilon is None else epsilon, scale, out=np.ones(scale.shape), where=scale > 0
    )
    repeats = np.broadcast_to(answers.repeats, threshold.shape)
    starts = np.cumsum(repeats) - repeats
    values = answers.values
    check_rounded(claim, values)
    if claim.post == "binary":
        ones = np.add.reduceat(values, starts)[:, None]
        one = _finite(loglik(claim, np.ones(1), bit, scale, rate))
        zero = _finite(loglik(claim, np.zeros(1), bit, scale, rate))
        mixed: Floats = ones * one + (repeats[:, None] - ones) * zero
        return mixed
    if claim.noise == "laplace" and claim.post == "none" and claim.offset > 0:
        far = [np.add.reduceat(np.abs(values - each), starts)[:, None] for each in (0, 1)]
        told: Floats = repeats[:, None] * np.log(rate / 2) - rate * np.where(bit, far[1], far[0])
        return told
    row = np.repeat(np.arange(len(threshold)), repeats)
    each = _finite(loglik(claim, values[:, None], bit[row], scale[row], rate[row]))
    return np.add.reduceat(each, starts, axis=0)


def weighed(
    claim: Claim,
    counts: Callable[[Codes], Codes],
    threshold: Codes,
    records: int,
    answers: Answers,
    drawn: Codes,
) -> Floats:
    """Return `row_loglik` for questions that got so many answers, repeated or varied.

    Args:
        claim: What the mechanism does.
        counts: Returns the counts to compare, for thresholds.
        threshold: The threshold of each question.
        records: The number of records in the table.
        answers: What came back: rows of repeats, or varied questions one after the other.
        drawn: How many answers each question got.
    """
    if not _rows_are_answers(answers, drawn):
        return row_loglik(claim, counts(threshold), threshold, records, answers)
    asked = np.repeat(threshold, drawn)
    told = row_loglik(claim, counts(asked), asked, records, answers)
    summed: Floats = np.add.reduceat(told, np.cumsum(drawn) - drawn, axis=0)
    return summed


def _rows_are_answers(answers: Answers, drawn: Codes) -> bool:
    """Tell whether each answer was a varied question of its own, with a row of its own."""
    return isinstance(answers.repeats, int) and not (drawn == 1).all()


def spread(figures: Codes, answers: Answers, drawn: Codes) -> Codes:
    """Return a figure for each question once for each row of answers."""
    return np.repeat(figures, drawn) if _rows_are_answers(answers, drawn) else figures


def cut_up(answers: Answers, drawn: Codes, ends: Codes) -> list[Answers | None]:
    """Cut answers where one kind of question ends and the next begins; None where there is none."""
    at = np.concatenate([[0], np.cumsum(drawn)])
    by_answer = _rows_are_answers(answers, drawn)
    pieces: list[Answers | None] = []
    start = 0
    for end in ends.tolist():
        if end == start:
            pieces.append(None)
            continue
        first, last = (int(at[start]), int(at[end])) if by_answer else (start, end)
        epsilon, repeats = answers.epsilon, answers.repeats
        if isinstance(epsilon, np.ndarray):
            epsilon = epsilon[first:last]
        if not isinstance(repeats, int):
            repeats = repeats[start:end]
        pieces.append(Answers(answers.values[at[start] : at[end]], repeats, epsilon))
        start = end
    return pieces


def _finite(values: Floats) -> Floats:
    return np.maximum(values, IMPOSSIBLE)


def check_rounded(claim: Claim, values: Floats) -> None:
    """Refuse answers that a rounded mechanism cannot give.

    Raises:
        EvidenceError: An answer is not a whole number, or not 0 or 1.
    """
    if claim.post == "binary" and not ((values == 0) | (values == 1)).all():
        raise EvidenceError("a target that rounds to 0 or 1 answered something else")
    if claim.post == "integer" and not (values == np.rint(values)).all():
        raise EvidenceError("a target that rounds to whole numbers answered something else")


class Settling(Protocol):
    """Settles many repeated questions at once. Conforms: `Tally`, `fixed.FixedTally`."""

    def begin(self, fresh: Flags) -> None:
        """Start new tests in the given rows; all others go on."""
        ...

    def keep(self, rows: Flags) -> None:
        """Forget the tests of all other rows."""
        ...

    @property
    def asked(self) -> Codes:
        """How many answers each question has had."""
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

    @property
    def asked(self) -> Codes:
        """How many answers each question has had."""
        return self._asked

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


def undecided(care: Care) -> Undecided:
    """Return the error for questions whose answers show no usable difference."""
    return Undecided(
        f"no usable difference was found: {care.most_repeats:,} answers to one question do not "
        f"tell what it asks at the wanted error of {care.error:g} (--most-repeats allows more)"
    )


def risky(about: About, care: Care) -> About:
    """Return what a batch is about, with the chance of error planned so far."""
    return About(about.label, about.done, about.so_far, care.risk)
