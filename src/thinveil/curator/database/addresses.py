"""Where a database is: addresses, connections, and which of its tables is meant."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from thinveil.curator.database.engines import BY_SCHEME
from thinveil.curator.database.engines.duckdb import listed, literal, open_duckdb
from thinveil.curator.database.engines.protocol import told
from thinveil.curator.database.engines.spark import Spark
from thinveil.curator.database.parquet_files import WHOLE, check_parquet, parquet_in
from thinveil.curator.database.session import Refused, Session
from thinveil.curator.database.spark.jobs import quiet
from thinveil.curator.database.spark.picking import AS_USUAL, Wish
from thinveil.curator.database.words import (
    Rows,
    cases,
    cast,
    column,
    equal,
    exp,
    is_null,
    negated,
    passing,
    raw,
    row_number,
    text,
)
from thinveil.curator.tables.arrow import pyarrow
from thinveil.curator.tables.delimited import check_rows, found_layout
from thinveil.curator.tables.kinds.registry import first_bytes
from thinveil.curator.tables.reading import Reading
from thinveil.curator.tables.text.naming import is_unnamed, named
from thinveil.errors import DataError, UsageError
from thinveil.passwords import shown

_ADDRESS: Final = re.compile(rf"({'|'.join(BY_SCHEME)})://(.*)", re.I | re.S)
_ENCODINGS: Final = {
    "utf-8": "utf-8",
    "utf-8-sig": "utf-8",
    "iso8859-1": "latin-1",
    "utf-16-le": "utf-16",
}
"""What DuckDB calls the encodings that it reads as Python does."""
_PACKINGS: Final = (None, "gzip", "zstd")


def connected(
    address: str,
    table: str | None,
    reading: Reading,
    wish: Wish = AS_USUAL,
    say: Callable[[str], None] = quiet,
) -> tuple[Session, Rows, tuple[str, ...]]:
    """Open a database: return the session, the table that is meant, and what was assumed.

    The arguments are those of `open_database`; a table's name may be left out where there is one.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        if table is not None:
            raise UsageError("--table: only a database has tables by name")
        return _files(address, reading)
    where = shown(address)
    engine = BY_SCHEME[match[1].lower()].connect(address, match[2], where)
    engine.say = say
    if isinstance(engine, Spark):
        engine.wish = wish
    session = Session(engine)
    with session.closed_on_failure():
        return session, session.engine.table(table, where), ()


def is_file(address: str) -> bool:
    """Tell whether an address means files that DuckDB reads where they are."""
    return _ADDRESS.fullmatch(address) is None


def _files(path: str, reading: Reading) -> tuple[Session, Rows, tuple[str, ...]]:
    """Open Parquet files or a text file with DuckDB, which reads them where they are."""
    files = parquet_in(path)
    with told(f"{path}: cannot be read", WHOLE):
        check_parquet(files)
    files = [str(Path(each).absolute()) for each in files]
    session = Session(open_duckdb(files=files or [str(Path(path).absolute())]))
    with session.closed_on_failure():
        if not files:
            return session, *_text(session, Path(path), reading)
        with told(f"{path}: cannot be read", WHOLE):
            these = listed([*map(literal, files)])
            rows = session.engine.described(raw(f"read_parquet({these}, union_by_name = false)"))
            names = [*(own := _own_names(files[0])), *rows.columns[len(own) :]]
            plain = names == [*rows.columns] and not any(map(is_unnamed, names))
            # DuckDB finds columns by their names, and leaves out what later files have more
            alike = sorted if plain else list
            if any(alike(_own_names(each)) != alike(own) for each in files[1:]):
                raise DataError(f"{path}: cannot be read: {WHOLE}")
            if plain:
                return session, rows, ()
            return session, *_without_needless(session, rows, names, these, reading)


def _own_names(path: str) -> list[str]:
    """Return what the columns of a Parquet file are called in it: DuckDB changes some names."""
    names: list[str] = pyarrow("Reading Parquet").parquet.read_schema(path).names
    return names


def _without_needless(
    session: Session, rows: Rows, names: Sequence[str], files: str, reading: Reading
) -> tuple[Rows, tuple[str, ...]]:
    """Leave columns without a name out that only count the rows of their file, or are empty.

    `names` are those in the files.
    """
    unnamed = [place for place, name in enumerate(names) if is_unnamed(name)]
    numbered = raw(f"read_parquet({files}, union_by_name = false, file_row_number = true)")
    texts = {f"f{place}": cast(column(rows.columns[place]), "text") for place in unnamed}
    counted = Rows(numbered, ()).select({"row": column("file_row_number"), **texts})
    found = _needless(session, counted, unnamed)
    called, assumed = named(names, *found, reading)
    return _renamed(rows, rows.columns, called), (*assumed,)


def _renamed(rows: Rows, names: Sequence[str], called: Sequence[str | None]) -> Rows:
    """Return the columns that have a name now, under it; DuckDB must tell the names apart."""
    kept = {new: old for new, old in zip(called, names, strict=True) if new is not None}
    known: dict[bytes, str] = {}
    for name in kept:
        other = known.setdefault(name.encode().lower(), name)
        if other != name:
            raise DataError(
                f"columns {other!r} and {name!r} differ only by case, and DuckDB takes them for "
                "one: rename one, or read the file into memory (--engine memory)"
            )
    kinds = dict(zip(rows.columns, rows.kinds, strict=True))
    chosen = rows.select({new: column(old) for new, old in kept.items()})
    return replace(chosen, kinds=tuple(kinds[old] for old in kept.values()))


def unread(path: str, reading: Reading, refused: Refused) -> DataError:
    """Say why DuckDB could not read a file to its end: with the line, where it is a text."""
    if not is_file(path):
        return refused
    if parquet_in(path):
        return DataError(f"{path}: cannot be read to its end: {WHOLE}")
    check_rows(Path(path), reading)
    return DataError(f"{refused}; or read it into memory (--engine memory)")


def _text(session: Session, path: Path, reading: Reading) -> tuple[Rows, tuple[str, ...]]:
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
    fields = [f"f{place}" for place, _ in enumerate(layout.names)]
    settings = {
        "header": "false",
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"'{each}': 'VARCHAR'" for each in fields) + "}",
        "skip": str(found.above),
        "delim": _quoted(dialect.separator),
        "quote": _quoted(dialect.quote),
        "escape": _quoted(dialect.quote),
        "encoding": _quoted(encoding),
        "compression": _quoted(packing or "none"),
        "allow_quoted_nulls": "false",
    }
    how = ", ".join(f"{name} = {value}" for name, value in settings.items())
    source = raw(f"read_csv({_quoted(literal(str(path.absolute())))}, {how})")
    rows = Rows(source, tuple(fields), (exp.DataType.build("text"),) * len(fields))
    if len(fields) == 1 and session.rows(rows.select({"n": passing(is_null(column("f0")))}))[0][0]:
        raise unlike  # blank lines, some of which may be no records
    unnamed = [place for place, name in enumerate(layout.names) if is_unnamed(name)]
    texts = {fields[place]: column(fields[place]) for place in unnamed}
    needless = _needless(session, rows.select({"row": row_number(), **texts}), unnamed)
    names, assumed = named(layout.names, *needless, reading)
    return _renamed(rows, fields, names), (*found.assumed, *assumed)


def _quoted(word: str) -> str:
    """Return a text as DuckDB reads it."""
    return "'" + word.replace("'", "''") + "'"


def _needless(session: Session, numbered: Rows, unnamed: list[int]) -> tuple[set[int], set[int]]:
    """Return which columns without a name count the rows, and which are empty in all of them."""
    counting: set[int] = set()
    empty: set[int] = set()
    for place in unnamed:
        field, row = column(f"f{place}"), column("row")
        content = cases((is_null(field), text("")), otherwise=field)
        tests = {
            "from0": equal(content, cast(row, "text")),
            "from1": equal(content, cast(exp.paren(row + 1), "text")),
            "empty": equal(exp.Trim(this=content), text("")),
        }
        failing = {name: passing(negated(test)) for name, test in tests.items()}
        from0, from1, blank = session.rows(numbered.select(failing))[0]
        counting |= set() if from0 and from1 else {place}
        empty |= set() if blank else {place}
    return counting, empty
