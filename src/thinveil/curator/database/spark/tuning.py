"""Settings of a Spark session that is started here: small jobs must be quick."""

from __future__ import annotations

from typing import Final

QUICK: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Between the JVM and a Python worker, TCP would wait some 40 ms for an acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",  # from PySpark 4.3 on; unknown before
    "spark.python.worker.reuse": "true",  # an index stays in the memory of its worker
}
"""For every session."""

LOCAL: Final = {
    # Java's first compiler only: statements are few and new, and what counts is Python. And no
    # collections each time that a few more classes are loaded. Opening the bank's customers right
    # after Spark's start took 6.9 to 7.9 instead of 9 to 9.6 s (bench databases).
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m",
    "spark.sql.shuffle.partitions": "4",
    "spark.locality.wait": "0s",
}
"""And for threads of this machine."""
