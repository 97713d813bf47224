"""A look at Parquet files before a database reads them: what they would unpack to.

DuckDB keeps its tables within bounds of memory and disk, but not what it unpacks a page or a text
into.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from thinveil.curator.tables.arrow import pyarrow
from thinveil.curator.tables.kinds.columnar import Parquet
from thinveil.curator.tables.kinds.limits import CELL, in_words, most_unpacked, too_much
from thinveil.errors import DataError

_LONGEST: Final = 2**17
"""The most bytes of a text: DuckDB handles 2,048 together, several times (measured: with texts of
1 MiB it takes more than 6 GiB)."""


def check_parquet(paths: Sequence[str]) -> None:
    """Refuse files that would take more memory or disk than there is.

    Raises:
        DataError: One of them would, or is damaged.
    """
    pa = pyarrow("Reading Parquet")
    room = most_unpacked() + shutil.disk_usage(tempfile.gettempdir()).free // 2
    for path in paths:
        with Path(path).open("rb") as file:
            source = Parquet(pa, file, path)
            room -= source.records * len(source.names) * CELL
            if room < 0:
                raise DataError(
                    f"{path}: its {source.records:,} rows would take more memory and disk than "
                    f"there is for them ({in_words(CELL)} a cell): give fewer rows or columns, or "
                    "set TMPDIR to a disk with more room"
                )
            _check_pages(source, path)


def _check_pages(source: Parquet, path: str) -> None:
    """Refuse a file whose pages or texts are larger than fit into memory side by side."""
    most = most_unpacked()
    pages = dict(zip(source.plain, source.pages(source.plain), strict=True))
    if sum(each.largest for each in pages.values()) > most:
        raise too_much(path, most)
    for place, each in pages.items():
        if source.is_text(place) and (each.grows or each.largest > _LONGEST):
            longest, total = source.texts(place)
            if longest > _LONGEST or (each.grows and total > most):
                raise DataError(
                    f"{path}: column {source.names[place]!r} holds texts that are too long for "
                    "DuckDB: read the file into memory (--engine memory)"
                )
