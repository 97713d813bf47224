"""Where a database is: addresses, connections, and which of its tables is meant."""

from __future__ import annotations

import codecs
import glob
import re
from pathlib import Path
from typing import Any, Final

from thinveil.curator.database.engines import BY_SCHEME
from thinveil.curator.database.engines.duckdb import literal, open_duckdb
from thinveil.curator.database.engines.protocol import ibis, told
from thinveil.curator.database.parquet_files import check_parquet
from thinveil.curator.database.session import Refused, Session
from thinveil.curator.tables.delimited import check_rows, found_layout
from thinveil.curator.tables.kinds.registry import PARQUET, first_bytes, kind_of_file
from thinveil.curator.tables.reading import Reading
from thinveil.curator.tables.text.naming import is_unnamed, named
from thinveil.errors import DataError, UsageError
from thinveil.passwords import missing, shown

_ADDRESS: Final = re.compile(rf"({'|'.join(BY_SCHEME)})://(.*)", re.I | re.S)
_PARQUET: Final = (".parquet", ".pq")
_ENCODINGS: Final = {
    "utf-8": "utf-8",
    "utf-8-sig": "utf-8",
    "iso8859-1": "latin-1",
    "utf-16-le": "utf-16",
}
"""What DuckDB calls the encodings that it reads as Python does."""
_WHOLE: Final = "see that all files are whole and have the same columns"
_PACKINGS: Final = (None, "gzip", "zstd")


def connected(
    address: str, table: str | None, reading: Reading
) -> tuple[Session, Any, tuple[str, ...]]:
    """Open a database: return the session, the table that is meant, and what was assumed.

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
        return session, session.engine.table(table, where), ()


def is_file(address: str) -> bool:
    """Tell whether an address means files that DuckDB reads where they are."""
    return _ADDRESS.fullmatch(address) is None


def _files(path: str, reading: Reading) -> tuple[Session, Any, tuple[str, ...]]:
    """Open Parquet files or a text file with DuckDB, which reads them where they are."""
    files = _parquet(path)
    with told(f"{path}: cannot be read", _WHOLE):
        check_parquet(files)
    files = [str(Path(each).absolute()) for each in files]
    backend = open_duckdb(files=files or [str(Path(path).absolute())])
    session = Session(backend, owned=True)
    with session.closed_on_failure():
        if not files:
            return session, *_text(session, backend, Path(path), reading)
        with told(f"{path}: cannot be read", _WHOLE):
            these = [*map(literal, files)]
            table = backend.read_parquet(these, union_by_name=False)
            if not any(map(is_unnamed, table.columns)):
                return session, table, ()
            rows = backend.read_parquet(these, union_by_name=False, file_row_number=True)
            return session, *_without_needless(session, rows, reading)


def _without_needless(
    session: Session, table: Any, reading: Reading
) -> tuple[Any, tuple[str, ...]]:
    """Leave columns without a name out that only count the rows of their file, or are empty.

    The last column has the number of the row.
    """
    *names, row = table.columns
    unnamed = [place for place, name in enumerate(names) if is_unnamed(name)]
    texts = {f"f{place}": table[names[place]].cast("string") for place in unnamed}
    found = _needless(session, table.select(row=table[row], **texts), unnamed)
    called, assumed = named(names, *found, reading)
    pairs = zip(called, names, strict=True)
    return table.select(**{new: table[old] for new, old in pairs if new is not None}), (*assumed,)


def unread(path: str, reading: Reading, refused: Refused) -> DataError:
    """Say why DuckDB could not read a file to its end: with the line, where it is a text."""
    if not is_file(path):
        return refused
    if _parquet(path):
        return DataError(f"{path}: cannot be read to its end: {_WHOLE}")
    check_rows(Path(path), reading)
    return DataError(f"{refused}; or read it into memory (--engine memory)")


def _text(
    session: Session, backend: Any, path: Path, reading: Reading
) -> tuple[Any, tuple[str, ...]]:
    """Open a text file as it would be read into memory."""
    found = found_layout(path, reading)
    layout, packing = found.layout, found.packing
    encoding = _ENCODINGS.get(codecs.lookup(found.encoding).name)
    if found.encoding == "utf-16" and first_bytes(path).startswith(codecs.BOM_UTF16_LE):
        encoding = "utf-16"
    dialect = layout.dialect
    odd = layout.comment or dialect.aligned or dialect.loose or found.above is None
    unlike = DataError(
        f"{path}: DuckDB does not read this file as it is meant (its encoding, compression, "
        "comments, spaces or blank lines): read it into memory (--engine memory), or write it as "
        "CSV in UTF-8"
    )
    if encoding is None or packing not in _PACKINGS or odd:
        raise unlike
    table = backend.read_csv(
        literal(str(path.absolute())),
        header=False,
        auto_detect=False,
        columns={f"f{place}": "string" for place, _ in enumerate(layout.names)},
        skip=found.above,
        delim=dialect.separator,
        quote=dialect.quote,
        escape=dialect.quote,
        encoding=encoding,
        compression=packing or "none",
        allow_quoted_nulls=False,
    )
    if (
        len(layout.names) == 1
        and session.rows(table.aggregate(blank=table.f0.isnull().any()))[0][0]
    ):
        raise unlike  # blank lines, some of which may be no records
    unnamed = [place for place, name in enumerate(layout.names) if is_unnamed(name)]
    needless = _needless(session, table.mutate(row=ibis.row_number()), unnamed)
    names, assumed = named(layout.names, *needless, reading)
    kept = {name: table[f"f{place}"] for place, name in enumerate(names) if name is not None}
    return table.select(**kept), (*found.assumed, *assumed)


def _needless(session: Session, numbered: Any, unnamed: list[int]) -> tuple[set[int], set[int]]:
    """Return which columns without a name count the rows, and which are empty in all of them."""
    counting: set[int] = set()
    empty: set[int] = set()
    for place in unnamed:
        text = numbered[f"f{place}"].fill_null("")
        tests = {
            "from0": (text == numbered.row.cast("string")).all(),
            "from1": (text == (numbered.row + 1).cast("string")).all(),
            "empty": (text.strip() == "").all(),
        }
        from0, from1, blank = session.rows(numbered.aggregate(**tests))[0]
        counting |= {place} if from0 or from1 else set()
        empty |= {place} if blank else set()
    return counting, empty


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
        kind = kind_of_file(at)
        if kind not in (None, PARQUET):
            raise DataError(
                f"{path}: DuckDB counts CSV and Parquet files here, and this is one of "
                f"{kind.name}: use --engine memory, or save it as Parquet"
            )
        return [] if kind is None else [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DataError(f"{missing(path)}: there is no such file: check the path")
    if any(Path(each).suffix.lower() not in _PARQUET for each in found):
        raise UsageError(f"{path}: a pattern must match Parquet files (.parquet, .pq) only")
    return found
