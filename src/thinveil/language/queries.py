"""Questions in columns: is the number of records in this region above that threshold?

A *box* holds the records whose values lie in half-open ranges, on any attributes.
A question asks about one box or about a union of disjoint boxes, against a whole-number
threshold b: "is c > b?". Questions travel in batches of plain arrays.

Most boxes of one batch share most of their ranges (a group of records found earlier), so
a box is written as a row of a shared table of `Cells`, narrowed by one more range.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.errors import QueryError
from thinveil.language.schema import INFINITE, LIMIT, MISSING

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Loss = float | Floats | None
"""The claimed loss of an answer: one number, one a question, or None where nothing is claimed."""

WHOLE: Final = -1
"""The column of a box that narrows its cell no further."""

LOOK: Final = 1000
"""So many boxes are enough for a first look (a round figure)."""


def codes(values: Any) -> Codes:
    """Return values as a read-only array of codes."""
    array: Codes = _to_read(np.asarray(values, dtype=np.int64))
    return array


def _to_read(value: Any) -> Any:
    """Return an array as one that can only be read, its content shared; all else as it is."""
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    array = value.view()
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Cells:
    """A table of boxes that a batch's own boxes start from.

    Args:
        columns: The attributes that the cells restrict.
        low: For each cell and column, where the range starts.
        high: For each cell and column, where the range ends (not included).
    """

    columns: tuple[int, ...]
    low: Codes
    high: Codes
    digest: bytes = field(init=False, repr=False)
    _kinds: Kinds | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        low, high = codes(self.low), codes(self.high)
        if low.ndim != 2 or low.shape != high.shape or low.shape[1] != len(self.columns):
            raise QueryError("cells need one low and one high end for each column")
        if len(set(self.columns)) != len(self.columns) or min(self.columns, default=0) < 0:
            raise QueryError("a cell's columns must be different attributes of the table")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        seal = hashlib.blake2b(repr((self.columns, low.shape)).encode(), digest_size=16)
        seal.update(low.tobytes())
        seal.update(high.tobytes())
        object.__setattr__(self, "digest", seal.digest())

    def __len__(self) -> int:
        return len(self.low)

    def kinds(self) -> Kinds:
        """Tell which cells certainly lie apart; worked out once."""
        if self._kinds is None:
            object.__setattr__(self, "_kinds", Kinds.of(self.low, self.high))
        assert self._kinds is not None
        return self._kinds

    @staticmethod
    def everything() -> Cells:
        """Return the one cell that restricts nothing."""
        return Cells((), np.empty((1, 0), np.int64), np.empty((1, 0), np.int64))

    @staticmethod
    def points(columns: Sequence[int], values: npt.ArrayLike, widths: Sequence[int] = ()) -> Cells:
        """Return cells that each fix every column to one value, or to one coarse step of it.

        A missing value stays a cell of its own at any width.
        """
        table = np.atleast_2d(np.asarray(values, dtype=np.int64))
        width = np.asarray(widths if len(widths) else [1] * len(columns), dtype=np.int64)
        return Cells(tuple(columns), table, table + np.where(table == MISSING, 1, width))


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """A number for each cell of a table; cells of different numbers lie apart.

    Columns in which any two cells have equal or disjoint ranges (values, aligned steps, a
    missing value) tell cells apart; cells with equal ranges in all of them are of one kind.

    Args:
        number: For each cell, its kind; cells that hold nothing may have any.
        exact: Whether cells of one kind are the same box, unless they hold nothing.
        filled: For each cell, whether it holds anything.
    """

    number: Codes
    exact: bool
    filled: Flags

    @staticmethod
    def of(low: Codes, high: Codes) -> Kinds:
        """Return the kinds of cells, given their ranges."""
        filled = np.all(low < high, axis=1)
        lows, highs = low[filled], high[filled]
        telling = [at for at in range(low.shape[1]) if _apart(lows[:, at], highs[:, at])]
        number = np.zeros(len(low), np.int64)
        if telling:
            starts = low[:, telling]
            order = np.lexsort(starts.T)
            starts = starts[order]
            number[order[1:]] = np.cumsum((starts[1:] != starts[:-1]).any(axis=1))
        return Kinds(number, len(telling) == low.shape[1], filled)


def _apart(low: Codes, high: Codes) -> bool:
    """Tell whether any two of these ranges, none of them empty, are equal or disjoint."""
    if (high - low == 1).all():
        return True
    if len(low) > 2 * LOOK and not _apart(low[:LOOK], high[:LOOK]):
        return False
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    equal = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    return bool((equal | (high[:-1] <= low[1:])).all())


@dataclass(frozen=True, slots=True)
class About:
    """What a batch is about, and a cheap look at what has been recovered so far.

    Args:
        label: A short phrase for people.
        done: How much of the attack's work is settled, between 0 and 1.
        so_far: Called only when somebody looks; returns the reconstruction so far.
        risk: The chance, planned so far, that the attack decided something wrongly.
        proved: Whether that holds of what is known so far; else proofs come at the end.
        channel: What came of looking at doubles, where the attack does.
        check: Whether it is asked to check the claim, beside the attack.
        checked: What such checks found so far, where there are some.
    """

    label: str = ""
    done: float = 0.0
    so_far: Callable[[], Any] = lambda: None
    risk: float = 0.0
    channel: Any = None
    proved: bool = True
    check: bool = False
    checked: Any = None


_NOTHING = About()
_ARRAYS = ("cell", "column", "low", "high", "threshold", "offsets", "repeats")


@dataclass(frozen=True, slots=True, eq=False)
class QueryBatch:
    """A batch of threshold questions, as columns.

    Args:
        cells: The table of cells that boxes start from.
        cell: For each box, its row in `cells`.
        column: For each box, the attribute that it narrows, or WHOLE.
        low: For each box, where the narrowing range starts.
        high: For each box, where it ends (not included).
        threshold: For each question, b in "is c > b?"; any whole number.
        offsets: Question q asks about boxes offsets[q] to offsets[q + 1]; None where
            every question has exactly one box.
        repeats: How many answers each question wants, one number or one a question.
        about: What the batch is about.
        epsilon: Stamped by the driver: the claimed privacy loss of each single answer,
            one number or one a question; None where nothing is claimed.
        key: Stamped by the driver: run and number of the batch.
    """

    cells: Cells
    cell: Codes
    column: Codes
    low: Codes
    high: Codes
    threshold: Codes
    offsets: Codes | None = None
    repeats: int | Codes = 1
    about: About = _NOTHING
    epsilon: Loss = None
    key: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            value = getattr(self, name)
            if isinstance(value, int) or value is None:
                continue
            if type(value) is not np.ndarray or value.dtype != np.int64:
                try:
                    whole = np.asarray(value).astype(np.int64, casting="safe")
                except (TypeError, ValueError, OverflowError):
                    raise QueryError(f"{name} must be an array of whole numbers") from None
                object.__setattr__(self, name, whole)
        self._check_boxes()
        if not len(self.threshold):
            raise QueryError("a batch needs at least one question")
        if self.cell.min() < 0 or self.cell.max() >= len(self.cells):
            raise QueryError("a box refers to a cell that is not in the table of cells")
        repeats = np.asarray(self.repeats)
        if repeats.shape not in ((), self.threshold.shape) or repeats.min() < 1:
            raise QueryError("every question wants at least one answer")
        if self.cells.columns and np.isin(self.column, self.cells.columns).any():
            raise QueryError("a box narrows a column that its cell restricts already")

    def _check_boxes(self) -> None:
        """Refuse columns of different lengths, and boxes that are not shared out."""
        boxes = self.cell.shape
        if len(boxes) != 1 or {self.column.shape, self.low.shape, self.high.shape} != {boxes}:
            raise QueryError("every box needs a cell, a column, a low and a high end")
        ends = self.offsets
        if ends is None:
            if self.threshold.shape != boxes:
                raise QueryError("every question needs a threshold and one box")
        elif ends.shape != (len(self.threshold) + 1,) or ends[0] != 0 or ends[-1] != boxes[0]:
            raise QueryError("the offsets do not share the boxes out over the questions")
        elif (np.diff(ends) < 1).any():
            raise QueryError("every question needs at least one box")

    @property
    def questions(self) -> int:
        """How many questions there are, repeats not counted."""
        return len(self.threshold)

    @property
    def queries(self) -> int:
        """How many answers will be drawn, repeats counted."""
        if isinstance(self.repeats, int):
            return self.repeats * len(self.threshold)
        return int(self.repeats.sum())

    def stamped(self, key: tuple[str, int], epsilon: Loss) -> QueryBatch:
        """Return this batch as it is handed to a target, with its key and its privacy budget.

        The arrays are shared, and can only be read; what the batch is about stays with the attack.
        """
        copy = object.__new__(QueryBatch)
        for name in _ARRAYS:
            object.__setattr__(copy, name, _to_read(getattr(self, name)))
        for name, value in (("cells", self.cells), ("about", _NOTHING), ("key", key)):
            object.__setattr__(copy, name, value)
        object.__setattr__(copy, "epsilon", _to_read(epsilon))
        return copy

    def some(self, rows: Codes) -> QueryBatch:
        """Return some questions of this batch, by their numbers."""
        box, offsets, repeats, epsilon = rows, None, self.repeats, self.epsilon
        if self.offsets is not None:
            sizes = np.diff(self.offsets)[rows]
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            box = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        boxes: dict[str, Any] = {name: getattr(self, name)[box] for name in _ARRAYS[:4]}
        return replace(
            self,
            **boxes,
            threshold=self.threshold[rows],
            offsets=offsets,
            repeats=repeats if isinstance(repeats, int) else repeats[rows],
            epsilon=epsilon[rows] if isinstance(epsilon, np.ndarray) else epsilon,
        )

    def digest(self) -> bytes:
        """Return 16 bytes that change whenever a question does."""
        seal = hashlib.blake2b(self.cells.digest, digest_size=16)
        for part in (self.cell, self.column, self.low, self.high, self.threshold):
            seal.update(part.tobytes())
        if self.offsets is not None:
            seal.update(b"union" + self.offsets.tobytes())
        each = self.repeats
        seal.update(b"repeats %d" % each if isinstance(each, int) else each.tobytes())
        return seal.digest()

    def total(self, per_box: Codes) -> Codes:
        """Add up a figure per box to one per question."""
        if self.offsets is None:
            return per_box
        return np.add.reduceat(per_box, self.offsets[:-1])

    def ranges(self, columns: Sequence[int]) -> tuple[Codes, Codes]:
        """Return dense low and high ends, a row a box, for the given columns."""
        low = np.full((len(self.cell), len(columns)), MISSING, np.int64)
        high = np.full((len(self.cell), len(columns)), INFINITE, np.int64)
        for place, column in enumerate(columns):
            if column in self.cells.columns:
                own = self.cells.columns.index(column)
                low[:, place] = self.cells.low[self.cell, own]
                high[:, place] = self.cells.high[self.cell, own]
            narrowed = self.column == column
            low[narrowed, place] = self.low[narrowed]
            high[narrowed, place] = self.high[narrowed]
        return low, high

    def columns(self) -> list[int]:
        """Return every column that some box restricts."""
        return sorted({*self.cells.columns, *self.column.tolist()} - {WHOLE})


Range = tuple[int, int]
Box = Mapping[int, Range]


def batch_of(
    questions: Iterable[tuple[Sequence[Box], int]],
    repeats: int | Sequence[int] | Codes = 1,
    about: About = _NOTHING,
) -> QueryBatch:
    """Build a batch from boxes written as {column: (low, high)}, for any shape of question.

    >>> batch = batch_of([([{0: (3, 7)}], 2), ([{0: (1, 2)}, {1: (0, 5)}], 0)])
    >>> batch.questions, len(batch.cell)
    (2, 3)
    """
    asked = list(questions)
    boxes = [box for union, _ in asked for box in union]
    columns = sorted({column for box in boxes for column in box})
    ranges = [box.get(column, (MISSING, INFINITE)) for box in boxes for column in columns]
    ends = np.array(ranges, np.int64).reshape(len(boxes), len(columns), 2)
    sizes = [len(union) for union, _ in asked]
    return QueryBatch(
        cells=Cells(tuple(columns), ends[:, :, 0], ends[:, :, 1]),
        cell=np.arange(len(boxes), dtype=np.int64),
        column=np.full(len(boxes), WHOLE, np.int64),
        low=np.full(len(boxes), MISSING, np.int64),
        high=np.full(len(boxes), INFINITE, np.int64),
        threshold=np.array([min(max(b, -LIMIT), LIMIT) for _, b in asked], dtype=np.int64),
        offsets=np.cumsum([0, *sizes]) if any(size != 1 for size in sizes) else None,
        repeats=repeats if isinstance(repeats, int) else codes(repeats),
        about=about,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What came back for a batch: a row of one or more numbers for each question.

    Args:
        values: All answers in order, the repeats of a question next to each other.
        repeats: How many answers belong to each question, as in the batch.
        epsilon: The claimed loss of each single answer, as stamped on the batch.
    """

    values: Floats
    repeats: int | Codes = 1
    epsilon: Loss = None

    def row(self, question: int) -> Floats:
        """Return the answers to one question."""
        each = self.repeats
        start = question * each if isinstance(each, int) else int(each[:question].sum())
        return self.values[start : start + (each if isinstance(each, int) else each[question])]
