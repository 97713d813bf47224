"""One request and its reply: no more bytes, no longer and in no other form than was asked for.

Nothing is followed, kept or unpacked: httpcore knows neither redirects nor cookies nor encodings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from thinveil.auditing.network.bounded import Backend, TooMuch
from thinveil.auditing.network.origins import Origin, loopback
from thinveil.errors import UsageError

ERRORS: Final = 2**16
"""The most bytes that are read of a reply that says what went wrong."""
_HEAD: Final = 2**17
"""Bytes that may come before a body: headers, which h11 bounds at 100 kB, and interim replies."""
_FRAMES: Final = 2
"""How many times its own size a body may have on the line: chunks have lengths of their own."""
_KEPT: Final = 5.0
"""For how many seconds a connection is kept for the next request, as httpx does."""
_PROXIES: Final = {"http": 80, "https": 443}
"""The usual port of a proxy, by how it is spoken to."""
_FAILURES: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
)


class Failed(Exception):
    """No reply, or one that cannot be used; the next one may be."""


class Faulty(Exception):
    """A reply that no service gives by chance; it is not asked for again."""


@dataclass(frozen=True, slots=True)
class Received:
    """A reply.

    Args:
        status: Its status.
        headers: Its headers, by their names in small letters.
        body: Its body; of an error that is long or compressed, the beginning or nothing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Line:
    """The way to one origin; whatever goes there carries its token."""

    def __init__(self, origin: Origin, authorization: str) -> None:
        self._origin = origin
        self._headers: dict[bytes | str, bytes | str] = {
            "Host": str(origin).partition("://")[2],
            "User-Agent": "thinveil",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Authorization": authorization,
        }
        self._backend = Backend()
        self._pool = _pool(origin, self._backend)

    def close(self) -> None:
        """Let go of the connection."""
        self._pool.close()

    def exchange(
        self, method: str, path: str, body: tuple[bytes, str] | None, seconds: float, most: int
    ) -> Received:
        """Send a request and return its reply.

        Args:
            method: GET or POST.
            path: What is wanted of the origin.
            body: What is sent, and its type.
            seconds: How long everything may take, from the name to the last byte.
            most: The most bytes that the body of the reply can have.

        Raises:
            Failed: Nothing came, or what is no HTTP, or it was too late.
            Faulty: More came than was asked for, or it is compressed.
        """
        origin = self._origin
        url = httpcore.URL(
            scheme=origin.scheme, host=origin.host, port=origin.port, target=path or "/"
        )
        headers, content = self._headers, None
        if body is not None:
            content, kind = body
            headers = {**headers, "Content-Type": kind}
        try:
            with (
                self._backend.allowing(seconds, _HEAD) as allowance,
                self._pool.stream(
                    method,
                    url,
                    headers=headers,
                    content=content,
                    extensions={"timeout": {"pool": seconds}},
                ) as response,
            ):
                allowance.grant(_FRAMES * max(most, ERRORS))
                return _received(response, most)
        except TooMuch:
            raise Faulty(_too_much(most)) from None
        except _FAILURES as error:
            raise Failed(type(error).__name__) from None


def _received(response: httpcore.Response, most: int) -> Received:
    """Read a reply as far as it may go."""
    headers: dict[str, str] = {}
    for name, value in response.headers:
        key, text = name.decode("ascii", "replace").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    good = response.status == 200
    plain = set(headers.get("content-encoding", "").lower().replace(",", " ").split())
    if plain - {"identity"}:
        if good:
            raise Faulty("its replies are compressed, which was not asked for")
        return Received(response.status, headers, b"")
    if good and int(headers.get("content-length", "0")) > most:
        raise TooMuch
    parts, size, limit = [], 0, most if good else ERRORS
    for part in response.iter_stream():
        parts.append(part)
        size += len(part)
        if size > limit:
            if good:
                raise TooMuch
            break
    return Received(response.status, headers, b"".join(parts)[:limit])


def _too_much(most: int) -> str:
    return f"it sends more than the {most:,} bytes that the reply can have"


def _pool(origin: Origin, backend: Backend) -> httpcore.ConnectionPool:
    """Return where connections are kept; behind the environment's proxy for https, if it has one.

    Without TLS a proxy would read the token, so http goes straight.
    """
    how: dict[str, Any] = {"keepalive_expiry": _KEPT, "network_backend": backend}
    proxy = "" if origin.scheme == "http" or loopback(origin.host) else _proxy(origin.host)
    if not proxy:
        return httpcore.ConnectionPool(**how)
    try:
        parts = urlsplit(proxy)
        socks = parts.scheme in ("socks5", "socks5h") and find_spec("socksio") is not None
        if not parts.hostname or not (socks or parts.scheme in _PROXIES):
            raise ValueError
        if parts.username is not None:
            how["proxy_auth"] = (unquote(parts.username), unquote(parts.password or ""))
        port = parts.port or _PROXIES.get(parts.scheme, 1080)
        where = httpcore.URL(scheme=parts.scheme, host=parts.hostname, port=port, target="/")
        return (httpcore.SOCKSProxy if socks else httpcore.HTTPProxy)(proxy_url=where, **how)
    except (ValueError, UnicodeError):
        raise UsageError(
            "the proxy that the environment names for https cannot be used: HTTPS_PROXY looks "
            "like http://proxy.example:3128 (socks5:// needs the package socksio)"
        ) from None


def _proxy(host: str) -> str:
    """Return the proxy that the environment names for a host; empty where there is none."""
    if proxy_bypass(host):
        return ""
    found = getproxies()
    proxy = found.get("https") or found.get("all") or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"
