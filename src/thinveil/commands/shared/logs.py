"""What -v and -vv show: what is done and how long it takes, never a confidential value.

Modules write to Python's loggers below "thinveil": at the level INFO what was opened, started and
ended, at DEBUG each round. Names of files and columns, numbers of questions and times are logged;
values, thresholds, predicates and what is known of people are not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from thinveil.report.text.streams import LogFormat, LogLines


def show(verbosity: int) -> Callable[[], None]:
    """Write logs to the error stream from now on; return what ends that.

    Args:
        verbosity: 1 for what is opened, started and ended; 2 or more for each round, too.
    """
    logger = logging.getLogger("thinveil")
    before = logger.level
    handler = LogLines()
    handler.setFormatter(LogFormat("%(asctime)s.%(msecs)03d %(name)s: %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)

    def end() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    return end
