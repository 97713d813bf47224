"""Dates and times as people write them: in which order, with which marks, months by name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar, Final, Literal

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
CENTURY: Final = 30
"""Years of two digits from here on are of the 1900s, those below of the 2000s, as in Excel."""
HOW: Final = (
    'give a pattern of DD, MM (or MMM for a name), YYYY (or YY), HH, MM, SS and AM, such as "'
    'DD.MM.YYYY", "MM/DD/YYYY HH:MM" or "HH:MM:SS"'
)

_TOKEN: Final = re.compile(r"YYYY|YY|MMMM|MMM|MM|M|DD|D|HH|H|SS|[AP]M|(?P<mark>[ T./,:-]+)")
_MARKS: Final = frozenset(" T./,:-")
_WIDE: Final = {"YYYY": r"\d{4}", "YY": r"\d\d"}
_PARTS: Final = {"D": "day", "M": "month", "Y": "year", "H": "hour", "S": "second"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """How a column writes its dates or times, such as DD.MM.YYYY or HH:MM:SS.

    Days, months and hours of one digit may lack their zero. Decimals may follow the seconds.
    Months are named in English, short or whole. Without a day, the first of the month is meant.
    """

    limited: ClassVar = False

    text: str
    kind: Literal["date", "datetime", "time"]
    _shape: re.Pattern[str] = field(repr=False, compare=False)

    @staticmethod
    def of(text: str) -> Pattern:
        """Read a format; a ValueError says how to give one."""
        tokens = _tokens(text)
        regex, parts = "", []
        for place, token in enumerate(tokens):
            if _MARKS.issuperset(token):
                regex += re.escape(token).replace(r"\ ", r"\s+")
                continue
            if token in ("AM", "PM"):
                part, shape = "half", r"[AaPp]\.?[Mm]\.?"
                regex = regex.removesuffix(r"\s+") + r"\s*"
            else:
                part = _PARTS[token[0]]
                if token[0] == "M" and len(token) <= 2 and "hour" in parts:
                    part = "minute"
                shape = _digits(tokens, place)
            if part in parts:
                raise ValueError(HOW)
            parts.append(part)
            regex += rf"(?P<{part}>{shape})"
            if part == "second":
                regex += r"(?P<fraction>\.\d{1,6}0*)?"
        return Pattern(text, _kind(parts), re.compile(regex, re.ASCII))

    def __str__(self) -> str:
        return self.text

    def plain(self, text: str) -> str:
        """Return a date or a time as ISO 8601 writes it; a ValueError says it is none."""
        match = self._shape.fullmatch(text.strip())
        if match is None:
            raise ValueError("not in the format")
        found = match.groupdict()
        written = ""
        if self.kind != "time":
            written = _day(found)
        if self.kind != "date":
            written += "T" * bool(written) + _clock(found)
        return written


def _tokens(text: str) -> list[str]:
    """Split a pattern into its parts and what stands between them."""
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(HOW)
        tokens.append(match[0])
        at = match.end()
    return tokens


def _digits(tokens: list[str], place: int) -> str:
    """Return the shape of a part: of a fixed width where no mark parts it from its neighbour."""
    token = tokens[place]
    if token in ("MMM", "MMMM"):
        return r"[A-Za-z]{3,9}\.?"
    if token in _WIDE:
        return _WIDE[token]
    beside = tokens[max(place - 1, 0) : place] + tokens[place + 1 : place + 2]
    tight = any(each[0] in "DMYHS" and each not in ("MMM", "MMMM") for each in beside)
    if tight or token == "SS" or (token == "MM" and "HH" in tokens[:place]):
        return r"\d\d"
    return r"\d{1,2}"


def _kind(parts: list[str]) -> Literal["date", "datetime", "time"]:
    dated, timed = {"year", "month"} <= set(parts), {"hour", "minute"} <= set(parts)
    days = {"year", "month", "day"} & set(parts)
    hours = {"hour", "minute", "second", "half"} & set(parts)
    if (days and not dated) or (hours and not timed) or not (days or hours):
        raise ValueError(HOW)
    if days and hours and "day" not in parts:
        raise ValueError(HOW)
    return "datetime" if days and hours else "date" if days else "time"


def month_of(text: str) -> int:
    """Return the number of a month, from its number or its English name, whole or short."""
    if text.isdigit():
        return int(text)
    name = text.lower().removesuffix(".")
    for number, each in enumerate(MONTHS, start=1):
        if name in (each, each[:3]) or (name == "sept" and each == "september"):
            return number
    raise ValueError("not a month")


def _day(found: dict[str, str | None]) -> str:
    year = int(found["year"] or 0)
    if len(found["year"] or "") == 2:
        year += 1900 if year >= CENTURY else 2000
    return date(year, month_of(found["month"] or ""), int(found.get("day") or 1)).isoformat()


def _clock(found: dict[str, str | None]) -> str:
    hour, half = int(found["hour"] or 0), (found.get("half") or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("not an hour before or after noon")
        hour = hour % 12 + 12 * half.startswith("p")
    minute, second = int(found["minute"] or 0), int(found.get("second") or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("not a time of the day")
    return f"{hour:02}:{minute:02}:{second:02}{found.get('fraction') or ''}"
