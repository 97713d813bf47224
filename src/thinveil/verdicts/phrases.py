"""Numbers and values in words; a rounded figure never says more than was measured."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any, Final

from thinveil.language.schema import Value
from thinveil.language.texts import many as many

SPACE: Final = "\u00a0"
"""A space at which no line is broken."""
_WORDS: Final = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))


def plain(value: Value) -> Any:
    """Return a value as JSON can hold it; decimals, dates and times become text."""
    return str(value) if isinstance(value, (Decimal, date, time)) else value


def spelled(number: float) -> str:
    """Write a small number for people: 0.0000149826, and 1.5e-12 only where that is long.

    >>> spelled(1.49826e-05), spelled(1.5e-12)
    ('0.0000149826', '1.5e-12')
    """
    if 1000 <= number < 1e15:
        return f"{number:,.0f}"
    short = f"{number:.6g}"
    return f"{Decimal(short):f}" if number == 0 or 1e-9 <= abs(number) < 1e9 else short


def short(number: float) -> str:
    """Write a figure without digits after the point, or with three that count.

    >>> short(12345.6), short(0.0123456)
    ('12,346', '0.0123')
    """
    return f"{number:,.0f}" if number >= 100 else spelled(float(f"{number:.3g}"))


def mean(number: float) -> str:
    """Write how many are to be expected; far less than one is not written out.

    >>> [mean(number).replace(SPACE, " ") for number in (0, 2e-9, 34.444, 1550.4)]
    ['0', '< 0.001', '34.44', '1,550']
    """
    if 0 < number < 0.001:
        return f"<{SPACE}0.001"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def loss(epsilon: float | None) -> str:
    """Write a privacy loss: everywhere in the same way, so that one is known again."""
    return "none claimed" if epsilon is None else spelled(epsilon)


def out_of(right: float | str, of: int, unit: str) -> str:
    """Write how many of how many there are; of one, the noun is in the singular.

    >>> out_of(3, 2000, "records"), out_of(1, 1, "different records"), out_of(0, 1, "people")
    ('3 of 2,000 records', '1 of 1 different record', '0 of 1 person')
    """
    noun = re.sub(r"^(different )?(record|value)s\b|^people\b", _single, unit) if of == 1 else unit
    return f"{right if isinstance(right, str) else format(right, ',')} of {of:,} {noun}"


def _single(found: re.Match[str]) -> str:
    return "person" if found[0] == "people" else found[0][:-1]


def amount(number: float | None) -> str:
    """Write a count; nothing where there is none."""
    return "" if number is None else f"{number:,.0f}"


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


def between(interval: Sequence[float] | None) -> str:
    """Write an interval of shares."""
    return "" if interval is None else f"{percent(interval[0])} to {percent(interval[1])}"


def sureness(confidence: float) -> str:
    """Write a confidence as it was chosen.

    >>> sureness(0.999), sureness(0.95)
    ('99.9 %', '95 %')
    """
    return f"{100 * confidence:.10g} %"


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


def upper(text: str) -> str:
    """Return a text that begins as a sentence does."""
    return text[:1].upper() + text[1:]


def public_numbers(columns: Sequence[str]) -> str:
    """Say of which columns of numbers the attacker was handed the list; nothing where of none."""
    if not columns:
        return ""
    one = len(columns) == 1
    which = f"the column{'' if one else 's'} {', '.join(columns)}"
    public = "a public list of texts" if one else "public lists of texts"
    return (
        f"But {which} seemed to hold numbers or dates, and counted as {public}: the outsider was "
        f"handed every value in {'it' if one else 'them'}."
    )


def rounded_away(columns: Sequence[str]) -> str:
    """Say of which columns hardly any value was kept when they were read."""
    if not columns:
        return ""
    which = f"the column{'s' * (len(columns) > 1)} {', '.join(columns)}"
    return (
        f"But when {which} was rounded to be read, most different values became one: what counts "
        "as exact is little there."
    )
