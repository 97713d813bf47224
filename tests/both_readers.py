"""Text files read in both ways, row by row and column by column, and compared.

Also a plugin for pytest (-p both_readers): every text file that other tests read is read so.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from thinveil.curator.tables import delimited, files
from thinveil.curator.tables.reading import Raw, Reading
from thinveil.curator.tables.text import columns
from thinveil.errors import ThinveilError

BLOCKS = (columns.BLOCK, 64)
"""Sizes of blocks: the usual one, and one that cuts nearly every file."""
read_delimited = delimited.read_delimited


def outcome(path: Path, reading: Reading) -> Any:
    """Return all that is known of a file once it is read, or why it is not."""
    try:
        raw = read_delimited(path, reading)
    except (ThinveilError, OSError) as error:
        return type(error), str(error)
    found = [(each.name, list(each.texts), each.index.tolist()) for each in raw.columns]
    assert all(each.index.dtype == "int64" for each in raw.columns)
    return found, raw.assumed


def took_columns(path: Path, reading: Reading) -> list[bool]:
    """Compare both ways, once for each size of blocks; tell each time whether columns were read.

    A way that leads nowhere is left for the other, so that the outcome is always the same.
    """
    with mock.patch.object(columns, "WORTHWHILE", float("inf")):
        expected = outcome(path, reading)
    took = []
    for size in BLOCKS:
        found: list[object] = []

        def by_column(*how: Any, found: list[object] = found) -> Any:
            found.append(columns.read_by_column(*how))
            return found[-1]

        with (
            mock.patch.object(columns, "WORTHWHILE", 0),
            mock.patch.object(columns, "BLOCK", size),
            mock.patch.object(delimited, "read_by_column", by_column),
        ):
            assert outcome(path, reading) == expected
        took.append(bool(found) and found[-1] is not None)
    return took


# ---- the plugin

_seen: Counter[str] = Counter()


def _compared(path: Path, reading: Reading) -> Raw:
    if path.is_file():
        took = took_columns(path, reading)
        pairs = zip(BLOCKS, took, strict=True)
        _seen.update(["files", *(f"in blocks of {size}" for size, yes in pairs if yes)])
    return read_delimited(path, reading)


def pytest_configure() -> None:
    """Put the comparison in the place of the reader."""
    files.read_delimited = _compared  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many files were read column by column."""
    terminalreporter.write_line(f"read in both ways: {dict(_seen)}")
