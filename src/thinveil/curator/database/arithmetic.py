"""Codes of numbers, dates and times by arithmetic, inside a database: exact, or not at all."""

from __future__ import annotations

from typing import Any, Final

from thinveil.curator.database.fields import PLACES, Field
from thinveil.curator.database.words import (
    absolute,
    below,
    between,
    cases,
    cast,
    double,
    equal,
    exp,
    number,
    remainder,
    rounded,
)
from thinveil.errors import DataError
from thinveil.language.schema import EXACT, LIMIT, Attribute, Grid

WHOLE_FLOAT: Final = 2**53
"""Up to here all whole numbers are floats of eight bytes."""
_FINE: Final = LIMIT // 2**50
"""Codes in steps below this one may be too many for one division of floats."""


def code_of(field: Field, grid: Attribute) -> tuple[Any, Any]:
    """Return whether a value lies on a grid, and its code."""
    assert isinstance(grid, Grid)
    timed = grid.kind in ("date", "datetime", "time")
    if timed != (field.kind in ("date", "time", "clock")):
        raise mismatch(field, grid)
    if timed:
        if (grid.kind == "time") != (field.kind == "clock"):
            raise mismatch(field, grid)
        unit = (86_400 if grid.kind == "date" else 1) * 10**6
        return _divided(exp.true(), field.value, int(grid.step * unit))
    step = grid.step.normalize(EXACT).as_tuple()
    digits, exponent = int("".join(map(str, step.digits))), step.exponent
    assert isinstance(exponent, int)
    places, width = max(0, -exponent), digits * 10 ** max(0, exponent)
    if places > PLACES or width >= LIMIT:
        raise DataError(
            f"column {grid.name!r}: a step of {grid.step} cannot be counted exactly in a database; "
            f"use one of at most {PLACES} decimals"
        )
    most = (LIMIT - 1) // 10**places
    value = field.value
    if field.kind == "integer":
        inside = between(value, -most, most)
        scaled = value if places == 0 and width == 1 else cases((inside, value)) * 10**places
        return _divided(inside, exp.paren(scaled), width)
    if field.kind == "decimal":
        whole, valid = below(value), equal(rounded(value, min(places, field.places)), value)
        if field.exceeds(places):
            inside = between(whole, -most, most)
            whole, valid = cases((inside, whole)), inside.and_(valid)
        scaled = cast(whole, "bigint")
        if places:
            rest = rounded(cast(value - below(value), "double") * double(10**places))
            scaled = scaled * 10**places + cast(rest, "bigint")
        return _divided(exp.paren(valid), exp.paren(scaled), width)
    return _divided(*float_at(field, places), width)


def float_at(field: Field, places: int) -> tuple[Any, Any]:
    """Return whether a float is a number of so many decimals, and that many times ten of it.

    It is, where the nearest such number is read as the same float again.
    """
    value = cast(field.value, "double")
    near = exp.paren(absolute(value) <= double(WHOLE_FLOAT / 10**places))
    nearest = cases((near, value), otherwise=double(0)) * double(10**places)
    scaled = cast(rounded(nearest), "bigint")
    again = exp.paren(cast(scaled, "double") / double(10**places))
    same = equal(cast(again, "float"), field.value) if field.single else equal(again, value)
    return exp.paren(near.and_(same)), scaled


def _divided(valid: Any, scaled: Any, width: int) -> tuple[Any, Any]:
    """Return codes in steps of a width; what is no multiple of it is not valid."""
    if width == 1:
        return valid, scaled
    code = _quotient(scaled, width)
    if width < _FINE:  # what is left of a large number is small
        code = exp.paren(code + _quotient(exp.paren(scaled - code * width), width))
    return exp.paren(valid.and_(equal(remainder(scaled, width), number(0)))), code


def _quotient(scaled: Any, width: int) -> Any:
    """Return about how often a width goes into a whole number: exactly, up to 2^50 times."""
    return cast(rounded(exp.paren(cast(scaled, "double") / double(width))), "bigint")


def mismatch(field: Field, attribute: Attribute) -> DataError:
    """Say that a column does not hold what the schema says."""
    return DataError(
        f"column {field.name!r} holds values of type {field.kind} and the schema says "
        f"{attribute.kind}: change the schema, or convert the column (in a view, say)"
    )
