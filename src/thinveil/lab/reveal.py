"""Which cells of the true table an attack has recovered: the lab's own look, not the attacker's.

An attack returns a multiset of records. To show it, every record found is laid next to a person
whom it fits; what fits nobody is laid next to the person it fits best, and its cells that differ
are wrong. The attack never learns who was chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.attacker.findings import ColumnFound, ColumnsFound, PeopleFound, TableFound
from thinveil.curator.tables.dataset import Dataset
from thinveil.lab.tables import text_of
from thinveil.language.queries import Codes

UNKNOWN: Final = 0
RIGHT: Final = 1
WRONG: Final = 2

_States = npt.NDArray[np.int8]
_Row = tuple[tuple[int, ...], int]  # the values that are known, and for how many records


@dataclass(frozen=True, slots=True, eq=False)
class Revealed:
    """For each cell of the true table, whether it is known, and the value if it is wrong."""

    state: _States
    codes: Codes

    @property
    def values(self) -> int:
        """How many cells are known and right."""
        return int((self.state == RIGHT).sum())

    @property
    def people(self) -> int:
        """How many people's whole records are known and right."""
        return int((self.state == RIGHT).all(axis=1).sum())


class Onlooker:
    """Lays what was found next to the true table, or to those whom what was known of one fits."""

    def __init__(self, truth: Dataset, fitting: Sequence[int] = ()) -> None:
        self._truth = truth
        self._fitting = list(fitting)
        self._rows: list[tuple[int, ...]] = []
        self._order: tuple[int, ...] = ()

    def look(self, found: Any) -> Revealed:
        """Return what is known now."""
        shape = self._truth.codes.shape
        revealed = Revealed(np.zeros(shape, np.int8), np.zeros(shape, np.int64))
        everybody = range(shape[0])
        if isinstance(found, TableFound):
            self._table(found, revealed)
        elif isinstance(found, ColumnsFound):
            for each in found.columns:
                self._column(each, everybody, revealed)
        elif isinstance(found, PeopleFound) and found.people:
            for each in found.people[0].values:
                self._column(each, self._fitting, revealed)
        return revealed

    def _table(self, found: TableFound, revealed: Revealed) -> None:
        if self._order != found.columns:
            self._order = found.columns
            self._rows = list(map(tuple, self._truth.codes[:, found.columns].tolist()))
        rows = [
            (tuple(codes[:known]), count)
            for codes, known, count in zip(
                found.codes.tolist(), found.known.tolist(), found.counts.tolist(), strict=True
            )
            if known
        ]
        # the longest first: what is known of most columns fits the fewest people
        rows.sort(key=lambda row: -len(row[0]))
        free = dict.fromkeys(range(len(self._rows)))
        wrong: list[_Row] = []
        for length in sorted({len(values) for values, _ in rows}, reverse=True):
            waiting: dict[tuple[int, ...], list[int]] = {}
            for person in free:
                waiting.setdefault(self._rows[person][:length], []).append(person)
            for values, count in rows:
                if len(values) != length:
                    continue
                fits = waiting.pop(values, [])
                taken = fits if found.distinct else fits[:count]
                if rest := fits[len(taken) :]:
                    waiting[values] = rest
                for person in taken:
                    del free[person]
                    revealed.state[person, list(found.columns[:length])] = RIGHT
                left = (not taken) if found.distinct else count - len(taken)
                if left:
                    wrong.append((values, int(left)))
        self._lay_wrong(wrong, free, found.columns, revealed)

    def _lay_wrong(
        self,
        wrong: Iterable[_Row],
        free: dict[int, None],
        columns: tuple[int, ...],
        revealed: Revealed,
    ) -> None:
        """Lay records that fit nobody next to the people whom they fit best."""
        for values, count in wrong:
            for _ in range(min(count, len(free))):
                person = max(free, key=lambda each: sum(map(eq, values, self._rows[each])))
                del free[person]
                for column, value, true in zip(columns, values, self._rows[person], strict=False):
                    revealed.state[person, column] = RIGHT if value == true else WRONG
                    revealed.codes[person, column] = value

    def _column(self, found: ColumnFound, people: Iterable[int], revealed: Revealed) -> None:
        """Lay the values of one column next to people; who has which is not known."""
        left = Counter(dict(found.values))
        column = found.column
        free = []
        for person in people:
            value = int(self._truth.codes[person, column])
            if left[value] > 0:
                left[value] -= 0 if found.distinct else 1
                revealed.state[person, column] = RIGHT
            else:
                free.append(person)
        there = set(self._truth.column(column).tolist()) if found.distinct else set()
        wrong = [value for value in left.elements() if value not in there]
        for person, value in zip(free, wrong, strict=False):
            revealed.state[person, column] = WRONG
            revealed.codes[person, column] = value


def change(before: Revealed | None, now: Revealed, truth: Dataset) -> dict[str, Any]:
    """Return what changed since the last look, cells counted row by row.

    Returns:
        right: Cells that are known and right now.
        wrong: Cells that are wrong now, each with the value found.
        gone: Cells that are not known any more.
    """
    width = len(truth.schema)
    if before is None:
        changed = now.state != UNKNOWN
    else:
        changed = (now.state != before.state) | ((now.state == WRONG) & (now.codes != before.codes))
    told: dict[str, Any] = {}
    for row, column in np.argwhere(changed).tolist():
        cell: Any = row * width + column
        state = int(now.state[row, column])
        if state == WRONG:
            value = text_of(truth.schema[column].decode(int(now.codes[row, column])))
            cell = [cell, value]
        told.setdefault(("gone", "right", "wrong")[state], []).append(cell)
    return told
