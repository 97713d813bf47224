"""Spark: a cluster, or threads of this machine; temporary tables are checkpoints with a name."""

from __future__ import annotations

import atexit
import json
import re
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    builtin,
    ibis_backend,
    listing,
    meant,
    no_table,
    told,
)
from thinveil.curator.tables.reading import leaving_out
from thinveil.errors import DataError, UsageError
from thinveil.language.queries import Codes
from thinveil.passwords import shown

_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_HOST: Final = r"([\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}"
_CLUSTER: Final = re.compile(f"{_HOST}(,{_HOST})*")
_PATTERN: Final = re.compile(r"([\\*?\[\]{}])")
"""What means something in a path: Hadoop takes every path for a pattern."""
_OWN: Final = "thinveil_"
_CHANGED_BY_IBIS: Final = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")


class Spark(Engine):
    """A session of Spark; the one that is there already, if there is one."""

    name = "Spark"
    backend = "pyspark"
    schemes = ("spark",)
    settings: ClassVar = {
        "spark.sql.session.timeZone": "UTC",
        # what a session of somebody else may have changed, and statements are written for
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",  # a column may be named ${env:HOME}
    }

    def __init__(self, backend: Any, *, owned: bool) -> None:
        super().__init__(backend, owned=owned)
        self._session = backend._session
        self._kept: dict[str, Any] = {}
        self._opened: list[str] = []

    @staticmethod
    def connect(address: str, rest: str, where: str) -> tuple[Any, bool]:
        """Join the session that is there, or start one; only that is stopped in the end."""
        if not _LOCAL.fullmatch(rest) and not _CLUSTER.fullmatch(rest):
            raise UsageError(
                f"{where}: this is no address of Spark: give spark://host:port, or "
                "spark://local[2] for two threads of this machine"
            )
        module = ibis_backend("pyspark", "pyspark", "spark")
        advice = "see that Java is installed and that the cluster can be reached"
        with told(f"{where}: no Spark session", advice):
            from pyspark.sql import SparkSession

            there = SparkSession.getActiveSession()
            if there is None:
                return module.connect(_spark_session(SparkSession, rest)), True
            before = {name: str(there.conf.get(name)) for name in _CHANGED_BY_IBIS}
            backend = module.connect(there)
            for name, value in before.items():
                there.conf.set(name, value)
            return backend, False

    def table(self, name: str | None, where: str) -> Any:
        """Return a table of the catalogue, or Parquet files by their path."""
        if name is not None and ("/" in name or name.lower().endswith((".parquet", ".pq"))):
            literal = _PATTERN.sub(r"\\\1", name) if Path(name).exists() else name
            with told(f"{where}: {shown(name)!r} cannot be read", "check the path"):
                return self._named(self._session.read.parquet(literal), where)
        with listing(where):
            names = self._tables("SHOW TABLES", temporary=True)
            parts = [meant(names, name)]
            if parts == [None] and name is not None and "." in name:
                *schema, last = name.split(".")
                names = self._tables(f"SHOW TABLES IN {_quoted(*schema)}", temporary=False)
                parts = [*schema, meant(names, last)]
            if None not in parts:
                return self._named(self._session.table(_quoted(*map(str, parts))), where)
        raise no_table(names, name, where)

    def _tables(self, statement: str, *, temporary: bool) -> list[str]:
        """Return the names of tables, none where there is no such schema; ours are left out."""
        from pyspark.errors import AnalysisException

        try:
            rows = self._session.sql(statement).collect()
        except AnalysisException:
            return []
        return sorted(
            row.tableName
            for row in rows
            if not row.isTemporary or (temporary and not row.tableName.startswith(_OWN))
        )

    def _named(self, frame: Any, where: str) -> Any:
        """Give a table a name of ours: Spark would take apart what others have named.

        A file may say that a column is of a type that somebody has written in Python, which is
        imported or even unpickled when its schema is read: none is let so far.
        """
        described = json.loads(frame._jdf.schema().json())
        for column in described["fields"]:
            if '"type": "udt"' in json.dumps(column["type"]):
                raise DataError(
                    f"{where}: column {column['name']!r} has a type that somebody has defined: "
                    "convert it, or leave it out of the table"
                )
        name = f"{_OWN}{secrets.token_hex(5)}_table"
        frame.createOrReplaceTempView(name)
        self._opened.append(name)
        return self._backend.table(name)

    def check(self, columns: Sequence[str], where: str) -> None:
        """Refuse variables: Hadoop puts their values into the names that it looks for in a file."""
        for name in columns:
            if "${" in name:
                raise DataError(
                    f"{where}: Spark does not read the column {name!r} as it is named: rename it, "
                    f"or leave it out ({leaving_out(name)})"
                )

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
        """Forget what was opened, and stop the session if it was started here."""
        for name in self._opened:
            self._session.catalog.dropTempView(name)
        if self._owned:
            with _open_sockets():
                self._session.stop()


@contextmanager
def _open_sockets() -> Iterator[None]:
    """Keep quiet about sockets that PySpark leaves for Python to close."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def _quoted(*names: str) -> str:
    """Return the parts of a table's name as Spark reads them."""
    return ".".join("`" + each.replace("`", "``") + "`" for each in names)


def _spark_session(kind: Any, rest: str) -> Any:
    """Start Spark without its web page; a single machine needs few partitions."""
    local = _LOCAL.fullmatch(rest) is not None
    builder = kind.builder.appName("thinveil").master(rest if local else f"spark://{rest}")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if local:
        settings["spark.sql.shuffle.partitions"] = "4"
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
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # what it writes may quote values
    return session
