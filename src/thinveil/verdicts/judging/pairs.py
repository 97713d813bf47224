"""Two neighbouring tables as one question sees them: the laws of its answers, and what tells them.

Tables that differ in one record have counts c and c + 1 of what a question asks for, or the same
count. Its answers then follow one of a few pairs of laws, which a claim makes public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from thinveil.language.claims import Bootstrap, Claim, Global, KLocal, Smooth
from thinveil.language.contracts import Law, Post
from thinveil.language.laws import Cauchy, DiscreteLaplace, Gaussian, Laplace
from thinveil.language.laws.cauchy import CAUCHY
from thinveil.language.mechanisms.unprotected import Insensitive
from thinveil.language.queries import Codes

_ALIKE: Final = (Bootstrap, Global, Insensitive, KLocal, Smooth)
"""Sensitivities that have the same pairs of laws at every threshold but the outermost ones."""
_THRESHOLDS: Final = 512  # of a large table that are looked at
_CELLS: Final = 100_000  # breakpoints that are looked at, at most
_NARROWEST: Final = 1e-290  # a scale that fades is taken as this where it would be no double
_VAST: Final = 2.0**50
_PAIRS: Final = 8  # pairs of a law of somebody else's that are looked at: the most different


class World(NamedTuple):
    """The law of an answer: the true bit and the scale of its noise; none at scale 0."""

    bit: bool
    scale: float

    @property
    def exact(self) -> bool:
        """Whether the true bit comes back as it is."""
        return self.scale == 0


@dataclass(frozen=True, slots=True)
class Pair:
    """The laws of an answer on two neighbouring tables, the more certain one first."""

    law: Law | None
    post: Post
    one: World
    other: World
    widened: float | None = None
    """The largest loss of one answer, where the narrower scale is too small for a double."""

    @property
    def shifted(self) -> bool:
        """Whether the true bits differ."""
        return self.one.bit != self.other.bit

    @property
    def told_at_once(self) -> bool:
        """Whether the one answer is exact and the other one never equals it."""
        return self.one.exact and (self.other.exact or self.post == "none")

    @property
    def far_apart(self) -> bool:
        """Whether Cauchy noise is so much wider on one that their difference is no double."""
        vast = self.one.scale * _VAST < self.other.scale
        return isinstance(self.law, Cauchy) and not self.shifted and not self.one.exact and vast

    @property
    def level(self) -> bool:
        """Whether noise is equally wide on both."""
        return self.one.scale == self.other.scale

    @property
    def halves(self) -> tuple[float, float]:
        """By how much the answer 1 falls short of an even chance, rounded to 0 or 1."""
        return _short(self.law, self.one), _short(self.law, self.other)

    @property
    def is_coin(self) -> bool:
        """Whether an answer is one of two values, so that many of them are a binomial number."""
        if self.law is None or self.law.silent or self.one.exact:
            return False
        whole = isinstance(self.law, DiscreteLaplace) and self.level and self.shifted
        return self.post == "binary" or whole

    @property
    def stays(self) -> float:
        """How likely a noisy answer equals the exact one, rounded as it is."""
        if self.told_at_once or self.law is None:
            return 0.0
        value, bit = np.array([float(self.one.bit)]), np.array([self.other.bit])
        rate = np.array([1 / self.other.scale])
        return float(np.exp(self.law.loglik(value, bit, rate, self.post, False))[0])


def _short(law: Law | None, world: World) -> float:
    """Return 1/2 less the chance of an answer 1, which is exact where it is tiny."""
    assert law is not None
    rate = 1 / world.scale
    if isinstance(law, Laplace):
        short = -math.expm1(-rate / 2) / 2
    elif isinstance(law, DiscreteLaplace):
        short = math.tanh(rate / 2) / 2
    elif isinstance(law, Cauchy):
        short = math.atan(rate / 2) / math.pi
    elif isinstance(law, Gaussian):
        short = math.erf(rate / math.sqrt(8)) / 2
    else:
        short = 0.5 - float(law.tail(0.5, rate))
    return -short if world.bit else short


def pairs_of(claim: Claim, records: int, loss: float | None) -> tuple[tuple[Pair, ...], bool]:
    """Return the pairs of different laws that an answer can follow on neighbouring tables.

    Also whether these are all there are; else thresholds were sampled, and the most different
    pairs were kept.
    """
    threshold, every = _thresholds(claim, records)
    if not len(threshold):
        return (), True
    found: set[Pair] = set()
    for one, other in _laws(claim, threshold, records, loss):
        if one != other:
            # the noise is even, so the mirror image of a pair is as good as the pair
            first, second = sorted((one, other), key=lambda each: (each.scale, each.bit))
            if first.bit and not (first.exact and second.exact):
                first, second = (World(not each.bit, each.scale) for each in (first, second))
            widened = None
            if isinstance(claim.sensitivity, Smooth) and loss and first.scale <= _NARROWEST:
                widened = loss / CAUCHY  # scales differ by the factor exp(loss / 6)
            found.add(Pair(claim.noise, claim.post, first, second, widened))
    ranked = sorted(found, key=_difference, reverse=True)
    return tuple(ranked[:_PAIRS]), every and len(ranked) <= _PAIRS


def _difference(pair: Pair) -> tuple[float, float, float]:
    """Return how different two laws are, about: exact and noise, then scales, then bits."""
    one, other = pair.one, pair.other
    if one.exact:
        return math.inf, float(pair.shifted), -other.scale
    return math.log(other.scale / one.scale) + pair.shifted / other.scale, one.scale, 0.0


def _thresholds(claim: Claim, records: int) -> tuple[Codes, bool]:
    """Return thresholds to look at, and whether their pairs of laws are those of all."""
    alike, most = isinstance(claim.sensitivity, _ALIKE), _THRESHOLDS
    if records and not alike:
        wide = claim.sensitivity.breakpoints(np.zeros(1, np.int64), records).shape[1]
        most = min(max(_CELLS // max(wide, 1), 4), most)
    if records <= most:
        return np.arange(records), True
    ends = np.array([0, 1, records - 2, records - 1])
    spaced = np.linspace(0, records - 1, most).astype(np.int64)
    return np.union1d(ends, spaced), alike


def _laws(
    claim: Claim, threshold: Codes, records: int, loss: float | None
) -> Iterator[tuple[World, World]]:
    """Yield the laws of counts on both sides of each breakpoint."""
    if isinstance(claim.sensitivity, Smooth):
        # scales next to the threshold differ most, and elsewhere alike or less
        cuts = threshold[:, None] + np.array([-1, 0, 1])
    else:
        cuts = claim.sensitivity.breakpoints(threshold, records)
    row, column = np.nonzero((cuts >= 0) & (cuts < records))
    count, b = cuts[row, column], threshold[row]
    never = np.zeros(len(b), np.bool_)
    sides = []
    for each in (count, count + 1):
        bit, size = claim.law(each, b, never, records, loss)
        scale = size / (loss or 1.0)
        if isinstance(claim.sensitivity, Smooth):  # it fades, and never is 0
            scale = np.maximum(scale, _NARROWEST)
        sides += [bit.tolist(), scale.tolist()]
    for bit0, scale0, bit1, scale1 in set(zip(*sides, strict=True)):
        yield World(bit0, scale0), World(bit1, scale1)
