"""Services that flood, dawdle, inflate and lie: how much of it is taken, and for how long."""

from __future__ import annotations

import gzip
import json
import socket
import socketserver
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import Any

import httpcore
import numpy as np
import pytest

from test_http_target import BATCH, GOOD, PLAIN, asked_of, bytes_of, error, hostile, reply
from thinveil.auditing.http import HttpTarget
from thinveil.auditing.network import bounded, replies
from thinveil.auditing.network.exchange import Failed, Line, Received
from thinveil.auditing.network.origins import Origin
from thinveil.commands.main import run
from thinveil.errors import BudgetSpent, FieldError, TargetError, UsageError
from thinveil.language.queries import batch_of
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire.flatbuffers import inner, root
from thinveil.language.wire.json import Asked
from thinveil.language.wire.limits import Limits

MOST = 2_500_000_000
"""What a service tries to send: far more than any reply can have."""
BUFFERS = 2**24
"""More than what the sockets of one connection hold at both ends."""
STEP = 0.01
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ZEROS = b"0" * 2**16
ANSWER = json.dumps(reply()).encode()


class Sender(socketserver.ThreadingTCPServer):
    """Answers requests for facts as it should, all others with pieces; counts what was taken."""

    allow_reuse_address = True
    daemon_threads = True
    sent = 0
    heads: list[bytes]


@contextmanager
def sending(pieces: Callable[[], Iterator[bytes]], pause: float = 0.0) -> Iterator[Sender]:
    """Serve pieces, one after the other with a pause between, until nobody takes them any more."""
    stopped = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b"".join(iter(self.rfile.readline, b"\r\n"))
            server.heads.append(head)
            if head.startswith(b"GET /facts"):
                self.wfile.write(bytes_of(200, PLAIN))
                return
            with suppress(OSError):
                for piece in pieces():
                    self.connection.sendall(piece)
                    server.sent += len(piece)
                    if server.sent > MOST or (pause and stopped.wait(pause)):
                        return

    with Sender(("127.0.0.1", 0), Handler) as server:
        server.heads = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            stopped.set()
            server.shutdown()
            thread.join()


def at(server: Sender, **more: Any) -> HttpTarget:
    return HttpTarget(f"http://127.0.0.1:{server.server_address[1]}", "t", **more)


FLOODS: dict[str, tuple[bytes, bytes]] = {
    "a length": (HEAD + b"Content-Length: %d\r\n\r\n" % MOST, ZEROS),
    "no length": (HEAD + b"\r\n", ZEROS),
    "chunks": (CHUNKED, b"%x\r\n%b\r\n" % (len(ZEROS), ZEROS)),
    "small chunks": (CHUNKED, b"10\r\n%b\r\n" % (b"0" * 16) * 2**11),
    "one endless chunk": (CHUNKED + b"ffffffff\r\n", ZEROS),
    "a chunk's extension": (CHUNKED + b"1;a=", ZEROS),
    "trailers": (CHUNKED + b"%x\r\n%b\r\n0\r\n" % (len(ANSWER), ANSWER), b"a: 0\r\n" * 2**13),
    "a trailer": (CHUNKED + b"%x\r\n%b\r\n0\r\na: " % (len(ANSWER), ANSWER), ZEROS),
    "headers": (HEAD, b"a: 0\r\n" * 2**13),
    "a header": (HEAD + b"a: ", ZEROS),
    "a status line": (b"HTTP/1.1 200 ", ZEROS),
    "no HTTP": (b"", ZEROS),
    "interim replies": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2**12),
    "early hints": (b"", (b"HTTP/1.1 103 Hints\r\nLink: " + b"a" * 1000 + b"\r\n\r\n") * 64),
}
"""How replies without an end begin and go on."""


@pytest.mark.parametrize("how", FLOODS)
def test_a_flood_is_left_at_what_the_reply_can_have(how: str) -> None:
    first, more = FLOODS[how]
    with sending(lambda: chain([first], repeat(more))) as server:
        target = at(server, patience=0)
        with pytest.raises(TargetError, match="could not be used, after 1 attempts"):
            target.answer(BATCH)
        target.close()
    assert server.sent < BUFFERS


@pytest.mark.parametrize("how", ["a length", "headers", "interim replies", "early hints"])
def test_a_flood_of_facts_is_left_before_there_is_a_body(how: str) -> None:
    first, more = FLOODS[how]
    with sending(lambda: chain([first], repeat(more))) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/elsewhere"
        with pytest.raises(TargetError, match="could not be used, after 1 attempts"):
            HttpTarget(url, "t", patience=0)
    assert server.sent < BUFFERS


@pytest.mark.parametrize("how", ["a length", "no length", "chunks", "interim replies"])
def test_a_flood_is_not_asked_for_again(how: str) -> None:
    first, more = FLOODS[how]
    with sending(lambda: chain([first], repeat(more))) as server:
        target = at(server, sleep=pytest.fail)
        with pytest.raises(TargetError, match="it sends more than the 65,664 bytes that"):
            target.answer(BATCH)
        assert target.trips.retries == 0
        target.close()


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [(500, TargetError, "status 500"), (402, BudgetSpent, "no reason"), (404, TargetError, "404")],
)
@pytest.mark.parametrize("length", [b"", b"Content-Length: 2500000000\r\n"])
def test_an_error_says_enough_in_its_beginning(status, kind, words, length) -> None:
    head = b"HTTP/1.1 %d X\r\n%b\r\n" % (status, length)
    with sending(lambda: chain([head], repeat(ZEROS))) as server:
        target = at(server, patience=0)
        with pytest.raises(kind, match=words):
            target.answer(BATCH)
        target.close()
    assert server.sent < BUFFERS


def test_facts_have_a_limit_too(monkeypatch) -> None:
    monkeypatch.setattr(replies, "FACTS", 10_000)
    body = json.dumps({**PLAIN, "more": "x" * 20_000}).encode()
    with hostile(200, body) as url, pytest.raises(TargetError, match="more than the 10,000 bytes"):
        HttpTarget(url, "t")


def test_the_limit_is_known_from_the_question() -> None:
    """The longest doubles in the widest JSON fit; what is much longer does not."""
    batch = batch_of([([{0: (30, 50)}], 3)] * 3000, 2).stamped(("run", 7), 0.01)
    longest = [[-2.2250738585072014e-308] * 2] * 3000
    wide = json.dumps(reply(longest), indent=4).encode()
    assert len(wide) <= replies.most_of(batch)
    with asked_of(bytes_of(200, wide), patience=0) as (target, _):
        target._limits = Limits(10**4, 10**4, 10**7)
        assert len(target.answer(batch).values) == 6000
    wider = wide + b" " * replies.most_of(batch)
    with asked_of(bytes_of(200, wider), patience=0) as (target, _):
        target._limits = Limits(10**4, 10**4, 10**7)
        with pytest.raises(TargetError, match="it sends more"):
            target.answer(batch)


def squeezed(body: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflate.compress(body) + deflate.flush()


ENCODINGS: list[tuple[str, bytes]] = [
    ("gzip", gzip.compress(ANSWER)),
    ("GZip", gzip.compress(ANSWER)),
    ("x-gzip", gzip.compress(ANSWER)),
    ("deflate", zlib.compress(ANSWER)),
    ("deflate", squeezed(ANSWER)),
    ("br", ANSWER),
    ("zstd", ANSWER),
    ("compress", ANSWER),
    ("gzip, gzip", gzip.compress(gzip.compress(ANSWER))),
    ("identity, gzip", gzip.compress(ANSWER)),
    ("gzip\r\nContent-Encoding: identity", gzip.compress(ANSWER)),
    ("anything", ANSWER),
    ("gzip", gzip.compress(b"[" + bytes(2**26) + b"]")),
    ("gzip, gzip, gzip", gzip.compress(gzip.compress(gzip.compress(bytes(2**26))))),
]


@pytest.mark.parametrize(("encoding", "body"), ENCODINGS, ids=range(len(ENCODINGS)))
def test_nothing_is_unpacked_that_was_not_asked_for(encoding: str, body: bytes) -> None:
    packed = bytes_of(200, body, more=f"Content-Encoding: {encoding}\r\n")
    with asked_of(packed, GOOD) as (target, pauses):
        with pytest.raises(TargetError, match="compressed, which was not asked for"):
            target.answer(BATCH)
        assert not pauses
    with asked_of(packed.replace(b" 200 ", b" 503 ", 1), GOOD) as (target, pauses):
        assert target.answer(BATCH).values.tolist() == [0.0, 1.0]
        assert len(pauses) == 1


def test_as_it_is_may_be_said() -> None:
    with asked_of(bytes_of(200, reply(), more="Content-Encoding: Identity\r\n")) as (target, _):
        assert target.answer(BATCH).values.tolist() == [0.0, 1.0]


def inflating(codec: str, version: str, hidden: bool) -> bytes:
    """Return an Arrow stream with a compressed column; hidden, as Arrow 0.17 wrote it."""
    import pyarrow as pa

    said = {"key": "run-7", "cost": "0", "left": "1", "again": "False"}
    record = pa.record_batch({"answers": pa.array(np.zeros(10**6))}).replace_schema_metadata(said)
    how = pa.ipc.IpcWriteOptions(
        compression=codec, metadata_version=getattr(pa.ipc.MetadataVersion, version)
    )
    sink = pa.BufferOutputStream()
    named = {"ARROW:experimental_compression": codec} if hidden else None
    with pa.ipc.new_stream(sink, record.schema, options=how) as writer:
        writer.write_batch(record, custom_metadata=named)
    body = bytearray(sink.getvalue().to_pybytes())
    if hidden:  # take the codec out of the description of the batch
        start = 0
        for _ in range(2):
            mark, size = struct.unpack_from("<iI", body, start)
            begin, size = (start + 8, size) if mark == -1 else (start + 4, mark)
            start = begin + size
        meta = memoryview(body)[begin:start]
        batch = inner(meta, root(meta), 2)
        assert batch is not None
        struct.pack_into("<H", meta, batch - struct.unpack_from("<i", meta, batch)[0] + 10, 0)
    return bytes(body)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("version", ["V4", "V5"])
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_columns_of_arrow_are_not_unpacked(codec: str, version: str, hidden: bool) -> None:
    body = inflating(codec, version, hidden)
    assert len(body) < 40_000  # of eight million
    with pytest.raises(FieldError, match="compressed"):
        wire_arrow.decode_reply(body)
    with (
        asked_of(bytes_of(200, body, wire_arrow.MEDIA_TYPE), patience=0) as (target, _),
        pytest.raises(TargetError, match="cannot be read"),
    ):
        target.answer(BATCH)


def slow(first: bytes, slowly: bytes, rest: bytes = b"") -> Callable[[], Iterator[bytes]]:
    """Return a reply of which a part comes byte by byte, and which is good in the end."""
    steps = [bytes([byte]) for byte in slowly]
    return lambda: chain([first], steps, [rest])


BODY = ANSWER[:-1] + b" " * 200 + b"}"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY)
DRIPS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a status line": slow(b"", b"HTTP/1.1 200 " + b"O" * 200, b"\r\n" + GOOD.partition(b"\n")[2]),
    "a header": slow(GOOD.partition(b"\n")[0] + b"\n", b"A: " + b"b" * 200 + b"\r\n",
                     GOOD.partition(b"\n")[2]),
    "a body": slow(SIZED, BODY),
    "a body without a length": slow(HEAD + b"\r\n", BODY),
    "a chunk": slow(CHUNKED + b"%x\r\n" % len(BODY), BODY, b"\r\n0\r\n\r\n"),
    "chunks": slow(CHUNKED, b"".join(b"1\r\n%c\r\n" % byte for byte in ANSWER), b"0\r\n\r\n"),
    "a chunk's extension": slow(CHUNKED + b"%x;" % len(BODY), b"a" * 200,
                                b"\r\n%b\r\n0\r\n\r\n" % BODY),
    "a trailer": slow(CHUNKED + b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY), b"A: " + b"b" * 200,
                      b"\r\n\r\n"),
    "interim replies": lambda: chain([b"HTTP/1.1 100 Continue\r\n\r\n"] * 200, [GOOD]),
    "silence": lambda: chain([b""] * 200, [GOOD]),
}  # fmt: skip
"""Replies that are good after two seconds or more, and never silent for long but one."""


@pytest.mark.parametrize("how", DRIPS)
def test_a_reply_that_drips_is_late(how: str) -> None:
    """Every byte comes in time; all of them together do not."""
    with sending(DRIPS[how], STEP) as server:
        target = at(server)
        target._patience = target._longest = target._timeout = 0.15
        with pytest.raises(TargetError, match="ReadTimeout"):
            target.answer(BATCH)
        target.close()


@pytest.mark.parametrize(("patience", "timeout"), [(0.15, None), (0.5, 0.1), (0, 0.1)])
def test_patience_and_timeout_are_for_whole_replies(patience: float, timeout: float | None) -> None:
    drip = bytes_of(200, PLAIN)
    with sending(slow(b"", drip), STEP) as server:
        port = server.server_address[1]
        line_of_facts = f"http://127.0.0.1:{port}/elsewhere"  # so that not even facts are quick
        with pytest.raises(TargetError, match="ReadTimeout"):
            HttpTarget(line_of_facts, "t", patience=patience, timeout=timeout)


def test_a_request_that_is_read_slowly_is_late() -> None:
    stopped = threading.Event()

    class Sipping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while not stopped.wait(STEP) and self.request.recv(100):
                pass

    with Sender(("127.0.0.1", 0), Sipping, bind_and_activate=False) as server:
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        server.server_bind()
        server.server_activate()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        line = Line(Origin("http", "127.0.0.1", server.server_address[1]), "Bearer t")
        try:
            with pytest.raises(Failed, match="Timeout"):
                line.exchange("POST", "/answers", (bytes(2**24), "x"), 0.3, 100)
        finally:
            line.close()
            stopped.set()
            server.shutdown()
            thread.join()


def test_a_name_that_is_looked_up_for_ever_is_given_up(monkeypatch) -> None:
    found = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found.wait(60) and [])
    try:
        with pytest.raises(TargetError, match="ConnectTimeout"):
            HttpTarget("https://agency.example", "t", patience=0, timeout=0.1)
    finally:
        found.set()


def test_all_addresses_of_a_name_share_the_time(monkeypatch) -> None:
    """A name may have a thousand addresses, none of which answers."""
    tried = []

    class Silent(httpcore.SyncBackend):
        def connect_tcp(self, host: str, port: int, timeout: Any = None, *more: Any) -> Any:
            tried.append(timeout)
            threading.Event().wait(timeout)
            raise httpcore.ConnectTimeout

    told = [(2, 1, 6, "", (f"192.0.2.{number % 256}", 80)) for number in range(1000)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: told)
    monkeypatch.setattr(httpcore, "SyncBackend", Silent)
    monkeypatch.setattr(bounded, "_CONNECT", 0.05)
    with pytest.raises(TargetError, match="Timeout"):
        HttpTarget("https://agency.example", "t", patience=0, timeout=0.2)
    assert sum(tried) <= 0.25


def test_no_cookie_is_kept() -> None:
    replied = bytes_of(200, reply(), more="Set-Cookie: who=you; Path=/\r\n")
    with sending(lambda: iter([replied])) as server:
        target = at(server)
        target.answer(BATCH)
        target.answer(BATCH)
        target.close()
    assert len(server.heads) == 3
    assert not any(b"cookie" in head.lower() for head in server.heads)
    assert all(b"accept-encoding: identity\r\n" in head.lower() for head in server.heads)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_does_not_follow_to_another_place(status: int) -> None:
    with sending(lambda: iter([GOOD])) as other:
        place = f"Location: http://127.0.0.1:{other.server_address[1]}/answers\r\n"
        with (
            asked_of(bytes_of(status, more=place)) as (target, _),
            pytest.raises(TargetError, match="sends elsewhere"),
        ):
            target.answer(BATCH)
    assert not other.heads


@pytest.mark.parametrize(
    "wait",
    ["99999999999", "9" * 400, "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 2399 GMT"],
    ids=range(5),
)
def test_a_wait_without_an_end_ends_the_run_at_once(wait: str) -> None:
    trouble = bytes_of(503, more=f"Retry-After: {wait}\r\n")
    with asked_of(trouble, GOOD) as (target, pauses):
        if wait.endswith("2399 GMT"):  # no date: no wait
            target.answer(BATCH)
        else:
            with pytest.raises(TargetError, match="status 503"):
                target.answer(BATCH)
            assert not pauses


@pytest.mark.parametrize("left", ["1" + "0" * 400, "1e400", "-1e999", "NaN", '"much"', "[[1]]"])
def test_what_is_left_may_be_any_nonsense(left: str) -> None:
    body = json.dumps(error("budget_spent", "no more", 0)).replace('"left": 0', f'"left": {left}')
    with (
        asked_of(bytes_of(402, body.encode())) as (target, _),
        pytest.raises(BudgetSpent, match=r"no more$"),
    ):
        target.answer(BATCH)


LEDGER = {"budget": 1.0, "spent": 0.25, "left": 0.75, "batches": 3, "answers": 9}


@pytest.mark.parametrize(
    "change",
    [
        {"spent": None}, {"left": "x"}, {"left": float("nan")}, {"budget": float("inf")},
        {"spent": 10**400}, {"batches": []}, {"answers": {}}, {"exact": 5}, {"exact": "ab"},
    ],
    ids=range(9),
)  # fmt: skip
def test_a_ledger_of_nonsense_is_told(change: dict[str, Any]) -> None:
    with (
        asked_of(bytes_of(200, {**LEDGER, **change})) as (target, _),
        pytest.raises(TargetError, match="ledger is not understood"),
    ):
        target.ledger()


def test_of_a_ledger_only_what_is_known_is_kept() -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    with asked_of(bytes_of(200, {**LEDGER, "deep": deep, "exact": {"spent": "1/4"}})) as (
        target,
        _,
    ):
        assert target.ledger() == {**LEDGER, "exact": {"spent": "1/4"}}


@pytest.mark.parametrize("part", ["[],", "{},", '"",', "0,", "[[[],[]],[]],"])
def test_json_of_very_many_parts_is_not_read(part: str) -> None:
    many = '{"more": [' + part * 6000 + "0]," + json.dumps(reply())[1:]
    received = Received(200, {"content-type": "application/json"}, many.encode())
    with pytest.raises(Failed, match="cannot be read"):
        replies.values_of(received, Asked("run-7", BATCH))
    few = '{"more": [' + part * 60 + "0]," + json.dumps(reply())[1:]
    received = Received(200, {"content-type": "application/json"}, few.encode())
    assert replies.values_of(received, Asked("run-7", BATCH)).tolist() == [0.0, 1.0]


LOOK_UP = socket.getaddrinfo


def nowhere(host: str, *more: Any, **how: Any) -> Any:
    """Look up addresses that are numbers, and no name."""
    if host != "127.0.0.1":
        raise OSError
    return LOOK_UP(host, *more, **how)


def test_an_open_line_is_warned_of_before_the_token_is_sent(monkeypatch, capsys) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *more, **how: LOOK_UP("127.0.0.1", *more, **how)
    )
    with hostile(200, PLAIN) as url:
        open_line = url.replace("127.0.0.1", "agency.example")
        with pytest.raises(UserWarning, match=r"agency\.example:\d+ is not https"):
            HttpTarget(open_line, "t")  # warnings are errors here
        assert not url.seen
        with pytest.warns(UserWarning, match="your token and all answers can be read on the way"):
            HttpTarget(open_line, "t").close()
        assert len(url.seen) == 1
        told: list[tuple[str, int]] = []
        HttpTarget(open_line, "t", tell=lambda text: told.append((text, len(url.seen)))).close()
        assert [seen for _, seen in told] == [1]
        HttpTarget(url, "t").close()  # this machine
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    monkeypatch.setenv("THINVEIL_TOKEN", "t")
    assert run(["audit", "http://agency.example", "--patience", "0"]) == 1
    said = capsys.readouterr().err
    assert said.index("is not https") < said.index("could not be used")
    assert run(["audit", "https://agency.example", "--patience", "0"]) == 1
    assert "is not https" not in capsys.readouterr().err


@pytest.fixture
def proxied(monkeypatch) -> Iterator[Sender]:
    """A proxy of the environment, and names that cannot be looked up without it."""
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with sending(lambda: iter([b"HTTP/1.1 502 no\r\n\r\n"])) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://ann:secret@127.0.0.1:{server.server_address[1]}")
        yield server


def test_a_proxy_never_sees_a_token(proxied: Sender) -> None:
    with pytest.raises(TargetError, match="ProxyError"):
        HttpTarget("https://agency.example", "geheim", patience=0)
    [head] = proxied.heads
    assert head.startswith(b"CONNECT agency.example:443 ")
    assert b"Proxy-Authorization: Basic YW5uOnNlY3JldA==" in head
    assert b"geheim" not in head
    with pytest.raises(TargetError, match="ConnectError"):
        HttpTarget("http://agency.example", "geheim", patience=0, tell=lambda _: None)
    assert len(proxied.heads) == 1


def test_no_proxy_is_heeded(proxied: Sender, monkeypatch) -> None:
    monkeypatch.setenv("no_proxy", "agency.example")
    with pytest.raises(TargetError, match="ConnectError"):
        HttpTarget("https://agency.example", "t", patience=0)
    assert not proxied.heads


@pytest.mark.parametrize("proxy", ["socks5://h:1", "ftp://h:1", "http://", "http://h:99999", "x:y"])
def test_a_proxy_that_cannot_be_used_is_told(proxy: str, monkeypatch) -> None:
    import thinveil.auditing.network.exchange as module

    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(UsageError, match="HTTPS_PROXY"):
        HttpTarget("https://agency.example", "t")
