"""Do rows of answers fit the laws that they are claimed to follow? A running test.

Each row of answers to one question has one claimed law. Held against it are a few other laws: the
same noise wider or narrower, about the other bit, a value that comes again and again, coins. A
row's weight is one half plus half the mean of the likelihood ratios; it has mean 1 under the
claim, whatever was asked before. So the product over all rows is an e-process (a test martingale,
Ville 1939): the chance that it ever reaches 1 / alpha is at most alpha, however long one looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from thinveil.attacker.evidence.likelihood import loglik
from thinveil.language.claims import Claim
from thinveil.language.queries import Codes, Flags, Floats

_FAR: Final = 1e290  # nats of what a law cannot give: sums of many of them stay numbers
FACTORS: Final = (1 / 8, 1 / 4, 1 / 2, 0.5**0.5, 2**0.5, 2.0, 4.0, 8.0)
"""How many times wider noise might be than it is claimed (round figures)."""
_ATOM: Final = 2.0**-24
"""More than any single value comes with where noise is continuous: a step of single precision."""
_STUCK: Final = 0.125  # how often a value comes again, where the target is stuck (any does)
_COINS: Final = (0.01, 0.25, 0.75, 0.99)  # coins that an answer of 0 or 1 might be


@dataclass(slots=True)
class Fit:
    """The weight of the evidence so far that rows do not follow their claimed laws.

    Args:
        claim: What the target claims.
        nats: The logarithm of the product.
        leads: For each other law, the sum of its log likelihood ratios: which fits best.
    """

    claim: Claim
    nats: float = 0.0
    leads: dict[str, float] = field(default_factory=dict)

    @property
    def chance(self) -> float:
        """At most so likely does a target that keeps its claim look like this."""
        return min(1.0, math.exp(-self.nats)) if self.nats < 700 else 0.0

    def learn(self, values: Floats, row: Codes, bit: Flags, rate: Floats) -> None:
        """Weigh answers, each of a row, given the claimed bit and rate of noise of each answer."""
        with np.errstate(over="ignore", invalid="ignore"):  # answers of 1e308
            told = _ratios(self.claim, values, row, bit, rate)
        if not told:
            return
        told = {name: np.nan_to_num(each, posinf=_FAR, neginf=-_FAR) for name, each in told.items()}
        rows = np.unique(row, return_inverse=True)[1].reshape(-1)
        sums = np.array([np.bincount(rows, each) for each in told.values()])
        top = np.maximum(sums.max(axis=0), 0.0)
        mean = np.exp(sums - top).mean(axis=0)
        self.nats += float((top + np.log(0.5 * np.exp(-top) + 0.5 * mean)).sum())
        for name, each in zip(told, sums, strict=True):
            self.leads[name] = self.leads.get(name, 0.0) + float(np.maximum(each, 0.0).sum())

    def best(self) -> str:
        """Say which other law fits best, in a phrase."""
        return max(self.leads, key=lambda name: self.leads[name]) if self.leads else ""


def _ratios(
    claim: Claim, values: Floats, row: Codes, bit: Flags, rate: Floats
) -> dict[str, Floats]:
    """Return, for each other law, the log likelihood ratio of each answer."""
    law, post = claim.noise, claim.post
    if law is None or not len(values):
        return {}
    with np.errstate(divide="ignore"):
        claimed = law.loglik(values, bit, rate, post, False)
        told: dict[str, Floats] = {}
        if post == "binary":
            for p in _COINS:
                coin = np.log(np.where(values == 1, p, 1 - p))
                told[f"a coin that shows 1 with chance {p:g}"] = coin - claimed
            told["the other answer"] = law.loglik(values, ~bit, rate, post, False) - claimed
            return told
        for by in _factors(claim):
            wider = law.loglik(values, bit, rate / by, post, False)
            told[f"noise {by:.3g} times as wide as claimed"] = wider - claimed
        told["noise about the other answer"] = law.loglik(values, ~bit, rate, post, False) - claimed
    again = (values == 0) | (values == 1)
    again[1:] |= (values[1:] == values[:-1]) & (row[1:] == row[:-1])
    atom = np.minimum(claimed, 0.0) if post == "integer" else math.log(_ATOM)
    stuck = np.where(again, math.log(_STUCK / 3) - atom, math.log(1 - _STUCK))
    told["the same few values again and again"] = stuck
    return told


def _factors(claim: Claim) -> list[float]:
    """Return how many times wider noise might be; of two zones, also as wide as in the other."""
    more = [*FACTORS]
    if claim.offset and claim.leaks:
        more += [(1 + claim.offset) / claim.offset, claim.offset / (1 + claim.offset)]
    return sorted(set(more))


def possible(claim: Claim, values: Floats, bit: Flags, scale: Floats, rate: Floats) -> Flags:
    """Tell which answers their laws can give at all (the support): exact, rounded, not silent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        can: Flags = loglik(claim, values, bit, scale, rate) > -np.inf
    if claim.noise is not None and claim.post == "integer":
        can &= np.isnan(values) | (values == np.rint(values))
    if claim.noise is not None and claim.post == "binary":
        can &= np.isnan(values) | (values == 0) | (values == 1)
    return can
