"""Strangers who hold a server's connections, memory and time without any token.

The adversary is anybody who reaches the port. Bounds are lowered so that little suffices.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest

from services import listening
from thinveil.commands.shared.connections import BURST, Bounds, Doors, Guarded
from worlds import sweep

SOON = {"header_seconds": 0.3, "body_seconds": 0.5, "unread_seconds": 0.5, "tick": 0.05}
LATE = 20.0  # seconds after which a server counts as dead
HALF = b"GET /health HTTP/1.1\r\nHost: here\r\nX-Secret-Text: "
LARGE = 16 * 2**20
PARSERS = pytest.mark.parametrize("parser", sweep(["httptools", "h11"], 2))


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer /health, something large, and /body once it is there."""
    if scope["type"] != "http":
        return
    path = scope["path"]
    if path == "/body":
        while (await receive()).get("more_body"):
            pass
    body = b"x" * LARGE if path == "/large" else b"ok"
    length = b"%d" % len(body)
    status = 405 if scope["method"] == "CONNECT" else 200
    await send(
        {"type": "http.response.start", "status": status, "headers": [(b"content-length", length)]}
    )
    for start in range(0, len(body), 2**18):
        part = body[start : start + 2**18]
        more = start + len(part) < len(body)
        await send({"type": "http.response.body", "body": part, "more_body": more})


class Server:
    def __init__(self, url: str) -> None:
        self.url = url
        self.place = ("127.0.0.1", int(url.rsplit(":", 1)[1]))

    def healthy(self) -> bool:
        return httpx.get(f"{self.url}/health", timeout=LATE, trust_env=False).text == "ok"

    def connect(self) -> socket.socket:
        return socket.create_connection(self.place, timeout=LATE)


@contextmanager
def server(parser: str, **bounds: Any) -> Iterator[Server]:
    with listening(app, bounds=Bounds(**bounds), parser=parser) as url:
        yield Server(url)


def ended(connection: socket.socket) -> bytes:
    """Return what comes until the other side ends; fail where it never does."""
    got = b""
    try:
        while part := connection.recv(2**16):
            got = got[:100] + part
    except ConnectionError:
        pass
    return got


def flooded(connection: socket.socket, piece: bytes, most: int) -> int:
    """Send a piece again and again until the other side ends; return how many bytes it took."""
    sent = 0
    try:
        while sent < most:
            sent += connection.send(piece)
    except ConnectionError:
        pass
    return sent


@PARSERS
def test_half_sent_headers_leave_room_for_others(parser: str) -> None:
    with server(parser, connections=40, each=30) as here:
        held = [here.connect() for _ in range(200)]
        for each in held:
            with_luck(each, HALF)
        assert here.healthy()
        assert sum(map(is_open, held)) <= 30
        for each in held:
            each.close()


def with_luck(connection: socket.socket, data: bytes) -> None:
    with suppress(ConnectionError):
        connection.sendall(data)


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@PARSERS
def test_a_busy_connection_does_not_give_way(parser: str) -> None:
    """A crowd of half-sent headers pushes out half-sent headers, not a body under way."""
    with server(parser, connections=40, each=30) as here, here.connect() as busy:
        busy.sendall(b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nab")
        assert here.healthy()
        held = [here.connect() for _ in range(100)]
        assert here.healthy()
        busy.sendall(b"cd")
        assert busy.recv(12) == b"HTTP/1.1 200"
        for each in held:
            each.close()


class Held(Guarded):
    """A connection that only notes whether it was cut off."""

    was_cut = False

    def __init__(self, doors: Doors, loop: Any) -> None:
        self.doors, self.loop = doors, loop  # type: ignore[misc]
        assert doors.enter(self, "here")

    def cut_off(self, why: str) -> None:
        self.was_cut = True
        self.doors.leave(self, "here")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def test_who_has_just_come_is_not_pushed_out(loop: Any) -> None:
    """Bodies after their refusal crowd the server; a newcomer's header has not been read yet."""
    doors = Doors(Bounds(connections=200, each=100))
    crowd = [Held(doors, loop) for _ in range(99)]
    for each in crowd:
        each.body_since = 1.0
    idle = crowd[7]
    idle.body_since = None
    newcomers = []
    for _ in range(BURST):
        newcomers.append(Held(doors, loop))
        newcomers[-1].half_since = 2.0
    assert not any(each.was_cut for each in newcomers)
    assert not idle.was_cut  # it keeps its connection for the next request
    assert [each.was_cut for each in crowd[:30]].count(True) == 29


def test_in_a_crowd_a_whole_header_goes_first(loop: Any) -> None:
    doors = Doors(Bounds(connections=200, each=100))

    def turned_away(sent: bytes, address: str = "here") -> bool:
        one, two = socket.socketpair()
        with one, two:
            two.sendall(sent)
            return doors.turned_away(one, address)

    async def newcomers() -> None:
        assert not any(turned_away(HALF) for _ in range(99))  # there is room
        held = [Held(doors, loop) for _ in range(100)]
        patient = [turned_away(HALF) for _ in range(50)]
        assert 1 <= patient.count(False) < 20
        assert turned_away(b"")
        assert not turned_away(HALF + b"a\r\n\r\n")
        assert not turned_away(HALF, "elsewhere")
        await asyncio.sleep(0)
        assert not turned_away(HALF)  # a few in every turn of the loop
        assert not any(each.was_cut for each in held)

    loop.run_until_complete(newcomers())


@PARSERS
def test_where_all_are_busy_a_newcomer_is_turned_away(parser: str) -> None:
    with server(parser, connections=8, each=8) as here:
        held = [here.connect() for _ in range(8)]
        for each in held:
            each.sendall(b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nab")
        time.sleep(0.3)
        with here.connect() as late:
            assert ended(late) == b""
        for each in held:
            each.sendall(b"cd")
            assert each.recv(12) == b"HTTP/1.1 200"
            each.close()
        assert here.healthy()


@PARSERS
def test_a_header_must_come_in_time(parser: str) -> None:
    """Slowloris: a byte now and then does not put the end off."""
    drips = {b"": b"", HALF: b"a", b"\r\n": b"\r\n"}
    with server(parser, **SOON) as here:
        for start, drip in drips.items():
            with here.connect() as slow:
                with_luck(slow, start)
                assert dripped(slow, drip)[:12] in (b"", b"HTTP/1.1 408", b"HTTP/1.1 400")


def dripped(connection: socket.socket, drip: bytes) -> bytes:
    """Send a little now and then until the other side says or ends something."""
    connection.settimeout(0.05)
    for _ in range(400):
        try:
            connection.sendall(drip)
            return connection.recv(100)
        except TimeoutError:
            pass
        except ConnectionError:
            return b""
    pytest.fail("it waits for ever")


ENDLESS = {
    "one header": (HALF, b"a" * 2**16),
    "small headers": (b"GET /health HTTP/1.1\r\n", b"a:\r\n" * 2**14),
    "request line": (b"GET /", b"a" * 2**16),
    "empty lines": (b"", b"\r\n" * 2**15),
    "trailers": (
        b"POST /body HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
        b"a:b\r\n" * 2**14,
    ),
    "chunk extension": (
        b"POST /body HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;",
        b"a" * 2**16,
    ),
}


@PARSERS
def test_headers_without_end_are_cut_off(parser: str) -> None:
    with server(parser) as here:
        for what, (start, piece) in ENDLESS.items():
            with here.connect() as endless:
                endless.sendall(start)
                assert flooded(endless, piece, 2**26) < 2**26, what
            assert here.healthy()


@PARSERS
def test_requests_that_pile_up_unread_are_cut_off(parser: str) -> None:
    with server(parser, **SOON) as here, here.connect() as piled:
        flooded(piled, b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n" * 1000, 10**5)
        ended(piled)
        assert here.healthy()


@PARSERS
def test_a_reply_that_nobody_reads_is_dropped(parser: str) -> None:
    with server(parser, **SOON) as here, here.connect() as idle:
        idle.sendall(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
        time.sleep(1.0)
        read = 0
        with suppress(ConnectionError):
            while part := idle.recv(2**16):
                read += len(part)
        assert read < LARGE
        assert here.healthy()


@PARSERS
@pytest.mark.nightly
def test_who_reads_slowly_gets_everything(parser: str) -> None:
    with server(parser, **{**SOON, "unread_seconds": 2.0}) as here, here.connect() as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        read = 0
        while part := slow.recv(2**18):
            read += len(part)
            time.sleep(0.01)
        assert read > LARGE


@PARSERS
def test_a_body_must_come_in_time(parser: str) -> None:
    """A byte now and then, of a body that somebody waits for, and of one after its answer."""
    with server(parser, **SOON) as here:
        for path in (b"/health", b"/body"):
            with here.connect() as slow:
                head = b"POST %b HTTP/1.1\r\nHost: here\r\nContent-Length: 999\r\n\r\n"
                slow.sendall(head % path)
                while dripped(slow, b"a"):
                    pass


@PARSERS
def test_nothing_is_kept_of_a_connection_that_was_reset(parser: str) -> None:
    """It would be kept for as long as an honest one may rest: a flood of them fills memory."""
    at_once = struct.pack("ii", 1, 0)
    with listening(app, bounds=Bounds(), parser=parser, timeout_keep_alive=1000) as url:
        here = Server(url)
        for _ in range(50):
            with here.connect() as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
                while not connection.recv(2**16).endswith(b"ok"):
                    pass
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        until = time.monotonic() + LATE
        while (kept := len(connections())) > 5 and time.monotonic() < until:
            time.sleep(0.05)
        assert kept <= 5
        assert here.healthy()


def connections() -> list[object]:
    """Return all connections that anybody holds on to."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Guarded)]


@PARSERS
def test_an_honest_connection_may_rest_between_requests(parser: str) -> None:
    with server(parser, **SOON) as here, httpx.Client(timeout=LATE, trust_env=False) as client:
        for body in (b"", b"a" * 2**20):
            reply = client.post(f"{here.url}/body", content=body)
            assert reply.text == "ok"
            stream = reply.extensions["network_stream"]
            place = stream.get_extra_info("client_addr")
            time.sleep(0.5)
            again = client.get(f"{here.url}/health").extensions["network_stream"]
            assert again.get_extra_info("client_addr") == place  # the same one goes on


SECRET = b"secret-7391"
ODD = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET * 40,  # TLS to the plain port
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    SECRET + b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /" + SECRET + b" HTTP/9.9\r\n\r\n",
    b"GET /\xff" + SECRET + b" HTTP/1.1\r\n\r\n",
    b"GET http://[" + SECRET + b" HTTP/1.1\r\n\r\n",
    b"CONNECT " + SECRET + b":443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /health HTTP/1.0\r\n\r\n",
    b"GET /health HTTP/1.1\r\n" + SECRET + b"\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: a\r\n : " + SECRET + b"\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: a\r\nA: \x00" + SECRET + b"\r\n\r\n",
    b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc",
    b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n" + SECRET,
    b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: " + SECRET + b"\r\n\r\n",
    b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + SECRET,
    b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"POST /body HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: " + SECRET + b"\r\nSec-WebSocket-Version: 13\r\n\r\n" + SECRET,
    b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + SECRET,
    b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n" * 12,
]


@PARSERS
def test_odd_requests_end_and_leave_nothing_in_the_log(
    parser: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), server(parser, **SOON) as here:
        held = [here.connect() for _ in range(2 * len(ODD))]
        for odd, one, two in zip(ODD, held[::2], held[1::2], strict=True):
            with_luck(one, odd)
            with_luck(two, odd)
            with suppress(OSError):
                two.shutdown(socket.SHUT_WR)  # one who hangs up halfway
        for odd, one, two in zip(ODD, held[::2], held[1::2], strict=True):
            ended(two)
            if b"GET /health" not in odd and not odd.startswith((b"OPTIONS", b"CONNECT")):
                ended(one)
        for each in held:
            each.close()
        assert here.healthy()
    said = [record for record in caplog.records if not record.name.startswith(("http", "asyncio"))]
    assert not any(record.exc_info for record in said)
    assert SECRET.decode() not in "".join(record.getMessage() for record in said)


def test_bounds_leave_files_for_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, most in ((256, 128), (1024, 512), (resource.RLIM_INFINITY, 512), (64, 2)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert Bounds().fitting().connections == most
        assert 1 <= Bounds().fitting().each <= most


def test_what_was_cut_off_is_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "thinveil.service"), server("httptools", **SOON) as here:
        with here.connect() as slow:
            slow.sendall(HALF)
            ended(slow)
        for _ in range(400):
            if caplog.messages:
                break
            time.sleep(0.05)
    assert caplog.messages[0] == "connections cut off: half-sent headers 1"
