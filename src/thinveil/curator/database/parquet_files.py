"""Parquet files that a database reads: which are meant, and what they would unpack to.

DuckDB keeps its tables within bounds of memory and disk, but not what it unpacks a page or a text
into.
"""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from thinveil.curator.tables.arrow import pyarrow
from thinveil.curator.tables.kinds.columnar import Parquet
from thinveil.curator.tables.kinds.limits import CELL, in_words, most_unpacked, too_much
from thinveil.curator.tables.kinds.registry import PARQUET, kind_of_file
from thinveil.errors import DataError, UsageError
from thinveil.passwords import missing

LAKES: Final = {"delta": "Delta", "iceberg": "Iceberg"}
"""Tables whose log says which files of their folder count: what Spark calls them, and people."""
WHOLE: Final = "see that all files are whole and have the same columns"
LOGS: Final = {"delta": "_delta_log/*.json", "iceberg": "metadata/*.metadata.json"}
"""Where the log of such a table lies in its folder."""
_PARQUET: Final = (".parquet", ".pq")
_LONGEST: Final = 2**17
"""The most bytes of a text: DuckDB handles 2,048 together, several times (measured: with texts of
1 MiB it takes more than 6 GiB)."""


def parquet_in(path: str) -> list[str]:
    """Return the Parquet files that a path means; none where it is a text file."""
    at = Path(path)
    if at.is_dir():
        found = [
            str(each)
            for each in at.rglob("*")
            if each.suffix.lower() in _PARQUET and each.is_file()
        ]
        if not found:
            raise DataError(
                f"{path}: this is a folder, and there are no Parquet files (.parquet, .pq) in it: "
                "give a CSV or Parquet file, a folder of Parquet files, or a database"
            )
        refuse_lakes(path, found)
        return sorted(found)
    if at.is_file():
        kind = kind_of_file(at)
        if kind not in (None, PARQUET):
            raise DataError(
                f"{path}: DuckDB counts CSV and Parquet files here, and this is one of "
                f"{kind.name}: use --engine memory, or save it as Parquet"
            )
        return [] if kind is None else [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DataError(f"{missing(path)}: there is no such file: check the path")
    if any(Path(each).suffix.lower() not in _PARQUET for each in found):
        raise UsageError(f"{path}: a pattern must match Parquet files (.parquet, .pq) only")
    refuse_lakes(path, found)
    return found


def lake_of(folder: Path) -> str | None:
    """Return which of `LAKES` a folder is a table of, if it is one.

    >>> lake_of(Path("nowhere")) is None
    True
    """
    return next((kind for kind, log in LOGS.items() if any(folder.glob(log))), None)


def refuse_lakes(path: str, files: Iterable[str]) -> None:
    """Refuse folders in which files also hold records that were changed or removed since."""
    folders = {each for file in files for each in Path(file).absolute().parents}
    for folder in sorted(folders):
        if (lake := lake_of(folder)) is not None:
            raise DataError(
                f"{path}: files of a table of {LAKES[lake]}, some of which may hold records that "
                f"are no longer in it: open it with Spark (spark://local[2] or sc://host:port) "
                f"and --table {folder}"
            )


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
