"""Searches that need no direction, for mechanisms that hide it (erratum 12).

An always-noisy mechanism shows whether an answer is noisier than usual, not on which side of
the threshold the count lies. A threshold b is noisier for the 2k counts from b - k + 1 to
b + k: a window. Counts are found by looking through windows.
"""

from __future__ import annotations

from thinveil.attacker.engines.coroutines import reaches
from thinveil.attacker.terms import NOISY, Rules, Search


def count(rules: Rules, low: int, high: int, most: int) -> Search[int]:
    """Find the number of records in a range that holds at most `most` of them."""
    n, k = rules.n, rules.k
    most = min(most, n)
    start = 0
    while start + 2 * k <= most:
        if start + k > n:
            break
        if (yield low, high, start + k - 1) == NOISY:
            most = start + 2 * k - 1
            break
        start += 2 * k
    fewest = start
    while fewest < most:
        t = (fewest + most + 1) // 2
        if (yield from reaches(rules, low, high, t, fewest)):
            fewest = t
        else:
            most = t - 1
    return fewest


def largest(rules: Rules, start: int, top: int, s: int) -> Search[int]:
    """Find the largest value of s records, s > n - k, between start and top (not included).

    First the smallest cut below which there are n - k records or more, by the last threshold
    there is; above it, "not noisy" can only mean that all s are below.
    """
    n, k = rules.n, rules.k
    low, high = start, top  # no record below low; all s below high
    while high - low > 1:
        cut = (low + high) // 2
        if (yield start, cut, n - 1) == NOISY:
            high = cut
        else:
            low = cut
    low, high = high - 1, top
    while high - low > 1:
        cut = (low + high) // 2
        if (yield start, cut, s - k - 1) == NOISY:
            low = cut
        else:
            high = cut
    return high - 1
