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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.errors import FieldError, TooLarge
from thinveil.language.queries import Codes, Floats, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Schema
from thinveil.language.wire.draft import Draft, known_name, loss_of, repeats_of, short_value
from thinveil.language.wire.limits import Limits
from thinveil.language.wire.reader import WINDOW, Reader

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,:+-]{0,199}")
"""What a batch's key may look like: it stands in logs and in the ledger."""

_LONGEST: Final = 512  # characters of one range in a box, with its name, white space, and to spare
_NARROW: Final = (np.int8, np.int16, np.int32)
_PIECE: Final = 2**13  # answers that are written at once: a few milliseconds
_TOP: Final = frozenset({"key", "epsilon", "repeats", "questions"})


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
    reader = Reader(body, max(WINDOW, _LONGEST * len(schema)))
    if reader.next() != "{":
        raise FieldError("", "the body must be an object in JSON")
    key: object = None
    draft = Draft(schema, limits)
    for name in reader.members():
        known_name(name, _TOP, "")
        if name == "questions":
            draft.read(reader)
        elif name == "key":
            key = short_value(reader, name)
        elif name == "repeats":
            draft.repeats = repeats_of(short_value(reader, name), name)
        else:
            draft.epsilon = loss_of(short_value(reader, name), name)
    reader.end()
    if not isinstance(key, str):
        raise FieldError("key", "every batch needs a key, a text of your choice")
    return Asked(key, draft.batch())


def encode_reply(reply: Reply, batch: QueryBatch) -> bytes:
    """Write answers as JSON, a list for each question; no answer is null."""
    return b"".join(reply_pieces(reply, batch))


def reply_pieces(reply: Reply, batch: QueryBatch, most: int = _PIECE) -> Iterator[bytes]:
    """Write the same in pieces of so many answers; a question's may lie in several."""
    ends = np.cumsum(np.full(batch.questions, batch.repeats))
    lead = json.dumps({"key": reply.key}, separators=(",", ":"))[:-1] + ',"answers":['
    for start in range(0, len(reply.values), most):
        plain = [
            None if value != value else value for value in reply.values[start:][:most].tolist()
        ]
        first, last = np.searchsorted(ends, [start, start + len(plain)], "right").tolist()
        cuts = (ends[first:last] - start).tolist()
        whole = bool(cuts) and cuts[-1] == len(plain)  # the last question's answers end here
        rows = [plain[at:end] for at, end in pairwise([0, *cuts, *([] if whole else [len(plain)])])]
        text = json.dumps(rows, separators=(",", ":"), allow_nan=False)[1:-1]
        new = not start or ends[first - 1] == start  # a question's answers begin here
        yield (lead + text[not new : len(text) if whole else -1]).encode()
        lead = ","
    rest = {"cost": reply.cost, "left": reply.left, "again": reply.again}
    yield ("]," + json.dumps(rest, separators=(",", ":"))[1:]).encode()


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
