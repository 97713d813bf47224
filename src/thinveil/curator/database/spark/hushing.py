"""What PySpark logs beside the errors that it raises: their words, which may quote values.

Also the tracebacks of py4j, where an interruption comes in the middle of a call to Java.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NAMES: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_guard = threading.RLock()  # what is collected as garbage may leave at any moment
_held = 0


@contextmanager
def hushed() -> Iterator[None]:
    """Have nothing of it written inside; the last of several to leave ends it."""
    global _held
    with _guard:
        _held += 1
        if _held == 1:
            for each in _loggers():
                each.addFilter(_may_be_written)
    try:
        yield
    finally:
        with _guard:
            _held -= 1
            if _held == 0:
                for each in _loggers():
                    each.removeFilter(_may_be_written)


def _loggers() -> list[logging.Logger]:
    from pyspark.logger import PySparkLogger

    return [logging.getLogger(), *map(PySparkLogger.getLogger, _NAMES)]


def _may_be_written(record: logging.LogRecord) -> bool:
    """Tell what is somebody else's: py4j writes to the log of all."""
    return record.name not in _NAMES and "py4j" not in record.pathname
