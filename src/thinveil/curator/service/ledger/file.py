"""A ledger on disk: what was answered and what it cost, in one transaction.

One SQLite file in write-ahead mode, brought to the disk at every commit. A batch's spending
and its answers stand in the same row, so there is never one without the other. What was spent
is the sum over the rows; it is not kept anywhere. The files are readable by their owner alone,
and one service has them at a time; others may read along, so that a backup can be made.

Entries form a chain (`chain`), whose end is sealed (`seal`): what was cut or edited
is told when the ledger is opened. While it is open, its files are watched (`watch`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from thinveil.curator.curator import Release
from thinveil.curator.service.analysts import Analyst
from thinveil.curator.service.ledger.base import ENTRIES, UNLINKED, Row, Tables, goes_on, unsealed
from thinveil.curator.service.ledger.chain import SIZE, Point, followed, linked, start
from thinveil.curator.service.ledger.seal import Seal, SealFile, seal_of_ledger
from thinveil.curator.service.ledger.watch import INDEX, LEDGER, LOG, SEAL, Watch
from thinveil.errors import LedgerError, OutputError
from thinveil.files import PRIVATE, create_private, sync_folder
from thinveil.language.normal import Keys
from thinveil.language.queries import Floats
from thinveil.language.texts import many
from thinveil.language.wire.packing import packed, unpacked

LARGEST_LOG: Final = 2**20
"""Bytes of the write-ahead log from which on it is brought into the ledger itself."""


class LedgerFile:
    """The ledger of one service; the file is made where there is none.

    The promise says which table is asked under which mechanism. A ledger that was made for another
    one is refused, as is one that is in use, that lost its seal, or that was cut or edited.
    """

    def __init__(self, path: Path, promise: str) -> None:
        self.path = path
        self._seal = SealFile(seal_of_ledger(path))
        self._watch = Watch(path)
        self._left = 0  # bytes of the log that could not be brought into the ledger
        with ExitStack() as undo:
            undo.callback(self.close)
            sealed = self._seal.open()
            _make(path, sealed)
            with self._opening():
                self.service = self._prepare(promise, sealed)
                if not sealed:
                    self._seal_first()
                self._verify()
            undo.pop_all()

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Open the tables; where that fails, all files stay as they are.

        Who closes tables last brings the log into them. So somebody else closes them last, who
        may not write.
        """
        with closing(Tables(self.path, "ro")):
            self._tables = Tables(self.path)
            try:
                yield
            except BaseException:
                self._tables.close()
                raise

    def _prepare(self, promise: str, sealed: bool) -> str:
        """See that these are the tables for a promise, or make them; return the service's name."""
        tables = self._tables
        if not tables.layout and not sealed:
            service = secrets.token_hex(16)
            _settle(tables)
            tables.create(service, _sealed(service, promise))
        if not tables.layout:
            raise _gone(self.path)
        service, version, kept = tables.identity()
        if kept != _sealed(service, promise):
            raise LedgerError(
                f"{self.path} is the ledger of another table, mechanism or policy: what was spent "
                "there does not count here. Name another file with --ledger"
            )
        if version == UNLINKED:
            raise unsealed(self.path)
        _settle(tables)
        return service

    def _seal_first(self) -> None:
        """Make the seal of a ledger that has no entry yet."""
        key = secrets.token_bytes(SIZE)
        if any(self._tables.asked(f"SELECT 1 FROM {table} LIMIT 1") for table in ENTRIES):
            raise LedgerError(
                f"{self._seal.path} is gone: nobody can tell whether the ledger {self.path} was "
                f"cut or edited. {goes_on(self.path)}"
            )
        empty = start(key, *self._tables.identity())
        with suppress(OutputError):  # another service may be as new: one of them gets the lock
            self._seal.make(Seal(key, self.service, *empty.point))
        if not self._seal.open():
            raise LedgerError(f"{self._seal.path}: the seal cannot be written")

    def _verify(self, *known: Point) -> None:
        """Go along the whole chain, and bring the seal to its end."""
        seal, tables = self._seal.read(), self._tables
        if seal.service != self.service:
            raise LedgerError(
                f"{self._seal.path} is the seal of another ledger. {goes_on(self.path)}"
            )
        with tables.transaction():
            tables.check_pages()
            chain = followed(tables, seal.key, [seal.point, *known])
            self._version = tables.asked("PRAGMA data_version")
        if chain.length > seal.length + 1:
            entries = many(chain.length - seal.length, "entry", "entries")
            raise LedgerError(
                f"{self._seal.path} is an old one, {entries} behind the ledger {self.path}: later "
                f"ones may be missing. {goes_on(self.path)}"
            )
        self._key, self._chain = seal.key, chain
        if chain.length > seal.length:
            self._seal.write(Seal(seal.key, self.service, *chain.point))
        self._watch.begin()

    def look(self) -> None:
        """See that all files are still there, as this service left them.

        Raises:
            LedgerError: One is gone, is another one, or was changed by somebody else.
        """
        self._watch.look()

    def analysts(self) -> list[Analyst]:
        """Return everybody who may ask."""
        return self._tables.analysts()

    def admit(self, name: str, seal: bytes, budget: Fraction) -> None:
        """Add an analyst."""
        self._enter("analysts", name, seal, str(budget))

    def renew(self, analyst: Analyst, seal: bytes) -> None:
        """Give an analyst another token; the old one is worth nothing from now on."""
        self._enter("tokens", analyst.number, seal)

    def find(self, analyst: Analyst, key: str) -> tuple[bytes, Release] | None:
        """Return the digest and the answers of the batch under a key, if there is one."""
        wanted = "SELECT digest, answers, cost FROM batches WHERE analyst = ? AND key = ?"
        for digest, answers, cost in self._tables.asked(wanted, analyst.number, key):
            return digest, Release(unpacked(answers), Fraction(cost))
        return None

    def record(self, analyst: Analyst, key: str, digest: bytes, drawn: Release) -> None:
        """Bring a batch's spending and its answers to the disk, both or neither.

        Raises:
            LedgerError: They are not there, as far as is known; `reopen` tells.
        """
        remembered = None
        if drawn.keys is not None and drawn.firsts is not None:
            remembered = drawn.keys.astype("<u8").tobytes() + drawn.firsts.astype("<f8").tobytes()
        what = (len(drawn.values), str(drawn.cost), packed(drawn.values), remembered)
        self._enter("batches", analyst.number, key, digest, *what)
        if self._watch.size(LOG) - self._left >= LARGEST_LOG:
            self.tidy()

    def _enter(self, table: str, *values: object) -> None:
        """Add an entry: commit it, seal it, and see that it is where it will be looked for."""
        self._watch.look()
        row: Row = (self._chain.last + 1, *values)
        chain = linked(self._key, self._chain, table, row)
        columns, marks = ", ".join((*ENTRIES[table], "link")), ", ".join("?" * (len(row) + 1))
        with self._tables.transaction("IMMEDIATE"):
            if self._tables.asked("PRAGMA data_version") != self._version:
                raise LedgerError(f"{self.path} was written to by somebody else")
            self._tables.asked(
                f"INSERT INTO {table} ({columns}) VALUES ({marks})", *row, chain.head
            )
        self._seal.write(Seal(self._key, self.service, *chain.point))
        self._watch.look(LOG, SEAL)
        self._chain = chain

    def totals(self, analyst: Analyst) -> tuple[int, int, Fraction]:
        """Return how many batches and answers an analyst got, and their claimed loss together."""
        return self._tables.totals(analyst)

    def remembered(self, analyst: Analyst) -> Iterator[tuple[Keys, Floats]]:
        """Return the questions that an analyst had answered, and the answers, in order."""
        rows = self._tables.asked(
            "SELECT remembered FROM batches NOT INDEXED WHERE analyst = ? AND remembered "
            "IS NOT NULL ORDER BY number",
            analyst.number,
        )
        for (blob,) in rows:
            count = len(blob) // 24
            keys = np.frombuffer(blob, "<u8", 2 * count).reshape(2, count)
            yield keys.astype(np.uint64), np.frombuffer(blob, "<f8", count, 16 * count)

    def tidy(self) -> None:
        """Bring the log into the ledger itself (a checkpoint), as far as nobody is reading it.

        What cannot be brought there now stays in the log, which is as safe.
        """
        if self._watch.size(LOG):
            self._watch.look()
            with suppress(LedgerError):
                self._tables.asked("PRAGMA wal_checkpoint(TRUNCATE)")
            self._watch.look(LEDGER, LOG)
            self._left = self._watch.size(LOG)

    def reopen(self) -> None:
        """Read the file afresh after something went wrong with it.

        Raises:
            LedgerError: It is gone, or another one, or not what was written: all stays as it is.
        """
        for end in (LEDGER, SEAL):
            self._watch.same(end)
        with ExitStack() as meanwhile:
            if self._tables.open:
                self._let_go(meanwhile)
            with self._opening():
                self._tables.identity()
                _settle(self._tables)
                self._verify(self._chain.point)

    def _let_go(self, meanwhile: ExitStack) -> None:
        """Close the tables, but not while what is in their log stands nowhere else.

        Somebody reads along meanwhile, so that the index of the log stays: a full disk has no
        room for a new one.
        """
        try:
            for end in (LOG, INDEX):
                self._watch.same(end)
            with suppress(LedgerError):
                meanwhile.enter_context(closing(Tables(self.path, "ro")))
        except LedgerError:
            [(busy, *_)] = self._tables.asked("PRAGMA wal_checkpoint(TRUNCATE)")
            if busy:
                raise
        self._tables.close()

    def close(self) -> None:
        """Let go of the files."""
        with suppress(AttributeError):  # it may not have come that far
            self._tables.close()
        self._seal.close()


def _settle(tables: Tables) -> None:
    """Have a commit reach the disk before it counts, and the log stay until it is asked for."""
    if tables.asked("PRAGMA journal_mode = WAL") != [("wal",)]:
        raise LedgerError(f"{tables.path}: a ledger cannot be kept on this file system")
    for setting in ("synchronous = FULL", "wal_autocheckpoint = 0"):
        tables.asked(f"PRAGMA {setting}")
    tables.asked("SELECT name FROM sqlite_master")


def _make(path: Path, sealed: bool) -> None:
    """See that there is a file that only its owner can read; a new one is empty."""
    try:
        if path.is_file():
            path.chmod(PRIVATE)
        elif sealed:
            raise _gone(path)
        else:
            os.close(create_private(path))
            sync_folder(path)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be used as a ledger ({error.strerror})") from None


def _gone(path: Path) -> LedgerError:
    return LedgerError(
        f"the ledger {path} is gone or empty, and its seal is there: put it back. Only for a new "
        f"one, which knows of nothing that was spent, remove {seal_of_ledger(path)}"
    )


def _sealed(service: str, promise: str) -> bytes:
    """Return a digest that tells nothing about a table to who does not have the ledger."""
    return hashlib.blake2b(promise.encode(), key=service.encode(), digest_size=16).digest()
