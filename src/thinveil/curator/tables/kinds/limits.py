"""How much a file may unpack to: one bound for all kinds, and a count of what was taken of it.

A few bytes can unpack to more than any machine holds (a decompression bomb), and what a file says
of its own size may be a lie. So what comes out is counted while it comes.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from thinveil.errors import DataError, UsageError

VARIABLE: Final = "THINVEIL_MOST_UNPACKED"
"""The environment variable that sets another bound, in GiB."""
MOST_UNPACKED: Final = 2**32
"""The most bytes that a file may unpack to, where half of the machine's memory is no less."""
CELL: Final = 8
"""A cell is counted as so many bytes: its code has 64 bits."""
DIFFERENT: Final = 128
"""A value that did not occur before is counted as so many: a text of Python, and its place in a
dictionary (CPython 3.11: 49 bytes and the characters; 40 to 100 bytes a key)."""
LONGEST: Final = 2**22
"""The most characters of one line or cell: a long book."""
MOST_COLUMNS: Final = 2**16
"""The most columns of a table: four times those of a sheet of Excel."""
DAMAGED_ZIP: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, ValueError, RuntimeError,
)  # fmt: skip
"""What Python raises on an archive that is damaged, locked, or packed in a way it does not know."""

_bound: ContextVar[int | None] = ContextVar("bound", default=None)


def half_of_memory() -> int:
    """Return half of this machine's memory in bytes, at most 4 GiB."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # not every system tells
        memory = 2 * 2**30
    return min(memory, MOST_UNPACKED)


def most_unpacked() -> int:
    """Return how many bytes a file may unpack to, here and now.

    Raises:
        UsageError: The environment variable is no number of GiB.
    """
    if (bound := _bound.get()) is not None:
        return bound
    if (said := os.environ.get(VARIABLE)) is None:
        return half_of_memory()
    try:
        most = float(said) * 2**30
        if 1 <= most < 2**62:
            return int(most)
    except ValueError:
        pass
    raise UsageError(f"{VARIABLE} must be a number of GiB above zero, such as 16")


@contextmanager
def unpacking_at_most(size: int) -> Iterator[None]:
    """Set a bound for all that is read inside, whatever the environment says."""
    before = _bound.set(size)
    try:
        yield
    finally:
        _bound.reset(before)


def in_words(size: int) -> str:
    """Write a number of bytes.

    >>> in_words(2**32), in_words(3 * 2**29), in_words(2**28), in_words(1000)
    ('4 GiB', '1.5 GiB', '256 MiB', '1000 bytes')
    """
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def too_much(where: object, most: int, what: str = "it unpacks to") -> DataError:
    """Say that a file would take too much room."""
    return DataError(
        f"{where}: {what} more than {in_words(most)} of memory, which is not read: if it is meant "
        f"so, raise the bound ({VARIABLE}=16, in GiB)"
    )


class Room:
    """What one file may still unpack to.

    Args:
        where: The file, for messages.
        share: Which share of the bound it is, where much more is needed for each byte.
    """

    def __init__(self, where: object, share: int = 1) -> None:
        self.most = most_unpacked() // share
        self._where, self._left = where, self.most

    def take(self, size: int) -> None:
        """Take so many bytes.

        Raises:
            DataError: There are not so many left.
        """
        self._left -= size
        if self._left < 0:
            raise too_much(self._where, self.most)

    def cells(self, rows: int, columns: int) -> None:
        """Take what a part of a table needs as codes, or raise as `take` does."""
        self.take(rows * columns * CELL)


def check_width(columns: int, where: object) -> None:
    """Refuse a table that has more columns than are read."""
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{where}: it has {columns:,} columns, and more than {MOST_COLUMNS:,} are not read: "
            "give a part of them"
        )
