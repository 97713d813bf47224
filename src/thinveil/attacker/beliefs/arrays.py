"""Arrays put together: rows one after the other, cells for predictions, findings of several times.

Ragged arrays, and quantization into bins of about equal frequency, heavy hitters in their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.language.queries import Codes, Floats

CELLS: Final = 64
"""Into about how many cells a large domain is cut for predictions; finer within them."""
LEVELS: Final = 32
"""The most values that an attribute keeps as a context; more are put together."""

Triple = tuple[Codes, Codes, npt.NDArray[Any]]
"""Findings: groups, places of their values, and how many records (or how likely) each."""
_KEPT: Final = np.uint64(2**64 - 2**29)  # the upper 24 of a double's 53 bits
_HALF: Final = np.uint64(2**28)  # of the last of them
_NOTHING: Final = (np.empty(0, np.int64),) * 3


def binned(counts: Codes | Floats, bins: int) -> Codes:
    """Put neighbouring values together in about so many bins that hold about as many records.

    A value that many records share has a bin of its own; the others share the rest.

    >>> binned(np.array([50, 1, 1, 3, 2, 1]), 3).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    heavy = np.zeros(len(counts), np.bool_)
    while True:
        free = bins - int(np.count_nonzero(heavy))
        rest = float(counts[~heavy].sum())
        more = ~heavy & (counts * max(free, 1) > rest)
        if free < 2 or not more.any():
            break
        heavy |= more
    light = np.where(heavy, 0, counts)
    middle = np.cumsum(light) - light / 2
    raw = np.floor(middle / max(rest, 1e-300) * max(free, 1)).astype(np.int64)
    new = np.ones(len(counts), np.bool_)
    new[1:] = (raw[1:] != raw[:-1]) | heavy[1:] | heavy[:-1]
    return np.cumsum(new) - 1


def levels(counts: Codes) -> Codes:
    """Return for each value its number as a context: its own where there are few values."""
    few = len(counts) <= LEVELS
    return np.arange(len(counts)) if few else binned(counts, LEVELS // 2)


def summed(counts: Codes | Floats) -> npt.NDArray[Any]:
    """Return how much lies before each place, and everything last.

    >>> summed(np.array([3, 1])).tolist()
    [0, 3, 4]
    """
    return np.concatenate([[0], np.cumsum(counts)])


def rounded(values: Floats) -> Floats:
    """Return values to 24 bits, as many as a float32 has, whatever their magnitude.

    Exponentials, logarithms and matrix products differ in the last bits between versions of NumPy
    and between processors. What decisions hang on is rounded, so that they come out alike.

    >>> rounded(np.array([1 / 3, 0.1 + 0.2])).tolist() == rounded(np.array([1 / 3, 0.3])).tolist()
    True
    """
    bits = values.astype(np.float64).view(np.uint64)
    return ((bits + _HALF) & _KEPT).view(np.float64)


def starts(sizes: Codes) -> Codes:
    """Return where rows of these sizes begin, one after the other."""
    return np.cumsum(sizes) - sizes


def ramp(sizes: Codes) -> Codes:
    """Return 0 .. size - 1 for each size, one after the other."""
    return np.arange(int(sizes.sum())) - np.repeat(starts(sizes), sizes)


def spans(first: Codes, sizes: Codes) -> Codes:
    """Return all places of stretches.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    return np.repeat(first, sizes) + ramp(sizes)


def peaks(values: Floats, sizes: Codes) -> Floats:
    """Return for each value the largest of its row."""
    return np.repeat(np.maximum.reduceat(values, starts(sizes)), sizes)


def evened(mass: Floats, sizes: Codes) -> Floats:
    """Return beliefs of which each row adds up to one."""
    even: Floats = mass / np.repeat(np.add.reduceat(mass, starts(sizes)), sizes)
    return even


def grown(rows: npt.NDArray[Any], many: int) -> npt.NDArray[Any]:
    """Return an array with room for so many rows, and twice as many as before."""
    if many <= len(rows):
        return rows
    room = np.empty((max(many, 2 * len(rows)), *rows.shape[1:]), rows.dtype)
    room[: len(rows)] = rows
    return room


def flattened(values: Sequence[Sequence[tuple[int, int]]]) -> Triple:
    """Return lists of values with their counts as one: the number of its list, value, count."""
    pairs = np.array([pair for each in values for pair in each], np.int64).reshape(-1, 2)
    sizes = np.array([len(each) for each in values], np.int64)
    return np.repeat(np.arange(len(values)), sizes), *pairs.T


def joined(parts: Iterable[Triple]) -> Triple:
    """Return findings of several times as one."""
    columns = zip(_NOTHING, *parts, strict=True)
    first, second, third = (np.concatenate(column) for column in columns)
    return first, second, third


def by_group(parts: Iterable[Triple]) -> Triple:
    """Return findings as one, sorted by group and place."""
    group, place, many = joined(parts)
    order = np.lexsort((place, group))
    return group[order], place[order], many[order]
