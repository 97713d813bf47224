"""Public descriptions of a table: which values each attribute can take.

Every value has a whole-number *code*. On a grid the code counts steps from zero
(cents, days since 1970-01-01, ...); a category's code is its place in the list; doubles are
counted one by one, in order.
A missing value has a code of its own, below all others.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import ClassVar, Final, Literal

from thinveil.errors import SchemaError
from thinveil.language.formats import format_of
from thinveil.language.numbers import double_codes
from thinveil.language.numbers.digits import held, without_noise
from thinveil.language.texts import EPOCH, MICROSECOND, NUMBER, clock, day, in_digits, ticks

MISSING: Final = -(2**63)
"""The code of a missing value, and the lowest range end: it includes missing."""
LOWEST: Final = MISSING + 1
"""The lowest range end that leaves missing values out."""
INFINITE: Final = 2**63 - 1
"""The range end above every value."""
LIMIT: Final = 2**62
"""Codes of values lie strictly between -LIMIT and LIMIT."""

Kind = Literal["integer", "decimal", "double", "date", "datetime", "time"]
KINDS: Final[tuple[Kind, ...]] = ("integer", "decimal", "double", "date", "datetime", "time")
NUMBERS: Final = ("integer", "decimal", "double")
"""The kinds that are numbers."""
DAY_LONG: Final = 86_400
"""The seconds of a day; times of the day count from midnight."""

UNBOUNDED: Final = "bounds not public"
"""What is said of an attribute whose bounds nobody knows before they are asked for."""
_GAPS: Final = ", may be missing"
_USUAL_STEP: Final = Decimal(1)
_FARTHEST: Final = 400
"""Powers of ten between which steps lie: beyond all doubles, and quick to compute with exactly."""

Value = int | float | Decimal | date | datetime | time | str | None

EXACT: Final = decimal.Context(
    prec=500,
    Emin=-99_999,
    Emax=99_999,
    traps=[decimal.DivisionByZero, decimal.Inexact, decimal.InvalidOperation, decimal.Overflow],
)
"""Arithmetic that raises where it would have to round."""


def _number(value: object) -> Decimal:
    """Read a number exactly, from text or from a Python number."""
    text = str(value).strip()
    if not NUMBER.fullmatch(text):
        raise ValueError("not a number")
    try:
        return EXACT.create_decimal(text)
    except DecimalException:
        raise ValueError("a number of too many digits") from None


@dataclass(frozen=True, slots=True)
class Grid:
    """An ordered attribute: every value is a whole multiple of a step, or a double.

    Args:
        name: The column's name.
        kind: What the values are; dates count in days, datetimes and times in seconds.
        step: The width of one step, in the units of the kind; of doubles, the smallest size above
            zero (`numbers.double_codes.SMALLEST` unless a column needs another).
        lower: Smallest code that can occur, or None where that is not public.
        upper: Largest code that can occur, or None where that is not public.
        missing: Whether values may be missing.
        format: How files write the values, where that is not plain; `curator.tables` reads it.
        rounded: Whether values between two steps are rounded down for the audit.

    >>> salary = Grid("salary", "decimal", Decimal("0.01"))
    >>> salary.encode("12.34"), salary.decode(1234)
    (1234, Decimal('12.34'))
    """

    name: str
    kind: Kind = "integer"
    step: Decimal = _USUAL_STEP
    lower: int | None = None
    upper: int | None = None
    missing: bool = False
    format: str = field(default="", repr=False)  # fingerprints of old transcripts hold the rest
    rounded: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind == "double" and self.step is _USUAL_STEP:
            object.__setattr__(self, "step", double_codes.SMALLEST)
        for fault in self._faults():
            raise SchemaError(f"attribute {self.name!r}: {fault}")

    def _faults(self) -> Iterator[str]:
        if self.kind not in KINDS:
            yield f"unknown kind {self.kind!r}; use category, {', '.join(KINDS)}"
        if not self.step.is_finite() or self.step <= 0:
            yield "the step must be above zero"
        if abs(self.step.adjusted()) > _FARTHEST or len(self.step.as_tuple().digits) > EXACT.prec:
            yield f"the step must lie between 1e-{_FARTHEST} and 1e{_FARTHEST}"
        if self.kind == "double" and not 0 < float(self.step) < math.inf:
            yield "the step of kind double, its smallest size, must be a double above zero"
        if self.kind in ("integer", "date") and self.step != self.step.to_integral_value():
            yield f"the step of kind {self.kind} must be a whole number"
        if self.kind in ("datetime", "time") and (self.step * 10**6) % 1:
            yield "the step must be whole microseconds"
        if (self.lower is None) != (self.upper is None):
            yield "give both bounds or none"
        if self.lower is not None and self.upper is not None:
            if self.lower > self.upper:
                yield "the lower bound is above the upper"
            if self.lower <= -LIMIT or self.upper >= LIMIT:
                yield "bounds beyond 2^62 steps; use a coarser step"
        if self.format and self.kind in KINDS:
            yield from self._faults_of_format()

    def _faults_of_format(self) -> Iterator[str]:
        try:
            form = format_of(self.kind, self.format)
        except ValueError as error:
            yield f"the format cannot be used: {error}"
        else:
            if form.limited and (self.kind == "double" or self.rounded):
                yield "limits such as <5 need kind decimal, and values that are not rounded"

    @property
    def size(self) -> int | None:
        """How many values are possible, missing included; None where bounds are not public."""
        if self.lower is None or self.upper is None:
            return None
        return self.upper - self.lower + 1 + self.missing

    def encode(self, value: object) -> int:
        """Return the code of a value given as text or as a Python object.

        Raises:
            ValueError: The value is not of this kind, not on the grid, or too large.
        """
        low, high = self.around(value)
        if low != high and not self.rounded:
            if self.kind == "double":
                raise ValueError("not a double, or one too close to zero")
            raise ValueError(f"not a multiple of the step {in_digits(self.step)}")
        return low

    def around(self, value: object) -> tuple[int, int]:
        """Return the codes next to a value, below and above; the same one if it is on the grid.

        A number that only the noise of floats keeps off the grid is on it: 0.30000000000000004
        is 0.3 on a grid of 0.1.
        """
        if self.kind == "double":
            return self._around_double(_number(value))
        try:
            units = self._units(value)
        except OverflowError:
            raise ValueError("too far from 1970") from None
        if abs(units) >= LIMIT * self.step:
            raise ValueError("too large for a grid of 2^62 steps")
        steps = Fraction(units) / Fraction(self.step)
        if self.kind in NUMBERS and steps.denominator > 1 and not self.rounded:
            steps = Fraction(without_noise(units)) / Fraction(self.step)
        return math.floor(steps), math.ceil(steps)

    def _around_double(self, number: Decimal) -> tuple[int, int]:
        """Return the codes next to a number; on a rounded grid, of the nearest double."""
        near, smallest = float(number), float(self.step)
        below = above = near
        if not self.rounded and not held(number, near):
            exact = Decimal(near) if math.isfinite(near) else Decimal("Infinity").copy_sign(number)
            below = near if exact < number else math.nextafter(near, -math.inf)
            above = near if exact > number else math.nextafter(near, math.inf)
        if math.isinf(below) or math.isinf(above):
            raise ValueError("too large for a double")
        low = double_codes.around(below, smallest)[0]
        high = double_codes.around(above, smallest)[1]
        if low <= -LIMIT or high >= LIMIT:
            raise ValueError(f"too large for doubles whose smallest size is {self.step}")
        return low, high

    def _units(self, value: object) -> Decimal:
        if self.kind in ("integer", "decimal"):
            return _number(value)
        if self.kind == "date":
            return Decimal((day(value) - EPOCH.date()).days)
        return Decimal(clock(value) if self.kind == "time" else ticks(value)) / 10**6

    def decode(self, code: int) -> Value:
        """Return the value that a code stands for: the low end of its step."""
        if code == MISSING:
            return None
        if self.kind == "double":
            double = double_codes.value_of(code, float(self.step))
            return double if math.isfinite(double) else "a number beyond all doubles"
        units = EXACT.multiply(Decimal(code), self.step)
        try:
            if self.kind == "integer":
                return int(units)
            if self.kind == "date":
                return EPOCH.date() + timedelta(days=int(units))
            if self.kind == "datetime":
                return EPOCH + int(units * 10**6) * MICROSECOND
            if self.kind == "time":
                if not 0 <= units < DAY_LONG:
                    return f"{units} seconds from 00:00:00"
                return (EPOCH + int(units * 10**6) * MICROSECOND).time()
        except OverflowError:
            return f"{units} {'days' if self.kind == 'date' else 'seconds'} from 1970-01-01"
        return units

    def widths(self, precision: object) -> int:
        """Return how many steps a coarser precision spans, a whole multiple of the step."""
        try:
            wanted = _number(precision)
            width = EXACT.divide(wanted, self.step)
        except (ValueError, DecimalException):
            wanted = width = Decimal(0)
        if wanted > 0 and self.kind == "double":
            raise SchemaError(
                f"precision of {self.name!r}: doubles have no even steps; read the column on a "
                f'grid: kind = "decimal", step = "{precision}" and rounded = true in its schema, '
                f"or steps={{{self.name!r}: '{precision}'}} where Python loads it"
            )
        if not 0 < width <= LIMIT // 2 or width != int(width):
            multiple = f", a multiple of its step {self.step}, and less than 2^61 steps"
            raise SchemaError(
                f"precision of {self.name!r}: must be a number above zero"
                + multiple * (self.kind != "double")
            )
        return int(width)

    def describe(self) -> str:
        """Say in a phrase what is public about this attribute."""
        unit = {"date": " day", "datetime": " second", "time": " second"}.get(self.kind, "")
        unit += "s" if unit and self.step != 1 else ""
        bounds = UNBOUNDED
        if self.lower is not None and self.upper is not None:
            bounds = f"from {self.decode(self.lower)} to {self.decode(self.upper)}"
        step = f", step {in_digits(self.step)}{unit}"
        if self.kind == "double":
            usual = self.step == double_codes.SMALLEST
            step = "" if usual else f", none between 0 and {self.step} in size"
        down = ", rounded down" * self.rounded
        return f"{self.kind}{step}{down}, {bounds}{_GAPS * self.missing}"


@dataclass(frozen=True, slots=True)
class Categories:
    """An attribute whose values come from a public list; codes follow the list."""

    kind: ClassVar[Literal["category"]] = "category"
    lower: ClassVar[int] = 0

    name: str
    values: tuple[str, ...]
    missing: bool = False
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codes = {value: code for code, value in enumerate(self.values)}
        if len(codes) != len(self.values):
            raise SchemaError(f"attribute {self.name!r}: a category stands twice in the list")
        if not self.values and not self.missing:
            raise SchemaError(f"attribute {self.name!r}: no categories, and none may be missing")
        object.__setattr__(self, "_codes", codes)

    @property
    def upper(self) -> int:
        """The largest code; below `lower` where every value is missing."""
        return len(self.values) - 1

    @property
    def size(self) -> int:
        """How many values are possible, missing included."""
        return len(self.values) + self.missing

    def encode(self, value: object) -> int:
        """Return the code of a category, or raise a ValueError if it is not in the list."""
        try:
            return self._codes[str(value)]
        except KeyError:
            raise ValueError("not one of the public categories") from None

    def around(self, value: object) -> tuple[int, int]:
        """Return the code of a category, twice: categories have no values between them."""
        return self.encode(value), self.encode(value)

    def decode(self, code: int) -> Value:
        """Return the category that a code stands for."""
        if code == MISSING:
            return None
        return self.values[code] if 0 <= code < len(self.values) else f"category {code}"

    def widths(self, precision: object) -> int:
        """Categories have no coarser precision."""
        raise SchemaError(f"precision of {self.name!r}: categories have none")

    def describe(self) -> str:
        """Say in a phrase what is public about this attribute."""
        values = "value" if len(self.values) == 1 else "values"
        return f"category, {len(self.values)} possible {values}{_GAPS * self.missing}"


Attribute = Grid | Categories


@dataclass(frozen=True, slots=True)
class Schema:
    """The public attributes of a table, in order."""

    attributes: tuple[Attribute, ...]
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SchemaError("a schema needs at least one attribute")
        places: dict[str, int] = {}
        for place, attribute in enumerate(self.attributes):
            if not attribute.name:
                raise SchemaError("an attribute has no name")
            if attribute.name in places:
                raise SchemaError(f"the name {attribute.name!r} stands twice")
            places[attribute.name] = place
        object.__setattr__(self, "_places", places)

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __getitem__(self, column: int) -> Attribute:
        return self.attributes[column]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(self._places)

    def column(self, name: str) -> int:
        """Return the position of an attribute, or raise a SchemaError if there is none."""
        if name in self._places:
            return self._places[name]
        known = ", ".join(repr(other) for other in self.names[:20])
        raise SchemaError(f"there is no column {name!r}; the columns are {known}")
