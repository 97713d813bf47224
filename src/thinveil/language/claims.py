"""What a mechanism says of itself, as a pure description.

A claim is a composition: how sensitive the query is, what noise that sensitivity scales,
what happens to the noisy answer, and over which universe of records the claim is made. The
curator draws from a claim, the attacker computes likelihoods from the very same object;
neither needs the other.

Sensitivities are those of the threshold query "is c > b?" (the zones of docs/mechanisms.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Literal

import numpy as np

from thinveil.errors import BudgetError, UsageError
from thinveil.language.queries import Codes, Flags, Floats
from thinveil.language.shapes import EVEN, Shape, shape_of
from thinveil.language.shapes import Sensitivity as Sensitivity


@dataclass(frozen=True, slots=True)
class Insensitive:
    """Sensitivity taken as zero: the true bit is answered as it is."""

    title: ClassVar = "no sensitivity"
    shape: ClassVar = EVEN

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return zero everywhere."""
        return np.zeros(count.shape)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The answer changes with the true bit only: at b."""
        return threshold[:, None]


@dataclass(frozen=True, slots=True)
class KLocal:
    """k-local sensitivity: how far k changed records can move the answer (Lemma 1).

    It is 1 where b - k < c <= b + k and 0 elsewhere. k = 1 is local sensitivity.
    """

    k: int

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1:
            raise UsageError(f"the group size k must be a whole number of at least 1, not {self.k}")

    @property
    def title(self) -> str:
        """What it is called."""
        return f"{self.k}-local sensitivity"

    @property
    def shape(self) -> Shape:
        """It is 1 in a window around the threshold."""
        return Shape(reach=self.k)

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return 1 in the noisy zone, 0 outside it."""
        above = count - threshold
        return ((above > -self.k) & (above <= self.k)).astype(np.float64)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The law changes at b - k, b and b + k."""
        return np.stack([threshold - self.k, threshold, threshold + self.k], axis=1)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Bootstrap sensitivity: how far resampling the records at hand can move the answer.

    It is 1 where some but not all records satisfy the predicate, whatever the threshold
    between 0 and n - 1 (Lemma on existence queries, and erratum 9).
    """

    title: ClassVar = "bootstrap sensitivity"
    shape: ClassVar = Shape(presence=True)

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return 1 where some but not all records satisfy the predicate."""
        return ((count > 0) & (count < records)).astype(np.float64)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The law changes at 0, b and n - 1."""
        inside = np.minimum(np.maximum(threshold, 0), records - 1)
        return np.stack([np.zeros_like(inside), inside, np.full_like(inside, records - 1)], axis=1)


@dataclass(frozen=True, slots=True)
class Global:
    """Global sensitivity: some record of some table can move the answer, so it is 1."""

    title: ClassVar = "global sensitivity"
    shape: ClassVar = EVEN

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return one everywhere."""
        return np.ones(count.shape)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The answer's law changes with the true bit only: at b."""
        return threshold[:, None]


@dataclass(frozen=True, slots=True)
class Smooth:
    """Smooth sensitivity: local sensitivity that fades slowly with distance.

    S = exp(-(epsilon / 6) * d), where d = max(b - c, c - b - 1, 0) is how many records must
    change before a further one can flip the answer.
    """

    title: ClassVar = "smooth sensitivity"
    shape: ClassVar = EVEN  # but for so little, at a small loss, that the true bit tells more

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return the smooth sensitivity; it needs the loss of the answer."""
        far = np.maximum(np.maximum(threshold - count, count - threshold - 1), 0)
        fade: Floats = np.exp(-(0.0 if epsilon is None else epsilon) / CAUCHY * far)
        return fade

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """Every count has a law of its own."""
        return np.broadcast_to(np.arange(records), (len(threshold), records))


CAUCHY: Final = 6.0
"""Cauchy noise needs scale 6 S / epsilon, and S smooth at rate epsilon / 6, for pure DP."""

MOST_OFFSET: Final = 1e6
"""A larger offset could overflow a double at the smallest epsilon, and hides all else anyway."""

Noise = Literal["none", "laplace", "cauchy"]
Post = Literal["none", "integer", "binary"]
Universe = Literal["unbounded", "bounded"]
Sampler = Literal["own", "opendp"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A mechanism's description of itself.

    Args:
        name: The mechanism's name on the command line and in results.
        sensitivity: What the noise is scaled by.
        noise: The shape of the noise: Laplace at scale (offset + sensitivity) / epsilon, or
            Cauchy at six times that.
        universe: The records over which "always true" and "always false" are meant:
            any whole-number code ("unbounded"), or the schema's bounds ("bounded").
        offset: Added to the sensitivity, so that noise is always added where it is above 0.
        post: What is done to the noisy answer: nothing, rounding to a whole number, or to
            the nearer one of 0 and 1.
        sampler: Who draws the noise: this project or the OpenDP library.
    """

    name: str
    sensitivity: Sensitivity
    noise: Noise
    universe: Universe = "unbounded"
    offset: float = 0.0
    post: Post = "none"
    sampler: Sampler = "own"

    def __post_init__(self) -> None:
        if not 0 <= self.offset <= MOST_OFFSET:
            raise UsageError(
                f"the offset of the sensitivity must lie between 0 and {MOST_OFFSET:g}"
            )
        if self.noise == "none" and (self.offset or self.post != "none"):
            raise UsageError(f"{self.name}: without noise there is nothing to offset or to round")

    def law(
        self,
        count: Codes,
        threshold: Codes,
        constant: Flags,
        records: int,
        epsilon: float | Floats | None,
    ) -> tuple[Flags, Floats]:
        """Return, for each count, the true bit and what epsilon divides to scale the noise.

        This is the one place that says what a mechanism does: the curator draws from it,
        the attacker weighs by it. Thresholds that no count can cross, and predicates that
        are constant over the universe, have sensitivity 0.
        """
        sensitivity = self.sensitivity.at(count, threshold, records, epsilon)
        sensitivity[constant | (threshold < 0) | (threshold >= records)] = 0.0
        scale = sensitivity + self.offset
        return count > threshold, scale * CAUCHY if self.noise == "cauchy" else scale

    @property
    def shape(self) -> Shape:
        """Where there is noise, as the sensitivity says or as its law shows."""
        return shape_of(self.sensitivity)

    @property
    def zoned(self) -> bool:
        """Whether every count belongs to one of a few zones that searches know how to tell.

        Otherwise the law is one of its own, and only a search that looks at the law fits.
        """
        shape = self.shape
        if not self.protected or shape.even:
            return True
        plain = self.offset == 0 and self.post == "none"
        level = shape.level and self.noise == "laplace"  # how zones are told apart otherwise
        return (shape.presence or shape.reach is not None) and (level or plain)

    @property
    def reads_exactly(self) -> bool:
        """Whether a single answer tells noise from no noise: it is exact or drowned in it."""
        return not self.protected or (
            self.leaks_by_noise and self.zoned and self.offset == 0 and self.post == "none"
        )

    @property
    def leaks_by_noise(self) -> bool:
        """Whether the scale of the noise depends on the data enough to give counts away."""
        return self.shape.leaks

    @property
    def hides_direction(self) -> bool:
        """Whether counts far above and far below a threshold look alike (erratum 12)."""
        return self.leaks_by_noise and self.offset > 0

    @property
    def counts(self) -> bool:
        """Whether answers tell counts, and not merely none, some or all (Bootstrap DP)."""
        return not (self.shape.presence and self.zoned)

    @property
    def k(self) -> int | None:
        """The group size, where the claim has one."""
        k = getattr(self.sensitivity, "k", None)
        return k if type(k) is int else None

    @property
    def reach(self) -> int:
        """How far noise reaches: b - reach < c <= b + reach; 0 where it has no such zone."""
        return (self.shape.reach or 0) if self.zoned else 0

    @property
    def protected(self) -> bool:
        """Whether the mechanism claims any protection at all."""
        return self.noise != "none"

    def describe(self) -> str:
        """Say what the mechanism does, in a phrase."""
        if not self.protected:
            return "true answers"
        kind = type(self.sensitivity).__name__
        what = str(getattr(self.sensitivity, "title", kind))
        offset = f"{self.offset:g} + " if self.offset else ""
        drawn = " drawn by OpenDP" if self.sampler == "opendp" else ""
        rounded = {"integer": ", rounded to a whole number", "binary": ", rounded to 0 or 1"}
        times = f"{CAUCHY:g} x " if self.noise == "cauchy" else ""
        return (
            f"{self.noise.capitalize()} noise{drawn} at scale {times}({offset}{what}) / epsilon"
            f"{rounded.get(self.post, '')}"
        )


def unprotected(universe: Universe = "unbounded") -> Claim:
    """Return the claim of a curator who answers truthfully."""
    return Claim("unprotected", Insensitive(), "none", universe)


def idp(k: int = 1, universe: Universe = "unbounded") -> Claim:
    """Return the k-Laplace mechanism: Individual DP for k = 1, Group IDP for any k."""
    return Claim("idp", KLocal(k), "laplace", universe)


def bdp(universe: Universe = "unbounded") -> Claim:
    """Return the bootstrap Laplace mechanism."""
    return Claim("bdp", Bootstrap(), "laplace", universe)


SMALLEST_EPSILON: Final = 1e-300
"""Below this the noise of some answer could overflow a double."""

MECHANISMS: Final = (
    "bdp",
    "dp-laplace",
    "dp-opendp",
    "dp-smooth",
    "idp",
    "idp-binary",
    "idp-integer",
    "idp-noisy",
    "unprotected",
)
"""The names of all built-in mechanisms, sorted; `plugins.mechanism_names` has all there are."""

POSTS: Final = ("none", "integer", "binary")
"""What can be done to a noisy answer."""

USUAL_OFFSET: Final = 1.0
"""The offset a of the section "Ensuring all answers are noisy"."""


def claim_named(
    name: str,
    k: int = 1,
    universe: Universe = "unbounded",
    *,
    offset: float | None = None,
    post: Post | None = None,
) -> Claim:
    """Return the claim behind a mechanism's name, perhaps composed with an offset or rounding.

    >>> claim_named("idp", 2, offset=0.5).name
    'idp-noisy'
    >>> claim_named("bdp", post="binary").name
    'bdp-binary'

    Raises:
        UsageError: There is no such mechanism, or the parts do not go together.
        PluginError: The mechanism is a plug-in's, and the plug-in is broken.
    """
    if name not in MECHANISMS:
        from thinveil.language.plugins import mechanism  # it builds on this module

        return _composed(mechanism(name, k, universe), offset, post)
    base, _, part = name.partition("-")
    if part == "noisy":
        offset = USUAL_OFFSET if offset is None else offset
        if not offset > 0:
            raise UsageError(f"{name}: the offset must be above zero; without one it is idp")
    elif part in POSTS:
        if post not in (None, part):
            raise UsageError(f"{name} rounds its answers already; use the mechanism idp")
        post = part  # type: ignore[assignment]
    claim = {
        "unprotected": lambda: unprotected(universe),
        "idp": lambda: idp(k, universe),
        "bdp": lambda: bdp(universe),
        "dp": lambda: _DP[part](universe),
    }[base]()
    return _composed(claim, offset, post)


def _composed(claim: Claim, offset: float | None, post: Post | None) -> Claim:
    """Return a claim with an offset and rounding, and a name that says so.

    Raises:
        UsageError: The claim has an offset or rounds already, and another one is asked for.
    """
    for what, own, wanted in (("offset", claim.offset, offset), ("post", claim.post, post)):
        if own not in (0.0, "none") and wanted not in (None, own):
            raise UsageError(f"--{what}: the mechanism {claim.name} brings its own, {own}")
    more = offset if offset and offset != claim.offset else 0.0
    name = claim.name + ("-noisy" if more and claim.leaks_by_noise else "")
    name += f"-{post}" if post not in (None, "none", claim.post) else ""
    offset = claim.offset if offset is None else offset
    return replace(claim, name=name, offset=offset, post=post or claim.post)


_DP: Final[dict[str, Callable[[Universe], Claim]]] = {
    "laplace": lambda universe: Claim("dp-laplace", Global(), "laplace", universe),
    "opendp": lambda universe: Claim("dp-opendp", Global(), "laplace", universe, sampler="opendp"),
    "smooth": lambda universe: Claim("dp-smooth", Smooth(), "cauchy", universe),
}


def reduce_group(epsilons: Sequence[Fraction]) -> tuple[int, Fraction]:
    """Reduce the original (epsilon_1, ..., epsilon_k) of Group IDP to k and one epsilon.

    A mechanism that meets the smallest of them for groups of k meets them all.

    >>> reduce_group([Fraction(1, 2), Fraction(1, 4)])
    (2, Fraction(1, 4))
    """
    if not epsilons or min(epsilons) <= 0:
        raise BudgetError("the original Group IDP needs k losses, each above zero")
    return len(epsilons), min(epsilons)
