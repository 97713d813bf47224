"""Parts of a table of codes, as a Spark session holds them: kept, asked, and forgotten.

`ClassicParts` goes by RDDs, which cost least; `ConnectParts` by what Spark Connect has.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from thinveil.curator.database.spark.executors import ANSWER, HANDLE, Handle
from thinveil.curator.database.spark.shipping import shipped

Answer = tuple[Handle, bytes]

_FORGETTERS: Final = 4  # tasks for each slot that go to look for what is kept


_GONE: Final = "UNAVAILABLE"
"""What gRPC says of a server that is not there."""


class Gone(Exception):
    """Nobody is there any more who could count."""


class Parts(Protocol):
    """Parts of a table. Conforms: `ClassicParts`, `ConnectParts`."""

    number: int

    def keep(self) -> list[Handle]:
        """Have the executors keep the codes, anew if they do already, and return the handles."""
        ...

    def renew(self) -> None:
        """Have them keep the codes anew the next time that something is asked."""
        ...

    def ask(self, message: bytes) -> list[Answer]:
        """Have boxes counted in each part, by one job."""
        ...

    def forget(self) -> None:
        """Have the executors take away what they keep."""
        ...


class ClassicParts:
    """Parts by RDDs: what Spark caches are handles, so tasks go to where the codes are."""

    def __init__(self, frame: Any, number: int) -> None:
        self._frame = frame
        self._context = frame.sparkSession.sparkContext
        self._tag = f"thinveil-{secrets.token_hex(4)}"
        self._run = secrets.token_hex(16)
        self._handles: Any = None
        self.number = number

    def keep(self) -> list[Handle]:
        """Have the executors keep the codes and return the handles."""
        self.renew()
        with self._tagged():
            found: list[Handle] = self._handles.collect()
        return found

    def renew(self) -> None:
        """Have them keep the codes anew the next time that something is asked."""
        self._release()
        stored = self._frame.mapInArrow(shipped("store", self._run), HANDLE)
        self._handles = stored.rdd.map(tuple).persist()

    def ask(self, message: bytes) -> list[Answer]:
        """Have boxes counted in each part, by one job."""
        task = shipped("count", self._run, message)
        with self._tagged():
            found: list[Answer] = self._handles.mapPartitions(task).collect()
        return found

    def forget(self) -> None:
        """Have the executors take away what they keep."""
        self._release()
        tasks = _FORGETTERS * max(self._context.defaultParallelism, self.number)
        with self._tagged():
            rows = self._context.parallelize(range(tasks), tasks)
            rows.mapPartitions(shipped("forget", self._run)).count()

    def _release(self) -> None:
        if self._handles is not None:
            with suppress(Exception):
                self._handles.unpersist()

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Cancel the jobs that are started inside if that is left by an error or Ctrl-C."""
        self._context.addJobTag(self._tag)
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self._context.cancelJobsWithTag(self._tag)
            raise
        finally:
            with suppress(Exception):
                self._context.removeJobTag(self._tag)


class ConnectParts:
    """Parts by data frames of Spark Connect.

    Where the server does not number tasks and caches nothing (Sail), all of it is one process
    that has every part, and handles are sent along.
    """

    def __init__(self, frame: Any, number: int) -> None:
        self._frame = frame
        self._session = frame.sparkSession
        self._tag = f"thinveil-{secrets.token_hex(4)}"
        self._run = secrets.token_hex(16)
        self._stored: Any = None
        self._listed: list[Handle] = []
        self.number = number

    def keep(self) -> list[Handle]:
        """Have the executors keep the codes and return the handles."""
        self._release()
        stored = self._frame.mapInArrow(shipped("store", self._run), HANDLE)
        with self._tagged():
            self._stored = stored.persist()
            rows = self._stored.toArrow().to_pylist()
        found = [(row["part"], row["records"], row["seal"]) for row in rows]
        self._listed = found if any(part < 0 for part, _, _ in found) else []
        return found

    def renew(self) -> None:
        """Have them keep the codes anew."""
        self.keep()

    def ask(self, message: bytes) -> list[Answer]:
        """Have boxes counted in each part, by one job."""
        if self._listed:
            rows = self._session.range(0, len(self._listed), 1, len(self._listed))
            task = shipped("count_listed", self._run, message, tuple(self._listed))
        else:
            rows = self._stored
            task = shipped("count_in_arrow", self._run, message)
        with self._tagged():
            found = rows.mapInArrow(task, ANSWER).toArrow().to_pylist()
        return [((row["part"], row["records"], row["seal"]), row["answer"]) for row in found]

    def forget(self) -> None:
        """Have the executors take away what they keep."""
        self._release()
        tasks = _FORGETTERS * self.number
        with self._tagged():
            rows = self._session.range(0, tasks, 1, tasks)
            rows.mapInArrow(shipped("forget", self._run), "id long").toArrow()

    def _release(self) -> None:
        if self._stored is not None:
            with suppress(Exception):
                self._stored.unpersist()

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Interrupt what is started inside if that is left by an error or Ctrl-C."""
        self._session.addTag(self._tag)
        try:
            yield
        except Exception as error:
            status = getattr(error, "getGrpcStatusCode", lambda: None)()
            if getattr(status, "name", "") == _GONE:  # it was called again and again by then
                raise Gone from None
            raise
        except BaseException:
            with suppress(Exception):
                self._session.interruptTag(self._tag)
            raise
        finally:
            with suppress(Exception):
                self._session.removeTag(self._tag)
