"""What a packed spreadsheet unpacks to, looked at before it is read.

A few bytes can unpack to more than any machine holds (a zip bomb), and a cell in the last row and
column makes the reader lay out every cell before it.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from thinveil.curator.tables.kinds.cells import MOST_CELLS, TOO_MANY
from thinveil.errors import DataError

MOST_UNPACKED: Final = 2**31
"""The most bytes of a part: a sheet of a million rows, all it can have, and 60 cells a row."""
_CHUNK: Final = 2**20
_COLUMN: Final = re.compile(rb' r="([A-Z]{1,3})[0-9]')
_ROW: Final = re.compile(rb' r="[A-Z]{0,3}([0-9]{1,9})')
_EMPTY: Final = re.compile(rb"<(?:\w+:)?(?:c|row) [^>]*/>")
_ERROR: Final = b' t="e"'
_ODD: Final = (b"'", b" =", b"= ", b"\t", b"\n", b"\r")
"""What few programs write between the names and values of attributes."""
_BOOK: Final = "workbook.xml"
_STRAY: Final = (
    zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError, LookupError, ValueError,
    RuntimeError,
)  # fmt: skip
"""What the unpacker and the parser raise on a damaged package, or on one that is locked."""


class Damaged(Exception):
    """A package cannot be unpacked."""


def check_excel(path: Path) -> None:
    """Look at the size of what all sheets of a workbook of Excel share.

    Raises:
        DataError: It unpacks to too much.
        Damaged: It cannot be unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.lower().endswith(".xml") and "worksheets" not in name:
                    for _ in _unpacked(archive, name, path):
                        pass
    except _STRAY:
        raise Damaged from None


def errors_in_excel(path: Path, sheet: str) -> int:
    """Count the cells of a sheet that hold an error (#N/A), after a look at its size.

    Raises:
        DataError: It unpacks to too much, or has too many cells.
        Damaged: It cannot be unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _scanned(_unpacked(archive, _part(archive, sheet, path), path), path)
    except _STRAY:
        raise Damaged from None


def check_open_document(path: Path) -> None:
    """Look at the size of a spreadsheet of OpenDocument.

    Raises:
        DataError: It unpacks to too much, or has too many cells.
        Damaged: It cannot be unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parser: Any = ElementTree.XMLPullParser(("start", "end"))
            cells = _Cells(path)
            for chunk in _unpacked(archive, "content.xml", path):
                parser.feed(chunk)
                for event, element in parser.read_events():
                    cells.see(event, element)
            parser.close()
    except _STRAY:
        raise Damaged from None


def _unpacked(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[bytes]:
    """Yield a part by chunks, to its true end: its own word for its size is not believed."""
    info = archive.getinfo(name)
    info.file_size = MOST_UNPACKED + 2 * _CHUNK
    size = 0
    with archive.open(info) as part:
        while chunk := part.read(_CHUNK):
            size += len(chunk)
            if size > MOST_UNPACKED:
                raise DataError(
                    f"{path}: a part of it unpacks to more than {MOST_UNPACKED >> 30} GiB, which "
                    "is not read: save it as Parquet where it was made, and give that"
                )
            yield chunk


def plain_name(name: str) -> str:
    """Return the name of a part as most programs write it; some mean a folder by a backslash."""
    return name.replace("\\", "/").lower()


def _part(archive: zipfile.ZipFile, sheet: str, path: Path) -> str:
    """Return the name of the part that holds a sheet."""
    parts = {plain_name(name): name for name in archive.namelist()}
    home = min(posixpath.dirname(each) for each in parts if posixpath.basename(each) == _BOOK)

    def read(name: str) -> ElementTree.Element:
        return ElementTree.fromstring(b"".join(_unpacked(archive, parts[name], path)))

    ids = {
        value
        for each in read(posixpath.join(home, _BOOK)).iter()
        if each.get("name") == sheet
        for key, value in each.items()
        if key.endswith("}id")
    }
    relations = read(posixpath.join(home, "_rels", f"{_BOOK}.rels"))
    targets = [each.get("Target") or "" for each in relations if each.get("Id") in ids]
    whole = posixpath.join("/", home, plain_name(targets[0]))
    return parts[posixpath.normpath(whole).lstrip("/")]


def _scanned(chunks: Iterator[bytes], path: Path) -> int:
    """Look at the places of all cells; return how many hold an error."""
    errors = width = height = 0
    seen: set[bytes] = set()
    rest = b""
    for chunk in chunks:
        whole, mark, tail = (rest + chunk).rpartition(b"<")
        rest = mark + tail
        if any(each in whole for each in _ODD):
            plain = re.sub(rb"\s", b" ", whole.replace(b"'", b'"'))
            whole = re.sub(rb" *= *", b"=", plain)
        errors += whole.count(_ERROR)
        cells = _EMPTY.sub(b"", whole) if b"/>" in whole else whole
        if new := set(_COLUMN.findall(cells)) - seen:
            seen |= new
            width = max(width, *map(_number, new))
        height = max(height, *map(int, set(_ROW.findall(cells))), 0)
        if width * height > MOST_CELLS:
            raise DataError(
                f"{path}: a sheet reaches to row {height:,} and column {width:,}, and more than "
                f"{MOST_CELLS:,} cells are not read: delete what stands far from the table"
            )
    return errors


def _number(letters: bytes) -> int:
    """Return the number of a column.

    >>> _number(b"A"), _number(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


class _Cells:
    """Counts the cells that a spreadsheet of OpenDocument stands for, with all repetitions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table = self._rows = self._width = self._widest = self._at = 0

    def see(self, event: str, element: ElementTree.Element) -> None:
        """Take the start or the end of an element."""
        name = element.tag.rpartition("}")[2]
        if event == "start":
            if name == "table":
                self._table = self._rows = self._widest = 0
            elif name == "table-row":
                self._at = self._width = 0
            return
        if name in ("table-cell", "covered-table-cell"):
            self._at += _times(element, "columns")
            if any(each.endswith("value-type") for each, _ in element.items()):
                self._width = self._at
            element.clear()
        elif name == "table-row":
            self._rows += _times(element, "rows")
            if self._width:
                self._widest = max(self._widest, self._width)
                self._table = self._rows
            if self._table * self._widest > MOST_CELLS:
                raise DataError(f"{self._path}: {TOO_MANY}")
            element.clear()


def _times(element: ElementTree.Element, what: str) -> int:
    """Return how often an element is repeated."""
    found = [
        int(value) for key, value in element.items() if key.endswith(f"number-{what}-repeated")
    ]
    return found[0] if found else 1
