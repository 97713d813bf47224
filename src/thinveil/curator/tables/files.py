"""From a file or a data frame to a coded table.

Every source is read into the same form first (distinct texts and an index), so that a CSV
file, a Parquet file and a data frame with the same content become the same table.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from thinveil.curator.tables.arrow import read_frame, read_parquet
from thinveil.curator.tables.coding import MISSING_TEXTS, Column, encode
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.delimited import Dialect, read_delimited
from thinveil.curator.tables.inferring import infer
from thinveil.errors import DataError, UsageError
from thinveil.language.schema import Schema

_PROBLEMS: Final[Mapping[type[OSError], str]] = {
    FileNotFoundError: "there is no such file: check the path",
    IsADirectoryError: "this is a directory: give the path of a file",
    PermissionError: "no permission to read this file: check its owner",
}
_SHEET: Final = "a spreadsheet"
_SHEETS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how spreadsheets begin
_OTHERS: Final[Mapping[str, str]] = {
    ".xlsx": _SHEET,
    ".xlsm": _SHEET,
    ".xls": _SHEET,
    ".ods": _SHEET,
    ".pkl": "a pickle, which is a program and not opened here",
    ".pickle": "a pickle, which is a program and not opened here",
    ".dta": "a file of Stata",
    ".sav": "a file of SPSS",
    ".sas7bdat": "a file of SAS",
    ".rds": "a file of R",
    ".rdata": "a file of R",
}
"""What is often given and not read, by the ending of its name."""
_SAVED: Final = "save the table as CSV or Parquet where it was made, and give that"


def load(
    source: object,
    schema: Schema | None = None,
    *,
    separator: str | None = None,
    quote: str = '"',
    encoding: str = "utf-8",
    missing: Collection[str] = (),
) -> Dataset:
    """Read a table.

    Args:
        source: The path of a CSV or Parquet file (.parquet, .pq), or a data frame: pandas,
            Polars, pyarrow, or any other object that speaks Arrow.
        schema: What is public about the columns; where it is None, kinds, steps and
            categories are inferred, and the bounds of numbers are taken as not public.
        separator: What stands between two fields of a text file; None finds it out.
        quote: The quotation mark of a text file; empty where there is none.
        encoding: The encoding of a text file.
        missing: Texts that mean a missing value, besides the empty one, NULL and NaN.

    Raises:
        DataError: The table cannot be read or does not fit the schema.
        UsageError: An option makes no sense.
        MissingExtra: The source needs pyarrow, and it is not installed.
    """
    gaps = missing_texts(missing)
    columns = read_columns(source, Dialect(separator, quote, encoding))
    return code(columns, infer(columns, gaps) if schema is None else schema, gaps)


def missing_texts(more: Collection[str]) -> frozenset[str]:
    """Return all texts that mean a missing value."""
    return MISSING_TEXTS | ({more} if isinstance(more, str) else set(more))


def read_columns(source: object, dialect: Dialect) -> list[Column]:
    """Read any source into columns of texts."""
    if not isinstance(source, str | os.PathLike):
        return read_frame(source)
    name = os.fspath(source)
    if not isinstance(name, str) or "\0" in name:
        raise UsageError(f"{name!r} cannot be the path of a file: give a path as text")
    path = Path(name)
    try:
        start = first_bytes(path)
        if path.suffix.lower() in (".parquet", ".pq") or start == b"PAR1":
            return read_parquet(path)
        other = _OTHERS.get(path.suffix.lower())
        if other and (other != _SHEET or start in _SHEETS):  # some programs call texts .xls
            raise DataError(f"{path}: this is {other}: {_SAVED}")
        if start.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zX", b"\x28\xb5\x2f\xfd")):
            raise DataError(f"{path}: this file is compressed: unpack it first")
        return read_delimited(path, dialect)
    except OSError as error:
        what = _PROBLEMS.get(type(error), f"cannot be read ({error.strerror})")
        raise DataError(f"{path}: {what}") from None


def first_bytes(path: Path) -> bytes:
    """Return the four bytes that tell many kinds of files; nothing for a pipe."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(4)


def code(columns: Sequence[Column], schema: Schema, missing: Collection[str]) -> Dataset:
    """Code columns of texts by a schema; columns are matched by name."""
    check_columns([column.name for column in columns], schema)
    by_name = {column.name: column for column in columns}
    codes = np.empty((len(columns[0].index), len(schema)), np.int64, order="F")
    for position, attribute in enumerate(schema):
        codes[:, position] = encode(by_name[attribute.name], attribute, missing)
    codes.flags.writeable = False
    return Dataset(schema, codes)


def check_columns(names: Sequence[str], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema, in any order."""
    listed = ", ".join(map(repr, names[:50]))
    for attribute in schema:
        if attribute.name not in names:
            raise DataError(
                f"the table has no column {attribute.name!r}, which the schema describes; "
                f"its columns are {listed}: correct the schema or the table's header"
            )
    for name in names:
        if name not in schema.names:
            raise DataError(
                f"the table has a column {name!r} that the schema does not describe: add it to "
                "the schema, or remove it from the table"
            )
