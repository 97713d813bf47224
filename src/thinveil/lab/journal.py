"""Every question with its answer, small enough to travel to a browser as it happens.

A range of values is written once, with its words and with the people who lie in it; a cell is a
list of ranges; a question is a list of boxes, each a cell and one more range. The people in a
range are the lab's own knowledge: no attack sees any of this.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from thinveil.curator.tables.dataset import Dataset
from thinveil.lab.wording import range_in_words
from thinveil.language.queries import WHOLE, Answers, Floats, QueryBatch
from thinveil.language.schema import INFINITE, MISSING

MOST: Final = 100_000
"""So many questions are kept; later ones are only counted."""
SHOWN: Final = 2
"""So many answers to one question are kept, and a summary of all."""
NONE: Final = -1
"""Where a box has no range beside its cell."""

Note = dict[str, Any]


class Journal:
    """Writes down questions and answers; what was said once is referred to by its number."""

    def __init__(self, truth: Dataset, most: int = MOST) -> None:
        self.questions = 0
        self._truth = truth
        self._most = most
        self._ranges: dict[tuple[int, int, int], int] = {}
        self._cells: dict[tuple[int, ...], int] = {}

    def write(self, batch: QueryBatch, answers: Answers) -> Note:
        """Write down a batch; return what is new.

        Returns:
            ranges: For each new range: words, column, and its people as bits of a hex number.
            cells: For each new cell, the numbers of its ranges.
            questions: For each question: boxes (a cell and a range in turn), threshold, answer.
                An answer is a number, or [first answers, how many, mean size] with the numbers of
                zeros and ones added where there are any.
        """
        note: Note = {"ranges": [], "cells": [], "questions": []}
        kept = max(0, min(batch.questions, self._most - self.questions))
        self.questions += batch.questions
        known: dict[int, int] = {}
        ends = batch.offsets
        for question in range(kept):
            boxes = []
            span = (question, question + 1) if ends is None else ends[question : question + 2]
            for box in range(int(span[0]), int(span[1])):
                row = int(batch.cell[box])
                if row not in known:
                    known[row] = self._cell(batch, row, note)
                column = int(batch.column[box])
                range_ = NONE
                if column != WHOLE:
                    range_ = self._range(column, int(batch.low[box]), int(batch.high[box]), note)
                boxes += [known[row], range_]
            threshold = int(batch.threshold[question])
            note["questions"].append([boxes, threshold, _told(answers.row(question))])
        return note

    def _cell(self, batch: QueryBatch, row: int, note: Note) -> int:
        cells = batch.cells
        ranges = [
            self._range(column, int(cells.low[row, place]), int(cells.high[row, place]), note)
            for place, column in enumerate(cells.columns)
        ]
        key = tuple(each for each in ranges if each != NONE)
        number = self._cells.get(key)
        if number is None:
            number = self._cells[key] = len(self._cells)
            note["cells"].append(list(key))
        return number

    def _range(self, column: int, low: int, high: int, note: Note) -> int:
        if low == MISSING and high == INFINITE:
            return NONE
        key = (column, low, high)
        number = self._ranges.get(key)
        if number is None:
            number = self._ranges[key] = len(self._ranges)
            codes = self._truth.column(column)
            inside = np.flatnonzero((codes >= low) & (codes < high)).tolist()
            mask = sum(1 << place for place in inside)
            words = range_in_words(self._truth.schema[column], low, high)
            note["ranges"].append([words, column, f"{mask:x}"])
        return number


def _told(values: Floats) -> Any:
    """Return an answer, or a summary of many."""
    if len(values) == 1:
        return short(float(values[0]))
    zeros, ones = int(np.count_nonzero(values == 0)), int(np.count_nonzero(values == 1))
    first = [short(float(each), 4) for each in values[:SHOWN]]
    size = short(float(np.abs(values).mean()), 4)
    return [first, len(values), size, *([zeros, ones] if zeros or ones else [])]


def short(value: float, digits: int = 12) -> int | float:
    """Return a number as it travels: 0 and 1 as they are, else to so many digits.

    >>> short(1.0), short(-0.5), short(1234567.8, 3)
    (1, -0.5, 1230000)
    """
    value = float(f"{value:.{digits}g}")
    return int(value) if value == math.trunc(value) and abs(value) < 2**53 else value
