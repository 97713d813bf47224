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
from thinveil.curator.database.session import Session, counting
from thinveil.curator.database.words import (
    Rows,
    cases,
    cast,
    column,
    equal,
    exp,
    grouped,
    number,
    records_of,
    remainder,
    total,
)
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

    def __init__(self, session: Session, codes: Rows, records: int, where: str) -> None:
        self._session, self._codes = session, codes
        self._records, self._where = records, where
        most = _KEPT if records < _LARGE else _KEPT_OF_LARGE
        self._values: Kept[Rows] = Kept(len(codes.columns), session.drop)
        self._groups: Kept[Rows] = Kept(most, session.drop)
        self._stages: Kept[Rows] = Kept(most, session.drop)
        self._sent: dict[tuple[str, ...], Rows] = {}
        self._statements: Kept[str] = Kept(_MANY_STATEMENTS)
        self._one_at_a_time = Lock()
        self._last = b""
        self._shapes: Kept[tuple[list[Shape], Codes]] = Kept(1)
        self._kept_apart: Kept[bool] = Kept(1)

    @property
    def round_seconds(self) -> float:
        """What a statement costs besides its boxes."""
        return self._session.engine.round_seconds

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
        asked = Asked(some, batch.cell[some], narrow[some], low[some], high[some])
        again, self._last = self._last == cells.digest, cells.digest
        found = self._found(cells, asked, again=again)
        inside[found[:, 0]] = found[:, 1]
        return inside

    def _found(self, cells: Cells, asked: Asked, *, again: bool) -> Codes:
        """Return boxes and how many records each holds; those that hold none may be left out."""
        if again and cells.columns and self._apart(cells) and (asked.narrow != WHOLE).all():
            return self._ask(self._by_number(cells, asked))
        return self._ask(self._by_value(cells, asked))

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
            for which, branch in enumerate(alike):
                parts.append((sent, which, branch))
                key.append((layout, which, branch.groups.name))
        statement = self._statements.get_or(
            tuple(key), lambda: self._session.sql(*(_counted(*part) for part in parts))
        )
        found = self._session.codes(statement, 2)
        self._groups.trim()
        self._stages.trim()
        return found

    def _by_value(self, cells: Cells, asked: Asked) -> list[_Branch]:
        """Join boxes to groups of records by the values that their cells fix."""
        shapes, shape = self._shapes_of(cells)
        branches = []
        for narrow, boxes in asked.by(asked.narrow):
            for which, mine in boxes.by(shape[boxes.cell]):
                groups = self._grouped(shapes[which], narrow)
                sent = cell_columns(cells, shapes[which], mine.cell) | mine.columns(narrow)
                branches.append(_Branch(groups, shapes[which], sent))
        return branches

    def _by_number(self, cells: Cells, asked: Asked) -> list[_Branch]:
        """Join boxes to groups of records by the number of their cell."""
        branches = []
        for narrow, mine in asked.by(asked.narrow):
            stage = self._stages.get_or((cells.digest, narrow), partial(self._stage, cells, narrow))
            branches.append(_Branch(stage, _NUMBERED, {"k0": mine.cell} | mine.columns(narrow)))
        return branches

    # ---- what is kept in the database

    def _grouped(self, shape: Shape, narrow: int) -> Rows:
        """Return the groups of records that agree on all columns that a branch looks at."""

        def make() -> Rows:
            keys = keys_of(shape, narrow)
            index = [key for key in keys if key[0] in "k"] + ["v"] * (narrow != WHOLE)
            index += [key for key in keys if key[0] == "r"]
            grouped = self._codes.grouped(keys, {"n": records_of(self._codes)})
            return self._session.keep(grouped, index=index)

        alone = not (shape.fixed or shape.ranged)  # the values of one column: always kept
        return (self._values if alone else self._groups).get_or((shape, narrow), make)

    def _stage(self, cells: Cells, narrow: int) -> Rows:
        """Return the groups of records of all cells, by the number of the cell."""
        shapes, shape = self._shapes_of(cells)
        parts, sent = [], []
        for which, mine in enumerate(shapes):
            rows = np.flatnonzero(shape == which)
            columns = {"cell": rows, **cell_columns(cells, mine, rows)}
            sent.append(self._session.put(columns))
            groups = self._grouped(mine, narrow)
            keys = {"k0": column("cell", "boxes"), "v": column("v", "groups")}
            parts.append(_summed(sent[-1], groups, _conditions(mine), keys))
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
class Asked:
    """Boxes that have to be counted, as columns."""

    id: Codes
    cell: Codes
    narrow: Codes
    low: Codes
    high: Codes

    def by(self, kind: Codes) -> Iterator[tuple[int, Asked]]:
        """Yield the boxes of each kind."""
        for each, mine in each_kind(kind):
            columns = (self.id, self.cell, self.narrow, self.low, self.high)
            yield each, Asked(*(values[mine] for values in columns))

    def columns(self, narrow: int) -> dict[str, Codes]:
        """Return what is sent of boxes besides their cells."""
        if narrow == WHOLE:
            return {"id": self.id}
        return {"id": self.id, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """Boxes of one shape, and the groups of records that they are joined to."""

    groups: Rows
    shape: Shape
    sent: dict[str, Codes]


_NUMBERED: Final = Shape(((0, 1),), ())


def keys_of(shape: Shape, narrow: int) -> dict[str, Any]:
    """Return what boxes of a shape look at in a record: fixed values, ranges, their own column."""
    keys = {
        f"k{place}": _digit(column(f"c{each}"), width)
        for place, (each, width) in enumerate(shape.fixed)
    }
    keys |= {f"r{place}": column(f"c{each}") for place, each in enumerate(shape.ranged)}
    return keys if narrow == WHOLE else {**keys, "v": column(f"c{narrow}")}


def _together(branches: Sequence[_Branch]) -> dict[str, Codes]:
    """Return the boxes of branches with the same columns as one table, with their branch."""
    sizes = [len(each.sent["id"]) for each in branches]
    joined = {
        name: np.concatenate([each.sent[name] for each in branches]) for name in branches[0].sent
    }
    return joined | {"b": np.repeat(np.arange(len(branches)), sizes)}


def _counted(boxes: Rows, which: int, branch: _Branch) -> Rows:
    """Return how many records each box of a branch holds, leaving out those that hold none."""
    mine = equal(column("b", "boxes"), number(which))
    return counted(boxes, branch.groups, branch.shape, mine)


def counted(boxes: Rows, groups: Rows, shape: Shape, *more: Any) -> Rows:
    """Return how many records each box of a shape holds, leaving out those that hold none."""
    conditions = _conditions(shape)
    if "low" in boxes.columns:
        conditions += _range("v", "low", "high")
    return _summed(boxes, groups, [*conditions, *more], {"id": column("id", "boxes")})


def _summed(boxes: Rows, groups: Rows, conditions: Sequence[Any], keys: dict[str, Any]) -> Rows:
    """Return how many records lie in boxes that are joined to groups of records, by keys."""
    condition = exp.and_(*conditions)
    found = grouped(boxes.at("boxes"), keys, {"n": total(column("n", "groups"))})
    return Rows(found.source.join(groups.at("groups"), on=condition, copy=False), found.columns)


def _conditions(shape: Shape) -> list[Any]:
    equal_keys = [
        equal(column(f"k{place}", "boxes"), column(f"k{place}", "groups"))
        for place in range(len(shape.fixed))
    ]
    for place in range(len(shape.ranged)):
        equal_keys += _range(f"r{place}", f"l{place}", f"h{place}")
    return equal_keys


def _range(value: str, low: str, high: str) -> list[Any]:
    """Return that a value of groups lies between two of boxes."""
    inside = column(value, "groups")
    return [inside >= column(low, "boxes"), inside < column(high, "boxes")]


def cell_columns(cells: Cells, shape: Shape, rows: Codes) -> dict[str, Codes]:
    """Return what is sent of cells: the values they fix and the ends of their ranges."""
    sent = {}
    for place, (fixed, _) in enumerate(shape.fixed):
        value = cells.low[rows, cells.columns.index(fixed)]
        sent[f"k{place}"] = np.where(value == MISSING, GAP, value)
    for place, ranged in enumerate(shape.ranged):
        own = cells.columns.index(ranged)
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
    rest = remainder(exp.paren(remainder(code, width) + width), width)
    return cast(cases((equal(code, number(GAP)), number(GAP)), otherwise=code - rest), "bigint")
