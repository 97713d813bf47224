"""Whether a reconstructed table is the one in the file, which is read here without thinveil."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any, Final, Literal

from bench.tables.gathering import Layout

Level = Literal["exact", "15 digits", "rounded"]
LEVELS: Final[tuple[Level, ...]] = ("exact", "15 digits", "rounded")

MISSING: Final = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "-", ".", "?"}
)
"""Words that may stand for a missing value, as pandas, R, SAS and spreadsheets write it."""
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
CLOCK: Final = re.compile(r"\d\d?:\d\d.*")
GROUPED: Final = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
TIMES: Final = (
    "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y",
    "%m/%d/%y", "%d/%m/%y", "%b %d %Y", "%b-%d-%Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%d%b%y",
    "%m-%d-%Y", "%d-%m-%Y", "%H:%M", "%H:%M:%S",
)  # fmt: skip
"""Ways to write dates and times besides ISO 8601, which is tried first."""
_WIDE: Final = Context(prec=400)
_SHORT: Final = Context(prec=15)


@dataclass(frozen=True, slots=True)
class Found:
    """A reconstructed table.

    Args:
        names: The names of its columns.
        steps: The step of each column that was rounded; None for other columns.
        kinds: The kind of each column.
        rows: The records.
        notes: What was assumed about the file.
        doubts: What was said about lists that count as public.
    """

    names: Sequence[str]
    steps: Sequence[Decimal | None]
    kinds: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    doubts: Sequence[str] = ()


def told(name: str, sentences: Iterable[str]) -> bool:
    """Tell whether a sentence names a column."""
    return any(repr(name) in sentence for sentence in sentences)


@dataclass(frozen=True, slots=True)
class Cells:
    """A file read by Python's csv module: the names, if it has some, and the texts by column."""

    names: list[str] | None
    columns: list[list[str]]

    @property
    def records(self) -> int:
        return len(self.columns[0]) if self.columns else 0


class Differs(Exception):
    """A reconstructed table is not the one in the file."""


def read(path: Path, layout: Layout) -> Cells:
    """Read a text file, or a file of Stata, without thinveil."""
    if path.suffix == ".dta":
        return _stata(path)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252")
    rows = list(_rows(text, layout))
    if layout.separator != " ":
        rows = [row for row in rows if row]
    names = rows.pop(0) if layout.header else None
    width = len(names if names is not None else rows[0])
    if any(len(row) != width for row in rows):
        raise ValueError(f"{path}: the rows differ in length")
    return Cells(names, [list(column) for column in zip(*rows, strict=True)] or [[]] * width)


def _rows(text: str, layout: Layout) -> Iterator[list[str]]:
    lines = text.splitlines(keepends=True)[layout.skip :]
    if layout.separator == " ":
        lines = [re.sub(r"[ \t]+", " ", line.strip()) for line in lines if line.strip()]
    yield from csv.reader(lines, delimiter=layout.separator, quotechar=layout.quote)


def _stata(path: Path) -> Cells:
    import pandas

    frame = pandas.read_stata(path, convert_categoricals=False)
    # The shortest text that means the stored number: a float of four bytes has few digits.
    return Cells(
        [str(name) for name in frame.columns],
        [
            ["" if pandas.isna(value) else str(value) for value in frame[name].to_numpy()]
            for name in frame.columns
        ],
    )


def compare(cells: Cells, found: Found) -> tuple[Level, list[str]]:
    """Return how well a reconstructed table fits the file, and the columns that fit no better.

    Raises:
        Differs: A cell differs, or a column is missing that does not count the rows.
    """
    if cells.records != len(found.rows):
        raise Differs(f"{len(found.rows):,} records instead of {cells.records:,}")
    columns = list(zip(*found.rows, strict=True))
    levels: dict[str, Level] = {}
    keys: list[Sequence[Hashable]] = []
    others: list[Sequence[Hashable]] = []
    for place, spot in pairs(cells, found.names).items():
        name, kind = found.names[spot], found.kinds[spot]
        readings = readings_of(kind, found.steps[spot], told(name, found.notes))
        fit = _fitting(cells.columns[place], columns[spot], readings)
        if fit is None:
            raise Differs(f"column {name!r} differs ({kind})")
        reached, one, other = fit
        levels[name] = reached
        keys.append(one)
        others.append(other)
    if Counter(zip(*keys, strict=True)) != Counter(zip(*others, strict=True)):
        raise Differs("each column is right by itself, the records are not")
    worst = max(levels.values(), key=LEVELS.index)
    return worst, [name for name, level in levels.items() if level == worst]


def pairs(cells: Cells, names: Sequence[str]) -> dict[int, int]:
    """Return where each column of the file is in the reconstructed table.

    A column that is not there has to count the rows: 0, 1, 2, ... or 1, 2, 3, ...
    """
    width = len(cells.columns)
    if len(names) == width:
        return {place: place for place in range(width)}
    own = cells.names or [""] * width
    placed: dict[int, int] = {}
    for place in range(width):
        called = (own[place], own[place].strip(), f"column {place + 1}")
        spot = next((names.index(name) for name in called if name and name in names), None)
        if spot is not None and spot not in placed.values():
            placed[place] = spot
        elif not counts_rows(cells.columns[place]):
            raise Differs(f"column {place + 1} of the file was left out")
    if len(placed) != len(names):
        raise Differs("a column that is not in the file")
    return placed


def counts_rows(texts: Sequence[str]) -> bool:
    """Tell whether a column only counts the rows."""
    return any(
        all(text.strip() == str(number) for number, text in enumerate(texts, start=first))
        for first in (0, 1)
    )


Read = Callable[[Any], Hashable]
Reading = tuple[Level, Read, Read]
"""How well it fits, and how the file's texts and the values that were found become keys."""


def _fitting(
    texts: Sequence[str], values: Sequence[Any], readings: Iterable[Reading]
) -> tuple[Level, list[Hashable], list[Hashable]] | None:
    """Return how well a column fits, and its keys on both sides: equal keys are equal values."""
    distinct = set(values)
    for level, key_of_text, key_of_value in readings:
        try:
            theirs = {text: key_of_text(text) for text in set(texts)}
            ours = {value: None if value is None else key_of_value(value) for value in distinct}
        except (ValueError, ArithmeticError):
            continue
        one = [theirs[text] for text in texts]
        other = [ours[value] for value in values]
        if Counter(one) == Counter(other):
            return level, one, other
    return None


def readings_of(kind: str, step: Decimal | None, told: bool) -> Iterator[Reading]:
    """Yield ways to compare texts of a column with values of its kind, the strictest first.

    Where fewer digits were kept, a note has to name the column.
    """
    if kind == "category":
        yield "exact", str, str
        yield "exact", lambda text: text or None, str
        yield "exact", lambda text: None if text in MISSING else text, str
        return
    yield "exact", _or_missing(number), number
    yield "exact", _or_missing(_double), _double
    if told:
        yield "15 digits", _or_missing(_short), _short
    if told and step:
        for way in (ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP):
            yield "rounded", _or_missing(_stepped(step, way)), _stepped(step, ROUND_HALF_EVEN)
    yield "exact", _or_missing(moment), moment
    for form in TIMES:
        key = moment if "%y" not in form else _without_century
        yield "exact", _or_missing(_as_written(form)), key


def _or_missing(key: Read) -> Read:
    return lambda text: None if text.strip() in MISSING else key(text)


def _double(value: Any) -> float:
    return float(number(value))


def _short(value: Any) -> Decimal:
    return _SHORT.plus(number(value)).normalize()


def _stepped(step: Decimal, way: str) -> Read:
    return lambda value: (number(value) / step).to_integral_value(way)


def number(value: Any) -> Decimal:
    """Read a number exactly: 12, 1.5e-3, 1,234.5, $12, 12 %."""
    text = repr(value) if isinstance(value, float) else str(value).strip()
    text = text.lstrip("$£€").removesuffix("%").strip()
    if GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if not NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return _WIDE.create_decimal(text)


def moment(value: Any) -> Hashable:
    """Read a date or a time by ISO 8601; a date is its midnight."""
    if isinstance(value, str):
        clock = CLOCK.fullmatch(value)
        value = time.fromisoformat(value) if clock else datetime.fromisoformat(value.strip())
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime) and value.tzinfo:
        value = value.astimezone().replace(tzinfo=None)
    return value if isinstance(value, Hashable) else None


def _without_century(value: Any) -> Hashable:
    """Return all that a file with years of two digits says of a day."""
    seen = moment(value)
    if not isinstance(seen, datetime):
        raise ValueError("not a day")
    return seen.year % 100, seen.month, seen.day


def _as_written(form: str) -> Read:
    def key(text: str) -> Hashable:
        seen = datetime.strptime(text.strip(), form)
        if "%y" in form:
            return _without_century(seen)
        return seen if "%Y" in form else seen.time()

    return key


def looks_like_numbers(texts: Iterable[str]) -> bool:
    """Tell whether at least half of the distinct texts are numbers or dates."""
    present = {text.strip() for text in texts} - MISSING
    return bool(present) and 2 * sum(map(_number_or_date, present)) >= len(present)


def _number_or_date(text: str) -> bool:
    for key in (number, moment, *map(_as_written, TIMES)):
        try:
            key(text)
        except (ValueError, ArithmeticError):
            continue
        return True
    return False


def public_numbers(cells: Cells, found: Found) -> list[str]:
    """Return columns of numbers whose values became a public list, and no note says so."""
    return [
        found.names[spot]
        for place, spot in pairs(cells, found.names).items()
        if found.kinds[spot] == "category"
        and not told(found.names[spot], found.doubts)
        and looks_like_numbers(cells.columns[place])
    ]
