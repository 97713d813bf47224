"""Draws the noise that a claim describes.

Answer number i of a run uses word i of a counter-based random stream (Philox), whatever
the batches look like, so noise depends on the seed and the answer's ordinal alone. An exact draw
takes further words, from a stream that this word starts (SplitMix64).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from thinveil.curator.exact.cauchy_cells import Fade, cauchy
from thinveil.curator.exact.laplace_steps import laplace
from thinveil.curator.exact.taps import Further, Tap
from thinveil.curator.ledger import exact, spread
from thinveil.errors import MissingExtra, UsageError
from thinveil.language.claims import Claim
from thinveil.language.contracts import Fading, Words
from thinveil.language.laws import Cauchy
from thinveil.language.queries import Codes, Flags, Floats, Loss
from thinveil.language.scrambling import GOLDEN, scrambled

_WORDS_PER_STEP: Final = 4  # Philox 4x64 yields four words for each step of its counter
_TOGETHER: Final = 65_536  # exact draws side by side: of 2^12 to 2^20 the fastest (measured)


class RandomWords(Further, Protocol):
    """Where random words come from. Conforms: `NoiseStream`, `SystemEntropy`."""

    def skip_to(self, ordinal: int) -> None:
        """Continue as if so many words had been taken."""
        ...

    def take(self, count: int) -> Words:
        """Return the words of the next `count` answers."""
        ...


class SystemEntropy:
    """Words from the system's entropy: nobody can repeat them, so a service keeps its answers."""

    def skip_to(self, ordinal: int) -> None:
        """Do nothing: words that nobody can repeat have no order."""

    def take(self, count: int) -> Words:
        """Return fresh words."""
        return np.frombuffer(os.urandom(8 * count), np.uint64)

    def further(self, first: Words, nth: Words) -> Words:
        """Return fresh words: they hang on nothing."""
        return self.take(len(first))


class NoiseStream:
    """A sequence of random words, one for each answer ever drawn in a run."""

    def __init__(self, seed: int) -> None:
        if not 0 <= seed < 2**128:
            raise UsageError("the seed must be a whole number from 0 to 2^128 - 1")
        self._seed = seed
        self.skip_to(0)

    def skip_to(self, ordinal: int) -> None:
        """Continue with the word of the given answer, as if all before it had been drawn."""
        self._bits = np.random.Philox(key=self._seed)
        self._bits.advance(ordinal // _WORDS_PER_STEP)
        if ordinal % _WORDS_PER_STEP:
            self._bits.random_raw(ordinal % _WORDS_PER_STEP)

    def take(self, count: int) -> Words:
        """Return the words of the next `count` answers."""
        words: Words = self._bits.random_raw(count)
        return words

    def further(self, first: Words, nth: Words) -> Words:
        """Return the nth words of the streams that these words start."""
        return scrambled(first + nth * GOLDEN)


def opendp() -> Any:
    """Return the OpenDP library, or say how to get it."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra("The mechanism dp-opendp", "opendp") from None
    return dp


def opendp_laplace(values: Floats, scale: Floats) -> Floats:
    """Add noise by OpenDP's own Laplace measurement, one measurement for each scale.

    Its draws come from the system's entropy: a run repeats by replaying its transcript.
    """
    dp = opendp()
    dp.enable_features("contrib")  # every measurement of OpenDP's asks for this consent
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    drawn = values.copy()
    for each in np.unique(scale).tolist():
        some = np.flatnonzero(scale == each)
        drawn[some] = dp.m.make_laplace(*space, scale=each)(values[some].tolist())
    return drawn


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What is true of some answers, and how wide their noise is to be.

    Args:
        bits: The true bits.
        scale: What the loss divides to scale the noise; 0 where there is none.
        far: What `scale` follows the data by, where an exact draw must know it (`distances`).
    """

    bits: Floats
    scale: Floats
    far: Codes | None = None

    def spread(self, repeats: int | Codes) -> Truth:
        """Return that of each question once for each of its answers."""
        far = None if self.far is None else spread(self.far, repeats)
        return Truth(spread(self.bits, repeats), spread(self.scale, repeats), far)

    def some(self, chosen: Codes) -> Truth:
        """Return that of some answers."""
        far = None if self.far is None else self.far[chosen]
        return Truth(self.bits[chosen], self.scale[chosen], far)

    def noisy(self, claim: Claim) -> Codes:
        """Return which answers get noise: by the law, however small a rounded scale is."""
        if self.far is None:
            return np.flatnonzero(self.scale)
        return np.flatnonzero((self.far >= 0) | (claim.offset > 0))


def distances(claim: Claim, counts: Codes, threshold: Codes, trivial: Flags) -> Codes | None:
    """Return what an exact draw must know of the data, if anything: a distance for each answer.

    It is -1 where the sensitivity is 0, and publicly so.
    """
    if claim.sampler != "exact" or not isinstance(claim.noise, Cauchy):
        return None
    assert isinstance(claim.sensitivity, Fading)
    return np.where(trivial, -1, claim.sensitivity.distance(counts, threshold))


def draw(claim: Claim, source: Further, words: Words, truth: Truth, epsilon: Loss) -> Floats:
    """Return true bits with the noise of a claim, for the first random word of each answer."""
    assert claim.noise is not None
    assert epsilon is not None
    if claim.sampler == "exact":
        return _draw_exactly(claim, source, words, truth, epsilon)
    scale = truth.scale / epsilon
    if claim.sampler == "opendp":
        return opendp_laplace(truth.bits, scale)
    return claim.noise.draw(words, truth.bits, scale)


def _draw_exactly(
    claim: Claim, source: Further, words: Words, truth: Truth, epsilon: float | Floats
) -> Floats:
    """Draw without rounding, a part of the answers at a time; `exact` says how and why."""
    charged = {} if isinstance(epsilon, np.ndarray) else {float(epsilon): exact(epsilon)}
    each = np.broadcast_to(np.asarray(epsilon, np.float64), words.shape)
    answers = np.empty(len(words))
    for start in range(0, len(words), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        tap, bits = Tap(source, words[part]), truth.bits[part]
        if truth.far is None:
            whole = claim.noise is not None and claim.noise.discrete
            answers[part] = laplace(tap, bits, truth.scale[part] / each[part], whole=whole)
        else:
            size = getattr(claim.sensitivity, "size", 1.0)
            fade = Fade(size, claim.offset, truth.far[part], each[part], charged)
            answers[part] = cauchy(tap, bits, fade)
    return answers
