"""Reading files of Stata, SPSS and SAS (extra: statistics).

Labels of values take the place of their codes, and what the file calls missing is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from thinveil.curator.tables.coding import Column
from thinveil.curator.tables.delimited import check_names
from thinveil.curator.tables.kinds.cells import column_of, most_cells, text_of, too_many
from thinveil.curator.tables.kinds.limits import CELL, check_width, most_unpacked, too_much
from thinveil.curator.tables.reading import Raw, Reading
from thinveil.errors import DataError, MissingExtra
from thinveil.language.texts import many

_SHOWN: Final = 5
"""So many columns are named in a note."""
_STRAY: Final = (ValueError, OverflowError, TypeError, AttributeError)
"""What the reader raises, besides errors of its own, on damaged files."""


def read_stata(path: Path, reading: Reading) -> Raw:
    """Read a file of Stata (.dta)."""
    return _read(path, reading, "read_dta", "Stata")


def read_spss(path: Path, reading: Reading) -> Raw:
    """Read a file of SPSS (.sav, .zsav)."""
    return _read(path, reading, "read_sav", "SPSS")


def read_portable(path: Path, reading: Reading) -> Raw:
    """Read a portable file of SPSS (.por)."""
    return _read(path, reading, "read_por", "SPSS")


def read_sas(path: Path, reading: Reading) -> Raw:
    """Read a file of SAS (.sas7bdat)."""
    return _read(path, reading, "read_sas7bdat", "SAS")


def read_transport(path: Path, reading: Reading) -> Raw:
    """Read a transport file of SAS (.xpt)."""
    return _read(path, reading, "read_xport", "SAS")


def _read(path: Path, reading: Reading, function: str, program: str) -> Raw:
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtra(f"Reading files of {program}", "statistics") from None
    told = {} if reading.encoding is None else {"encoding": reading.encoding}
    damaged = DataError(
        f"{path}: not a file of {program}, or a damaged one, or in another encoding (--encoding "
        "NAME), or with a date beyond the calendar: save the table as CSV where it was made, and "
        "give that"
    )

    def read(**how: Any) -> tuple[Mapping[str, Sequence[object]], Any]:
        try:
            found: tuple[Mapping[str, Sequence[object]], Any] = getattr(pyreadstat, function)(
                str(path), output_format="dict", **how, **told
            )
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, *_STRAY):
            raise damaged from None
        return found

    about = read(metadataonly=True)[1]
    names = list(about.column_names)
    if not names or not all(names):
        raise damaged
    check_width(len(names), path)
    kept = reading.chosen(names, str(path))
    check_names(kept, str(path))
    cells = most_cells()
    most = min(cells // len(kept), _most_rows(path, about, kept))
    values, about = read(usecols=kept, row_limit=most + 1)
    records = len(next(iter(values.values()), ()))
    if records > most:
        if records * len(kept) > cells:
            raise DataError(f"{path}: {too_many(cells)}")
        raise too_much(path, most_unpacked())
    if not records:
        raise DataError(f"{path}: the table has no records: give at least one row of data")
    return _labelled(values, about, reading.said_of([each for each in names if each not in kept]))


def _most_rows(path: Path, about: Any, kept: Sequence[str]) -> int:
    """Return how many rows may unpack, by the widths that columns have in the file.

    What a file holds that is not compressed may be read, however large it is.
    """
    width = sum(max(int(about.variable_storage_width.get(name, 0)), CELL) for name in kept)
    return max(most_unpacked(), 2 * path.stat().st_size) // width


def _labelled(values: Mapping[str, Sequence[object]], about: Any, assumed: Sequence[str]) -> Raw:
    """Return the columns, labels in the place of codes, and what was assumed."""
    columns: list[Column] = []
    by_label: list[str] = []
    by_code: list[str] = []
    for name, cells in values.items():
        column = column_of(name, cells, single=about.readstat_variable_types.get(name) == "float")
        labels = _labels(about.variable_value_labels.get(name, {}))
        used = [text for text in column.texts if text in labels]
        if used:
            others = sum(text is not None for text in column.texts) - len(used)
            (by_label if others <= len(used) else by_code).append(name)
            if others <= len(used):
                column = _with_labels(column, labels)
        columns.append(column)
    said = []
    if by_label:
        said.append(f"{_columns(by_label)} by the labels of values, not by their codes")
    if by_code:
        said.append(f"{_columns(by_code)} by codes, as most of the values have no label")
    return Raw(columns, (*assumed, *said))


def _labels(labels: Mapping[object, str]) -> dict[str | None, str]:
    """Return the label of each code, which is written as a cell; one that is empty is none."""
    return {text_of(code): str(label) for code, label in labels.items() if str(label).strip()}


def _with_labels(column: Column, labels: Mapping[str | None, str]) -> Column:
    """Put labels in the place of codes; where two codes have one label, their codes tell them."""
    texts = [labels.get(text, text) for text in column.texts]
    often = Counter(texts)
    told = [
        text if often[text] == 1 or text is None else f"{text} ({code})"
        for text, code in zip(texts, column.texts, strict=True)
    ]
    return Column(column.name, told, column.index)


def _columns(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names[:_SHOWN]))
    if len(names) == 1:
        return f"the column {listed} is read"
    more = f" and {many(len(names) - _SHOWN, 'more column')}" if len(names) > _SHOWN else ""
    return f"the columns {listed}{more} are read"
