"""Reading FlatBuffers, in which Arrow describes its messages, as far as is needed here.

A struct.error says that an offset leads out of the data.
"""

from __future__ import annotations

import struct


def slot(data: memoryview, table: int, place: int) -> int | None:
    """Return where a field of a table stands, or None where it is left out."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    entry = 4 + 2 * place
    offset = struct.unpack_from("<H", data, vtable + entry)[0] if entry < size else 0
    return table + offset if offset else None


def inner(data: memoryview, table: int, place: int) -> int | None:
    """Return where the table or the vector that a field leads to begins; None where it is out."""
    found = slot(data, table, place)
    return None if found is None else found + struct.unpack_from("<I", data, found)[0]


def root(data: memoryview) -> int:
    """Return where the outermost table begins."""
    found: int = struct.unpack_from("<I", data)[0]
    return found
