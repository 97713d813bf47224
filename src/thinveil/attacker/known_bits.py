"""How much of all that could be known is known: bits, from the first answer to the last.

Before anything is asked every table that the public facts allow is possible: each record any
value of each public domain, all equally likely (an even prior). What is known rules most of them
out. Its bits are minus log2 of the share that is left (the information content of the event). A
whole table has as many bits as `code_length.table_bits` says, in whichever order it was found.

Columns are taken one after the other, each given those before it (the chain rule), and of each
the most that one of three counts shows:

- the column by itself, its margin: n! / (c1! c2! ...) ways to hand out its values, or fewer;
- the column inside the groups of records that agree on the columns before it;
- both, where the margin is known and groups are known in part: the rest of the margin could lie
  anywhere among the records that are left.

Each count is exact for what it looks at, and none is too small for what is known, so the bits are
never too many. They are exact where all groups or only margins are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thinveil.attacker.findings import ColumnFound, TableFound
from thinveil.attacker.ways import domain_size, log2_choose, log2_factorial
from thinveil.language.queries import Codes, Flags, Floats
from thinveil.language.schema import Schema

Margins = Mapping[int, ColumnFound]


@dataclass(frozen=True, slots=True)
class KnownBits:
    """The bits that are known of a table, and at most how many it has; None where unbounded."""

    known: float
    most: float | None
    columns: tuple[float, ...] = ()  # those known of each column, given the columns before it


class Alone:
    """What margins show by themselves, kept for whoever looks again: they hardly change."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ColumnFound, tuple[float, bool]]] = {}

    def __call__(self, margin: ColumnFound, size: int, records: int) -> tuple[float, bool]:
        """Return the bits of a column by itself, and whether all its records have a value."""
        before = self._kept.get(margin.column)
        if before is None or before[0] is not margin:
            before = margin, _alone(margin, size, records)
            self._kept[margin.column] = before
        return before[1]


def known_bits(schema: Schema, found: TableFound, alone: Alone | None = None) -> KnownBits:
    """Return how many bits of a table are known, and an upper bound on all it has."""
    known: list[float] = []
    most: list[float] = []
    alone = alone or Alone()
    margins = {each.column: each for each in found.margins}
    group = np.zeros(len(found.codes), np.int64)
    records = int(found.counts.sum())
    waiting = np.cumsum(np.bincount(found.known, found.counts, len(found.columns) + 1))
    mine = _distinct if found.distinct else _counted
    single = len(group) == 1  # whether each row is a group: then it has one value, and no order
    for place, column in enumerate(found.columns):
        margin = margins.get(column)
        size = _size(schema, found, place, margin)
        if single and waiting[place] == 0:  # every row has a value
            bits = all_of_it = records * math.log2(size)
        elif single and not found.distinct and waiting[place] == records:  # none has one
            some = margin is not None and (margin.values or margin.ranges)
            bits = alone(margin, size, records)[0] if margin and some else 0.0
            all_of_it = records * math.log2(size)
        else:
            rows = _Rows.of(found, place, group)
            bits, all_of_it = mine(rows, size, margin, records, alone)
            group = rows.after
            single = int(group.max(initial=-1)) + 1 == len(group)
        known.append(bits)
        most.append(max(bits, all_of_it))
    bounded = all(_is_bounded(schema, found, place, margins) for place in range(len(known)))
    return KnownBits(math.fsum(known), math.fsum(most) if bounded else None, tuple(known))


def _is_bounded(schema: Schema, found: TableFound, place: int, margins: Margins) -> bool:
    """Tell whether it is known how many values a column can take, and how many it has."""
    column, whole = found.columns[place], bool((found.known > place).all())
    margin = margins.get(column)
    limited = schema[column].lower is not None or (margin is not None and margin.domain is not None)
    return whole or (limited and not found.distinct)


def whole_bits(schema: Schema, found: TableFound, codes: Codes) -> float:
    """Return the bits of a whole table in the order and among the values of a finding.

    Codes are its records, at the precision of the finding.
    """
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    known = np.full(len(rows), len(found.columns))
    counts = np.ones_like(counts) if found.distinct else counts
    nothing = tuple(
        ColumnFound(each.column, [], each.width, each.distinct, domain=each.domain, partial=True)
        for each in found.margins
    )
    whole = TableFound(
        found.columns, rows, known, counts, found.widths, found.distinct, None, nothing
    )
    return known_bits(schema, whole).known


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """One column of the rows whose columns before it are known."""

    code: Codes  # of those whose value is settled
    counts: Codes  # their records
    after: Codes  # for all rows, the group that they belong to with this column
    of_group: Codes  # the records of each group that the columns before make
    of_value: Codes  # the records of each value in each group
    owner: Codes  # and the group that each of those lies in
    over: Flags  # which groups have no row without a value

    @classmethod
    def of(cls, found: TableFound, place: int, group: Codes) -> _Rows:
        """Take one column of a table; rows agree on the columns before it by groups."""
        there, settled = found.known >= place, found.known > place
        groups = int(group.max(initial=-1)) + 1
        of_group = np.bincount(group[there], found.counts[there], groups).astype(np.int64)
        waiting = there & ~settled
        over = np.bincount(group[waiting], minlength=groups) == 0
        after, owner = group, np.arange(groups)
        if settled.any():
            _, code = np.unique(found.codes[:, place], return_inverse=True)
            many = int(code.max()) + 1
            kinds, after = np.unique(group * many + code.reshape(-1), return_inverse=True)
            owner, after = kinds // many, after.reshape(-1)
        of_value = np.bincount(after[settled], found.counts[settled], len(owner)).astype(np.int64)
        some = of_value > 0
        code, counts = found.codes[settled, place], found.counts[settled]
        return cls(code, counts, after, of_group, of_value[some], owner[some], over)


def _size(schema: Schema, found: TableFound, place: int, margin: ColumnFound | None) -> int:
    """Return how many values a column was believed to be able to take."""
    if margin is not None and margin.domain is not None:
        return margin.domain
    codes = found.codes[found.known > place, place]
    if margin is not None:
        codes = np.concatenate([codes, np.array([code for code, _ in margin.values], np.int64)])
    return domain_size(schema[found.columns[place]], found.widths[place], codes)


def _counted(
    rows: _Rows, size: int, margin: ColumnFound | None, records: int, of: Alone
) -> tuple[float, float]:
    """Return the bits known of a column, and at most how many it has."""
    told, groups = math.log2(size), len(rows.of_group)
    left = rows.of_group - np.bincount(rows.owner, rows.of_value, groups).astype(np.int64)
    many = np.bincount(rows.owner, minlength=groups)
    ways = _orders(rows.of_group) - _orders(left) - _orders(rows.of_value)
    sure = float(rows.of_value.sum())
    others = np.where(left > 0, np.log2(np.maximum(float(size) - many, 1.0) / size), 0.0)
    in_groups = float(sure * told - ways - (left * others).sum())
    shown = [0.0, in_groups]
    if margin is not None and (margin.values or margin.ranges) and sure < records:
        alone, whole = of(margin, size, records)
        shown.append(alone)
        if whole and sure:
            rest = _rest(margin, rows)
            if rest is not None:
                total = _orders(rest.sum()[None]) - _orders(rest)
                shown.append(float(records * told - ways - total))
    return max(shown), float(records * told - ways)


def _alone(margin: ColumnFound, size: int, records: int) -> tuple[float, bool]:
    """Return the bits of a column by itself, and whether all its records have a value."""
    counts = np.array([count for _, count in margin.values], np.int64)
    held = np.array([count for _, count in margin.ranges], np.int64)
    wide = np.array([values for values, _ in margin.ranges], np.float64)
    left = records - int(counts.sum()) - int(held.sum())
    many = np.concatenate([counts, held, [left]])
    ways = _orders(np.array([records])) - _orders(many)
    inside = (held * np.log2(wide / size)).sum()
    if left:  # somewhere among the values that are not settled
        inside += left * math.log2(max(size - len(counts), 1) / size)
    bits = float(counts.sum() * math.log2(size) - ways - inside)
    return max(bits, 0.0), int(counts.sum()) == records


def alone_bits(margin: ColumnFound, size: int, records: int) -> float:
    """Return the bits of a column by itself, ranges that are not told apart yet included."""
    return _alone(margin, size, records)[0]


def _rest(margin: ColumnFound, rows: _Rows) -> Codes | None:
    """Return how often each value of a margin is left, once those of settled rows are gone."""
    values = dict(margin.values)
    codes, place = np.unique(rows.code, return_inverse=True)
    gone = np.bincount(place, rows.counts, len(codes)).astype(np.int64)
    for code, many in zip(codes.tolist(), gone.tolist(), strict=True):
        values[code] = values.get(code, 0) - many
    rest = np.array(list(values.values()), np.int64)
    return None if (rest < 0).any() else rest


def _distinct(
    rows: _Rows, size: int, margin: ColumnFound | None, records: int, of: Alone
) -> tuple[float, float]:
    """Return the bits known of a column whose values are a set in each group, and all of it.

    How many values there are is taken as known. A group that is not over tells nothing yet.
    """
    many = np.bincount(rows.owner, minlength=len(rows.of_group))
    in_groups = float(_choose(size, many[rows.over & (many > 0)]).sum())
    shown = [0.0, in_groups]
    if margin is not None and margin.values and not margin.partial:
        shown.append(float(_choose(size, np.array([len(margin.values)]))[0]))
    return max(shown), in_groups


def _orders(numbers: Codes) -> float:
    """Return log2 of the product of factorials: in how many orders groups can stand."""
    return float(log2_factorial(numbers[numbers > 1]).sum())  # most are 1 in the end


def _choose(size: int, many: Codes) -> Floats:
    return log2_choose(size, many) if len(many) else np.zeros(0)
