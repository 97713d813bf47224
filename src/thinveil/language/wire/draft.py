"""A batch in the making: questions are read one by one, and kept as columns.

What is wrong or too much ends it where it stands. Ranges of a question are codes, as `json` says.
"""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

from thinveil.errors import FieldError
from thinveil.language.queries import WHOLE, Cells, Codes, Loss, QueryBatch, Range
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Schema
from thinveil.language.wire.limits import MOST_EPSILON, Limits, check_size
from thinveil.language.wire.reader import Reader, TooLong

_EXACT: Final = 2**53  # whole numbers up to here are exact as doubles, and may be written so
_USUAL, _NO_LOSS = -2.0, -1.0  # of a question: as said at the top, and null
_QUESTION: Final = frozenset({"boxes", "more_than", "epsilon", "repeats"})


class Draft:
    """A batch in the making, as columns; a wrong or needless question ends it at once."""

    def __init__(self, schema: Schema, limits: Limits) -> None:
        self.repeats: int | None = None  # of all questions, once it was read
        self.epsilon: float | None = None
        self._limits = limits
        self._column_of = {name: column for column, name in enumerate(schema.names)}
        self._ends = array("q")  # of every range: its box, its column, low and high
        self._sizes, self._threshold = array("q"), array("q")
        self._own_repeats, self._own_epsilon = array("q"), array("d")
        self._boxes = self._answers = self._pairs = 0

    def read(self, reader: Reader) -> None:
        """Read the list of questions."""
        if reader.next() != "[":
            raise FieldError("questions", "must be a list")
        for number in reader.elements():
            if reader.next() != "{":
                raise FieldError(f"questions[{number}]", "must be an object")
            before = self._boxes
            try:
                pairs = reader.value()
            except TooLong:
                given = self._piecemeal(reader, number)
            else:
                assert isinstance(pairs, tuple)
                given = dict(pairs)
                if len(given) < len(pairs):
                    raise FieldError(f"questions[{number}]", "a name stands twice")
            self._add(number, before, given)

    def _piecemeal(self, reader: Reader, number: int) -> dict[str, object]:
        """Read a question that is too long to be read at once, box by box."""
        where = f"questions[{number}]"
        given: dict[str, object] = {}
        for name in reader.members():
            known_name(name, _QUESTION, where)
            if name == "boxes" and reader.next() == "[":
                given[name] = ()
                for at in reader.elements():
                    self._box(short_value(reader, f"{where}.boxes[{at}]"), number, at)
                    check_size(0, self._boxes, (at + 1) ** 2, self._limits)
            else:
                given[name] = short_value(reader, f"{where}.{name}")
        return given

    def _add(self, number: int, before: int, given: dict[str, object]) -> None:
        """Take a question in; before it there were so many boxes."""
        if not _QUESTION.issuperset(given):
            known_name(next(iter(given.keys() - _QUESTION)), _QUESTION, f"questions[{number}]")
        union = given.get("boxes")
        if isinstance(union, list):
            for at, box in enumerate(union):
                self._box(box, number, at)
        elif union != ():
            raise FieldError(f"questions[{number}].boxes", "must be a list")
        size = self._boxes - before
        if not size:
            where = f"questions[{number}].boxes"
            raise FieldError(where, "every question needs at least one box")
        repeats = 0
        if "repeats" in given:
            repeats = repeats_of(given["repeats"], f"questions[{number}].repeats")
        self._answers += repeats or self.repeats or 1
        self._pairs += size * size
        check_size(self._answers, self._boxes, self._pairs, self._limits)
        if (threshold := _integral(given.get("more_than"))) is None:
            raise FieldError(f"questions[{number}].more_than", "must be a whole number")
        self._threshold.append(min(max(threshold, -LIMIT), LIMIT))
        self._sizes.append(size)
        self._own_repeats.append(repeats)
        epsilon = _USUAL
        if "epsilon" in given:
            epsilon = loss_of(given["epsilon"], f"questions[{number}].epsilon") or _NO_LOSS
        self._own_epsilon.append(epsilon)

    def _box(self, box: object, number: int, at: int) -> None:
        """Take a box in, at some place of a question."""
        if not isinstance(box, tuple):
            where = f"questions[{number}].boxes[{at}]"
            raise FieldError(where, "must be an object of ranges, by the names of attributes")
        for name, span in box:
            if (column := self._column_of.get(name)) is None:
                where = f"questions[{number}].boxes[{at}]"
                raise FieldError(where, "names an attribute that the table does not have")
            try:
                low, high = _range(span)
            except ValueError as error:
                where = f"questions[{number}].boxes[{at}], attribute {column}"
                raise FieldError(where, str(error)) from None
            self._ends.extend((self._boxes, column, low, high))
        if len(box) > 1 and len(dict(box)) < len(box):
            raise FieldError(f"questions[{number}].boxes[{at}]", "names an attribute twice")
        self._boxes += 1

    def batch(self) -> QueryBatch:
        """Return what was read, now that all of it is known."""
        if not self._sizes:
            raise FieldError("questions", "a batch needs at least one question")
        own = np.array(self._own_repeats, np.int64)
        usual = self.repeats or 1
        check_size(int(own.sum()) + usual * int((own == 0).sum()), 0, 0, self._limits)
        repeats = np.where(own == 0, usual, own)
        cells, narrowed = self._ranges()
        sizes = np.array(self._sizes, np.int64)
        return QueryBatch(
            cells,
            *narrowed,
            threshold=np.array(self._threshold, np.int64),
            offsets=np.concatenate([[0], np.cumsum(sizes)]) if (sizes != 1).any() else None,
            repeats=repeats[0].item() if (repeats == repeats[0]).all() else repeats,
            epsilon=self._losses(),
        )

    def _ranges(self) -> tuple[Cells, tuple[Codes, Codes, Codes, Codes]]:
        """Return cells, and of every box its cell, its column, low and high.

        Where no box has two ranges, all of them narrow one cell, which is counted fastest.
        """
        boxes = self._boxes
        box, column, low, high = np.array(self._ends, np.int64).reshape(-1, 4).T
        cell, narrows = np.zeros(boxes, np.int64), np.full(boxes, WHOLE, np.int64)
        starts, ends = np.full(boxes, MISSING, np.int64), np.full(boxes, INFINITE, np.int64)
        if (np.diff(box) > 0).all():
            narrows[box], starts[box], ends[box] = column, low, high
            return Cells.everything(), (cell, narrows, starts, ends)
        columns, place = np.unique(column, return_inverse=True)
        lows = np.full((boxes, len(columns)), MISSING, np.int64)
        highs = np.full((boxes, len(columns)), INFINITE, np.int64)
        lows[box, place], highs[box, place] = low, high
        cells = Cells(tuple(columns.tolist()), lows, highs)
        return cells, (np.arange(boxes, dtype=np.int64), narrows, starts, ends)

    def _losses(self) -> Loss:
        """Return one loss for all questions, one for each, or none."""
        own = np.array(self._own_epsilon)
        losses = np.where(own == _USUAL, self.epsilon or _NO_LOSS, own)
        if (losses == losses[0]).all():
            return None if losses[0] == _NO_LOSS else float(losses[0])
        if (losses == _NO_LOSS).any():
            raise FieldError("epsilon", "give every question a loss, or none of them")
        return losses


def short_value(reader: Reader, where: str) -> object:
    """Read a value that is short wherever it is right."""
    try:
        return reader.value()
    except TooLong:
        raise FieldError(where, "is longer than it can be") from None


def known_name(name: str, known: frozenset[str], where: str) -> None:
    """Refuse a name that no field has."""
    if name not in known:
        raise FieldError(where, f"unknown field; known are {', '.join(sorted(known))}")


def _integral(value: object) -> int | None:
    """Return a whole number, or None where it is none."""
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value if type(value) is int else None


def _whole(value: object, where: str) -> int:
    if (whole := _integral(value)) is None:
        raise FieldError(where, "must be a whole number")
    return whole


def repeats_of(value: object, where: str) -> int:
    """Read how many answers a question wants."""
    repeats = _whole(value, where)
    if repeats < 1:
        raise FieldError(where, "must be at least 1")
    return repeats


def loss_of(value: object, where: str) -> float | None:
    """Read a loss; null where nothing is claimed."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FieldError(where, "must be a number")
    if not 0 < value <= MOST_EPSILON:
        raise FieldError(where, f"must lie above zero, and not above {MOST_EPSILON:g}")
    return float(value)


def _range(value: object) -> Range:
    """Read a range; a ValueError says what is wrong with it."""
    if isinstance(value, list) and len(value) == 2:
        low, high = value
        return _code(low, MISSING), _code(high, INFINITE)
    if value == "missing":
        return MISSING, LOWEST
    raise ValueError('must be [low, high] or "missing"')


def _code(value: object, if_open: int) -> int:
    if value is None:
        return if_open
    if (code := _integral(value)) is None:
        raise ValueError("must be a whole number")
    if MISSING <= code <= INFINITE:
        return code
    raise ValueError("a code must fit into 64 bits")
