"""A ledger on disk: what was answered and what it cost, in one transaction.

One SQLite file in write-ahead mode, brought to the disk at every commit. A batch's spending
and its answers stand in the same row, so there is never one without the other. What was spent
is the sum over the rows; it is not kept anywhere. The file is readable by its owner alone,
and one process has it at a time.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.curator.curator import Release
from thinveil.curator.service.analysts import Analyst
from thinveil.errors import LedgerError
from thinveil.files import create_private, sync_folder
from thinveil.language.normal import Keys
from thinveil.language.queries import Floats
from thinveil.language.wire.packing import packed, unpacked

FORMAT: Final = 1
_TABLES: Final = """
CREATE TABLE service (id TEXT NOT NULL, format INTEGER NOT NULL, promise BLOB NOT NULL);
CREATE TABLE analysts (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seal BLOB NOT NULL,
    budget TEXT NOT NULL
);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, analyst INTEGER NOT NULL REFERENCES analysts, key TEXT NOT NULL,
    digest BLOB NOT NULL, queries INTEGER NOT NULL, cost TEXT NOT NULL, answers BLOB NOT NULL,
    remembered BLOB, UNIQUE (analyst, key)
);
"""


class LedgerFile:
    """The ledger of one service; the file is made where there is none.

    The promise says which table is asked under which mechanism. A ledger that was made for another
    one is refused, as is one that is in use.
    """

    def __init__(self, path: Path, promise: str) -> None:
        self.path = path
        _make(path)
        self._open()
        try:
            with self._transaction():
                if not self._asked("SELECT name FROM sqlite_master"):
                    self._create(promise)
            self.service = self._check(promise)
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            self._base = sqlite3.connect(
                self.path, timeout=0.2, isolation_level=None, check_same_thread=False
            )
            for setting in (
                "locking_mode = EXCLUSIVE",
                "journal_mode = WAL",
                "synchronous = FULL",
                "foreign_keys = ON",
            ):
                self._base.execute(f"PRAGMA {setting}").fetchall()
            self._base.execute("SELECT * FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            with suppress(AttributeError):
                self._base.close()
            raise _problem(self.path, error) from None

    def _create(self, promise: str) -> None:
        for statement in _TABLES.split(";\n"):
            if statement.strip():
                self._asked(statement)
        service = secrets.token_hex(16)
        self._asked(
            "INSERT INTO service VALUES (?, ?, ?)", service, FORMAT, _sealed(service, promise)
        )

    def _check(self, promise: str) -> str:
        try:
            [(service, version, sealed)] = self._asked("SELECT id, format, promise FROM service")
        except (LedgerError, ValueError):
            raise LedgerError(f"{self.path} is not the ledger of a service") from None
        if version != FORMAT:
            raise LedgerError(f"{self.path} is a ledger of another version of thinveil")
        if sealed != _sealed(service, promise):
            raise LedgerError(
                f"{self.path} is the ledger of another table, mechanism or policy: what was spent "
                "there does not count here. Name another file with --ledger"
            )
        assert isinstance(service, str)
        return service

    def analysts(self) -> list[Analyst]:
        """Return everybody who may ask."""
        rows = self._asked("SELECT number, name, seal, budget FROM analysts ORDER BY number")
        return [Analyst(number, name, seal, Fraction(text)) for number, name, seal, text in rows]

    def admit(self, name: str, seal: bytes, budget: Fraction) -> None:
        """Add an analyst."""
        with self._transaction():
            columns = "INSERT INTO analysts (name, seal, budget) VALUES (?, ?, ?)"
            self._asked(columns, name, seal, str(budget))

    def reseal(self, name: str, seal: bytes) -> None:
        """Give an analyst another token; the old one is worth nothing from now on."""
        with self._transaction():
            self._asked("UPDATE analysts SET seal = ? WHERE name = ?", seal, name)

    def find(self, analyst: Analyst, key: str) -> tuple[bytes, Release] | None:
        """Return the digest and the answers of the batch under a key, if there is one."""
        wanted = "SELECT digest, answers, cost FROM batches WHERE analyst = ? AND key = ?"
        for digest, answers, cost in self._asked(wanted, analyst.number, key):
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
        with self._transaction():
            self._asked(
                "INSERT INTO batches (analyst, key, digest, queries, cost, answers, remembered) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(analyst.number, key, digest, *what),
            )

    def totals(self, analyst: Analyst) -> tuple[int, int, Fraction]:
        """Return how many batches and answers an analyst got, and their claimed loss together."""
        rows = self._asked(
            "SELECT cost, COUNT(*), SUM(queries) FROM batches WHERE analyst = ? GROUP BY cost",
            analyst.number,
        )
        spent = sum((Fraction(cost) * times for cost, times, _ in rows), Fraction(0))
        return sum(row[1] for row in rows), sum(row[2] for row in rows), spent

    def remembered(self, analyst: Analyst) -> Iterator[tuple[Keys, Floats]]:
        """Return the questions that an analyst had answered, and the answers, in order."""
        rows = self._asked(
            "SELECT remembered FROM batches WHERE analyst = ? AND remembered IS NOT NULL "
            "ORDER BY number",
            analyst.number,
        )
        for (blob,) in rows:
            count = len(blob) // 24
            keys = np.frombuffer(blob, "<u8", 2 * count).reshape(2, count)
            yield keys.astype(np.uint64), np.frombuffer(blob, "<f8", count, 16 * count)

    def reopen(self) -> None:
        """Read the file afresh after something went wrong with it."""
        self.close()
        self._open()

    def close(self) -> None:
        """Let go of the file."""
        with suppress(sqlite3.Error):
            self._base.close()

    def _asked(self, statement: str, *values: object) -> list[Any]:
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise _problem(self.path, error) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Keep everything that is done inside, or nothing of it."""
        self._asked("BEGIN IMMEDIATE")
        try:
            yield
            self._asked("COMMIT")
        finally:
            if self._base.in_transaction:
                with suppress(sqlite3.Error):
                    self._base.execute("ROLLBACK")


def _make(path: Path) -> None:
    """See that there is a file that only its owner can read; a new one is empty."""
    try:
        if path.exists():
            path.chmod(0o600)
        else:
            os.close(create_private(path))
            sync_folder(path)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be used as a ledger ({error.strerror})") from None


def _sealed(service: str, promise: str) -> bytes:
    """Return a digest that tells nothing about a table to who does not have the ledger."""
    return hashlib.blake2b(promise.encode(), key=service.encode(), digest_size=16).digest()


def _problem(path: Path, error: sqlite3.Error) -> LedgerError:
    """Say what is wrong with the file; SQLite's own words may quote what was to be written."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerError(f"{path} is in use by another service")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return LedgerError(f"{path} is not a ledger, or a damaged one")
    if name.startswith("SQLITE_FULL"):
        return LedgerError(f"there is no room for the ledger {path}")
    return LedgerError(f"the ledger {path} cannot be read or written ({name or 'SQLite'})")
