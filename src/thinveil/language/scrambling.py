"""Numbers turned into words of 64 bits that look random, the same ones always.

The finaliser of SplitMix64 (Steele, Lea and Flood 2014); its constants are the generator's.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, made odd: multiples of it lie far apart."""


def scrambled(words: Words) -> Words:
    """Return other words for these, each on its own and reversibly.

    >>> [hex(word) for word in scrambled(np.arange(3, dtype=np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5', '0xdbd238973a2b148a']
    """
    words = words ^ (words >> np.uint64(30))
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
