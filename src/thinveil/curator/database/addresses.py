"""Where a database is: addresses, connections, and which of its tables is meant."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Any, Final

from thinveil.curator.database.engines import BY_SCHEME
from thinveil.curator.database.engines.protocol import ibis_backend, told
from thinveil.curator.database.session import Session
from thinveil.curator.tables.delimited import check_names, encoding_of, header_of
from thinveil.curator.tables.files import first_bytes
from thinveil.curator.tables.reading import Reading
from thinveil.errors import DataError, UsageError

_ADDRESS: Final = re.compile(rf"({'|'.join(BY_SCHEME)})://(.*)", re.I | re.S)
_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*):[^/]*@|(?<=[?&])password=[^&]*&?", re.I)
_PARQUET: Final = (".parquet", ".pq")


def shown(address: str) -> str:
    """Return an address without its password, for messages.

    >>> shown("postgresql://ann:secret@localhost/census")
    'postgresql://ann@localhost/census'
    """
    return _PASSWORD.sub(lambda match: f"{match[1]}@" if match[1] is not None else "", address)


def connected(address: str, table: str | None, reading: Reading) -> tuple[Session, Any]:
    """Open a database and return the session and the table that is meant, as Ibis knows it.

    The arguments are those of `open_database`; a table's name may be left out where there is one.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        if table is not None:
            raise UsageError("--table: only a database has tables by name")
        return _files(address, reading)
    where = shown(address)
    backend, owned = BY_SCHEME[match[1].lower()].connect(address, match[2], where)
    session = Session(backend, owned=owned)
    with session.closed_on_failure():
        return session, session.engine.table(table, where)


def _files(path: str, reading: Reading) -> tuple[Session, Any]:
    """Open Parquet files or a text file with DuckDB, which reads them where they are."""
    files = _parquet(path)
    backend = ibis_backend("duckdb", "duckdb").connect()
    session = Session(backend, owned=True)
    advice = "see that all files are whole and have the same columns"
    with session.closed_on_failure(), told(f"{path}: cannot be read", advice):
        if files:
            return session, backend.read_parquet(files, union_by_name=False)
        separator, names = header_of(Path(path), reading)
        check_names(names, path)
        return session, backend.read_csv(
            path,
            header=True,
            auto_detect=False,
            columns=dict.fromkeys(names, "string"),
            delim=separator,
            quote=reading.quote,
            escape=reading.quote,
            encoding=encoding_of(reading).removesuffix("-sig"),
        )


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
        return [path] if first_bytes(at) == b"PAR1" else []
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DataError(f"{path}: there is no such file: check the path")
    if any(Path(each).suffix.lower() not in _PARQUET for each in found):
        raise UsageError(f"{path}: a pattern must match Parquet files (.parquet, .pq) only")
    return found
