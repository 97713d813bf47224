"""All contracts on one page: what a claim is made of, what can be audited, what attacks it.

Each is a small Protocol: nothing is inherited, any object with these members conforms.
`thinveil.testing` has a suite for each that other packages can run on their own.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from thinveil.language.queries import Answers, Codes, Flags, Floats, Loss, QueryBatch
from thinveil.language.scrambling import Words as Words

if TYPE_CHECKING:
    from thinveil.language.facts import PublicFacts

_T = TypeVar("_T")

Post = Literal["none", "integer", "binary"]
"""What is done to a noisy answer: nothing, rounding to a whole number, or to 0 or 1."""


class Sensitivity(Protocol):
    """How sensitive a non-trivial threshold query is on the actual data.

    Conforms: `Insensitive` (no protection), `KLocal` (Individual and Group IDP), `Bootstrap`
    (Bootstrap DP), `Global` and `Smooth` (honest differential privacy), and any hashable value
    with these two. It may have a whole number `k`, the group size of `--k`; a text `title` for
    people; and a `shape`, which is found by looking otherwise.
    """

    def at(self, count: Codes, threshold: Codes, records: int, epsilon: Loss) -> Floats:
        """Return the sensitivity for each true count and threshold."""
        ...

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """Return, a row a question, the counts after which the answer's law changes.

        Between two neighbouring breakpoints (c above the left one, at most the right one)
        both the true bit and the sensitivity are constant. This is public knowledge.
        """
        ...

    def __hash__(self) -> int: ...


@runtime_checkable
class Fading(Protocol):
    """A sensitivity that is known without rounding: size * exp(-(epsilon / 6) * distance).

    Cauchy noise is drawn exactly for these alone. Conforms: `Smooth`, and whatever is constant.
    """

    size: ClassVar[float]

    def distance(self, count: Codes, threshold: Codes) -> Codes:
        """Return whole numbers of at least 0, which one record changes by at most 1."""
        ...


class Law(Protocol):
    """How the answer to "is c > b?" scatters where there is noise: a distribution over answers.

    It may have atoms (`discrete`, or after rounding), a continuous part, and silence: no answer
    at all, a NaN among answers and a null on the wire. At scale zero every law is the true bit
    itself, so nobody asks a law about it. The noise is the same for both bits, and even about 0.

    `scale` is how wide noise is, `rate` is 1 / scale; arrays broadcast. Conforms: `Laplace`,
    `Cauchy`, `Gaussian`, `DiscreteLaplace`, and any hashable value with these; a plug-in brings
    its own. A method `row_loglik(values, starts, repeats, bit, rate)` may add up `loglik` over
    rows of unrounded answers where there are no exact ones, from sums that suffice.

    Attributes:
        name: What it is called on the wire and on the command line.
        title: What people call it.
        discrete: Whether answers are whole numbers before any rounding.
        silent: Whether an answer may be missing.
        level: Whether zones of two scales are told apart by repeated answers, round by round.
            Otherwise a claim with an offset or rounding is attacked as any law is.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    discrete: ClassVar[bool]
    silent: ClassVar[bool]
    level: ClassVar[bool]

    def sized(self, what: str) -> str:
        """Say how wide the noise is for a sensitivity, in a phrase."""
        ...

    def widen(self, epsilon: Loss) -> float | Floats:
        """Return what epsilon divides to give the scale of noise for a sensitivity of 1."""
        ...

    def deltas(self, answers: int, epsilon: Fraction) -> Fraction:
        """Return the delta of so many answers, whose epsilons add up to this one."""
        ...

    def loglik(self, value: Floats, bit: Flags, rate: Floats, post: Post, exact: bool) -> Floats:
        """Return the logarithm of the density or mass of answers after rounding.

        Args:
            value: The answers; NaN is silence.
            bit: The true bits.
            rate: 1 / scale.
            post: How answers are rounded.
            exact: Whether answers without any noise occur beside these. Then exactly 0 and
                exactly 1 count by the mass of one double, since that is what they compete with.
        """
        ...

    def tail(self, x: float | Floats, rate: float | Floats) -> Floats:
        """Return how likely noise is at least x, for x above 0."""
        ...

    def still(self, rate: Floats, post: Post) -> Floats:
        """Return how likely noise leaves the true bit as it is, rounded like this (not binary)."""
        ...

    def quantile(self, u: Floats, scale: float) -> Floats:
        """Return noise at quantiles strictly between 0 and 1."""
        ...

    def overlap(self, one: Floats, other: Floats, apart: Flags) -> Floats:
        """Return how alike answers at two scales are: 1 the same, 0 never confused.

        This is the Bhattacharyya coefficient, or close to it: it decides how often a question
        is repeated, never what is believed. `apart` tells where the true bits differ.
        """
        ...

    def distance(self, one: float, other: float) -> float:
        """Bound how far answers at two scales are apart, from above: total variation."""
        ...

    def bits(self, rate: float) -> float:
        """Bound how many bits one answer tells of the true bit, from above."""
        ...

    def draw(self, words: Words, bit: Floats, scale: float | Floats) -> Floats:
        """Return an answer for each word: a true bit and noise, or NaN."""
        ...

    def __hash__(self) -> int: ...


@runtime_checkable
class Target(Protocol):
    """Something to audit. Conforms: `Curator`, `HttpTarget`, and any object with these two.

    A text attribute `fingerprint`, where there is one, tells two targets with the same public
    facts apart, so that a transcript of one is refused by the other. Where `remote` is true, the
    transcript is on the disk from the first batch on. `trips` with a `to_plain()`, and `ledger()`,
    tell of the way to a target and of its own account.

    `answer` may return `Answers` or a plain array with one number for each answer wanted,
    the repeats of a question next to each other.
    """

    @property
    def facts(self) -> PublicFacts:
        """What is public about the target."""
        ...

    def answer(self, batch: QueryBatch) -> Any:
        """Answer a stamped batch, or raise a ThinveilError and answer nothing."""
        ...


Attack = Generator[QueryBatch, Answers, _T]
"""An attack: it yields batches, is sent their answers, and returns what it found.

Conforms: every entry of `attacker.attacks`. What finds counts and values for them is an engine;
`attacker.engines.protocol.Engine` is its contract, which stands there since it speaks of axes and
groups of records, terms of the attacker alone.
"""
