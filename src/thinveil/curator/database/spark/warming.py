"""The first of everything in a session that was started here, beside the opening of a table.

Right after its start Spark loads classes and compiles for seconds before it does a thing. A
statement and a task of Python, about nothing, go through all of it in a thread of their own, so
that codes need not wait for it (warming up).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from thinveil.curator.database.spark.shipping import shipped

_TAG: Final = "thinveil-first"
_PATIENCE: Final = 20.0
"""Seconds that somebody waits for it at most: some four are usual (a round figure)."""
_LEAVING: Final = 2.0
"""The same where the session is about to be stopped, which ends it in any case."""
_CODES: Final = (
    "SELECT CAST(CASE WHEN id IS NULL THEN 0 WHEN (CAST(id AS STRING) || '') = 'a' THEN 1 "
    "ELSE id END AS BIGINT) AS c0 FROM range(0, 4, 1, 1)"
)
_CHECKS: Final = "COUNT(*) AS records", "SUM(CASE WHEN c0 IS NULL THEN 1 ELSE 0 END) AS wrong0"
_begun: Final[WeakKeyDictionary[Any, threading.Thread]] = WeakKeyDictionary()


def begin(session: Any) -> None:
    """Begin, for a session that was just started."""
    from pyspark import InheritableThread

    thread = InheritableThread(target=_first, args=(session,), daemon=True)
    _begun[session.sparkContext] = thread
    thread.start()


def _first(session: Any) -> None:
    """Do once what an opening does; what goes wrong here goes wrong there again, and is said."""
    with suppress(Exception):
        session.sparkContext.addJobTag(_TAG)
        codes = session.sql(_CODES).persist()
        codes.selectExpr(*_CHECKS).collect()
        codes.mapInArrow(shipped("same"), "c0 long").collect()
        codes.unpersist()


def wait(context: Any) -> None:
    """Wait until it is over, as its task holds a slot."""
    if (thread := _begun.pop(context, None)) is not None:
        thread.join(_PATIENCE)


def end(context: Any) -> None:
    """End it where nobody waits for it any more."""
    if (thread := _begun.pop(context, None)) is not None and thread.is_alive():
        with suppress(Exception):
            context.cancelJobsWithTag(_TAG)
        thread.join(_LEAVING)
