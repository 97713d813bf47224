"""Numbers, dates and times as texts: the one place that says what counts as which, and how."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?", re.ASCII
)
CLOCK: Final = re.compile(r"\d\d?:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?", re.ASCII)

EPOCH: Final = datetime(1970, 1, 1)
MICROSECOND: Final = timedelta(microseconds=1)


def day(value: object) -> date:
    """Read a date: an ISO date or the midnight that an ISO datetime names, or an object.

    A ValueError says that it is neither, and does not repeat it.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    at = moment(value)
    if at != datetime(at.year, at.month, at.day):
        raise ValueError("not a whole day")
    return at.date()


def moment(value: object) -> datetime:
    """Read an ISO date or datetime, or an object; one with an offset is turned into UTC.

    A ValueError says that it is neither, and does not repeat it; an OverflowError, that it lies
    beyond the years that Python knows.
    """
    if isinstance(value, datetime):
        at = value
    else:
        text = str(value).strip()
        if not (MOMENT.fullmatch(text) or DAY.fullmatch(text)):
            raise ValueError("not a date such as 2024-12-31")
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("not a day or a time of the calendar") from None
    offset = at.utcoffset()
    return at if offset is None else at.replace(tzinfo=None) - offset


def ticks(value: object) -> int:
    """Read a moment as microseconds since 1970, or raise as `moment` does."""
    return (moment(value) - EPOCH) // MICROSECOND


def clock(value: object) -> int:
    """Read a time of the day, a text or an object, as microseconds since midnight.

    A ValueError says that it is none, and does not repeat it.
    """
    if not isinstance(value, time):
        text = str(value).strip()
        if not CLOCK.fullmatch(text):
            raise ValueError("not a time of the day such as 23:59:59")
        try:
            value = time.fromisoformat(text if text[2] == ":" else f"0{text}")
        except ValueError:
            raise ValueError("not a time of the day such as 23:59:59") from None
    if value.tzinfo is not None:
        raise ValueError("a time of the day in a zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 10**6 + value.microsecond


def in_digits(number: Decimal) -> str:
    """Write a decimal without an exponent, unless that would be long.

    >>> in_digits(Decimal("1E-7")), in_digits(Decimal("1E+2")), in_digits(Decimal("1E+30"))
    ('0.0000001', '100', '1E+30')
    """
    return format(number, "f") if -20 < number.adjusted() < 20 else str(number)


def many(count: int, one: str, more: str = "") -> str:
    """Write a count with its noun.

    >>> many(1, "record"), many(2000, "record"), many(2, "person", "people")
    ('1 record', '2,000 records', '2 people')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that a wrong one may stand for; empty where none is like it.

    >>> nearest("Age ", ["age", "wage"]), nearest("salry", ["age", "salary"]), nearest("x", ["y"])
    ('age', 'salary', '')
    """
    plain: dict[str, str] = {}
    for each in names:
        plain.setdefault(each.strip().casefold(), each)
    found = get_close_matches(name.strip().casefold(), plain, 1)
    return plain[found[0]] if found else ""
