"""The grid that a column of numbers gets: exact where any grid is, else rounded down and said.

Tried in this order: the decimals as they are written; the same without the noise of floats, read
to 15 significant digits; doubles, one by one; decimals that are rounded down to a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal, localcontext
from math import isfinite
from typing import Final, NamedTuple

from thinveil.curator.tables.reading import leaving_out
from thinveil.errors import DataError
from thinveil.language.numbers import double_codes
from thinveil.language.numbers.digits import SURE, Digits, digits_of, held, without_noise
from thinveil.language.schema import EXACT, LIMIT, Attribute, Grid, Kind, Schema
from thinveil.language.texts import NUMBER, in_digits, quoted

_FIT: Final = 18  # digits that every code has room for: 10^18 < 2^62
_FAR: Final = 400  # powers of ten beyond which no column is read; the smallest double has 324
_SAFE: Final = 300  # powers of ten within which doubles hold 15 digits: all are normal there
_MOST: Final = Decimal(2**1023)  # between the sizes of doubles that one grid holds


_AS_ASKED: Final = "rounded down to steps of {step}, as asked"


class Chosen(NamedTuple):
    """A grid for a column, and a sentence for whatever it does not keep, without its name."""

    grid: Grid
    assumed: tuple[str, ...] = ()


def decimal_grid(name: str, exponent: int, gaps: bool, rounded: bool = False) -> Grid:
    """Return the grid whose step is ten to a power, not above 1 unless it is rounded."""
    step = Decimal(10**exponent) if 0 < exponent < _FIT else Decimal((0, (1,), exponent))
    return _stepped(name, step, gaps, rounded)


def _stepped(name: str, step: Decimal, gaps: bool, rounded: bool) -> Grid:
    with localcontext(EXACT):
        kind: Kind = "integer" if step == step.to_integral_value() else "decimal"
    return Grid(name, kind, step, missing=gaps, rounded=rounded)


def grid_of_numbers(
    name: str, texts: Collection[str], gaps: bool, wanted: str | None = None
) -> Chosen:
    """Return the grid for the distinct numbers of a column.

    Args:
        name: The column's name.
        texts: Plain numbers, without spaces around them.
        gaps: Whether values are missing, too.
        wanted: The step of a coarser grid, which a column of full-precision floats gets instead.

    Raises:
        DataError: The numbers are beyond every grid, or the step that is wanted is too fine.
    """
    if (places := _few_places(texts)) is not None:
        return Chosen(decimal_grid(name, -places, gaps))
    try:
        numbers = dict(zip(texts, map(digits_of, texts), strict=True))
    except ValueError:  # an exponent of thousands of digits
        raise _beyond(name) from None
    written = set(numbers.values())
    if abs(_top(written)) > _FAR:
        raise _beyond(name)
    chosen = _noiseless(name, numbers, gaps)
    if chosen is None and (exponent := _fitting(written)) is not None:
        chosen = Chosen(decimal_grid(name, exponent, gaps))
        if max(len(each.digits) for each in written) <= SURE:
            return chosen  # as nearly always
    step = _step(wanted)
    if step is not None and (chosen is None or not _spans(chosen.grid, step)):
        return _as_wanted(name, written, gaps, step)
    return chosen or _doubles(name, numbers, gaps) or _rounded(name, written, gaps)


def _few_places(texts: Collection[str]) -> int | None:
    """Return the most decimals of some short and plain numbers, quickly; None for others."""
    if max(map(len, texts)) > SURE or any("e" in text or "E" in text for text in texts):
        return None
    halves = [text.partition(".") for text in texts]
    places = max(len(fraction.rstrip("0")) for _, _, fraction in halves)
    return places if max(len(whole) for whole, _, _ in halves) + places <= _FIT else None


def _top(written: Collection[Digits]) -> int:
    """Return the power of ten just above all numbers."""
    return max((each.leading for each in written if each.digits), default=0)


def _fitting(written: Collection[Digits]) -> int | None:
    """Return the power of ten that all numbers are multiples of, if codes have room for it."""
    exponent = min(0, *(each.exponent for each in written), 0)
    return exponent if _room(written, exponent) else None


def _room(written: Collection[Digits], exponent: int) -> bool:
    """Tell whether all numbers have codes on a grid of ten to a power."""
    top = _top(written)
    if top - exponent != _FIT + 1:
        return top - exponent <= _FIT
    longest = (each.around(exponent) for each in written if each.leading == top)
    return all(low > -LIMIT and high < LIMIT for low, high in longest)


def _noiseless(name: str, numbers: Mapping[str, Digits], gaps: bool) -> Chosen | None:
    """Return the grid of numbers that only the noise of floats makes long, if all such are."""
    read = set()
    noisy = 0
    for text, number in numbers.items():
        if len(number.digits) <= SURE or number.exponent >= 0:
            read.add(number)
            continue
        noisy += 1
        short = digits_of(str(without_noise(Decimal(text))))
        if len(short.digits) > SURE:
            return None
        read.add(short)
    exponent = _fitting(read) if noisy and len(read) == len(set(numbers.values())) else None
    if exponent is None:
        return None
    return Chosen(
        decimal_grid(name, exponent, gaps),
        (
            f"read to {SURE} significant digits, which tells all values apart; kind = "
            '"double" in a schema file keeps what floats have beyond',
        ),
    )


def _doubles(name: str, numbers: Mapping[str, Digits], gaps: bool) -> Chosen | None:
    """Return a grid of doubles, if each number is what a double holds."""
    low, high = double_codes.GREATEST, 0.0
    for text, number in numbers.items():
        double = float(text)
        if not number.digits:
            continue
        near = len(number.digits) <= SURE and abs(number.leading) < _SAFE
        if not (near or repr(double) == text or held(Decimal(text), double)):
            return None
        low, high = min(low, abs(double)), max(high, abs(double))
    least = Decimal(low).adjusted()
    usual, other = double_codes.SMALLEST, Decimal((0, (1,), least))
    if not float(other):
        other = Decimal("5e-324")
    for step in (usual, other):
        if float(step) <= low and double_codes.around(high, float(step))[0] < LIMIT:
            return Chosen(Grid(name, "double", step, missing=gaps))
    step = Decimal((0, (1,), (Decimal(high) / _MOST).adjusted() + 1))
    return Chosen(
        Grid(name, "double", step, missing=gaps, rounded=True),
        (
            "doubles of more sizes than one grid holds, so that those between 0 and "
            f"{in_digits(step)} in size are rounded down",
        ),
    )


def _rounded(name: str, written: Collection[Digits], gaps: bool) -> Chosen:
    """Return the finest grid of decimals that codes have room for; values are rounded down."""
    top = _top(written)
    exponent = next(each for each in (top - _FIT - 1, top - _FIT) if _room(written, each))
    grid = decimal_grid(name, exponent, gaps, rounded=True)
    return Chosen(
        grid,
        (
            f"rounded down to steps of {in_digits(grid.step)}, as neither a grid nor doubles have "
            "room for all digits (--precision COLUMN=STEP takes another step)",
        ),
    )


# ---- a step that somebody wants


def _step(wanted: str | None) -> Decimal | None:
    """Return a step that is a number above zero; what is none is told where steps are checked."""
    try:
        step = EXACT.create_decimal((wanted or "").strip())
    except ArithmeticError:
        return None
    return step if step.is_finite() and step > 0 else None


def _spans(grid: Grid, step: Decimal) -> bool:
    """Tell whether a step is some whole number of steps of a grid, so that an attack finds it."""
    try:
        width = EXACT.divide(step, grid.step)
    except ArithmeticError:
        return False
    return width <= LIMIT // 2 and width == width.to_integral_value()


def _as_wanted(name: str, written: Collection[Digits], gaps: bool, step: Decimal) -> Chosen:
    grid = _stepped(name, step, gaps, rounded=True)
    top = _top(written)
    with localcontext(EXACT):
        sizes = (
            Decimal(f"{each.digits}E{each.exponent}")
            for each in written
            if each.digits and each.leading == top
        )
        fine = max(sizes, default=Decimal(0)) >= (LIMIT - 1) * step
    if fine:
        raise DataError(
            f"column {name!r}: steps of {step} are too fine to count its values in; give "
            f"{_option(name)} a coarser one"
        )
    return Chosen(grid, (_AS_ASKED.format(step=in_digits(step)),))


def on_steps(schema: Schema, steps: Mapping[str, str]) -> tuple[Schema, tuple[str, ...]]:
    """Return a schema whose doubles are on the grids that somebody wants, and what changed."""
    attributes = [_regridded(each, _step(steps.get(each.name))) for each in schema]
    changed = [old.name for old, new in zip(schema, attributes, strict=True) if old != new]
    told = (f"column {each!r}: {_AS_ASKED.format(step=steps[each])}" for each in changed)
    return (Schema(tuple(attributes)), tuple(told)) if changed else (schema, ())


def _regridded(attribute: Attribute, step: Decimal | None) -> Attribute:
    if step is None or not isinstance(attribute, Grid) or attribute.kind != "double":
        return attribute
    grid = _stepped(attribute.name, step, attribute.missing, rounded=True)
    grid = replace(grid, format=attribute.format)
    if attribute.lower is None or attribute.upper is None:
        return grid
    ends = (attribute.lower, attribute.upper)
    lower, upper = (grid.encode(attribute.decode(code)) for code in ends)
    return replace(grid, lower=lower, upper=upper)


# ---- codes


def number_coder(grid: Grid) -> Callable[[str], int]:
    """Return a quick function from texts to codes of doubles or of rounded numbers.

    It gives what `Grid.encode` gives, and raises a ValueError or an ArithmeticError as that does.
    """
    if grid.kind == "double":
        return _double_coder(grid)
    step = grid.step.normalize(EXACT).as_tuple()
    exponent = step.exponent
    if not grid.rounded or step.digits != (1,) or not isinstance(exponent, int):
        return grid.encode

    def code(text: str) -> int:
        text = text.strip()
        if not NUMBER.fullmatch(text):
            raise ValueError("not a number")
        low, _ = digits_of(text).around(exponent)
        if not -LIMIT < low < LIMIT:
            raise ValueError("too large")
        return low

    return code


def _double_coder(grid: Grid) -> Callable[[str], int]:
    smallest = float(grid.step)

    def code(text: str) -> int:
        double = float(text)
        shortest = repr(double)
        if isfinite(double) and (shortest == text or shortest == text + ".0"):
            low, high = double_codes.around(double, smallest)
            if low == high and -LIMIT < low < LIMIT:
                return low
        return grid.encode(text)

    return code


def _option(name: str) -> str:
    return f"--precision {quoted(f'{name}=STEP')}"


def _beyond(name: str) -> DataError:
    return DataError(
        f"column {name!r} has numbers beyond 10^{_FAR}, or none above 10^-{_FAR}: leave it out "
        f"({leaving_out(name)}), or make it a category with a schema file"
    )
