"""From texts to codes, distinct value by distinct value.

Every reader hands over columns in the same form: the distinct raw texts, and for each
record the place of its text among them. What follows looks at the distinct texts only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial
from typing import Final

import numpy as np

from thinveil.curator.tables.reading import Reading, leaving_out
from thinveil.errors import DataError
from thinveil.language.queries import Codes
from thinveil.language.schema import EXACT, LIMIT, MISSING, Attribute, Grid
from thinveil.language.texts import NUMBER, ticks

NO_VALUE: Final = (
    "no value, and the schema allows none to be missing: set missing = true for this attribute in "
    "the schema"
)
UNLISTED: Final = (
    "a text that is not in the schema's list of values: add it to values, or name it as a missing "
    "text"
)
WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)", re.ASCII)
PLAIN: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
INFINITE_TEXT: Final = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column as it was read."""

    name: str
    texts: Sequence[str | None]  # the distinct raw values; None is a missing one
    index: Codes  # for each record, the place of its value in `texts`

    def row(self, place: int) -> int:
        """Return the number of the first data row, from 1, that holds a distinct value."""
        return int((self.index == place).argmax()) + 1

    def present(self, missing: Collection[str]) -> list[str]:
        """Return the distinct texts that are not missing."""
        return [text for text in self.texts if text is not None and text not in missing]


def encode(column: Column, attribute: Attribute, reading: Reading) -> Codes:
    """Return the code of each record."""
    code, missing = coder(attribute), reading.gaps_of(attribute)
    codes: list[int] = []
    misfit = False
    with localcontext(EXACT):
        try:
            for text in column.texts:  # one by one: on a misfit, their number tells where
                codes.append(MISSING if text is None or text in missing else code(text))  # noqa: PERF401
        except (ValueError, ArithmeticError):
            misfit = True
    if misfit:
        raise _misfit(column, len(codes), attribute)
    return np.array(codes, np.int64)[column.index]


def coder(attribute: Attribute) -> Callable[[str], int]:
    """Return a function from texts to codes; it raises a ValueError or an ArithmeticError."""
    if not isinstance(attribute, Grid) or attribute.kind == "date":
        return attribute.encode
    if attribute.kind == "datetime":
        width = int(attribute.step * 10**6)

        def time_code(text: str) -> int:
            code, rest = divmod(ticks(text), width)
            if rest:
                raise ValueError("not a multiple of the step")
            return code

        return time_code
    step = attribute.step.normalize(EXACT).as_tuple()
    if step.digits == (1,) and isinstance(step.exponent, int) and -20 < step.exponent <= 0:
        return partial(_decimal_code, attribute, -step.exponent)
    return attribute.encode


def _decimal_code(grid: Grid, places: int, text: str) -> int:
    """Code a number on a grid of so many decimals, mostly without any decimal arithmetic."""
    text = text.strip()
    if not PLAIN.fullmatch(text):
        return grid.encode(text)
    whole, _, fraction = text.partition(".")
    if len(fraction) > places:
        fraction = fraction.rstrip("0")
        if len(fraction) > places:
            raise ValueError("not a multiple of the step")
    code = int(whole + fraction.ljust(places, "0"))
    if not -LIMIT < code < LIMIT:
        raise ValueError("too large")
    return code


def too_large(column: Column, grid: Grid, missing: Collection[str]) -> bool:
    """Tell whether a column of numbers has one beyond the end of its grid."""
    return any(_too_large(grid, text) for text in column.present(missing))


def _too_large(grid: Grid, text: str) -> bool:
    """Tell whether a text that did not fit is a number beyond the end of the grid."""
    if grid.kind not in ("integer", "decimal") or not NUMBER.fullmatch(text.strip()):
        return False
    with localcontext(EXACT):
        try:
            return abs(Decimal(text.strip())) >= LIMIT * grid.step
        except ArithmeticError:
            return True


def _misfit(column: Column, place: int, attribute: Attribute) -> DataError:
    """Say that a value does not fit, without showing it."""
    where = f"row {column.row(place)} of column {column.name!r}"
    if not isinstance(attribute, Grid):
        return DataError(f"{where} holds {UNLISTED}")
    if _too_large(attribute, column.texts[place] or ""):
        if attribute.kind == "integer":
            what = f"is too large for a whole number (they end below {LIMIT * attribute.step:f})"
            advice = f"leave the column out ({leaving_out(column.name)})"
        else:
            what = f"is too large for a grid with the step {attribute.step}"
            advice = "round the column to fewer decimals, or give a coarser step in a schema file"
        return DataError(
            f"{where} {what}: {advice}; or make it a category with a schema file, which is "
            "written by  thinveil schema TABLE --output FILE  and used by  thinveil audit TABLE "
            "--schema FILE"
        )
    return DataError(
        f"{where} is not {on_grid(attribute)}: correct the row, change kind or step in the schema, "
        "or name the text as a missing text"
    )


def on_grid(grid: Grid) -> str:
    """Say what values of a grid are like."""
    unit = {"date": " days", "datetime": " seconds"}.get(grid.kind, "")
    return f"of kind {grid.kind} on a grid with the step {grid.step}{unit}"
