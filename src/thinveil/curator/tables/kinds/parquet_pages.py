"""What the pages of a Parquet file unpack to, found from their headers before they are read.

The file's own sums are not believed: each page has a header, in Thrift's compact protocol, by
whose sizes a reader unpacks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, Any, Final

_BY_PLACE: Final = frozenset({0, 2, 8})
"""The encodings PLAIN, PLAIN_DICTIONARY and RLE_DICTIONARY, whose texts Arrow can leave encoded."""
_BY_LENGTH: Final = frozenset({6})
"""The encoding DELTA_LENGTH_BYTE_ARRAY: texts as they are, one after the other."""
_HEADER: Final = 512
"""So many bytes hold most headers of pages; one with long statistics is read again."""
_MOST_HEADER: Final = 2**24  # as Arrow's reader has it
_DEEPEST: Final = 8
_SIZES: Final = {3: 1, 7: 8}  # bytes of the types byte and double
_WHOLE: Final = (4, 5, 6)  # the types i16, i32, i64
_UNPACKED, _PACKED, _DATA, _DATA_2 = 2, 3, 5, 8  # fields of a header
_ENCODING: Final = {_DATA: 2, _DATA_2: 4}


@dataclass(slots=True)
class Pages:
    """What the pages of one column unpack to.

    Args:
        unpacked: The bytes of all pages.
        largest: The bytes of the largest one; no text in it is longer.
        encodings: Thrift's numbers of the encodings of data.
    """

    unpacked: int = 0
    largest: int = 0
    encodings: set[int] = field(default_factory=set)

    @property
    def by_place(self) -> bool:
        """Whether texts can be read as they are encoded, each different one once."""
        return self.encodings <= _BY_PLACE

    @property
    def grows(self) -> bool:
        """Whether texts take more than what is stored of them, once they are read.

        In DELTA_BYTE_ARRAY a text may be all of the one before it, at no cost.
        """
        return not self.by_place and self.encodings != _BY_LENGTH


class Malformed(Exception):
    """A header of a page is none."""


def pages_of(file: IO[bytes], metadata: Any, columns: list[int]) -> list[Pages]:
    """Look at the headers of all pages of some columns, given by their places among the leaves.

    Raises:
        Malformed: What stands there is no header.
    """
    found = [Pages() for _ in columns]
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for pages, column in zip(found, columns, strict=True):
            chunk = row_group.column(column)
            if row_group.num_rows or chunk.num_values:  # else no page is there, or is read
                _walk(file, chunk, pages)
    return found


def _walk(file: IO[bytes], chunk: Any, pages: Pages) -> None:
    """Go from page to page of a part of a column."""
    start = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    end = start + chunk.total_compressed_size
    while start < end:
        length, header = _header(file, start)
        unpacked, packed = header.get(_UNPACKED), header.get(_PACKED)
        if (
            not isinstance(unpacked, int)
            or not isinstance(packed, int)
            or min(unpacked, packed) < 0
        ):
            raise Malformed
        pages.unpacked += unpacked
        pages.largest = max(pages.largest, unpacked)
        for kind, place in _ENCODING.items():
            data = header.get(kind)
            if isinstance(data, dict) and isinstance(encoding := data.get(place), int):
                pages.encodings.add(encoding)
        start += length + packed


def _header(file: IO[bytes], start: int) -> tuple[int, dict[int, object]]:
    """Return how long a header is, and what it says."""
    size = _HEADER
    while size <= _MOST_HEADER:
        file.seek(start)
        window = file.read(size)
        try:
            found, end = _struct(window, 0, 0)
        except IndexError:
            if len(window) < size:
                break
            size *= 32
            continue
        return end, found
    raise Malformed


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, object], int]:
    """Read a structure: its whole numbers and inner structures, by the numbers of their fields."""
    if depth > _DEEPEST:
        raise Malformed
    found: dict[int, object] = {}
    number = 0
    while (head := data[at]) != 0:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        found[number], at = _value(data, at, head & 15, depth)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[object, int]:
    if kind in (1, 2):  # truths, whose type is their value
        return None, at
    if kind in _SIZES:
        return None, at + _SIZES[kind]
    if kind in _WHOLE:
        return _zigzag(data, at)
    if kind == 8:  # bytes
        length, at = _varint(data, at)
        return None, at + length
    if kind == 12:
        return _struct(data, at, depth + 1)
    raise Malformed  # no header has lists or maps


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise Malformed


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
