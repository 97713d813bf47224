"""Which of the first rows names the columns: a header, a title above it, or none at all.

What counts is the contrast between a row and those below it: numbers under a word make the word
a name (sniffing of headers).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Kind = Literal["names", "short", "trailing", "none"]
"""How a table begins: with a name for each field, with one name less than its rows have fields
(the first or the last is without), or with a row of data."""
Says = Literal["data", "names", "numbers", "unknown"]
"""What a row says beside those below it: that it is one of them, that it has names, that it has
names which are numbers, or nothing."""

_KINDS: Final = {
    "date": re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[T ]\d{1,2}:\d\d.*)?", re.ASCII),
    "time": re.compile(r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?", re.ASCII),
    "number": re.compile(r"[-+]?[.,]?\d[\d.,]*(?:[eE][-+]?\d+)?%?", re.ASCII),
}
"""Values that are no names: dates, times, and numbers as many countries write them."""
_ENDS: Final = frozenset("0123456789.,%Z")
_GAPS: Final = frozenset({"", "NA", "N/A", "NULL", "NAN", "NONE", "-", ".", "?"})
"""Words, in capitals, that say nothing about a column: often missing values."""
_YEARS: Final = range(1500, 2201)
"""Numbers that are often the names of columns, a year each."""
_MOST_TITLES: Final = 50
_MOST: Final = 0.75
"""The share of rows that must be equally wide to make what stands above them a title."""


class Row(NamedTuple):
    """A row of fields, and the lines of the file on which it starts and ends."""

    line: int
    end: int
    fields: list[str]

    @property
    def filled(self) -> int:
        """How many fields are not empty."""
        return sum(bool(field.strip()) for field in self.fields)


@dataclass(frozen=True, slots=True)
class Head:
    """How a table begins, and which rows stand above it.

    Args:
        kind: What the first row is.
        index: The place of that row among the rows.
    """

    kind: Kind
    index: int


def usual_width(rows: Sequence[Row]) -> int:
    """Return how many fields most rows below the first have; the first decides between equals."""
    if not rows:
        return 0
    widths = Counter(len(row.fields) for row in rows[1:] or rows)
    most = max(widths.values())
    likely = [width for width, times in widths.items() if times == most]
    first = len(rows[0].fields)
    return first if first in likely else max(likely)


def head_of(rows: Sequence[Row], width: int) -> Head | None:
    """Find where a table of a width begins; None where its rows are too ragged to tell."""
    for index, row in enumerate(rows[:_MOST_TITLES]):
        below = rows[index + 1 :]
        fields = [each.fields for each in below if len(each.fields) == width]
        if len(row.fields) == width:
            if _wide_title(row, below, fields):
                continue
            return Head("none" if says(row.fields, fields) == "data" else "names", index)
        if len(row.fields) == width - 1 and (kind := _short(row.fields, fields)):
            return Head(kind, index)
        if not _title(row, below, width):
            return None
    return None


def says(first: Sequence[str], others: Sequence[Sequence[str]]) -> Says:
    """Tell whether a row is one of data like the others, or has names where they have numbers."""
    seen = False
    for place, text in enumerate(first):
        if _silent(text):
            continue
        below = kinds(others, place)
        if below and _kind(text) not in below:
            return "names"
        seen = seen or bool(below)
    if not seen:
        return "unknown"
    return "numbers" if _numbers_as_names(first, others) else "data"


def kinds(rows: Sequence[Sequence[str]], place: int) -> set[str]:
    """Return whether a column holds numbers, dates or times; nothing where it holds a word."""
    found: set[str] = set()
    for row in rows:
        if kind := _kind(row[place]):
            found.add(kind)
        elif not _silent(row[place]):
            return set()
    return found


def _kind(text: str) -> str:
    """Return whether a text is a number, a date or a time; nothing where it is a word."""
    text = text.strip()
    if not text or text[-1] not in _ENDS:
        return ""
    return next((kind for kind, written in _KINDS.items() if written.fullmatch(text)), "")


def is_word(text: str) -> bool:
    """Tell whether a text is neither a number, a date or a time, nor a missing value."""
    return not _kind(text) and not _silent(text)


def counting(texts: Sequence[str]) -> bool:
    """Tell whether texts count rows: 0, 1, 2 .. or 1, 2, 3 ..

    >>> counting(["1", "2", "3"]), counting(["1", "3"]), counting([])
    (True, False, False)
    """
    return bool(texts) and any(
        texts[0] == str(start)
        and all(text == str(number) for number, text in enumerate(texts, start))
        for start in (0, 1)
    )


def repeated(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Count the names that are values of their own column, too; missing ones do not count."""
    columns = zip(*rows, strict=True)
    return sum(
        name in column for name, column in zip(names, columns, strict=False) if not _silent(name)
    )


def _silent(text: str) -> bool:
    return text.strip().upper() in _GAPS


def _numbers_as_names(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Tell whether numbers in the first row are names: 0, 1, 2 .. of all columns, or years."""
    below = [row[0].strip() for row in others]
    if not first[0].strip() and len(below) > 1 and all(below) and len(set(below)) == len(below):
        return True  # names of rows are without a name of their own, those of columns beside them
    if len(first) > 2 and first[0].strip() == "0" and counting([each.strip() for each in first]):
        return True
    years = [place for place, text in enumerate(first) if _year(text)]
    given = [text.strip() for text in first if _kind(text)]
    if len(years) < len(given) or len(set(given)) < len(given):
        return False
    like = [[_year(row[place]) for row in others] for place in years]
    return not any(map(any, like)) if len(years) == 1 else not any(map(all, like))


def _year(text: str) -> bool:
    text = text.strip()
    return text.isdecimal() and len(text) == 4 and int(text) in _YEARS


def _wide_title(row: Row, rows: Sequence[Row], below: Sequence[Sequence[str]]) -> bool:
    """Tell whether a row is as wide as the table and yet a title, which spreadsheets fill up."""
    if len(row.fields) < 2 or len(below) < 2:
        return False
    if not row.filled:
        return len(row.fields) > 2 or says(below[0], below[1:]) == "names"
    if rows[0].line > row.end + 1 and len(rows[0].fields) == len(row.fields) > 2:
        return says(below[0], below[1:]) == "names"  # a blank line parts it from the names
    if row.filled > 1 or not row.fields[0].strip():
        return False
    return _named_below(below)


def _named_below(below: Sequence[Sequence[str]]) -> bool:
    """Tell whether names follow below a title, and below more titles and empty rows."""
    filled = [sum(bool(field.strip()) for field in row) for row in below[:_MOST_TITLES]]
    begins = next((place for place, fields in enumerate(filled) if fields > 1), len(filled))
    if begins + 1 >= len(below):
        return False
    names, rest = below[begins], below[begins + 1 :]
    used = {place for row in rest for place, field in enumerate(row) if field.strip()}
    if not all(names[place].strip() for place in used):
        return False
    said = says(names, rest)
    if len(names) == 2:
        return said == "names" and 0 in filled[:begins]
    return said == "names" or (said == "unknown" and filled[:begins] in ([], [0]))


def _short(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Kind | None:
    """Tell what is without a name where a header has one name less than the rows have fields."""
    if not rows:
        return None
    if all(not row[-1].strip() for row in rows):
        return "trailing"
    firsts = [row[0] for row in rows]
    named = all(name.strip() and not _kind(name) for name in names)
    if not named or len(firsts) < 2 or len(set(firsts)) < len(firsts):
        return None  # R's row names differ from each other
    if len(names) == 1 and not counting(firsts) and not kinds(rows, 1):
        return None  # one column of texts that hold a separator
    return "short" if says(rows[0], rows[1:]) in ("data", "unknown") else None


def _title(row: Row, below: Sequence[Row], width: int) -> bool:
    """Tell whether a row that is no part of a table stands above it."""
    if not row.filled:
        return True
    parted = bool(below) and below[0].line > row.end + 1
    if row.filled > 1 and not parted and not _mixed(row.fields, width):
        return False
    begins = next((at for at, each in enumerate(below) if len(each.fields) == width), len(below))
    table = [each.fields for each in below[begins:]]
    agreeing = [each for each in table if len(each) == width]
    if len(table) < 2 or len(agreeing) < _MOST * len(table):
        return False
    if parted or width > 2:
        return True
    numbers = any(kinds(agreeing[1:], place) for place in range(width))
    return len(agreeing) == len(table) and numbers


def _mixed(fields: Sequence[str], width: int) -> bool:
    """Tell whether a row of words and numbers is far too short to be one of the table."""
    numbers = sum(bool(_kind(each)) for each in fields)
    return 0 < numbers < len(fields) <= width // 2
