"""The shapes of cells: what they fix to single or coarse values, and what they limit otherwise.

All cells of one shape are counted in one go: records are grouped by what is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.language.queries import Cells, Codes
from thinveil.language.schema import INFINITE, MISSING

Digit = tuple[int, int]
"""A column and the width at which it is looked at: code // width."""

RANGE: Final = -1
"""The width of a range that is no aligned step; zero is that of no limit at all."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What cells of one kind fix to (coarse) values, and which columns they limit otherwise."""

    fixed: tuple[Digit, ...]
    ranged: tuple[int, ...]


def widths_of(cells: Cells, most: int) -> Codes:
    """Tell each range of each cell: 0 unlimited, w one aligned step of w, else RANGE.

    A column that is cut into steps of more than so many widths is taken as ranges.
    """
    low, high = cells.low, cells.high
    if (high - low == 1).all():
        return np.ones_like(low)
    width = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.int64)
    aligned = (width == 1) | (
        (width > 1) & (low > -INFINITE // 2) & (low % np.maximum(width, 1) == 0)
    )
    width = np.where(aligned, width, RANGE)
    width[(low == MISSING) & (high == INFINITE)] = 0
    for place in np.flatnonzero((width > 1).any(axis=0)).tolist():
        column = width[:, place]
        if len(np.unique(column[column > 1])) > most:
            column[column > 1] = RANGE
    return width


def shapes_of(columns: tuple[int, ...], width: Codes) -> tuple[list[Shape], Codes]:
    """Return the shapes of cells with these widths, and which of them each cell has."""
    if (width == width[:1]).all():
        found, which = width[:1], np.zeros(len(width), np.int64)
    else:
        found, which = np.unique(width, axis=0, return_inverse=True)
    shapes = []
    for row in found.tolist():
        named = list(zip(columns, row, strict=True))
        fixed = tuple((column, step) for column, step in named if step > 0)
        shapes.append(Shape(fixed, tuple(column for column, step in named if step == RANGE)))
    return shapes, which.reshape(-1)


def each_kind(kind: Codes) -> Iterator[tuple[int, slice | Codes]]:
    """Yield each kind and where it is; most often there is one."""
    if (kind == kind[0]).all():
        yield int(kind[0]), slice(None)
        return
    for each in np.unique(kind).tolist():
        yield each, np.flatnonzero(kind == each)
