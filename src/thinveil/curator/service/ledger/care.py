"""What an operator does with a ledger: check it, back it up, seal it anew.

Checking and backing up read along while a service answers; sealing anew needs the ledger alone.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from thinveil.curator.service.ledger.base import ENTRIES, UNLINKED, Tables, goes_on, unsealed
from thinveil.curator.service.ledger.chain import SIZE, Chain, entries, followed, linked, start
from thinveil.curator.service.ledger.seal import Seal, SealFile, read_seal, seal_of_ledger
from thinveil.curator.service.ledger.watch import ALL, LOG
from thinveil.errors import LedgerError, OutputError
from thinveil.files import create_private, sync_folder


@dataclass(frozen=True, slots=True)
class Account:
    """How one analyst stands in a ledger."""

    name: str
    budget: Fraction
    spent: Fraction
    batches: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a ledger holds."""

    entries: int
    accounts: tuple[Account, ...]
    log: int  # bytes that are not in the ledger itself yet


def check(path: Path) -> Standing:
    """Go along the chain of a ledger, and tell what it holds; nothing is written.

    Raises:
        LedgerError: It was cut or edited, or nobody can tell.
    """
    with _there(path) as tables:
        _, standing = _held(tables, _seal(tables), path, _log(path))
        return standing


def backup(path: Path, target: Path) -> Standing:
    """Copy a ledger with its seal, as of one moment, and check the copy.

    The key goes along: without it, nobody could tell whether the copy was edited.

    Raises:
        LedgerError: The ledger was cut or edited.
        OutputError: The copy cannot be written, or would replace something.
    """
    for end in ALL:
        if os.path.lexists(taken := f"{target}{end}"):
            raise OutputError(f"{taken} exists already: choose another name for the copy")
    with _there(path) as tables, ExitStack() as undo:
        before = _seal(tables)
        try:
            os.close(create_private(target))
        except OSError as error:
            raise OutputError(f"{target}: {error.strerror}") from None
        undo.callback(target.unlink, missing_ok=True)
        tables.copy_to(target)
        with closing(Tables(target, "ro")) as copy:
            seal, standing = _held(copy, before, path)
        SealFile(seal_of_ledger(target)).make(seal)
        sync_folder(target)
        undo.pop_all()
    return standing


def reseal(path: Path) -> Standing:
    """Take a ledger as it is, and seal it under a new key; old ones get the tables for it.

    Raises:
        LedgerError: It is in use, or no ledger that can be read.
    """
    seal_file = SealFile(seal_of_ledger(path))
    with closing(seal_file), _there(path, alone=True) as tables:
        seal_file.open()
        tables.check_pages()
        key = secrets.token_bytes(SIZE)
        with tables.transaction("EXCLUSIVE"):
            if tables.identity()[1] == UNLINKED:
                tables.link_up()
            service, version, promise = tables.identity()
            chain = start(key, service, version, promise)
            links: dict[str, list[tuple[bytes, int]]] = {table: [] for table in ENTRIES}
            for table, row, _ in entries(tables):
                chain = linked(key, chain, table, row)
                links[table].append((chain.head, row[0]))
            for table, pairs in links.items():
                for pair in pairs:
                    tables.asked(f"UPDATE {table} SET link = ? WHERE number = ?", *pair)
            standing = _standing(tables, chain, 0)
        seal_file.make(Seal(key, service, *chain.point), overwrite=True)
    return standing


@contextmanager
def _there(path: Path, *, alone: bool = False) -> Iterator[Tables]:
    """Open a ledger that must be there."""
    if not path.is_file():
        raise LedgerError(f"there is no ledger {path}")
    with closing(Tables(path, "rw" if alone else "ro", alone=alone)) as tables:
        yield tables


def _seal(tables: Tables) -> Seal:
    """Return the seal of a ledger, as it is before the ledger is read."""
    if tables.identity()[1] == UNLINKED:
        raise unsealed(tables.path)
    return read_seal(seal_of_ledger(tables.path))


def _held(tables: Tables, before: Seal, path: Path, log: int = 0) -> tuple[Seal, Standing]:
    """Hold a ledger, or a copy of it, against the seal at `path`, which a service may write to.

    Returns:
        The seal of all that is there, and what that is.
    """
    with tables.transaction():
        tables.check_pages()
        chain = followed(tables, before.key, [before.point])
        standing = _standing(tables, chain, log)
    after = read_seal(seal_of_ledger(path))
    if after.key != before.key or chain.length > after.length + 1:
        raise LedgerError(f"{seal_of_ledger(path)} is an old one: {goes_on(path)}")
    return Seal(before.key, before.service, *chain.point), standing


def _standing(tables: Tables, chain: Chain, log: int) -> Standing:
    accounts = []
    for each in tables.analysts():
        batches, _, spent = tables.totals(each)
        accounts.append(Account(each.name, each.budget, spent, batches))
    return Standing(chain.length, tuple(accounts), log)


def _log(path: Path) -> int:
    try:
        return os.stat(f"{os.path.realpath(path)}{LOG}").st_size
    except OSError:
        return 0
