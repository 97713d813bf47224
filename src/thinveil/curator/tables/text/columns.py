"""Reading the rows of a text file column by column, with Arrow (extra: arrow).

Only what Arrow reads just as Python's own reader does is read so: every block of the file is looked
at first, and wherever there is doubt, the rows are read one by one instead.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.kinds.limits import DIFFERENT, LONGEST
from thinveil.curator.tables.text.layouts import Layout
from thinveil.curator.tables.text.unpacking import Bytes, unpacked
from thinveil.errors import DataError
from thinveil.language.queries import Codes

WORTHWHILE: Final = 2**21
"""Files of fewer bytes are read sooner than Arrow is imported, or not much later (measured)."""
BLOCK: Final = LONGEST // 2
"""So many bytes are read at once. A row ends in the block after its first at the latest, so that no
line is longer than may be, and no field."""
_WIDEST: Final = 1000
"""In wider tables a block has few rows, and reading by column gains nothing (measured: 3,000)."""
_UTF8: Final = ("utf-8", "utf-8-sig")


class _Doubt(Exception):
    """Arrow may read a file otherwise than is meant."""


def read_by_column(
    path: Path, encoding: str, layout: Layout, above: Sequence[str]
) -> list[Column] | None:
    """Read all columns of a text file; None where its rows must be read one by one.

    Args:
        path: The file.
        encoding: Its encoding.
        layout: How it is laid out.
        above: The lines above the rows of data.
    """
    dialect, width = layout.dialect, len(layout.names)
    marks = dialect.separator + dialect.quote
    if layout.comment or dialect.aligned or dialect.loose or not marks.isascii():
        return None
    if not 1 < width <= _WIDEST:  # of one column, blank lines may be records
        return None
    if path.stat().st_size < WORTHWHILE:
        return None
    try:
        import pyarrow as pa
        import pyarrow.csv
    except ImportError:
        return None
    try:
        with unpacked(path) as content:
            return _read(pa, content, encoding, layout, "".join(above).encode())
    except (_Doubt, DataError, UnicodeError, pa.ArrowException):
        return None


def _read(pa: Any, content: Bytes, encoding: str, layout: Layout, above: bytes) -> list[Column]:
    width, dialect = len(layout.names), layout.dialect
    names, kind = [str(place) for place in range(width)], pa.dictionary(pa.int32(), pa.string())
    parse = pa.csv.ParseOptions(
        delimiter=dialect.separator, quote_char=dialect.quote or False, newlines_in_values=True
    )
    convert = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, kind))
    parts: list[list[Any]] = [[] for _ in names]
    below = _below(_blocks(content, encoding), above)
    for block in _whole_rows(below, dialect.separator.encode(), dialect.quote.encode()):
        if not block.strip(b"\r\n"):
            continue
        if block.startswith(codecs.BOM_UTF8):  # in the middle of a file it is a letter
            raise _Doubt
        size = pa.csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False)
        # The system's pool gives back what is let go; Arrow's own kept 60 MiB more (measured).
        table = pa.csv.read_csv(
            pa.BufferReader(block), size, parse, convert, memory_pool=pa.system_memory_pool()
        )
        for part, column in zip(parts, table.columns, strict=True):
            part += column.chunks
        if content.room is not None:
            content.room.cells(table.num_rows, width)
            content.room.take(DIFFERENT * sum(len(part[-1].dictionary) for part in parts))
    columns = []
    for part in parts:
        columns.append(_column(pa, part, kind))
        part.clear()
    return columns


def _column(pa: Any, parts: Sequence[Any], kind: Any) -> Column:
    """Put the parts of a column together; its texts are in the order of their first row."""
    if not parts:
        raise _Doubt
    parts = pa.chunked_array(parts, kind).unify_dictionaries(pa.system_memory_pool()).chunks
    index: Codes = np.concatenate([_places(part.indices) for part in parts], dtype=np.int64)
    return Column("", parts[-1].dictionary.to_pylist(), index)


def _places(indices: Any) -> Any:
    """Look at whole numbers of Arrow where they are; its own way would import pandas."""
    size = np.dtype(np.int32).itemsize
    return np.frombuffer(
        indices.buffers()[1], np.int32, count=len(indices), offset=indices.offset * size
    )


def _blocks(content: Bytes, encoding: str) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, without a byte order mark."""
    if encoding not in _UTF8:
        decoder = codecs.getincrementaldecoder(encoding)()
        while block := content.block(BLOCK):
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
        return
    if encoding == "utf-8-sig" and content.head.startswith(codecs.BOM_UTF8):
        content.block(len(codecs.BOM_UTF8))
    while block := content.block(BLOCK):
        yield block


def _below(blocks: Iterator[bytes], above: bytes) -> Iterator[bytes]:
    """Pass over the lines above the rows of data."""
    start = b""
    while len(start) < len(above):
        if not (block := next(blocks, b"")):
            break
        start += block
    if not start.startswith(above):
        raise _Doubt
    yield start[len(above) :]
    yield from blocks


def _whole_rows(blocks: Iterator[bytes], separator: bytes, quote: bytes) -> Iterator[bytes]:
    """Yield the same bytes in blocks of whole rows, none of which is in doubt."""
    rest = b""
    for block in blocks:
        if b"\0" in block:
            raise _Doubt
        begun, rest = bool(rest), rest + block
        marks = _marks(rest, quote)
        end = _end_of_rows(rest, marks)
        if begun and block and not end:
            raise _Doubt
        _check_marks(rest[:end], marks[marks < end], separator + quote)
        yield rest[:end]
        rest = rest[end:]
    _check_marks(rest, _marks(rest, quote), separator + quote)
    yield rest


def _marks(data: bytes, quote: bytes) -> Codes:
    """Return where quotation marks are."""
    if not quote or quote not in data:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.frombuffer(data, np.uint8) == ord(quote))


def _end_of_rows(data: bytes, marks: Codes) -> int:
    """Return where the last line ends that ends outside of quotation marks; 0 where none does."""
    end = data.rfind(b"\n") + 1
    while end:
        before = int(np.searchsorted(marks, end))
        if before % 2 == 0:
            return end
        end = data.rfind(b"\n", 0, int(marks[before - 1])) + 1
    return 0


def _check_marks(data: bytes, marks: Codes, ends: bytes) -> None:
    """Raise a doubt unless each quotation mark begins a field, ends one, or is doubled within.

    Every second one closes what the one before it opened then, for Python's reader and for Arrow's.

    Args:
        data: Whole rows.
        marks: Where the marks are.
        ends: What else than the end of a line may stand before an opening and behind a closing
            mark: a separator, or another mark.
    """
    if len(marks) % 2:
        raise _Doubt
    allowed = np.zeros(256, np.bool_)
    allowed[list(b"\r\n" + ends)] = True
    around = np.frombuffer(b"\n" + data + b"\n", np.uint8)  # marks stand one place later in it
    if not (allowed[around[marks[::2]]].all() and allowed[around[marks[1::2] + 2]].all()):
        raise _Doubt
