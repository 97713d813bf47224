"""Counting inside a database: boxes are a table that is joined to the data.

Records that agree on the columns in question are grouped once, inside the database, so a
round joins its boxes to at most as many rows as there are different combinations. Fixed values
are the keys of the join, ranges its other conditions. One statement answers a round.

An attack asks about the same cells for many rounds. From the second round on, the groups carry
the number of their cell, and a round joins on that number and one range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final

import numpy as np

from thinveil.curator.counting.keeping import Kept
from thinveil.curator.counting.shapes import RANGE, Shape, each_kind, shapes_of, widths_of
from thinveil.curator.database.codes import GAP
from thinveil.curator.database.engines.protocol import ibis
from thinveil.curator.database.session import Session, counting
from thinveil.language.queries import WHOLE, Cells, Codes, Flags, QueryBatch
from thinveil.language.schema import LIMIT, MISSING

# Round figures that hardly matter: they bound statements and what is kept in a database.
_MANY_SHAPES: Final = 12
_LARGE: Final = 2_000_000  # records
_KEPT: Final = 24  # temporary tables
_KEPT_OF_LARGE: Final = 8
_MANY_STATEMENTS: Final = 1000


class DatabaseCounter:
    """Counts in a database, one statement a batch, from a table of codes that is there."""

    def __init__(self, session: Session, codes: Any, records: int, where: str) -> None:
        self._session, self._codes = session, codes
        self._records, self._where = records, where
        most = _KEPT if records < _LARGE else _KEPT_OF_LARGE
        self._values: Kept[Any] = Kept(len(codes.columns), session.drop)
        self._groups: Kept[Any] = Kept(most, session.drop)
        self._stages: Kept[Any] = Kept(most, session.drop)
        self._sent: dict[tuple[str, ...], Any] = {}
        self._statements: Kept[str] = Kept(_MANY_STATEMENTS)
        self._one_at_a_time = Lock()
        self._last = b""
        self._shapes: Kept[tuple[list[Shape], Codes]] = Kept(1)
        self._kept_apart: Kept[bool] = Kept(1)

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        with self._one_at_a_time, counting(self._where):
            return batch.total(self._boxes(batch))

    def _boxes(self, batch: QueryBatch) -> Codes:
        cells, narrow = batch.cells, batch.column
        low, high = ends(batch.low, batch.high)
        free = (narrow == WHOLE) | ((low == GAP) & (high == LIMIT))
        narrow = np.where(free, WHOLE, narrow)
        filled: Flags = np.all(cells.low < cells.high, axis=1)
        filled = filled[batch.cell] & (free | (low < high))
        shapes, shape = self._shapes_of(cells)
        inside = np.zeros(len(narrow), np.int64)
        everything = np.array([not (each.fixed or each.ranged) for each in shapes])
        whole = filled & free & everything[shape[batch.cell]]
        inside[whole] = self._records
        some = np.flatnonzero(filled & ~whole)
        if not len(some):
            return inside
        asked = _Asked(some, batch.cell[some], narrow[some], low[some], high[some])
        again, self._last = self._last == cells.digest, cells.digest
        if again and cells.columns and self._apart(cells) and (narrow[some] != WHOLE).all():
            branches = self._by_number(cells, asked)
        else:
            branches = self._by_value(cells, asked)
        found = self._ask(branches)
        inside[found[:, 0]] = found[:, 1]
        return inside

    # ---- a round

    def _ask(self, branches: list[_Branch]) -> Codes:
        """Send the boxes of all branches and count them in one statement."""
        layouts: dict[tuple[str, ...], list[_Branch]] = {}
        for branch in branches:
            layouts.setdefault(tuple(branch.sent), []).append(branch)
        parts, key = [], []
        for layout, alike in layouts.items():
            sent = self._session.put(_together(alike), instead=self._sent.get(layout))
            self._sent[layout] = sent
            for number, branch in enumerate(alike):
                parts.append((sent, number, branch))
                key.append((layout, number, branch.groups.get_name()))
        statement = self._statements.get_or(
            tuple(key), lambda: self._session.sql(*(_counted(*part) for part in parts))
        )
        found = self._session.codes(statement, 2)
        self._groups.trim()
        self._stages.trim()
        return found

    def _by_value(self, cells: Cells, asked: _Asked) -> list[_Branch]:
        """Join boxes to groups of records by the values that their cells fix."""
        shapes, shape = self._shapes_of(cells)
        branches = []
        for column, boxes in asked.by(asked.narrow):
            for number, mine in boxes.by(shape[boxes.cell]):
                groups = self._grouped(shapes[number], column)
                sent = _cell_columns(cells, shapes[number], mine.cell) | mine.columns(column)
                branches.append(_Branch(groups, shapes[number], sent))
        return branches

    def _by_number(self, cells: Cells, asked: _Asked) -> list[_Branch]:
        """Join boxes to groups of records by the number of their cell."""
        branches = []
        for column, mine in asked.by(asked.narrow):
            stage = self._stages.get_or((cells.digest, column), partial(self._stage, cells, column))
            branches.append(_Branch(stage, _NUMBERED, {"k0": mine.cell} | mine.columns(column)))
        return branches

    # ---- what is kept in the database

    def _grouped(self, shape: Shape, column: int) -> Any:
        """Return the groups of records that agree on all columns that a branch looks at."""

        def make() -> Any:
            keys = {
                f"k{place}": _digit(self._codes[f"c{each}"], width)
                for place, (each, width) in enumerate(shape.fixed)
            }
            keys |= {
                f"r{place}": self._codes[f"c{each}"] for place, each in enumerate(shape.ranged)
            }
            if column != WHOLE:
                keys["v"] = self._codes[f"c{column}"]
            grouped = self._codes.group_by(**keys).aggregate(n=self._codes.count())
            index = [key for key in keys if key[0] in "k"] + ["v"] * (column != WHOLE)
            index += [key for key in keys if key[0] == "r"]
            return self._session.keep(grouped, index=index)

        alone = not (shape.fixed or shape.ranged)  # the values of one column: always kept
        return (self._values if alone else self._groups).get_or((shape, column), make)

    def _stage(self, cells: Cells, column: int) -> Any:
        """Return the groups of records of all cells, by the number of the cell."""
        shapes, shape = self._shapes_of(cells)
        parts, sent = [], []
        for number, mine in enumerate(shapes):
            rows = np.flatnonzero(shape == number)
            columns = {"cell": rows, **_cell_columns(cells, mine, rows)}
            sent.append(self._session.put(columns))
            groups = self._grouped(mine, column)
            joined = sent[-1].join(groups, _conditions(sent[-1], groups, mine))
            parts.append(
                joined.group_by(k0=joined.cell, v=joined.v).aggregate(
                    n=joined.n.sum().cast("int64")
                )
            )
        stage = self._session.keep(*parts, index=["k0", "v"])
        for each in sent:
            self._session.drop(each)
        return stage

    def _shapes_of(self, cells: Cells) -> tuple[list[Shape], Codes]:
        return self._shapes.get_or(cells.digest, partial(shapes_in_sql, cells))

    def _apart(self, cells: Cells) -> bool:
        """Tell whether no record can lie in two of the cells."""

        def make() -> bool:
            kinds = cells.kinds()
            return bool(kinds.exact and len(np.unique(kinds.number)) == len(cells))

        return self._kept_apart.get_or(cells.digest, make)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Boxes that have to be counted, as columns."""

    id: Codes
    cell: Codes
    narrow: Codes
    low: Codes
    high: Codes

    def by(self, kind: Codes) -> Iterator[tuple[int, _Asked]]:
        """Yield the boxes of each kind."""
        for each, mine in each_kind(kind):
            columns = (self.id, self.cell, self.narrow, self.low, self.high)
            yield each, _Asked(*(column[mine] for column in columns))

    def columns(self, narrow: int) -> dict[str, Codes]:
        """Return what is sent of boxes besides their cells."""
        if narrow == WHOLE:
            return {"id": self.id}
        return {"id": self.id, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """Boxes of one shape, and the groups of records that they are joined to."""

    groups: Any
    shape: Shape
    sent: dict[str, Codes]


_NUMBERED: Final = Shape(((0, 1),), ())


def _together(branches: Sequence[_Branch]) -> dict[str, Codes]:
    """Return the boxes of branches with the same columns as one table, with their branch."""
    sizes = [len(each.sent["id"]) for each in branches]
    joined = {
        name: np.concatenate([each.sent[name] for each in branches]) for name in branches[0].sent
    }
    return joined | {"b": np.repeat(np.arange(len(branches)), sizes)}


def _counted(boxes: Any, number: int, branch: _Branch) -> Any:
    """Return how many records each box of a branch holds, leaving out those that hold none."""
    groups = branch.groups
    boxes = boxes.filter(boxes.b == number)
    conditions = _conditions(boxes, groups, branch.shape)
    if "low" in branch.sent:
        conditions += [groups.v >= boxes.low, groups.v < boxes.high]
    joined = boxes.join(groups, conditions)
    return joined.group_by(id=joined.id).aggregate(n=joined.n.sum().cast("int64"))


def _conditions(boxes: Any, groups: Any, shape: Shape) -> list[Any]:
    equal = [boxes[f"k{place}"] == groups[f"k{place}"] for place in range(len(shape.fixed))]
    for place in range(len(shape.ranged)):
        value = groups[f"r{place}"]
        equal += [value >= boxes[f"l{place}"], value < boxes[f"h{place}"]]
    return equal


def _cell_columns(cells: Cells, shape: Shape, rows: Codes) -> dict[str, Codes]:
    """Return what is sent of cells: the values they fix and the ends of their ranges."""
    sent = {}
    for place, (column, _) in enumerate(shape.fixed):
        value = cells.low[rows, cells.columns.index(column)]
        sent[f"k{place}"] = np.where(value == MISSING, GAP, value)
    for place, column in enumerate(shape.ranged):
        own = cells.columns.index(column)
        sent[f"l{place}"], sent[f"h{place}"] = ends(cells.low[rows, own], cells.high[rows, own])
    return sent


def ends(low: Codes, high: Codes) -> tuple[Codes, Codes]:
    """Return the ends of ranges among codes of which the lowest is a missing value's."""
    start = np.where(low == MISSING, GAP, np.clip(low, GAP + 1, LIMIT))
    end = np.where(high == MISSING, GAP, np.clip(high, GAP + 1, LIMIT))
    return start, end


def shapes_in_sql(cells: Cells) -> tuple[list[Shape], Codes]:
    """Return the shapes that cells have for a database, and which each one has.

    Steps of one column must all have one width, and lie where codes can be. Where there are very
    many shapes, what only some cells fix is taken as a range of all of them.
    """
    low, high = cells.low, cells.high
    width = widths_of(cells, 1)
    inside = np.abs(low // 2) < LIMIT // 2
    width[(width == 1) & ~inside & (low != MISSING)] = RANGE
    width[(width > 1) & ~(inside & (high < LIMIT))] = RANGE
    width[(width > 1) & (width == RANGE).any(axis=0)] = RANGE
    shapes, which = shapes_of(cells.columns, width)
    if len(shapes) > _MANY_SHAPES:
        same = (width == width[:1]).all(axis=0)
        shapes, which = shapes_of(cells.columns, np.where(same, width, RANGE))
    return shapes, which


def _digit(code: Any, width: int) -> Any:
    """Return the start of the aligned step that a code lies in; a missing value stays one."""
    if width == 1:
        return code
    rest = ((code % width) + width) % width
    return ibis.cases((code == GAP, GAP), else_=code - rest).cast("int64")
