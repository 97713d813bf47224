"""What proves a count, and how many answers it takes.

"At least t records" is proved by one sequential test between two neighbouring counts, t and
t - 1, at the threshold that separates them best. If disjoint ranges hold at least as many
records each as were found, and these add up to all there are, every count is exactly right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from thinveil.attacker.evidence.likelihood import IMPOSSIBLE, loglik
from thinveil.language.claims import Claim
from thinveil.language.laws.rounding import rounded
from thinveil.language.queries import Codes, Flags, Floats

_POINTS: Final = 2000  # even, so that no point is the exact median


@dataclass(frozen=True, slots=True)
class Test:
    """A question and the two counts between which its answers decide, as columns.

    Args:
        threshold: What is asked.
        yes: The count that is to be proved.
        no: The count that is to be ruled out.
    """

    threshold: Codes
    yes: Codes
    no: Codes


def at_least(claim: Claim, records: int, t: Codes) -> tuple[Test, Test, Flags]:
    """Return the tests that prove "at least t records", for counts known not to be trivial.

    Mostly one test is enough; the second return value then repeats the first, and the flags
    tell where it is needed. It is needed where the direction is hidden and t lies so near to
    the number of all records that no threshold has its noisy window right above t.
    """
    n, k = records, claim.reach
    upper = t + k <= n
    usual = Test(np.where(upper, t + k - 1, t - 1 - k), t, t - 1)
    if not claim.hides_direction:
        return usual, usual, np.zeros(len(t), np.bool_)
    last = np.full_like(t, n - 1)
    enough = np.full_like(t, n - k)
    second = Test(last, enough, enough - 1)
    return usual, second, ~upper


@dataclass(slots=True)
class Proofs:
    """Proofs that are under way, as columns: one row a test.

    Args:
        owner: The search that the test belongs to.
        low: Where the range starts, in coarse steps.
        high: Where it ends (not included).
        test: The threshold and the two counts.
        led: By how many nats the claim leads.
        of_value: Whether the test is about the value itself, not about what lies below.
    """

    owner: Codes
    low: Codes
    high: Codes
    test: Test
    led: Floats
    of_value: Flags

    def take(self, rows: Flags) -> Proofs:
        """Return some of the rows."""
        test = Test(self.test.threshold[rows], self.test.yes[rows], self.test.no[rows])
        return Proofs(
            self.owner[rows],
            self.low[rows],
            self.high[rows],
            test,
            self.led[rows],
            self.of_value[rows],
        )

    @staticmethod
    def none() -> Proofs:
        """Return an empty list of tests."""
        empty = np.empty(0, np.int64)
        test = Test(empty, empty, empty)
        return Proofs(empty, empty, empty, test, np.empty(0), np.empty(0, np.bool_))

    @staticmethod
    def begun(
        claim: Claim,
        records: int,
        owner: Codes,
        low: Codes,
        high: Codes,
        t: Codes,
        of_value: bool,
    ) -> list[Proofs]:
        """Return the tests that prove "at least t records" in each range."""
        usual, second, twice = at_least(claim, records, t)
        zero, flags = np.zeros(len(owner)), np.full(len(owner), of_value)
        return [
            Proofs(owner, low, high, usual, zero, flags),
            Proofs(owner, low, high, second, zero, flags).take(twice),
        ]

    @staticmethod
    def joined(parts: list[Proofs]) -> Proofs:
        """Return several lists of tests as one."""
        tests = [part.test for part in parts]
        return Proofs(
            np.concatenate([part.owner for part in parts]),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
            Test(
                np.concatenate([test.threshold for test in tests]),
                np.concatenate([test.yes for test in tests]),
                np.concatenate([test.no for test in tests]),
            ),
            np.concatenate([part.led for part in parts]),
            np.concatenate([part.of_value for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Speed:
    """How much the answers of one kind of test tell.

    Args:
        proof: Nats an answer gives on average when the claim is true.
        step: How many answers make a good step while searching.
    """

    proof: float
    step: int


@lru_cache(maxsize=256)
def speed(claim: Claim, records: int, upper: bool, epsilon: float) -> Speed:
    """Return how fast a test between neighbouring counts is, at a loss an answer."""
    k = claim.reach
    b = records // 2
    counts = np.array([b - k + 1, b - k] if upper else [b + k + 1, b + k])
    bit, scale = claim.law(counts, np.array([b, b]), np.zeros(2, np.bool_), records, epsilon)
    rate = np.divide(epsilon, scale, out=np.ones(2), where=scale > 0)
    values = _typical(claim, bool(bit[0]), float(scale[0]), epsilon)
    yes, no = (
        np.maximum(loglik(claim, values, bit[[i]], scale[[i]], rate[[i]]), IMPOSSIBLE)
        for i in (0, 1)
    )
    proof = float(np.mean(yes - no))
    overlap = float(np.mean(np.exp((no - yes) / 2)))
    distance = -np.log(min(max(overlap, 1e-9), 1 - 1e-15))
    return Speed(max(proof, 1e-15), int(min(max(1, round(0.45 / distance)), 10**15)))


def _typical(claim: Claim, bit: bool, scale: float, epsilon: float) -> Floats:
    """Return answers at evenly spaced quantiles of their law."""
    if scale == 0:
        return np.array([float(bit)])
    u = (np.arange(_POINTS) + 0.5) / _POINTS
    assert claim.noise is not None
    return rounded(bit + claim.noise.quantile(u, scale / epsilon), claim.post)
