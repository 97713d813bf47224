"""Spark: a cluster, threads of this machine, or a server of Spark Connect.

Temporary tables are data frames that Spark keeps, with a name. Rounds are counted by the executors
themselves (`curator/database/spark`), or by SQL where they must not run Python.
"""

from __future__ import annotations

import glob
import json
import re
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from thinveil.curator.counting.scan import Counter
from thinveil.curator.database.engines.protocol import (
    Arrays,
    Engine,
    arrow_table,
    everything,
    listing,
    meant,
    needed,
    no_table,
    not_interrupted,
    told,
)
from thinveil.curator.database.parquet_files import LAKES, LOGS, WHOLE, lake_of, refuse_lakes
from thinveil.curator.database.spark import warming
from thinveil.curator.database.spark.hushing import hushed
from thinveil.curator.database.spark.picking import SparkCounter, Wish, spark_counter
from thinveil.curator.database.spark.starting import THREADS, forget_java, hurry, started
from thinveil.curator.database.words import Rows, call, exp
from thinveil.curator.tables.reading import leaving_out
from thinveil.errors import DataError, TargetError, ThinveilError, UsageError
from thinveil.language.queries import Codes
from thinveil.passwords import shown

_HOST: Final = r"([\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}"
_CLUSTER: Final = re.compile(f"{_HOST}(,{_HOST})*")
_PATTERN: Final = re.compile(r"([\\*?\[\]{}])")
"""What means something in a path: Hadoop takes every path for a pattern."""
_MASTER: Final = re.compile(f"{THREADS.pattern}|{_CLUSTER.pattern}")
_SERVER: Final = re.compile(rf"{_HOST}(/(;[\w.-]+=[^;\s]*)*)?")
"""Behind sc://: a host, its port, and parameters, as PySpark takes them."""
_OWN: Final = "thinveil_"
_READABLE: Final = (
    "check the path, that all files are whole and have the same columns, and that Spark can read "
    "these: none in nanoseconds, no times of the day, no two of one name"
)
_LEAVING: Final = 10.0
"""Seconds for all that is taken away over Spark Connect: its calls have no end of their own where
a server hangs (a round figure)."""


class Spark(Engine):
    """A session of Spark; the one that is there already, if there is one."""

    name = "Spark"
    dialect = "spark"
    backend = "pyspark"
    schemes = ("spark", "sc")
    few = 64  # a join costs a job of its own
    gathered = "collect_set"
    round_seconds = 0.2  # a statement and its join; executors that count by themselves say less
    settings: ClassVar = {
        "spark.sql.session.timeZone": "UTC",
        # what a session of somebody else may have changed, and statements are written for
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",  # a column may be named ${env:HOME}
    }

    def __init__(self, connection: Any, *, owned: bool = False) -> None:
        super().__init__(connection, owned=owned)
        self._session = connection
        self._kept: dict[str, Any] = {}
        self._opened: list[str] = []
        self._counters: list[SparkCounter] = []
        self._remote = "connect" in type(connection).__module__.split(".")
        self._last: float | None = None  # until when it may take to leave
        self.wish = Wish()
        self._hushed = ExitStack()  # it may be closed again, which does nothing
        self._hushed.enter_context(hushed())

    @classmethod
    def connect(cls, address: str, rest: str, where: str) -> Spark:
        """Join the session that is there, or start one; only that is stopped in the end."""
        remote = address[:3].lower() == "sc:"
        if not (_SERVER if remote else _MASTER).fullmatch(rest):
            raise UsageError(
                f"{where}: this is no address of Spark: give spark://host:port, spark://local[2] "
                "for two threads of this machine, or sc://host:port for Spark Connect"
            )
        needed("Spark", "pyspark", "spark")
        advice = "see that Java is installed and that the cluster can be reached"
        if remote:
            needed("Spark Connect", "grpc", "spark")
            advice = "see that the server runs, and that the address has what it asks for"
        with told(f"{where}: no Spark session", advice):
            if remote:
                # The common builder would turn this whole process to Spark Connect for good.
                from pyspark.sql.connect.session import SparkSession as Remote

                with _open_sockets():
                    session = Remote.builder.remote(f"sc://{rest}").create()
                    hurry(session)
                    with suppress(Exception):  # Sail takes a plain number only
                        session.conf.set("spark.sql.session.localRelationSizeLimit", "67108864")
                    session.range(1).count()  # is anybody there?
                return cls(session, owned=True)
            from pyspark.sql import SparkSession

            there = SparkSession.getActiveSession()
            if there is not None:
                return cls(there)
            with hushed(), _open_sockets():
                return cls(started(SparkSession, rest), owned=True)

    def table(self, name: str | None, where: str) -> Rows:
        """Return a table of the catalogue, or one by its path: Parquet files, Delta, Iceberg."""
        if name is not None and (lake := _lake(name)) is not None:
            kind, path = lake
            advice = f"check the path, and that this Spark has what reads tables of {LAKES[kind]}"
            with told(f"{where}: {shown(path)!r} cannot be read", advice):
                return self.named(self._session.read.format(kind).load(path), where)
        if name is not None and ("/" in name or name.lower().endswith((".parquet", ".pq"))):
            literal = _PATTERN.sub(r"\\\1", name) if Path(name).exists() else name
            self._refuse_lakes(name, where)
            with told(f"{where}: {shown(name)!r} cannot be read", _READABLE):
                frame = self._session.read.parquet(literal)
                if not Path(name).is_file():
                    # Spark shows the columns of some file, and leaves out what others have more
                    merged = self._session.read.option("mergeSchema", "true").parquet(literal)
                    if {*merged.columns} != {*frame.columns}:
                        raise DataError(f"{where}: {shown(name)!r} cannot be read: {WHOLE}")
                return self.named(frame, where)
        with listing(where):
            names = self.tables(None)
            parts = [meant(names, name)]
            if parts == [None] and name is not None and "." in name:
                *schema, last = name.split(".")
                names = self._tables(f"SHOW TABLES IN {_quoted(*schema)}", temporary=False)
                parts = [*schema, meant(names, last)]
            if None not in parts:
                return self.named(self._session.table(_quoted(*map(str, parts))), where)
        raise no_table(names, name, where)

    def _refuse_lakes(self, name: str, where: str) -> None:
        """Refuse files of a table of Delta or Iceberg: some records may have been removed since."""
        if here := [name] if Path(name).exists() else glob.glob(name, recursive=True):
            for each in map(Path, here):
                refuse_lakes(name, map(str, each.rglob("*.parquet") if each.is_dir() else [each]))
            return
        folder = _PATTERN.split(name)[0]
        while folder := folder.rstrip("/"):
            for kind in LAKES:
                if self._has(f"{folder}/{LOGS[kind]}"):
                    raise DataError(
                        f"{where}: files of a table of {LAKES[kind]}, some of which may hold "
                        "records that are no longer in it: give "
                        f"--table {shown(f'{kind}:{folder}')}"
                    )
            folder = folder.rpartition("/")[0] if "/" in folder.rpartition("://")[2] else ""

    def _has(self, pattern: str) -> bool:
        """Tell whether Spark sees a line in files of a name; no where it may not look.

        Only that there is one leaves Spark: such lines may hold extremes of columns.
        """
        try:
            return bool(self._session.read.text(pattern).limit(1).count())
        except Exception:
            return False

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

    def named(self, frame: Any, where: str) -> Rows:
        """Give a table a name of ours: Spark would take apart what others have named.

        A file may say that a column is of a type that somebody has written in Python, which is
        imported or even unpickled when its schema is read: none is let so far.
        """
        name = f"{_OWN}{secrets.token_hex(5)}_table"
        if self._remote:  # its server says the types in words, and nothing is imported here
            frame.createOrReplaceTempView(name)
            rows = self._session.sql(f"DESCRIBE TABLE {name}").collect()
            pairs = [(row.col_name, self.kind(row.data_type)) for row in rows]
        else:
            pairs = self._columns(frame, where)
            frame.createOrReplaceTempView(name)
        self._opened.append(name)
        names, kinds = zip(*pairs, strict=True) if pairs else ((), ())
        return Rows(exp.to_table(name), names, kinds)

    def _columns(self, frame: Any, where: str) -> list[tuple[str, Any]]:
        """Return the names and types of the columns of a data frame."""
        described = json.loads(frame._jdf.schema().json())["fields"]
        for each in described:
            if '"type": "udt"' in json.dumps(each["type"]):
                raise DataError(
                    f"{where}: column {each['name']!r} has a type that somebody has defined: "
                    "convert it, or leave it out of the table"
                )
        return [(each["name"], self.kind(_plain_type(each["type"]))) for each in described]

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of all tables and views that are not ours."""
        return self._tables("SHOW TABLES", temporary=True)

    def describe(self, rows: Rows) -> list[tuple[str, Any]]:
        """Return the names and types of columns."""
        frame = self._session.sql(self.words(everything(rows)))
        if self._remote:
            return [(each.name, self.kind(each.dataType.simpleString())) for each in frame.schema]
        return self._columns(frame, "the table")

    def check(self, columns: Sequence[str], where: str) -> None:
        """Refuse variables: Hadoop puts their values into the names that it looks for in a file."""
        for name in columns:
            if "${" in name:
                raise DataError(
                    f"{where}: Spark does not read the column {name!r} as it is named: rename it, "
                    f"or leave it out ({leaving_out(name)})"
                )

    def micros(self, moment: Any) -> Any:
        """Return microseconds since 1970, of a time with a time zone."""
        return call("unix_micros", call("timestamp", moment))

    def change(self, name: str, value: str) -> str:
        """Change a setting and return what it was."""
        if self._last is not None:  # it is being left: nobody asks what it was
            if not self._owned:  # else it goes with its session
                self._soon(partial(self._session.conf.set, name, value))
            return value
        with _open_sockets():
            before = self._session.conf.get(name)
            self._session.conf.set(name, value)
        return str(before)

    def upload(self, name: str, columns: Arrays, *, again: bool) -> None:
        """Make a data frame of the arrays and name it."""
        with _open_sockets():
            self._session.createDataFrame(arrow_table(columns)).createOrReplaceTempView(name)

    def keep(self, name: str, columns: Sequence[str], statement: str, index: Sequence[str]) -> None:
        """Have a data frame computed once, when it is first read, and name it.

        Lost parts of it are computed again (by lineage), which a checkpoint would not allow. Spark
        takes two frames of one plan for the same, though files were changed in between: a condition
        that always holds makes this one its own.
        """
        frame = self._session.sql(statement).filter(f"'{name}' = '{name}'").persist()
        frame.createOrReplaceTempView(name)
        self._kept[name] = frame

    def drop(self, name: str) -> None:
        """Forget a data frame."""
        self._soon(lambda: self._session.catalog.dropTempView(name))
        if (frame := self._kept.pop(name, None)) is not None:
            self._soon(frame.unpersist)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the few rows that a statement selects."""
        with _open_sockets():
            return [tuple(row) for row in self._session.sql(statement).collect()]

    def codes(self, statement: str, width: int) -> Codes:
        """Fetch columns as arrays."""
        with _open_sockets():
            found = self._session.sql(statement).toArrow()
        return np.column_stack([each.to_numpy().astype(np.int64) for each in found.columns])

    def counter(self, codes: Rows, records: int, where: str) -> Counter | None:
        """Return what counts at the executors; nothing where it has to be done by SQL."""
        if self.wish.way == "sql":
            return None
        try:
            with _open_sockets():
                if not self._remote:
                    warming.wait(self._session.sparkContext)
                counter = spark_counter(self._kept[codes.name], records, self.wish, self.say)
        except ThinveilError:
            raise
        except Exception as error:
            not_interrupted(error)
            why = f"Spark's executors cannot count ({type(error).__name__})"
            if self.wish.way != "auto":
                raise TargetError(
                    f"{where}: {why}: see that they have Python with NumPy and Arrow, or let Spark "
                    "count by SQL (--spark sql)"
                ) from None
            self.say(f"{why}: counting goes by SQL")
            return None
        self._counters.append(counter)
        self.say(f"Spark: {counter.note}")
        return counter

    def release(self) -> None:
        """Have executors take away what they keep."""
        self._last = time.monotonic() + _LEAVING
        for counter in self._counters:
            self._soon(counter.close)
        self._counters.clear()

    def close(self) -> None:
        """Forget what was opened, and stop the session if it was started here."""
        with suppress(Exception):  # where Java is gone, the session is stopped all the same
            for name in self._opened:
                self._soon(partial(self._session.catalog.dropTempView, name))
        if self._owned:
            with suppress(Exception):
                if not self._remote:
                    warming.end(self._session.sparkContext)
            with _open_sockets():
                try:
                    self._soon(self._session.stop)
                except Exception:
                    if not self._remote:
                        forget_java()
        self._hushed.close()

    def _soon(self, do: Callable[[], Any]) -> None:
        """Do what takes something away; a server that is being left has only so long for all."""
        if not self._remote or self._last is None:
            with _open_sockets():
                do()
            return

        def quietly() -> None:
            with suppress(Exception), _open_sockets():
                do()

        if (left := self._last - time.monotonic()) > 0:
            thread = threading.Thread(target=quietly, daemon=True)
            thread.start()
            thread.join(left)


@contextmanager
def _open_sockets() -> Iterator[None]:
    """Keep quiet about sockets that PySpark leaves for Python to close, and what it thinks of us.

    It warns of new pandas, of settings that are there to be changed, and of each try in vain.
    """
    with warnings.catch_warnings():
        for kind in (ResourceWarning, FutureWarning, UserWarning):
            warnings.simplefilter("ignore", kind)
        yield


def _plain_type(kind: Any) -> str:
    """Return the name of a type; of one that is made of others, what it is."""
    return kind if isinstance(kind, str) else str(kind["type"])


def _lake(name: str) -> tuple[str, str] | None:
    """Return the format and the path of a table of Delta or Iceberg.

    >>> _lake("delta:s3a://bucket/people"), _lake("census.people")
    (('delta', 's3a://bucket/people'), None)
    """
    kind, colon, path = name.partition(":")
    if colon and kind in LAKES:
        return kind, path
    found = lake_of(Path(name)) if "/" in name else None
    return None if found is None else (found, str(Path(name).absolute()))


def _quoted(*names: str) -> str:
    """Return the parts of a table's name as Spark reads them."""
    return ".".join("`" + each.replace("`", "``") + "`" for each in names)
