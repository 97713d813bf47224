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
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Flags, Floats, QueryBatch

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
        if claim.protected and claim.reads_exactly and epsilon is not None:
            worst = epsilon if isinstance(epsilon, float) else float(np.max(epsilon))
            self.total = min(1.0, self.total + queries * exactness_error(claim, worst))


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
    """Return what the answers of a batch tell about each count.

    The law of every segment comes from the claim, at one count inside the segment. A trivial
    threshold and a constant predicate tell nothing: their rows are flat.
    """
    claim, records = facts.claim, facts.records
    constant = Constants(Extent.of(facts.schema, claim.universe)).among(batch)
    threshold = np.minimum(np.maximum(batch.threshold, -1), records)
    told = ~constant & (threshold >= 0) & (threshold < records)
    breakpoints = claim.sensitivity.breakpoints(threshold, records)
    inside = np.concatenate([breakpoints[:, :1], breakpoints + 1], axis=1)
    epsilon = answers.epsilon
    if isinstance(epsilon, np.ndarray):
        epsilon = epsilon[:, None]
    bit, scale = claim.law(
        inside,
        np.broadcast_to(threshold[:, None], inside.shape),
        np.broadcast_to(constant[:, None], inside.shape),
        records,
        epsilon,
    )
    repeats = np.broadcast_to(answers.repeats, threshold.shape)
    rate = np.divide(
        1.0 if epsilon is None else epsilon, scale, out=np.ones(scale.shape), where=scale > 0
    )
    row = np.repeat(np.arange(len(threshold)), repeats)
    each = loglik(claim, answers.values[:, None], bit[row], scale[row], rate[row])
    summed = np.add.reduceat(each, np.cumsum(repeats) - repeats, axis=0)
    return Evidence(breakpoints, np.where(told[:, None], summed, 0.0))


def loglik(claim: Claim, value: Floats, bit: Flags, scale: Floats, rate: Floats) -> Floats:
    """Return the log-likelihood of single answers, given true bits, scales and epsilon/scale."""
    far = np.abs(value - bit)
    with np.errstate(divide="ignore"):
        exact = np.log((far == 0).astype(np.float64))
        if claim.noise == "cauchy":
            noisy = _cauchy(claim.post, value - bit, rate)
        elif claim.post == "integer":
            beside = np.log(-0.5 * np.expm1(-rate)) - rate * (far - 0.5)
            noisy = np.where(far == 0, np.log(-np.expm1(-rate / 2)), beside)
        elif claim.post == "binary":
            flipped = 0.5 * np.exp(-rate / 2)
            noisy = np.log(np.where(far == 0, 1 - flipped, flipped))
        else:
            noisy = np.log(rate / 2) - rate * far
            if claim.offset == 0:
                by_chance = np.log(np.minimum(_GRAIN * (1.0 + rate), 1.0))
                noisy = np.where((value == 0) | (value == 1), by_chance, noisy)
    return np.where(scale > 0, noisy, exact)


def _cauchy(post: str, off: Floats, rate: Floats) -> Floats:
    """Return the log-likelihood of Cauchy answers, so far off their true bits."""
    if post == "none":
        density: Floats = np.log(rate / np.pi) - np.log1p((rate * off) ** 2)
        return density
    if post == "binary":  # the other value came back: noise of more than a half, one way
        flipped = 0.5 - np.arctan(rate / 2) / np.pi
        return np.log(np.where(off == 0, 1 - flipped, flipped))
    low, high = rate * (off - 0.5), rate * (off + 0.5)  # arctan(high) - arctan(low), stably
    inside: Floats = np.log(np.arctan2(high - low, 1 + low * high) / np.pi)
    return inside


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
