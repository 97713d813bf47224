"""Whole numbers that stand for doubles, in the order of their values (IEEE 754 binary64).

Zero is 0. The doubles from some smallest size on are 1, 2, 3, ..., each the next one there is;
negative ones are -1, -2, -3, ... So a code tells a double exactly, and a question about a range
of codes is one about a range of values. Codes end at 2^62, which is 1,024 powers of two above the
smallest size: 1e-38 reaches to 1e270.
"""

from __future__ import annotations

import math
import struct
import sys
from decimal import Decimal
from typing import Final

SMALLEST: Final = Decimal("1e-38")
"""The smallest size above zero, unless a column needs another. What is measured is rarely smaller:
normal floats of four bytes are not. Each size less saves questions, the more the fewer are left."""
GREATEST: Final = sys.float_info.max


def bits_of(size: float) -> int:
    """Return a double of at least zero as the whole number that its bits write."""
    bits: int = struct.unpack("<q", struct.pack("<d", size))[0]
    return bits


def around(value: float, smallest: float) -> tuple[int, int]:
    """Return the codes next to a double; two only where it lies between zero and the smallest.

    >>> around(1e-38, 1e-38), around(-5e-324, 1e-38), around(-0.0, 1e-38)
    ((1, 1), (-1, 0), (0, 0))
    """
    size = abs(value)
    if size == 0:
        return 0, 0
    if size < smallest:
        return (0, 1) if value > 0 else (-1, 0)
    code = bits_of(size) - bits_of(smallest) + 1
    return (code, code) if value > 0 else (-code, -code)


def value_of(code: int, smallest: float) -> float:
    """Return the double that a code stands for; beyond the largest one it is infinite."""
    if code == 0:
        return 0.0
    bits = abs(code) - 1 + bits_of(smallest)
    if bits > bits_of(GREATEST):
        return math.copysign(math.inf, code)
    size: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return math.copysign(size, code)
