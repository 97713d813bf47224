"""Who is let in, how much is under way, and where it is done.

What can be refused by its header is refused before a byte of the body is kept; it is let pass, so
that the refusal arrives. Bodies are read into a bounded room and decoded in threads beside the
curator's: small ones in one, large ones in two others, so that a small batch waits for no large
one. Then the curator's thread looks up the key, prices, admits, counts, draws and records, for
one analyst after the other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.analysts import Analyst, Bucket, who_has
from thinveil.curator.service.pacing import Pace
from thinveil.curator.service.refusals import Refusal, refusal_of
from thinveil.curator.service.turns import Room, Turns
from thinveil.errors import BudgetSpent, LedgerError, ThinveilError
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.arrow import MEDIA_TYPE
from thinveil.language.wire.json import Asked, Reply
from thinveil.language.wire.limits import Limits

LARGEST_BATCH: Final = 1_000_000
RATE: Final = 1000.0
JSON: Final = "application/json"
BODIES: Final = 4
"""All bodies that are being read or wait may have so many times the bytes of the largest one."""
REPLIES: Final = 16
"""All replies that are under way may have so many times the numbers of the largest one."""
SMALL: Final = 2**16
"""Bytes of a body or of answers that wait for nothing large, of whomever."""
_AT_ONCE: Final = 2**12  # bytes that are decoded faster than another thread begins
_SPREAD: Final = 2**20  # bytes times attributes: what a small body may hold once it is spread out
_LARGE: Final = 2  # large batches that are decoded, wait so, or are counted
_WIDTH: Final = 8  # bytes of an answer

_T = TypeVar("_T")
log = logging.getLogger("thinveil.service")


@dataclass(frozen=True, slots=True)
class Settings:
    """How much a service takes."""

    largest_batch: int = LARGEST_BATCH  # answers
    largest_body: int = 64 * 2**20  # bytes of one request
    rate: float = RATE  # requests a second, for each analyst
    waiting: int = 256  # batches that may be under way, of all analysts; of one, a quarter
    body_seconds: float = 60.0  # how long a body may take to arrive
    pace: Pace = field(default_factory=Pace)  # how long the curator's thread is taken by a batch


class Door:
    """Everything between a request and the accounts."""

    def __init__(self, accounts: Accounts, settings: Settings, worker: ThreadPoolExecutor) -> None:
        schema = accounts.facts.schema
        self.accounts, self.settings, self.worker = accounts, settings, worker
        self.limits = Limits.of(schema, settings.largest_batch, settings.largest_body)
        self.small = min(SMALL, _SPREAD // len(schema))
        bodies, reply = self.limits.body, _WIDTH * settings.largest_batch
        many = settings.waiting
        self.batches = Room("many batches are waiting", many, max(many // 4, 1), 1)
        self.bodies = Room("much is waiting", BODIES * bodies, (BODIES - 1) * bodies, self.small)
        self.replies = Room("many replies wait", REPLIES * reply, REPLIES // 2 * reply, 0)
        self._buckets: dict[int, Bucket] = {}
        self._counting, self._decoding = Turns(1), Turns(_LARGE)
        self._light = ThreadPoolExecutor(1, thread_name_prefix="small")
        self._heavy = ThreadPoolExecutor(_LARGE, thread_name_prefix="large")

    def close(self) -> None:
        """Let go of all threads."""
        for each in (self._light, self._heavy, self.worker):
            each.shutdown()

    def admit(self, token: str) -> Analyst:
        """Return who asks, or refuse an unknown token or too many requests."""
        known = who_has(token, self.accounts.analysts)
        if known is None:
            raise Refusal(401, headers={"WWW-Authenticate": "Bearer"})
        bucket = self._buckets.setdefault(known.number, Bucket(self.settings.rate))
        if wait := bucket.wait():
            raise Refusal(429, retry=wait)
        return known

    @asynccontextmanager
    async def body(self, request: Any, who: int, kind: str) -> AsyncIterator[bytearray]:
        """Read a body, as far as neither it nor all bodies together are too large."""
        most = self.limits.json if kind == JSON else self.limits.body
        length = request.headers.get("content-length", "")
        told = int(length[:20]) if length.isdecimal() else 0
        if told > most:
            raise _too_large(kind, most)
        self.bodies.check(who, told)
        read = bytearray()
        try:
            try:
                async with asyncio.timeout(self.settings.body_seconds):
                    async for chunk in request.stream():
                        if len(read) + len(chunk) > most:
                            raise _too_large(kind, most)
                        self.bodies.take(who, len(chunk))
                        read += chunk
            except TimeoutError:
                raise Refusal(408, headers={"Connection": "close"}) from None
            yield read
        finally:
            self.bodies.give(who, len(read))

    @asynccontextmanager
    async def under_way(self, who: int) -> AsyncIterator[None]:
        """Let a batch of an analyst in, unless too many are under way."""
        self.batches.take(who, 1)
        try:
            yield
        finally:
            self.batches.give(who, 1)

    async def answer(self, analyst: Analyst, kind: str, body: bytearray) -> tuple[Asked, Reply]:
        """Decode a body and answer it; room for the reply is held from now on, as `size` says."""
        who, large = analyst.number, len(body) > self.small
        async with self._decoding.turn(who) if large else nullcontext():
            asked = await self._decoded(analyst, kind, body)
            size = self.size(asked)
            self.replies.take(who, size)
            try:
                counted = partial(self._counted, analyst, asked)
                return asked, _brought(await self.work(who, counted))
            except BaseException:
                self.replies.give(who, size)
                raise

    def size(self, asked: Asked) -> int:
        """Return how many bytes of room the answers to a batch take; few take none."""
        size = _WIDTH * asked.batch.queries
        return size if size > SMALL else 0

    async def work(self, who: int, what: Callable[[], _T]) -> _T:
        """Do something in the curator's thread, when the turn of an analyst comes."""
        async with self._counting.turn(who):
            return await asyncio.get_running_loop().run_in_executor(self.worker, what)

    async def beside(self, size: int, what: Callable[[], _T]) -> _T:
        """Do something small: at once where it is tiny, else in a thread of its own."""
        if size <= _AT_ONCE:
            return what()
        return await asyncio.get_running_loop().run_in_executor(self._light, what)

    async def _decoded(self, analyst: Analyst, kind: str, body: bytearray) -> Asked:
        form: Any = wire_arrow if kind == MEDIA_TYPE else wire
        schema, limits = self.accounts.facts.schema, self.limits

        def decode() -> Asked | Refusal:
            try:
                asked: Asked = form.decode_batch(body, schema, limits)
                return asked
            except ThinveilError as error:
                refusal = refusal_of(error)
                _note(analyst, None, None, refusal.status, 0.0)
                return refusal

        if len(body) <= self.small:
            return _brought(await self.beside(len(body), decode))
        running = asyncio.get_running_loop()
        return _brought(await running.run_in_executor(self._heavy, decode))

    def _counted(self, analyst: Analyst, asked: Asked) -> Reply | Refusal:
        """Answer one batch in the curator's thread, and write the line of the log."""
        started, began = time.perf_counter(), self.settings.pace.begin()
        reply: Reply | None = None
        status = 500
        try:
            reply = self.accounts.answer(analyst, asked)
            status = 200
            return reply
        except ThinveilError as error:
            left = None
            if isinstance(error, BudgetSpent):
                with suppress(LedgerError):
                    left = float(self.accounts.statement(analyst).left)
            refusal = refusal_of(error, left)
            status = refusal.status
            if isinstance(error, LedgerError):
                log.warning("%s", error)
            elif status == 503:
                log.warning("the table cannot be counted: %s", type(error).__name__)
            return refusal
        finally:
            _note(analyst, asked, reply, status, time.perf_counter() - started)
            self.settings.pace.end(began)


def _brought(found: _T | Refusal) -> _T:
    """Return what a thread found, or raise its refusal.

    A refusal that a frame keeps would keep that frame, and the batch in it, until the next
    collection of garbage.
    """
    if isinstance(found, Refusal):
        try:
            raise found
        finally:
            del found
    return found


def _too_large(kind: str, most: int) -> Refusal:
    rather = ": split it, or use Arrow" if kind == JSON else ""
    return Refusal(413, f"a body may have at most {most} bytes{rather}")


def _note(
    analyst: Analyst, asked: Asked | None, reply: Reply | None, status: int, seconds: float
) -> None:
    """Write the line of the log about a batch."""
    log.info(
        "analyst=%s key=%r questions=%d answers=%d cost=%s again=%s status=%d ms=%.1f",
        analyst.name,
        asked.key if asked else "",
        asked.batch.questions if asked else 0,
        asked.batch.queries if asked else 0,
        reply.cost if reply else 0,
        reply.again if reply else False,
        status,
        seconds * 1e3,
    )
