"""Where a database is: addresses, connections, and which of its tables is meant."""

from __future__ import annotations

import atexit
import glob
import importlib.util
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from thinveil.curator.database.session import Session, memory_limit
from thinveil.curator.tables.delimited import Dialect, header_of
from thinveil.errors import DataError, MissingExtra, ThinveilError, UsageError

_ADDRESS: Final = re.compile(r"(postgres|postgresql|duckdb|sqlite|spark)://(.*)", re.I | re.S)
_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*):[^/]*@|(?<=[?&])password=[^&]*&?", re.I)
_PARQUET: Final = (".parquet", ".pq")


def shown(address: str) -> str:
    """Return an address without its password, for messages.

    >>> shown("postgresql://ann:secret@localhost/census")
    'postgresql://ann@localhost/census'
    """
    return _PASSWORD.sub(lambda match: f"{match[1]}@" if match[1] is not None else "", address)


def connected(address: str, table: str | None, dialect: Dialect) -> tuple[Session, Any]:
    """Open a database and return the session and the table that is meant, as Ibis knows it.

    Args:
        address: `postgresql://...`, `duckdb://file`, `sqlite://file`, `spark://...`, or the path
            of Parquet files (one, a pattern or a folder) or of a large text file.
        table: The table's name; it may be left out where there is only one.
        dialect: How a text file is written.

    Raises:
        DataError: The database or the table cannot be reached.
        UsageError: The address makes no sense.
        MissingExtra: The driver is not installed.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        if table is not None:
            raise UsageError("--table: only a database has tables by name")
        return _files(address, dialect)
    kind, rest = match[1].lower(), match[2]
    if kind == "spark":
        return _spark(address, rest, table)
    where, remote = shown(address), kind.startswith("postgres")
    backend = _server(where, address) if remote else _local(kind, rest)
    session = Session(backend, owned=True)
    try:
        if kind == "duckdb":
            session.spill(memory_limit())
        schema, name = _qualified(backend, table) if remote else (None, table)
        return session, _table(backend, name, schema, where)
    except BaseException:
        session.close()
        raise


def _ibis(module: str, driver: str, extra: str) -> Any:
    """Import one of Ibis' backends where it is needed, not before."""
    if importlib.util.find_spec(driver) is None:
        raise MissingExtra(f"A table in {module}", extra)
    try:
        import ibis

        return getattr(ibis, module)
    except (ImportError, AttributeError):
        raise MissingExtra("A table in a database", "databases") from None


def _server(where: str, address: str) -> Any:
    backend = _ibis("postgres", "psycopg", "postgres")
    try:
        # psycopg reads the address itself: sockets, services and options work as in psql.
        import psycopg

        return backend.from_connection(psycopg.connect(_standard(address)))
    except Exception as error:
        raise DataError(
            f"{where}: no connection ({type(error).__name__}): check host, port, user, password "
            "and the database's name, and that the server is running"
        ) from None


def _standard(address: str) -> str:
    return "postgresql://" + address.partition("://")[2]


def _qualified(backend: Any, table: str | None) -> tuple[str | None, str | None]:
    """Split schema.table, unless there is a table whose name has the dot in it."""
    if table is None or "." not in table or table in backend.list_tables():
        return None, table
    schema, _, name = table.partition(".")
    return schema, name


def _local(kind: str, path: str) -> Any:
    backend = _ibis(kind, "duckdb" if kind == "duckdb" else "sqlite3", "databases")
    if not Path(path).is_file():
        raise DataError(f"{kind}://{path}: there is no such file: check the path")
    try:
        if kind == "duckdb":
            return backend.connect(path, read_only=True)
        import sqlite3

        uri = Path(path).resolve().as_uri() + "?mode=ro"
        return backend.from_connection(sqlite3.connect(uri, uri=True, check_same_thread=False))
    except Exception as error:
        raise DataError(
            f"{kind}://{path}: cannot be opened ({type(error).__name__}): see that it is such a "
            "database, that nobody else is writing to it, and that you may read it"
        ) from None


def _table(backend: Any, table: str | None, schema: str | None, where: str) -> Any:
    try:
        names = sorted(backend.list_tables(**({"database": schema} if schema else {})))
        if table is None and len(names) == 1:
            table = names[0]
        if table is not None and table in names:
            return backend.table(table, **({"database": schema} if schema else {}))
    except ThinveilError:
        raise
    except Exception as error:
        raise DataError(
            f"{where}: its tables cannot be listed ({type(error).__name__}): check that this is "
            "such a database and that you may read it"
        ) from None
    there = f"its tables are {_listed(names)}" if names else "it has no tables"
    if table is None:
        raise UsageError(f"{where}: which table? {there}; name one with --table")
    raise DataError(f"{where}: there is no table {table!r}; {there}")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    return ", ".join(map(repr, names[:30])) + more


def _files(path: str, dialect: Dialect) -> tuple[Session, Any]:
    """Open Parquet files or a text file with DuckDB, which reads them where they are."""
    files = _parquet(path)
    backend = _ibis("duckdb", "duckdb", "databases").connect()
    session = Session(backend, owned=True)
    try:
        session.spill(memory_limit())
        if files:
            return session, backend.read_parquet(files, union_by_name=False)
        separator, names = header_of(Path(path), dialect)
        return session, backend.read_csv(
            path,
            header=True,
            auto_detect=False,
            columns=dict.fromkeys(names, "string"),
            delim=separator,
            quote=dialect.quote,
            escape=dialect.quote,
            encoding=dialect.encoding.removesuffix("-sig"),
        )
    except ThinveilError:
        session.close()
        raise
    except Exception as error:
        session.close()
        raise DataError(
            f"{path}: cannot be read ({type(error).__name__}): see that all files are whole and "
            "have the same columns"
        ) from None


def _parquet(path: str) -> list[str]:
    """Return the Parquet files that a path means; none where it is a text file."""
    at = Path(path)
    if at.is_dir():
        found = [
            str(each)
            for each in at.rglob("*")
            if each.suffix.lower() in _PARQUET and each.is_file()
        ]
        if not found:
            raise DataError(
                f"{path}: this is a folder, and there are no Parquet files (.parquet, .pq) in it: "
                "give a CSV or Parquet file, a folder of Parquet files, or a database"
            )
        return sorted(found)
    if at.is_file():
        with at.open("rb") as file:
            return [path] if file.read(4) == b"PAR1" else []
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DataError(f"{path}: there is no such file: check the path")
    if any(Path(each).suffix.lower() not in _PARQUET for each in found):
        raise UsageError(f"{path}: a pattern must match Parquet files (.parquet, .pq) only")
    return found


def _spark(address: str, master: str, table: str | None) -> tuple[Session, Any]:
    module = _ibis("pyspark", "pyspark", "spark")
    try:
        from pyspark.sql import SparkSession

        owned = SparkSession.getActiveSession() is None
        backend = module.connect(_spark_session(SparkSession, address, master))
    except Exception as error:
        raise DataError(
            f"{address}: no Spark session ({type(error).__name__}): see that Java is installed and "
            "that the cluster can be reached"
        ) from None
    session = Session(backend, owned=owned)
    try:
        if table is not None and ("/" in table or table.lower().endswith(_PARQUET)):
            return session, backend.read_parquet(table)
        return session, _table(backend, table, None, address)
    except ThinveilError:
        session.close()
        raise
    except Exception as error:
        session.close()
        raise DataError(
            f"{address}: {table!r} cannot be read ({type(error).__name__}): check the path"
        ) from None


def _passing_folder() -> str:
    """Return a folder that is gone when this process is."""
    folder = tempfile.mkdtemp(prefix="thinveil-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
            settings["spark.sql.warehouse.dir"] = _passing_folder()
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
