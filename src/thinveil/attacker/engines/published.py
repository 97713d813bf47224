"""The paper's binary searches, to the last query (its section on reconstruction).

Written once for every group size: k = 0 is the unprotected search, in which no answer is
ever noisy. No answer is remembered; a repeated question is asked and counted again. Trivial
thresholds are skipped under protection and asked without it, as the paper counts them.

An always-noisy mechanism shows whether an answer is noisier than usual, not on which side of
the threshold the count lies (erratum 12). A threshold b is noisier for the 2k counts from
b - k + 1 to b + k: a window. There, counts are found by looking through windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from thinveil.attacker.engines.coroutines import Coroutines, Kit, reaches
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import (
    ABOVE,
    BELOW,
    NOISY,
    Axis,
    Counts,
    Rules,
    Search,
    Values,
    contradiction,
)
from thinveil.language.facts import PublicFacts


def count(rules: Rules, low: int, high: int, most: int) -> Search[int]:
    """Find the exact number of records in a range that holds at most `most` of them.

    Looks for the smallest threshold that is answered by an exact 0: it is c + k. Where
    c + k reaches n that boundary is missing, and the lower one, c - k - 1, decides.
    """
    n, k = rules.n, rules.k
    if rules.hidden:
        return (yield from count_hidden(rules, low, high, most))
    lo, hi = 0, min(most + max(k, 1), n)
    among: Counts = ((0, min(most, n)),)
    while lo <= hi:
        mid = (lo + hi) // 2
        zone = BELOW
        if mid < n:
            zone = yield low, high, mid
            among = rules.held(among, mid, zone)
        if zone == BELOW:
            if mid == 0 and not rules.free:
                return 0
            lower = yield low, high, mid - 1
            among = rules.held(among, mid - 1, lower)
            if lower != BELOW:
                break
            hi = mid - 1
        elif zone == NOISY:
            lo, hi = mid + 1, min(hi, mid + 2 * k)
        else:
            lo = mid + 1
    else:
        raise contradiction()
    if mid < n or most <= n - k:
        return mid - k
    fewest = n - k
    while fewest < most:
        t = (fewest + most) // 2
        zone = yield low, high, t - k
        among = rules.held(among, t - k, zone)
        if zone == ABOVE:
            fewest = t + 1
        else:
            most = t
    return fewest


def count_hidden(rules: Rules, low: int, high: int, most: int) -> Search[int]:
    """Find the number of records in a range without direction, window after window."""
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


def count_evenly(rules: Rules, low: int, high: int, most: int) -> Search[int]:
    """Find the number of records in a range that holds at most `most`, any being as likely.

    Each threshold is the one whose three outcomes are most even.
    """
    if rules.hidden:
        return (yield from count_hidden(rules, low, high, most))
    k = rules.k
    fewest, most = 0, min(most, rules.n)
    while fewest < most:
        b = _most_even(rules, fewest, most)
        zone = yield low, high, b
        if zone == BELOW:
            most = min(most, b - k)
        elif zone == NOISY:
            fewest, most = max(fewest, b - k + 1), min(most, b + k)
        else:
            fewest = max(fewest, b + k + 1)
        if fewest > most:
            raise contradiction()
    return fewest


def _most_even(rules: Rules, fewest: int, most: int) -> int:
    """Return the threshold that tells most of a count between two limits."""
    n, k = rules.n, rules.k
    middle = (fewest + most) // 2
    tried = {min(max(middle + each, 0), n - 1) for each in (-k - 1, -k, -1, 0, k - 1, k)}

    def told(b: int) -> float:
        below = max(0, min(most, b - k) - fewest + 1)
        above = max(0, most - max(fewest, b + k + 1) + 1)
        parts = (below, above, most - fewest + 1 - below - above)
        return -sum(part * math.log(part) for part in parts if part)

    return max(sorted(tried), key=told)


def values(rules: Rules, axis: Axis, s: int, found: Values) -> Search[Values]:
    """Find all values of s records, the largest first, each with its count.

    They are added to `found` as they come, for those who look on.
    """
    lower, upper = axis.limits
    start = lower if rules.bounded else lower - 1
    top = upper + 1
    while s:
        value = yield from largest(rules, axis, start, top, s)
        if not lower <= value <= upper:
            raise contradiction()  # no record can have it
        if rules.bounded and value <= lower:
            left = 0
        else:
            left = yield from count(rules, start, value, s - 1)
        found.append((value, s - left))
        s, top = left, value
    return found


def largest(rules: Rules, axis: Axis, start: int, top: int, s: int) -> Search[int]:
    """Find the largest value of s records: the smallest cut with all s below it, less one.

    In a bounded universe, what is known without asking is not asked: a curator would
    answer such a constant predicate exactly.
    """
    n, k = rules.n, rules.k
    lo, hi = start, top
    none, every = axis.limits if rules.bounded else (start - 1, top)
    if s + k <= n:
        b = s + k - 1
        while lo <= hi:
            mid = (lo + hi) // 2
            if mid <= none or (mid <= every and (yield start, mid, b) == BELOW):
                lo = mid + 1
            elif mid - 1 <= none or (yield start, mid - 1, b) == BELOW:
                return mid - 1
            elif lo == hi:
                break  # what was below before is not below now
            else:
                hi = mid
        raise contradiction()
    if rules.hidden:
        return (yield from _largest_hidden(rules, start, min(top, every + 1), s))
    b = s - 1 - k
    while lo <= hi:
        mid = (lo + hi) // 2
        if mid - 1 > none and (mid - 1 > every or (yield start, mid - 1, b) == ABOVE):
            hi = mid - 1
        elif mid > every or (mid > none and (yield start, mid, b) == ABOVE):
            return mid - 1
        else:
            lo = mid + 1
    raise contradiction()


def _largest_hidden(rules: Rules, start: int, top: int, s: int) -> Search[int]:
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


def only(rules: Rules, axis: Axis) -> Search[int]:
    """Find the value of one known record."""
    lower, upper = axis.limits
    start = lower if rules.bounded else lower - 1
    return largest(rules, axis, start, upper + 1, 1)


def most_queries(rules: Rules, axes: Sequence[Axis], groups: int = 1) -> int:
    """Bound the queries of the paper's reconstruction, attribute after attribute.

    Each step of a binary search takes two queries at most. Every value of a group is searched for
    once and counted once, and no more values are found than there are records.
    """
    count = 2 * (rules.n + 1).bit_length() + rules.k.bit_length() + 1
    total = 0
    for axis in axes:
        found = min(rules.n, groups * axis.size)
        value = 2 * ((axis.size + 1).bit_length() + 1)
        total += found * (value + count) + axis.missing * groups * (count + 1)
        groups = found
    return total


def evenly(facts: PublicFacts, care: Care) -> Coroutines:
    """Return the engine of strategies that learn: it counts by three outcomes."""
    return Coroutines(facts, care, Kit("adaptive", count_evenly, values, only))
