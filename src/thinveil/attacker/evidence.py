"""From answers to what they tell about the count.

What one answer tells is a log-likelihood over the true count c. It is constant between
breakpoints that the claim makes public, so a few numbers hold all of it. Where answers are
either exact or drowned in noise, three zones are enough; they are the special case that
the searches of the paper use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.errors import EvidenceError
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Floats, QueryBatch

BELOW: Final = 0
"""Exactly 0 came back: c <= b - k."""
NOISY: Final = 1
"""Noise came back: b - k < c <= b + k."""
ABOVE: Final = 2
"""Exactly 1 came back: c > b + k."""

_GRAIN: Final = 2.0**-52


def exactness_error(claim: Claim, epsilon: float) -> float:
    """Bound the probability that one noisy answer looks exact, being 0 or 1 by chance.

    A double-precision draw has at least 2^53 equally likely magnitudes, so each of the two
    values 0 and 1 is hit with probability at most 2^-53; the rounding of the sum near 1
    adds at most epsilon * 2^-52.
    """
    return 0.0 if not claim.protected else _GRAIN * (1.0 + epsilon)


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
        if claim.protected and epsilon is not None:
            worst = epsilon if isinstance(epsilon, float) else float(np.max(epsilon))
            self.total += queries * exactness_error(claim, worst)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A log-likelihood over the count for each question, constant between breakpoints.

    Args:
        breakpoints: A row a question, ascending. Segment j holds the counts above
            breakpoint j - 1 and at most breakpoint j.
        loglik: A row a question, one figure more than there are breakpoints.
    """

    breakpoints: Codes
    loglik: Floats

    def at(self, question: int, count: int) -> float:
        """Return the log-likelihood of one count for one question."""
        segment = int(np.searchsorted(self.breakpoints[question], count))
        return float(self.loglik[question, segment])


def weigh(facts: PublicFacts, batch: QueryBatch, answers: Answers) -> Evidence:
    """Return what each answer of a batch tells about its count.

    A trivial threshold tells nothing: its row is flat. The true bit and the sensitivity of
    every segment come from the claim, evaluated at one count inside the segment.
    """
    threshold = np.minimum(np.maximum(batch.threshold, -1), facts.records)
    breakpoints = facts.claim.sensitivity.breakpoints(threshold)
    inside = np.concatenate([breakpoints[:, :1], breakpoints + 1], axis=1)
    levels = np.broadcast_to(threshold[:, None], inside.shape)
    bit = (inside > levels).astype(np.float64)
    scale = facts.claim.sensitivity.at(inside, levels) + facts.claim.offset
    loglik = np.zeros(inside.shape)
    for question in np.flatnonzero((threshold >= 0) & (threshold < facts.records)).tolist():
        epsilon = answers.epsilon
        if isinstance(epsilon, np.ndarray):
            epsilon = float(epsilon[question])
        row = answers.row(question)
        for segment in range(inside.shape[1]):
            loglik[question, segment] = _loglik(
                facts.claim, row, bit[question, segment], scale[question, segment], epsilon
            )
    return Evidence(breakpoints, loglik)


def _loglik(claim: Claim, row: Floats, bit: float, scale: float, epsilon: float | None) -> float:
    """Return the log-likelihood of a row of answers where bit and scale are given."""
    if scale == 0.0:
        return 0.0 if (row == bit).all() else -np.inf
    assert epsilon is not None
    rate = epsilon / scale
    if claim.post == "integer":
        far = np.abs(row - bit)
        beside = np.log(0.5 * -np.expm1(-rate)) - rate * (far - 0.5)
        return float(np.where(far == 0, np.log(-np.expm1(-rate / 2)), beside).sum())
    if claim.post == "binary":
        flipped = 0.5 * np.exp(-rate / 2)
        return float(np.log(np.where(row == bit, 1 - flipped, flipped)).sum())
    density = np.log(rate / 2) - rate * np.abs(row - bit)
    if claim.offset:
        return float(density.sum())
    by_chance = np.log(exactness_error(claim, epsilon))
    return float(np.where((row == 0) | (row == 1), by_chance, density).sum())


def zones(claim: Claim, answers: Answers) -> list[int]:
    """Read each single answer as BELOW, NOISY or ABOVE, the fast special case of `weigh`.

    Raises:
        EvidenceError: Without protection every answer must be 0 or 1.
    """
    values = answers.values
    ones = values == 1
    noisy = (values != 0) & ~ones
    if not claim.protected and noisy.any():
        raise EvidenceError("an unprotected target answered something other than 0 or 1")
    found: list[int] = (ones * np.int8(ABOVE) + noisy).tolist()
    return found
