"""Fair coins and dice made of random words, with no bias and no logarithm.

An exact draw takes as many words as it happens to need: a source gives each answer a stream of its
own, so that what one takes moves nothing of the others. Whatever stands here is exact if words
are uniform and independent. The method is von Neumann's (1951), as Canonne, Kamath and Steinke
(2020, "The discrete Gaussian for differential privacy", algorithms 1 and 2) write it for whole
numbers.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from thinveil.language.contracts import Words
from thinveil.language.queries import Codes, Flags

Powers = npt.NDArray[np.intc]
"""Powers of two, as `frexp` gives and `ldexp` takes them on every machine."""
_ONE = np.uint64(1)


class Further(Protocol):
    """Where the further words of answers come from. Conforms: the sources of `drawing`."""

    def further(self, first: Words, nth: Words) -> Words:
        """Return a further word for each answer: its nth, if its first word is this one."""
        ...


class Tap:
    """Random words for some answers, for each as many as it takes."""

    def __init__(self, source: Further, first: Words) -> None:
        self._source = source
        self._first = first
        self._taken = np.zeros(len(first), np.uint64)

    def words(self, who: Codes) -> Words:
        """Return the next word of each of these answers."""
        nth = self._taken[who] + _ONE
        self._taken[who] = nth
        return self._source.further(self._first[who], nth)

    def coins(self, who: Codes) -> Flags:
        """Toss a fair coin for each."""
        return (self.words(who) & _ONE).astype(np.bool_)

    def below(self, who: Codes, limit: Words) -> Words:
        """Return whole numbers from 0 up to below a limit, all equally likely.

        The remainder of a word is fair as long as its whole cycle of `limit` words exists; words
        of the last, broken cycle are thrown away (rejection).
        """
        words = self.words(who)
        drawn: Words = words % limit
        left = np.flatnonzero(words - drawn > -limit)  # -limit is 2^64 - limit
        while len(left):
            words = self.words(who[left])
            drawn[left] = words % limit[left]
            left = left[words - drawn[left] > -limit[left]]
        return drawn

    def one_in(self, who: Codes, many: int) -> Flags:
        """Say yes with probability 1 / many."""
        yes: Flags = self.below(who, np.full(len(who), many, np.uint64)) == 0
        return yes

    def faded(self, who: Codes, part: Words, whole: Words) -> Flags:
        """Say yes with probability exp(-part / whole), for part <= whole.

        With x = part / whole, toss coins of probability x/1, x/2, x/3, ... until one fails; the
        chance that the first k of them succeed is x^k / k!. So the chance that the failing one
        has an odd number is 1 - x + x^2/2! - x^3/3! + ... = exp(-x).
        """
        left = np.flatnonzero(self.below(who, whole) < part)
        odd = np.ones(len(who), np.bool_)
        k = 1
        while len(left):
            odd[left] = k % 2 == 0  # if the coin k + 1 fails, that is an odd number for even k
            k += 1
            left = left[self.one_in(who[left], k)]
            left = left[self.below(who[left], whole[left]) < part[left]]
        return odd

    def faded_once(self, who: Codes) -> Flags:
        """Say yes with probability exp(-1): as `faded`, with part equal to whole."""
        left = np.arange(len(who))
        odd = np.ones(len(who), np.bool_)
        k = 1
        while len(left):
            odd[left] = k % 2 == 0
            k += 1
            left = left[self.one_in(who[left], k)]
        return odd
