"""Reading files of columns: Parquet and Arrow (extra: arrow), a part in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from thinveil.curator.tables.arrow import TEXTS, Growing, columns_of, of_table, pyarrow
from thinveil.curator.tables.kinds import arrow_buffers, parquet_pages
from thinveil.curator.tables.kinds.limits import CELL, Room, too_much
from thinveil.curator.tables.kinds.parquet_pages import Pages, pages_of
from thinveil.curator.tables.reading import Raw, Reading
from thinveil.errors import DataError

_ROWS: Final = 2**17
"""So many rows are read at once, where they are not wide."""
_PART: Final = 8
"""Rows that are read at once may take one in so many of all bytes."""
_WIDEST: Final = 32
"""The bytes of the widest number, a decimal of 256 bits."""
_FOOTER: Final = 64
"""A Parquet file's description may take so many times its bytes once it is read (measured: 45)."""
_FIRST: Final = b"FEA1"  # how files of the first version of Feather begin


def read_parquet(path: Path, reading: Reading) -> Raw:
    """Read a Parquet file."""
    pa = pyarrow("Reading Parquet")
    with path.open("rb") as file:
        source = Parquet(pa, file, str(path))
        return columns_of(source.names, source.read, source.records, str(path), reading)


class Parquet:
    """A Parquet file, open to be read; the places of `plain` columns have no inner ones.

    Args:
        pa: The library.
        file: The file.
        where: What it is called.

    Raises:
        DataError: It is none, or its description alone unpacks to too much.
    """

    def __init__(self, pa: Any, file: IO[bytes], where: str) -> None:
        self._pa, self._file, self._where = pa, file, where
        self._damaged = DataError(f"{where}: not a Parquet file, or a damaged one")
        self._room = Room(where)
        end = file.seek(0, 2)
        file.seek(max(end - 8, 0))
        footer = int.from_bytes(file.read(4), "little")
        if footer <= end and footer * _FOOTER > self._room.most:
            raise too_much(where, self._room.most)
        with self._whole():
            found = pa.parquet.ParquetFile(file)
            self._schema, self._metadata = found.schema_arrow, found.metadata
            self.names: list[str] = self._schema.names
            leaves = [_leaves(pa, each) for each in self._schema.types]
            groups = range(self._metadata.num_row_groups)
            self.records = sum(self._metadata.row_group(each).num_rows for each in groups)
        if sum(leaves) != self._metadata.num_columns or self.records != self._metadata.num_rows:
            raise self._damaged
        self._leaf = [sum(leaves[:place]) for place in range(len(leaves))]
        self.plain = [place for place, each in enumerate(leaves) if each == 1]

    def is_text(self, place: int) -> bool:
        """Tell whether a column holds texts."""
        return str(self._schema.types[place]) in TEXTS

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Say that a file is damaged, instead of what Arrow says."""
        try:
            yield
        except (self._pa.ArrowException, ValueError, OSError, OverflowError, MemoryError):
            raise self._damaged from None
        except parquet_pages.Malformed:
            raise self._damaged from None

    def pages(self, places: list[int]) -> list[Pages]:
        """Return what the pages of columns without inner ones unpack to."""
        with self._whole():
            return pages_of(self._file, self._metadata, [self._leaf[each] for each in places])

    def read(self, wanted: Mapping[int, str]) -> list[Growing]:
        """Read columns, whose names are given by their places."""
        types = self._schema.types
        columns = [
            Growing(self._pa, name, types[place], self._where, self._room)
            for place, name in wanted.items()
        ]
        most = self._room.most
        if self.records * len(columns) * CELL > most:
            raise too_much(self._where, most)
        pages = self.pages(list(wanted))
        for each in pages:
            self._room.take(each.unpacked)
        rows = 0
        for batch in self._batches(list(wanted), pages):
            rows += batch.num_rows
            self._room.cells(batch.num_rows, len(columns))
            for column, array in zip(columns, batch.columns, strict=True):
                column.add(array)
        if rows != self.records:
            raise self._damaged
        return columns

    def texts(self, place: int) -> tuple[int, int]:
        """Return how many bytes the longest text of a column has, and all of its rows together."""
        compute = self._pa.compute
        longest = total = 0
        for batch in self._batches([place], self.pages([place])):
            array = batch.column(0)
            coded = self._pa.types.is_dictionary(array.type)
            lengths = compute.binary_length(array.dictionary if coded else array)
            longest = max(longest, compute.max(lengths).as_py() or 0)
            lengths = lengths.take(array.indices) if coded else lengths
            total += compute.sum(lengths.cast("int64")).as_py() or 0
        return longest, total

    def _batches(self, places: list[int], pages: list[Pages]) -> Iterator[Any]:
        """Yield the rows of columns, so many at once as fit; texts as they are encoded."""
        leaves = [self._leaf[place] for place in places]
        rows = self._room.most // _PART // (len(places) * _WIDEST)
        texts = [each for each, place in zip(pages, places, strict=True) if self.is_text(place)]
        longest = max((each.largest for each in texts if each.grows), default=0)
        rows = max(1, min(_ROWS, rows, self._room.most // _PART // max(longest, 1)))
        with self._whole():
            paths = [
                self._metadata.schema.column(leaf).path
                for leaf, each in zip(leaves, pages, strict=True)
                if each.by_place
            ]
            source = self._pa.parquet.ParquetFile(
                self._file, metadata=self._metadata, read_dictionary=paths
            )
            groups = list(range(self._metadata.num_row_groups))
            batches = iter(source.reader.iter_batches(rows, groups, leaves, False))
        while True:
            with self._whole():
                if (batch := next(batches, None)) is None:
                    return
            yield batch


def _leaves(pa: Any, kind: Any) -> int:
    """Return how many columns of a Parquet file a type takes."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(pa, kind.field(place).type) for place in range(kind.num_fields))


def read_arrow(path: Path, reading: Reading) -> Raw:
    """Read a file of Arrow (.arrow, .feather)."""
    pa = pyarrow("Reading Arrow files")
    damaged = DataError(f"{path}: not a file of Arrow, or a damaged one")
    stray = (pa.ArrowException, ValueError, OSError, MemoryError, arrow_buffers.Malformed)
    room = Room(path)
    with path.open("rb") as file:
        try:
            if file.read(len(_FIRST)) == _FIRST:
                file.seek(0)
                table = pa.feather.read_table(file)
                table.validate(full=True)
                return of_table(pa, table, str(path), reading)
            records = 0
            for rows, size in arrow_buffers.sizes(file):
                records += rows
                room.take(size)
            source = pa.ipc.open_file(file)
            schema, names = source.schema, source.schema.names
        except stray:
            raise damaged from None

        def batch(number: int) -> Any:
            try:
                found = source.get_batch(number)
                room.cells(found.num_rows, 1)  # columns without content may have any length
                found.validate(full=True)
            except stray:
                raise damaged from None
            return found

        def read(wanted: Mapping[int, str]) -> list[Growing]:
            columns = [
                Growing(pa, name, schema.types[place], str(path), room)
                for place, name in wanted.items()
            ]
            if records * len(columns) * CELL > room.most:
                raise too_much(path, room.most)
            for number in range(source.num_record_batches):
                found = batch(number)
                room.cells(found.num_rows, len(columns))
                for column, place in zip(columns, wanted, strict=True):
                    column.add(found.column(place))
            return columns

        return columns_of(names, read, records, str(path), reading)
