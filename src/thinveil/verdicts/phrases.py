"""Numbers and values in words: what verdicts, trials and tables share."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from thinveil.language.schema import Value


def plain(value: Value) -> Any:
    """Return a value as JSON can hold it; decimals and dates become text."""
    return str(value) if isinstance(value, (Decimal, date)) else value


def spelled(number: float) -> str:
    """Write a small number for people: 0.0000149826, and 1.5e-12 only where that is long.

    >>> spelled(1.49826e-05), spelled(1.5e-12)
    ('0.0000149826', '1.5e-12')
    """
    if 1000 <= number < 1e15:
        return f"{number:,.0f}"
    short = f"{number:.6g}"
    return f"{Decimal(short):f}" if number == 0 or 1e-9 <= abs(number) < 1e9 else short


def many(count: int, one: str, more: str = "") -> str:
    """Write a count with its noun.

    >>> many(1, "record"), many(2000, "record"), many(2, "person", "people")
    ('1 record', '2,000 records', '2 people')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"
