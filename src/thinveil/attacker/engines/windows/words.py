"""Words of 64 bits: counting and picking their bits, and a small generator of such words.

Plain functions that numba can compile, as all loops of the windows are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

U0, U1, U2, U4, U7 = (np.uint64(x) for x in (0, 1, 2, 4, 7))
U13, U17, U56 = np.uint64(13), np.uint64(17), np.uint64(56)
M1, M2, M4 = (np.uint64(x) for x in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
ONES = np.uint64(0x0101010101010101)


def popcount(x: Any) -> Any:
    """Return the number of bits that are set."""
    x = x - ((x >> U1) & M1)
    x = (x & M2) + ((x >> U2) & M2)
    x = (x + (x >> U4)) & M4
    return np.int64((x * ONES) >> U56)


def below(x: Any, count: int) -> Any:
    """Return a number below a small one, from the better bits of a drawn word."""
    return np.int64(x >> U17) % count


def following(x: Any) -> Any:
    """Return the next number of Marsaglia's xorshift generator."""
    x ^= x << U13
    x ^= x >> U7
    x ^= x << U17
    return x


def lowest(mask: Any, count: int) -> Any:
    """Return the lowest `count` bits of a mask."""
    out = U0
    for _ in range(count):
        bit = mask & (~mask + U1)
        out |= bit
        mask ^= bit
    return out
