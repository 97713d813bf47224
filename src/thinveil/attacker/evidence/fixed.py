"""Telling zones apart by a fixed number of answers, as the paper does it.

The same questions as in `reading`, settled by one of the paper's tests instead of the
sequential one: m identical answers after rounding, psi_m, or the mean of |z|. The first
answer of a run only shows what an answer costs; from then on m is known.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import ABOVE, BELOW, NOISY
from thinveil.attacker.evidence.noise_tests import (
    Identical,
    MeanMagnitude,
    NoiseTest,
    Variance,
    repetitions,
)
from thinveil.attacker.evidence.reading import Settling, Tally, check_rounded, undecided
from thinveil.errors import EvidenceError, UsageError
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Codes, Flags

PAPER_PSI_REPEATS: Final = 1000
"""How many answers the paper gives psi_m; its proven bound would ask for far more."""


def settling(facts: PublicFacts, care: Care) -> Settling:
    """Return what settles repeated questions, by the test that the attack is to use."""
    if care.test == "sequential":
        return Tally(facts, care)
    return FixedTally(facts, care)


def noise_test(claim: Claim, name: str) -> NoiseTest:
    """Return a test by its name, for a mechanism that it fits.

    Raises:
        UsageError: The test makes no sense for the mechanism.
    """
    if name == "identical":
        if not claim.leaks_by_noise or claim.offset or claim.post == "none":
            raise UsageError(f"--test identical: {claim.name} does not round exact answers")
        return Identical(claim.post)
    if not claim.hides_direction or claim.post != "none":
        raise UsageError(f"--test {name}: {claim.name} is not always noisy at two scales")
    return Variance(claim.offset) if name == "psi" else MeanMagnitude(claim.offset)


class FixedTally:
    """Settles every question by one test on m answers. Conforms to `Settling`.

    Args:
        facts: What is public.
        care: The test, the number of answers (where the user gave one), and the error.
    """

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        self._claim = facts.claim
        self._care = care
        self._test = noise_test(facts.claim, care.test)
        self._epsilon: float | None = None
        self._nats = 0.0
        self._asked = np.empty(0, np.int64)
        self._planned: tuple[float, float, int] | None = None

    def begin(self, fresh: Flags) -> None:
        """Start new tests in the given rows; all others go on."""
        if len(fresh) != len(self._asked):
            self._asked = np.zeros(len(fresh), np.int64)
        self._asked[fresh] = 0
        self._nats = self._care.nats(int(np.count_nonzero(fresh)))

    def keep(self, rows: Flags) -> None:
        """Forget the tests of all other rows."""
        self._asked = self._asked[rows]

    @property
    def asked(self) -> Codes:
        """How many answers each question has had."""
        return self._asked

    def _repeats(self) -> int:
        """Return m, as given or as planned from the error that a decision may have."""
        care = self._care
        if care.repeats is not None:
            return care.repeats
        if care.test == "psi":
            return PAPER_PSI_REPEATS
        assert self._epsilon is not None
        known = self._planned
        if known is None or known[1] != self._epsilon or known[0] < self._nats:
            ahead = self._nats + 0.1  # planned a little ahead, not anew for every round
            try:
                m = repetitions(self._test, math.exp(-ahead), self._epsilon)
            except EvidenceError:
                raise undecided(care) from None
            known = self._planned = ahead, self._epsilon, m
        return known[2]

    def repeats(self) -> Codes:
        """Return how many answers each question wants now."""
        one = self._epsilon is None and self._care.repeats is None and self._care.test != "psi"
        m = 1 if one else self._repeats()
        if m > self._care.most_repeats:
            raise undecided(self._care)
        return np.full(len(self._asked), m)

    def add(self, threshold: Codes, answers: Answers, drawn: Codes) -> tuple[Flags, list[int]]:
        """Weigh answers; return which questions are settled, and the zone of each."""
        values, epsilon = answers.values, answers.epsilon
        check_rounded(self._claim, values)
        m = int(drawn[0])
        self._asked += m
        if epsilon is None:
            raise EvidenceError("a protected answer came back without its cost")
        priced = self._epsilon is not None or self._care.repeats is not None
        self._epsilon = float(np.median(epsilon))
        if not priced and self._care.test != "psi":
            return np.zeros(len(drawn), np.bool_), [BELOW] * len(drawn)
        if self._care.repeats is not None or self._care.test == "psi":
            self._care.misread += len(drawn) * self._test.error(m, float(np.max(epsilon)))
        rows = values.reshape(-1, m)
        if self._care.test != "identical":
            each = epsilon
            if isinstance(epsilon, np.ndarray):
                each = np.broadcast_to(epsilon.reshape(len(rows), -1), rows.shape)
            rows = rows * each
        noisy = self._test.decide(rows, 1.0)
        quiet = np.where(rows[:, 0] == 1, ABOVE, BELOW)
        if self._claim.hides_direction:
            quiet = np.full(len(rows), BELOW)
        zones: list[int] = np.where(noisy, NOISY, quiet).tolist()
        return np.ones(len(rows), np.bool_), zones
