"""From texts to codes, distinct value by distinct value.

Every reader hands over columns in the same form: the distinct raw texts, and for each
record the place of its text among them. What follows looks at the distinct texts only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial
from typing import Final

import numpy as np

from thinveil.curator.tables.number_grids import number_coder
from thinveil.curator.tables.reading import WORDS, Reading, leaving_out
from thinveil.errors import DataError
from thinveil.language.formats import Numeral, format_of
from thinveil.language.formats.truths import spellings
from thinveil.language.numbers import double_codes
from thinveil.language.queries import Codes
from thinveil.language.schema import EXACT, LIMIT, MISSING, NUMBERS, Attribute, Grid
from thinveil.language.texts import EPOCH, NUMBER, clock, day, in_digits, ticks

NO_VALUE: Final = (
    "no value, and the schema allows none to be missing: set missing = true for this attribute in "
    "the schema"
)
UNLISTED: Final = (
    "a text that is not in the schema's list of values: add it to values, or name it as a missing "
    "text"
)
IN_UTC: Final = "times with an offset or in a zone are counted in UTC"
"""What is said of times that are turned into those of another place."""
WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)", re.ASCII)
PLAIN: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
INFINITE_TEXT: Final = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column as it was read."""

    name: str
    texts: Sequence[str | None]  # the distinct raw values; None is a missing one
    index: Codes  # for each record, the place of its value in `texts`
    whole: bool = True  # whether all records are there, not only one for each distinct value

    def row(self, place: int) -> int:
        """Return the number of the first data row, from 1, that holds a distinct value."""
        return int((self.index == place).argmax()) + 1

    def present(self, missing: Collection[str]) -> list[str]:
        """Return the distinct texts that are not missing."""
        return [text for text in self.texts if text is not None and text not in missing]

    def mapped(self, write: Callable[[str], str | None]) -> Column:
        """Return the same column in other texts, None for what is missing."""
        texts = [None if text is None else write(text) for text in self.texts]
        return Column(self.name, texts, self.index, self.whole)


def encode(column: Column, attribute: Attribute, reading: Reading) -> Codes:
    """Return the code of each record."""
    code, absent = coder(attribute), gap_in(attribute, reading)
    codes: list[int] = []
    misfit = False
    with localcontext(EXACT):
        try:
            for text in column.texts:  # one by one: on a misfit, their number tells where
                codes.append(MISSING if text is None or absent(text) else code(text))  # noqa: PERF401
        except (ValueError, LookupError, ArithmeticError):
            misfit = True
    if misfit:
        raise _misfit(column, len(codes), attribute)
    return np.array(codes, np.int64)[column.index]


def gap_in(attribute: Attribute, reading: Reading) -> Callable[[str], bool]:
    """Return a test for texts that mean a missing value; among numbers, blanks do not count."""
    missing = reading.gaps_of(attribute)
    if isinstance(attribute, Grid) or not attribute.values:
        return lambda text: text in missing or text.strip() in missing
    return missing.__contains__


def coder(attribute: Attribute) -> Callable[[str], int]:
    """Return a function from texts to codes; a ValueError, KeyError or ArithmeticError says no."""
    if not isinstance(attribute, Grid):
        known = {
            **spellings(attribute.values),
            **{each: n for n, each in enumerate(attribute.values)},
        }
        return known.__getitem__
    if not attribute.format:
        return _plain_coder(attribute)
    code, form = _plain_coder(attribute), format_of(attribute.kind, attribute.format)
    if not isinstance(form, Numeral) or not form.limited:
        return lambda text: code(form.plain(text))

    def limited(text: str) -> int:
        side, number = form.parted(text)
        place = code(number)
        if place % 2:
            raise ValueError("not a multiple of twice the step, as limits need")
        return place + side

    return limited


def plainly(attribute: Attribute, reading: Reading) -> Callable[[str], str]:
    """Return a function from texts of a file to plain ones, "" where a value is missing.

    A text that does not fit stays as it is.
    """
    code, absent = coder(attribute), gap_in(attribute, reading)

    def write(text: str) -> str:
        with suppress(ValueError, LookupError):
            if absent(text):
                return ""
            if isinstance(attribute, Grid):
                form = format_of(attribute.kind, attribute.format) if attribute.format else None
                if isinstance(form, Numeral) and form.limited:
                    return str(attribute.decode(code(text)))
                return form.plain(text) if form else text
            return attribute.values[code(text)]
        return text

    return write


def _plain_coder(attribute: Grid) -> Callable[[str], int]:
    if attribute.kind in ("date", "datetime", "time"):
        read = {"date": _day_number, "datetime": ticks, "time": clock}[attribute.kind]
        width = int(attribute.step * (1 if attribute.kind == "date" else 10**6))

        def time_code(text: str) -> int:
            code, rest = divmod(read(text), width)
            if rest and not attribute.rounded:
                raise ValueError("not a multiple of the step")
            return code

        return time_code
    if attribute.kind == "double" or attribute.rounded:
        return number_coder(attribute)
    step = attribute.step.normalize(EXACT).as_tuple()
    if step.digits == (1,) and isinstance(step.exponent, int) and -20 < step.exponent <= 0:
        return partial(_decimal_code, attribute, -step.exponent)
    return attribute.encode


def _day_number(text: str) -> int:
    return (day(text) - EPOCH.date()).days


def _decimal_code(grid: Grid, places: int, text: str) -> int:
    """Code a number on a grid of so many decimals, mostly without any decimal arithmetic."""
    text = text.strip()
    if not PLAIN.fullmatch(text):
        return grid.encode(text)
    whole, _, fraction = text.partition(".")
    if len(fraction) > places:
        fraction = fraction.rstrip("0")
        if len(fraction) > places:
            return grid.encode(text)  # which passes over the noise of floats
    code = int((whole if whole[-1:].isdigit() else f"{whole}0") + fraction.ljust(places, "0"))
    if not -LIMIT < code < LIMIT:
        raise ValueError("too large")
    return code


def _misfit(column: Column, place: int, attribute: Attribute) -> DataError:
    """Say that a value does not fit, without showing it."""
    where = f"row {column.row(place)} of column {column.name!r}"
    if not isinstance(attribute, Grid):
        return DataError(f"{where} holds {UNLISTED}")
    word = (column.texts[place] or "").strip()
    text = _plain(attribute, word)
    if text is None:
        if word in WORDS and not attribute.missing:
            return DataError(f"{where} holds {word!r}, which means {NO_VALUE}")
        return DataError(
            f"{where} is not {on_grid(attribute)}: correct the row, change kind, step or format in "
            "the schema, or name the text as a missing text"
        )
    double, step = attribute.kind == "double", attribute.step
    if _too_large(attribute, text):
        grid = (
            f"doubles from a step of {step} on"
            if double
            else f"a grid with the step {in_digits(step)}"
        )
        other = "" if double else 'kind = "double", or '
        return DataError(
            f"{where} is too large for {grid}: give the column {other}a coarser step and "
            f"rounded = true in the schema, or leave it out ({leaving_out(column.name)})"
        )
    finer = 'kind = "decimal" and a finer step' if attribute.kind == "integer" else "a finer step"
    return DataError(
        f"{where} is not {on_grid(attribute)}: give this attribute {finer} in the schema, or "
        "correct the row, or set rounded = true, which rounds values between two steps down"
    )


def _plain(grid: Grid, text: str) -> str | None:
    """Return a number as plain text, or None where a text or a grid is not one of numbers."""
    if grid.kind not in NUMBERS:
        return None
    if grid.format:
        with suppress(ValueError):
            text = Numeral.of(grid.format).parted(text)[1]
    return text if NUMBER.fullmatch(text) else None


def _too_large(grid: Grid, text: str) -> bool:
    """Tell whether a number that did not fit lies beyond the end of the grid."""
    with localcontext(EXACT):
        try:
            if grid.kind == "double":
                return double_codes.around(abs(float(text)), float(grid.step))[0] >= LIMIT
            return abs(Decimal(text)) >= LIMIT * grid.step
        except ArithmeticError:
            return True


def on_grid(grid: Grid) -> str:
    """Say what values of a grid are like."""
    if grid.kind == "double":
        return f"a double of at least {grid.step} in size"
    unit = {"date": " days", "datetime": " seconds", "time": " seconds"}.get(grid.kind, "")
    form = f' in the format "{grid.format}"' if grid.format else ""
    return f"of kind {grid.kind}{form} on a grid with the step {in_digits(grid.step)}{unit}"
