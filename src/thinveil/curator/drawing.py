"""Draws the noise that a claim describes.

Answer number i of a run uses word i of a counter-based random stream (Philox), whatever
the batches look like, so noise depends on the seed and the answer's ordinal alone.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from thinveil.errors import MissingExtra, UsageError
from thinveil.language.claims import Claim
from thinveil.language.contracts import Words
from thinveil.language.queries import Floats

_WORDS_PER_STEP = 4  # Philox 4x64 yields four words for each step of its counter


class RandomWords(Protocol):
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


def draw(claim: Claim, words: Words, values: Floats, scale: Floats | float) -> Floats:
    """Add the noise of a claim, at these scales, to these values."""
    if claim.sampler == "opendp":
        return opendp_laplace(values, np.broadcast_to(scale, values.shape))
    assert claim.noise is not None
    return claim.noise.draw(words, values, scale)
