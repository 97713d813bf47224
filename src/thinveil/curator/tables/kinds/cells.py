"""Typed cells as the texts that a CSV file would hold, and how many of them are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time, timedelta
from typing import Final

import numpy as np

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.kinds.limits import most_unpacked

_VALUE: Final = 40
"""The bytes of a cell that is read as a value of Python: 32, and its place in a list."""


def most_cells() -> int:
    """Return how many cells of a table are read as Python's values: 100 million of 4 GiB."""
    most = most_unpacked() // _VALUE
    round_figure: int = 10 ** max(len(str(most)) - 1, 0)
    return most - most % round_figure


def too_many(most: int) -> str:
    """Say that a table has more cells than are read."""
    return (
        f"it has more than {most:,} cells, which this kind of file is not read with: save it as "
        "Parquet where it was made, and give that"
    )


def text_of(value: object) -> str | None:
    """Write a cell: whole numbers without a point, times as ISO 8601 does; None is missing.

    >>> [text_of(each) for each in (2.0, 0.1, True, date(2024, 12, 31), timedelta(hours=30))]
    ['2', '0.1', 'true', '2024-12-31', '30:00:00']
    """
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | np.floating):
        return without_point(float(value) if isinstance(value, float) else value)
    if isinstance(value, date | time):
        return value.isoformat()
    return _clock(value) if isinstance(value, timedelta) else str(value).replace("\0", "")


def without_point(value: object) -> str:
    """Write a float; a whole one without a point."""
    return str(value).removesuffix(".0")


def _clock(span: timedelta) -> str:
    """Write a length of time, which may have more than a day's hours."""
    minutes, seconds = divmod(abs(span), timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    rest = f"{seconds.seconds:02}" + (f".{seconds.microseconds:06}" if seconds.microseconds else "")
    return f"{'-' if span < timedelta() else ''}{hours:02}:{minutes:02}:{rest}"


def column_of(name: str, values: Sequence[object], *, single: bool = False) -> Column:
    """Return a column of values; `single` says that its floats have single precision."""
    places: dict[object, int] = {}
    index = np.fromiter(
        (places.setdefault(value, len(places)) for value in values), np.int64, len(values)
    )
    written = [
        text_of(np.float32(each) if single and isinstance(each, float) else each) for each in places
    ]
    return Column(name, written, index)
