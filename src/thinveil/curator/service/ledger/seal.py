"""The seal of a ledger: the key of its chain, its length and its last link, in a private file.

Two places in the file are written in turn, each within a block of its own and with a digest: where
one was being written when the power went, the other still says what was so one entry before. The
seal is brought to the disk after each commit and before the answers leave. So a ledger has as many
entries as its seal says, or one more.

Who has the ledger but not the seal cannot change it unnoticed. Without the seal nothing can be
told. Whoever puts back old copies of both takes everything back to that day.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thinveil.curator.service.ledger.base import goes_on
from thinveil.curator.service.ledger.chain import SIZE, Point
from thinveil.errors import LedgerError
from thinveil.files import PRIVATE, held_alone, write_file

_FIELDS: Final = struct.Struct("<16s32s32sQ32s")
_MARK: Final = b"thinveil seal 1\n"
_PURPOSE: Final = b"thinveil seal"
_BLOCK: Final = 4096  # bytes that disks write whole, or spoil alone
_PLACES: Final = 2
_to_disk: Final = getattr(os, "fdatasync", os.fsync)


def seal_of_ledger(path: Path) -> Path:
    """Return where the seal of a ledger is: beside the file itself, where that is a link."""
    return Path(f"{os.path.realpath(path)}-seal")


@dataclass(frozen=True, slots=True)
class Seal:
    """What is known of a ledger outside it."""

    key: bytes
    service: str  # whose ledger it is
    length: int
    head: bytes

    @property
    def point(self) -> Point:
        """Through which its chain goes."""
        return self.length, self.head

    def to_bytes(self) -> bytes:
        """Return what is written of it, with a digest."""
        fields = _FIELDS.pack(_MARK, self.key, self.service.encode(), self.length, self.head)
        return fields + _digest(self.key, fields)

    @staticmethod
    def of_bytes(block: bytes) -> Seal | None:
        """Read it; nothing where it is not whole."""
        fields, digest = block[: _FIELDS.size], block[_FIELDS.size : _FIELDS.size + SIZE]
        if len(digest) < SIZE or not fields.startswith(_MARK):
            return None
        _, key, service, length, head = _FIELDS.unpack(fields)
        if _digest(key, fields) != digest:
            return None
        return Seal(key, service.decode("ascii", "replace"), length, head)


class SealFile:
    """The file that a seal is kept in; one process has it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def open(self) -> bool:
        """Take hold of the file; tell whether there is one."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)
            os.fchmod(self._file, PRIVATE)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unusable(error) from None
        if not held_alone(self._file):
            raise LedgerError(f"{_ledger_of(self.path)} is in use by another service")
        return True

    def make(self, seal: Seal, *, overwrite: bool = False) -> None:
        """Write a new file with a seal, whole or not at all."""
        places = [bytes(_BLOCK)] * _PLACES
        places[seal.length % _PLACES] = seal.to_bytes().ljust(_BLOCK, b"\0")
        write_file(self.path, b"".join(places), overwrite=overwrite)

    def read(self) -> Seal:
        """Return the newer of the two that are whole."""
        return read_seal(self.path, self._file)

    def write(self, seal: Seal) -> None:
        """Bring a seal to the disk; the one before it stays beside it."""
        content = seal.to_bytes()
        try:
            written = os.pwrite(self._file, content, seal.length % _PLACES * _BLOCK)
            _to_disk(self._file)
        except OSError as error:
            raise self._unusable(error) from None
        if written != len(content):
            raise LedgerError(f"there is no room for {self.path}")

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _unusable(self, error: OSError) -> LedgerError:
        return LedgerError(f"{self.path}: the seal cannot be read or written ({error.strerror})")


def read_seal(path: Path, file: int | None = None) -> Seal:
    """Return the seal in a file, which a service may be writing to.

    Raises:
        LedgerError: It is not there, or damaged.
    """
    opened = -1
    try:
        if file is None:
            file = opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        found = os.pread(file, _BLOCK * _PLACES + 1, 0)
    except OSError as error:
        why = f"{path}: the seal cannot be read ({error.strerror})"
        raise LedgerError(f"{why}. {goes_on(_ledger_of(path))}") from None
    finally:
        if opened >= 0:
            os.close(opened)
    blocks = [found[place * _BLOCK :][:_BLOCK] for place in range(_PLACES)]
    seals = [seal for seal in map(Seal.of_bytes, blocks) if seal is not None]
    if len(found) != _BLOCK * _PLACES or len({(seal.key, seal.service) for seal in seals}) != 1:
        raise LedgerError(f"{path}: the seal is damaged. {goes_on(_ledger_of(path))}")
    return max(seals, key=lambda seal: seal.length)


def _ledger_of(path: Path) -> Path:
    return Path(str(path).removesuffix("-seal"))


def _digest(key: bytes, fields: bytes) -> bytes:
    return hashlib.blake2b(fields, key=key, digest_size=SIZE, person=_PURPOSE).digest()
