"""Tests that tell noise from no noise, and more noise from less.

Every zone boundary that an attack looks for is a change of noise. Where an answer without
noise exists (no offset in the claim), it is the same 0 or 1 each time; the rule is
`Identical`. Where noise is always added, Laplace(a/eps) or Laplace((a + 1)/eps) for an
offset a > 0, the two are told apart by `Variance` (the paper's psi_m) or by `MeanMagnitude`
(the likelihood ratio of a fixed number of answers). `FixedTally` settles the questions of an
attack by one of them, as the paper does it.

Answers come as rows, the repeats of one question along the last axis. Epsilon is the loss
of each single answer: the paper's m answers at a total of eps are m answers at eps/m. A
flag is True for "noisier". An error is the larger one of the two ways to be wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import check_rounded
from thinveil.attacker.terms import ABOVE, BELOW, NOISY
from thinveil.errors import EvidenceError, Undecided, UsageError
from thinveil.language.claims import Claim, Post
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import Laplace
from thinveil.language.queries import Answers, Codes, Flags, Floats, QueryBatch

PAPER_PSI_REPEATS: Final = 1000
"""How many answers the paper gives psi_m; its proven bound would ask for far more."""
_MOST_REPEATS: Final = 2**40
_NEGLIGIBLE: Final = 40.0  # terms that fell by a factor e^-40 do not change a double


def repetitions(test: NoiseTest, wanted: float, epsilon: float) -> int:
    """Return the fewest repeats at which a test errs with at most the wanted probability.

    >>> repetitions(Identical("binary"), 1e-10, epsilon=1e-10)
    35

    Raises:
        EvidenceError: No number of repeats is enough at this epsilon.
    """
    check_wanted(wanted)
    high = 1
    while test.error(high, epsilon) > wanted:
        high *= 2
        if high > _MOST_REPEATS:
            raise EvidenceError(
                f"{test.name}: no number of repeats reaches an error of {wanted:g} at epsilon "
                f"{epsilon:g}; a smaller epsilon helps"
            )
    return bisect_left(
        range(high), True, lo=high // 2 + 1, key=lambda m: test.error(m, epsilon) <= wanted
    )


def misreading(post: Post, epsilon: float) -> tuple[float, float]:
    """Return the chances that a noisy answer comes out as its true bit and as the other one.

    The noise is Laplace(1/epsilon). Rounded to a whole number the two add up to
    1 - (exp(-epsilon/2) + exp(-3 epsilon/2)) / 2, which is about epsilon and half of the
    paper's bound (erratum 14). Rounded to {0, 1} they are 1/2 each but for a bias of about
    epsilon/4 towards the true bit (erratum 3). Unrounded they are bounds.
    """
    quiet, rate = np.zeros(2, np.bool_), np.full(2, epsilon)
    likely = np.exp(Laplace().loglik(np.array([0.0, 1.0]), quiet, rate, post, True))
    true, other = (likely / 2 if post == "none" else likely).tolist()
    return true, other


@dataclass(frozen=True, slots=True)
class Identical:
    """No noise shows as the same 0 or 1 every time (Section "rounding"; errata 3 and 14).

    An answer without noise never differs, so the only error is noise that looks like none:
    all repeats are the true bit, or all are the other one. At 1e-10 an answer, one unrounded
    or whole-number answer is enough; answers in {0, 1} need 35 for an error of 1e-10, where
    the paper's 15 err with probability 2 * 2^-15 = 6.1e-5.
    """

    post: Post = "none"  # what the mechanism does to a noisy answer

    @property
    def name(self) -> str:
        """Return what has to be identical."""
        kind = {"none": "exact", "integer": "whole-number", "binary": "rounded"}[self.post]
        return f"identical {kind} answers"

    def error(self, repeats: int, epsilon: float) -> float:
        """Return the probability that so many noisy answers are the same 0 or 1."""
        true, other = misreading(self.post, epsilon)
        return min(1.0, true**repeats + other**repeats)

    def decide(self, answers: Floats, epsilon: float | Floats) -> Flags:
        """Tell for each row whether there is noise in it."""
        first = answers[..., :1]
        quiet = (answers == first).all(axis=-1) & ((first == 0) | (first == 1))[..., 0]
        noisy: Flags = ~quiet
        return noisy


@dataclass(frozen=True, slots=True)
class _OfScale:
    """A test between Laplace(a/eps) and Laplace((a + 1)/eps), where a > 0 is the offset."""

    offset: float = 1.0

    def __post_init__(self) -> None:
        check_offset(self.offset)


@dataclass(frozen=True, slots=True)
class Variance(_OfScale):
    """The paper's psi_m: epsilon^2 times the sample variance, divisor m - 1 (erratum 4).

    Its mean is 2 a^2 or 2 (a + 1)^2, and the threshold lies half-way: 5 for a = 1. At least
    the threshold means noisier; the text prints the rule backwards (erratum 5). It takes no
    knowledge of the true bit.
    """

    name: ClassVar = "psi_m"

    @property
    def threshold(self) -> float:
        """Where psi_m starts to mean noisier."""
        return self.offset**2 + (self.offset + 1) ** 2

    def error(self, repeats: int, epsilon: float) -> float:
        """Bound the error by Cantelli's inequality.

        The sample variance of m draws from Laplace(s) has variance
        s^4 (24 - 4 (m - 3)/(m - 1)) / m. The bound holds for every m and is far from tight:
        at m = 1000 it says 0.034, and 2 million simulations show no error at all.
        """
        if repeats < 2:
            return 1.0
        spread = (24 - 4 * (repeats - 3) / (repeats - 1)) / repeats * (self.offset + 1) ** 4
        return spread / (spread + (2 * self.offset + 1) ** 2)

    def decide(self, answers: Floats, epsilon: float | Floats) -> Flags:
        """Tell for each row whether psi_m is at least the threshold."""
        if answers.shape[-1] < 2:
            raise UsageError("a sample variance needs at least two answers")
        psi: Floats = np.var(answers * _by_answer(epsilon), axis=-1, ddof=1)
        return psi >= self.threshold


@dataclass(frozen=True, slots=True)
class MeanMagnitude(_OfScale):
    """The likelihood-ratio test on a fixed number of answers (Neyman and Pearson).

    Beside the noise the true bit is nothing, so the mean of |z| is sufficient. The two
    likelihoods are equal where epsilon times that mean is a (a + 1) ln((a + 1)/a): 2 ln 2
    for a = 1. No other test on m answers is right more often.
    """

    name: ClassVar = "mean |z|"

    @property
    def threshold(self) -> float:
        """Where epsilon times the mean of |z| starts to mean noisier."""
        return self.offset * (self.offset + 1) * math.log1p(1 / self.offset)

    def errors(self, repeats: int, epsilon: float) -> tuple[float, float]:
        """Return the chances to misread the less noisy and the noisier kind.

        A sum of m magnitudes of Laplace(s) is s times a Gamma(m) variable. The true bit
        moves each of them by at most epsilon, which is taken at its worst: the figures are
        exact for epsilon = 0 and bounds above it.
        """
        above = repeats * (self.threshold - epsilon) / self.offset
        below = repeats * (self.threshold + epsilon) / (self.offset + 1)
        return _gamma_above(repeats, above), _gamma_below(repeats, below)

    def error(self, repeats: int, epsilon: float) -> float:
        """Return the larger one of both errors."""
        return max(self.errors(repeats, epsilon))

    def decide(self, answers: Floats, epsilon: float | Floats) -> Flags:
        """Tell for each row whether the noisier kind is at least as likely."""
        noisier: Flags = np.abs(answers * _by_answer(epsilon)).mean(axis=-1) >= self.threshold
        return noisier


NoiseTest = Identical | Variance | MeanMagnitude
"""A test on a fixed number of answers."""


def _by_answer(epsilon: float | Floats) -> float | Floats:
    return epsilon[..., None] if isinstance(epsilon, np.ndarray) else epsilon


def check_offset(offset: float) -> None:
    """Refuse an offset at which there is not always noise."""
    if not 0 < offset < math.inf:
        raise UsageError("noise is always added only where the offset is above 0")


def check_wanted(wanted: float) -> None:
    """Refuse an error that nobody can want."""
    if not 0 < wanted < 0.5:
        raise UsageError(f"a wanted error lies between 0 and 1/2, not at {wanted:g}")


def _gamma_above(shape: int, x: float) -> float:
    """Return P(Gamma(shape) >= x): at most shape - 1 arrivals until x. Trivial up to shape."""
    if x <= shape:
        return 1.0
    first = math.exp(-x + (shape - 1) * math.log(x) - math.lgamma(shape))
    terms = min(shape - 1, math.ceil(_NEGLIGIBLE / math.log(x / shape)))
    return first * (1.0 + float(np.cumprod((shape - 1 - np.arange(terms)) / x).sum()))


def _gamma_below(shape: int, x: float) -> float:
    """Return P(Gamma(shape) < x): at least shape arrivals until x. Trivial from shape on."""
    if x >= shape:
        return 1.0
    first = math.exp(-x + shape * math.log(x) - math.lgamma(shape + 1))
    terms = math.ceil(_NEGLIGIBLE / math.log(shape / x))
    return first * (1.0 + float(np.cumprod(x / (shape + 1 + np.arange(terms))).sum()))


def noise_test(claim: Claim, name: str) -> NoiseTest:
    """Return a test by its name, for a mechanism that it fits.

    Raises:
        UsageError: The test makes no sense for the mechanism.
    """
    if not isinstance(claim.noise, Laplace):
        raise UsageError(f"--test {name} is the paper's, for the noise of the paper")
    if name == "identical":
        if not claim.leaks or claim.offset or claim.post == "none":
            raise UsageError(f"--test identical: {claim.name} does not round exact answers")
        return Identical(claim.post)
    if not claim.hides_direction or claim.post != "none":
        raise UsageError(f"--test {name}: {claim.name} is not always noisy at two scales")
    return Variance(claim.offset) if name == "psi" else MeanMagnitude(claim.offset)


class FixedTally:
    """Settles every question by one test on m answers.

    The first answer of a run only shows what an answer costs; from then on m is known.
    """

    def __init__(self, facts: PublicFacts, care: Care) -> None:
        self._claim = facts.claim
        self._care = care
        self._test = noise_test(facts.claim, care.test)
        self._given = care.repeats  # m, where it does not follow from the error
        if care.test == "psi" and care.repeats is None:
            self._given = PAPER_PSI_REPEATS
        self._epsilon: float | None = None
        self._nats = 0.0
        self._rows = 0
        self._planned: tuple[float, float, int] | None = None

    def begin(self, fresh: Flags) -> None:
        """Start new tests in the given rows; no test ever goes on."""
        self._rows = len(fresh)
        self._nats = self._care.nats(int(np.count_nonzero(fresh)))

    def keep(self, rows: Flags) -> None:
        """Forget the tests of all other rows."""
        self._rows = int(np.count_nonzero(rows))

    def _plan(self, epsilon: float) -> int:
        """Return m by the error that a decision may have."""
        known = self._planned
        if known is None or known[1] != epsilon or known[0] < self._nats:
            ahead = self._nats + 0.1  # planned a little ahead, not anew for every round
            try:
                m = repetitions(self._test, math.exp(-ahead), epsilon)
            except EvidenceError as error:
                raise Undecided(str(error)) from None
            known = self._planned = ahead, epsilon, m
        return known[2]

    def repeats(self) -> Codes:
        """Return how many answers each question wants now."""
        m = self._given
        if m is None:
            m = 1 if self._epsilon is None else self._plan(self._epsilon)
        if m > self._care.most_repeats:
            raise Undecided(
                f"the test {self._care.test!r} would need {m:,} answers to one question at the "
                f"wanted error of {self._care.error:g}, and at most {self._care.most_repeats:,} "
                "are tried (--most-repeats allows more)"
            )
        return np.full(self._rows, m)

    def add(self, batch: QueryBatch, answers: Answers) -> tuple[Flags, list[int]]:
        """Weigh answers; return which questions are settled, and the zone of each."""
        values, epsilon = answers.values, answers.epsilon
        check_rounded(self._claim, values)
        many, m = batch.questions, int(np.ravel(batch.repeats)[0])
        if epsilon is None:
            raise EvidenceError("a protected answer came back without its cost")
        first = self._epsilon is None
        self._epsilon = float(np.median(epsilon))
        if self._given is not None:
            self._care.misread += many * self._test.error(m, float(np.max(epsilon)))
        elif first:
            return np.zeros(many, np.bool_), [BELOW] * many
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
