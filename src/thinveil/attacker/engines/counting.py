"""Counting the records of one range by three outcomes, each step by a single question."""

from __future__ import annotations

import math

from thinveil.attacker.engines import hidden
from thinveil.attacker.terms import BELOW, NOISY, Rules, Search, contradiction


def count(rules: Rules, low: int, high: int, most: int) -> Search[int]:
    """Find the number of records in a range that holds at most `most`, any being as likely.

    Each threshold is the one whose three outcomes are most even.
    """
    if rules.hidden:
        return (yield from hidden.count(rules, low, high, most))
    k = rules.k
    fewest, most = 0, min(most, rules.n)
    while fewest < most:
        b = _threshold(rules, fewest, most)
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


def _threshold(rules: Rules, fewest: int, most: int) -> int:
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
