"""What a mechanism says of itself, as a pure description.

The curator draws from a claim, the attacker computes likelihoods from the very same object;
neither needs the other. Sensitivities are those of the threshold query "is c > b?" (the zones of
docs/mechanisms/idp.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from thinveil.errors import LawError, UsageError
from thinveil.language.contracts import Fading, Law, Post, Sensitivity
from thinveil.language.laws import Cauchy, DiscreteLaplace, Gaussian, Laplace, law_named
from thinveil.language.queries import Codes, Flags, Floats, Loss
from thinveil.language.shapes import Constant, Shape, shape_of

_MOST: Final = 1e6  # a larger offset could overflow a double at the smallest epsilon

SMALLEST_EPSILON: Final = 1e-300
"""Below this the noise of some answer could overflow a double."""

POSTS: Final[tuple[Post, ...]] = ("none", "integer", "binary")
"""What can be done to a noisy answer."""

Universe = Literal["unbounded", "bounded"]
Sampler = Literal["own", "exact", "opendp"]
"""Who draws: doubles added to doubles, integers on a grid that hangs on nothing, or OpenDP."""

EXACT: Final = (Cauchy, DiscreteLaplace, Laplace)
"""The laws that can be drawn exactly."""
_DRAWN: Final = {"exact": " drawn exactly on a grid", "opendp": " drawn by OpenDP"}
_ROUNDED: Final = {"integer": ", rounded to a whole number", "binary": ", rounded to 0 or 1"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A mechanism's description of itself.

    Args:
        name: The mechanism's name on the command line and in results.
        sensitivity: What the noise is scaled by.
        noise: The law of the noise; None where there is none. The name of a law without
            parameters stands for it.
        universe: The records over which "always true" and "always false" are meant:
            any whole-number code ("unbounded"), or the schema's bounds ("bounded").
        offset: Added to the sensitivity, so that noise is always added where it is above 0.
        post: What is done to the noisy answer: nothing, rounding to a whole number, or to
            the nearer one of 0 and 1. A discrete law counts as rounded to whole numbers.
        sampler: Who draws the noise: this project as textbooks do it, in doubles ("own"), or
            exactly, on a grid ("exact"), or the OpenDP library.
    """

    name: str
    sensitivity: Sensitivity
    noise: Law | None
    universe: Universe = "unbounded"
    offset: float = 0.0
    post: Post = "none"
    sampler: Sampler = "own"

    if TYPE_CHECKING:  # the name of a law is taken, but never kept

        def __init__(
            self,
            name: str,
            sensitivity: Sensitivity,
            noise: Law | str | None,
            universe: Universe = ...,
            offset: float = ...,
            post: Post = ...,
            sampler: Sampler = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.noise, str):
            law = None if self.noise == "none" else law_named(self.noise)
            object.__setattr__(self, "noise", law)
        elif self.noise is not None and not hasattr(self.noise, "loglik"):
            raise LawError(f"{self.name}: the noise is a {type(self.noise).__name__}, not a law")
        if self.sampler == "opendp" and type(self.noise) is not Laplace:
            raise LawError(f"{self.name}: OpenDP draws Laplace noise here, and no other")
        if self.sampler == "exact":
            self._check_exact()
        if not 0 <= self.offset <= _MOST:
            raise UsageError(f"the offset of the sensitivity must lie between 0 and {_MOST:g}")
        if self.noise is None and (self.offset or self.post != "none"):
            raise UsageError(f"{self.name}: without noise there is nothing to offset or to round")
        if self.noise is not None and self.noise.discrete and self.post == "none":
            object.__setattr__(self, "post", "integer")

    def _check_exact(self) -> None:
        """Refuse to draw exactly what cannot say exactly how wide its noise is."""
        if type(self.noise) not in EXACT:
            raise LawError(f"{self.name}: noise of this law cannot be drawn exactly here")
        known = self.sensitivity
        fades = type(self.noise) is Cauchy and isinstance(known, Fading)
        if not (fades or (isinstance(known, Constant) and type(known).at is Constant.at)):
            raise LawError(
                f'{self.name}: the sampler "exact" needs a sensitivity whose size it knows without '
                "rounding: a subclass of Constant, or with Cauchy noise one with the members "
                "`size` and `distance`"
            )

    def __repr__(self) -> str:
        # as fingerprints in transcripts have it, since before a law was a value
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        said["noise"] = "none" if self.noise is None else self.noise
        return f"Claim({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def law(
        self, count: Codes, threshold: Codes, constant: Flags, records: int, epsilon: Loss
    ) -> tuple[Flags, Floats]:
        """Return, for each count, the true bit and what epsilon divides to scale the noise.

        This is the one place that says what a mechanism does: the curator draws from it,
        the attacker weighs by it. Thresholds that no count can cross, and predicates that
        are constant over the universe, have sensitivity 0.
        """
        sensitivity = self.sensitivity.at(count, threshold, records, epsilon)
        sensitivity[trivially(threshold, constant, records)] = 0.0
        scale = sensitivity + self.offset
        if self.noise is not None:
            scale = scale * self.noise.widen(epsilon)
        return count > threshold, scale

    def may_answer(self, values: Floats) -> bool:
        """Tell whether all are answers at all: finite, or silence where its law has that."""
        silent = self.noise is not None and self.noise.silent
        return bool((np.isfinite(values) | (np.isnan(values) & silent)).all())

    @property
    def shape(self) -> Shape:
        """Where there is noise, as the sensitivity says or as its law shows."""
        return shape_of(self.sensitivity)

    @property
    def protected(self) -> bool:
        """Whether the mechanism claims any protection at all."""
        return self.noise is not None

    @property
    def leaks(self) -> bool:
        """Whether the scale of the noise depends on the data enough to give counts away."""
        return self.protected and self.shape.leaks

    @property
    def in_doubles(self) -> bool:
        """Whether an answer is a double added to a double, which tells what both were.

        Rounding to whole numbers does not help: at a loss of 1e-15 doubles are as far apart.
        """
        drawn = self.sampler == "own" and self.post != "binary"
        return drawn and type(self.noise) in (Cauchy, Gaussian, Laplace)

    @property
    def textbook(self) -> bool:
        """Whether it would be honest, were it not drawn in doubles (Mironov 2012)."""
        return self.protected and not self.shape.leaks and self._rounds

    @property
    def control(self) -> bool:
        """Whether it is honest: neither the noise nor how it is drawn depends on the data."""
        return self.protected and not self.shape.leaks and not self._rounds

    @property
    def _rounds(self) -> bool:
        """Whether draws are rounded on their way: sums of doubles, or whole parts of logarithms.

        The largest of 2^53 whole parts is finite: one more can come from a true bit of 1 only.
        """
        whole = self.sampler == "own" and type(self.noise) is DiscreteLaplace
        return self.in_doubles or (whole and self.post != "binary")

    @property
    def zoned(self) -> bool:
        """Whether every count belongs to one of a few zones that searches know how to tell.

        Otherwise the law is one of its own, and only a search that looks at the law fits.
        """
        shape = self.shape
        if self.noise is None or shape.even:
            return True
        level = shape.level and self.noise.level
        return (shape.presence or shape.reach is not None) and (level or self._plain)

    @property
    def _plain(self) -> bool:
        return self.offset == 0 and self.post == "none"

    @property
    def reads_exactly(self) -> bool:
        """Whether a single answer tells noise from no noise: it is exact or drowned in it."""
        return not self.protected or (self.leaks and self.zoned and self._plain)

    @property
    def hides_direction(self) -> bool:
        """Whether counts far above and far below a threshold look alike, by values (erratum 12)."""
        return self.leaks and self.offset > 0

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

    def describe(self) -> str:
        """Say what the mechanism does, in a phrase."""
        if self.noise is None:
            return "true answers"
        kind = type(self.sensitivity).__name__
        what = str(getattr(self.sensitivity, "title", kind))
        offset = f"{self.offset:g} + " if self.offset else ""
        drawn = " drawn in doubles" if self.textbook else _DRAWN.get(self.sampler, "")
        rounded = "" if self.noise.discrete and self.post == "integer" else _ROUNDED.get(self.post)
        size = self.noise.sized(f"({offset}{what})")
        return f"{self.noise.title} noise{drawn} at scale {size}{rounded or ''}"


def trivially(threshold: Codes, constant: Flags, records: int) -> Flags:
    """Tell which answers are the same on every table of so many records, as anybody can see."""
    return constant | (threshold < 0) | (threshold >= records)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A built-in mechanism, as a file in this folder says it.

    Args:
        name: Its name on the command line.
        title: What people call it.
        make: Returns its claim, for a group size and a universe.
        leaks: Whether its noise depends on the data; its claim must show the same.
        offset: What it adds to the sensitivity of `make`, unless the user says how much.
        post: How it rounds the answers of `make`.
    """

    name: str
    title: str
    make: Callable[[int, Universe], Claim]
    leaks: bool = True
    offset: float | None = None
    post: Post | None = None

    def claim(
        self, k: int, universe: Universe, offset: float | None, post: Post | None, noise: Law | None
    ) -> Claim:
        """Return its claim, perhaps with an offset, rounding or a noise law that it takes."""
        offset = self.offset if offset is None else offset
        if self.offset is not None and not (offset or 0) > 0:
            raise UsageError(f"{self.name}: the offset must be above zero; without one it is idp")
        if self.post is not None and post not in (None, self.post):
            raise UsageError(f"{self.name} rounds its answers already; use the mechanism idp")
        return composed(self.make(k, universe), offset, self.post or post, noise)


def composed(
    claim: Claim, offset: float | None, post: Post | None, noise: Law | None = None
) -> Claim:
    """Return a claim with an offset, rounding and noise, and a name that says so.

    A UsageError says that the claim brings its own, and another one is asked for.
    """
    for what, own, wanted in (("offset", claim.offset, offset), ("post", claim.post, post)):
        if own not in (0.0, "none") and wanted not in (None, own):
            raise UsageError(f"--{what}: the mechanism {claim.name} brings its own, {own}")
    more = offset if offset and offset != claim.offset else 0.0
    name = claim.name
    if noise not in (None, claim.noise):
        if not isinstance(claim.noise, Laplace) or claim.sampler == "opendp":
            raise UsageError(f"--noise: the mechanism {name} brings its own, or takes none")
        assert noise is not None
        if claim.textbook and noise.discrete:
            raise UsageError(
                f"--noise {noise.name}: {name} adds doubles; dp-laplace draws whole numbers exactly"
            )
        name = f"{name.removesuffix(f'-{claim.noise.name}')}-{noise.name}"
    name += "-noisy" if more and claim.leaks else ""
    name += f"-{post}" if post not in (None, "none", claim.post) else ""
    offset, law = claim.offset if offset is None else offset, noise or claim.noise
    # what cannot be drawn exactly is drawn as textbooks do it, and told apart by that
    sampler: Sampler = (
        "own" if type(law) not in EXACT and claim.sampler == "exact" else claim.sampler
    )
    return replace(
        claim, name=name, offset=offset, post=post or claim.post, noise=law, sampler=sampler
    )
