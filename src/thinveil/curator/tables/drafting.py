"""A first schema for a table, to be checked and edited by its owner.

The bounds of a draft are roomy: rounded outwards to one significant digit, to a power of ten
(doubles), or to whole years, so that a published draft does not give the exact extremes away.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any

from thinveil.curator.database.table import DatabaseTable
from thinveil.curator.tables.coding import encode
from thinveil.curator.tables.files import read_columns, reading_of
from thinveil.curator.tables.inferring import infer
from thinveil.curator.tables.reading import Reading, Remarks
from thinveil.language.numbers import double_codes
from thinveil.language.queries import Codes
from thinveil.language.schema import DAY_LONG, EXACT, LIMIT, MISSING, Attribute, Grid, Schema


def draft_schema(source: object, **how: Any) -> Schema:
    """Return a schema that fits a table, with roomy bounds for editing.

    All arguments are those of `thinveil.load`.

    Raises:
        DataError: The table cannot be read.
    """
    return drafted(source, reading_of(how))[0]


def drafted(source: object, reading: Reading) -> tuple[Schema, Remarks]:
    """Return a draft, and what was assumed when the table was read."""
    raw = read_columns(source, reading)
    inferred = infer(raw.columns, reading)
    attributes: list[Attribute] = []
    for column, attribute in zip(raw.columns, inferred.schema, strict=True):
        if isinstance(attribute, Grid):
            attribute = with_roomy_bounds(attribute, encode(column, attribute, reading))
        attributes.append(attribute)
    schema = Schema(tuple(attributes))
    remarks = Remarks(raw.assumed).and_also(inferred.remarks(len(raw.columns[0].index)))
    return schema, remarks


def draft_of_database(table: DatabaseTable) -> Schema:
    """Return a schema that fits a table in a database, with roomy bounds for editing.

    Only the extremes of each column leave the database.
    """
    return Schema(
        tuple(
            with_roomy_bounds(attribute, codes) if isinstance(attribute, Grid) else attribute
            for attribute, codes in zip(table.schema, table.extremes(), strict=True)
        )
    )


def with_roomy_bounds(grid: Grid, codes: Codes) -> Grid:
    """Return a grid with bounds around all codes, rounded outwards.

    >>> import numpy as np
    >>> with_roomy_bounds(Grid("age"), np.array([18, 95])).describe()
    'integer, step 1, from 0 to 100'
    """
    present = codes[codes != MISSING]
    if not len(present):
        return grid
    low, high = int(present.min()), int(present.max())
    with localcontext(EXACT):
        if grid.kind in ("integer", "decimal"):
            # One significant digit; zero is always inside.
            upper = _roomy(grid, high) if high > 0 or low == 0 else 0
            lower = -_roomy(grid, -low) if low < 0 else 0
        elif grid.kind == "time":
            lower, upper = 0, int(DAY_LONG / grid.step) - 1  # a day is public
        elif grid.kind == "double":
            lower, upper = -_power_of_ten(grid, -low), _power_of_ten(grid, high)
        else:
            lower, upper = _whole_years(grid, low, high)
    limit = LIMIT - 1
    return replace(grid, lower=max(lower, -limit), upper=min(upper, limit))


def _roomy(grid: Grid, code: int) -> int:
    """Round a size upwards to one significant digit, and to no less than ten steps.

    Below ten steps one digit would be the exact extreme.
    """
    size = max(code, 10) * grid.step
    unit = Decimal((0, (1,), size.adjusted()))
    return int((size / unit).to_integral_value(ROUND_CEILING) * unit / grid.step)


def _power_of_ten(grid: Grid, code: int) -> int:
    """Return the code of the next power of ten above a double; 0 where none is above zero."""
    size = double_codes.value_of(code, float(grid.step))
    above = float(Decimal((0, (1,), Decimal(size).adjusted() + 1)))
    top = min(above, double_codes.GREATEST)
    return double_codes.around(top, float(grid.step))[0] if code > 0 else 0


def _whole_years(grid: Grid, low: int, high: int) -> tuple[int, int]:
    """Round times outwards to the start and the end of a year."""
    first, last = grid.decode(low), grid.decode(high)
    if not isinstance(first, date) or not isinstance(last, date):
        return low, high
    if grid.kind == "date":
        return grid.encode(date(first.year, 1, 1)), grid.encode(date(last.year, 12, 31))
    last_day = grid.encode(datetime(last.year, 12, 31))
    return grid.encode(datetime(first.year, 1, 1)), last_day + int(86_400 / grid.step) - 1
