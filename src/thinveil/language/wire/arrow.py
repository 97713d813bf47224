"""How batches and answers travel between programs, as Arrow IPC streams for speed.

A batch is a stream of one record batch of one row, whose columns are a key and lists of
numbers. Lists of whole numbers have the narrowest type that holds them::

    key              the key of the batch
    cell_columns     which attributes the table of cells restricts, by their places
    cell_low         where each cell's ranges start, cell after cell
    cell_length      how long they are, modulo 2^64; one number where all are the same
    cell             for each box, its row in the table of cells
    column           for each box, the attribute that it narrows, or -1
    low, high        for each box, the ends of the narrowing range
    threshold        for each question, b in "is c > b?"
    sizes            how many boxes each question has; empty where each has one
    repeats          one number, or one for each question
    epsilon          one loss, one for each question, or none

Range ends are codes: -2^63 is the open low end that includes missing values, 2^63 - 1 the
open high end. A reply is a stream of one record batch with one column, `answers`, and the
rest of what is said in the metadata of its schema. Nothing is compressed.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.errors import FieldError, MissingExtra, TooLarge
from thinveil.language.queries import WHOLE, Cells, Codes, Floats, QueryBatch
from thinveil.language.schema import LIMIT, Schema
from thinveil.language.texts import many
from thinveil.language.wire.flatbuffers import inner, root, slot
from thinveil.language.wire.json import Asked, Reply, few, narrow
from thinveil.language.wire.limits import MOST_EPSILON, Limits, check_size

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"

_LISTS: Final = (
    "cell_columns", "cell_low", "cell_length", "cell", "column", "low", "high", "threshold",
    "sizes", "repeats",
)  # fmt: skip
_LARGEST_HEAD: Final = 2**16  # bytes that describe columns; ours has two thousand
_WHOLE: Final = ("int8", "int16", "int32", "int64")
_HEADER: Final = 2  # places in the description of a message, and of a record batch in it
_CUSTOM: Final = 4
COMPRESSION: Final = 3
"""The place of the codec in the description of a record batch."""


def pyarrow(what: str = "Arrow over HTTP") -> Any:
    """Import pyarrow where it is needed, not before; raise MissingExtra if it is not there."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra(what, "service") from None
    return pa


def encode_batch(asked: Asked) -> memoryview:
    """Write a batch as an Arrow stream; of its cells, those in use."""
    pa = pyarrow()
    batch = asked.batch
    columns, low, high, cell = _in_use(batch)
    lists: dict[str, npt.NDArray[Any]] = {
        "cell_columns": np.array(columns, np.int64),
        "cell_low": low.reshape(-1),
        "cell_length": few((high - low).reshape(-1)),
        "cell": cell,
        **{name: getattr(batch, name) for name in ("column", "low", "high", "threshold")},
        "sizes": np.empty(0, np.int64) if batch.offsets is None else np.diff(batch.offsets),
        "repeats": np.asarray(batch.repeats, np.int64).reshape(-1),
    }
    made = {name: _one_list(pa, narrow(values)) for name, values in lists.items()}
    losses = np.empty(0) if batch.epsilon is None else np.asarray(batch.epsilon, np.float64)
    made["epsilon"] = _one_list(pa, losses.reshape(-1))
    return _stream(pa, pa.record_batch({"key": pa.array([asked.key]), **made}))


def _in_use(batch: QueryBatch) -> tuple[tuple[int, ...], Codes, Codes, Codes]:
    """Return the columns and ends of cells that some box starts from, and each box's row."""
    cells = batch.cells
    if not cells.columns:
        return (), np.empty(0, np.int64), np.empty(0, np.int64), np.zeros_like(batch.cell)
    used = np.zeros(len(cells), np.bool_)
    used[batch.cell] = True
    if used.all():
        return cells.columns, cells.low, cells.high, batch.cell
    row = np.cumsum(used) - 1
    return cells.columns, cells.low[used], cells.high[used], row[batch.cell]


def _one_list(pa: Any, values: npt.NDArray[Any]) -> Any:
    offsets = pa.array(np.array([0, len(values)], np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(values))


def _stream(pa: Any, record: Any) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, record.schema) as writer:
        writer.write_batch(record)
    return memoryview(sink.getvalue())


def decode_batch(body: bytes | bytearray, schema: Schema, limits: Limits) -> Asked:
    """Read a batch from an Arrow stream; arrays that are wide enough are not copied.

    Raises what `json.decode_batch` does.
    """
    record = _record(body, "the body")
    try:
        return _asked(record, schema, limits)
    except UnicodeDecodeError:
        raise FieldError("", "a text in the body is not UTF-8") from None


def _asked(record: Any, schema: Schema, limits: Limits) -> Asked:
    if record.num_rows != 1 or set(record.schema.names) != {"key", "epsilon", *_LISTS}:
        raise FieldError("", "the record batch needs one row with the documented columns")
    if len(record.schema.names) != len(_LISTS) + 2:
        raise FieldError("", "a column of the record batch stands twice")
    short = {name: _values(record, name, _WHOLE, "signed whole numbers") for name in _LISTS}
    _check_lengths(short, len(schema), limits)  # before they become eight times as large
    lists: dict[str, Any] = {
        name: values.astype(np.int64, copy=False) for name, values in short.items()
    }
    boxes, questions = len(lists["cell"]), len(lists["threshold"])
    check_size(questions, boxes, 0, limits)
    repeats = _one_or_each(lists["repeats"], questions, "repeats")
    if repeats is None or np.min(repeats) < 1:
        raise FieldError("repeats", "must be at least 1")
    if np.max(repeats) > limits.answers:
        raise TooLarge(f"a batch may have at most {many(limits.answers, 'answer')}: split it")
    answers = int(np.sum(repeats)) * (1 if isinstance(repeats, np.ndarray) else questions)
    check_size(answers, boxes, 0, limits)
    epsilon = _one_or_each(_losses(record), questions, "epsilon")
    sizes = lists["sizes"]
    if len(sizes) and (
        len(sizes) != questions or sizes.min() < 1 or sizes.max() > boxes or sizes.sum() != boxes
    ):
        raise FieldError("sizes", "must share the boxes out over the questions")
    check_size(answers, boxes, int(np.dot(sizes, sizes)), limits)
    cells, column = _cells(lists, len(schema)), lists["column"]
    if len(column) and (column.min() < WHOLE or column.max() >= len(schema)):
        raise FieldError("column", "names an attribute that the table does not have")
    batch = QueryBatch(
        cells=cells,
        **{name: lists[name] for name in ("cell", "column", "low", "high")},
        threshold=np.clip(lists["threshold"], -LIMIT, LIMIT),
        offsets=np.concatenate([[0], np.cumsum(sizes)]) if (sizes > 1).any() else None,
        repeats=repeats,
        epsilon=epsilon,
    )
    key = record.column("key")
    if str(key.type) not in ("string", "large_string"):
        raise FieldError("key", "must be a text")
    return Asked(key[0].as_py(), batch)


def _check_lengths(lists: dict[str, Any], attributes: int, limits: Limits) -> None:
    """Refuse lists that are longer than any batch needs."""
    for name in ("cell", "column", "low", "high"):
        check_size(0, len(lists[name]), 0, limits)
    for name in ("threshold", "sizes", "repeats"):
        check_size(len(lists[name]), 0, 0, limits)
    for name in ("cell_columns", "cell_low", "cell_length"):
        check_size(0, len(lists[name]) // attributes, 0, limits)


def _record(body: bytes | bytearray, what: str) -> Any:
    """Return the one record batch of a stream, checked and without any compression."""
    pa = pyarrow()
    try:
        messages = list(islice(pa.ipc.MessageReader.open_stream(pa.py_buffer(body)), 3))
        if [message.type for message in messages] != ["schema", "record batch"]:
            raise ValueError
        if max(message.metadata.size for message in messages) > _LARGEST_HEAD:
            raise ValueError
        if _compressed(memoryview(messages[1].metadata)):
            raise FieldError("", f"{what} is compressed: send it as it is")
        record = pa.ipc.read_record_batch(messages[1], pa.ipc.read_schema(messages[0]))
        record.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, struct.error, MemoryError):
        raise FieldError("", f"{what} is not an Arrow stream of one record batch") from None
    return record


def _compressed(metadata: memoryview) -> bool:
    """Tell from the flatbuffer that describes a record batch whether it names a codec.

    What is compressed could be many times larger than what was sent, and is not accepted. Arrow
    0.17 named its codec in a message's own metadata, where readers still look: none may be there.
    """
    message = root(metadata)
    record = inner(metadata, message, _HEADER)
    if record is None:
        raise ValueError("no header")
    if slot(metadata, message, _CUSTOM) is not None:
        return True
    return slot(metadata, record, COMPRESSION) is not None


def _values(record: Any, name: str, kinds: tuple[str, ...], what: str) -> Any:
    """Return the numbers of one list column, whose type must be one of these."""
    pa = pyarrow()
    column = record.column(name)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise FieldError(name, "must be a list of numbers")
    values = column.flatten()
    if column.null_count or values.null_count:
        raise FieldError(name, "must not be null")
    if str(values.type) not in kinds:
        raise FieldError(name, f"must be a list of {what}")
    return values.to_numpy(zero_copy_only=True)


def _losses(record: Any) -> Floats:
    losses: Floats = _values(record, "epsilon", ("double",), "doubles")
    if not ((losses > 0) & (losses <= MOST_EPSILON)).all():  # what is no number is neither
        raise FieldError("epsilon", f"must lie above zero, and not above {MOST_EPSILON:g}")
    return losses


def _one_or_each(values: npt.NDArray[Any], questions: int, name: str) -> Any:
    """Return one number for all questions, an array with one for each, or None."""
    if len(values) not in {0, 1, questions}:
        raise FieldError(name, "needs one number, or one for each question")
    if not len(values):
        return None
    return values[0].item() if (values == values[0]).all() else values


def _cells(lists: dict[str, Any], attributes: int) -> Cells:
    """Return the table of cells."""
    columns = lists["cell_columns"].tolist()
    if any(not 0 <= column < attributes for column in columns):
        raise FieldError("cell_columns", "names an attribute that the table does not have")
    low, length = lists["cell_low"], lists["cell_length"]
    if not columns:
        if len(low) or len(length) or lists["cell"].any():
            raise FieldError("cell_columns", "cells without attributes are one, and number 0")
        return Cells.everything()
    if len(low) % len(columns):
        raise FieldError("cell_low", "needs one end for each cell and attribute")
    if len(length) not in {1, len(low)}:
        raise FieldError("cell_length", "needs one length, or one for each cell and attribute")
    shape = len(low) // len(columns), len(columns)
    return Cells(tuple(columns), low.reshape(shape), (low + length).reshape(shape))


def encode_reply(reply: Reply) -> memoryview:
    """Write answers as an Arrow stream; no answer is null."""
    pa = pyarrow()
    said = {"key": reply.key, "cost": reply.cost, "left": reply.left, "again": str(reply.again)}
    record = pa.record_batch({"answers": pa.array(reply.values, from_pandas=True)})
    return _stream(pa, record.replace_schema_metadata(said))


def decode_reply(body: bytes) -> Reply:
    """Read answers from an Arrow stream; a FieldError says that the body is not a reply."""
    record = _record(body, "the reply")
    try:
        metadata = record.schema.metadata or {}
        said = {name.decode(): text.decode() for name, text in metadata.items()}
        [name], [kind] = record.schema.names, record.schema.types
        if (name, str(kind)) != ("answers", "double"):
            raise ValueError
        values: Floats = record.column(0).to_numpy(zero_copy_only=False)
        return Reply(said["key"], values, said["cost"], said["left"], said["again"] == "True")
    except (KeyError, ValueError):
        raise FieldError("answers", "the reply is not one of a thinveil service") from None
