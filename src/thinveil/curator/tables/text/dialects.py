"""How fields are written: what separates and what quotes them, found out from the first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from thinveil.curator.tables.kinds.limits import LONGEST
from thinveil.curator.tables.text.headers import (
    Head,
    Row,
    counting,
    head_of,
    is_word,
    kinds,
    usual_width,
)

if TYPE_CHECKING:
    from _csv import Reader

SEPARATORS: Final = (",", ";", "\t", "|")
"""The separators that are tried where none is given; spaces, where none of them fits."""
_WITH_COMMA: Final = re.compile(r"\s*[-+]?[\d.]*,\d+\s*", re.ASCII)
"""A number with a decimal comma."""
_ONE_NUMBER: Final = re.compile(r"[-+]?\d[\d.'\u2019 \u00a0\u202f]*(?:,\d+)?\s*%?", re.ASCII)
"""A line that is one number, with a decimal comma or whole."""


class Line(NamedTuple):
    """A line of a file with its end, and its number."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """What stands between fields, and around some of them.

    Args:
        separator: The character between two fields.
        quote: The quotation mark; empty where there is none.
        aligned: Whether any number of spaces and tabs separates two fields.
        loose: Whether spaces after a separator are no part of the field.
    """

    separator: str
    quote: str
    aligned: bool = False
    loose: bool = False

    def reader(self, lines: Iterator[str], *, strict: bool) -> Reader:
        """Return the rows of fields; the limit on a field's length is raised for good."""
        if csv.field_size_limit() < LONGEST:
            csv.field_size_limit(LONGEST)
        if self.aligned:
            lines = (_tight(line, self.quote) for line in lines)
        return csv.reader(
            lines,
            delimiter=self.separator,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            skipinitialspace=self.aligned or self.loose,
            strict=strict,
        )

    def rows(self, lines: Sequence[Line], *, cut: bool = False) -> list[Row]:
        """Return the rows of some lines, blank ones left out, and the last one where it is cut."""
        reader = self.reader((line.text for line in lines), strict=False)
        rows, before = [], 0
        for fields in reader:
            if fields and (len(fields) > 1 or fields[0].strip(" ")):
                rows.append(Row(lines[before].number, lines[reader.line_num - 1].number, fields))
            before = reader.line_num
        return rows[:-1] if cut and len(rows) > 1 else rows

    def closes(self, lines: Sequence[Line], *, cut: bool) -> bool:
        """Tell whether every quotation mark that opens a field is closed at its end."""
        reader = self.reader((line.text for line in lines), strict=True)
        try:
            for _ in reader:
                pass
        except csv.Error:
            return cut and reader.line_num == len(lines)  # the last row may go on
        return True


def _tight(line: str, quote: str) -> str:
    """Take away what aligns fields at both ends of a line, and tabs outside of quotes."""
    if not quote or quote not in line:
        line = line.replace("\t", " ")
    return line.strip(" \t\r\n") + "\n"


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a dialect fits the first lines of a file.

    Args:
        dialect: The dialect.
        rows: The rows that it makes of them.
        width: How many fields most rows have.
        head: How the table begins, where that can be told.
        share: The share of rows of that width, from the header on.
        spaced: How many rows have words that begin with a space, though few do.
    """

    dialect: Dialect
    rows: list[Row]
    width: int
    head: Head | None
    share: float
    spaced: int = 0

    @staticmethod
    def of(dialect: Dialect, lines: Sequence[Line], *, cut: bool) -> Fit:
        """Try a dialect."""
        rows = dialect.rows(lines, cut=cut)
        width = usual_width(rows)
        head = head_of(rows, width)
        below = rows[head.index + 1 :] if head else rows[1:]
        agreeing = sum(len(row.fields) == width for row in below)
        return Fit(dialect, rows, width, head, agreeing / max(1, len(below)))

    @property
    def whole(self) -> bool:
        """Whether every row agrees."""
        return self.head is not None and self.share == 1

    @property
    def rank(self) -> tuple[bool, bool, float, int]:
        """What makes a dialect more likely, the weightiest first."""
        plain = self.head is not None and self.head.index == 0 and self.head.kind != "short"
        return self.whole, plain, self.share, self.width

    def decimals(self) -> bool:
        """Tell whether there are commas, and all of them are in numbers."""
        commas = [each for row in self.rows for each in row.fields if "," in each]
        return bool(commas) and all(
            _WITH_COMMA.fullmatch(each)
            for row in self.rows[1:]
            for each in row.fields
            if "," in each
        )


def best_fit(lines: Sequence[Line], separator: str | None, quote: str | None, *, cut: bool) -> Fit:
    """Choose the dialect that most rows agree on; what is given is not found out."""
    mark = '"' if quote is None else quote
    fit = _separated(lines, separator, mark, cut=cut)
    if quote is None and _apostrophes(fit, lines):
        other = _separated(lines, separator, "'", cut=cut)
        if other.whole and not any("'" in row.fields[0] for row in other.rows):
            return other
    return fit


def _separated(lines: Sequence[Line], separator: str | None, quote: str, *, cut: bool) -> Fit:
    if separator is not None:
        fit = Fit.of(Dialect(separator, quote), lines, cut=cut)
        return fit if separator != " " or fit.whole else _spaced(lines, quote, cut=cut) or fit
    marks = [each for each in SEPARATORS if each != quote]
    if _one_column_of_decimals(lines):
        marks.remove(",")
    tried = [_tried(Dialect(each, quote), lines, cut=cut) for each in marks]
    fits = [each for each in tried if each.width > 1 and each.head is not None]
    if not fits:
        return _spaced(lines, quote, cut=cut) or _today(tried)
    best = max(fits, key=lambda each: each.rank)
    if best.dialect.separator == ",":
        fits = [each for each in fits if each.whole and each.decimals()]
        best = max(fits, key=lambda each: each.width, default=best)
    if not best.whole and (spaced := _spaced(lines, quote, cut=cut)):
        return spaced
    return _loosened(best, lines, cut=cut)


def _one_column_of_decimals(lines: Sequence[Line]) -> bool:
    """Tell whether one name stands above numbers with a decimal comma."""
    first, *below = [text for each in lines if (text := each.text.strip())] or [""]
    return (
        not any(mark in first for mark in SEPARATORS)
        and any("," in text for text in below)
        and all(map(_ONE_NUMBER.fullmatch, below))
    )


def _tried(dialect: Dialect, lines: Sequence[Line], *, cut: bool) -> Fit:
    """Try a separator; spaces between it and a quotation mark are no part of a field."""
    fit = Fit.of(dialect, lines, cut=cut)
    opening = re.compile(re.escape(dialect.separator) + " +" + re.escape(dialect.quote))
    if not dialect.quote or not any(opening.search(line.text) for line in lines):
        return fit
    loose = Fit.of(replace(dialect, loose=True), lines, cut=cut)
    if loose.rows == fit.rows or not (loose.whole or loose.share >= fit.share):
        return fit  # the marks are inside of quoted fields, or of some that begin with a word
    return loose if loose.dialect.closes(lines, cut=cut) else fit


def _loosened(fit: Fit, lines: Sequence[Line], *, cut: bool) -> Fit:
    """Take away spaces before fields, where they stand in the header or in most rows.

    Numbers are read with and without them.
    """
    before = re.compile("(?:^|" + re.escape(fit.dialect.separator) + ") ")
    if (
        fit.dialect.loose
        or len(fit.rows) < 2
        or not any(before.search(each.text) for each in lines)
    ):
        return fit
    loose = Fit.of(replace(fit.dialect, loose=True), lines, cut=cut)
    if [len(row.fields) for row in loose.rows] != [len(row.fields) for row in fit.rows]:
        return fit
    changed = [
        any(new != old and is_word(old) for new, old in zip(one.fields, other.fields, strict=True))
        for one, other in zip(loose.rows, fit.rows, strict=True)
    ]
    head = fit.head or Head("names", 0)
    named = head.kind != "none"
    below = changed[head.index + named :]
    likely = (named and changed[head.index]) or 2 * sum(below) > len(below)
    if likely and loose.dialect.closes(lines, cut=cut):
        return loose
    return replace(fit, spaced=sum(changed))


def _spaced(lines: Sequence[Line], quote: str, *, cut: bool) -> Fit | None:
    """Try spaces, one or several; words are only split where numbers stand beside them."""
    for aligned in (False, True):
        fit = Fit.of(Dialect(" ", quote, aligned), lines, cut=cut)
        if not fit.whole or fit.head is None or fit.width < 2 or len(fit.rows) < 2:
            continue
        below = [row.fields for row in fit.rows[fit.head.index + 1 :]]
        if not aligned and not all(map(all, below)):
            continue  # empty fields show that several spaces separate
        columns = list(zip(*below, strict=True))
        if any(all(text[-1:] in SEPARATORS for text in column) for column in columns):
            continue  # another mark separates, and spaces follow it
        numbers = [bool(kinds(below, place)) for place in range(fit.width)]
        if not any(numbers) or _one_column(fit, fit.head, lines, every=all(numbers)):
            continue
        if fit.head == Head("none", 0) and not all(numbers):
            alone = Fit.of(Dialect(SEPARATORS[1], quote), lines, cut=cut)
            return replace(alone, head=fit.head) if alone.width == 1 else None
        return fit
    return None


def _one_column(fit: Fit, head: Head, lines: Sequence[Line], *, every: bool) -> bool:
    """Tell whether spaces only part the words of one column, below its name.

    Args:
        fit: What spaces make of the lines.
        head: How the table begins then.
        lines: The lines.
        every: Whether all fields are numbers.
    """
    if head.index:  # a word above rows is a name, and not a title, unless something parts them
        above, begins = fit.rows[0], fit.rows[head.index]
        parted = begins.line > above.end + head.index
        return not every or (head.kind == "none" and len(above.fields) == 1 and not parted)
    if head.kind != "short" or fit.width > 2:
        return False
    rows = fit.rows[1:]
    starts = [line.text.lstrip()[:1] for line in lines if line.text.strip()]
    quoted = set(starts[1:]) == {fit.dialect.quote}  # as R writes the names of rows
    return not (counting([row.fields[0] for row in rows]) and (quoted or (every and len(rows) > 2)))


def _today(tried: Sequence[Fit]) -> Fit:
    """Return the dialect of a table that is ragged, or has one column."""
    ragged = [each for each in tried if each.rows and len(each.rows[0].fields) > 1]
    if ragged:
        return max(ragged, key=lambda each: (_like_first(each), len(each.rows[0].fields)))
    alone = [each for each in tried if all(len(row.fields) == 1 for row in each.rows)]
    return (alone or tried)[0]


def _like_first(fit: Fit) -> float:
    """Return the share of rows that are as wide as the first."""
    width, below = len(fit.rows[0].fields), fit.rows[1:]
    return sum(len(row.fields) == width for row in below) / max(1, len(below))


def _apostrophes(fit: Fit, lines: Iterable[Line]) -> bool:
    """Tell whether all names are in single quotation marks, and nothing in double ones."""
    if fit.head is None or fit.head.kind == "none":
        return False
    names = fit.rows[fit.head.index].fields
    within = all(len(each) > 2 and each[0] == each[-1] == "'" for each in names)
    return within and not any('"' in line.text for line in lines)
