"""Spark: a cluster, or threads of this machine; temporary tables are checkpoints with a name."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    builtin,
    ibis_backend,
    told,
)
from thinveil.language.queries import Codes


class Spark(Engine):
    """A session of Spark; the one that is there already, if there is one."""

    name = "Spark"
    backend = "pyspark"
    schemes = ("spark",)
    settings: ClassVar = {"spark.sql.session.timeZone": "UTC"}

    def __init__(self, backend: Any, *, owned: bool) -> None:
        super().__init__(backend, owned=owned)
        self._session = backend._session
        self._kept: dict[str, Any] = {}

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Join the session that is there, or start one; only that is stopped in the end."""
        module = ibis_backend("pyspark", "pyspark", "spark")
        advice = "see that Java is installed and that the cluster can be reached"
        with told(f"{where}: no Spark session", advice):
            from pyspark.sql import SparkSession

            owned = SparkSession.getActiveSession() is None
            return module.connect(_spark_session(SparkSession, address, rest)), owned

    def table(self, name: str | None, where: str) -> Any:
        """Return a table of the catalogue, or Parquet files by their path."""
        if name is None or not ("/" in name or name.lower().endswith((".parquet", ".pq"))):
            return super().table(name, where)
        with told(f"{where}: {name!r} cannot be read", "check the path"):
            return self._backend.read_parquet(name)

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970, as an expression."""
        return builtin("unix_micros", moment.cast("timestamp('UTC')"))

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        before = self._session.conf.get(name)
        self._session.conf.set(name, value)
        return str(before)

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Make a data frame of the arrays and name it."""
        with _open_sockets():
            self._session.createDataFrame(arrow_table(columns)).createOrReplaceTempView(name)

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Compute a data frame once and name it."""
        frame = self._session.sql(statement).localCheckpoint(eager=True)
        frame.createOrReplaceTempView(name)
        self._kept[name] = frame

    def drop(self, name: str) -> None:
        """Forget a data frame."""
        self._session.catalog.dropTempView(name)
        if (frame := self._kept.pop(name, None)) is not None:
            frame.unpersist()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        with _open_sockets():
            return [tuple(row) for row in self._session.sql(statement).collect()]

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        with _open_sockets():
            found = self._session.sql(statement).toArrow()
        return np.column_stack([each.to_numpy().astype(np.int64) for each in found.columns])

    def close(self) -> None:
        """Stop the session if it was started here."""
        if self._owned:
            with _open_sockets():
                self._session.stop()


@contextmanager
def _open_sockets() -> Iterator[None]:
    """Keep quiet about sockets that PySpark leaves for Python to close."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def _spark_session(kind: Any, address: str, master: str) -> Any:
    """Start Spark without its web page; a single machine needs few partitions."""
    local = master.startswith("local")
    builder = kind.builder.appName("thinveil").master(master if local else address)
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if local:
        settings["spark.sql.shuffle.partitions"] = "4"
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        if not Path("spark-warehouse").exists():  # Spark would make one here, and leave it behind
            settings["spark.sql.warehouse.dir"] = folder = tempfile.mkdtemp(prefix="thinveil-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
