"""A line between a standing task and the driver: TCP, and a secret that both ends must know.

The secret travels inside the job, as Spark sends its code. Each end proves that it has it (by a
keyed hash of what the other end drew), and every message carries a keyed hash of its place and
content. What is said is not hidden from who listens on the network.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from thinveil.curator.database.spark.messages import Garbled

MOST_BYTES: Final = 2**30
"""No message is longer (a round figure, far above what is sent)."""
BYE: Final = b"bye"
"""What a task says that leaves since nobody asked."""

GREETING: Final = 5.0
"""Seconds that the driver gives to a greeting: who calls may be anybody (a round figure)."""

_HEAD: Final = struct.Struct("<Q16s")
_CALL: Final = struct.Struct("<Q16s")
_HELLO: Final = struct.Struct("<Q8s")
_DRAWN: Final = 32
_PATIENCE: Final = 20.0  # seconds for all of a greeting
_STALLED: Final = 60.0  # seconds without a byte inside a message: the other end has vanished
_CLOSED: Final = "the other end is gone"


class Line:
    """One end of a line that knows who is at the other."""

    def __init__(self, end: socket.socket, secret: bytes, mine: bytes, other: bytes) -> None:
        self._end = end
        self._secret = secret
        self._sides = {"out": mine, "in": other}
        self._places = {"out": 0, "in": 0}

    @staticmethod
    def to(where: tuple[str, int], secret: bytes) -> Line:
        """Call the driver, and hang up unless it knows the secret."""
        end = socket.create_connection(where, timeout=_PATIENCE)
        return Line._greeted(end, secret, b"task", b"driver", _PATIENCE)

    @staticmethod
    def of(end: socket.socket, secret: bytes) -> Line:
        """Take the call of a task, and hang up unless it soon shows that it knows the secret."""
        return Line._greeted(end, secret, b"driver", b"task", GREETING)

    @staticmethod
    def _greeted(
        end: socket.socket, secret: bytes, mine: bytes, other: bytes, patience: float
    ) -> Line:
        last = time.monotonic() + patience
        try:
            end.settimeout(patience)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            drawn = secrets.token_bytes(_DRAWN)
            end.sendall(drawn)
            theirs = _exactly(end, _DRAWN, last)
            # The task proves first: nobody learns from a driver what a keyed hash is like.
            both = b"".join(sorted((drawn, theirs)))
            for side in (b"task", b"driver"):
                text = side + both
                proof = hashlib.blake2b(text, key=secret, digest_size=32).digest()
                if side == mine:
                    end.sendall(proof)
                elif not hmac.compare_digest(_exactly(end, 32, last), proof):
                    raise Garbled("whoever called does not know the secret of the job")
            key = hashlib.blake2b(both, key=secret).digest()
            end.settimeout(_STALLED)
            return Line(end, key, mine, other)
        except BaseException:
            end.close()
            raise

    def fileno(self) -> int:
        """Return what tells whether there is something to hear."""
        return self._end.fileno()

    def send(self, content: bytes) -> None:
        """Send one message."""
        self._end.sendall(_HEAD.pack(len(content), self._hash("out", content)) + content)

    def receive(self) -> bytes:
        """Return the next message."""
        length, seal = _HEAD.unpack(_exactly(self._end, _HEAD.size))
        if length > MOST_BYTES:
            raise Garbled("a message is too long")
        content = _exactly(self._end, length)
        if not hmac.compare_digest(self._hash("in", content), seal):
            raise Garbled("a message was changed on its way")
        return content

    def wait(self, idle: float) -> bytes | None:
        """Return the next message; None where the other end hung up or nothing came for long."""
        self._end.settimeout(idle)
        try:
            if not self._end.recv(1, socket.MSG_PEEK):
                return None
        except TimeoutError:
            with suppress(OSError):
                self.send(BYE)
            return None
        except OSError:
            return None
        self._end.settimeout(_STALLED)
        return self.receive()

    def _hash(self, way: str, content: bytes) -> bytes:
        place = self._places[way]
        self._places[way] += 1
        seal = hashlib.blake2b(key=self._secret, digest_size=16)
        seal.update(self._sides[way] + struct.pack("<Q", place))
        seal.update(content)
        return seal.digest()

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def call(part: int, attempt: bytes) -> bytes:
    """Write what a task says first: its part, and which start of the whole job it belongs to."""
    return _CALL.pack(part, attempt)


def called(message: bytes) -> tuple[int, bytes]:
    """Read that."""
    if len(message) != _CALL.size:
        raise Garbled("no call of a task")
    part, attempt = _CALL.unpack(message)
    return part, attempt


def hello(records: int, seal: str) -> bytes:
    """Write what it says once it can count: how many records it has, and their seal."""
    return _HELLO.pack(records, bytes.fromhex(seal))


def told(message: bytes) -> tuple[int, str]:
    """Read that."""
    if len(message) != _HELLO.size:
        raise Garbled("no greeting of a task")
    records, seal = _HELLO.unpack(message)
    return records, seal.hex()


def speaking(lines: Iterable[Line], seconds: float) -> list[Line]:
    """Return the lines on which there is something to hear, as soon as there is.

    Raises:
        OSError: One of them is closed.
    """
    with DefaultSelector() as selector:  # select() takes no number of a file above 1023
        try:
            for line in lines:
                selector.register(line, EVENT_READ, line)
        except ValueError:
            raise ConnectionError(_CLOSED) from None
        return [key.data for key, _ in selector.select(seconds)]


def _exactly(end: socket.socket, length: int, last: float | None = None) -> bytes:
    """Return so many bytes, all of them before a moment if one is given."""
    parts = bytearray()
    while len(parts) < length:
        if last is not None:
            end.settimeout(max(last - time.monotonic(), 0.001))
        some = end.recv(min(length - len(parts), 2**20))
        if not some:
            raise ConnectionError(_CLOSED)
        parts += some
    return bytes(parts)
