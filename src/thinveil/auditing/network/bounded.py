"""A connection that ends in time: each read and write has what is left of the whole exchange.

Timeouts of sockets start anew with every byte, so whoever sends a byte now and then is never
late. Here an allowance of seconds and of bytes is spent by looking the name up, by connecting, by
TLS, by the request, by every interim reply, header, chunk and trailer.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import httpcore

_SILENCE: Final = 120.0
"""For how many seconds nothing may come before a reply counts as lost."""
_CONNECT: Final = 10.0
"""For how many seconds one of a host's addresses is tried."""
_SLICE: Final = 2**14
"""Bytes written at once, a record of TLS: a socket that takes any takes so many."""


class TooMuch(Exception):
    """More bytes came than what was asked can have."""


class Allowance:
    """What is left of one exchange: seconds, and bytes that may still come."""

    def __init__(self, seconds: float, most: int) -> None:
        self._end = time.monotonic() + seconds
        self._bytes = most

    def seconds(self) -> float:
        """Return how long the next step may take; a timeout where nothing is left."""
        if (left := self._end - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout
        return min(left, _SILENCE)

    def grant(self, more: int) -> None:
        """Let more bytes come."""
        self._bytes += more

    def take(self, count: int) -> None:
        """Count bytes that came."""
        self._bytes -= count
        if self._bytes < 0:
            raise TooMuch


class Backend(httpcore.NetworkBackend):
    """Makes connections that spend an allowance, each thread its own."""

    def __init__(self) -> None:
        self._bare = httpcore.SyncBackend()
        self._now = threading.local()

    @property
    def allowance(self) -> Allowance:
        """The allowance of the exchange that this thread is in."""
        found: Allowance = self._now.allowance
        return found

    @contextmanager
    def allowing(self, seconds: float, most: int) -> Iterator[Allowance]:
        """Give everything inside so many seconds and bytes."""
        self._now.allowance = Allowance(seconds, most)
        try:
            yield self.allowance
        finally:
            del self._now.allowance

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first of a host's addresses that answers."""
        failed: Exception = httpcore.ConnectError()
        for address in _addresses(host, port, self.allowance.seconds()):
            left = min(self.allowance.seconds(), _CONNECT)
            try:
                return _Stream(self, self._bare.connect_tcp(address, port, left, local_address))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed


class _Stream(httpcore.NetworkStream):
    """A connection whose every step is bounded."""

    def __init__(self, backend: Backend, bare: httpcore.NetworkStream) -> None:
        self._backend = backend
        self._bare = bare

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came, and count it."""
        allowance = self._backend.allowance
        data = self._bare.read(max_bytes, allowance.seconds())
        allowance.take(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, a slice at a time: whoever takes them slowly is late all the same."""
        view = memoryview(buffer)
        for start in range(0, len(view), _SLICE):
            part: Any = view[start : start + _SLICE]
            self._bare.write(part, self._backend.allowance.seconds())

    def close(self) -> None:
        """Close the connection."""
        self._bare.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Go on encrypted; Python's own timeout is for the whole handshake."""
        left = min(self._backend.allowance.seconds(), _CONNECT)
        return _Stream(self._backend, self._bare.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore wants to know of a connection."""
        return self._bare.get_extra_info(info)


def _addresses(host: str, port: int, seconds: float) -> list[str]:
    """Look a name up, in a thread that is left behind where the system takes too long."""
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    found: list[str] = []

    def look() -> None:
        with suppress(OSError, UnicodeError):
            told = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(str(each[4][0]) for each in told)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise httpcore.ConnectTimeout
    return found
