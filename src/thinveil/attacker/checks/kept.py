"""Some answers of an attack are kept: does what was found in the end explain them all?

A search that repairs what went wrong ends with a table that fits its last answers. If another
table stood behind the first ones, they do not fit it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from thinveil.attacker.checks.passing import of_rows
from thinveil.attacker.checks.totals import Rows, rows_of
from thinveil.language.queries import Answers, Codes, Floats, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, MISSING

_BATCHES: Final = 512  # batches that are kept at most; then every other one is forgotten
_QUESTIONS: Final = 8  # questions kept of each, spread evenly
_SHARES: Final = (
    0.05,
    0.2,
    0.5,
)  # of early questions that may have another count
_EARLY: Final = 16  # the first so many, twice as many and so on, might come from another table
_WORK: Final = 2**22  # boxes times records that are compared at most (some 20 ms)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Questions of the attack with the counts that follow from what was found."""

    batch: QueryBatch
    answers: Answers
    count: Codes


@dataclass(slots=True)
class Kept:
    """Questions of an attack, from all of its length, with their answers."""

    _kept: list[tuple[QueryBatch, Answers]] = field(default_factory=list)
    _seen: int = 0
    _every: int = 1

    def keep(self, batch: QueryBatch, answers: Answers) -> None:
        """Keep some questions of a batch, whatever their answers are."""
        self._seen += 1
        if self._seen % self._every:
            return
        many = batch.questions
        if many <= _QUESTIONS:
            self._add(batch, answers)
            return
        rows = np.unique(np.linspace(0, many - 1, min(many, _QUESTIONS)).astype(np.int64))
        self._add(batch.some(rows), _some(answers, rows))

    def _add(self, batch: QueryBatch, answers: Answers) -> None:
        self._kept.append((batch, answers))
        if len(self._kept) > _BATCHES:
            self._kept, self._every = self._kept[1::2], 2 * self._every

    def against(self, found: object, n: int) -> Iterator[Told]:
        """Yield what was kept, each with its count, as far as what was found tells it."""
        for rows in rows_of(found):
            left = _WORK
            for batch, answers in self._kept:
                left -= len(rows.codes) * len(batch.cell)
                if left < 0:
                    break
                if told := _counted(rows, batch, answers, n):
                    yield told


def _counted(rows: Rows, batch: QueryBatch, answers: Answers, n: int) -> Told | None:
    """Return questions with their counts; None where what was found does not tell them."""
    columns = batch.columns()
    if not set(columns) <= set(rows.columns) or not columns:
        return None
    low, high = batch.ranges(columns)
    inside = np.ones((len(batch.cell), len(rows.codes)), np.bool_)
    for at, column in enumerate(columns):
        place = rows.columns.index(column)
        codes, width = rows.codes[:, place], rows.widths[place]
        if width > 1 and not (_aligned(low[:, at], width) and _aligned(high[:, at], width)):
            return None
        inside &= (low[:, [at]] <= codes) & (codes < high[:, [at]])
    count = batch.total(inside @ rows.counts)
    if not rows.distinct:
        return Told(batch, answers, count)
    every = count == rows.counts.sum()
    sure = np.flatnonzero((count == 0) | every | (batch.threshold == 0))
    if not len(sure):
        return None
    count = np.where(every, n, np.minimum(count, 1))[sure]
    return Told(batch.some(sure), _some(answers, sure), count)


def _some(answers: Answers, rows: Codes) -> Answers:
    """Return the answers to some questions."""
    values, row = of_rows(answers, rows)
    epsilon = answers.epsilon
    if isinstance(epsilon, np.ndarray):
        epsilon = epsilon[rows]
    return Answers(values, np.bincount(row), epsilon)


def _aligned(ends: Codes, width: int) -> bool:
    """Tell whether all ends lie on the grid of a coarser precision."""
    fixed = (ends <= MISSING + 1) | (ends == INFINITE) | (ends >= LIMIT)
    return bool((fixed | (ends % width == 0)).all())


def lead_of_another_table(lead: Floats, question: Codes) -> float:
    """Return the nats by which another table behind the first answers explains them better.

    Of rows of answers in order, the lead is the log likelihood ratio of the other zone's noise
    to that of the zone which follows from what was found; rows of one question share theirs. The
    mean over how many rows come from another table, and which share of their questions differ,
    is the likelihood ratio of a mixture (an e-value).
    """
    early = [_EARLY << step for step in range(max(1, len(lead).bit_length()))]
    nats = []
    for first in early:
        sums = np.bincount(question[:first], lead[:first])
        nats += [
            np.logaddexp(math.log(1 - share), math.log(share) + sums).sum() for share in _SHARES
        ]
    top = max(nats)
    return float(top + math.log(np.exp(np.array(nats) - top).mean()))
