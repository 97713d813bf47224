"""Where the data is: in a file, in a database, behind a service, or with somebody's own target."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from thinveil.auditing.network.origins import TOKEN, origin_and_path
from thinveil.auditing.targets import Target
from thinveil.curator.database.engines import BY_SCHEME
from thinveil.curator.database.spark.starting import THREADS
from thinveil.curator.tables.dataset import Dataset, Held
from thinveil.curator.tables.files import load, load_as, reading_of
from thinveil.curator.tables.kinds.registry import ENDINGS, PARQUET
from thinveil.curator.tables.people import people
from thinveil.curator.tables.reading import Beside, Reading
from thinveil.errors import UsageError
from thinveil.language.plugins import target_maker, target_names
from thinveil.language.schema import Schema
from thinveil.passwords import missing, shown

Kind = Literal["people", "file", "database", "service", "plugin"]
ENGINES: Final = ("auto", "memory", "duckdb")
"""What counts the records of a file."""

_SERVICE: Final = re.compile(r"https?://", re.IGNORECASE)
_DATABASE: Final = re.compile(rf"({'|'.join(BY_SCHEME)})://", re.IGNORECASE)
_SPARK: Final = re.compile(r"(spark|sc)://", re.IGNORECASE)
_THREADS: Final = "spark://"
_SCHEME: Final = re.compile(r"([A-Za-z][\w+.-]*)://")
_PLUGIN: Final = re.compile(r"([A-Za-z][\w.-]+):")
_ASKED: Final = ("spark", "say", "temporary_tables")
"""How a database is asked, which is nobody's way of reading."""
_log = logging.getLogger(__name__)
_IN_MEMORY: Final = {"csv": 16, "parquet": 40}
"""How many times the size of a file its table may need while it is read."""


def kind_of(source: str | None, engine: str = "auto") -> Kind:
    """Tell what an address means.

    >>> kind_of(None), kind_of("people.csv"), kind_of("postgresql://host/db")
    ('people', 'file', 'database')
    >>> kind_of("http://127.0.0.1:8321"), kind_of("data/*.parquet")
    ('service', 'database')

    Raises:
        UsageError: It starts with a word that nobody here knows.
    """
    if engine not in ENGINES:
        raise UsageError(f"--engine is one of {', '.join(ENGINES)}")
    if source is None:
        return "people"
    if _SERVICE.match(source):
        return "service"
    if _DATABASE.match(source):
        return "database"
    path = Path(source)
    if (plugin := _PLUGIN.match(source)) and not path.exists() and plugin[1] in target_names():
        return "plugin"
    if path.is_dir() or (re.search(r"[*?\[]", source) and not path.exists()):
        return "database"
    if path.exists():
        return "database" if engine == "duckdb" or _too_large(path, engine) else "file"
    if scheme := _SCHEME.match(source):
        names = target_names()
        plugins = f", or {':ADDRESS, '.join(names)}:ADDRESS" if names else ""
        raise UsageError(
            f"{scheme[1]}:// is not known here: use a file, http://, https://, postgresql://, "
            f"mariadb://, duckdb://, sqlite://, datafusion://, chdb:// or spark://{plugins}"
        )
    return "file"


def elsewhere(source: str | None, engine: str = "auto") -> str:
    """Return an address, as it is shown, that sees a token or a password; empty for tables at hand.

    >>> elsewhere("HTTP://127.0.0.1:8321/"), elsewhere("people.csv"), elsewhere("spark://local[2]")
    ('http://127.0.0.1:8321', '', '')
    """
    kind = kind_of(source, engine)
    if source is None or kind in ("people", "file"):
        return ""
    if kind == "service":
        return "".join(map(str, origin_and_path(source)))
    scheme = _DATABASE.match(source)
    here = kind == "database" and (scheme is None or BY_SCHEME[scheme[1].lower()].here)
    threads = source.lower().startswith(_THREADS) and THREADS.fullmatch(source[len(_THREADS) :])
    return "" if here or threads else shown(source)


def _too_large(path: Path, engine: str) -> bool:
    """Tell whether a file would take more than half of the machine's memory."""
    if engine == "memory" or not path.is_file():
        return False
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return False
    ending = path.suffix.lower()
    if ending in ENDINGS and ending not in PARQUET.endings:
        return False  # DuckDB reads none of them, and their readers have a bound
    kind = "parquet" if ending in PARQUET.endings else "csv"
    return path.stat().st_size * _IN_MEMORY[kind] > memory // 2


def opened(
    source: Any,
    schema: Schema | None = None,
    table: str | None = None,
    engine: str = "auto",
    patience: float | None = None,
    tell: Callable[[str], None] | None = None,
    **how: Any,
) -> Held | Target:
    """Open a table or a target.

    Args:
        source: A path, an address, a data frame (of pandas, Polars, Arrow or Spark), an Ibis table,
            or None for the embedded people.
        schema: What is public about a table.
        table: The name of a table in a database.
        engine: Whether a file is read into memory or counted by DuckDB where it lies.
        patience: For how many seconds a service that fails is tried again.
        tell: What to do with a warning before a token is sent; a Python warning, unless given.
        **how: How it is read, the fields of `Reading`; and of a database how it is asked, what
            `open_database` takes beside them.
    """
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    asked: dict[str, Any] = {name: how.pop(name) for name in _ASKED if name in how}
    named = source is None or isinstance(source, str)
    kind = kind_of(source, engine) if named else None
    if named:
        hide = missing if kind == "file" else shown
        what = "the embedded people" if source is None else hide(source)
        _log.info("opening %s (%s)", what, kind)
    if table is not None and kind != "database":
        raise UsageError("--table: only a database has tables by name")
    if named and not asked.get("temporary_tables", True) and kind != "database":
        raise UsageError("--no-temporary-tables: only a database has some; leave it out")
    library = type(source).__module__.partition(".")[0]
    spark = _SPARK.match(source) if named and source else library == "pyspark"
    if asked.get("spark", "auto") != "auto" and not spark:
        raise UsageError("--spark: only tables in Spark are counted by it; leave it out")
    if library in ("ibis", "pyspark"):
        return _of_others(source, library, schema, asked, how)
    if schema is not None and kind in ("people", "service"):
        whose = "the embedded people bring their" if kind == "people" else "a service brings its"
        raise UsageError(f"--schema: {whose} own schema")
    if source is None:
        return _some(people(), reading_of(how))
    if kind == "service":
        from thinveil.auditing.http import PATIENCE, HttpTarget

        wait = PATIENCE if patience is None else patience
        return HttpTarget(source, os.environ.get(TOKEN, ""), patience=wait, tell=tell)
    if kind == "plugin":
        name, _, address = str(source).partition(":")
        target: Target = target_maker(name)(address, schema=schema)
        return target
    if kind == "database":
        from thinveil.curator.database.table import open_database

        return open_database(source, table, schema, **asked, **how)
    return load(source, schema, **how)


def _of_others(
    source: Any, library: str, schema: Schema | None, asked: dict[str, Any], how: dict[str, Any]
) -> Held:
    """Open a table of Ibis, or a data frame of Spark."""
    from thinveil.curator.database.ibis_tables import of_ibis
    from thinveil.curator.database.table import DatabaseTable, open_frame

    if library == "pyspark":
        return open_frame(source, schema, **asked, **how)
    session, rows = of_ibis(source)
    if not asked.get("temporary_tables", True):
        session.store_nothing()
    return DatabaseTable.of(session, rows, schema, reading_of(how))


def _some(data: Dataset, reading: Reading) -> Dataset:
    """Return the wanted columns of a table."""
    if not reading.only and not reading.drop:
        return data
    kept = reading.chosen(data.schema.names, "the embedded people")
    places = [data.schema.column(name) for name in kept]
    return Dataset(reading.described(data.schema), data.codes[:, places], data.remarks)


def reading(origin: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a table is to be read: what options or a transcript say beyond the usual."""
    return Reading.of(origin).plain()


def truth_of(wanted: str | None, held: Held | Target, origin: Mapping[str, Any]) -> Dataset | None:
    """Return the true table for scoring, where the user has it or allows it to be fetched.

    A table in memory is its own truth. "self" fetches a database's rows, which a service does not
    give away; anything else is a file, read by the public schema of what is attacked.
    """
    if wanted in (None, "self") and isinstance(held, Dataset):
        return held
    if wanted is None:
        return None
    if wanted == "self":
        fetch: Callable[[], Dataset] | None = getattr(held, "to_dataset", None)
        if fetch is None:
            say = "what is attacked does not hand its rows out; give a file"
            raise UsageError(f"--truth self: {say}")
        return fetch()
    schema = held.facts.schema if isinstance(held, Target) else held.schema
    beside = Beside.of({**origin, "only": schema.names, "drop": None})
    return load_as(wanted, schema, beside)
