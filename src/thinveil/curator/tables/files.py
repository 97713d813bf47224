"""From a file or a data frame to a coded table.

Every source is read into the same form first (distinct texts and an index), so that a CSV
file, a Parquet file and a data frame with the same content become the same table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.curator.tables.arrow import read_frame
from thinveil.curator.tables.coding import Column, encode
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.delimited import read_delimited
from thinveil.curator.tables.inferring import infer
from thinveil.curator.tables.kinds.registry import kind_of_file
from thinveil.curator.tables.number_grids import on_steps
from thinveil.curator.tables.reading import (
    NO_REMARKS,
    READING,
    Raw,
    Reading,
    Remarks,
    leaving_out,
)
from thinveil.errors import DataError, UsageError
from thinveil.language.schema import Schema
from thinveil.passwords import missing, shown

_PROBLEMS: Final[Mapping[type[OSError], str]] = {
    FileNotFoundError: "there is no such file: check the path",
    IsADirectoryError: "this is a directory: give the path of a file",
    PermissionError: "no permission to read this file: check its owner",
}


def load(source: object, schema: Schema | None = None, **how: Any) -> Dataset:
    """Read a table.

    Args:
        source: The path of a file (text, Parquet, Arrow, a spreadsheet, Stata, SPSS, SAS), or a
            data frame: pandas, Polars, pyarrow, or any other object that speaks Arrow.
        schema: What is public about the columns; where it is None, kinds, steps and
            categories are inferred, and the bounds of numbers are taken as not public.
        **how: How it is read, the fields of `Reading`: `separator`, `missing`, `drop` and more.

    What was assumed about the file is in the `remarks` of what is returned. Options that it names
    are keywords here: `--keep-unnamed` is `keep_unnamed=True`.

    Raises:
        DataError: The table cannot be read or does not fit the schema.
        UsageError: An option makes no sense.
        MissingExtra: The source needs a library that is not installed.
    """
    return load_as(source, schema, reading_of(how))


def load_as(source: object, schema: Schema | None, reading: Reading) -> Dataset:
    """Read a table as is said in one value; a schema may describe more than is wanted of it."""
    raw = read_columns(source, reading)
    names = [column.name for column in raw.columns]
    for name in reading.steps:
        if name not in names:
            listed = ", ".join(map(repr, names[:50]))
            raise UsageError(f"--precision: there is no column {name!r}; the columns are {listed}")
    remarks = Remarks(raw.assumed)
    if schema is None:
        inferred = infer(raw.columns, reading)
        schema = inferred.schema
        remarks = remarks.and_also(inferred.remarks(len(raw.columns[0].index)))
    else:
        schema, assumed = on_steps(schema, reading.steps)
        remarks = remarks.and_also(Remarks(assumed))
    return code(raw.columns, reading.described(schema), reading, remarks)


def reading_of(how: Mapping[str, Any]) -> Reading:
    """Return how a table is to be read, from keywords of Python."""
    if unknown := sorted(set(how) - set(READING)):
        known = ", ".join(READING)
        raise UsageError(f"a table is not read by {unknown[0]!r}; what can be said is {known}")
    return Reading(**how)


def read_columns(source: object, reading: Reading) -> Raw:
    """Read the wanted columns of any source as texts."""
    if not isinstance(source, str | os.PathLike):
        return read_frame(source, reading)
    name = os.fspath(source)
    if not isinstance(name, str) or "\0" in name:
        raise UsageError(f"{shown(str(name))!r} cannot be the path of a file: give a path as text")
    path = Path(name)
    try:
        kind = kind_of_file(path)
        return read_delimited(path, reading) if kind is None else kind.read(path, reading)
    except MemoryError:
        raise DataError(
            f"{missing(path)}: there is not enough memory to read it: give a part of it, or let "
            "DuckDB count where it lies (--engine duckdb)"
        ) from None
    except OSError as error:
        what = _PROBLEMS.get(type(error), f"cannot be read ({error.strerror})")
        raise DataError(f"{missing(path)}: {what}") from None


def code(
    columns: Sequence[Column],
    schema: Schema,
    reading: Reading,
    remarks: Remarks = NO_REMARKS,
) -> Dataset:
    """Code columns of texts by a schema; columns are matched by name."""
    check_columns([column.name for column in columns], schema)
    by_name = {column.name: column for column in columns}
    codes = np.empty((len(columns[0].index), len(schema)), np.int64, order="F")
    for position, attribute in enumerate(schema):
        codes[:, position] = encode(by_name[attribute.name], attribute, reading)
    codes.flags.writeable = False
    return Dataset(schema, codes, remarks)


def check_columns(names: Sequence[str], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema, in any order."""
    listed = ", ".join(map(repr, names[:50]))
    there, described = set(names), set(schema.names)
    for attribute in schema:
        if attribute.name not in there:
            raise DataError(
                f"the table has no column {attribute.name!r}, which the schema describes; "
                f"its columns are {listed}: correct the schema or the table's header"
            )
    for name in names:
        if name not in described:
            raise DataError(
                f"the table has a column {name!r} that the schema does not describe: add it to "
                f"the schema, or leave it out ({leaving_out(name)})"
            )
