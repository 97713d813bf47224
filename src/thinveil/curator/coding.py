"""From texts to codes, distinct value by distinct value.

Every reader hands over columns in the same form: the distinct raw texts, and for each
record the place of its text among them. What follows looks at the distinct texts only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import (
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from typing import Final

import numpy as np

from thinveil.errors import DataError
from thinveil.language.queries import Codes
from thinveil.language.schema import LIMIT, MISSING, Attribute, Grid

MISSING_TEXTS: Final = frozenset({"", "NULL", "null", "NaN", "nan"})
"""The texts that always mean a missing value."""

PLAIN: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
INFINITE_TEXT: Final = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?", re.ASCII
)

EXACT: Final = Context(
    prec=500, Emin=-99_999, Emax=99_999, traps=[Inexact, InvalidOperation, Overflow, DivisionByZero]
)
"""Arithmetic that raises where it would have to round."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column as it was read.

    Args:
        name: The column's name.
        texts: The distinct raw values as texts; None is a missing value.
        index: For each record, the place of its value in `texts`.
    """

    name: str
    texts: Sequence[str | None]
    index: Codes

    def row(self, place: int) -> int:
        """Return the number of the first data row, from 1, that holds a distinct value."""
        return int((self.index == place).argmax()) + 1

    def present(self, missing: Collection[str]) -> list[str]:
        """Return the distinct texts that are not missing."""
        return [text for text in self.texts if text is not None and text not in missing]


def day(text: str) -> date:
    """Read an ISO date, or the midnight that an ISO datetime names.

    Raises:
        ValueError: The text is neither.
    """
    text = text.strip()
    if DAY.fullmatch(text):
        return date.fromisoformat(text)
    at = moment(text)
    if at != datetime(at.year, at.month, at.day):
        raise ValueError("not a whole day")
    return at.date()


def moment(text: str) -> datetime:
    """Read an ISO date or datetime; one with an offset is turned into UTC.

    Raises:
        ValueError: The text is neither.
    """
    text = text.strip()
    if not (DAY.fullmatch(text) or MOMENT.fullmatch(text)):
        raise ValueError("not an ISO datetime")
    at = datetime.fromisoformat(text)
    offset = at.utcoffset()
    return at if offset is None else at.replace(tzinfo=None) - offset


def encode(column: Column, attribute: Attribute, missing: Collection[str]) -> Codes:
    """Return the code of each record.

    Raises:
        DataError: A value does not fit the attribute; names the column and the first row.
    """
    codes = np.empty(len(column.texts), np.int64)
    coder = _Coder(attribute)
    with localcontext(EXACT):
        for place, text in enumerate(column.texts):
            if text is None or text in missing:
                codes[place] = MISSING
                continue
            try:
                codes[place] = coder.code(text)
            except (ValueError, ArithmeticError):
                pass
            else:
                continue
            raise _misfit(column, place, attribute, coder.too_large(text))
    return codes[column.index]


class _Coder:
    """Codes texts on one attribute; most numbers without any decimal arithmetic."""

    __slots__ = ("_attribute", "_kind", "_places")

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        self._kind = attribute.kind
        self._places: int | None = None
        if isinstance(attribute, Grid) and attribute.kind in ("integer", "decimal"):
            step = attribute.step.normalize(EXACT).as_tuple()
            if step.digits == (1,) and isinstance(step.exponent, int) and -20 < step.exponent <= 0:
                self._places = -step.exponent

    def code(self, text: str) -> int:
        """Return the code of a text.

        Raises:
            ValueError: The text does not fit (some are an ArithmeticError instead).
        """
        if self._kind == "category":
            return self._attribute.encode(text)
        if self._kind == "date":
            return self._attribute.encode(day(text))
        if self._kind == "datetime":
            return self._attribute.encode(moment(text))
        text = text.strip()
        places = self._places
        if places is None or not PLAIN.fullmatch(text):
            if not NUMBER.fullmatch(text):
                raise ValueError("not a number")
            return self._attribute.encode(text)
        whole, _, fraction = text.partition(".")
        if len(fraction) > places:
            fraction = fraction.rstrip("0")
            if len(fraction) > places:
                raise ValueError("not a multiple of the step")
        code = int(whole + fraction.ljust(places, "0"))
        if not -LIMIT < code < LIMIT:
            raise ValueError("too large")
        return code

    def too_large(self, text: str) -> bool:
        """Tell whether a number that did not fit is on the grid but beyond its end."""
        if not isinstance(self._attribute, Grid) or not NUMBER.fullmatch(text.strip()):
            return False
        if self._kind not in ("integer", "decimal"):
            return False
        try:
            return abs(Decimal(text.strip())) >= LIMIT * self._attribute.step
        except ArithmeticError:
            return True


def _misfit(column: Column, place: int, attribute: Attribute, too_large: bool) -> DataError:
    """Say that a value does not fit, without showing it."""
    where = f"row {column.row(place)} of column {column.name!r}"
    if not isinstance(attribute, Grid):
        return DataError(
            f"{where} holds a text that is not in the schema's list of values: add it to "
            "values, or name it as a missing text"
        )
    if too_large:
        return DataError(
            f"{where} is too large for a grid with the step {attribute.step}: round the column "
            'to fewer decimals, or give a coarser step or kind = "category" in a schema file'
        )
    unit = {"date": " days", "datetime": " seconds"}.get(attribute.kind, "")
    return DataError(
        f"{where} is not of kind {attribute.kind} on a grid with the step {attribute.step}{unit}: "
        "correct the row, change kind or step in the schema, or name the text as a missing text"
    )
