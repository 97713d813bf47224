"""Sessions of Spark that are started here, and what is left when one is gone."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from thinveil.curator.database.spark import warming
from thinveil.curator.database.spark.tuning import LOCAL, QUICK

THREADS: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
"""An address that means threads of this machine."""


def started(kind: Any, rest: str) -> Any:
    """Start Spark without its web page; a single machine needs few partitions."""
    local = THREADS.fullmatch(rest) is not None
    builder = kind.builder.appName("thinveil").master(rest if local else f"spark://{rest}")
    settings = dict(QUICK)
    python = os.environ.get("PYSPARK_PYTHON")
    if local:
        settings |= LOCAL
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else any python3 that is found
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.authenticate"] = "true"  # by a secret that Spark draws; others may knock
        folder = tempfile.mkdtemp(prefix="thinveil-")  # nobody else may read it
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        settings["spark.local.dir"] = folder
        if not Path("spark-warehouse").exists():  # Spark would make one here, and leave it behind
            settings["spark.sql.warehouse.dir"] = folder
    for key, value in settings.items():
        builder = builder.config(key, value)
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        session = builder.getOrCreate()
    finally:
        # PySpark's own handler would cancel all jobs from inside of a call to Java, and
        # interruptions in the middle of a thought would not wait (see auditing/holding)
        if threading.current_thread() is threading.main_thread() and interrupted is not None:
            signal.signal(signal.SIGINT, interrupted)
        if python is None:  # a cluster that is entered later has a Python of its own
            os.environ.pop("PYSPARK_PYTHON", None)
    session.sparkContext.setLogLevel("OFF")  # what it writes may quote values
    _leave_no_settings(session.sparkContext, settings)
    if local:
        warming.begin(session)
    return session


def _leave_no_settings(context: Any, settings: dict[str, str]) -> None:
    """Take our settings from the properties of Java, where the next session would find them.

    The context has a copy. A cluster of somebody else in the same process would not start: it
    would have to know a secret that Spark draws for this machine only.
    """
    with suppress(Exception):  # not part of the public interface
        java = context._jvm.java.lang.System
        for key, value in settings.items():
            if java.getProperty(key) == value:
                java.clearProperty(key)


def forget_java() -> None:
    """Have PySpark forget a Java that is gone, which it would call for as long as we live."""
    with suppress(Exception):  # not part of the public interface
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        SparkSession._instantiatedSession = None
        for name in ("_active_spark_context", "_gateway", "_jvm"):
            setattr(SparkContext, name, None)


def hurry(session: Any) -> None:
    """Have a server that is gone called again for some seconds, not for ten minutes."""
    with suppress(Exception):  # not part of the public interface
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session.client.set_retry_policies([DefaultPolicy(max_retries=4)])
