"""How files write values where that is not plain: numbers by an example, times by a pattern.

A format turns a text into the plain one that means the same: 1.234,56 into 1234.56, 31.12.1990
into 1990-12-31. Grids read plain texts only, so a format is undone before a value is coded.
"""

from __future__ import annotations

from functools import cache

from thinveil.language.formats.calendar import Pattern
from thinveil.language.formats.numerals import Numeral

__all__ = ["Numeral", "Pattern", "format_of"]


@cache
def format_of(kind: str, text: str) -> Numeral | Pattern:
    """Return the format that a text means for values of a kind, or raise a ValueError.

    >>> format_of("decimal", "$1,234.56").plain("$12,000.50")
    '12000.50'
    >>> format_of("date", "DD.MM.YYYY").plain("31.12.1990")
    '1990-12-31'
    """
    if kind in ("integer", "decimal", "double"):
        return Numeral.of(text)
    pattern = Pattern.of(text)
    if pattern.kind != kind:
        raise ValueError(f'the format "{text}" is one of kind {pattern.kind}, not {kind}')
    return pattern
