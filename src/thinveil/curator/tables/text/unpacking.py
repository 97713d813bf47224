"""From a file to its text: unpacked where it is compressed, in the encoding that its bytes show.

The encoding is told by a byte order mark or by NULs where UTF-16 has them; all else is UTF-8, or
an old code page of one byte a character.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from thinveil.curator.tables.kinds.limits import DAMAGED_ZIP, LONGEST, Room
from thinveil.errors import DataError, MissingExtra

_PACKED: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""How compressed files begin."""
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is its first half
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WITH_NULS: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_NULS: Final = 4  # of as many bytes at least one is NUL: every second character is ASCII
_OLD: Final = ("cp1252", "latin-1")
"""What a text that is not UTF-8 is read as; the second has a character for every byte."""
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_HEAD: Final = 65_536
_STRAY: Final = (*DAMAGED_ZIP, OSError, lzma.LZMAError)
"""What unpackers raise on a damaged file; Arrow's own errors are among them."""


def packing_of(start: bytes) -> str | None:
    """Return how a file is compressed, by its first bytes; None where it is not."""
    return next((name for mark, name in _PACKED.items() if start.startswith(mark)), None)


class _Whole(io.RawIOBase):
    """A stream again from its start: what was read of it already, and then the rest."""

    def __init__(
        self,
        head: bytes,
        rest: IO[bytes],
        packing: str | None,
        where: Path,
        room: Room | None = None,
    ) -> None:
        self._head, self._rest = memoryview(head), rest
        self._packing, self._where, self._room = packing, where, room

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._head[: len(buffer)]
        if part:
            self._head = self._head[len(part) :]
        else:
            with _undamaged(self._where, self._packing):
                part = memoryview(self._rest.read(len(buffer)))
            if self._room is not None:
                self._room.take(len(part))
        buffer[: len(part)] = part
        return len(part)


@contextmanager
def _undamaged(where: Path, packing: str | None) -> Iterator[None]:
    """Say that a compressed file is damaged, instead of what its unpacker says."""
    try:
        yield
    except _STRAY:
        if packing is None:
            raise
        raise DataError(
            f"{where}: this file is compressed ({packing}) and damaged, locked, or cut off: "
            "unpack it by yourself, and give the table"
        ) from None


class Bytes:
    """The content of a file, unpacked, and what its first bytes show.

    `room` is what a compressed one may still unpack to; None where it is not compressed, or only
    passed through.
    """

    def __init__(
        self, path: Path, file: IO[bytes], packing: str | None, again: bool, room: Room | None
    ) -> None:
        self.packing, self.again, self.room = packing, again, room
        with _undamaged(path, packing):
            self.head = file.read(_HEAD)
        self._stream = io.BufferedReader(_Whole(self.head, file, packing, path, room), _HEAD)

    def text(self, encoding: str) -> Iterator[str]:
        """Yield the lines of the text with their ends; of one that is too long, a part that is."""
        text = io.TextIOWrapper(self._stream, encoding, newline="")
        return iter(partial(text.readline, LONGEST + 1), "")

    def block(self, size: int) -> bytes:
        """Return the next bytes, as many as are wanted or left."""
        return self._stream.read(size)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines as they are; of one that is too long, parts."""
        return iter(partial(self._stream.readline, LONGEST + 1), b"")

    def encodings(self) -> tuple[str, ...]:
        """Return the encodings to try in turn, the likeliest first."""
        return likely_encodings(self.head, whole=len(self.head) < _HEAD)


@contextmanager
def unpacked(path: Path, *, passing: bool = False) -> Iterator[Bytes]:
    """Open a file, or a pipe, which can be read only once.

    What is only `passing`, and kept nowhere, may unpack to any size.
    """
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        again = file.seekable()
        start = file.read(6)
        packing = packing_of(start)
        if again:
            file.seek(0)
        else:
            file = io.BufferedReader(_Whole(start, file, None, path))
        if packing is not None:
            with _undamaged(path, packing):
                file = stack.enter_context(closing(_unpacker(file, packing, path)))
        room = None if packing is None or passing else Room(path)
        yield Bytes(path, file, packing, again, room)


def _unpacker(file: IO[bytes], packing: str, path: Path) -> Any:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=file)
    if packing == "bzip2":
        return bz2.BZ2File(file)
    if packing == "xz":
        return lzma.LZMAFile(file)
    if packing == "zstd":
        return _zstd(file)
    archive = zipfile.ZipFile(file if file.seekable() else io.BytesIO(file.read()))
    members = [
        each
        for each in archive.infolist()
        if not each.is_dir() and not each.filename.startswith("__MACOSX/")
    ]
    if len(members) != 1:
        raise DataError(
            f"{path}: this archive holds {len(members):,} files, and one table is read: unpack "
            "it, and give the table"
        )
    return archive.open(members[0])


def _zstd(file: IO[bytes]) -> Any:
    """Unpack Zstandard with Python 3.14's own module, or with pyarrow."""
    try:
        return import_module("compression.zstd").ZstdFile(file)
    except ImportError:
        pass
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("Reading Zstandard (.zst)", "arrow") from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


def likely_encodings(head: bytes, *, whole: bool = True) -> tuple[str, ...]:
    """Return the encodings to try in turn for a text that begins so, the likeliest first.

    >>> likely_encodings("é".encode()), likely_encodings("é".encode("latin-1"))
    (('utf-8', 'cp1252', 'latin-1'), ('cp1252', 'latin-1'))
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return (encoding,)
    if head.count(b"\0") * _NULS >= len(head) > 0:
        for encoding in _WITH_NULS:
            if _reads_as(head, encoding, whole):
                return (encoding,)
    if _CONTROL.search(head):  # no text at all, which a code page would hide
        return ("utf-8",)
    return ("utf-8", *_OLD) if _decoded(head, "utf-8", whole) is not None else _OLD


def _reads_as(head: bytes, encoding: str, whole: bool) -> bool:
    text = _decoded(head, encoding, whole)
    return text is not None and "\0" not in text and ("\n" in text or "\r" in text)


def _decoded(head: bytes, encoding: str, whole: bool) -> str | None:
    """Decode the start of a text, whose last character may be cut; None where it is another."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head, whole)
    except UnicodeDecodeError:
        return None
