"""Ranges of codes in words, as a question would name them."""

from __future__ import annotations

from typing import Final

from thinveil.language.schema import LIMIT, LOWEST, MISSING, Attribute, Categories, Grid

_LISTED: Final = 3  # so many categories are named one by one


def range_in_words(attribute: Attribute, low: int, high: int) -> str:
    """Say which values lie in a half-open range of codes; "" where all of them do.

    >>> range_in_words(Grid("age"), 30, 40), range_in_words(Grid("age"), 30, 31)
    ('age 30 to 39', 'age 30')
    >>> range_in_words(Categories("job", ("cook", "nurse", "pilot")), 1, 3)
    'job nurse or pilot'
    >>> range_in_words(Grid("age", missing=True), MISSING, LOWEST)
    'age missing'
    """
    name = attribute.name
    if high <= low:
        return f"{name} impossible"
    gap = low == MISSING and attribute.missing
    if high == LOWEST:
        return f"{name} missing" if gap else f"{name} impossible"
    present = _categories(attribute, low, high) if isinstance(attribute, Categories) else ""
    if isinstance(attribute, Grid):
        present = _grid(attribute, low, high)
    if not present:  # all values that are not missing
        return "" if gap or not attribute.missing else f"{name} not missing"
    return f"{name} missing or {present}" if gap else f"{name} {present}"


def _grid(attribute: Grid, low: int, high: int) -> str:
    below, above = low <= -LIMIT, high >= LIMIT
    if below and above:
        return ""
    if below:
        return f"at most {attribute.decode(high - 1)}"
    if above:
        return f"at least {attribute.decode(low)}"
    if high - low == 1:
        return f"{attribute.decode(low)}"
    return f"{attribute.decode(low)} to {attribute.decode(high - 1)}"


def _categories(attribute: Categories, low: int, high: int) -> str:
    low, high = max(low, 0), min(high, len(attribute.values))
    if low == 0 and high == len(attribute.values):
        return ""
    values = attribute.values[low:high]
    if not values:
        return "impossible"
    if len(values) <= _LISTED:
        *most, last = values
        return f"{', '.join(most)} or {last}" if most else last
    return f"between {values[0]} and {values[-1]}"
