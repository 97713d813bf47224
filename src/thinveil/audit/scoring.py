"""Truth and reconstruction side by side, as multisets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinveil.attacker.found import TableFound
from thinveil.curator.dataset import Dataset
from thinveil.language.queries import Codes
from thinveil.language.schema import MISSING, Schema


@dataclass(frozen=True, slots=True)
class AttributeScore:
    """How much of one attribute was recovered, against a guess that asks nothing."""

    name: str
    recovered: int
    guessed: int


@dataclass(frozen=True, slots=True)
class Score:
    """How much of a table was recovered.

    Args:
        records: How many records there are.
        recovered: How many whole records were recovered, counted as a multiset.
        guessed: How many whole records a guess from public facts alone gets right.
        exact: Whether the reconstruction equals the table.
        attributes: The same for each attribute, in schema order.
    """

    records: int
    recovered: int
    guessed: int
    exact: bool
    attributes: tuple[AttributeScore, ...]


def score(found: TableFound, truth: Dataset, seed: int = 0) -> Score:
    """Compare a reconstruction with the truth, at the precision of the reconstruction."""
    actual = coarse(truth.codes[:, found.columns], found.widths)
    blind = coarse(guess(truth.schema, truth.records, seed)[:, found.columns], found.widths)
    one = np.ones(truth.records, np.int64)
    complete = found.known == len(found.columns)
    recovered = overlap(actual, one, found.codes[complete], found.counts[complete])
    attributes = []
    for place, column in enumerate(found.columns):
        known = found.known > place
        values = actual[:, [place]]
        attributes.append(
            (
                column,
                AttributeScore(
                    truth.schema[column].name,
                    overlap(values, one, found.codes[known][:, [place]], found.counts[known]),
                    overlap(values, one, blind[:, [place]], one),
                ),
            )
        )
    return Score(
        records=truth.records,
        recovered=recovered,
        guessed=overlap(actual, one, blind, one),
        exact=recovered == truth.records == int(found.counts.sum()),
        attributes=tuple(each for _, each in sorted(attributes, key=lambda pair: pair[0])),
    )


def coarse(codes: Codes, widths: tuple[int, ...]) -> Codes:
    """Return codes at the low ends of coarse steps."""
    width = np.array(widths, np.int64)
    if (width == 1).all():
        return codes
    return np.where(codes == MISSING, MISSING, codes // width * width)


def overlap(left: Codes, left_counts: Codes, right: Codes, right_counts: Codes) -> int:
    """Return the size of the intersection of two multisets of rows."""
    ids = np.zeros(len(left) + len(right), np.int64)
    for place in range(left.shape[1]):
        values, code = np.unique(
            np.concatenate([left[:, place], right[:, place]]), return_inverse=True
        )
        _, ids = np.unique(ids * len(values) + code, return_inverse=True)
    size = int(ids.max(initial=-1)) + 1
    a = np.bincount(ids[: len(left)], weights=left_counts, minlength=size)
    b = np.bincount(ids[len(left) :], weights=right_counts, minlength=size)
    return int(np.minimum(a, b).sum())


def guess(schema: Schema, records: int, seed: int) -> Codes:
    """Return a table guessed from public facts alone: every domain evenly used.

    Where bounds are not public the guess is zero. It is the floor that an attack must beat.
    """
    rng = np.random.default_rng(seed)
    columns = []
    for attribute in schema:
        lower, upper = attribute.lower, attribute.upper
        if lower is None or upper is None:
            column = np.zeros(records, np.int64)
        elif upper < lower:
            column = np.full(records, MISSING)
        else:
            column = lower + (np.arange(records) * ((upper - lower + 1) / records)).astype(np.int64)
        columns.append(rng.permutation(column))
    return np.column_stack(columns)
