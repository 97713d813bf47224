"""What the buffers of an Arrow file unpack to, found before any of them is read.

The file's footer says where its batches are; the description of a batch, where its buffers are; and
a compressed buffer begins with the size by which a reader unpacks it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Final

from thinveil.language.wire.arrow import COMPRESSION
from thinveil.language.wire.flatbuffers import inner, root, slot

_END: Final = struct.Struct("<i6s")  # how long the footer is, and the mark of such files
_BLOCK: Final = struct.Struct("<qi4xq")  # where a message begins, how long its description is
_BUFFER: Final = struct.Struct("<qq")  # where a buffer begins within the body, and its length
_SIZE: Final = struct.Struct("<q")
_DICTIONARIES, _BATCHES = 2, 3  # fields of the footer
_HEADER, _DATA, _ROWS, _BUFFERS = 2, 1, 0, 2  # fields of a message, a dictionary, a batch
_MARKED: Final = b"\xff\xff\xff\xff"  # before the length of a description, since version 0.15


class Malformed(Exception):
    """It is no such file."""


def sizes(file: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield of each batch how many rows it has, and what its compressed buffers unpack to.

    A dictionary, whose values stand in no row of their own, has none.

    Raises:
        Malformed: The file's descriptions lead nowhere.
    """
    try:
        footer = _footer(file)
        for place in (_DICTIONARIES, _BATCHES):
            for start, length, _ in _vector(footer, root(footer), place, _BLOCK):
                rows, size = _of_message(file, start, length, place == _DICTIONARIES)
                yield rows if place == _BATCHES else 0, size
    except (struct.error, ValueError, OSError, OverflowError):
        raise Malformed from None


def _footer(file: IO[bytes]) -> memoryview:
    end = file.seek(0, 2) - _END.size
    length, _ = _END.unpack(_at(file, end, _END.size))
    return _at(file, end - length, length)


def _of_message(file: IO[bytes], start: int, length: int, dictionary: bool) -> tuple[int, int]:
    message = _at(file, start, length)
    message = message[8 if bytes(message[:4]) == _MARKED else 4 :]
    batch = inner(message, root(message), _HEADER)
    if dictionary and batch is not None:
        batch = inner(message, batch, _DATA)
    if batch is None:
        raise Malformed
    rows = slot(message, batch, _ROWS)
    unpacked = 0
    if slot(message, batch, COMPRESSION) is not None:
        body = start + length
        buffers = _vector(message, batch, _BUFFERS, _BUFFER)
        unpacked = sum(_unpacked(file, body + offset, size) for offset, size in buffers)
    return 0 if rows is None else _SIZE.unpack_from(message, rows)[0], unpacked


def _unpacked(file: IO[bytes], start: int, size: int) -> int:
    """Return what a buffer unpacks to; -1 in front of it says that it is as it is."""
    if size <= 0:
        return 0
    (unpacked,) = _SIZE.unpack(_at(file, start, _SIZE.size))
    if unpacked < -1:
        raise Malformed
    return size if unpacked == -1 else int(unpacked)


def _vector(
    data: memoryview, table: int, place: int, each: struct.Struct
) -> Iterator[tuple[int, ...]]:
    """Yield the structures of a vector."""
    if (start := inner(data, table, place)) is None:
        return
    (count,) = struct.unpack_from("<I", data, start)
    for number in range(count):
        yield each.unpack_from(data, start + 4 + number * each.size)


def _at(file: IO[bytes], start: int, length: int) -> memoryview:
    """Read so many bytes from some place on; all of them must be there."""
    if start < 0 or length <= 0 or start + length > file.seek(0, 2):
        raise Malformed
    file.seek(start)
    return memoryview(file.read(length))
