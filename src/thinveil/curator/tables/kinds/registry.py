"""What kind of file it is, told by its first bytes, and by the ending of its name where they fail.

A kind has one reader, which is imported when the first such file is read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from thinveil.curator.tables.kinds.limits import DAMAGED_ZIP
from thinveil.curator.tables.kinds.packages import plain_name
from thinveil.curator.tables.kinds.refusing import refusal
from thinveil.curator.tables.reading import Raw, Reading
from thinveil.errors import DataError

ZIP: Final = b"PK\x03\x04"
OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How the files of old office programs begin, and new ones that a password locks."""
_HEAD: Final = 512
"""So many bytes tell every kind that is known here; SPSS's portable files need most."""
_ROOM: Final = "thinveil.curator.tables"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files that are no text.

    Args:
        name: What it is called.
        endings: How its names end.
        reader: The module and the function that reads it.
        starts: How its content begins; nothing where only the ending tells.
        holds: Where it is an archive, a member that only this kind has.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    starts: tuple[bytes, ...] = ()
    holds: str = ""

    @property
    def by_name(self) -> bool:
        """Whether the ending alone tells; some programs call a text .xls."""
        return not self.holds and OLE not in self.starts

    def read(self, path: Path, reading: Reading) -> Raw:
        """Read a file of this kind."""
        module, _, name = self.reader.partition(":")
        read: Callable[[Path, Reading], Raw] = getattr(import_module(f"{_ROOM}.{module}"), name)
        return read(path, reading)


PARQUET: Final = Kind("Parquet", (".parquet", ".pq"), "kinds.columnar:read_parquet", (b"PAR1",))
KINDS: Final = (
    PARQUET,
    Kind(
        "Arrow",
        (".arrow", ".feather", ".ipc"),
        "kinds.columnar:read_arrow",
        (b"ARROW1\0\0", b"FEA1"),
    ),
    Kind("Excel", (".xlsx", ".xlsm"), "kinds.spreadsheets:read_excel", holds="workbook.xml"),
    Kind("OpenDocument", (".ods",), "kinds.spreadsheets:read_open_document", holds="content.xml"),
    Kind("old Excel", (".xls",), "kinds.spreadsheets:read_old_excel", (OLE,)),
    Kind("Stata", (".dta",), "kinds.statistics:read_stata", (b"<stata_dta>",)),
    Kind("SPSS", (".sav", ".zsav"), "kinds.statistics:read_spss", (b"$FL2", b"$FL3")),
    Kind("SPSS portable", (".por",), "kinds.statistics:read_portable"),
    Kind(
        "SAS",
        (".sas7bdat",),
        "kinds.statistics:read_sas",
        (b"\0" * 12 + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf",),
    ),
    Kind(
        "SAS transport",
        (".xpt", ".xport"),
        "kinds.statistics:read_transport",
        (b"HEADER RECORD*******LIB",),
    ),
)
"""All kinds of files that are read, besides texts."""

ENDINGS: Final = tuple(ending for kind in KINDS for ending in kind.endings)


def kind_of_file(path: Path) -> Kind | None:
    """Tell what kind of file it is; None for a text, or a pipe.

    Raises:
        DataError: It is of a kind that is not read; the message says what to do.
        OSError: There is no such file.
    """
    path.stat()  # not every reader says that there is none
    head = first_bytes(path)
    ending = path.suffix.lower()
    if begun := begun_as(head):
        return begun
    if head.startswith(ZIP):
        members = _members(path)
        for kind in KINDS:
            if kind.holds and any(f"/{each}".endswith(f"/{kind.holds}") for each in members):
                return kind
    else:
        members = frozenset()
    if why := refusal(ending, head, members):
        raise DataError(f"{path}: {why}")
    damaged = head.startswith(ZIP) and not members
    named = (kind for kind in KINDS if ending in kind.endings and (kind.by_name or damaged))
    return next(named, None)


def begun_as(head: bytes) -> Kind | None:
    """Return the kind whose files begin so; None where the first bytes do not tell."""
    begun = (kind for kind in KINDS if kind.starts and head.startswith(kind.starts))
    return next(begun, None)


def first_bytes(path: Path) -> bytes:
    """Return the bytes that tell many kinds of files; nothing for a pipe."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD)


def _members(path: Path) -> frozenset[str]:
    """Return the names of the files in an archive, in small letters."""
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(map(plain_name, archive.namelist()))
    except DAMAGED_ZIP:
        return frozenset()
