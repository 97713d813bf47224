"""Rounds at the executors of Spark when things go wrong, without Spark: strangers, lost tasks."""

from __future__ import annotations

import fcntl
import resource
import socket
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from databases import batches_for
from thinveil.curator.counting.index import IndexCounter
from thinveil.curator.counting.scan import ScanCounter
from thinveil.curator.database.session import counting, opening
from thinveil.curator.database.spark import lines, standing
from thinveil.curator.database.spark.executors import (
    COUNTED,
    NO_CELLS,
    NO_RECORDS,
    Handle,
    counted,
    seal_of,
)
from thinveil.curator.database.spark.jobs import JobsCounter
from thinveil.curator.database.spark.lines import BYE, Line, call
from thinveil.curator.database.spark.messages import Request, read_cells
from thinveil.curator.database.spark.standing import Call, Left, Lost
from thinveil.errors import TargetError
from thinveil.language.queries import Codes

SECRET = b"s" * 32
CODES: Codes = np.random.default_rng(4).integers(0, 9, (90, 3))
BATCH = batches_for(CODES, 1, 1)[0]
TRUE = ScanCounter(CODES).count(BATCH).tolist()


# ---- plain jobs


class Executors:
    """Parts in one place, whose tasks are misled as a script says: a round, the parts not found."""

    def __init__(self, *script: set[int] | Exception) -> None:
        self.number = 5
        self.codes = [CODES[start::5] for start in range(5)]
        self.script = list(script)
        self.cells: Any = None
        self.renewed = 0

    def keep(self) -> list[Handle]:
        return [(place, len(each), seal_of(each)) for place, each in enumerate(self.codes)]

    def renew(self) -> None:
        self.renewed += 1

    def forget(self) -> None:
        return

    def ask(self, message: bytes) -> list[tuple[Handle, bytes]]:
        request = Request.from_bytes(message)
        missed = self.script.pop(0) if self.script else set[int]()
        if isinstance(missed, Exception):
            raise missed
        if request.cells:
            self.cells = read_cells(request.cells)
        answers = []
        for handle, codes in zip(self.keep(), self.codes, strict=True):
            answer = NO_CELLS if self.cells is None else NO_RECORDS
            if self.cells is not None and handle[0] not in missed:
                answer = counted(IndexCounter(codes), len(codes), request, self.cells)
                assert answer.startswith(COUNTED)
            answers.append((handle, answer))
        return answers


@pytest.mark.parametrize(
    ("script", "renewed"),
    [
        ([], 0),
        ([{0, 1}, {2, 3}], 0),  # each part was found once: nothing is made anew
        ([{0}, {0, 4}, set[int]()], 1),  # the same one again: then it is
        ([{0, 1, 2, 3}, {0, 1, 2}, {0, 1}, {0}, set[int]()], 0),
        ([{0, 1, 2, 3, 4}, set[int]()], 1),
        ([ValueError("lost"), set[int]()], 1),
    ],
)
def test_a_part_that_was_counted_counts(script: list[Any], renewed: int) -> None:
    parts = Executors(*script)
    assert JobsCounter(parts).count(BATCH).tolist() == TRUE
    assert parts.renewed == renewed
    assert not parts.script


def test_what_is_never_found_ends_the_run() -> None:
    parts = Executors(*[{2}] * 9)
    with pytest.raises(TargetError, match="--spark sql"):
        JobsCounter(parts).count(BATCH)
    with pytest.raises(TargetError, match=r"failed while it counted \(OSError\)"):
        JobsCounter(Executors(*[OSError("secret")] * 9)).count(BATCH)


def test_another_part_of_the_same_size_is_none() -> None:
    parts = Executors()
    counter = JobsCounter(parts)
    parts.codes[3] = parts.codes[3] + 1
    with pytest.raises(TargetError, match="changed while they were counted"):
        counter.count(BATCH)


def test_an_interruption_that_an_error_hides_is_one() -> None:
    """PySpark tidies up on its way out, by calls to Java, which fail then."""
    hidden = OSError("the answer is empty")
    hidden.__context__ = ValueError()
    hidden.__context__.__context__ = KeyboardInterrupt()
    parts = Executors(hidden)
    counter = JobsCounter(parts)
    with pytest.raises(KeyboardInterrupt):
        counter.count(BATCH)
    assert counter.count(BATCH).tolist() == TRUE
    for place in (opening, counting):
        with pytest.raises(KeyboardInterrupt), place("here"):
            raise hidden


# ---- a standing job's door and lines


@pytest.fixture
def door() -> Iterator[tuple[int, SimpleQueue[Call]]]:
    arrived: SimpleQueue[Call] = SimpleQueue()
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as open_door:
        given = (open_door, SECRET, arrived, over)
        waiting = threading.Thread(target=standing._taken, args=given)
        waiting.start()
        yield open_door.getsockname()[1], arrived
        over.set()
        waiting.join()


def test_silent_strangers_hold_nobody_up(door: tuple[int, SimpleQueue[Call]]) -> None:
    port, arrived = door
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    strangers[0].sendall(b"x" * 200)
    with Line.to(("127.0.0.1", port), SECRET) as task:
        task.send(call(3, b"a" * 16))
        line, part, attempt = arrived.get(timeout=60)
        assert (part, attempt) == (3, b"a" * 16)
        line.close()
    for each in strangers:
        each.close()
    assert arrived.empty()


def test_a_stranger_who_drips_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a greeting has one deadline, not each byte of it."""
    monkeypatch.setattr(lines, "GREETING", 0.3)
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.05):
            try:
                theirs.sendall(b"x")
            except OSError:
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        with pytest.raises((TimeoutError, OSError)):
            Line.of(ours, SECRET)
    finally:
        over.set()
        dripping.join()
        theirs.close()


def _pair() -> tuple[Line, Line]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = ("127.0.0.1", listening.getsockname()[1])
        found: list[Line] = []
        thread = threading.Thread(target=lambda: found.append(Line.to(where, SECRET)))
        thread.start()
        driver = Line.of(listening.accept()[0], SECRET)
        thread.join()
    return driver, found[0]


def _job(*drivers: Line) -> Any:
    job = object.__new__(standing._Job)
    job._lines, job._sent, job._ended = [*drivers], b"", threading.Event()
    return job


def test_tasks_that_have_left_are_noticed_before_they_are_asked() -> None:
    """However large the question is: whoever writes to a line that is closed loses the goodbye."""
    driver, task = _pair()
    task.send(BYE)
    task.close()
    time.sleep(0.05)
    with driver, pytest.raises(Left):
        _job(driver).ask(BATCH)
    driver, task = _pair()
    task.close()
    with driver, pytest.raises(Lost) as lost:
        _job(driver).ask(BATCH)
    assert not isinstance(lost.value, Left)


def test_tasks_are_heard_as_they_answer() -> None:
    """One with a large answer in its hands does not wait for another that is slow."""
    ends = [_pair() for _ in range(3)]
    large = [threading.Thread(target=task.send, args=(bytes(2**24),)) for _, task in ends[1:]]

    def slow() -> None:
        for each in large:
            each.join()
        ends[0][1].send(b"slow")

    threads = [*large, threading.Thread(target=slow)]
    for each in threads:
        each.start()
    heard = _job(*(driver for driver, _ in ends))._heard()
    assert sorted(map(len, heard)) == [4, 2**24, 2**24]
    for each in threads:
        each.join()
    for line in (line for pair in ends for line in pair):
        line.close()


def test_a_line_that_is_closed_is_lost() -> None:
    driver, task = _pair()
    driver.close()
    with task, pytest.raises(Lost, match="a line is gone"):
        _job(driver).ask(BATCH)


def test_a_thousand_files_may_be_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    try:
        driver, task = _pair()
        with driver._end as low:
            driver._end = socket.socket(fileno=fcntl.fcntl(low.fileno(), fcntl.F_DUPFD, 1500))
        assert driver.fileno() >= 1500
        task.send(b"word")
        with driver, task:
            assert _job(driver)._heard() == [b"word"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_stops_in_the_middle_of_a_message_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_STALLED", 0.3)
    driver, task = _pair()
    task._end.sendall(b"half")
    with pytest.raises(OSError, match="timed out"):
        driver.receive()
    driver.close()
    task.close()
