"""What a column seems to be, judged by its distinct values alone.

Only what is taken as public is inferred: kinds, steps and the lists of categories. The
extremes of a column are not public, so a grid gets no bounds here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

import numpy as np

from thinveil.curator.tables.coding import INFINITE_TEXT, WHOLE, Column
from thinveil.curator.tables.invented import invented
from thinveil.curator.tables.reading import Reading, leaving_out
from thinveil.errors import DataError
from thinveil.language.schema import EXACT, Attribute, Categories, Grid, Kind, Schema
from thinveil.language.texts import DAY, MOMENT, NUMBER, day, ticks

FINEST: Final = 400
"""Decimal places beyond which no grid is drafted; the smallest float has 324."""

FEW: Final = 5
"""Fewer different texts in a column are no reason for doubt."""

TIMES: Final = (86_400 * 10**6, 3600 * 10**6, 60 * 10**6, 10**6, 1000, 1)
"""The steps of times that are tried, in microseconds; the coarsest is a day."""


class Inferred(NamedTuple):
    """A schema that fits some columns, and what was assumed to find it, a sentence each."""

    schema: Schema
    assumed: tuple[str, ...]

    @staticmethod
    def of(found: Sequence[Found]) -> Inferred:
        """Put together what was found of each column."""
        assumed = tuple(sentence for one in found for sentence in one.assumed)
        return Inferred(Schema(tuple(one.attribute for one in found)), assumed)


class Found(NamedTuple):
    """What one column seems to be, and what was assumed."""

    attribute: Attribute
    assumed: tuple[str, ...] = ()


def infer(columns: Sequence[Column], reading: Reading) -> Inferred:
    """Return the schema that fits the columns, without bounds."""
    return Inferred.of([infer_attribute(column, reading) for column in columns])


def infer_attribute(column: Column, reading: Reading) -> Found:
    """Return the attribute that fits one column: a grid where all values fit one."""
    missing = reading.gaps
    present = column.present(missing)
    gaps = len(present) < len(column.texts)
    if present:
        stripped = [text.strip() for text in present]
        found = _number(column, stripped, missing, gaps) or _time(column.name, stripped, gaps)
        if found is not None:
            return Found(found)
    return Found(as_categories(column, missing))


def as_categories(column: Column, missing: Collection[str]) -> Categories:
    """Return a public list of all texts of a column."""
    present = column.present(missing)
    return Categories(column.name, tuple(sorted(present)), len(present) < len(column.texts))


def _number(
    column: Column, texts: Sequence[str], missing: Collection[str], gaps: bool
) -> Grid | None:
    """Return a grid of numbers, or None where some text is not a plain number."""
    if all(map(WHOLE.fullmatch, texts)):
        return Grid(column.name, "integer", missing=gaps)
    matches = NUMBER.fullmatch
    infinite = False
    for text in texts:
        if not matches(text):
            if not INFINITE_TEXT.fullmatch(text):
                return None
            infinite = True
        elif padded(text):
            return None
    if infinite:
        raise DataError(
            f"row {_first(column, missing, INFINITE_TEXT.fullmatch)} of column {column.name!r} "
            "is infinite: correct it, name the text as a missing text, or give a schema file "
            'with kind = "category" for the column'
        )
    finest = max(map(_places, texts))
    if finest > FINEST:
        row = _first(column, missing, lambda text: _places(text) > FINEST)
        raise DataError(
            f"row {row} of column {column.name!r} has more than {FINEST} decimals: give a "
            'coarser step in a schema file, or kind = "category" there'
        )
    return number_grid(column.name, finest, gaps)


def number_grid(name: str, places: int, gaps: bool) -> Grid:
    """Return the grid of numbers with so many decimals."""
    kind: Kind = "decimal" if places else "integer"
    return Grid(name, kind, Decimal((0, (1,), -places)), missing=gaps)


def time_grid(name: str, fits: Callable[[int], bool], gaps: bool) -> Grid:
    """Return the coarsest grid of dates or datetimes; a microsecond always fits."""
    width = next(each for each in TIMES if each == 1 or fits(each))
    if width == TIMES[0]:
        return Grid(name, "date", missing=gaps)
    return Grid(name, "datetime", Decimal(width) / 10**6, missing=gaps)


def padded(text: str) -> bool:
    """Tell whether a number has a leading zero, as postcodes do."""
    if text[0] in "+-":
        text = text[1:]
    return text[0] == "0" and text[1:2].isdigit()


def _places(text: str) -> int:
    """Count the decimals of a number, trailing zeros left out."""
    if "e" not in text and "E" not in text:
        return len(text.partition(".")[2].rstrip("0"))
    try:
        exponent = Decimal(text).normalize(EXACT).as_tuple().exponent
    except ArithmeticError:
        # Beyond any grid: too fine, or (the encoder will say so) too large.
        return FINEST + 1 if "-" in text[1:] else 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _first(column: Column, missing: Collection[str], test: Callable[[str], object]) -> int:
    """Return the first row whose text passes a test."""
    places = [
        place
        for place, text in enumerate(column.texts)
        if text is not None and text not in missing and test(text.strip())
    ]
    return int(np.isin(column.index, places).argmax()) + 1


def _time(name: str, texts: Sequence[str], gaps: bool) -> Grid | None:
    """Return a grid of dates or datetimes, or None where some text is neither."""
    try:
        if all(map(DAY.fullmatch, texts)):
            for text in texts:
                day(text)
            return Grid(name, "date", missing=gaps)
        zones = set()
        for text in texts:
            match = MOMENT.fullmatch(text)
            if match is None and not DAY.fullmatch(text):
                return None
            zones.add(match is not None and match["zone"] is not None)
        if len(zones) > 1:
            return None  # Local times and times with an offset do not compare.
        times = {ticks(text) for text in texts}
    except (ValueError, OverflowError):
        return None
    return time_grid(name, lambda width: all(tick % width == 0 for tick in times), gaps)


def doubts(schema: Schema, records: int) -> list[str]:
    """Say where an inferred schema makes more public than its owner may have meant.

    A column of many different texts becomes a public list of categories, as long as a quarter of
    the records or longer: names of people, say. Often it holds numbers or dates in a form that is
    not recognised, or a text that means missing. The lists of the made-up people are public.
    """
    found = []
    for attribute in schema:
        if not isinstance(attribute, Categories) or invented(attribute):
            continue
        if len(attribute.values) >= max(FEW, records / 4):
            numbers = sum(any(map(str.isdigit, text)) for text in attribute.values)
            hint = (
                "If these are numbers or dates, say which text means missing (--missing TEXT) or "
                "write them plainly (1234.5, 2024-12-31)."
                if numbers >= len(attribute.values) / 2
                else f"If it is not public, leave it out ({leaving_out(attribute.name)})."
            )
            found.append(
                f"the column {attribute.name!r} has {len(attribute.values):,} different texts in "
                f"{records:,} records, and their list counts as public. {hint}"
            )
    return found
