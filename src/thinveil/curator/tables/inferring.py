"""What a column seems to be, judged by its distinct values alone.

Only what is taken as public is inferred: kinds, steps and the lists of categories. The
extremes of a column are not public, so a grid gets no bounds here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Final, NamedTuple

import numpy as np

from thinveil.curator.tables.coding import IN_UTC, INFINITE_TEXT, WHOLE, Column
from thinveil.curator.tables.doubting import doubts, like_values
from thinveil.curator.tables.invented import invented
from thinveil.curator.tables.number_grids import Chosen, grid_of_numbers, number_coder
from thinveil.curator.tables.reading import Reading, Remarks
from thinveil.curator.tables.recognising import (
    UNKNOWN,
    Customs,
    Recognised,
    decimals_of,
    grouped_by_points,
    recognised,
)
from thinveil.errors import DataError
from thinveil.language.formats import Numeral
from thinveil.language.formats.truths import truths_in
from thinveil.language.numbers.digits import SURE
from thinveil.language.schema import DAY_LONG, EXACT, NUMBERS, Attribute, Categories, Grid, Schema
from thinveil.language.texts import DAY, MOMENT, NUMBER, clock, day, many, quoted, ticks

TIMES: Final = (86_400 * 10**6, 3600 * 10**6, 60 * 10**6, 10**6, 1000, 1)
"""The steps of times that are tried, in microseconds; the coarsest is a day."""


_POWER: Final = re.compile(r"\d+[eE]\d+", re.ASCII)
_FRACTION: Final = re.compile(r"[+-]?\d*\.\d*[1-9]0*", re.ASCII)  # with other digits than zeros


class Inferred(NamedTuple):
    """A schema that fits some columns, and what was assumed to find it, a sentence each."""

    schema: Schema
    assumed: tuple[str, ...]
    rounded_away: tuple[str, ...] = ()

    def remarks(self, records: int) -> Remarks:
        """Return what there is to say of the schema of a table of so many records."""
        told = Remarks(self.assumed, rounded_away=self.rounded_away)
        return told.and_also(doubts(self.schema, records))

    @staticmethod
    def of(found: Sequence[Found]) -> Inferred:
        """Put together what was found of each column; columns of the same note share it."""
        schema = Schema(tuple(one.attribute for one in found))
        columns: dict[str, list[str]] = {}
        for name, one in zip(schema.names, found, strict=True):
            for sentence in one.assumed:
                columns.setdefault(sentence.removeprefix(f"column {name!r}: "), []).append(name)
        assumed = [
            f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}: {sentence}"
            for sentence, names in columns.items()
        ]
        away = (one.attribute.name for one in found if one.rounded_away)
        return Inferred(schema, tuple(assumed), tuple(away))


_IN_UTC: Final = re.compile(r"(?:Z|[+-]00:?00)$")


class Found(NamedTuple):
    """What one column seems to be, and what was assumed, said without the name of the column."""

    attribute: Attribute
    assumed: tuple[str, ...] = ()
    shown: Customs = UNKNOWN  # how the file is written, as far as the column shows it
    open: bool = False  # whether other columns may decide how it is read
    rounded_away: bool = False  # whether most different values became one


def infer(columns: Sequence[Column], reading: Reading) -> Inferred:
    """Return the schema that fits the columns, without bounds."""
    found = [infer_attribute(column, reading) for column in columns]
    inferred = settled(
        found, reading, lambda at, known: infer_attribute(columns[at], reading, known)
    )
    told = [
        said_of_odd(column.name, _first(column, odd.__contains__))
        for column, attribute in zip(columns, inferred.schema, strict=True)
        if (odd := odd_texts(attribute))
    ]
    return inferred._replace(assumed=(*inferred.assumed, *told))


def odd_texts(attribute: Attribute) -> set[str]:
    """Return what keeps a column from being one of numbers or dates, where few texts do."""
    if not isinstance(attribute, Categories) or invented(attribute):
        return set()
    odd = set(attribute.values) - like_values(attribute.values)
    return odd if 2 * len(odd) <= len(attribute.values) else set()


def said_of_odd(name: str, row: int) -> str:
    """Say which row keeps a column from being one of numbers or dates."""
    return f"column {name!r}: row {row} is the first that holds no number or date"


def settled(
    found: Sequence[Found], reading: Reading, again: Callable[[int, Customs], Found]
) -> Inferred:
    """Read columns again that fit several formats, where the other columns decide between them."""
    customs = Customs.common((each.shown for each in found), reading.dates)
    return Inferred.of([again(at, customs) if one.open else one for at, one in enumerate(found)])


def infer_attribute(column: Column, reading: Reading, customs: Customs = UNKNOWN) -> Found:
    """Return the attribute that fits one column: a grid where all values fit one."""
    gaps, words = reading.gaps, reading.words
    plain = column.mapped(lambda text: None if text in gaps else text.strip() or None)
    absent = {text for text in plain.texts if text in words}
    if absent:
        plain = plain.mapped(lambda text: None if text in absent else text)
    present = plain.present(())
    if not present:
        nothing = Categories(column.name, (), missing=True)
        return (
            Found(nothing, (_taken_as_missing(absent, "as there is nothing else"),))
            if absent
            else Found(as_categories(column, gaps))
        )
    why = "as all else is numbers or dates"
    told = [_taken_as_missing(absent, why)] if absent else []
    wanted = reading.steps.get(column.name)
    found = _grid(plain, wanted)
    unsure = found is not None and found.grid.kind in NUMBERS and grouped_by_points(present)
    if found and not (unsure and customs.decimal == ","):
        numbers = found.grid.kind in NUMBERS
        shown = decimals_of(present) if numbers else UNKNOWN
        told += [_equal_as_numbers(present)] if numbers else []
        return _found(plain, found, told, shown, unsure)
    form = recognised(present, customs)
    plain = plain.mapped(form.plain) if form else plain
    found = form and _formatted(plain, form, wanted)
    if form is None or found is None:
        return _listed(column, reading)
    return _found(plain, found, [form.note, *told], form.shown, form.open)


def _found(
    plain: Column, chosen: Chosen, told: Sequence[str], shown: Customs, unsure: bool
) -> Found:
    """Put together what is said of a column of numbers or times, and what was rounded away."""
    *rest, last = chosen.assumed or ("",)
    away = False
    if chosen.grid.rounded:
        lost, away = _lost(plain, chosen.grid)
        last += f": {lost}"
    return Found(chosen.grid, tuple(filter(None, (*told, *rest, last))), shown, unsure, away)


def _lost(plain: Column, grid: Grid) -> tuple[str, bool]:
    """Say what becomes of numbers that are rounded, and tell whether most different ones merge."""
    code, kept = number_coder(grid), dict[Decimal, int]()
    changed = []
    with localcontext(EXACT):
        for place, text in enumerate(plain.texts):
            if text is not None:
                number = Decimal(text)
                at = kept[number] = code(text)
                same = float(text) if grid.kind == "double" else number
                changed += [place] if grid.decode(at) != same else []
    left = Counter(kept.values())
    said = f"of {many(len(kept), 'different value')} {len(left):,} {_be(len(left))} left"
    if plain.whole:
        rows = int(np.isin(plain.index, changed).sum())
        verb = "changes" if rows == 1 else "change"
        said += f", and {rows:,} of {many(len(plain.index), 'record')} {verb}"
    most = max(left.values())
    return said, most > 1 and 2 * most > len(kept)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _equal_as_numbers(texts: Sequence[str]) -> str:
    """Say that texts differ that are equal as numbers: 1.10 and 1.1, which may be versions.

    Whole numbers with and without zeros behind a point, such as 5 and 5.0, are common, and not
    told. Numbers that all are like 12e4 may be labels.
    """
    if all(map(_POWER.fullmatch, texts)):
        return (
            'all texts are numbers like 12e4, and count as such; kind = "category" in a schema '
            "file keeps the texts"
        )
    shorter = Counter(text.rstrip("0") for text in texts if _FRACTION.fullmatch(text))
    merged = sum(shorter.values()) - len(shorter)
    if powers := {Decimal(text) for text in texts if "e" in text or "E" in text} - {0}:
        merged += sum(Decimal(text) in powers for text in texts) - len(powers)
    if not merged:
        return ""
    return (
        "some texts differ only in zeros at the end or in an exponent, as 1.10 and 1.1 do, and "
        'count as the same number; kind = "category" in a schema file keeps them apart'
    )


def _grid(plain: Column, wanted: str | None) -> Chosen | None:
    """Return the grid that fits texts of plain numbers, dates or moments."""
    return _number(plain, wanted) or _time(plain)


def _formatted(plain: Column, form: Recognised, wanted: str | None) -> Chosen | None:
    """Return the grid that fits what a format means, if numbers: with room for its limits."""
    texts, gaps = plain.present(()), None in plain.texts
    if form.kind == "time":
        times = {clock(text) for text in texts}
        grid = clock_grid(plain.name, lambda width: not any(at % width for at in times), gaps)
        return Chosen(replace(grid, format=form.format))
    chosen = _grid(plain, wanted)
    if chosen is None:
        return None
    grid = chosen.grid
    if form.kind == "datetime":
        step = DAY_LONG * grid.step if grid.kind == "date" else grid.step
        grid = replace(grid, kind="datetime", step=step)
    if (limits := Numeral.of(form.format) if form.kind == "integer" else None) and limits.limited:
        if grid.rounded or grid.kind == "double":
            return None
        grid = replace(grid, kind="decimal", step=EXACT.divide(grid.step, Decimal(2)))
    return Chosen(replace(grid, format=form.format), chosen.assumed)


def _taken_as_missing(words: Collection[str], why: str) -> str:
    listed = sorted(words)
    verb, again = ("means", "it as a text") if len(listed) == 1 else ("mean", "them as texts")
    marks = {word: "=" if word.startswith("-") else " " for word in listed}
    options = " ".join(f"--not-missing{marks[word]}{quoted(word)}" for word in listed)
    return f"{' and '.join(listed)} {verb} missing, {why} ({options} keeps {again})"


def _listed(column: Column, reading: Reading) -> Found:
    """Return the public list of texts; of truths, both, each in one spelling."""
    listed = as_categories(column, reading.gaps)
    truths = truths_in(listed.values)
    if truths is None:
        return Found(listed)
    values = " and ".join(truths.values)
    told = f"{values} both count as possible, though only one occurs"
    if truths.merged:
        told = f"{values}, in several spellings, count as two values; a schema file can list more"
    return Found(replace(listed, values=truths.values), (told,))


def as_categories(column: Column, missing: Collection[str]) -> Categories:
    """Return a public list of all texts of a column."""
    present = column.present(missing)
    return Categories(column.name, tuple(sorted(present)), len(present) < len(column.texts))


def _number(column: Column, wanted: str | None) -> Chosen | None:
    """Return a grid of numbers, or None where some text is not a plain number."""
    texts, gaps = column.present(()), None in column.texts
    whole = all(map(WHOLE.fullmatch, texts))
    if whole and max(map(len, texts)) <= SURE:
        return Chosen(Grid(column.name, "integer", missing=gaps))
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
            f"row {_first(column, INFINITE_TEXT.fullmatch)} of column "
            f"{column.name!r} is infinite: correct it, name the text as a missing text, or give a "
            'schema file with kind = "category" for the column'
        )
    return grid_of_numbers(column.name, texts, gaps, wanted)


def time_grid(name: str, fits: Callable[[int], bool], gaps: bool) -> Grid:
    """Return the coarsest grid of dates or datetimes; a microsecond always fits."""
    width = next(each for each in TIMES if each == 1 or fits(each))
    if width == TIMES[0]:
        return Grid(name, "date", missing=gaps)
    return Grid(name, "datetime", Decimal(width) / 10**6, missing=gaps)


def clock_grid(name: str, fits: Callable[[int], bool], gaps: bool) -> Grid:
    """Return the coarsest grid of times of the day; the ends of a day are public."""
    width = next(each for each in TIMES[1:] if each == 1 or fits(each))
    step = Decimal(width) / 10**6
    return Grid(name, "time", step, 0, int(DAY_LONG / step) - 1, missing=gaps)


def padded(text: str) -> bool:
    """Tell whether a number has a leading zero, as postcodes do."""
    if text[0] in "+-":
        text = text[1:]
    return text[0] == "0" and text[1:2].isdigit()


def _first(column: Column, test: Callable[[str], object]) -> int:
    """Return the first row whose text passes a test."""
    places = [place for place, text in enumerate(column.texts) if text is not None and test(text)]
    return int(np.isin(column.index, places).argmax()) + 1


def _time(column: Column) -> Chosen | None:
    """Return a grid of dates or datetimes, or None where some text is neither."""
    name, texts, gaps = column.name, column.present(()), None in column.texts
    try:
        if all(map(DAY.fullmatch, texts)):
            for text in texts:
                day(text)
            return Chosen(Grid(name, "date", missing=gaps))
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
    grid = time_grid(name, lambda width: all(tick % width == 0 for tick in times), gaps)
    away = zones == {True} and not all(map(_IN_UTC.search, texts))
    return Chosen(grid, (IN_UTC,) if away else ())
