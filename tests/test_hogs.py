"""Analysts who hold a service's threads, memory and turns, each with a token of their own.

The adversary is one analyst; another one asks little, and is answered all the while.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pytest

import thinveil
from services import Served, asking, question, served
from thinveil.curator.service.door import JSON, SMALL, Settings
from thinveil.curator.service.refusals import Refusal
from thinveil.curator.service.turns import Room, Turns
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.limits import Limits

DATA = thinveil.people(80)
BUDGETS = {"analyst": "1000000", "other": "1000000"}
LARGE = b'{"key": "large",' + b" " * SMALL + b'"epsilon": 0.01, "questions": []}'
LIMITS = Limits(10**6, 10**6, 10**8)
LATE = 20.0  # seconds after which a service counts as dead


@pytest.fixture
def service(tmp_path: Any) -> Any:
    with served(DATA, thinveil.idp(), tmp_path, BUDGETS) as made:
        made.client.timeout = LATE
        yield made


def test_no_body_is_decoded_in_the_curators_thread(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def decode(body: Any, *more: Any) -> Any:
        threads.append(threading.current_thread().name.rstrip("_0123456789"))
        return DECODE(body, *more)

    monkeypatch.setattr(wire, "decode_batch", decode)
    assert service.ask(asking("tiny")).status_code == 200
    assert service.ask(asking("small", 200)).status_code == 200
    assert service.post(LARGE, JSON).status_code == 422
    assert "curator" not in threads
    assert threads[1:] == ["small", "large"]


DECODE = wire.decode_batch


def test_a_small_batch_waits_for_no_large_one(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While junk is being read, of which there is always more."""
    reached, opened = threading.Semaphore(0), threading.Event()

    def decode(body: Any, *more: Any) -> Any:
        if len(body) > SMALL:
            reached.release()
            assert opened.wait(60)
        return DECODE(body, *more)

    monkeypatch.setattr(wire, "decode_batch", decode)
    with ThreadPoolExecutor(4) as others:
        junk = [others.submit(service.post, LARGE, JSON) for _ in range(4)]
        try:
            assert reached.acquire(timeout=60)
            for name in ("other", "analyst"):
                assert service.ask(asking("a"), name).status_code == 200
                assert service.ask(asking("b", 200), name).status_code == 200
            assert service.client.get("/health").status_code == 200
        finally:
            opened.set()
        assert {each.result().status_code for each in junk} == {422}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"token": "nobody"}, 401),
        ({"kind": "text/plain"}, 415),
        ({"length": 65 * 2**20, "kind": wire_arrow.MEDIA_TYPE}, 413),
        ({"length": 17 * 2**20}, 413),
    ],
)
def test_what_the_header_tells_is_refused_before_the_body_comes(
    service: Served, changes: dict[str, Any], status: int
) -> None:
    head = service.head(changes.get("length", 1000), changes.get("kind", JSON))
    if "token" in changes:
        head = head.replace(service.tokens["analyst"].encode(), b"nobody")
    with service.connect() as line:
        line.settimeout(LATE)
        line.sendall(head)
        assert line.recv(12) == b"HTTP/1.1 %d" % status


def test_one_analysts_queue_is_bounded_and_anothers_is_its_own(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, opened = threading.Event(), threading.Event()
    with (
        served(DATA, thinveil.idp(), tmp_path, BUDGETS, Settings(waiting=16)) as service,
        ThreadPoolExecutor(8) as others,
    ):
        answer = service.accounts.answer

        def slowly(analyst: Any, asked: Any) -> Any:
            reached.set()
            assert opened.wait(60)
            return answer(analyst, asked)

        monkeypatch.setattr(service.accounts, "answer", slowly)
        sent = [others.submit(service.ask, asking("a0"))]
        try:
            assert reached.wait(60)
            sent += [others.submit(service.ask, asking(f"a{nth}")) for nth in (1, 2, 3)]
            said, until = b"", time.monotonic() + LATE
            while b" 503 " not in said and time.monotonic() < until:
                with service.connect() as late:  # sooner or later there are four, and one too many
                    late.sendall(service.head(2) + b"[]")
                    said = late.recv(10_000)
            assert said.startswith(b"HTTP/1.1 503 ")
            sent.append(others.submit(service.ask, asking("b"), "other"))
        finally:
            opened.set()
        assert {each.result().status_code for each in sent} == {200}


def test_analysts_take_turns() -> None:
    order: list[str] = []

    async def asks(turns: Turns, who: str, nth: int) -> None:
        async with turns.turn(ord(who)):
            await asyncio.sleep(0)
            order.append(f"{who}{nth}")

    async def all_ask() -> None:
        turns = Turns(1)
        tasks = [asyncio.create_task(asks(turns, "a", nth)) for nth in range(4)]
        tasks += [asyncio.create_task(asks(turns, "b", nth)) for nth in range(2)]
        gives_up = asyncio.create_task(asks(turns, "b", 9))
        await asyncio.sleep(0)
        gives_up.cancel()
        await asyncio.gather(*tasks)
        await asks(turns, "c", 0)

    asyncio.run(all_ask())
    assert order == ["a0", "a1", "b0", "a2", "b1", "a3", "c0"]


def test_who_gives_up_on_getting_a_turn_passes_it_on() -> None:
    async def both() -> None:
        turns = Turns(1)
        async with turns.turn(1):
            waits = asyncio.create_task(turns.turn(2).__aenter__())
            await asyncio.sleep(0)
        waits.cancel()  # it has the turn already, and has not noticed
        with suppress(asyncio.CancelledError):
            await waits
        async with asyncio.timeout(LATE), turns.turn(3):
            pass

    asyncio.run(both())


def test_a_room_leaves_something_to_everybody() -> None:
    room = Room("much is held", most=100, each=60, always=5)
    room.take(1, 60)
    refused = pytest.raises(Refusal, match="too much is held")
    with refused:
        room.take(1, 1)
    room.take(2, 40)
    with refused:
        room.take(3, 6)
    room.take(3, 5)
    room.give(1, 60)
    room.take(3, 6)
    assert room.total == 51


def unread(service: Served, body: bytes, kind: str, name: str = "analyst") -> socket.socket:
    """Ask for a reply and read nothing of it."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
    line.connect(("127.0.0.1", int(service.url.rsplit(":", 1)[1])))
    line.settimeout(LATE)
    line.sendall(service.head(len(body), kind, name) + body)
    return line


def test_replies_that_nobody_reads_are_bounded(service: Served) -> None:
    """A million answers again and again: half of the room is one analyst's, the rest others'."""
    plain = asking("again", repeats=1_000_000, epsilon=1e-9)
    asked = wire.decode_batch(json.dumps(plain).encode(), DATA.schema, LIMITS)
    bodies = {wire_arrow.MEDIA_TYPE: bytes(wire_arrow.encode_batch(asked))}
    bodies[JSON] = json.dumps(plain).encode()
    kinds = [*bodies] * 6
    with ExitStack() as lines:
        held = [lines.enter_context(unread(service, bodies[kind], kind)) for kind in kinds]
        statuses = [line.recv(12)[9:] for line in held]
        assert statuses.count(b"200") == 8
        assert statuses.count(b"503") == 4
        assert service.ask(asking("small")).status_code == 200
        other = lines.enter_context(unread(service, bodies[JSON], JSON, "other"))
        assert other.recv(12) == b"HTTP/1.1 200"
    until = time.monotonic() + LATE
    arrow = bodies[wire_arrow.MEDIA_TYPE]
    while (reply := service.post(arrow)).status_code == 503 and time.monotonic() < until:
        time.sleep(0.05)  # until it is noticed that they went away
    assert len(wire_arrow.decode_reply(reply.content).values) == 1_000_000


@pytest.mark.parametrize("repeats", [1, 3, 12_000])
def test_a_reply_in_pieces_is_the_same_in_both_forms(service: Served, repeats: int) -> None:
    plain = asking("pieces", [question()] * (12_000 // repeats), 1e-9, repeats=repeats)
    reply = service.ask(plain)
    rows = reply.json()["answers"]
    assert {len(row) for row in rows} == {repeats}
    asked = wire.decode_batch(json.dumps(plain).encode(), DATA.schema, LIMITS)
    again = wire_arrow.decode_reply(service.post(bytes(wire_arrow.encode_batch(asked))).content)
    assert again.again
    assert np.concatenate(rows).tolist() == again.values.tolist()
