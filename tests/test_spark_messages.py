"""What travels between a driver and those who count for it: nothing but numbers, from friends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import batches_for
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database.spark import executors, messages
from thinveil.curator.database.spark.executors import GAP, codes_of, counted, seal_of
from thinveil.curator.database.spark.lines import BYE, Line, call, hello, told
from thinveil.curator.database.spark.lines import called as call_of
from thinveil.curator.database.spark.messages import Garbled, Reader, Request, added, narrowed
from thinveil.curator.database.spark.picking import Wish
from thinveil.curator.database.spark.shipping import shipped
from thinveil.errors import UsageError
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING

CODES = st.one_of(
    st.integers(-5, 300),
    st.integers(-LIMIT, LIMIT),
    st.sampled_from([MISSING, LOWEST, INFINITE, INFINITE - 1, MISSING + 2, 0]),
)


@given(st.lists(CODES, max_size=30))
def test_arrays_travel_unchanged(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert Reader(narrowed(array)).codes().tolist() == values


@pytest.mark.parametrize(("most", "width"), [(1, 1), (200, 1), (60_000, 2), (10**9, 4), (LIMIT, 8)])
def test_arrays_take_few_bytes(most: int, width: int) -> None:
    array = np.array([MISSING, 0, most, INFINITE] * 1000, np.int64)
    assert len(narrowed(array)) < 4000 * width + 20


def test_batches_are_counted_as_if_they_had_not_travelled() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-9, 40, (60, 5))
    codes[rng.random(codes.shape) < 0.1] = MISSING
    parts = codes[:20], codes[20:20], codes[20:]
    for batch in batches_for(codes, 3, 30):
        total = []
        for part in messages.parts_of(batch, 7):
            request = Request.from_bytes(Request.of(part, with_cells=True).to_bytes())
            cells = messages.read_cells(request.cells)
            assert cells.digest == batch.cells.digest == request.seal
            answers = [counted(IndexCounter(each), len(each), request, cells)[1:] for each in parts]
            total.append(added(answers, len(part.cell)))
        counts = batch.total(np.concatenate(total))
        assert counts.tolist() == ScanCounter(codes).count(batch).tolist()


def test_garbled_messages_are_refused() -> None:
    whole = narrowed(np.arange(9))
    for bad in (whole[:-1], b"", b"\x05" + whole[1:], b"\x00" + b"\xff" * 16):
        with pytest.raises(Garbled):
            Reader(bad).codes()
    for bad in (narrowed(np.zeros(3, np.int64)), narrowed(np.array([-1, 0]))):
        with pytest.raises(Garbled):
            added([bad], 2)
    with pytest.raises(Garbled):
        Request.from_bytes(b"short")


def test_seals_go_by_content_and_add_up() -> None:
    rng = np.random.default_rng(1)
    codes = np.asfortranarray(rng.integers(0, 9, (100, 3)))
    whole = int(seal_of(codes), 16)
    assert int(seal_of(np.asfortranarray(rng.permutation(codes))), 16) == whole
    parts = (int(seal_of(np.asfortranarray(each)), 16) for each in (codes[:30], codes[30:]))
    assert sum(parts) % 2**64 == whole
    changed = codes.copy(order="F")
    changed[7, 2] += 1
    assert int(seal_of(changed), 16) != whole
    assert int(seal_of(np.asfortranarray(codes[:, ::-1])), 16) != whole


def test_gaps_become_missing_values() -> None:
    batch = pa.RecordBatch.from_pydict({"c0": [1, GAP], "c1": [GAP, 2]})
    assert codes_of([batch, batch]).tolist() == [[1, MISSING], [MISSING, 2]] * 2
    with pytest.raises(TypeError):
        codes_of([pa.RecordBatch.from_pydict({"c0": [1, None]})])


def test_code_travels_under_a_name_of_its_own() -> None:
    codes = np.arange(8).reshape(4, 2)
    arrow = pa.RecordBatch.from_pydict({"c0": codes[:, 0], "c1": codes[:, 1]})
    travelled = shipped("codes_of")
    found = travelled([arrow])
    assert found.tolist() == codes.tolist()
    assert travelled.func.__module__ == "thinveil_boot"  # type: ignore[attr-defined]
    theirs = shipped("counted").args[0]  # type: ignore[attr-defined]
    assert theirs.startswith("thinveil_")
    assert theirs != executors.__name__


def test_a_way_must_be_one() -> None:
    with pytest.raises(UsageError, match="no way of counting"):
        Wish("teleport")
    for way in ("jobs", "sql"):
        with pytest.raises(UsageError, match="needs no address"):
            Wish(way, "127.0.0.1")


# ---- lines


def called(task: Callable[[tuple[str, int]], None], secret: bytes) -> Line:
    """Return the driver's end of a line that a task calls from a thread."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=task, args=(door.getsockname(),), daemon=True).start()
        return Line.of(door.accept()[0], secret)


def test_a_line_carries_messages_both_ways() -> None:
    secret = b"s" * 32

    def task(where: tuple[str, int]) -> None:
        with Line.to(where, secret) as line:
            line.send(hello(7, "00000000000000ff"))
            while (message := line.wait(0.5)) is not None:
                line.send(message[::-1])

    with called(task, secret) as line:
        assert told(line.receive()) == (7, "00000000000000ff")
        for content in (b"", b"abc", bytes(3_000_000)):
            line.send(content)
            assert line.receive() == content[::-1]
        assert line.receive() == BYE  # nobody asked for a while


def test_what_a_task_says_first() -> None:
    assert call_of(call(3, b"a" * 16)) == (3, b"a" * 16)
    for read in (call_of, told):
        with pytest.raises(Garbled):
            read(b"?")


def test_who_does_not_know_the_secret_gets_nothing() -> None:
    heard: list[bytes] = []

    def stranger(where: tuple[str, int]) -> None:
        with socket.create_connection(where) as end:
            end.sendall(bytes(64))
            while some := end.recv(1000):
                heard.append(some)

    with pytest.raises(Garbled, match="does not know the secret"):
        called(stranger, b"s" * 32)
    told_wrong: list[type] = []

    def task(where: tuple[str, int]) -> None:
        try:
            Line.to(where, b"t" * 32)
        except (Garbled, ConnectionError) as error:
            told_wrong.append(type(error))

    with pytest.raises(Garbled, match="does not know the secret"):
        called(task, b"s" * 32)
    assert len(b"".join(heard)) <= 32  # what the driver drew, and no proof


def test_a_driver_that_does_not_know_the_secret_gets_no_records() -> None:
    failed = threading.Event()

    def task(where: tuple[str, int]) -> None:
        try:
            Line.to(where, b"t" * 32)
        except (Garbled, ConnectionError):
            failed.set()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=task, args=(door.getsockname(),), daemon=True).start()
        end = door.accept()[0]
        with end:
            end.sendall(bytes(64))
            end.recv(1000)
            assert failed.wait(20)


def test_changed_and_endless_messages_are_refused() -> None:
    secret = b"s" * 32
    ends: list[Line] = []

    def task(where: tuple[str, int]) -> None:
        ends.append(Line.to(where, secret))
        ends[0]._end.sendall(bytes([3]) + bytes(7) + bytes(16) + b"abc")

    with called(task, secret) as line, pytest.raises(Garbled, match="changed"):
        line.receive()
    ends[0].close()

    def endless(where: tuple[str, int]) -> None:
        ends.append(Line.to(where, secret))
        ends[1]._end.sendall(b"\xff" * 24)

    with called(endless, secret) as line, pytest.raises(Garbled, match="too long"):
        line.receive()
    ends[1].close()
