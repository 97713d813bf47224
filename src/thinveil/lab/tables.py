"""The tables that the page can show: made-up people, six incomes, or a file of one's own."""

from __future__ import annotations

import re
import secrets
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.curator.counting.keeping import Kept
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.files import load
from thinveil.curator.tables.kinds.limits import VARIABLE, unpacking_at_most
from thinveil.curator.tables.people import people
from thinveil.errors import DataError, ThinveilError, UsageError
from thinveil.files import write_file
from thinveil.paper.experiments import six_incomes

MOST_PEOPLE: Final = 200
"""So many people are shown and attacked; a longer table is cut, and the page says so."""
MOST_COLUMNS: Final = 24
LARGEST_FILE: Final = 4 * 2**20
"""The most bytes of a file that is opened in the page."""
MOST_UNPACKED: Final = 2**28
"""The most bytes that it may unpack to: others may be reading theirs at the same time."""
KEPT: Final = 16
"""How many opened files are remembered."""

INCOMES: Final = "incomes"
OWN: Final = "own"
"""The name of the table that was given on the command line."""

_INCOMES_CODE: Final = (
    'thinveil.Dataset(thinveil.Schema((thinveil.Grid("income"),)), '
    "[[5], [8], [15], [16], [17], [18]])"
)
_ENDING: Final = re.compile(r"[.]\w{1,9}", re.ASCII)
_OPTION: Final = re.compile(r" \(--.*\)$")
_PEOPLE: Final = re.compile(r"people-(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that the page can show, how Python gets it again, and what was assumed of it."""

    data: Dataset
    title: str
    code: str
    note: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return everything that the page shows of the table; a missing value is None."""
        return {
            "title": self.title,
            "note": self.note,
            "columns": [
                {"name": each.name, "about": each.describe(), "kind": each.kind}
                for each in self.data.schema
            ],
            "rows": [[text_of(value) for value in row] for row in self.data.rows()],
        }


def text_of(value: Any) -> str | None:
    """Return a value as the page writes it."""
    return None if value is None else str(value)


def cut(data: Dataset, title: str, code: str) -> Table:
    """Return a table of at most as many people as the page shows."""
    if len(data.schema) > MOST_COLUMNS:
        raise UsageError(
            f"the table has {len(data.schema)} columns and the page shows {MOST_COLUMNS} at most: "
            "leave some out (thinveil lab TABLE --drop A,B), or use thinveil audit"
        )
    notes = [_sentence(each.partition(". If ")[0]) for each in data.remarks.all()]
    if data.records > MOST_PEOPLE:
        notes.append(
            f"The page works on the first {MOST_PEOPLE} of {data.records:,} records; thinveil "
            "audit attacks them all."
        )
        data, code = data.sample(np.arange(MOST_PEOPLE)), f"{code}.sample(range({MOST_PEOPLE}))"
    return Table(data, title, code, " ".join(notes))


def _sentence(assumed: str) -> str:
    """Return what was assumed as a sentence, without the option that the page does not have."""
    said = _OPTION.sub("", assumed)
    return f"{said[:1].upper()}{said[1:]}."


def from_file(content: bytes, name: str) -> Table:
    """Read a table that somebody opened in the page, with the reader of the command line.

    The content is in a file of its own for as long as it is read, for this user alone.
    """
    title = Path(name).name[:80] or "table.csv"
    if len(content) > LARGEST_FILE:
        raise UsageError(
            f"the file has more than {LARGEST_FILE // 2**20} MB: give it on the command line, "
            "thinveil lab TABLE"
        )
    with tempfile.TemporaryDirectory(prefix="thinveil-lab-") as folder:
        ending = Path(title).suffix.lower()
        path = Path(folder) / f"table{ending if _ENDING.fullmatch(ending) else ''}"
        write_file(path, content)
        try:
            with unpacking_at_most(MOST_UNPACKED):
                data = load(path)
        except ThinveilError as error:
            raise DataError(_on_the_page(str(error).replace(str(path), title))) from None
    return cut(data, title, f"thinveil.load({title!r})")


def _on_the_page(message: str) -> str:
    """Return a message of the reader with advice that can be followed on the page."""
    what, _, advice = message.rpartition(": ")
    if VARIABLE in advice or "--engine" in advice:
        return f"{what}: give it on the command line, thinveil lab TABLE"
    if "--encoding" in advice:
        advice = "save the file as UTF-8 text"
    elif "--" in advice or "schema" in advice:
        advice = "correct it or leave it out"
    else:
        return message
    return f"{what}: {advice}, and open the file again"


@dataclass(slots=True)
class Tables:
    """All tables by name: one's own of the command line, and of the opened files the last ones."""

    own: Table | None = None
    _opened: Kept[Table] = field(default_factory=lambda: Kept(KEPT))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, content: bytes, name: str) -> str:
        """Read a file and return the name under which the table is kept."""
        table = from_file(content, name)
        key = f"file-{secrets.token_hex(8)}"
        with self._lock:
            self._opened.get_or(key, lambda: table)
        return key

    def __getitem__(self, name: str) -> Table:
        """Return a table."""
        if match := _PEOPLE.fullmatch(name):
            number = int(match[1])
            if not 1 <= number <= MOST_PEOPLE:
                raise UsageError(f"choose between 1 and {MOST_PEOPLE} people")
            return Table(people(number), f"{number} made-up people", f"thinveil.people({number})")
        if name == INCOMES:
            return Table(six_incomes(), "The paper's six incomes", _INCOMES_CODE)
        if name == OWN and self.own is not None:
            return self.own
        with self._lock:
            return self._opened.get_or(name, _gone)


def _gone() -> Table:
    raise UsageError("this table is not known here any more: open the file again")
