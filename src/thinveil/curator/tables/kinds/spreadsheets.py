"""Reading spreadsheets (extra: excel): one sheet, laid out by the rules for text files.

What is read are the values that the program saved: no formula is computed, no link is followed.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from thinveil.curator.tables.delimited import read_text
from thinveil.curator.tables.kinds.cells import text_of
from thinveil.curator.tables.kinds.limits import most_unpacked
from thinveil.curator.tables.kinds.packages import (
    Damaged,
    check_excel,
    check_open_document,
    errors_in_excel,
)
from thinveil.curator.tables.reading import Raw, Reading
from thinveil.errors import DataError, MissingExtra
from thinveil.language.texts import many, nearest

_LOCKED: Final = "EncryptedPackage".encode("utf-16-le")
"""What a locked workbook holds: Office encrypts the package as a whole."""
_LEAST_MEMORY: Final = 2**30
"""Bytes for a trial, at least; all cells of an old sheet, 65,536 times 256, take half."""
_TRIAL: Final = """
import resource, sys
import python_calamine
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
with open(sys.argv[2], "rb") as file:
    book = python_calamine.load_workbook(file)
    for name in book.sheet_names:
        book.get_sheet_by_name(name)
"""
_PANIC: Final = "pyo3_runtime"
"""Where the errors come from by which Rust gives up, as on some damaged files."""
_WIDE: Final = 3
"""In a table with fewer columns, a cell alone may be the name of a column beside one without."""


def read_excel(path: Path, reading: Reading) -> Raw:
    """Read a sheet of a workbook of Excel (.xlsx, .xlsm)."""
    return _read(path, reading, check_excel, errors_in_excel)


def read_open_document(path: Path, reading: Reading) -> Raw:
    """Read a sheet of a spreadsheet of OpenDocument (.ods)."""
    return _read(path, reading, check_open_document)


def read_old_excel(path: Path, reading: Reading) -> Raw:
    """Read a sheet of an old workbook of Excel (.xls), which has 16 million cells at most."""
    return _read(path, reading, _check_old)


def _check_old(path: Path) -> None:
    """Open it in a process of its own first: a damaged file can end the one that reads it."""
    if _LOCKED in path.read_bytes():
        raise _locked(path)
    command = [
        sys.executable,
        "-P",
        "-c",
        _TRIAL,
        str(max(most_unpacked(), _LEAST_MEMORY)),
        str(path),
    ]
    if subprocess.run(command, capture_output=True).returncode:
        raise Damaged


def _calamine() -> Any:
    """Import calamine where it is needed, not before."""
    try:
        import python_calamine
    except ImportError:
        raise MissingExtra("Reading spreadsheets", "excel") from None
    return python_calamine


def _read(
    path: Path,
    reading: Reading,
    check: Callable[[Path], None],
    errors_in: Callable[[Path, str], int] = lambda *_: 0,
) -> Raw:
    """Read a sheet of a file that was looked at first."""
    calamine = _calamine()
    with path.open("rb") as file:
        try:
            check(path)
            with closing(calamine.load_workbook(file)) as book:
                sheet, assumed = _chosen(calamine, book, reading, path)
                if errors := errors_in(path, sheet):
                    what = "holds an error" if errors == 1 else "hold an error"
                    verb = "counts" if errors == 1 else "count"
                    said = f"{many(errors, 'cell')} {what}, such as #N/A, and {verb} as missing"
                    assumed.append(said)
                found = book.get_sheet_by_name(sheet)
                rows = () if found.start is None else found.iter_rows()
                plain = replace(reading, separator=",", quote='"', comment="")
                raw = read_text(_lines(rows), path, plain)
        except calamine.PasswordError:
            raise _locked(path) from None
        except (calamine.CalamineError, Damaged, ValueError, OverflowError):
            raise _damaged(path) from None
        except BaseException as error:
            if type(error).__module__ != _PANIC:
                raise
            raise _damaged(path) from None
    return Raw(raw.columns, (*assumed, *raw.assumed)).only(reading, str(path))


def _chosen(calamine: Any, book: Any, reading: Reading, path: Path) -> tuple[str, list[str]]:
    """Return the sheet that is meant, and what was assumed."""
    sheets = [each for each in book.sheets_metadata if each.typ == calamine.SheetTypeEnum.WorkSheet]
    names = [each.name for each in sheets]
    if not names:
        raise DataError(f"{path}: there is no sheet with cells in it")
    if reading.sheet is not None:
        if reading.sheet not in names:
            near = nearest(reading.sheet, names)
            meant = f" (did you mean {near!r}?)" if near else ""
            raise DataError(
                f"{path}: --sheet: there is no sheet {reading.sheet!r}{meant}; the sheets are "
                f"{_listed(names)}"
            )
        return reading.sheet, []
    shown = [each.name for each in sheets if each.visible == calamine.SheetVisibleEnum.Visible]
    first = (shown or names)[0]
    others = [name for name in names if name != first]
    if not others:
        return first, []
    return first, [
        f"of {len(names)} sheets the first, {first!r}, is read (--sheet chooses another: "
        f"{_listed(others)})"
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (", .." if len(names) > 20 else "")


def _lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Write rows as lines of CSV, as many as the sheet has; an empty row is an empty line.

    Above the first row with several cells, a text alone is a title, and written as one field.
    """
    line = io.StringIO()
    write = csv.writer(line, lineterminator="\n").writerow
    begun = False
    for row in rows:
        texts = [text_of(cell) or "" for cell in row]
        filled = [text for text in texts if text]
        begun = begun or len(filled) > 1 or len(texts) < _WIDE
        if filled:
            write(texts if begun else filled)
        yield line.getvalue() if filled else "\n"
        line.seek(0)
        line.truncate()


def _locked(path: Path) -> DataError:
    return DataError(f"{path}: a password locks it: save a copy without one, and give that")


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path}: no spreadsheet, or a damaged one, or one that a password locks: save the sheet "
        "as CSV, and give that"
    )
