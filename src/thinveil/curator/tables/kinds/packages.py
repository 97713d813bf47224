"""What a packed spreadsheet unpacks to, looked at before it is read.

A few bytes can unpack to more than any machine holds (a zip bomb), and a cell in the last row and
column makes the reader lay out every cell before it.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from thinveil.curator.tables.kinds.cells import most_cells, too_many
from thinveil.curator.tables.kinds.limits import DAMAGED_ZIP, Room
from thinveil.errors import DataError

_SHARE: Final = 2
"""Parts may unpack to one in so many bytes of the bound, as a reader needs more for each: 2 GiB are
a sheet of a million rows, all it can have, and 60 cells a row."""
_CHUNK: Final = 2**20
_COLUMN: Final = re.compile(rb' r="([A-Z]{1,3})[0-9]')
_ROW: Final = re.compile(rb' r="[A-Z]{0,3}([0-9]{1,9})')
_EMPTY: Final = re.compile(rb"<(?:\w+:)?(?:c|row) [^>]*/>")
_PLACE: Final = b' r="'
_ANY: Final = re.compile(rb"<(?:\w+:)?(?:c|row)[ />]")
_TAG: Final = re.compile(rb"<(?:\w+:)?(c|row)(?=[ />])([^>]*)")
_ERROR: Final = b' t="e"'
_ODD: Final = (b"'", b" =", b"= ", b"\t", b"\n", b"\r")
"""What few programs write between the names and values of attributes."""
_BOOK: Final = "workbook.xml"
_STRAY: Final = (*DAMAGED_ZIP, ElementTree.ParseError)
"""What the unpacker and the parser raise on a damaged package, or on one that is locked."""


class Damaged(Exception):
    """A package cannot be unpacked."""


def check_excel(path: Path) -> None:
    """Look at the size of what all sheets of a workbook of Excel share.

    Raises:
        DataError: It unpacks to too much.
        Damaged: It cannot be unpacked.
    """
    room = Room(path, _SHARE)
    with _opened(path) as archive:
        for name in archive.namelist():
            if name.lower().endswith(".xml") and "worksheets" not in name:
                for _ in _unpacked(archive, name, room):
                    pass


def errors_in_excel(path: Path, sheet: str) -> int:
    """Count the cells of a sheet that hold an error (#N/A), after a look at its size.

    Raises:
        DataError: It unpacks to too much, or has too many cells.
        Damaged: It cannot be unpacked.
    """
    room = Room(path, _SHARE)
    with (
        _opened(path) as archive,
        closing(_unpacked(archive, _part(archive, sheet, room), room)) as chunks,
    ):
        return _scanned(chunks, path)


def check_open_document(path: Path) -> None:
    """Look at the size of a spreadsheet of OpenDocument.

    Raises:
        DataError: It unpacks to too much, or has too many cells.
        Damaged: It cannot be unpacked.
    """
    with (
        _opened(path) as archive,
        closing(_unpacked(archive, "content.xml", Room(path, _SHARE))) as chunks,
    ):
        parser: Any = ElementTree.XMLPullParser(("start", "end"))
        cells = _Cells(path)
        for chunk in chunks:
            parser.feed(chunk)
            for event, element in parser.read_events():
                cells.see(event, element)
        parser.close()


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a package whose parts have names of their own.

    Raises:
        Damaged: It cannot be unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if len(set(archive.namelist())) < len(archive.infolist()):
                raise Damaged  # which of two parts is meant, readers may see differently
            yield archive
    except _STRAY:
        raise Damaged from None


def _unpacked(archive: zipfile.ZipFile, name: str, room: Room) -> Generator[bytes, None, None]:
    """Yield a part by chunks, to its true end: its own word for its size is not believed."""
    info = archive.getinfo(name)
    info.file_size = room.most + 2 * _CHUNK
    with archive.open(info) as part:
        while chunk := part.read(_CHUNK):
            room.take(len(chunk))
            yield chunk


def plain_name(name: str) -> str:
    """Return the name of a part as most programs write it; some mean a folder by a backslash."""
    return name.replace("\\", "/").lower()


def _part(archive: zipfile.ZipFile, sheet: str, room: Room) -> str:
    """Return the name of the part that holds a sheet."""
    parts = {plain_name(name): name for name in archive.namelist()}
    home = min(posixpath.dirname(each) for each in parts if posixpath.basename(each) == _BOOK)

    def read(name: str) -> ElementTree.Element:
        return ElementTree.fromstring(b"".join(_unpacked(archive, parts[name], room)))

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
    most, bare = most_cells(), _Bare()
    seen: set[bytes] = set()
    rest = b""
    for chunk in chunks:
        whole, mark, tail = (rest + chunk).rpartition(b"<")
        rest = mark + tail
        if any(each in whole for each in _ODD):
            plain = re.sub(rb"\s", b" ", whole.replace(b"'", b'"'))
            whole = re.sub(rb" *= *", b"=", plain)
        errors += whole.count(_ERROR)
        bare.see(whole)
        cells = _EMPTY.sub(b"", whole) if b"/>" in whole else whole
        if new := set(_COLUMN.findall(cells)) - seen:
            seen |= new
            width = max(width, *map(_number, new))
        height = max(height, *map(int, set(_ROW.findall(cells))), 0)
        if (width + bare.width) * (height + bare.rows) > most:
            raise DataError(
                f"{path}: a sheet reaches to row {height + bare.rows:,} and column "
                f"{width + bare.width:,}, and more than {most:,} cells are not read: delete what "
                "stands far from the table"
            )
    return errors


class _Bare:
    """Counts rows and cells that do not say their place: each stands behind the one before it."""

    def __init__(self) -> None:
        self.rows = self.width = self._cells = 0

    def see(self, part: bytes) -> None:
        """Take a part of a sheet."""
        if len(_ANY.findall(part)) <= part.count(_PLACE):
            return
        for name, rest in _TAG.findall(part):
            if name == b"row":
                self.rows += _PLACE not in rest
                self._cells = 0
            elif _PLACE not in rest:
                self._cells += 1
                self.width = max(self.width, self._cells)


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
        self._path, self._most = path, most_cells()
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
            if self._table * self._widest > self._most:
                raise DataError(f"{self._path}: {too_many(self._most)}")
            element.clear()


def _times(element: ElementTree.Element, what: str) -> int:
    """Return how often an element is repeated."""
    found = [
        int(value) for key, value in element.items() if key.endswith(f"number-{what}-repeated")
    ]
    return found[0] if found else 1
