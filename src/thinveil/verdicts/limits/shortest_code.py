"""The shortest message known that says a table: several codes, each with all that it must name.

A code gives every table a length so that 2^-length sums to at most 1 over all tables (Kraft). It
is a belief about tables, and the best of them bounds how few questions any attack needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from thinveil.attacker.code_length import table_bits
from thinveil.attacker.findings import TableFound
from thinveil.attacker.ways import domain_size, log2_choose, log2_factorial
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.numbers.different import Different
from thinveil.language.queries import Codes, Floats
from thinveil.language.schema import MISSING, Schema
from thinveil.verdicts.judging.nearest import MANY, parents
from thinveil.verdicts.judging.scoring import coarse

CODES: Final = {
    "own": "the attack's own beliefs",
    "even": "even beliefs",
    "columns": "each column by itself",
    "pairs": "columns that tell of each other",
    "xz": "xz",
}
"""All codes by name, and what each goes by."""

_WEIGHTS: Final = (1.0, 0.5, 0.125, 0.02)  # how often an unseen value is counted as seen
_ROOTS: Final = 8  # that are tried, of many columns
_FEW: Final = 4  # a column of more than n / 4 different values tells nothing of others


def shortest(
    own: float, found: TableFound, truth: Dataset, packed: int | None
) -> tuple[float, str]:
    """Return the least bits that say a table that was found whole, and the name of the code.

    Which code it is must be said as well: log2 of how many there are. The even code alone needs no
    name, so nothing is longer. Of a table of different
    records alone columns say nothing, and one too large to be packed has its own and the even
    code alone.
    """
    even = sum(table_bits(truth.schema, found))
    bits: dict[str, float] = {"own": own}
    if packed is not None:
        bits["xz"] = float(packed)
    if packed is not None and not found.distinct:
        widths = dict(zip(found.columns, found.widths, strict=True))
        each = tuple(widths[column] for column in range(len(truth.schema)))
        bits |= by_columns(truth.schema, coarse(truth.codes, each), each)
    name = min(bits, key=lambda key: bits[key])
    named = bits[name] + math.log2(len(CODES))
    return (named, name) if named < even else (even, "even")


def by_columns(schema: Schema, codes: Codes, widths: tuple[int, ...]) -> Mapping[str, float]:
    """Return the bits of a table by its columns alone, and by pairs of them.

    First every column says which values it holds, each out of the range that it says before.
    Then the records: independent columns whose counts are told, or a tree in which every column
    but one is predicted by another, by how often its values went together so far (Dirichlet
    mixtures). Records have no order, which saves log2 of the number of their orders.
    """
    n, ranks, first = len(codes), [], 0.0
    for column, attribute in enumerate(schema):
        there, rank = np.unique(codes[:, column], return_inverse=True)
        ranks.append(rank.astype(np.int64))
        size = domain_size(attribute, widths[column], codes[:, column] * widths[column])
        first += _values_bits(there, size, n)
    orders = _orders(Different.of(codes).often)
    alone = np.array([_counted_bits(np.bincount(rank)) for rank in ranks])
    told = {"columns": max(0.0, first + float(alone.sum()) - orders)}
    tree = _tree_bits(ranks, alone)
    return told | {"pairs": max(0.0, first + tree - orders)}


def _values_bits(there: Codes, size: int, n: int) -> float:
    """Return the bits of which values a column holds: its ends, how many, and which."""
    values = there[there != MISSING]
    if not len(values):
        return math.log2(size + 1)
    span = int(values[-1]) - int(values[0]) + 1
    inner = np.array([max(len(values) - 2, 0)])
    which = float(log2_choose(max(span - 2, 1), np.minimum(inner, max(span - 2, 0)))[0])
    doubled = 2 * math.log2(1 + math.log2(size + 1)) + 1  # how far a range was doubled
    ends = 2 * math.log2(size + 1) + 1  # and whether values are missing
    return ends + doubled + math.log2(n + 1) + which


def _orders(counts: Codes) -> float:
    """Return log2 of how many orders things have of which some are alike."""
    return float(log2_factorial(np.array([counts.sum()]))[0] - log2_factorial(counts).sum())


def _counted_bits(counts: Codes) -> float:
    """Return the bits of one column by itself: how often each value occurs, then where."""
    n, d = int(counts.sum()), len(counts)
    return float(log2_choose(n + d - 1, np.array([d - 1]))[0]) + _orders(counts)


def _tree_bits(ranks: list[Codes], alone: Floats) -> float:
    """Return the bits of a tree over columns: grown from the column that saves most (Prim).

    Of many columns the few are tried as its root that may save most of others.
    """
    many = len(ranks)
    naming = math.log2(many) + math.log2(len(_WEIGHTS) + 1)
    saved = np.zeros((many, many))  # by the second, of the first
    told = [int(by.max(initial=0)) + 1 <= max(len(by) // _FEW, 2) for by in ranks]
    if not any(told):
        return float(alone.sum()) + many * naming
    for column, others in enumerate(parents(ranks)):
        for parent in others:
            if told[parent]:
                less = _given_bits(ranks[column], ranks[parent])
                saved[column, parent] = alone[column] - less
    roots = np.argsort(-np.maximum(saved, 0.0).sum(axis=0), kind="stable")
    best = math.inf
    for root in roots[: many if many <= MANY else _ROOTS].tolist():
        gains, total = saved[:, root].copy(), float(alone.sum())
        within = np.zeros(many, np.bool_)
        within[root] = True
        for _ in range(many - 1):
            gains[within] = -math.inf
            column = int(gains.argmax())
            total -= max(float(gains[column]), 0.0)
            within[column] = True
            gains = np.maximum(gains, saved[:, column])
        best = min(best, total)
    return best + many * naming


def _given_bits(rank: Codes, by: Codes) -> float:
    """Return the bits of a column given another: the best weight of what was never seen."""
    d = int(rank.max()) + 1
    pairs, counts = np.unique(by * np.int64(d) + rank, return_counts=True)
    starts = np.flatnonzero(np.diff(pairs // d, prepend=-1))
    groups = np.add.reduceat(counts, starts)
    return min(
        float(_rising(d * weight, groups).sum() - _rising(weight, counts).sum())
        for weight in _WEIGHTS
    )


def _rising(start: float, counts: Codes) -> Floats:
    """Return log2 of start (start + 1) ... for so many factors."""
    table = np.concatenate([[0.0], np.cumsum(np.log2(start + np.arange(int(counts.max()))))])
    rising: Floats = table[counts]
    return rising
