"""What proves a count, and how many answers it takes.

"At least t records" is proved by one sequential test between two neighbouring counts, t and
t - 1, at the threshold that separates them best. If disjoint ranges hold at least as many
records each as were found, and these add up to all there are, every count is exactly right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np

from thinveil.attacker.evidence.likelihood import IMPOSSIBLE, Laws, loglik, weighed
from thinveil.attacker.evidence.sequential import answers_for
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.laws.additive import rounded
from thinveil.language.queries import Answers, Codes, Flags, Floats

_POINTS: Final = 2000  # even, so that no point is the exact median
_KINDS: Final = {"Codes": np.int64, "Floats": np.float64, "Flags": np.bool_}
_UNKNOWN: Final = 0.3  # nats an answer is taken to give before the first one came back
_CAUTIOUS: Final = 0.75  # the part of a gap to close at once: answers left over are lost


@dataclass(slots=True, eq=False)
class Columns:
    """Arrays of one length that belong together row by row (a struct of arrays)."""

    @classmethod
    def zeros(cls, many: int = 0, **known: Codes) -> Self:
        """Return so many rows of nothing, but for the columns that are known."""
        blank: dict[str, Any] = {
            each.name: np.zeros(many, _KINDS[str(each.type)]) for each in fields(cls)
        }
        return cls(**{**blank, **known})

    def some(self, rows: Codes | Flags) -> Self:
        """Return some of the rows."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several, one after the other."""
        return cls(
            *(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls))
        )


@dataclass(slots=True, eq=False)
class Test(Columns):
    """A question and the two counts between which its answers decide."""

    threshold: Codes
    yes: Codes  # the count that is to be proved
    no: Codes  # the count that is to be ruled out

    def lead(self, facts: PublicFacts, answers: Answers, drawn: Codes) -> Floats:
        """Return by how many nats answers speak for the first count of each test."""
        counts = np.stack([self.yes, self.no], axis=1)
        told = weighed(facts.claim, counts, self.threshold, facts.records, answers, drawn)
        return told[:, 0] - told[:, 1]


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


@dataclass(slots=True, eq=False)
class Proofs(Test):
    """Proofs that are under way, one row a test."""

    owner: Codes  # the search that the test belongs to
    low: Codes  # where the range starts, in coarse steps
    high: Codes  # where it ends (not included)
    led: Floats  # by how many nats the claim leads
    of_value: Flags  # whether the test is about the value itself, not about what lies below

    @staticmethod
    def begun(
        facts: PublicFacts, owner: Codes, low: Codes, high: Codes, t: Codes, of_value: bool
    ) -> list[Proofs]:
        """Return the tests that prove "at least t records" in each range."""
        usual, second, twice = at_least(facts.claim, facts.records, t)
        rest = owner, low, high, np.zeros(len(owner)), np.full(len(owner), of_value)
        first, again = (
            Proofs(test.threshold, test.yes, test.no, *rest) for test in (usual, second)
        )
        return [first, again.some(twice)]


@dataclass(frozen=True, slots=True)
class Speed:
    """How much the answers of one kind of test tell."""

    proof: float  # nats an answer gives on average when the claim is true
    step: int  # how many answers make a good step while searching


class Paces:
    """How fast tests between neighbouring counts are, on both sides of the noise.

    What an answer costs is None where none came back yet.
    """

    def __init__(self, facts: PublicFacts, epsilon: float | None) -> None:
        self._reach = facts.claim.reach
        if epsilon is None:
            self._lower = self._upper = Speed(_UNKNOWN, Laws.of(facts.claim).first)
        else:
            self._lower, self._upper = (
                speed(facts.claim, facts.records, upper, epsilon) for upper in (False, True)
            )

    @property
    def step(self) -> int:
        """How many answers make a good step, whatever the test."""
        return max(self._lower.step, self._upper.step)

    def proof(self, test: Test) -> Floats:
        """Return how many nats an answer to each test gives when its claim is true.

        The upper pace is that of tests that prove the noisier law, or, without noise zones,
        the upper bit.
        """
        if not self._reach:
            return np.full(len(test.yes), self._upper.proof)
        noisier = test.threshold >= test.yes
        return np.where(noisier, self._upper.proof, self._lower.proof)

    def answers(self, test: Test, gap: Floats, least: int, most: int | Codes) -> Codes:
        """Return how many answers would about prove what lacks so many nats."""
        return answers_for(gap, self.proof(test), share=_CAUTIOUS, least=least, most=most)


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
