"""Figures as people read them; a rounded figure never says more than was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from thinveil.verdicts.phrases import many, spelled

__all__ = ["amount", "between", "loss", "many", "percent", "size", "spelled", "sureness"]

SPACE = "\u00a0"
"""A space at which no line is broken."""
_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))


def percent(share: float | None) -> str:
    """Write a share; all and nothing are said only where they are meant.

    >>> [percent(share).replace(SPACE, " ") for share in (0, 0.00001, 0.125, 0.99999, 1)]
    ['0 %', '< 0.1 %', '12.5 %', '> 99.9 %', '100 %']
    """
    if share is None:
        return "not known"
    if 0 < share < 0.0005:
        return f"<{SPACE}0.1{SPACE}%"
    if 0.9995 <= share < 1:
        return f">{SPACE}99.9{SPACE}%"
    return f"{100 * share:.1f}".removesuffix(".0") + f"{SPACE}%"


def sureness(confidence: float) -> str:
    """Write a confidence level as it was chosen."""
    return f"{100 * confidence:.10g}{SPACE}%"


def between(interval: Sequence[float] | None) -> str:
    """Write an interval of shares."""
    if interval is None:
        return ""
    return f"{percent(interval[0])} to {percent(interval[1])}"


def amount(number: float | None) -> str:
    """Write a count."""
    return "" if number is None else f"{number:,.0f}"


def loss(epsilon: float | None) -> str:
    """Write a privacy loss; none where nothing is claimed."""
    return "none claimed" if epsilon is None else spelled(epsilon)


def size(number: float) -> str:
    """Write a large number in words.

    >>> size(1e10), size(-2.5e6), size(1e30), size(1)
    ('10 billion', '-2.5 million', '1e+30', '1')
    """
    if not math.isfinite(number) or abs(number) >= 1e15:
        return f"{number:.2g}"
    for unit, word in _WORDS:
        if abs(number) >= unit:
            return f"{number / unit:.3g} {word}"
    return f"{number:.3g}"
