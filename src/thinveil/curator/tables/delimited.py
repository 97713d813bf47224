"""Reading CSV and its relatives, a few rows in memory at a time."""

from __future__ import annotations

import codecs
import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Final

import numpy as np

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.kinds.limits import DIFFERENT, LONGEST, Room, check_width
from thinveil.curator.tables.kinds.registry import begun_as
from thinveil.curator.tables.reading import Raw, Reading, leaving_out
from thinveil.curator.tables.text.columns import read_by_column
from thinveil.curator.tables.text.layouts import Layout, layout_of
from thinveil.curator.tables.text.naming import is_unnamed, named, needless
from thinveil.curator.tables.text.unpacking import unpacked
from thinveil.errors import DataError
from thinveil.language.queries import Codes
from thinveil.language.texts import many

_SAMPLE_LINES: Final = 1000
_SAMPLE_CHARACTERS: Final = 1_000_000
_CHUNK_CELLS: Final = 400_000
_UTF8: Final = ("utf-8", "utf-8-sig")


def read_delimited(path: Path, reading: Reading) -> Raw:
    """Read a text file."""
    number = 0
    while True:
        with unpacked(path) as content:
            if content.packing and (kind := begun_as(content.head)):
                raise DataError(
                    f"{path}: this is a packed file of {kind.name}: unpack it, and give that"
                )
            tried = _encodings(reading) or content.encodings()
            encoding, again = tried[number], content.again and number + 1 < len(tried)
            quick = partial(read_by_column, path, encoding) if content.again else None
            try:
                raw = read_text(content.text(encoding), path, reading, content.room, quick)
            except UnicodeError:
                if not again:
                    raise _encoded_otherwise(path, encoding) from None
                number += 1
                continue
        said = _said(path, encoding, reading)
        return Raw(raw.columns, (*said, *raw.assumed)).only(reading, str(path))


@dataclass(frozen=True, slots=True)
class FoundLayout:
    """What the first lines of a text file show to others that read it.

    Args:
        layout: How it is laid out.
        encoding: Its encoding.
        packing: How it is compressed; None where it is not.
        assumed: What was assumed about all that.
        above: How many lines stand above the rows of data; None where a quotation mark that is
            not closed leaves open where they begin.
    """

    layout: Layout
    encoding: str
    packing: str | None
    assumed: tuple[str, ...]
    above: int | None


def found_layout(path: Path, reading: Reading) -> FoundLayout:
    """Find out how a text file is laid out."""
    with unpacked(path) as content:
        encoding = (_encodings(reading) or content.encodings())[0]
        with _decoding(path, encoding):
            sample = _sample(content.text(encoding))
        layout = _layout(sample, path, reading)
    above, quote = sample[: layout.first - 1], layout.dialect.quote
    even = not quote or all(line.count(quote) % 2 == 0 for line in above)
    assumed = (*_said(path, encoding, reading), *layout.assumed)
    return FoundLayout(layout, encoding, content.packing, assumed, len(above) if even else None)


def check_rows(path: Path, reading: Reading) -> None:
    """Go through all rows of a text file that somebody else could not read.

    Raises:
        DataError: Something is amiss in one of them; the message names its line.
    """
    found = found_layout(path, reading)
    with unpacked(path, passing=True) as content, _decoding(path, found.encoding):
        lines = islice(content.text(found.encoding), found.layout.first - 1, None)
        for _ in Rows(lines, found.layout, path):
            pass


@contextmanager
def _decoding(path: Path, encoding: str) -> Iterator[None]:
    """Say where a text is not in its encoding."""
    try:
        yield
    except UnicodeError:
        raise _encoded_otherwise(path, encoding) from None


def _encoded_otherwise(path: Path, encoding: str) -> DataError:
    return DataError(
        f"{path}: {_undecodable(path, encoding)}: name the file's encoding, such as --encoding "
        "latin-1"
    )


def _encodings(reading: Reading) -> tuple[str, ...]:
    """Return the given encoding; a byte order mark of UTF-8 is skipped."""
    if reading.encoding is None:
        return ()
    known = codecs.lookup(reading.encoding).name
    return ("utf-8-sig" if known == "utf-8" else reading.encoding,)


def _said(path: Path, encoding: str, reading: Reading) -> tuple[str, ...]:
    """Say which encoding was assumed, where the file does not name it by a byte order mark."""
    if reading.encoding or encoding in (*_UTF8, "utf-16", "utf-32"):
        return ()
    why = "half of its first bytes are NUL"
    if not encoding.startswith("utf"):
        why = _undecodable(path, "utf-8")
    return (f"{why}, so the file is read as {encoding} (--encoding names another)",)


def _undecodable(path: Path, encoding: str) -> str:
    """Say where the bytes are that cannot be read."""
    if encoding not in _UTF8:
        return f"the file is not {encoding} text"
    if path.is_file():
        with unpacked(path, passing=True) as content:
            for number, line in enumerate(content.lines(), start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return f"line {number} is not UTF-8 text"
    return "the file is not UTF-8 text"


def _sample(file: Iterator[str]) -> list[str]:
    """Take the first lines of a file, which may be a pipe and cannot be rewound."""
    sample, size = [], 0
    for line in islice(file, _SAMPLE_LINES):
        sample.append(line)
        size += len(line)
        if size > _SAMPLE_CHARACTERS:
            break
    return sample


def _layout(sample: list[str], path: Path, reading: Reading) -> Layout:
    cut = len(sample) >= _SAMPLE_LINES or sum(map(len, sample)) > _SAMPLE_CHARACTERS
    for _ in _lines(sample, path, 1):
        pass  # refuses what is no text
    layout = layout_of(sample, reading, str(path), cut=cut)
    check_width(len(layout.names), path)
    return layout


def read_text(
    file: Iterator[str],
    path: Path,
    reading: Reading,
    room: Room | None = None,
    quick: Callable[[Layout, Sequence[str]], Sequence[Column] | None] | None = None,
) -> Raw:
    """Read the lines of a text, all columns of it; a spreadsheet is read as such lines, too.

    Args:
        file: The lines.
        path: What it is called.
        reading: What is known.
        room: What it may still unpack to; without end where it is not compressed.
        quick: A quicker way to the columns, given the layout and the lines above the rows, which
            returns None where it does not lead there.
    """
    sample = _sample(file)
    layout = _layout(sample, path, reading)
    if quick and (found := quick(layout, sample[: layout.first - 1])):
        return _named(found, layout, reading)
    rows = Rows(chain(sample[layout.first - 1 :], file), layout, path)
    columns = _read(rows, len(layout.names), path, room)
    raw = _named(columns, layout, reading)
    return Raw(raw.columns, (*raw.assumed, *_blank(rows.blank)))


def _blank(lines: int) -> tuple[str, ...]:
    """Say that blank lines are records."""
    if not lines:
        return ()
    verb, what = ("is", "a missing value") if lines == 1 else ("are", "missing values")
    return (
        f"{many(lines, 'blank line')} above the last value {verb} read as {what}: take "
        f"{'it' if lines == 1 else 'them'} out where no record is meant",
    )


def _named(columns: Sequence[Column], layout: Layout, reading: Reading) -> Raw:
    """Give columns their names, and leave out those that only count rows or are empty."""
    found = needless({at: columns[at] for at, name in enumerate(layout.names) if is_unnamed(name)})
    names, assumed = named(layout.names, *found, reading)
    kept = [
        Column(name, column.texts, column.index)
        for name, column in zip(names, columns, strict=True)
        if name is not None
    ]
    return Raw(kept, (*layout.assumed, *assumed))


class Rows:
    """The rows of data of a file.

    `blank` counts the blank lines that were missing values of an only column.
    """

    def __init__(self, lines: Iterable[str], layout: Layout, path: Path) -> None:
        self._layout, self._path = layout, path
        self._passed, self._within = layout.first - 1, False
        self.blank = 0
        plain = _lines(lines, path, layout.first)
        text = self._uncommented(plain, layout.comment) if layout.comment else plain
        self._reader = layout.dialect.reader(text, strict=True)

    def _uncommented(self, lines: Iterator[str], mark: str) -> Iterator[str]:
        """Pass over comments, but not over a line inside of a quoted field."""
        for line in lines:
            if not self._within and line.startswith(mark):
                self._passed += 1
                continue
            self._within = True
            yield line

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the rows; blank lines are skipped, but between values of an only column."""
        width, reader, read, blank = len(self._layout.names), self._reader, 0, 0
        try:
            for row in reader:
                if len(row) == width:
                    if blank:
                        yield from ([""] for _ in range(blank))
                        self.blank, blank = self.blank + blank, 0
                    yield row
                elif not row or (width > 1 and len(row) == 1 and row[0].isspace()):
                    blank += width == 1
                else:
                    raise self._ragged(self._passed + read + 1, len(row), width)
                read, self._within = reader.line_num, False
        except csv.Error:
            raise DataError(
                f"{self._path}: the row that starts on line {self._passed + read + 1} opens a "
                "quotation mark and does not close it, or closes it in the middle of a field: "
                "correct it, or choose another quotation mark (--quote; empty for none)"
            ) from None

    def _ragged(self, line: int, fields: int, width: int) -> DataError:
        remedy = "name the right --separator, --quote, --comment or --header"
        whose = "the header has" if self._layout.plain and self._layout.header else "most rows have"
        return DataError(
            f"{self._path}: the row that starts on line {line} has {fields} "
            f"field{'' if fields == 1 else 's'}, and {whose} {width}: correct the row, or {remedy}"
        )


def _lines(file: Iterable[str], path: Path, first: int) -> Iterator[str]:
    """Yield the lines of a file; a NUL or a line without end shows that it is no text."""
    for number, line in enumerate(file, start=first):
        if len(line) > LONGEST:
            raise DataError(
                f"{path}: line {number} has more than {LONGEST:,} characters, so this is no table "
                "of lines: give one with a line for each row"
            )
        if "\0" in line:
            raise DataError(
                f"{path}: line {number} holds a NUL character, so this is no plain text: "
                "remove it, or name the file's encoding, such as --encoding utf-16"
            )
        yield line


def _read(rows: Rows, width: int, path: Path, room: Room | None) -> list[Column]:
    # The place of each distinct text; an unknown text gets the next place as it is looked up.
    indexes = [defaultdict[str, int](count().__next__) for _ in range(width)]
    parts: list[list[Codes]] = [[] for _ in range(width)]
    body = iter(rows)
    known = 0
    while chunk := list(islice(body, max(1, _CHUNK_CELLS // width))):
        for column, index, part in zip(zip(*chunk, strict=True), indexes, parts, strict=True):
            part.append(np.fromiter(map(index.__getitem__, column), np.int64, len(chunk)))
        if room is not None:
            before, known = known, sum(map(len, indexes))
            room.cells(len(chunk), width)
            room.take((known - before) * DIFFERENT)
    if not parts[0]:
        raise DataError(f"{path}: the table has no records: only a header row was found")
    columns = []
    for part in parts:
        texts = list(indexes.pop(0))
        columns.append(Column("", texts, np.concatenate(part)))
        part.clear()
    return columns


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse a table with a column that has no name, or the name of another one."""
    seen: set[str] = set()
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise DataError(f"{where}: column {position} has no name: name it in the header")
        if name in seen:
            raise DataError(
                f"{where}: two columns have the name {name!r}: rename one, "
                f"or leave both out ({leaving_out(name)})"
            )
        seen.add(name)
