"""Algorithms 1 and 2 as printed, with their errata mended (docs/errata.md, erratum 10).

Mended: a predicate that is always false or true is not asked, answers that no count explains end
the run instead of giving k, and the column search ends when it reaches the lower bound, where the
rest of the records must be.
"""

from __future__ import annotations

from collections.abc import Sequence

from thinveil.attacker.terms import BELOW, NOISY, Axis, Rules, Search, Values, contradiction


def count(rules: Rules, low: int, high: int, most: int) -> Search[int]:
    """Find the number of records in a range by raising the threshold from 0 (Algorithm 1)."""
    n, k = rules.n, rules.k
    before = yield low, high, 0
    among = rules.held(((0, min(most, n)),), 0, before)
    if before == BELOW and not rules.hidden:
        return 0  # k = 0 and nothing satisfies the predicate
    for b in range(1, n):
        zone = yield low, high, b
        among = rules.held(among, b, zone)
        if k == 0:
            if zone == BELOW:
                return b
        elif zone == NOISY and before != NOISY:
            return b + k  # the lower boundary is b - 1, the count lies k + 1 above it
        elif zone == BELOW and before == NOISY:
            return b - k
        elif zone != before:
            raise contradiction()
        before = zone
    return k if before == NOISY else n


def values(rules: Rules, axis: Axis, s: int, found: Values) -> Search[Values]:
    """Find all values of s records by lowering the upper end step by step (Algorithm 2).

    They are added to `found` as they come, for those who look on.
    """
    lower, upper = axis.limits
    for value in range(upper, lower, -1):
        left = yield from count(rules, lower, value, s)
        if left != s:
            found.append((value, s - left))
            s = left
        if not s:
            return found
    found.append((lower, s))
    return found


def only(rules: Rules, axis: Axis) -> Search[int]:
    """Find the value of one known record: Algorithm 2 for a group of one."""
    found = yield from values(rules, axis, 1, [])
    return found[0][0]


def most_queries(rules: Rules, axes: Sequence[Axis], groups: int = 1) -> int:
    """Bound the queries of a linear reconstruction, attribute after attribute.

    A count costs at most n queries, and at most c + k + 1. The counts of one cut add up to at
    most n over all groups, and there are no more groups than records or combinations of values.
    For one column it is the number that Algorithms 1 and 2 split their budget by.
    """
    total = 0
    for axis in axes:
        total += axis.size * min(groups * rules.n, rules.n + groups * (rules.k + 1))
        total += axis.missing * groups  # whether there are missing values at all
        groups = min(rules.n, groups * axis.size)
    return total
