"""Reading CSV and its relatives, a few rows in memory at a time."""

from __future__ import annotations

import codecs
import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.reading import Raw, Reading, leaving_out
from thinveil.errors import DataError
from thinveil.language.queries import Codes

if TYPE_CHECKING:
    from _csv import Reader

SEPARATORS: Final = (",", ";", "\t", "|")
"""The separators that are tried where none is given."""

_SAMPLE_LINES = 1000
_SAMPLE_CHARACTERS = 1_000_000
_CHUNK = 20_000
_LONGEST = 2**31 - 1


def encoding_of(reading: Reading) -> str:
    """Return the encoding of a text file; a UTF-8 byte order mark is skipped."""
    encoding = reading.encoding or "utf-8"
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def rows_of(lines: Iterator[str], separator: str, quote: str, *, strict: bool) -> Rows:
    """Return the rows of fields; the limit on a field's length is lifted for good."""
    if csv.field_size_limit() < _LONGEST:
        csv.field_size_limit(_LONGEST)
    if quote:
        return Rows(csv.reader(lines, delimiter=separator, quotechar=quote, strict=strict))
    return Rows(csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE, strict=strict))


class Rows:
    """The rows of a file, and the line on which the current row starts."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.line = 1

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._reader:
            yield row
            self.line = self._reader.line_num + 1


def read_delimited(path: Path, reading: Reading) -> Raw:
    """Read a text file with a header row."""
    try:
        with path.open(encoding=encoding_of(reading), newline="") as file:
            sample = _sample(file)
            separator = reading.separator or _find_separator(sample, reading.quote)
            lines = _lines(chain(sample, file), path)
            rows = rows_of(lines, separator, reading.quote, strict=True)
            try:
                return Raw(_read(rows, path, reading)).only(reading, str(path))
            except csv.Error:
                raise DataError(
                    f"{path}: the row that starts on line {rows.line} opens a quotation mark "
                    "and does not close it, or closes it in the middle of a field: correct it, "
                    "or choose another quotation mark (--quote; empty for none)"
                ) from None
    except UnicodeError:
        raise DataError(
            f"{path}: {_undecodable(path, encoding_of(reading))}: name the file's encoding, "
            "such as --encoding latin-1"
        ) from None


def header_of(path: Path, reading: Reading) -> tuple[str, list[str]]:
    """Return what stands between two fields of a text file, and the names of its columns."""
    with path.open(encoding=encoding_of(reading), newline="") as file:
        sample = _sample(file)
    separator = reading.separator or _find_separator(sample, reading.quote)
    rows = rows_of(iter(sample), separator, reading.quote, strict=False)
    return separator, _header(iter(rows), path, reading)


def _undecodable(path: Path, encoding: str) -> str:
    """Say where the bytes are that cannot be read."""
    if encoding != "utf-8-sig" or not path.is_file():
        return f"the file is not {encoding} text"
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"line {number} is not UTF-8 text"
    return "the file is not UTF-8 text"


def _lines(file: Iterable[str], path: Path) -> Iterator[str]:
    """Yield the lines of a file; a NUL shows that it is no text."""
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            raise DataError(
                f"{path}: line {number} holds a NUL character, so this is no plain text: "
                "remove it, or name the file's encoding, such as --encoding utf-16"
            )
        yield line


def _sample(file: TextIO) -> list[str]:
    """Take the first lines of a file, which may be a pipe and cannot be rewound."""
    sample, size = [], 0
    for line in islice(file, _SAMPLE_LINES):
        sample.append(line)
        size += len(line)
        if size > _SAMPLE_CHARACTERS:
            break
    return sample


def _find_separator(sample: Sequence[str], quote: str) -> str:
    """Choose the separator that the header has and most rows of a sample agree on."""
    best, best_score, alone = ",", (0.0, 0), None
    for separator in SEPARATORS:
        if separator == quote:
            continue
        widths = [len(row) for row in rows_of(iter(sample), separator, quote, strict=False) if row]
        header = widths[0] if widths else 1
        if header == 1:
            if alone is None and all(width == 1 for width in widths):
                alone = separator
            continue
        agreeing = sum(width == header for width in widths[1:])
        score = (agreeing / max(1, len(widths) - 1), header)
        if score > best_score:
            best, best_score = separator, score
    if best_score == (0.0, 0) and alone is not None:
        return alone
    return best


def _read(rows: Rows, path: Path, reading: Reading) -> list[Column]:
    stream = iter(rows)
    names = _header(stream, path, reading)
    width = len(names)
    # The place of each distinct text; an unknown text gets the next place as it is looked up.
    indexes = [defaultdict[str, int](count().__next__) for _ in names]
    parts: list[list[Codes]] = [[] for _ in names]
    body = _body(stream, rows, width, path)
    while chunk := list(islice(body, _CHUNK)):
        for column, index, part in zip(zip(*chunk, strict=True), indexes, parts, strict=True):
            part.append(np.fromiter(map(index.__getitem__, column), np.int64, len(chunk)))
    if not parts[0]:
        raise DataError(f"{path}: the table has no records: only a header row was found")
    columns = []
    for name, part in zip(names, parts, strict=True):
        texts = list(indexes.pop(0))
        columns.append(Column(name, texts, np.concatenate(part)))
        part.clear()
    return columns


def _header(stream: Iterator[list[str]], path: Path, reading: Reading) -> list[str]:
    names = next((row for row in stream if row), None)
    if names is None:
        raise DataError(f"{path}: the file is empty: give a table with a header row")
    check_names(reading.chosen(names, str(path)), str(path))
    return names


def _body(stream: Iterator[list[str]], rows: Rows, width: int, path: Path) -> Iterator[list[str]]:
    """Yield the rows of data; blank lines are skipped, or missing values of an only column."""
    for row in stream:
        if len(row) == width:
            yield row
        elif not row or (width > 1 and len(row) == 1 and row[0].isspace()):
            if width == 1:
                yield [""]
        else:
            raise DataError(
                f"{path}: the row that starts on line {rows.line} has {len(row)} "
                f"field{'' if len(row) == 1 else 's'}, and the header has {width}: correct the "
                "row, or name the right --separator or --quote"
            )


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
