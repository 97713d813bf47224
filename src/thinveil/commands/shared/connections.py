"""Bounds on what strangers may hold of a server: connections, bytes of headers, and time.

A guard against slow and half-open requests ("slowloris"). uvicorn waits for ever for the rest of
a header, and one of its two parsers keeps as much of it as is sent. Whoever is too slow or too
large is cut off here, whichever parser it is. Where connections run out, those give way that ask
for nothing: first the oldest half-sent header, of the address that holds most. Whoever comes
meanwhile with a whole header is taken in first; of all others a few at a time.

What was sent is never kept, logged or sent back; only how many were cut off, and why.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, ClassVar, Final, cast

try:
    import resource
except ImportError:  # there is none on Windows
    resource = None  # type: ignore[assignment]

BURST: Final = 32
"""Connections that are accepted in one turn of the loop; what they sent is read in the next."""
_GLANCES: Final = 256  # newcomers without a header that may be turned away in one turn
_PATIENT: Final = 8  # newcomers of a crowd that are taken in without one, in one turn
_SPARE: Final = 128  # descriptors for all else: the ledger, databases, libraries, some bursts
_DRAINED: Final = 2**18  # bytes: who reads as many in `unread_seconds` is slow, but reads
_SAID: Final = 60.0  # seconds between two lines about connections that were cut off
_HALF, _QUIET, _FULL = "half-sent headers", "no room", "all busy"
_LARGE, _SLOW, _UNREAD = "large headers", "slow bodies", "unread replies"
_PIPED: Final = "piled-up requests"

log = logging.getLogger("thinveil.service")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be held, and for how long."""

    connections: int = 512  # in all
    each: int = 256  # of one address; behind a proxy, everybody has the same
    header_bytes: int = 2**14  # line, headers; as much without content amid a body
    header_seconds: float = 10.0  # from the first byte, or the connection, to the whole header
    body_seconds: float = 90.0  # from there to the end of the body
    unread_seconds: float = 30.0  # in which something of a reply must be read
    piled: int = 16  # requests that may be sent before the first is answered
    tick: float = 1.0  # seconds between two looks

    def fitting(self) -> Bounds:
        """Return bounds that leave some of the files that this process may have open."""
        if resource is None:
            return self
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if most == resource.RLIM_INFINITY or most - _SPARE >= self.connections:
            return self
        fewer = max(most - _SPARE, 2)
        return replace(self, connections=fewer, each=min(self.each, fewer // 2))


class Doors:
    """All connections of one server, by address."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.cut: Counter[str] = Counter()
        self._peers: dict[str, dict[Guarded, None]] = {}
        self._open = self._made = 0
        self._patient = _PATIENT
        self._timer: asyncio.TimerHandle | None = None
        self._said = -_SAID

    def turned_away(self, newcomer: socket.socket, address: str) -> bool:
        """Close a connection that comes in a crowd without a whole header, but for a few a turn."""
        mine = len(self._peers.get(address, ()))
        if mine < self.bounds.each and (not mine or self._open < self.bounds.connections):
            return False
        newcomer.setblocking(False)
        with suppress(OSError):
            if b"\r\n\r\n" in newcomer.recv(self.bounds.header_bytes, socket.MSG_PEEK):
                return False
        if self._patient == _PATIENT:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._patient -= 1
        if self._patient >= 0:
            return False
        newcomer.close()
        self.cut[_QUIET] += 1
        return True

    def _next_turn(self) -> None:
        self._patient = _PATIENT

    def enter(self, connection: Guarded, address: str) -> bool:
        """Take a connection in, or tell that there is no room for it."""
        mine = self._peers.get(address, {})
        crowded = None
        if len(mine) >= self.bounds.each:
            crowded = [mine]
        elif self._open >= self.bounds.connections:
            crowded = sorted(self._peers.values(), key=len, reverse=True)
        if crowded is not None and not self._make_room(crowded):
            self.cut[_FULL] += 1
            return False
        self._peers.setdefault(address, {})[connection] = None
        self._open += 1
        self._made += 1
        connection.number = self._made
        if self._timer is None:
            self._timer = connection.loop.call_later(self.bounds.tick, self._look, connection.loop)
        return True

    def leave(self, connection: Guarded, address: str) -> None:
        """Forget a connection."""
        mine = self._peers.get(address, {})
        if connection in mine:
            del mine[connection]
            self._open -= 1
            if not mine:
                del self._peers[address]

    def _make_room(self, crowded: list[dict[Guarded, None]]) -> bool:
        """Cut off one that asks for nothing: a half-sent header, an idle one, an unread reply.

        What the newest have sent may not have been read yet, so they give way last.
        """
        read = self._made - 2 * BURST
        for gives_way in (
            lambda each: each.number <= read and each.is_half(),
            Guarded.is_quiet,
            Guarded.is_unread,
            Guarded.is_half,
        ):
            for connections in crowded:
                for each in connections:  # the oldest first
                    if gives_way(each):
                        each.cut_off(_QUIET)
                        return True
        return False

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cut off whoever is too slow, and say now and then how many that were."""
        now = time.monotonic()
        for connection in [each for peer in self._peers.values() for each in peer]:
            connection.look(now)
        if self.cut and now - self._said >= _SAID:
            self._said = now
            told = ", ".join(f"{why} {times}" for why, times in sorted(self.cut.items()))
            log.info("connections cut off: %s", told)
            self.cut.clear()
        self._timer = None
        if self._open or self.cut:
            self._timer = loop.call_later(self.bounds.tick, self._look, loop)


class Guarded(asyncio.Protocol):
    """A connection that is cut off when it holds too much; over one of uvicorn's protocols."""

    doors: ClassVar[Doors]
    tells_content: ClassVar[bool]
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any = None  # uvicorn's: one request and its reply, made once the header is whole
    timeout_keep_alive_task: asyncio.TimerHandle | None  # uvicorn's: holds on to the connection

    address = ""
    number = 0  # how many had been taken in with this one
    half_since: float | None = None  # when the header began that is not whole yet
    body_since: float | None = None  # when the body began that is not whole yet
    bare = 0  # bytes since the last that were content: of a header, or between parts of a body
    content = False  # whether the last piece had something of a body
    unread: tuple[float, int] | None = None  # since when a reply waits to be read, and how much

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let a connection in, where there is room."""
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self.half_since = time.monotonic()
        if self.doors.enter(self, self.address):
            super().connection_made(transport)
        else:
            self.transport.abort()
            self.data_received = lambda data: None  # type: ignore[method-assign]
            self.connection_lost = lambda exc: None  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.doors.leave(self, self.address)
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:  # uvicorn lets it run after a reset
            self.timeout_keep_alive_task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read a piece at a time, so that no parser gets more than it may keep."""
        most = self.doors.bounds.header_bytes
        for start in range(0, len(data), most):
            before, within, self.content = self.cycle, self.within_body(), False
            super().data_received(data if len(data) <= most else data[start : start + most])
            if self.transport.is_closing():
                return
            self._weigh(min(most, len(data) - start), self.cycle is not before, within)
            if self.transport.is_closing():
                return

    def resume_writing(self) -> None:
        """Note that a reply is being read."""
        self.unread = None
        super().resume_writing()

    def _weigh(self, size: int, whole: bool, within: bool) -> None:
        """Note where in a request a piece ended: was a header made whole, did a body go on."""
        now = time.monotonic()
        if whole:
            self.half_since, self.bare = None, 0
            self.body_since = now if self.within_body() else None
        elif not within:
            self.half_since = self.half_since or now
            self.bare += size
        elif self.within_body():
            self.bare = 0 if self.content or not self.tells_content else self.bare + size
        else:
            self.body_since, self.bare = None, 0
        if self.bare > self.doors.bounds.header_bytes:
            self._refuse(b"431 Request Header Fields Too Large", _LARGE)
        elif self.piled_up():
            self.cut_off(_PIPED)

    def within_body(self) -> bool:
        """Tell whether the next byte belongs to a body, or to the rest of one."""
        raise NotImplementedError

    def piled_up(self) -> bool:
        """Tell whether too many requests wait behind the one that is being answered."""
        return False

    @property
    def answering(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def is_half(self) -> bool:
        """Tell whether it sends a header, or the rest of a body that nobody reads any more."""
        return (self.half_since or self.body_since) is not None and not self.answering

    def is_quiet(self) -> bool:
        """Tell whether nothing at all is under way."""
        return not self.answering and not self.is_half() and self.unread is None

    def is_unread(self) -> bool:
        """Tell whether its reply has not been read for a while."""
        return self.unread is not None

    def look(self, now: float) -> None:
        """Cut it off where it is too slow."""
        bounds = self.doors.bounds
        half, body = self.half_since, self.body_since
        most = bounds.body_seconds if self.answering else bounds.header_seconds
        if half is not None and not self.answering and now - half > bounds.header_seconds:
            self._refuse(b"408 Request Timeout", _HALF)
        elif body is not None and now - body > most:
            self.cut_off(_SLOW)
        waiting = self.transport.get_write_buffer_size()
        if not waiting:
            self.unread = None
        elif self.unread is None or self.unread[1] - waiting >= _DRAINED:
            self.unread = now, waiting
        elif now - self.unread[0] > bounds.unread_seconds:
            self.cut_off(_UNREAD)

    def cut_off(self, why: str) -> None:
        """End the connection at once."""
        self.doors.cut[why] += 1
        self.doors.leave(self, self.address)
        self.transport.abort()

    def _refuse(self, status: bytes, why: str) -> None:
        """Say what was wrong where that is still possible, and end the connection."""
        if self.answering or self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.cut_off(why)
            return
        self.doors.cut[why] += 1
        ended = b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(b"HTTP/1.1 " + status + ended)
        self.transport.close()


class _OverH11(Guarded):
    """Of uvicorn's parser that is always there; it bounds what it keeps, and waits its turn."""

    tells_content = False
    conn: Any

    def within_body(self) -> bool:
        """Ask the parser."""
        from h11 import SEND_BODY

        return self.conn.their_state is SEND_BODY


class _OverHttptools(Guarded):
    """Of uvicorn's fast parser, which calls these as it reads."""

    tells_content = True
    pipeline: Any
    _within = False
    _spoilt = False

    def within_body(self) -> bool:
        """Tell what the parser said last."""
        return self._within

    def piled_up(self) -> bool:
        """Tell whether a request was left out."""
        return self._spoilt

    def on_headers_complete(self) -> None:
        """Begin a request, unless too many wait already."""
        self._spoilt |= len(self.pipeline) >= self.doors.bounds.piled
        if not self._spoilt:
            self._within = True
            self._super("on_headers_complete")()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self.content = True
        if not self._spoilt:
            self._super("on_body")(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._within = False
        if not self._spoilt:
            self._super("on_message_complete")()

    def _super(self, name: str) -> Callable[..., None]:
        return cast("Callable[..., None]", getattr(super(), name))


class Porch(socket.socket):
    """A listening socket that turns some newcomers away in a crowd, before they cost anything."""

    doors: Doors

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection that is taken in."""
        for _ in range(_GLANCES):
            newcomer, address = super().accept()
            if not isinstance(address, tuple) or not self.doors.turned_away(newcomer, address[0]):
                return newcomer, address
        raise BlockingIOError


def guarded(bounds: Bounds, parser: str = "") -> type[Guarded]:
    """Return a class of guarded connections, over the parser that is installed."""
    own: type[Guarded]
    base: type[asyncio.Protocol]
    if parser == "h11" or (not parser and find_spec("httptools") is None):
        from uvicorn.protocols.http.h11_impl import H11Protocol

        own, base = _OverH11, H11Protocol
    else:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        own, base = _OverHttptools, HttpToolsProtocol
    return type(own.__name__, (own, base), {"doors": Doors(bounds.fitting())})
