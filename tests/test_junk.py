"""Large bodies, right and wrong: read piece by piece, refused where they are wrong."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.errors import FieldError, QueryError, TooLarge
from thinveil.language.queries import batch_of
from thinveil.language.schema import INFINITE, LOWEST, MISSING
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.json import Asked, Reply, content_digest
from thinveil.language.wire.limits import Limits
from thinveil.language.wire.reader import WINDOW, Reader
from worlds import examples

SCHEMA = thinveil.people(20).schema
LIMITS = Limits(10**6, 10**6, 10**8)
NAMES = {"repeats": st.integers(1, 3), "epsilon": st.sampled_from([0.5, 1, 2e-9])}

ends = st.none() | st.integers(-5, 10**6) | st.sampled_from([3.0, 2**60, -(2**62)])
ranges = st.lists(ends, min_size=2, max_size=2) | st.just("missing")
boxes = st.dictionaries(st.sampled_from(SCHEMA.names), ranges, max_size=3)


@st.composite
def bodies(draw: Any) -> Any:
    """Batches as plain JSON, in any order of their fields."""
    unions = draw(st.lists(st.lists(boxes, min_size=1, max_size=6), min_size=1, max_size=5))
    own = draw(st.sampled_from([(), ("repeats",), ("repeats", "epsilon")]))
    questions = [
        {"boxes": union, "more_than": draw(st.integers(-(10**20), 10**20) | st.just(4.0))}
        | {name: draw(NAMES[name]) for name in own if draw(st.booleans()) or name == "epsilon"}
        for union in unions
    ]
    body = {"key": draw(st.sampled_from(["k", "a b.c"])), "questions": questions}
    body |= {name: draw(values) for name, values in NAMES.items() if draw(st.booleans())}
    return shuffled(draw, body | {"questions": [shuffled(draw, each) for each in questions]})


def shuffled(draw: Any, plain: dict[str, Any]) -> dict[str, Any]:
    return dict(draw(st.permutations(list(plain.items()))))


def naive(plain: dict[str, Any]) -> Any:
    """Make the batch of a body that is known to be right, all at once."""
    asked, repeats, losses = [], [], []
    for question in plain["questions"]:
        union = [
            {SCHEMA.names.index(name): bounds(span) for name, span in box.items()}
            for box in question["boxes"]
        ]
        asked.append((union, int(question["more_than"])))
        repeats.append(question.get("repeats", plain.get("repeats", 1)))
        losses.append(question.get("epsilon", plain.get("epsilon")))
    epsilon = None if losses[0] is None else np.array(losses, np.float64)
    return replace(batch_of(asked, repeats), epsilon=epsilon)


def bounds(span: Any) -> tuple[int, int]:
    if span == "missing":
        return MISSING, LOWEST
    low, high = span
    return MISSING if low is None else int(low), INFINITE if high is None else int(high)


@examples(100)
@given(bodies(), st.sampled_from([None, 1]), st.integers(350, 900))
def test_piece_by_piece_is_all_at_once(plain: Any, indent: int | None, window: int) -> None:
    """Naive and fast agree, also where windows are small and questions are larger."""
    body = json.dumps(plain, indent=indent).encode()
    for size in (window, WINDOW):
        with patch.object(wire, "WINDOW", size), patch.object(wire, "_LONGEST", 1):
            asked = wire.decode_batch(body, SCHEMA, LIMITS)
        assert asked.key == plain["key"]
        assert content_digest(asked.batch) == content_digest(naive(plain))


@examples(40)
@given(st.data())
def test_a_body_with_a_piece_missing_is_read_or_refused(data: Any) -> None:
    body = json.dumps(data.draw(bodies())).encode()
    start = data.draw(st.integers(0, len(body)))
    cut = body[:start] + body[start + data.draw(st.integers(1, 20)) :]
    with patch.object(wire, "WINDOW", 200), patch.object(wire, "_LONGEST", 1):
        try:
            wire.decode_batch(cut, SCHEMA, LIMITS)
        except QueryError:
            return
    json.loads(cut)  # what is read is JSON


FIRST = '{"key": "k", "questions": ['
BOX = '{"more_than": 0, "boxes": ['
SIZE = 2**21
JUNK = {
    "lists": ("[", "[],", "]"),
    "questions that are lists": (FIRST, "[],", "]}"),
    "empty questions": (FIRST, "{},", "]}"),
    "boxes that are lists": (FIRST + BOX, "[],", "]}]}"),
    "empty boxes": (FIRST + BOX, "{},", "]}]}"),
    "a range of lists": (FIRST + BOX + '{"age": [', "[],", "]}]}]}"),
    "a box with many ranges": (FIRST + BOX + "{", '"age":[1,2],', "}]}]}"),
    "a question with many fields": (FIRST + '{"boxes": [{}]', ',"more_than":1', "}]}"),
    "many fields": ("{", '"key":[],', "}"),
    "a long key": ('{"key": "', "a" * 10, '"}'),
    "a list as a key": ('{"key": [', "[],", "]}"),
    "digits": (FIRST, "9", "]}"),
    "digits for a threshold": (FIRST + '{"boxes": [{}], "more_than": ', "9", "}]}"),
    "depth": ("", "[", ""),
    "objects in objects": ("", '{"questions":', ""),
    "nothing": ("", " ", ""),
}


@pytest.mark.parametrize("what", JUNK)
def test_junk_is_refused_before_it_fills_memory(what: str) -> None:
    """A list takes 56 bytes where three were sent; here the text itself is what is held."""
    lead, unit, rest = JUNK[what]
    body = lead.encode() + unit.encode() * (SIZE // len(unit)) + rest.encode()
    tracemalloc.start()
    try:
        with pytest.raises((FieldError, TooLarge)):
            wire.decode_batch(body, SCHEMA, LIMITS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * SIZE


def test_a_question_may_be_larger_than_a_window() -> None:
    box = {name: [-(10**9), 10**9] for name in SCHEMA.names}
    question = {"boxes": [{**box, "age": [nth, nth + 1]} for nth in range(3000)], "more_than": 1}
    body = json.dumps({"key": "k", "questions": [question, question]}).encode()
    assert len(body) > 4 * WINDOW
    batch = wire.decode_batch(body, SCHEMA, LIMITS).batch
    assert (batch.questions, len(batch.cell)) == (2, 6000)


def test_a_number_at_the_end_of_a_window_goes_on() -> None:
    for window in range(7, 30):
        reader = Reader(b'[12345, 678, "a", null, 9]', window)
        assert [reader.value() for _ in reader.elements()] == [12345, 678, "a", None, 9]
        reader.end()


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=9),
    st.integers(1, 12),
    st.booleans(),
    st.data(),
)
def test_a_reply_in_pieces_is_the_reply(
    repeats: list[int], most: int, again: bool, data: Any
) -> None:
    values = np.array([data.draw(st.floats(allow_infinity=False)) for _ in range(sum(repeats))])
    batch = batch_of([([{}], 1)] * len(repeats), repeats)
    reply = Reply("k", values, "1/3", "2", again)
    pieces = list(wire.reply_pieces(reply, batch, most))
    assert len(pieces) == 1 + -(-len(values) // most)
    plain = iter([None if value != value else value for value in values.tolist()])
    rows = [list(islice(plain, count)) for count in repeats]
    said = {"key": "k", "answers": rows, "cost": "1/3", "left": "2"}
    assert json.loads(b"".join(pieces)) == {**said, "again": again}
    assert b"".join(pieces) == wire.encode_reply(reply, batch)


@pytest.mark.parametrize("name", ["low", "high", "column", "cell_low", "cell_length", "sizes"])
def test_a_list_that_no_batch_needs_is_refused_while_it_is_narrow(name: str) -> None:
    """As sent it has a byte a number, once it is read eight."""
    pa = pytest.importorskip("pyarrow")
    asked = Asked("k", batch_of([([{0: (1, 2)}], 3)]))
    record = pa.ipc.open_stream(wire_arrow.encode_batch(asked)).read_next_batch()
    columns = {each: record.column(each) for each in record.schema.names}
    columns[name] = pa.array([np.zeros(9000, np.int8)])
    sink = pa.BufferOutputStream()
    made = pa.record_batch(columns)
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_batch(made)
    few = Limits(1000, 1000, 10**6)
    with pytest.raises(TooLarge, match="split it"):
        wire_arrow.decode_batch(sink.getvalue().to_pybytes(), SCHEMA, few)
