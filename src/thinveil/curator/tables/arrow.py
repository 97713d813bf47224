"""Reading Parquet files, data frames and all else that speaks Arrow (extra: arrow)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.curator.tables.coding import IN_UTC, Column
from thinveil.curator.tables.kinds.cells import without_point
from thinveil.curator.tables.reading import Raw, Reading, leaving_out
from thinveil.curator.tables.text.naming import is_unnamed, named, needless
from thinveil.errors import DataError, MissingExtra, UsageError
from thinveil.language.queries import Codes

_UTC: Final = ("UTC", "ETC/UTC", "Z", "GMT", "+00:00")
"""Zones in which nothing is to be turned."""


def _pyarrow(what: str) -> Any:
    """Import pyarrow where it is needed, not before."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(what, "arrow") from None
    return pyarrow


def read_parquet(path: Path, reading: Reading) -> Raw:
    """Read a Parquet file."""
    pa = _pyarrow("Reading Parquet")
    with path.open("rb") as file:
        try:
            table = pa.parquet.ParquetFile(file).read()
        except (pa.ArrowException, ValueError, OSError):
            raise DataError(f"{path}: not a Parquet file, or a damaged one") from None
    return _of_table(pa, table, str(path), reading)


def read_arrow(path: Path, reading: Reading) -> Raw:
    """Read a file of Arrow (.arrow, .feather)."""
    pa = _pyarrow("Reading Arrow files")
    with path.open("rb") as file:
        try:
            table = pa.feather.read_table(file)
        except (pa.ArrowException, ValueError, OSError):
            raise DataError(f"{path}: not a file of Arrow, or a damaged one") from None
    return _of_table(pa, table, str(path), reading)


def read_frame(source: object, reading: Reading) -> Raw:
    """Read a data frame, an Arrow table, or another object that exports Arrow data.

    The index of a pandas data frame is not a column, and that is said where it does not only count
    the rows; use reset_index() to make it one.
    """
    where = f"the {type(source).__name__}"
    is_pandas = type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "iloc")
    speaks = is_pandas or hasattr(source, "__arrow_c_stream__")
    if not speaks and not hasattr(source, "__arrow_c_array__"):
        raise UsageError(
            f"cannot read {where}: give the path of a file, or a data frame "
            "(pandas, Polars, pyarrow or any other that speaks Arrow)"
        )
    pa = _pyarrow("Reading a data frame")
    if is_pandas:
        return _read_pandas(pa, source, where, reading)
    try:
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(f"{where} holds no table: give one with named columns") from None
    return _of_table(pa, table, where, reading)


def _read_pandas(pa: Any, frame: Any, where: str, reading: Reading) -> Raw:
    if frame.ndim != 2:
        raise UsageError(f"cannot read {where}: use to_frame() to make it a data frame")
    names = [str(name) for name in frame.columns]

    def array(place: int) -> Any:
        try:
            return pa.array(frame.iloc[:, place], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError(
                f"{where}: column {names[place]!r} mixes values of several kinds, or of one that "
                "Arrow does not know: turn it into numbers or texts first, such as with "
                f"astype(str), or leave it out ({leaving_out(names[place])})"
            ) from None

    raw = _columns(pa, names, array, len(frame), where, reading)
    return Raw(raw.columns, (*_said_of_index(frame.index), *raw.assumed))


def _said_of_index(index: Any) -> tuple[str, ...]:
    """Say that an index is left out, unless it only counts the rows or a part of them."""
    names = [repr(str(name)) for name in index.names if name is not None]
    if not names and index.dtype.kind in "iu":
        steps = np.diff(np.asarray(index))
        if (steps == 1).all():
            return ()
    which = f" {', '.join(names)}" if names else ""
    return (f"the index{which} of the data frame is left out (reset_index() makes it a column)",)


def _of_table(pa: Any, table: Any, where: str, reading: Reading) -> Raw:
    return _columns(pa, table.column_names, table.column, len(table), where, reading)


def _columns(
    pa: Any,
    names: Sequence[str],
    array: Callable[[int], Any],
    records: int,
    where: str,
    reading: Reading,
) -> Raw:
    """Return the wanted columns; what is left out is not looked at, unless it has no name."""
    if not names:
        raise DataError(f"{where} is empty: give a table with at least one column")
    unnamed = {
        place: _column(pa, name, array(place), where)
        for place, name in enumerate(names)
        if is_unnamed(name) and records
    }
    called, assumed = named(names, *needless(unnamed), reading)
    places = {name: place for place, name in enumerate(called) if name is not None}
    kept = reading.chosen(list(places), where)
    if not records:
        raise DataError(f"{where}: the table has no records: give at least one row of data")
    said = reading.said_of([name for name in places if name not in kept])
    columns, zoned = [], []
    for name in kept:
        values = array(places[name])
        columns.append(_column(pa, name, values, where))
        zone = getattr(values.type, "tz", None)
        zoned += [name] if zone and zone.upper() not in _UTC else []
    if zoned:
        names = ", ".join(map(repr, zoned))
        said = (*said, f"column{'s' * (len(zoned) > 1)} {names}: {IN_UTC}")
    return Raw(columns, (*assumed, *said))


def _column(pa: Any, name: str, array: Any, where: str) -> Column:
    """Turn one Arrow array into distinct texts and an index."""
    kind = array.type
    coded = pa.types.is_dictionary(kind)
    if coded:
        kind = kind.value_type
    places: dict[str | None, int] = {}
    parts: list[Codes] = []
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        try:
            plain = _simplify(pa, chunk.dictionary if coded else chunk, kind)
        except (pa.ArrowException, ValueError):
            plain = None
        if plain is None:
            raise DataError(
                f"{where}: column {name!r} has the type {kind}, which is neither a number, a "
                "text, a date nor a time of at most microseconds: convert it, or leave it out "
                f"({leaving_out(name)})"
            )
        if coded:
            distinct, index = plain, chunk.indices
        else:
            encoded = plain.dictionary_encode()
            distinct, index = encoded.dictionary, encoded.indices
        try:
            texts = _texts(pa, distinct)
        except (ValueError, OverflowError):  # UnicodeDecodeError is a ValueError
            raise DataError(
                f"{where}: column {name!r} holds a text that is not UTF-8, or a date or time "
                f"beyond the calendar: correct it, or leave it out ({leaving_out(name)})"
            ) from None
        if index.null_count:
            index = index.fill_null(len(texts))
            texts.append(None)
        known = [places.setdefault(text, len(places)) for text in texts]
        parts.append(np.array(known, np.int64)[index.to_numpy(zero_copy_only=False)])
    return _in_order(name, list(places), np.concatenate(parts))


def _simplify(pa: Any, array: Any, kind: Any) -> Any:
    """Return the array in a type that can be encoded, or None where it is no plain value."""
    types = pa.types
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if types.is_integer(kind) or types.is_decimal(kind) or types.is_floating(kind):
        return array
    if types.is_null(kind) or types.is_boolean(kind) or types.is_time(kind):
        return array.cast(pa.string())
    if types.is_date(kind):
        return array.cast(pa.date32())
    if types.is_timestamp(kind):
        # Times with a zone become UTC here; nanoseconds that would be lost are refused.
        return array.cast(pa.timestamp("us", kind.tz)).cast(pa.timestamp("us"))
    if str(kind) in ("string", "large_string", "string_view"):
        return array.cast(pa.large_string())
    return None


def _texts(pa: Any, distinct: Any) -> list[str | None]:
    """Write distinct values as the texts that a CSV file would hold."""
    kind = distinct.type
    if pa.types.is_float32(kind):
        # Python's floats are wider and would show digits that were never there.
        values = list(distinct.to_numpy(zero_copy_only=False))
    else:
        values = distinct.to_pylist()
    write: Callable[[Any], str] = str
    if pa.types.is_floating(kind):
        write = without_point
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        write = operator.methodcaller("isoformat")
    return [None if value is None else write(value) for value in values]


def _in_order(name: str, texts: list[str | None], index: Codes) -> Column:
    """Return a column whose texts stand in the order of their first row, the unused left out."""
    used, first, place = np.unique(index, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Column(name, [texts[at] for at in used[order].tolist()], rank[place])
