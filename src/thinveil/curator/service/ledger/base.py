"""The tables of a ledger, and the one way to them.

Everything in a ledger is an entry: an analyst who was let in, a token that was replaced, a batch
that was answered. Entries are numbered through all tables, are only ever added, and each carries
its link of the chain.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from thinveil.curator.service.analysts import Analyst
from thinveil.errors import LedgerError
from thinveil.language.texts import quoted

FORMAT: Final = 2
UNLINKED: Final = 1
"""The format of ledgers before there was a chain."""
_FIRST: Final = {
    "service": "CREATE TABLE service(id TEXT NOT NULL,format INTEGER NOT NULL,"
    "promise BLOB NOT NULL)",
    "analysts": "CREATE TABLE analysts(number INTEGER PRIMARY KEY,name TEXT NOT NULL UNIQUE,"
    "seal BLOB NOT NULL,budget TEXT NOT NULL{link})",
    "batches": "CREATE TABLE batches(number INTEGER PRIMARY KEY,"
    "analyst INTEGER NOT NULL REFERENCES analysts,key TEXT NOT NULL,digest BLOB NOT NULL,"
    "queries INTEGER NOT NULL,cost TEXT NOT NULL,answers BLOB NOT NULL,remembered BLOB{link},"
    "UNIQUE(analyst,key))",
}
_TOKENS: Final = (
    "CREATE TABLE tokens(number INTEGER PRIMARY KEY,"
    "analyst INTEGER NOT NULL REFERENCES analysts,seal BLOB NOT NULL,link BLOB)"
)
TABLES: Final = {
    **{name: text.format(link=",link BLOB") for name, text in _FIRST.items()},
    "tokens": _TOKENS,
}
_TABLES_UNLINKED: Final = {name: text.format(link="") for name, text in _FIRST.items()}
ENTRIES: Final = {
    "analysts": ("number", "name", "seal", "budget"),
    "tokens": ("number", "analyst", "seal"),
    "batches": (
        *("number", "analyst", "key", "digest", "queries", "cost", "answers", "remembered"),
    ),
}
"""The tables that have entries, and their columns: all but the link."""
Row = tuple[Any, ...]
_SPACES: Final = re.compile(r" ?([(),]) ?")  # those that mean nothing
_NAME: Final = re.compile("[0-9a-f]{32}")  # of a service
_MOMENT: Final = 0.2  # seconds that a lock is waited for


class Tables:
    """A ledger that is open, be it in use by a service or not.

    Args:
        path: Where it is; it must be there.
        mode: "rw", or "ro" to leave everything as it is.
        alone: Whether nobody else may have it open.
    """

    def __init__(self, path: Path, mode: str = "rw", *, alone: bool = False) -> None:
        self.path = path
        self.open = True
        address = f"{path.absolute().as_uri()}?mode={mode}"
        try:
            self._base = sqlite3.connect(
                address, _MOMENT, uri=True, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise problem(path, error) from None
        try:
            if alone:
                self.asked("PRAGMA locking_mode = EXCLUSIVE")
            self.asked("PRAGMA foreign_keys = ON")
            self.layout = self._layout()
        except BaseException:
            self.close()
            raise

    def asked(self, statement: str, *values: object) -> list[Any]:
        """Do what a statement says, and return its rows."""
        return list(self.rows(statement, *values))

    def rows(self, statement: str, *values: object) -> Iterator[Row]:
        """Return rows one by one, however many there are."""
        try:
            for row in self._base.execute(statement, values):  # noqa: UP028, it may outlive the base
                yield row
        except sqlite3.Error as error:
            raise problem(self.path, error) from None
        except UnicodeDecodeError:
            raise LedgerError(f"{self.path} is damaged") from None

    @contextmanager
    def transaction(self, kind: str = "") -> Iterator[None]:
        """Keep everything that is done inside, or nothing of it; what is read is of one moment."""
        self.asked(f"BEGIN {kind}")
        try:
            yield
            self.asked("COMMIT")
        finally:
            if self._base.in_transaction:
                with suppress(sqlite3.Error):
                    self._base.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file."""
        self.open = False
        with suppress(sqlite3.Error):
            self._base.close()

    def copy_to(self, path: Path) -> None:
        """Copy everything, as of one moment, into an empty file."""
        try:
            copy = sqlite3.connect(path, isolation_level=None)
            try:
                self._base.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file is all of it
            finally:
                copy.close()
        except sqlite3.Error as error:
            raise problem(path, error) from None

    def create(self, service: str, promise: bytes) -> None:
        """Make the tables of a new ledger, unless somebody else was quicker."""
        with self.transaction("IMMEDIATE"):
            if not self._layout():
                for statement in TABLES.values():
                    self.asked(statement)
                self.asked("INSERT INTO service VALUES (?, ?, ?)", service, FORMAT, promise)
        self.layout = self._layout()

    def identity(self) -> tuple[str, int, bytes]:
        """Return the service's name, the format, and the digest of what the ledger is for.

        Raises:
            LedgerError: These are not the tables of a ledger, as this version makes them.
        """
        try:
            [(service, version, promise)] = self.asked("SELECT id, format, promise FROM service")
            kinds = tuple(type(each) for each in (service, version, promise))
        except (LedgerError, ValueError):
            kinds = ()
        # SQLite keeps values of any kind in any column
        if kinds != (str, int, bytes) or not _NAME.fullmatch(service):
            raise LedgerError(f"{self.path} is not the ledger of a service")
        if version not in (FORMAT, UNLINKED):
            raise LedgerError(f"{self.path} is a ledger of another version of thinveil")
        if self.layout != (TABLES if version == FORMAT else _TABLES_UNLINKED):
            raise LedgerError(f"{self.path} has other tables than thinveil makes: it was edited")
        return service, version, promise

    def link_up(self) -> None:
        """Give tables of before there was a chain the columns for it."""
        for name in ("analysts", "batches"):
            self.asked(f"ALTER TABLE {name} ADD COLUMN link BLOB")
        self.asked(_TOKENS)
        self.asked("UPDATE service SET format = ?", FORMAT)
        self.layout = self._layout()

    def analysts(self) -> list[Analyst]:
        """Return everybody who may ask, each with the last of their tokens."""
        rows = self.asked("SELECT number, name, seal, budget FROM analysts ORDER BY number")
        newer = dict(self.asked("SELECT analyst, seal FROM tokens ORDER BY number"))
        try:
            return [
                Analyst(number, name, newer.get(number, seal), Fraction(budget))
                for number, name, seal, budget in rows
            ]
        except (TypeError, ValueError, ZeroDivisionError):
            raise LedgerError(f"{self.path}: a budget in it is no number") from None

    def totals(self, analyst: Analyst) -> tuple[int, int, Fraction]:
        """Return how many batches and answers an analyst got, and their claimed loss together."""
        rows = self.asked(
            "SELECT cost, COUNT(*), SUM(queries) FROM batches NOT INDEXED WHERE analyst = ? "
            "GROUP BY cost",
            analyst.number,
        )
        try:
            spent = sum((Fraction(cost) * times for cost, times, _ in rows), Fraction(0))
        except (TypeError, ValueError, ZeroDivisionError):
            raise LedgerError(f"{self.path}: a cost in it is no number") from None
        return sum(row[1] for row in rows), sum(row[2] for row in rows), spent

    def check_pages(self) -> None:
        """See that tables and their indexes are whole and agree."""
        if self.asked("PRAGMA integrity_check(1)") != [("ok",)]:
            raise LedgerError(f"{self.path} is damaged")

    def _layout(self) -> dict[str, str]:
        found = self.asked("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        if not all(isinstance(each, str) for row in found for each in row):
            raise LedgerError(f"{self.path} is damaged")
        return {name: _SPACES.sub(r"\1", " ".join(text.split())) for name, text in found}


def problem(path: Path, error: sqlite3.Error) -> LedgerError:
    """Say what is wrong with the file; SQLite's own words may quote what was to be written."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerError(f"{path} is in use by another service")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return LedgerError(f"{path} is not a ledger, or a damaged one")
    if name.startswith("SQLITE_FULL"):
        return LedgerError(f"there is no room for the ledger {path}")
    return LedgerError(f"the ledger {path} cannot be read or written ({name or 'SQLite'})")


def goes_on(path: Path) -> str:
    """Say how a ledger is used in spite of what is wrong with it."""
    again = f"thinveil ledger reseal {quoted(str(path))}"
    return f"Put back a backup, or go on with what is there: {again}"


def unsealed(path: Path) -> LedgerError:
    """Say that a ledger is of before there was a chain."""
    return LedgerError(
        f"the ledger {path} was made before thinveil sealed ledgers: nobody can tell whether it "
        f"was edited. To use it: thinveil ledger reseal {quoted(str(path))}"
    )
