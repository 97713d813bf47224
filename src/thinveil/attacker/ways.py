"""In how many ways things can be: logarithms of factorials, of choices, and of domains.

Binary logarithms throughout; what `code_length` and `known_bits` count with.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from thinveil.attacker.doubling import ends
from thinveil.language.queries import Codes, Floats
from thinveil.language.schema import MISSING, Attribute

Span = tuple[int, int]
"""The lowest and the highest code that is believed possible."""

Domain = tuple[int, float]
"""How many values are believed possible, and the bits that say which."""

_SMALL: Final = 256

_FACTORIALS: Final = np.concatenate([[0.0], np.cumsum(np.log2(np.arange(1, _SMALL)))])


def log2_factorial(numbers: Codes) -> Floats:
    """Return log2(n!) of each number: from a table, and by Stirling's series beyond it.

    >>> log2_factorial(np.array([0, 1, 4])).round(3).tolist()
    [0.0, 0.0, 4.585]
    """
    n = np.maximum(numbers, _SMALL).astype(np.float64)
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5)
    large = n * np.log(n) - n + 0.5 * np.log(2 * np.pi * n) + series
    small = _FACTORIALS[np.minimum(numbers, _SMALL - 1)]
    return np.where(numbers < _SMALL, small, large / math.log(2))


def log2_choose(size: int, chosen: Codes) -> Floats:
    """Return log2 of how many sets of so many values there are, out of `size` values.

    Factor by factor, as `size` may be far too large for differences of factorials.

    >>> log2_choose(4, np.array([0, 2, 4])).round(3).tolist()
    [0.0, 2.585, 0.0]
    """
    factors = np.log2(float(size) - np.arange(int(chosen.max(initial=0))))
    falling = np.concatenate([[0.0], np.cumsum(factors)])
    return np.maximum(falling[chosen] - log2_factorial(chosen), 0.0)


def multiset_bits(counts: Codes, size: int) -> float:
    """Return the bits of a multiset: its counts, each value one of `size` equally likely ones.

    >>> multiset_bits(np.array([1, 1]), 4)  # 16 ordered pairs, and two of them are this one
    3.0
    """
    total = np.array([counts.sum()])
    bits = total * math.log2(size) - log2_factorial(total) + log2_factorial(counts).sum()
    return float(max(bits[0], 0.0))


def domain_size(attribute: Attribute, width: int, codes: Codes, within: Span | None = None) -> int:
    """Return how many values an attribute was believed to be able to take, at a precision.

    Where bounds are not public, searches double a range around zero until it holds all
    values: how far they went is seen from the values found. Within prior bounds that held,
    values were known not to be missing.
    """
    lower, upper = attribute.lower, attribute.upper
    missing = int(attribute.missing)
    if within is not None:
        lower = within[0] if lower is None else max(within[0], lower)
        upper = within[1] if upper is None else min(within[1], upper)
        missing = 0
    if lower is not None and upper is not None:
        return upper // width - lower // width + 1 + missing
    low, high = ends(width, reach_of(*_found(codes, width)))
    return high - low + 1 + missing


def domains(
    attribute: Attribute, width: int, codes: Codes, within: Span | None = None
) -> list[Domain]:
    """Return what the values of an attribute may be told among: the public domain, if there is one.

    Else the range that was doubled, or the values from the lowest to the highest found, which
    are named first (a two-part code): one bit says whether the lowest is 0. If so, the highest
    lies in the half that the last doubling added, else both are any pair in the range. Whoever
    tells values takes whichever is shorter.

    >>> from thinveil.language.schema import Grid
    >>> ways = domains(Grid("x"), 1, np.array([0, 1]))
    >>> [(size, round(bits, 3)) for size, bits in ways]  # -2 to 1, or two values that one bit names
    [(4, 0.0), (2, 4.322), (2, 1.0)]
    """
    size = domain_size(attribute, width, codes, within)
    if within is not None or attribute.lower is not None or not len(codes):
        return [(size, 0.0)]
    first, last = _found(codes, width)
    missing = int(attribute.missing)
    pairs = (size - missing) * (size - missing + 1) // 2
    told = [(size, 0.0), (last - first + 1 + missing, 1.0 + math.log2(pairs))]
    return told if first < 0 else [*told, (last + 1 + missing, zero_bits(last))]


def zero_bits(last: int) -> float:
    """Return the bits that name the ends of values that begin with 0.

    >>> zero_bits(1), zero_bits(99)
    (1.0, 7.0)
    """
    return 1.0 + math.log2(max(reach_of(0, last) // 2, 1))


def reach_of(first: int, last: int) -> int:
    """Return how far a range around zero is doubled until it holds both steps."""
    reach = 1
    while first < -reach or last >= reach:
        reach *= 2
    return reach


def _found(codes: Codes, width: int) -> Span:
    """Return the first and the last step of a grid that codes lie in; 0 where all are missing."""
    there = codes[codes != MISSING]
    return (int(there.min()) // width, int(there.max()) // width) if len(there) else (0, 0)
