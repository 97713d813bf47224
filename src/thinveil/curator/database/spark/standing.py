"""Counting by a standing job: its tasks call back and answer rounds until they are told to end.

Fast, since no round starts a job. All tasks run at once (Spark's barrier mode), each holds a slot,
and each needs a route to the driver. When a task or a line is lost, counting goes on another way.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

import numpy as np

from thinveil.curator.database.spark.executors import COUNTED, HANDLE
from thinveil.curator.database.spark.jobs import CHANGED, JobsCounter, quiet
from thinveil.curator.database.spark.lines import BYE, Line, called, speaking, told
from thinveil.curator.database.spark.messages import Garbled, Request, added, parts_of
from thinveil.curator.database.spark.shipping import shipped
from thinveil.errors import TargetError
from thinveil.language.queries import Codes, QueryBatch
from thinveil.language.texts import many

PATIENCE: Final = 120.0
"""Seconds until all tasks must have called: they may wait for slots, or have no route."""
IDLE: Final = 300.0
"""Seconds without a question after which tasks give their slots back (a round figure)."""
_GREETED: Final = 64  # callers who are greeted at once (a round figure)

Call = tuple[Line, int, bytes]
"""A line to a task, its part, and which start of the job it belongs to."""


class Lost(Exception):
    """A standing job cannot be asked: it did not start, or a task or a line is gone."""


class Left(Lost):
    """Its tasks have left since nobody asked; they can be called again."""


class _Job:
    """A standing job and its lines."""

    def __init__(
        self, frame: Any, parts: int, host: str, patience: float = PATIENCE, idle: float = IDLE
    ) -> None:
        self._context = frame.sparkSession.sparkContext
        self._tag = f"thinveil-{secrets.token_hex(4)}"
        self._secret = secrets.token_bytes(32)
        self._ended = threading.Event()
        self._lines: list[Line] = []
        self._sent = b""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family, backlog=max(parts, 256)) as door:
            where = (host, door.getsockname()[1])
            task = shipped("serve", where, self._secret, idle)
            standing = frame.mapInArrow(task, HANDLE, barrier=True)
            from pyspark import InheritableThread

            InheritableThread(target=self._hold, args=(standing,), daemon=True).start()
            try:
                self._lines = self._called(door, parts, time.monotonic() + patience)
                heard = [*map(told, self._heard())]
            except (OSError, Garbled):
                self.close()
                raise Lost("a task could not be heard") from None
            except BaseException:
                self.close()
                raise
        self.whole = (
            sum(records for records, _ in heard),
            sum(int(seal, 16) for _, seal in heard) % 2**64,
        )

    def _hold(self, standing: Any) -> None:
        """Run the job, in a thread of its own, until it ends."""
        try:
            self._context.addJobTag(self._tag)
            standing.collect()
        except Exception:  # the lines say the same
            pass
        finally:
            self._ended.set()

    def _called(self, door: socket.socket, parts: int, last: float) -> list[Line]:
        """Return a line to each task of one start of the job.

        Whoever does not know the secret is sent away, and so are tasks of another start.
        """
        arrived: SimpleQueue[Call] = SimpleQueue()
        over = threading.Event()
        waiting = threading.Thread(
            target=_taken, args=(door, self._secret, arrived, over), daemon=True
        )
        waiting.start()
        starts: dict[bytes, dict[int, Line]] = {}
        chosen: dict[int, Line] = {}
        try:
            while len(chosen) < parts:
                if self._ended.is_set():
                    raise Lost("the job ended before its tasks had called")
                if time.monotonic() > last:
                    raise Lost("the tasks did not call: no free slots, or no route to the driver")
                with suppress(Empty):
                    line, part, attempt = arrived.get(timeout=0.2)
                    start = starts.setdefault(attempt, {})
                    start[part] = line
                    if len(start) == parts:
                        chosen = start
        finally:
            over.set()
            for start in starts.values():
                for line in start.values() if start is not chosen else ():
                    line.close()
        return list(chosen.values())

    def _heard(self) -> list[bytes]:
        """Return the next message of each task, as they come, unless the job ends."""
        waiting, messages = [*self._lines], []
        while waiting:
            heard = speaking(waiting, 0.2)
            if not heard and self._ended.is_set():
                raise Lost("the job ended")
            messages += [line.receive() for line in heard]
            waiting = [line for line in waiting if line not in heard]
        return messages

    def ask(self, batch: QueryBatch) -> Codes:
        """Return the count of each box."""
        request = Request.of(batch, with_cells=batch.cells.digest != self._sent).to_bytes()
        self._sent = batch.cells.digest
        try:
            for line in speaking(self._lines, 0.0):
                line.receive()  # nobody has asked it anything, so it says goodbye, or is gone
                raise Left("the tasks have left")
            for line in self._lines:
                line.send(request)
            answers = self._heard()
        except OSError:
            raise Lost("a line is gone") from None
        except Garbled:
            raise Lost("a line is garbled") from None
        if BYE in answers:
            raise Left("the tasks have left")
        if not all(each.startswith(COUNTED) for each in answers):
            raise Lost("a task does not know the cells that it was sent")
        return added([each[1:] for each in answers], len(batch.cell))

    def close(self) -> None:
        """Hang up, which ends the tasks, and the job with them."""
        for line in self._lines:
            line.close()
        if not self._ended.wait(2.0):
            with suppress(Exception):
                self._context.cancelJobsWithTag(self._tag)


def _taken(
    door: socket.socket, secret: bytes, arrived: SimpleQueue[Call], over: threading.Event
) -> None:
    """Take calls until it is over, and greet each beside the others: some may say nothing."""
    room = threading.Semaphore(_GREETED)
    door.settimeout(0.2)
    while not over.is_set():
        try:
            end = door.accept()[0]
        except TimeoutError:
            continue
        except OSError:  # it is closed, or too many are open
            time.sleep(0.05)
            continue
        room.acquire()
        given = (end, secret, arrived, over, room)
        threading.Thread(target=_greeted, args=given, daemon=True).start()


def _greeted(
    end: socket.socket,
    secret: bytes,
    arrived: SimpleQueue[Call],
    over: threading.Event,
    room: threading.Semaphore,
) -> None:
    """Greet one caller, and hand the line on if it is a task."""
    try:
        with suppress(OSError, Garbled):
            line = Line.of(end, secret)
            try:
                part, attempt = called(line.receive())
                if over.is_set():
                    raise Garbled("nobody waits any more")
            except BaseException:
                line.close()
                raise
            arrived.put((line, part, attempt))
    finally:
        room.release()


class StandingCounter:
    """Counts by a standing job; by plain jobs from when it is lost.

    `whole` is what all parts have together: how many records, and their seal.

    Args:
        frame: The codes, in as many partitions as `parts`.
        parts: How many tasks there are.
        host: The address at which tasks reach the driver.
        otherwise: Makes what counts when the job is lost.
        say: Is told what takes a while.
        patience: How many seconds the tasks have to call.
        idle: After so many seconds without a question they give their slots back.

    Raises:
        Lost: The job cannot be started here.
    """

    def __init__(
        self,
        frame: Any,
        parts: int,
        host: str,
        otherwise: Callable[[], JobsCounter],
        *,
        say: Callable[[str], None] = quiet,
        patience: float = PATIENCE,
        idle: float = IDLE,
    ) -> None:
        self.round_seconds = 0.001
        self.note = f"a standing job of {many(parts, 'task')}"
        self._start: Callable[[], _Job] = partial(_Job, frame, parts, host, patience, idle)
        self._otherwise, self._say = otherwise, say
        self._other: JobsCounter | None = None
        say(f"Spark: a standing job is indexing the codes ({many(parts, 'part')})")
        self._job: _Job | None = self._start()
        self.whole = self._job.whole

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        if self._other is not None:
            return self._other.count(batch)
        try:
            try:
                return self._counted(batch)
            except Left:
                self._say("Spark: a standing job that had left is started again")
                self._again()
                return self._counted(batch)
        except Lost as why:
            self._say(f"Spark: {why}; counting goes on by plain jobs")
            self._stop()
            self._other = self._otherwise()
            self._check(self._other.whole)
            self.round_seconds = self._other.round_seconds
            self.note = f"{self._other.note}, since a standing job was lost"
            return self.count(batch)
        except BaseException:
            self._stop()
            raise

    def _counted(self, batch: QueryBatch) -> Codes:
        if self._job is None:
            self._again()
        job = self._job
        assert job is not None
        return batch.total(np.concatenate([job.ask(each) for each in parts_of(batch)]))

    def _again(self) -> None:
        self._stop()
        self._job = self._start()
        self._check(self._job.whole)

    def _check(self, found: tuple[int, int]) -> None:
        if found != self.whole:
            self.close()
            raise TargetError(CHANGED)

    def _stop(self) -> None:
        if self._job is not None:
            self._job.close()
            self._job = None

    def close(self) -> None:
        """End the job."""
        self._stop()
        if self._other is not None:
            self._other.close()
