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

Where limits are not public, values lie in the range that was doubled, or from the lowest to the
highest value of the whole table, which are named first (`ways.domains`). Of all such limits that
are still possible those count by which least is known, so what is known never gets less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thinveil.attacker.findings import ColumnFound, TableFound
from thinveil.attacker.ways import Domain, domains, log2_choose, log2_factorial, zero_bits
from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes, Flags, Floats
from thinveil.language.schema import MISSING, Attribute, Schema

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
        self._kept: dict[tuple[int, int], tuple[ColumnFound, float]] = {}

    def __call__(self, margin: ColumnFound, size: int, records: int) -> float:
        """Return the bits of a column by itself, all of so many values being equally likely."""
        before = self._kept.get((margin.column, size))
        if before is None or before[0] is not margin:
            before = margin, _alone(margin, size, records)
            self._kept[margin.column, size] = before
        return before[1]

    def bits(self, attribute: Attribute, margin: ColumnFound, records: int) -> float:
        """Return the bits of a column by itself, ranges that are not told apart yet included."""
        among = _among(attribute, margin.width, np.zeros(0, np.int64), margin)
        if attribute.lower is None and not _is_whole(margin, records):
            searched = self(margin, among[0][0], records)
            return min(searched, _margin_open(margin, attribute, records))
        return min(ends + self(margin, size, records) for size, ends in among)


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
        attribute, margin = schema[column], margins.get(column)
        codes = found.codes[found.known > place, place]
        possible = _among(attribute, found.widths[place], codes, margin)
        sure = waiting[place] == 0 or _is_whole(margin, records)  # whether limits are known
        among = possible if sure or found.distinct else possible[:1]
        some = margin is not None and (margin.values or margin.ranges)
        if single and waiting[place] == 0:  # every row has a value
            bits = all_of_it = min(ends + records * math.log2(size) for size, ends in among)
        elif single and not found.distinct and waiting[place] == records:  # none has one
            bits = alone.bits(attribute, margin, records) if margin and some else 0.0
            all_of_it = min(ends + records * math.log2(size) for size, ends in among)
        else:
            rows = _Rows.of(found, place, group)
            each = [(mine(rows, size, margin, records, alone), ends) for size, ends in among]
            bits = min(told + ends for (told, _), ends in each)
            all_of_it = min(whole + ends for (_, whole), ends in each)
            if not sure and not found.distinct and attribute.lower is None:
                shown = alone.bits(attribute, margin, records) if margin and some else 0.0
                bits = max(shown, _limits_open(rows, possible))
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
    there = Different.of(codes)
    rows, known = there.rows, np.full(len(there.rows), len(found.columns))
    counts = np.ones_like(there.often) if found.distinct else there.often
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


def _among(
    attribute: Attribute, width: int, codes: Codes, margin: ColumnFound | None
) -> list[Domain]:
    """Return what the values of a column may be told among; the range searched comes first."""
    if margin is not None:
        codes = np.concatenate([codes, np.array([code for code, _ in margin.values], np.int64)])
    among = domains(attribute, width, codes)
    if margin is None or margin.domain is None:
        return among
    return [(margin.domain, 0.0), *among[1:]]


def _is_whole(margin: ColumnFound | None, records: int) -> bool:
    """Tell whether all records of a column have a value."""
    return margin is not None and sum(count for _, count in margin.values) == records


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
        shown.append(of(margin, size, records))
        if sure and _is_whole(margin, records):
            rest = _rest(margin, rows)
            if rest is not None:
                total = _orders(rest.sum()[None]) - _orders(rest)
                shown.append(float(records * told - ways - total))
    return max(shown), float(records * told - ways)


def _alone(margin: ColumnFound, size: int, records: int) -> float:
    """Return the bits of a column by itself."""
    counts = np.array([count for _, count in margin.values], np.int64)
    held = np.array([count for _, _, count in margin.ranges], np.int64)
    wide = np.array([values for _, values, _ in margin.ranges], np.float64)
    left = records - int(counts.sum()) - int(held.sum())
    many = np.concatenate([counts, held, [left]])
    ways = _orders(np.array([records])) - _orders(many)
    inside = (held * np.log2(wide / size)).sum()
    if left:  # somewhere among the values that are not settled
        inside += left * math.log2(max(size - len(counts), 1) / size)
    return max(float(counts.sum() * math.log2(size) - ways - inside), 0.0)


def _rest(margin: ColumnFound, rows: _Rows) -> Codes | None:
    """Return how often each value of a margin is left, once those of settled rows are gone."""
    values = dict(margin.values)
    codes, place = np.unique(rows.code, return_inverse=True)
    gone = np.bincount(place, rows.counts, len(codes)).astype(np.int64)
    for code, many in zip(codes.tolist(), gone.tolist(), strict=True):
        values[code] = values.get(code, 0) - many
    rest = np.array(list(values.values()), np.int64)
    return None if (rest < 0).any() else rest


def _limits_open(rows: _Rows, among: list[Domain]) -> float:
    """Return the bits known of a column whose limits are not known yet.

    Wherever they lie, they hold the values of settled rows; of each group those count by which
    least is known. Records that are left have another value: N log2(s) - left log2(s - many) is
    least at s = N many / (N - left) values.
    """
    groups = len(rows.of_group)
    settled = np.bincount(rows.owner, rows.of_value, groups)
    many = np.bincount(rows.owner, minlength=groups)[settled > 0]
    if not len(many):
        return 0.0
    of_group, settled = rows.of_group[settled > 0], settled[settled > 0]
    left = of_group - settled.astype(np.int64)
    ways = _orders(of_group) - _orders(left) - _orders(rows.of_value)
    told = []
    for size, ends in among:
        wide = np.where(left > 0, np.maximum(float(size), of_group * many / settled), float(size))
        others = left * np.log2(np.where(left > 0, wide - many, 1.0))
        told.append(ends + float((of_group * np.log2(wide) - others).sum()))
    return min(told) - ways


def _margin_open(margin: ColumnFound, attribute: Attribute, records: int) -> float:
    """Return the bits of a column by itself whose limits are not known yet.

    The least over all limits that are possible (a profile likelihood): they lie in the first and
    in the last part that holds records. Naming them takes as much at least as if the lowest were 0.
    """
    settled = [(code // margin.width, 1, count) for code, count in margin.values if code != MISSING]
    ranges = [(first, *each) for first, *each in margin.ranges if first is not None]
    parts = sorted(part for part in [*settled, *ranges] if part[2])
    there = sum(count for *_, count in parts)
    gone = sum(count for code, count in margin.values if code == MISSING)
    if not parts or there + gone < records:  # of some records nothing is known
        return 0.0
    counts = np.array([gone, *(count for *_, count in parts)], np.int64)
    ways = _orders(np.array([records])) - _orders(counts)
    inner = math.fsum(count * math.log2(wide) for _, wide, count in parts[1:-1])
    (start, wide, count), (end, *last) = parts[0], parts[-1]
    between = int(attribute.missing) + max(end - start - wide, 0)
    least = _least(records, between, (wide, count), None if len(parts) == 1 else (last[0], last[1]))
    return max(zero_bits(max(end, 0)) + least - inner - ways, 0.0)


def _least(
    records: int, between: int, first: tuple[int, int], last: tuple[int, int] | None
) -> float:
    """Return the least of n log2(b + x + y) - c log2(x) - d log2(y) over the widths x and y.

    It is convex in their logarithms: its least lies inside, or on an edge.
    """
    wide, count = first

    def other(fixed: float, wide: int, count: int) -> float:
        most = count * fixed / (records - count) if records > count else math.inf
        return min(max(most, 1.0), float(wide))

    if last is None:
        x = other(between, wide, count) if between else 1.0
        return records * math.log2(between + x) - count * math.log2(x)
    far, many = last
    rest = records - count - many
    tried = [(x, other(between + x, far, many)) for x in (1.0, float(wide))]
    tried += [(other(between + y, wide, count), y) for y in (1.0, float(far))]
    if rest and between:
        inside = (count * between / rest, many * between / rest)
        tried += [inside] if 1 <= inside[0] <= wide and 1 <= inside[1] <= far else []
    return min(
        records * math.log2(between + x + y) - count * math.log2(x) - many * math.log2(y)
        for x, y in tried
    )


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
