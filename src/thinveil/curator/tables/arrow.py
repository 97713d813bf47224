"""Reading data frames and all else that speaks Arrow (extra: arrow)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from thinveil.curator.tables.coding import IN_UTC, Column
from thinveil.curator.tables.kinds.cells import without_point
from thinveil.curator.tables.kinds.limits import DIFFERENT, LONGEST, Room, check_width
from thinveil.curator.tables.reading import Raw, Reading, leaving_out
from thinveil.curator.tables.text.naming import is_unnamed, named, needless
from thinveil.errors import DataError, MissingExtra, UsageError
from thinveil.language.queries import Codes

_UTC: Final = ("UTC", "ETC/UTC", "Z", "GMT", "+00:00")
"""Zones in which nothing is to be turned."""
TEXTS: Final = ("string", "large_string", "string_view")
"""The types of texts."""
_MOST_SAID: Final = 200
"""So many characters of the name of a type are shown."""


def pyarrow(what: str) -> Any:
    """Import pyarrow where it is needed, not before."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(what, "arrow") from None
    return pa


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
    pa = pyarrow("Reading a data frame")
    if is_pandas:
        return _read_pandas(pa, source, where, reading)
    try:
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(f"{where} holds no table: give one with named columns") from None
    return of_table(pa, table, where, reading)


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

    def read(wanted: Mapping[int, str]) -> list[Growing]:
        return [grown(pa, name, array(place), where) for place, name in wanted.items()]

    raw = columns_of(names, read, len(frame), where, reading)
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


def of_table(pa: Any, table: Any, where: str, reading: Reading) -> Raw:
    """Read an Arrow table."""

    def read(wanted: Mapping[int, str]) -> list[Growing]:
        return [grown(pa, name, table.column(place), where) for place, name in wanted.items()]

    return columns_of(table.column_names, read, len(table), where, reading)


def columns_of(
    names: Sequence[str],
    read: Callable[[Mapping[int, str]], Sequence[Growing]],
    records: int,
    where: str,
    reading: Reading,
) -> Raw:
    """Return the wanted columns; what is left out is not looked at, unless it has no name.

    `read` gets the names of some columns by their places.
    """
    if not names:
        raise DataError(f"{where} is empty: give a table with at least one column")
    check_width(len(names), where)
    unnamed = {place: name for place, name in enumerate(names) if is_unnamed(name) and records}
    found = dict(zip(unnamed, read(unnamed) if unnamed else (), strict=True))
    called, assumed = named(
        names, *needless({at: each.column() for at, each in found.items()}), reading
    )
    places = {name: place for place, name in enumerate(called) if name is not None}
    kept = reading.chosen(list(places), where)
    if not records:
        raise DataError(f"{where}: the table has no records: give at least one row of data")
    said = reading.said_of([name for name in places if name not in kept])
    columns = read({places[name]: name for name in kept})
    zoned = [each.name for each in columns if each.zone and each.zone.upper() not in _UTC]
    if zoned:
        listed = ", ".join(map(repr, zoned))
        said = (*said, f"column{'s' * (len(zoned) > 1)} {listed}: {IN_UTC}")
    return Raw([each.column() for each in columns], (*assumed, *said))


def grown(pa: Any, name: str, array: Any, where: str) -> Growing:
    """Return a column that has all of an array in it."""
    column = Growing(pa, name, array.type, where)
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        column.add(chunk)
    return column


class Growing:
    """A column of distinct texts and an index that grows by parts of an Arrow array.

    Args:
        pa: The library.
        name: The name of the column.
        kind: The type of the array.
        where: What it is a column of, for messages.
        room: What the file may still unpack to; without end where it is in memory already.
    """

    def __init__(self, pa: Any, name: str, kind: Any, where: str, room: Room | None = None) -> None:
        self._pa, self.name, self._where, self._room = pa, name, where, room
        self._kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._places: dict[str | None, int] = {}
        self._parts: list[Codes] = []
        self.zone = getattr(self._kind, "tz", None)
        if not _is_plain(pa, self._kind):
            raise self._odd()

    def _odd(self) -> DataError:
        return DataError(
            f"{self._where}: column {self.name!r} has the type {str(self._kind)[:_MOST_SAID]}, "
            "which is neither a number, a text, a date nor a time of at most microseconds: convert "
            f"it, or leave it out ({leaving_out(self.name)})"
        )

    def add(self, chunk: Any) -> None:
        """Take a part of the array.

        Raises:
            DataError: It holds what no table has, or there is no room for it.
        """
        distinct, index = self._encoded(chunk)
        if index.null_count:
            index = index.fill_null(len(distinct))
        index = index.to_numpy(zero_copy_only=False)
        used = np.flatnonzero(np.bincount(index, minlength=len(distinct) + 1))
        values = distinct.take(self._pa.array(used[used < len(distinct)]))
        texts = self._texts(values)
        if used.size > len(values):
            texts.append(None)
        before = len(self._places)
        known = [self._places.setdefault(text, len(self._places)) for text in texts]
        if self._room is not None and len(self._places) > before:
            self._room.take(DIFFERENT * (len(self._places) - before) + values.nbytes)
        places = np.zeros(len(distinct) + 1, np.int64)
        places[used] = known
        self._parts.append(places[index])

    def _encoded(self, chunk: Any) -> tuple[Any, Any]:
        """Return the distinct values of a part in a plain type, and their places."""
        coded = self._pa.types.is_dictionary(chunk.type)
        try:
            plain = _simplify(self._pa, chunk.dictionary if coded else chunk, self._kind)
        except (self._pa.ArrowException, ValueError):
            raise self._odd() from None
        if coded:
            return plain, chunk.indices
        encoded = plain.dictionary_encode()
        return encoded.dictionary, encoded.indices

    def _texts(self, values: Any) -> list[str | None]:
        """Write values as the texts that a CSV file would hold."""
        if self._pa.types.is_large_string(values.type):
            longest = self._pa.compute.max(self._pa.compute.binary_length(values)).as_py()
            if (longest or 0) > LONGEST:
                raise DataError(
                    f"{self._where}: column {self.name!r} holds a text of more than {LONGEST:,} "
                    f"bytes: shorten it, or leave it out ({leaving_out(self.name)})"
                )
        try:
            return _texts(self._pa, values)
        except (ValueError, OverflowError):  # UnicodeDecodeError is a ValueError
            raise DataError(
                f"{self._where}: column {self.name!r} holds a text that is not UTF-8, or a date or "
                f"time beyond the calendar: correct it, or leave it out ({leaving_out(self.name)})"
            ) from None

    def column(self) -> Column:
        """Return what was taken so far."""
        return _in_order(self.name, list(self._places), np.concatenate(self._parts))


def _is_plain(pa: Any, kind: Any) -> bool:
    """Tell whether values of a type are numbers, texts, dates or times."""
    types = pa.types
    tests = (
        types.is_integer, types.is_decimal, types.is_floating, types.is_null, types.is_boolean,
        types.is_time, types.is_date, types.is_timestamp,
    )  # fmt: skip
    return any(test(kind) for test in tests) or str(kind) in TEXTS


def _simplify(pa: Any, array: Any, kind: Any) -> Any:
    """Return an array of plain values in a type that can be encoded."""
    types = pa.types
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if types.is_null(kind) or types.is_boolean(kind) or types.is_time(kind):
        return array.cast(pa.string())
    if types.is_date(kind):
        return array.cast(pa.date32())
    if types.is_timestamp(kind):
        # Times with a zone become UTC here; nanoseconds that would be lost are refused.
        return array.cast(pa.timestamp("us", kind.tz)).cast(pa.timestamp("us"))
    return array.cast(pa.large_string()) if str(kind) in TEXTS else array


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
