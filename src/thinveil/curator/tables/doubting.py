"""Which public lists of texts seem to be numbers or dates, so that they may not be public.

A column that no format fits becomes a public list of its texts. Where most of these hold a number
beside a part that others share (a unit, K or M, a quarter, a month), the list is doubted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Final

from thinveil.curator.tables.invented import invented
from thinveil.curator.tables.reading import Remarks, leaving_out
from thinveil.curator.tables.recognising import CURRENCIES, looks_like_a_value
from thinveil.language.schema import Categories, Schema
from thinveil.language.texts import many

FEW: Final = 5
"""Fewer different texts in a column are no reason for doubt."""

_BESIDE: Final = 16
"""Characters beside the numbers of a text, at most: `5 hours 30 minutes` has 14."""
_MONTHS: Final = 24
"""Different names of months in a column, at most: twelve, each short and in full."""
_LARGE: Final = 3
"""Characters of a number behind a letter, from which on it may be money or a year: R500."""

_HERE: Final = "\0"  # stands for a number
_DIGITS: Final = re.compile(r"\d+(?:[.,'_\u2019\u00a0\u202f ]\d+)*")
_YEAR: Final = re.compile(
    r"(?:\d{1,2}\.?\s+)?(?:de\s+)?(?P<month>[^\W\d]{3,12})\.?,?[\s\-/]+(?:de\s+)?(?:1[5-9]|20)\d\d"
)
_LABELLED: Final = re.compile(r"[^\W\d]|[\[(#\u2116]")
_MONEY: Final = re.compile(rf"(?:{'|'.join(map(re.escape, CURRENCIES))})\W")
_ORDINAL: Final = re.compile(r"\d+(?:st|nd|rd|th)\b", re.IGNORECASE)
_ONE: Final = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[+-]?\d{1,3}(?:,\d{3})+"
_RANGE: Final = re.compile(
    rf"[\[(]?[^\w\s+-]?(?P<low>{_ONE})\s*[^\W\d]{{0,3}}\s*(?:-|\u2013|\u2014|,|\.\.|to|bis|and)\s*"
    rf"[^\w\s+-]?(?P<high>{_ONE})\s*[^\W\d]{{0,8}}[\])]?"
)


def like_values(texts: Collection[str]) -> set[str]:
    """Return those of a list's texts that are much like numbers or dates.

    >>> sorted(like_values(["5kg", "7kg", "12 months", "40K", "none"]))
    ['5kg', '7kg']
    >>> len(like_values(["5kg", "7kg", "9kg", "12kg", "none"]))
    4
    >>> like_values(["group 1", "group 2", "group 3", "A2", "A3"])
    set()
    """
    found = {text for text in texts if looks_like_a_value(text)}
    if len(texts) < FEW or 2 * len(found) >= len(texts):
        return found
    plain = {text: _in_ascii(text) for text in texts if text not in found and _has_digit(text)}
    if 2 * (len(plain) + len(found)) < len(texts):
        return found
    shared = _shared(plain.values())
    months = {match["month"] for each in plain.values() if (match := _YEAR.fullmatch(each))}
    dated = len(months) <= _MONTHS
    ranges = ranges_in(texts)
    return found | {
        text
        for text, each in plain.items()
        if text not in ranges
        and (_shape(each) in shared or (dated and _YEAR.fullmatch(each) is not None))
    }


def ranges_in(texts: Iterable[str]) -> set[str]:
    """Return the texts that are ranges of numbers, unless some of these overlap.

    >>> sorted(ranges_in(["18-24", "25-34", "65+"])), ranges_in(["555-1234", "555-9876"])
    (['18-24', '25-34'], set())
    """
    found: list[tuple[Decimal, Decimal, str]] = []
    for text in texts:
        if match := _RANGE.fullmatch(text.strip()):
            low, high = (_number(match[each]) for each in ("low", "high"))
            found.append((low, high, text))
    found.sort()
    apart = all(low < high for low, high, _ in found) and all(
        before[1] <= after[0] for before, after in pairwise(found)
    )
    return {text for *_, text in found} if apart else set()


def _number(text: str) -> Decimal:
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:  # an exponent beyond all
        return Decimal(0)


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))


def _in_ascii(text: str) -> str:
    """Write the digits of all scripts as 0 to 9."""
    text = text.strip()
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in text)


def _shape(text: str) -> str:
    """Return what stands beside the numbers of a text, one mark for each of them."""
    return _DIGITS.sub(_HERE, text)


def _shared(texts: Iterable[str]) -> set[str]:
    """Return the shapes of values that a tenth of some texts have, and two at least."""
    shapes: dict[str, list[str]] = {}
    for text in texts:
        shapes.setdefault(_shape(text), []).append(text)
    least = max(2, sum(map(len, shapes.values())) / 10)
    return {
        shape
        for shape, alike in shapes.items()
        if len(alike) >= least
        and len(shape.replace(_HERE, "")) <= _BESIDE
        and _valued(shape, alike)
    }


def _valued(shape: str, texts: Sequence[str]) -> bool:
    """Tell whether texts of one shape are values; labels begin with a letter or a mark, or count.

    Behind these, numbers of most texts must be large or have decimals: R500 and FY2020, not A2.
    """
    if _LABELLED.match(shape) is None or _MONEY.match(shape):
        return not any(map(_ORDINAL.match, texts))
    if "_" in shape:
        return False
    found = [_DIGITS.findall(text) for text in texts]
    if any(each[0] == "0" and each[1:2].isdigit() for numbers in found for each in numbers):
        return False  # as in P007
    large = sum(any(len(each) >= _LARGE for each in numbers) for numbers in found)
    return 2 * large > len(found)


def doubts(schema: Schema, records: int) -> Remarks:
    """Say where an inferred schema makes more public than its owner may have meant.

    A column of many different texts becomes a public list of categories, as long as a quarter of
    the records or longer: names of people, say. A column of numbers or dates that is not
    recognised as one is doubted however short its list. Those of the made-up people are public.
    """
    found, numeric = [], []
    for attribute in schema:
        if not isinstance(attribute, Categories) or invented(attribute):
            continue
        name, listed = attribute.name, len(attribute.values)
        numbers = len(like_values(attribute.values))
        if numbers and 2 * numbers >= listed:
            numeric.append(name)
            found.append(
                f"the column {name!r} became a public list of {many(listed, 'text')}, of which "
                f"{numbers:,} {_looks(numbers)}: the attacker is handed it. If these are values, "
                "correct the others, write numbers without units, say which text means "
                "missing (--missing TEXT), give a format in a schema file, or leave it out "
                f"({leaving_out(name)})."
            )
        elif listed >= FEW and 2 * len(ranges_in(attribute.values)) > listed:
            found.append(
                f"the column {name!r} holds ranges of numbers, and their list of {listed:,} counts "
                f"as public. If it is not public, leave it out ({leaving_out(name)})."
            )
        elif listed >= max(FEW, records / 4):
            found.append(
                f"the column {name!r} has {listed:,} different texts in {records:,} "
                "records, and their list counts as public. If it is not public, leave it out "
                f"({leaving_out(name)})."
            )
    return Remarks(doubts=tuple(found), numbers=tuple(numeric))


def _looks(count: int) -> str:
    return "looks like a number or a date" if count == 1 else "look like numbers or dates"
