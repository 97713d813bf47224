"""From answers to what they tell about the count.

What one answer tells is a log-likelihood over the true count c. It is constant between
breakpoints that the claim makes public, so a few numbers hold all of it. Where answers are
either exact or drowned in noise, three zones are enough; they are the special case that
the searches of the paper use.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from thinveil.attacker.terms import ABOVE, BELOW, NOISY
from thinveil.errors import ClaimBroken
from thinveil.language.claims import Claim
from thinveil.language.laws.additive import GRAIN
from thinveil.language.queries import Answers, Codes, Flags, Floats

IMPOSSIBLE: Final = -1e4
"""The log-likelihood of what cannot happen, kept finite so that sums stay numbers."""


def exactness_error(claim: Claim, epsilon: float) -> float:
    """Bound the probability that one noisy answer looks exact, being 0 or 1 by chance.

    This is for noise of a sensitivity of 1; `GRAIN` says why.
    """
    if claim.noise is None:
        return 0.0
    return GRAIN * (1.0 + epsilon / float(claim.noise.widen(epsilon)))


@dataclass(slots=True)
class ErrorBound:
    """Adds up the chance that any answer of a run was misread (a union bound).

    >>> bound = ErrorBound()
    >>> bound.total
    0.0
    """

    total: float = 0.0

    def add(self, claim: Claim, queries: int, epsilon: float | Floats | None) -> None:
        """Count the answers of one batch."""
        if claim.protected and claim.reads_exactly and epsilon is not None:
            worst = epsilon if isinstance(epsilon, float) else float(np.max(epsilon))
            self.total = min(1.0, self.total + queries * exactness_error(claim, worst))


def loglik(claim: Claim, value: Floats, bit: Flags, scale: Floats, rate: Floats) -> Floats:
    """Return the log-likelihood of single answers, given true bits, scales and epsilon/scale."""
    with np.errstate(divide="ignore"):
        exact: Floats = np.log((value == bit).astype(np.float64))
        if claim.noise is None:
            return exact
        noisy = claim.noise.loglik(value, bit, rate, claim.post, claim.offset == 0)
    return np.where(scale > 0, noisy, exact)


def zones(claim: Claim, answers: Answers) -> list[int]:
    """Read each single answer as BELOW, NOISY or ABOVE, the fast special case.

    Raises:
        ClaimBroken: Without protection every answer must be 0 or 1.
    """
    values = answers.values
    ones = values == 1
    noisy = (values != 0) & ~ones
    if not claim.protected and noisy.any():
        raise ClaimBroken("an unprotected target answered something other than 0 or 1")
    found: list[int] = (ones * np.int8(ABOVE) + noisy).tolist()
    return found


@dataclass(frozen=True, slots=True)
class Laws:
    """The laws that answers can follow, one for each kind of count."""

    zones: tuple[int, ...]  # for each law, the zone that it belongs to
    first: int  # how many answers a question gets at first

    @staticmethod
    def of(claim: Claim, records: int | None = None) -> Laws:
        """Return the laws of a mechanism, for a table of so many records."""
        if not claim.counts and records == 1:
            # one record is none or all, so nothing is ever noisy
            return Laws((BELOW, BELOW if claim.hides_direction else ABOVE), 1)
        by_noise = claim.leaks
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

    `counts` has a row a question and a column for each count to compare. Trivial thresholds
    are not meant to be asked.

    Raises:
        ClaimBroken: A rounded mechanism answered something that is not rounded.
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
    if claim.post == "binary" and not np.isnan(values).any():
        ones = np.add.reduceat(values, starts)[:, None]
        one = _finite(loglik(claim, np.ones(1), bit, scale, rate))
        zero = _finite(loglik(claim, np.zeros(1), bit, scale, rate))
        mixed: Floats = ones * one + (repeats[:, None] - ones) * zero
        return mixed
    in_rows = getattr(claim.noise, "row_loglik", None)
    if in_rows is not None and claim.post == "none" and claim.offset > 0:
        told: Floats = in_rows(values, starts, repeats, bit, rate)
        return told
    row = np.repeat(np.arange(len(threshold)), repeats)
    each = _finite(loglik(claim, values[:, None], bit[row], scale[row], rate[row]))
    return np.add.reduceat(each, starts, axis=0)


def weighed(
    claim: Claim, counts: Codes, threshold: Codes, records: int, answers: Answers, drawn: Codes
) -> Floats:
    """Return `row_loglik` for questions that got so many answers, repeated or varied.

    Varied questions come back one after the other, each with a row of its own.
    """
    if not _rows_are_answers(answers, drawn):
        return row_loglik(claim, counts, threshold, records, answers)
    counts, asked = np.repeat(counts, drawn, axis=0), np.repeat(threshold, drawn)
    told = row_loglik(claim, counts, asked, records, answers)
    summed: Floats = np.add.reduceat(told, np.cumsum(drawn) - drawn, axis=0)
    return summed


def _rows_are_answers(answers: Answers, drawn: Codes) -> bool:
    """Tell whether each answer was a varied question of its own, with a row of its own."""
    return isinstance(answers.repeats, int) and not (drawn == 1).all()


Told = tuple[Answers, Codes]
"""Answers to some questions, and how many answers each of them got."""


def cut_up(answers: Answers, drawn: Codes, ends: Codes) -> list[Told | None]:
    """Cut answers where one kind of question ends and the next begins; None where there is none."""
    at = np.concatenate([[0], np.cumsum(drawn)])
    row = at if _rows_are_answers(answers, drawn) else np.arange(len(at))
    pieces: list[Told | None] = []
    for start, end in pairwise([0, *ends.tolist()]):
        epsilon, repeats = answers.epsilon, answers.repeats
        if isinstance(epsilon, np.ndarray):
            epsilon = epsilon[row[start] : row[end]]
        if not isinstance(repeats, int):
            repeats = repeats[start:end]
        mine = Answers(answers.values[at[start] : at[end]], repeats, epsilon)
        pieces.append((mine, drawn[start:end]) if end > start else None)
    return pieces


def _finite(values: Floats) -> Floats:
    return np.maximum(values, IMPOSSIBLE)


def check_rounded(claim: Claim, values: Floats) -> None:
    """Refuse answers that a rounded mechanism cannot give.

    Raises:
        ClaimBroken: An answer is not a whole number, or not 0 or 1.
    """
    if claim.noise is not None and claim.noise.silent:
        values = values[~np.isnan(values)]
    if claim.post == "binary" and not ((values == 0) | (values == 1)).all():
        raise ClaimBroken("a target that rounds to 0 or 1 answered something else")
    if claim.post == "integer" and not (values == np.rint(values)).all():
        raise ClaimBroken("a target that rounds to whole numbers answered something else")
