"""Boxes and counts as bytes, for who counts elsewhere.

Arrays of codes travel in as few bytes as they need, without pickles: what is read can be nothing
but numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from thinveil.language.queries import Cells, Codes, QueryBatch
from thinveil.language.schema import INFINITE, LOWEST, MISSING

MOST_BOXES: Final = 500_000
"""So many boxes travel at once (a round figure: some megabytes)."""

_ENDS: Final = (MISSING, LOWEST, INFINITE)
"""Ends of ranges that are far from all others; each has a number of its own below these."""
_HEAD: Final = struct.Struct("<BqQ")
_CONSTANT: Final = 0
_PLAIN: Final = 8
_WIDTHS: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype("<u1"),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
    8: np.dtype("<i8"),
}
_SEAL: Final = 16


class Garbled(ValueError):
    """Bytes that are no message of this module."""


def narrowed(values: Codes) -> bytes:
    """Write an array in as few bytes as its values need."""
    if not len(values) or (values == values[0]).all():
        return _HEAD.pack(_CONSTANT, int(values[0]) if len(values) else 0, len(values))
    special = [values == each for each in _ENDS]
    usual = ~(special[0] | special[1] | special[2])
    base = int(values[usual].min()) if usual.any() else 0
    span = int(values[usual].max()) - base + len(_ENDS) if usual.any() else len(_ENDS)
    width = next((each for each in (1, 2, 4) if span < 256**each), _PLAIN)
    if width < _PLAIN:
        values = np.where(usual, np.where(usual, values, base) - base + len(_ENDS), 0)
        for number, places in enumerate(special):
            values[places] = number
    return _HEAD.pack(width, base, len(values)) + values.astype(_WIDTHS[width]).tobytes()


class Reader:
    """Reads one array after the other."""

    def __init__(self, content: bytes, start: int = 0) -> None:
        self._content, self._at = content, start

    def take(self, length: int) -> bytes:
        """Return so many bytes."""
        taken = self._content[self._at : self._at + length]
        if len(taken) != length:
            raise Garbled("a message ended early")
        self._at += length
        return taken

    def codes(self) -> Codes:
        """Return the next array."""
        width, base, length = _HEAD.unpack(self.take(_HEAD.size))
        if width == _CONSTANT:
            if length > len(self._content) + 100 * MOST_BOXES:
                raise Garbled("an array is too long")
            return np.full(length, base, np.int64)
        if width not in _WIDTHS:
            raise Garbled("an array of no known kind")
        sent = np.frombuffer(self.take(length * width), _WIDTHS[width]).astype(np.int64)
        if width == _PLAIN:
            return sent
        values: Codes = sent - len(_ENDS) + base
        for number, end in enumerate(_ENDS):
            values[sent == number] = end
        return values


def written_cells(cells: Cells) -> bytes:
    """Write a table of cells, column by column."""
    parts = [narrowed(np.array([len(cells), *cells.columns], np.int64))]
    for place in range(len(cells.columns)):
        low, high = cells.low[:, place], cells.high[:, place]
        parts += [narrowed(low), narrowed(high - low)]  # may wrap around, and does so back
    return b"".join(parts)


def read_cells(content: bytes) -> Cells:
    """Return a table of cells that was written so."""
    reader = Reader(content)
    length, *columns = reader.codes().tolist()
    low = np.empty((length, len(columns)), np.int64)
    high = np.empty_like(low)
    for place in range(len(columns)):
        low[:, place] = reader.codes()
        high[:, place] = low[:, place] + reader.codes()
    return Cells(tuple(columns), low, high)


@dataclass(frozen=True, slots=True)
class Request:
    """Boxes to be counted, and the seal of the cells that they start from.

    Args:
        seal: The digest of the cells.
        boxes: Four arrays: cells, columns, low and high ends.
        cells: The cells as bytes; empty where whoever counts is thought to have them.
    """

    seal: bytes
    boxes: bytes
    cells: bytes = b""

    @staticmethod
    def of(batch: QueryBatch, *, with_cells: bool) -> Request:
        """Return what is asked about one batch."""
        arrays = (batch.cell, batch.column, batch.low, batch.high)
        boxes = b"".join(map(narrowed, arrays))
        cells = written_cells(batch.cells) if with_cells else b""
        return Request(batch.cells.digest, boxes, cells)

    def to_bytes(self) -> bytes:
        """Return it as it travels."""
        return self.seal + struct.pack("<Q", len(self.cells)) + self.cells + self.boxes

    @staticmethod
    def from_bytes(content: bytes) -> Request:
        """Return what travelled."""
        start = _SEAL + 8
        if len(content) < start:
            raise Garbled("a message ended early")
        (length,) = struct.unpack_from("<Q", content, _SEAL)
        return Request(content[:_SEAL], content[start + length :], content[start : start + length])

    def batch(self, cells: Cells) -> QueryBatch:
        """Return the boxes as questions of one box each."""
        reader = Reader(self.boxes)
        cell, column, low, high = (reader.codes() for _ in range(4))
        return QueryBatch(cells, cell, column, low, high, np.zeros_like(cell))


def parts_of(batch: QueryBatch, most: int = MOST_BOXES) -> Iterator[QueryBatch]:
    """Yield the boxes of a batch as questions of one box each, so many at once."""
    boxes = len(batch.cell)
    for start in range(0, boxes, most):
        some = slice(start, start + most)
        cell = batch.cell[some]
        yield QueryBatch(
            batch.cells,
            cell,
            batch.column[some],
            batch.low[some],
            batch.high[some],
            np.zeros_like(cell),
        )


def added(counts: Sequence[bytes], boxes: int) -> Codes:
    """Add up the counts of several parts of a table."""
    total = np.zeros(boxes, np.int64)
    for each in counts:
        found = Reader(each).codes()
        if found.shape != total.shape or found.min(initial=0) < 0:
            raise Garbled("an answer is not one count for each box")
        total += found
    return total
