"""What was found predicts the answers to fresh questions: do they come so? And can it be at all?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.checks.known import Sure
from thinveil.attacker.checks.lots import Lots
from thinveil.attacker.findings import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    PeopleFound,
    TableFound,
)
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Box, Codes, Flags
from thinveil.language.schema import INFINITE, MISSING

_TRIES: Final = 8  # boxes drawn for each that is asked: those with a count of their own come first
_SELDOM: Final = 8  # of distinct records, one box in so many is no single point, one not found
_SOME: Final = -1  # a count that is not known but for being neither 0 nor n


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Records that were found: codes of some columns, how many each row stands for."""

    columns: tuple[int, ...]
    codes: Codes
    counts: Codes
    widths: tuple[int, ...]
    distinct: bool

    def count(self, inside: Flags, n: int) -> int:
        """Return how many of n records lie inside; of distinct ones, none, some or all."""
        if self.distinct:
            return 0 if not inside.any() else n if inside.all() else _SOME
        return int(self.counts[inside].sum())


def crowded(found: object, facts: PublicFacts) -> str:
    """Say what no table of so many records can hold (the pigeonhole principle); else nothing."""
    n = facts.records
    for each in rows_of(found):
        records = int(each.counts.sum())
        if len(each.codes) > n or (not each.distinct and records != n):
            shown = f"{len(each.codes):,} different records" if each.distinct else ""
            shown = shown or f"{records:,} {'record' if records == 1 else 'records'}"
            return f"The answers show {shown}, and the table is said to have {n:,}."
    return ""


def predicted(
    found: object, facts: PublicFacts, asked: Sequence[Box], lots: Lots, many: int
) -> list[Sure]:
    """Return fresh questions whose answers follow from what was found, about `many` of them.

    `asked` are the boxes that an attack on people or on a count was about.
    """
    counted = _told(found, asked, facts)
    rows = rows_of(found)
    for number in range(many if rows else 0):
        each = rows[number % len(rows)]
        drawn = _point if each.distinct and number % _SELDOM else _boxes
        counted += drawn(each, lots, facts.records)
    sures: list[Sure] = []
    for box, count in counted:
        sures += _edges(facts, box, count)
        if len(sures) >= many:
            break
    return sures[:many]


def _edges(facts: PublicFacts, box: Box, count: int) -> list[Sure]:
    """Return the two questions that pin a count down, where its claim has zones."""
    claim, n, k = facts.claim, facts.records, facts.claim.reach
    if count == _SOME:
        return [Sure([box], 1, 0, "a range that holds records by what was found")]
    what = "a range whose count follows from what was found"
    if not claim.counts:
        return [Sure([box], count, 0, what)]
    b = (count + k, count + k - 1) if count + k < n else (count - k - 1, count - k)
    return [Sure([box], count, each, what) for each in b if 0 <= each < n]


def _told(found: object, asked: Sequence[Box], facts: PublicFacts) -> list[tuple[Box, int]]:
    """Return boxes of people, or of a count, with the counts that were found."""
    told: list[tuple[Box, int]] = []
    if isinstance(found, CountFound) and asked:
        count = found.count
        if count is None and found.exists is not None:
            count = _SOME if found.exists else 0
        told = [] if count is None else [(asked[0], count)]
    if isinstance(found, PeopleFound):
        for box, person in zip(asked, found.people, strict=False):
            count = 0 if person.present is False else 1 if person.unique else person.matches
            if count is not None and facts.claim.counts:
                told.append((box, count))
    return told


def rows_of(found: object) -> list[Rows]:
    """Return the records of a table that is known to its end, or those of each column."""
    if isinstance(found, TableFound):
        if not len(found.codes) or (found.known < len(found.columns)).any():
            return []
        return [Rows(found.columns, found.codes, found.counts, found.widths, found.distinct)]
    return [_of_column(each) for each in found.columns] if isinstance(found, ColumnsFound) else []


def _of_column(each: ColumnFound) -> Rows:
    pairs = np.array(each.values, np.int64).reshape(-1, 2)
    return Rows((each.column,), pairs[:, :1], pairs[:, 1], (each.width,), each.distinct)


def _boxes(rows: Rows, lots: Lots, n: int) -> list[tuple[Box, int]]:
    """Return a box drawn at random, and its complement where it has one; with their counts."""
    best: list[tuple[Box, int]] = []
    for _ in range(_TRIES):
        many = 1 + lots.below(min(3, len(rows.columns)))
        first, columns = lots.below(len(rows.columns)), len(rows.columns)
        places = [(first + step) % columns for step in range(many)]
        inside = np.ones(len(rows.codes), np.bool_)
        box: dict[int, tuple[int, int]] = {}
        for place in places:
            ends = _range(rows, place, lots, prefix=many == 1)
            inside &= (rows.codes[:, place] >= ends[0]) & (rows.codes[:, place] < ends[1])
            box[rows.columns[place]] = ends
        count = rows.count(inside, n)
        best = [(box, count)]
        if many == 1:
            [(column, (_, cut))] = box.items()
            best.append(({column: (cut, INFINITE)}, rows.count(~inside, n)))
        if count not in (0, n):
            break
    return best


def _point(rows: Rows, lots: Lots, n: int) -> list[tuple[Box, int]]:
    """Return a record that was found, or one put together of two that was not, with its count.

    Of distinct records wide boxes hold some whatever the table; single points tell tables apart.
    """
    found = rows.codes[lots.below(len(rows.codes))].copy()
    if lots.below(_SELDOM) == 0:
        place = lots.below(len(rows.columns))
        found[place] = rows.codes[lots.below(len(rows.codes)), place]
    inside = (rows.codes == found).all(axis=1)
    ends = zip(rows.columns, found.tolist(), rows.widths, strict=True)
    box = {at: (code, code + (1 if code == MISSING else wide)) for at, code, wide in ends}
    return [(box, rows.count(inside, n))]


def _range(rows: Rows, place: int, lots: Lots, *, prefix: bool) -> tuple[int, int]:
    """Draw a range that ends at values that were found: from the lowest on, or between two."""
    one, other = sorted(lots.below(len(rows.codes)) for _ in range(2))
    codes = rows.codes[:, place]
    low, high = sorted((int(codes[one]), int(codes[other])))
    end = high + (1 if high == MISSING else rows.widths[place])
    return (MISSING, max(low, MISSING + 1)) if prefix else (low, end)
