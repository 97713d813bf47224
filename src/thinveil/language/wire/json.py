"""How batches and answers travel between programs, as JSON for people.

A batch, with ranges of codes by the name of their attribute::

    {
      "key": "my run, batch 1",
      "epsilon": 1e-10,
      "questions": [
        {"boxes": [{"age": [30, 40], "job": [2, 3]}], "more_than": 5},
        {"boxes": [{"age": [null, 18]}, {"age": [65, null]}], "more_than": 0, "repeats": 3},
        {"boxes": [{"age": "missing"}], "more_than": 0}
      ]
    }

A range is half open: [30, 40] holds 30 and leaves 40 out. A null end is open; a null low end
includes missing values, and -9223372036854775807 is the open end that leaves them out. The
text "missing" stands for the missing values alone. A box without ranges holds every record.
"repeats" and "epsilon" stand at the top for all questions, or in a question for itself.

Two bodies are the same batch if they ask the same boxes, in the same order, at the same loss;
`content_digest` decides. `arrow` has the same in columns.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.errors import FieldError, TooLarge
from thinveil.language.queries import Codes, Floats, Loss, QueryBatch, Range, batch_of
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Schema

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,:+-]{0,199}")
"""What a batch's key may look like: it stands in logs and in the ledger."""

MOST_EPSILON: Final = 1e100
"""No loss is larger: sums of any number of them stay within doubles."""

_JSON: Final = 2**24
_CELLS: Final = 2**24  # boxes times attributes: what a batch may hold once it is spread out
_NARROW: Final = (np.int8, np.int16, np.int32)
_EXACT: Final = 2**53  # whole numbers up to here are exact as doubles, and may be written so
_TOP: Final = frozenset({"key", "epsilon", "repeats", "questions"})
_QUESTION: Final = frozenset({"boxes", "more_than", "epsilon", "repeats"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a service takes at once.

    Args:
        answers: The most answers to one batch, repeats counted.
        boxes: The most boxes in one batch.
        body: The most bytes of one request.
        json: The most bytes of one in JSON, which takes far more room once it is read.
        pairs: The most pairs of boxes within questions: all of them may have to be compared.
    """

    answers: int
    boxes: int
    body: int
    json: int = _JSON
    pairs: int = 2**26

    @staticmethod
    def of(schema: Schema, answers: int, body: int) -> Limits:
        """Return limits that fit a table: the more attributes, the fewer boxes."""
        boxes = min(4 * answers, max(_CELLS // len(schema), 1024))
        return Limits(answers, boxes, body, min(body, _JSON))


@dataclass(frozen=True, slots=True)
class Asked:
    """A batch with the key under which it is charged once."""

    key: str
    batch: QueryBatch

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not KEY.fullmatch(self.key):
            raise FieldError(
                "key", "must be 1 to 200 letters, digits, spaces and _ . , : + -, the first no sign"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """The answers to a batch, and what they cost.

    Args:
        key: The key of the batch.
        values: All answers in order, the repeats of a question next to each other.
        cost: The claimed loss that was charged, as an exact text such as "3/1000".
        left: What is left of the budget, as an exact text.
        again: Whether these are the answers of an earlier request with the same key.
    """

    key: str
    values: Floats
    cost: str
    left: str
    again: bool


def content_digest(batch: QueryBatch) -> bytes:
    """Return 16 bytes that tell what is asked at which loss, however it is written."""
    seal = hashlib.blake2b(f"{len(batch.cell)} boxes".encode(), digest_size=16)
    for column in batch.columns():
        low, high = batch.ranges([column])
        if not ((low == MISSING) & (high == INFINITE)).all():
            seal.update(f"column {column}:".encode())
            _update(seal, low)
            _update(seal, high - low)  # a length past 2^63 wraps, and stays its own
    _update(seal, np.ones(1, np.int64) if batch.offsets is None else np.diff(batch.offsets))
    _update(seal, np.clip(batch.threshold, -LIMIT, LIMIT))
    _update(seal, np.asarray(batch.repeats, np.int64))
    if batch.epsilon is not None:
        epsilon = few(np.asarray(batch.epsilon, np.float64).reshape(-1))
        seal.update(b"epsilon" + epsilon.astype("<f8").tobytes())
    return seal.digest()


def _update(seal: hashlib.blake2b, values: Codes) -> None:
    """Take whole numbers into a digest: one of them where all are the same."""
    short = narrow(few(values.reshape(-1)))
    seal.update(f"{short.dtype.itemsize} {len(short)},".encode())
    seal.update(short.astype(short.dtype.newbyteorder("<"), copy=False).tobytes())


def few(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return one number where all are the same."""
    return values[:1] if len(values) and (values == values[0]).all() else values


def narrow(values: Codes) -> npt.NDArray[Any]:
    """Return whole numbers in the narrowest type that holds them all."""
    if not len(values):
        return values
    low, high = int(values.min()), int(values.max())
    for kind in _NARROW:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return np.ascontiguousarray(values)


def encode_batch(asked: Asked, schema: Schema) -> bytes:
    """Write a batch as JSON."""
    batch = asked.batch
    columns = batch.columns()
    names = [schema[column].name for column in columns]
    boxes = [
        {
            name: _written(low, high)
            for name, (low, high) in zip(names, box, strict=True)
            if (low, high) != (MISSING, INFINITE)
        }
        for box in np.stack(batch.ranges(columns), axis=2).tolist()
    ]
    offsets = range(len(boxes) + 1) if batch.offsets is None else batch.offsets.tolist()
    questions: list[dict[str, Any]] = [
        {"boxes": boxes[start:end], "more_than": threshold}
        for (start, end), threshold in zip(pairwise(offsets), batch.threshold.tolist(), strict=True)
    ]
    body: dict[str, Any] = {"key": asked.key}
    for name, value in (("repeats", batch.repeats), ("epsilon", batch.epsilon)):
        if isinstance(value, np.ndarray):
            for question, own in zip(questions, value.tolist(), strict=True):
                question[name] = own
        elif value is not None:
            body[name] = value
    return json.dumps({**body, "questions": questions}, separators=(",", ":")).encode()


def _written(low: int, high: int) -> object:
    if (low, high) == (MISSING, LOWEST):
        return "missing"
    return [None if low == MISSING else low, None if high == INFINITE else high]


def decode_batch(body: bytes | bytearray, schema: Schema, limits: Limits) -> Asked:
    """Read a batch from JSON.

    A FieldError names the field that is malformed; TooLarge says which limit the batch passes.
    """
    if len(body) > limits.json:
        raise TooLarge(
            f"a body in JSON may have at most {limits.json} bytes: split it, or use Arrow"
        )
    top = _object(_parsed(body), "", _TOP)
    key = top.get("key")
    if not isinstance(key, str):
        raise FieldError("key", "every batch needs a key, a text of your choice")
    questions = _list(top, "questions", "", "a batch needs at least one question")
    check_size(len(questions), 0, 0, limits)
    column_of = {name: column for column, name in enumerate(schema.names)}
    usual = {
        "repeats": _repeats(top.get("repeats", 1), "repeats"),
        "epsilon": _epsilon(top.get("epsilon"), "epsilon"),
    }
    asked: list[tuple[list[dict[int, Range]], int]] = []
    repeats, epsilons = [], []
    answers = boxes = pairs = 0
    for number, given in enumerate(questions):
        where = f"questions[{number}]"
        question = {**usual, **_object(given, where, _QUESTION)}
        union = _list(question, "boxes", f"{where}.", "every question needs at least one box")
        repeats.append(_repeats(question["repeats"], f"{where}.repeats"))
        answers, boxes, pairs = answers + repeats[-1], boxes + len(union), pairs + len(union) ** 2
        check_size(answers, boxes, pairs, limits)
        held = [_box(box, f"{where}.boxes[{at}]", column_of) for at, box in enumerate(union)]
        asked.append((held, _whole(question.get("more_than"), f"{where}.more_than")))
        epsilons.append(_epsilon(question["epsilon"], f"{where}.epsilon"))
    batch = batch_of(asked, repeats[0] if len(set(repeats)) == 1 else repeats)
    return Asked(key, replace(batch, epsilon=_losses(epsilons)))


def check_size(answers: int, boxes: int, pairs: int, limits: Limits) -> None:
    """Refuse a batch that is larger than a service takes at once: TooLarge names the limit."""
    for size, most, what in (
        (answers, limits.answers, "answers"),
        (boxes, limits.boxes, "boxes"),
        (pairs, limits.pairs, "pairs of boxes within questions"),
    ):
        if size > most:
            raise TooLarge(f"a batch may have at most {most} {what}: split it")


def _parsed(body: bytes | bytearray) -> object:
    try:
        return json.loads(body, parse_constant=int)  # which knows no NaN and no infinity
    except (ValueError, RecursionError):  # also what is not UTF-8, and numbers without end
        raise FieldError("", "the body is not JSON (UTF-8, finite numbers)") from None


def _object(value: object, where: str, known: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(where, f"{'the body ' if not where else ''}must be an object")
    if not known.issuperset(value):
        raise FieldError(where, f"unknown field; known are {', '.join(sorted(known))}")
    return value


def _list(given: Mapping[str, Any], name: str, where: str, if_empty: str) -> list[Any]:
    value = given.get(name)
    if not isinstance(value, list):
        raise FieldError(where + name, "must be a list")
    if not value:
        raise FieldError(where + name, if_empty)
    return value


def _whole(value: object, where: str) -> int:
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if type(value) is not int:
        raise FieldError(where, "must be a whole number")
    return value


def _repeats(value: object, where: str) -> int:
    repeats = _whole(value, where)
    if repeats < 1:
        raise FieldError(where, "must be at least 1")
    return repeats


def _epsilon(value: object, where: str) -> float | None:
    """Read a loss; null where nothing is claimed."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FieldError(where, "must be a number")
    if not 0 < value <= MOST_EPSILON:
        raise FieldError(where, f"must lie above zero, and not above {MOST_EPSILON:g}")
    return float(value)


def _losses(epsilons: list[float | None]) -> Loss:
    """Return one loss for all questions, one for each, or none."""
    first = epsilons[0]
    if all(each == first for each in epsilons):
        return first
    if None in epsilons:
        raise FieldError("epsilon", "give every question a loss, or none of them")
    return np.array(epsilons, np.float64)


def _box(value: object, where: str, column_of: Mapping[str, int]) -> dict[int, Range]:
    if not isinstance(value, dict):
        raise FieldError(where, "must be an object of ranges, by the names of attributes")
    box = {}
    for name, span in value.items():
        if (column := column_of.get(name)) is None:
            raise FieldError(where, "names an attribute that the table does not have")
        box[column] = _range(span, f"{where}, attribute {column}")
    return box


def _range(value: object, where: str) -> Range:
    if value == "missing":
        return MISSING, LOWEST
    if not isinstance(value, list) or len(value) != 2:
        raise FieldError(where, 'must be [low, high] or "missing"')
    return _code(value[0], MISSING, where), _code(value[1], INFINITE, where)


def _code(value: object, if_open: int, where: str) -> int:
    code = if_open if value is None else _whole(value, where)
    if not MISSING <= code <= INFINITE:
        raise FieldError(where, "a code must fit into 64 bits")
    return code


def encode_reply(reply: Reply, batch: QueryBatch) -> bytes:
    """Write answers as JSON, a list for each question; no answer is null."""
    values = [None if value != value else value for value in reply.values.tolist()]
    ends = np.cumsum(np.full(batch.questions, batch.repeats)).tolist()
    rows = [values[start:end] for start, end in pairwise([0, *ends])]
    said = {"key": reply.key, "answers": rows, "cost": reply.cost, "left": reply.left}
    plain = {**said, "again": reply.again}
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()


def decode_reply(body: bytes) -> Reply:
    """Read answers from JSON, null as NaN; whether they may be so is for the reader to see.

    A FieldError says that the body is not a reply.
    """
    try:
        plain = json.loads(body)
        values = np.array([value for row in plain["answers"] for value in row], np.float64)
        key, cost, left = (str(plain[name]) for name in ("key", "cost", "left"))
        return Reply(key, values, cost, left, bool(plain["again"]))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise FieldError("answers", "the reply is not one of a thinveil service") from None
