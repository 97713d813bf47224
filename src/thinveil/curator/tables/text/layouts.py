"""How a text file is laid out: what stands above its rows, and what its columns are called.

All is found out from the first lines, and each assumption is a sentence that ends with the option
that overrides it, or with what to do to the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from thinveil.curator.tables.reading import Reading
from thinveil.curator.tables.text.dialects import Dialect, Fit, Line, best_fit
from thinveil.curator.tables.text.headers import Head, Row, head_of, repeated, says
from thinveil.errors import DataError
from thinveil.language.texts import many

MARK: Final = "#"
"""What comments begin with, where nobody says it."""
_EXCEL: Final = re.compile(r'"?sep=([^"\r\n])"?\s*', re.I)
_SHOWN: Final = {"\t": "tab", ";": "';'", "|": "'|'"}
"""Separators as a shell takes them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What was found out about a text file.

    Args:
        dialect: How fields are separated and quoted.
        names: The names of all columns as they stand in the file; empty for those without.
        header: The line with the names; 0 where there is none.
        first: The line on which the rows of data begin.
        comment: What lines between the rows begin with that are none; empty where there are none.
        assumed: What was assumed.
        plain: Whether the line of the header holds all names and nothing else.
    """

    dialect: Dialect
    names: tuple[str, ...]
    header: int
    first: int
    comment: str = ""
    assumed: tuple[str, ...] = ()
    plain: bool = True


@dataclass(slots=True)
class _Sketch:
    """The lines that are left while a layout is found out, and what was assumed so far."""

    lines: list[Line]
    separator: str | None
    comment: str
    above: list[Line] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)


def layout_of(sample: Sequence[str], reading: Reading, where: str, *, cut: bool) -> Layout:
    """Find out how a file is laid out from its first lines.

    Args:
        sample: The lines.
        reading: What is known.
        where: What to call the file in messages.
        cut: Whether the file has more lines.
    """
    lines = [Line(number, text) for number, text in enumerate(sample, start=1)]
    sketch = _Sketch(lines, reading.separator, reading.comment or "")
    if reading.header:
        sketch.lines = lines[reading.header - 1 :]
        if not sketch.lines or not sketch.lines[0].text.strip():
            raise DataError(
                f"{where}: --header: line {reading.header} is empty, or not among the first "
                f"{len(lines):,}: give the number of the line that names the columns"
            )
    else:
        _set_aside(sketch, reading, cut=cut)
    if sketch.comment:
        head, rest = sketch.lines[: bool(reading.header)], sketch.lines[bool(reading.header) :]
        sketch.lines = [*head, *(each for each in rest if not _begins(each, sketch.comment))]
    fit = _fitted(sketch, reading, cut=cut)
    if not fit.rows:
        raise DataError(f"{where}: the file is empty: give a table with a header row")
    _say_dialect(sketch, reading, fit)
    return _begun(sketch, reading, fit)


def _set_aside(sketch: _Sketch, reading: Reading, *, cut: bool) -> None:
    """Put a line of Excel and a block of comments aside, where they stand above all rows."""
    if sketch.lines and (match := _EXCEL.fullmatch(sketch.lines[0].text)):
        del sketch.lines[0]
        sketch.separator = sketch.separator or match[1]
        sketch.assumed.append(
            f"line 1 names the separator {_shown(match[1])} and is no row (--header 1 reads it as "
            "the header)"
        )
    if reading.comment is not None:
        return
    after = 0
    for place, line in enumerate(sketch.lines):
        if _begins(line, MARK):
            after = place + 1
        elif line.text.strip():
            break
    above, below = sketch.lines[:after], sketch.lines[after:]
    if not any(line.text.strip() for line in below):
        return
    if sum(_begins(line, MARK) for line in above) > 1:
        fit = best_fit(sketch.lines, sketch.separator, reading.quote, cut=cut)
        if fit.whole and fit.width > 1 and fit.head == Head("names", 0):
            return  # rows like all others, that happen to begin so
    sketch.above, sketch.lines = above, below


def _fitted(sketch: _Sketch, reading: Reading, *, cut: bool) -> Fit:
    """Find the dialect, with or without lines between the rows that begin as comments do."""
    fit = best_fit(sketch.lines, sketch.separator, reading.quote, cut=cut)
    marked = [each for each in sketch.lines[1:] if _begins(each, MARK)]
    if reading.comment is not None or fit.whole or not marked:
        return fit
    lines = [each for each in sketch.lines if each not in marked]
    other = best_fit(lines, sketch.separator, reading.quote, cut=cut)
    if not other.whole:
        return fit
    sketch.lines, sketch.comment = lines, MARK
    sketch.assumed.append(
        f"lines that begin with {MARK} are taken as comments, line {marked[0].number} among them "
        "(--comment '' reads them as rows)"
    )
    return other


def _say_dialect(sketch: _Sketch, reading: Reading, fit: Fit) -> None:
    if sketch.separator is None and fit.dialect.separator == " ":
        sketch.assumed.append("spaces separate the fields (--separator names another mark)")
    if fit.dialect.loose:
        mark = _shown(fit.dialect.separator)
        sketch.assumed.append(
            f"spaces before a field are no part of it (--separator {mark} keeps them)"
        )
    if fit.spaced:
        sketch.assumed.append(
            f"words begin with spaces in {fit.spaced} of the first {len(fit.rows)} rows, and these "
            "are part of the values: take them out of the file where they are not meant"
        )
    if reading.quote is None and fit.dialect.quote == "'":
        sketch.assumed.append("the quotation mark is ' (--quote names another)")


def _begun(sketch: _Sketch, reading: Reading, fit: Fit) -> Layout:
    """Find the names, and where the rows begin."""
    rows, assumed = fit.rows, sketch.assumed
    head = fit.head or Head("names", 0)
    if reading.header is not None:
        head = _told(fit, head, reading.header)
    elif head.index == 0 and (names := _names_in_comment(sketch, fit)):
        line = sketch.above[-1].number
        assumed[:0] = _comments(sketch.above[:-1])
        assumed.append(
            f"line {line} begins with {MARK} and is taken as the header (--comment {MARK} takes "
            "it as a comment, --comment '' as it is)"
        )
        return Layout(
            fit.dialect, tuple(names), line, line + 1, sketch.comment, tuple(assumed), plain=False
        )
    assumed[:0] = _comments(sketch.above)
    assumed.extend(_titles(rows[: head.index]))
    row = rows[head.index]
    names = list(row.fields)
    again, like = _again(fit, head) if reading.header is None else (0, False)
    if head.kind == "none" or like:
        if reading.header is None:
            why = "texts that all occur in the lines" if like else "numbers like the lines"
            assumed.append(_no_names(row.line, why, len(names)))
        names = _made(len(names))
        return Layout(fit.dialect, tuple(names), 0, row.line, sketch.comment, tuple(assumed))
    if head.kind == "short":
        names = ["", *names]
        assumed.append(
            f"line {row.line} has a name less than the rows have fields, so the first column is "
            "taken to be without one (--header names another line)"
        )
    elif head.kind == "trailing":
        names = [*names, ""]
    elif reading.header is None and says(names, _below(fit, head)) == "numbers":
        assumed.append(
            f"line {row.line} is taken as the header, though its names are numbers (--header none "
            "reads it as a row)"
        )
    elif again:
        assumed.append(
            f"line {row.line} is taken as the header, though {again} of its "
            f"{many(len(names), 'name')} also {'is' if again == 1 else 'are'} among the values "
            "below (--header none reads it as a row)"
        )
    plain = head.kind == "names"
    told = tuple(assumed)
    return Layout(fit.dialect, tuple(names), row.line, row.end + 1, sketch.comment, told, plain)


def _told(fit: Fit, head: Head, header: int) -> Head:
    """Return how a table begins where the line of its header is given, or that it has none."""
    if not header:
        return Head("none", head.index)
    below = head_of(fit.rows, fit.width)
    return below if below and below.index == 0 and below.kind != "none" else Head("names", 0)


def _below(fit: Fit, head: Head) -> list[list[str]]:
    """Return the rows below the first one that are as wide."""
    width = len(fit.rows[head.index].fields)
    return [row.fields for row in fit.rows[head.index + 1 :] if len(row.fields) == width]


def _again(fit: Fit, head: Head) -> tuple[int, bool]:
    """Count the names of a header that are values of their columns as well; tell if it is a row.

    Words above numbers are names all the same. A header that stands between the rows once more
    still is one; so is the name of a list in which no text stands twice.
    """
    names, below = fit.rows[head.index].fields, _below(fit, head)
    others = [row for row in below if row != names]
    if head.kind != "names" or says(names, others) != "unknown":
        return 0, False
    again = repeated(names, below)
    if len(names) == 1:
        return again, again == 1 and len({row[0] for row in below}) < len(below)
    return again, again == len(names) and repeated(names, others) > 0


def _names_in_comment(sketch: _Sketch, fit: Fit) -> list[str] | None:
    """Return the names of columns in the last comment above, where they stand there."""
    if not sketch.above or fit.width < 2:
        return None
    last = sketch.above[-1]
    text = last.text.lstrip(MARK)
    found = fit.dialect.rows([Line(last.number, text.lstrip(" "))])
    if len(found) != 1 or len(found[0].fields) != fit.width:
        return None
    names = found[0].fields
    names[0] = names[0] or MARK  # a number sign that stands alone is a name
    said = says(fit.rows[0].fields, _below(fit, Head("names", 0)))
    likely = not text.startswith(" ") or fit.width > 2  # a sentence may hold one comma
    return names if said == "data" or (said == "unknown" and likely) else None


def _comments(lines: Sequence[Line]) -> list[str]:
    marked = [each for each in lines if _begins(each, MARK)]
    if not marked:
        return []
    said = _lines_said([each.number for each in marked])
    if len(marked) == 1:
        return [f"{said} begins with {MARK} and is taken as a comment (--comment '' reads it)"]
    return [f"{said} begin with {MARK} and are taken as comments (--comment '' reads them)"]


def _titles(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    said = _lines_said([row.line for row in rows])
    verb, what = ("is", "a title") if len(rows) == 1 else ("are", "titles")
    return [
        f"{said} {verb} taken as {what} above the table (--header {rows[0].line} takes line "
        f"{rows[0].line} as the header)"
    ]


def _lines_said(numbers: Sequence[int]) -> str:
    """Name lines of a file."""
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        word = "and" if len(numbers) == 2 else "to"
        return f"lines {numbers[0]} {word} {numbers[-1]}"
    return f"{len(numbers)} lines from {numbers[0]} to {numbers[-1]}"


def _made(width: int) -> list[str]:
    """Make names for columns."""
    return [f"column {place}" for place in range(1, width + 1)]


def _no_names(line: int, why: str, width: int) -> str:
    called = "'column 1'" if width == 1 else f"'column 1' to 'column {width}'"
    return (
        f"line {line} has {why} below, so no line names the columns; they are called {called} "
        f"(--header {line} takes it as the header)"
    )


def _shown(separator: str) -> str:
    return _SHOWN.get(separator, separator)


def _begins(line: Line, mark: str) -> bool:
    return line.text.startswith(mark)
