"""Counting in a database where nothing may be stored, not even a temporary table.

Boxes are written into the statement, and each statement computes the codes of the records that it
looks at: a round scans the table as often as its boxes need statements. Where no more than a few
boxes lie in a cell, records are joined to them as they are, else they are grouped first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.curator.counting.keeping import Kept
from thinveil.curator.counting.shapes import Shape
from thinveil.curator.database.counting import (
    Asked,
    DatabaseCounter,
    cell_columns,
    counted,
    keys_of,
)
from thinveil.curator.database.session import Session
from thinveil.curator.database.words import Rows, all_rows, exp, number, pruned, raw
from thinveil.language.queries import WHOLE, Cells, Codes

_PARTS: Final = 8  # kinds of boxes that one statement counts: a round figure
_FEW: Final = 4  # boxes in a cell: joined rows are at most so many times the records
_LEAST: Final = 8  # a share of a statement that is left to boxes, however long its lists of texts


class ScanningCounter(DatabaseCounter):
    """Counts by statements that carry their boxes and scan the table, and store nothing."""

    def __init__(self, session: Session, codes: Rows, records: int, where: str) -> None:
        super().__init__(session, codes, records, where)
        self._name, self._mark = session.own("codes"), session.own("boxes")
        self._parts: Kept[tuple[str, str]] = Kept(1000)
        self._coded: Kept[str] = Kept(100)
        self._sizes: dict[str, int] = {}

    def _found(self, cells: Cells, asked: Asked, *, again: bool) -> Codes:
        """Count boxes in as few statements as their length allows."""
        found: list[Codes] = []
        waiting: list[_Part] = []
        for part in self._split(cells, asked):
            parts = [*waiting, part]
            full = len(waiting) == _PARTS or self._size(parts) > self._room(_columns(parts))
            if waiting and full:
                found.append(self._asked(waiting))
                waiting = []
            waiting.append(part)
        found.append(self._asked(waiting))
        return np.concatenate(found)

    def _asked(self, parts: list[_Part]) -> Codes:
        """Count the boxes of some parts by one statement, which computes codes once."""
        return self._session.codes(self._statement(parts, self._codes_of(_columns(parts))), 2)

    def _statement(self, parts: list[_Part], codes: str) -> str:
        texts = " UNION ALL ".join(part.text for part in parts)
        return f"WITH {self._session.engine.quoted(self._name)} AS ({codes}) {texts}"

    def _size(self, parts: list[_Part]) -> int:
        """Return how long the statement of some parts is, without the codes."""
        return len(self._statement(parts, ""))

    def _room(self, columns: frozenset[str]) -> int:
        """Return how long a statement may be besides the codes of some columns.

        Written one by one these are longer than together, so this is rather too little.
        """
        for each in columns - self._sizes.keys():
            self._sizes[each] = len(self._codes_of(frozenset((each,))))
        longest = self._session.engine.longest
        return max(longest - sum(self._sizes[each] for each in columns), longest // _LEAST)

    def _codes_of(self, columns: frozenset[str]) -> str:
        return self._coded.get_or(columns, lambda: self._session.sql(pruned(self._codes, columns)))

    def _split(self, cells: Cells, asked: Asked) -> Iterator[_Part]:
        """Yield boxes that one part of a statement counts: of one shape, and not too many."""
        shapes, shape = self._shapes_of(cells)
        for narrow, boxes in asked.by(asked.narrow):
            for which, mine in boxes.by(shape[boxes.cell]):
                kind = shapes[which]
                alone = bool(kind.fixed) and np.unique(mine.cell, return_counts=True)[1].max()
                sent = cell_columns(cells, kind, mine.cell) | mine.columns(narrow)
                ends = self._text(kind, narrow, tuple(sent), 0 < alone <= _FEW)
                columns = _looked_at(kind, narrow)
                room = self._room(columns) - self._size([self._part(ends, sent, 0, 1, columns)])
                step = 1 + max(0, room) // _length(sent)
                for start in range(0, len(mine.id), step):
                    yield self._part(ends, sent, start, step, columns)

    def _part(
        self,
        ends: tuple[str, str],
        sent: dict[str, Codes],
        start: int,
        step: int,
        columns: frozenset[str],
    ) -> _Part:
        some = {name: each[start : start + step] for name, each in sent.items()}
        return _Part(f"{ends[0]}{self._session.engine.inline(some)}{ends[1]}", columns)

    def _text(
        self, shape: Shape, narrow: int, columns: tuple[str, ...], plain: bool
    ) -> tuple[str, str]:
        """Return what stands before and behind the rows of boxes in a part of a statement."""

        def make() -> tuple[str, str]:
            keys = keys_of(shape, narrow)
            codes = Rows(exp.table_(self._name, quoted=True), ())
            if plain:
                groups = codes.select({**keys, "n": number(1)})
            else:
                groups = codes.grouped(keys, {"n": all_rows()})
            found = counted(Rows(raw(self._mark), columns), groups, shape)
            before, _, after = self._session.sql(found).partition(self._mark)
            return before, after

        return self._parts.get_or((shape, narrow, columns, plain), make)


@dataclass(frozen=True, slots=True)
class _Part:
    """What counts some boxes, and the columns of codes that it looks at."""

    text: str
    columns: frozenset[str]


def _columns(parts: list[_Part]) -> frozenset[str]:
    """Return all columns of codes that some parts look at."""
    return frozenset[str]().union(*(part.columns for part in parts))


def _looked_at(shape: Shape, narrow: int) -> frozenset[str]:
    looked_at = {*(each for each, _ in shape.fixed), *shape.ranged, narrow} - {WHOLE}
    return frozenset(f"c{each}" for each in looked_at)


def _length(columns: dict[str, Codes]) -> int:
    """Return how long a row is at most when it is written."""
    ends = ((int(each.min()), int(each.max())) for each in columns.values())
    return 4 + sum(2 + max(len(str(low)), len(str(high))) for low, high in ends)
