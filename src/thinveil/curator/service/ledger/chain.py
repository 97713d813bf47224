"""Each entry of a ledger is linked to all before it, under a key that is kept elsewhere.

A keyed hash chain: the link of an entry is the keyed BLAKE2b of the link before it and of the
whole row. Who does not have the key can neither change, add, move nor drop an entry so that the
links still fit; what they can do is to cut entries off at the end, so the length and the last
link are kept with the key (`seal`).
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from thinveil.curator.service.ledger.base import ENTRIES, Row, Tables, goes_on
from thinveil.errors import LedgerError
from thinveil.language.texts import many

SIZE: Final = 32
"""Bytes of a key and of a link."""
_PURPOSE: Final = b"thinveil entry"
Point = tuple[int, bytes]
"""That after so many entries the last link is this one."""


@dataclass(frozen=True, slots=True)
class Chain:
    """How far a chain has come."""

    length: int  # entries
    head: bytes  # the link of the last one
    last: int  # its number, which may be larger than the length

    @property
    def point(self) -> Point:
        """What a seal keeps of it."""
        return self.length, self.head


def start(key: bytes, service: str, version: int, promise: bytes) -> Chain:
    """Return the chain without an entry: it begins with what the ledger is for."""
    return Chain(0, _hashed(key, b"", "service", (service, version, promise)), 0)


def linked(key: bytes, chain: Chain, table: str, row: Row) -> Chain:
    """Return the chain with one more entry."""
    return Chain(chain.length + 1, _hashed(key, chain.head, table, row), row[0])


def followed(tables: Tables, key: bytes, points: Iterable[Point]) -> Chain:
    """Go along a whole chain, through the points that are known of it.

    Raises:
        LedgerError: An entry was changed, added, moved or dropped.
    """
    known: dict[int, set[bytes]] = {}
    for length, head in points:
        known.setdefault(length, set()).add(head)
    chain = start(key, *tables.identity())
    if known.get(0, {chain.head}) != {chain.head}:
        raise _altered(tables, "it is for another service, or its first line was changed")
    for table, row, link in entries(tables):
        chain = linked(key, chain, table, row)
        if link != chain.head or known.get(chain.length, {link}) != {link}:
            raise _altered(tables, f"its entry {chain.length:,} is not the one that was written")
    if chain.length < (most := max(known, default=0)):
        ends = f"it ends after {many(chain.length, 'entry', 'entries')}"
        raise _altered(tables, f"{ends}, and {most:,} were written")
    return chain


def entries(tables: Tables) -> Iterator[tuple[str, Row, bytes]]:
    """Return every entry in order: its table, its row, its link."""

    def read(place: int, table: str) -> Iterator[tuple[int, int, str, Row]]:
        columns = ", ".join((*ENTRIES[table], "link"))
        for row in tables.rows(f"SELECT {columns} FROM {table} NOT INDEXED ORDER BY number"):
            yield row[0], place, table, row

    for _, _, table, row in heapq.merge(*(read(*each) for each in enumerate(ENTRIES))):
        yield table, row[:-1], row[-1]


def _altered(tables: Tables, how: str) -> LedgerError:
    return LedgerError(f"the ledger {tables.path} was cut or edited: {how}. {goes_on(tables.path)}")


def _hashed(key: bytes, before: bytes, table: str, row: Row) -> bytes:
    """Return a link; blobs stand behind the rest, which says how long they are."""
    blobs = [each for each in row if isinstance(each, bytes)]
    plain = [(len(each),) if isinstance(each, bytes) else each for each in row]
    text = ascii((table, *plain)).encode()
    whole = b"".join((before, text, *blobs))
    return hashlib.blake2b(whole, key=key, digest_size=SIZE, person=_PURPOSE).digest()
