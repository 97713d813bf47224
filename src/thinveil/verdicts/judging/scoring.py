"""Truth and reconstruction side by side, as multisets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.numbers.different import Different, placed
from thinveil.language.queries import Codes
from thinveil.language.schema import MISSING, Schema
from thinveil.verdicts.judging.chance import expected_overlap


@dataclass(frozen=True, slots=True)
class AttributeScore:
    """How much of one attribute was recovered, against a guess that asks nothing.

    Values count as a multiset. Of different values, the guess loses those that it names and that
    do not occur, or naming all there could be would always win.
    """

    name: str
    recovered: int
    guessed: int
    of: int


@dataclass(frozen=True, slots=True)
class Score:
    """How much of a table was recovered.

    Whole records count as a multiset, beside those that a guess from public facts alone gets
    right on average; attributes stand in schema order. Where only those can be found (Bootstrap
    DP), different records and values are counted, each once.
    """

    records: int
    recovered: int
    guessed: float
    exact: bool
    attributes: tuple[AttributeScore, ...]
    distinct: bool = False


def score(found: TableFound, truth: Dataset) -> Score:
    """Compare a reconstruction with the truth, at the precision of the reconstruction.

    Where only the existence of records is known, different records are compared.
    """
    distinct = found.distinct
    true = coarse(truth.codes[:, found.columns], found.widths)
    even = coarse(evenly(truth.schema, truth.records)[:, found.columns], found.widths)
    actual, blind = counted(true, distinct), counted(even, distinct)
    margins = {each.column: each for each in found.margins}
    complete = found.known == len(found.columns)
    recovered = overlap(*actual, found.codes[complete], found.counts[complete])
    attributes = []
    for column, place in sorted(zip(found.columns, range(len(found.columns)), strict=True)):
        known = found.known > place
        values, mine, named = (
            _column(table, place, distinct)
            for table in (actual, (found.codes[known], found.counts[known]), blind)
        )
        right, guessed = overlap(*values, *mine), named_right(values, named, distinct)
        if column in margins:  # a column is as right as its margin, whosever its values are
            alone = np.array(margins[column].values, np.int64).reshape(-1, 2)
            right = max(right, overlap(*values, alone[:, :1], alone[:, 1]))
        name, of = truth.schema[column].name, int(values[1].sum())
        attributes.append(AttributeScore(name, right, guessed, of))
    records = int(actual[1].sum())
    return Score(
        records=records,
        recovered=recovered,
        guessed=expected_overlap(true, even, distinct),
        exact=recovered == records == int(found.counts.sum()),
        attributes=tuple(attributes),
        distinct=distinct,
    )


Counted = tuple[Codes, Codes]
"""Rows and how often each counts."""


def counted(rows: Codes, distinct: bool) -> Counted:
    """Return rows and how often each counts: different ones once, or all of them."""
    rows = Different.of(rows).rows if distinct else rows
    return rows, np.ones(len(rows), np.int64)


def _column(table: Counted, place: int, distinct: bool) -> Counted:
    values, counts = table[0][:, [place]], table[1]
    return counted(values, distinct) if distinct else (values, counts)


def named_right(actual: Counted, named: Counted, distinct: bool) -> int:
    """Return how many values a guess names rightly.

    Of different values, less those that it names and that do not occur, or naming all there
    could be would always win.
    """
    right = overlap(*actual, *named)
    return max(0, 2 * right - int(named[1].sum())) if distinct else right


def most_common(values: Codes, counts: Codes | None = None) -> int:
    """Return the value that occurs most often, the smallest where several do.

    >>> most_common(np.array([3, 1, 3, 1, 2]))
    1
    """
    kinds, place = placed(values)
    return int(kinds[np.argmax(np.bincount(place, weights=counts))])


def coarse(codes: Codes, widths: tuple[int, ...]) -> Codes:
    """Return codes at the low ends of coarse steps."""
    width = np.array(widths, np.int64)
    if (width == 1).all():
        return codes
    return np.where(codes == MISSING, MISSING, codes // width * width)


def overlap(left: Codes, left_counts: Codes, right: Codes, right_counts: Codes) -> int:
    """Return the size of the intersection of two multisets of rows."""
    both = Different.of(np.concatenate([left, right]))
    ids, size = both.place, len(both.rows)
    a = np.bincount(ids[: len(left)], weights=left_counts, minlength=size)
    b = np.bincount(ids[len(left) :], weights=right_counts, minlength=size)
    return int(np.minimum(a, b).sum())


def guess(schema: Schema, records: int, seed: int) -> Codes:
    """Return one table guessed from public facts alone: even columns, joined by chance."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.permutation(each) for each in evenly(schema, records).T])


def evenly(schema: Schema, records: int) -> Codes:
    """Return the columns of a guess from public facts alone: every domain evenly used.

    Where bounds are not public the guess is zero. It is the floor that an attack must beat, on
    average over all ways to join the columns.
    """
    columns = []
    for attribute in schema:
        lower, upper = attribute.lower, attribute.upper
        if lower is None or upper is None:
            column = np.zeros(records, np.int64)
        elif upper < lower:
            column = np.full(records, MISSING)
        else:
            column = lower + (np.arange(records) * ((upper - lower + 1) / records)).astype(np.int64)
        columns.append(column)
    return np.column_stack(columns)
