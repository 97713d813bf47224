"""What travels between programs: nothing gets lost, and nothing malformed gets through."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.errors import FieldError, QueryError, TooLarge, UsageError
from thinveil.language.claims import MECHANISMS, POSTS, KLocal, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import Policies
from thinveil.language.queries import WHOLE, Cells, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Schema
from thinveil.language.wire import arrow as wire_arrow
from thinveil.language.wire import json as wire
from thinveil.language.wire.facts import facts_from_plain, facts_to_plain
from thinveil.language.wire.json import Asked, Reply, content_digest
from thinveil.language.wire.limits import Limits
from worlds import as_a, attributes, boxes_of, examples, schemas

pa = pytest.importorskip("pyarrow")

SCHEMA = thinveil.people(20).schema
LIMITS = Limits(1000, 2000, 10**6, 10**6, 500_000)
ENDS = st.one_of(
    st.integers(-9, 9), st.sampled_from([MISSING, LOWEST, INFINITE, LIMIT, 2**40, 300, -70_000])
)


@st.composite
def batches(draw, schema=SCHEMA):
    """Batches of any shape: shared cells, unions, repeats and losses of their own or not."""
    columns = draw(st.permutations(range(len(schema))))
    shared = columns[: draw(st.integers(0, len(columns) - 1))]
    cells = draw(st.integers(1, 4))
    ends = [
        np.array(draw(st.lists(ENDS, min_size=cells * len(shared), max_size=cells * len(shared))))
        .astype(np.int64)
        .reshape(cells, len(shared))
        for _ in range(2)
    ]
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    boxes, questions = sum(sizes), len(sizes)

    def some(values, count):
        return np.array(draw(st.lists(values, min_size=count, max_size=count)))

    batch = QueryBatch(
        Cells(tuple(shared), *ends) if shared else Cells.everything(),
        some(st.integers(0, cells - 1 if shared else 0), boxes),
        some(st.sampled_from([WHOLE, *columns[len(shared) :]]), boxes),
        some(ENDS, boxes),
        some(ENDS, boxes),
        some(st.integers(-3, 50), questions),
        None if set(sizes) == {1} else np.concatenate([[0], np.cumsum(sizes)]),
        draw(st.integers(1, 5)) if draw(st.booleans()) else some(st.integers(1, 5), questions),
    )
    losses = st.floats(1e-300, 1e6)
    kind = draw(st.sampled_from(["none", "one", "each"]))
    loss = {"none": st.none(), "one": losses}.get(kind)
    return replace(batch, epsilon=some(losses, questions) if loss is None else draw(loss))


def same(one, other):
    """Tell whether two batches ask the same, box by box."""
    return (
        [[_bound(box) for box in union] for union in boxes_of(one)]
        == [[_bound(box) for box in union] for union in boxes_of(other)]
        and (one.threshold == other.threshold).all()
        and (_each(one.repeats, one) == _each(other.repeats, other)).all()
        and (one.epsilon is None) == (other.epsilon is None)
        and (one.epsilon is None or (_each(one.epsilon, one) == _each(other.epsilon, other)).all())
    )


def _bound(box):
    return {column: ends for column, ends in box.items() if ends != (MISSING, INFINITE)}


def _each(value, batch):
    return np.broadcast_to(value, (batch.questions,))


def both(batch, key="run-1"):
    asked = Asked(key, batch)
    return (
        wire.decode_batch(wire.encode_batch(asked, SCHEMA), SCHEMA, LIMITS),
        wire_arrow.decode_batch(bytes(wire_arrow.encode_batch(asked)), SCHEMA, LIMITS),
    )


@examples(100)
@given(batches())
def test_batches_come_back_as_they_were_in_both_forms(batch):
    for asked in both(batch):
        assert asked.key == "run-1"
        assert same(asked.batch, batch)
        assert content_digest(asked.batch) == content_digest(batch)


@examples(100)
@given(batches(), batches())
def test_the_digest_tells_batches_apart_and_nothing_else(one, other):
    assert (content_digest(one) == content_digest(other)) == same(one, other)


def test_a_changed_detail_changes_the_digest():
    batch = batch_of([([{0: (1, 2)}], 3), ([{0: (3, 5)}, {1: (0, 1)}], 4)])
    batch = batch.stamped(("x", 1), 0.5)
    changed = [
        batch_of([([{0: (1, 2)}], 3), ([{0: (3, 5)}, {1: (0, 1)}], 5)]).stamped(("x", 1), 0.5),
        batch_of([([{0: (1, 2)}], 3), ([{0: (3, 6)}, {1: (0, 1)}], 4)]).stamped(("x", 1), 0.5),
        batch_of([([{0: (1, 2)}, {0: (3, 5)}], 3), ([{1: (0, 1)}], 4)]).stamped(("x", 1), 0.5),
        batch.stamped(("x", 1), 0.25),
        batch.stamped(("x", 1), None),
        batch.stamped(("x", 1), np.array([0.5, 0.25])),
        replace(batch, repeats=2),
        replace(batch, repeats=np.array([1, 2])),
    ]
    digests = [content_digest(each) for each in [batch, *changed]]
    assert len(set(digests)) == len(digests)
    assert content_digest(batch.stamped(("y", 9), np.array([0.5, 0.5]))) == digests[0]


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
    st.booleans(),
)
def test_answers_come_back_to_the_last_bit(values, again):
    batch = batch_of([([{0: (1, 2)}], 3), ([{0: (3, 5)}], 4)], repeats=[1, 3])
    reply = Reply("k", np.array(values), "1/3", "-2", again)
    for back in (
        wire.decode_reply(wire.encode_reply(reply, batch)),
        wire_arrow.decode_reply(bytes(wire_arrow.encode_reply(reply))),
    ):
        assert back.values.tobytes() == reply.values.tobytes()
        assert (back.key, back.cost, back.left, back.again) == ("k", "1/3", "-2", again)


def test_people_can_write_a_batch():
    body = {
        "key": "my run, batch 1",
        "epsilon": 0.5,
        "questions": [
            {"boxes": [{"age": [30, 40]}], "more_than": 5},
            {"boxes": [{"age": [None, 18]}, {"age": [65, None]}], "more_than": 0, "repeats": 3},
            {"boxes": [{"age": "missing"}], "more_than": 10**40, "epsilon": 1},
            {"boxes": [{}], "more_than": -(10**40), "repeats": 1.0},
        ],
    }
    batch = wire.decode_batch(json.dumps(body).encode(), SCHEMA, LIMITS).batch
    assert [[_bound(box) for box in union] for union in boxes_of(batch)] == [
        [{0: (30, 40)}],
        [{0: (MISSING, 18)}, {0: (65, INFINITE)}],
        [{0: (MISSING, LOWEST)}],
        [{}],
    ]
    assert batch.threshold.tolist() == [5, 0, LIMIT, -LIMIT]
    assert as_a(np.ndarray, batch.repeats).tolist() == [1, 3, 1, 1]
    assert as_a(np.ndarray, batch.epsilon).tolist() == [0.5, 0.5, 1, 0.5]


QUESTION = {"boxes": [{"age": [30, 40]}], "more_than": 5}
SPANS: tuple[Any, ...] = (
    3, "all", [1], [1, 2, 3], [1.5, 2], ["1", 2], [2**63, None], [[], {}],
)  # fmt: skip
"""What no range is."""


def written(**changes):
    body = {"key": "k", "epsilon": 0.5, "questions": [QUESTION], **changes}
    return json.dumps({name: value for name, value in body.items() if value != "out"}).encode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"\xff\xfe", ""),
        (b"[" * 100_000, ""),
        (b'{"key": ' * 50_000, "key"),
        (b'{"key": ' * 5_000, ""),
        (b'{"key": "a", "key": "b"}', ""),
        (written() + b"x", ""),
        (written()[:-1], ""),
        (written().decode().encode("utf-16"), ""),
        (b'{"key": "k" "repeats": 1}', ""),
        (b'{"key": "k", 3: 1}', ""),
        (b'{"key": "k",}', ""),
        (b"1" * 5_000, ""),
        (b"NaN", ""),
        (b"[]", ""),
        (b"null", ""),
        (written(extra=1), ""),
        (written(key="out"), "key"),
        (written(key=""), "key"),
        (written(key="a\nb"), "key"),
        (written(key="é"), "key"),
        (written(key="k" * 201), "key"),
        (written(key=5), "key"),
        (written(epsilon=0), "epsilon"),
        (written(epsilon=-1), "epsilon"),
        (written(epsilon=10**400), "epsilon"),
        (written(epsilon=2e100), "epsilon"),
        (written(epsilon=True), "epsilon"),
        (written(epsilon="1"), "epsilon"),
        (written().replace(b"0.5", b"NaN"), ""),
        (written().replace(b"0.5", b"Infinity"), ""),
        (written().replace(b"0.5", b"1e999"), "epsilon"),
        (written(repeats=0), "repeats"),
        (written(repeats=1.5), "repeats"),
        (written(repeats=1e300), "repeats"),
        (written(repeats=True), "repeats"),
        (written(questions="out"), "questions"),
        (written(questions=[]), "questions"),
        (written(questions={}), "questions"),
        (written(questions=[7]), "questions[0]"),
        (written(questions=[QUESTION])[:-2] + b",]}", "questions[1]"),
        (written(questions=[QUESTION])[:-2] + b" 5]}", ""),
        (written().replace(b'"more_than"', b'"more_than": 1, "more_than"'), "questions[0]"),
        (written().replace(b'"age"', b'"age": [1, 2], "age"'), "questions[0].boxes[0]"),
        (written(questions=[QUESTION, {**QUESTION, "mor_than": 5}]), "questions[1]"),
        (written(questions=[{"more_than": 1}]), "questions[0].boxes"),
        (written(questions=[{**QUESTION, "boxes": []}]), "questions[0].boxes"),
        (written(questions=[{**QUESTION, "boxes": [[]]}]), "questions[0].boxes[0]"),
        (written(questions=[{**QUESTION, "boxes": [{"wage": [1, 2]}]}]), "questions[0].boxes[0]"),
        (written(questions=[{**QUESTION, "more_than": "5"}]), "questions[0].more_than"),
        (written(questions=[{**QUESTION, "more_than": 5.5}]), "questions[0].more_than"),
        (written(questions=[{"boxes": QUESTION["boxes"]}]), "questions[0].more_than"),
        (written(questions=[{**QUESTION, "repeats": -1}]), "questions[0].repeats"),
        (written(questions=[{**QUESTION, "epsilon": 0}]), "questions[0].epsilon"),
        (written(questions=[QUESTION, {**QUESTION, "epsilon": None}]), "epsilon"),
        *(
            (
                written(questions=[{**QUESTION, "boxes": [{"age": span}]}]),
                "questions[0].boxes[0], attribute 0",
            )
            for span in SPANS
        ),
    ],
)
def test_what_is_malformed_is_named(body, field):
    with pytest.raises(FieldError) as error:
        wire.decode_batch(body, SCHEMA, LIMITS)
    assert error.value.field == field
    assert str(error.value).startswith(field)


@pytest.mark.parametrize(
    "body",
    [
        written(questions=[QUESTION] * 1001),
        written(repeats=1001),
        written(repeats=10**300),
        written(questions=[{**QUESTION, "repeats": 600}] * 2),
        written(questions=[{**QUESTION, "boxes": [{"age": [1, 2]}] * 2001}]),
        written(questions=[{**QUESTION, "boxes": [{"age": [1, 2]}] * 800}]),
        written(questions=[{**QUESTION, "boxes": [{"age": [1, 2]}] * 500}] * 3),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_made(body):
    with pytest.raises(TooLarge, match="use Arrow"):
        wire.decode_batch(written(), SCHEMA, Limits(9, 9, 9, 9))
    with pytest.raises(TooLarge, match="split it"):
        wire.decode_batch(body, SCHEMA, LIMITS)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["key", "questions", "boxes", "more_than", "age"]), inner),
    max_leaves=12,
))  # fmt: skip
def test_any_json_is_read_or_refused(value):
    with suppress(QueryError):
        wire.decode_batch(json.dumps(value).encode(), SCHEMA, LIMITS)


def stream(changes=(), options=None, rows=1, times=1):
    """Return a small batch as an Arrow stream, with some of its columns changed."""
    batch = batch_of([([{0: (1, 2)}], 3), ([{0: (3, 5)}, {1: (0, 1)}], 4)]).stamped(("x", 1), 0.5)
    record = pa.ipc.open_stream(wire_arrow.encode_batch(Asked("k", batch))).read_next_batch()
    columns = dict(zip(record.schema.names, record.columns, strict=True))
    for name, value in dict(changes).items():
        columns.pop(name, None)
        if value is not None:
            columns[name] = value
    record = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, record.schema, options=options) as writer:
        for _ in range(times):
            writer.write_batch(record.slice(0, rows))
    return sink.getvalue().to_pybytes()


BOXES = ("cell", "column", "low", "high")


def numbers(*values, kind="int64"):
    return pa.array([list(values)], pa.list_(getattr(pa, kind)()))


def test_the_unchanged_stream_is_fine():
    assert wire_arrow.decode_batch(stream(), SCHEMA, LIMITS).batch.questions == 2
    wide = {"cell": pa.array([[0, 1, 2]], pa.large_list(pa.int64()))}
    assert wire_arrow.decode_batch(stream(wide), SCHEMA, LIMITS).batch.questions == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"ARROW1\0\0" * 9, ""),
        (stream()[:-300], ""),
        (stream()[:200], ""),
        (stream(options=pa.ipc.IpcWriteOptions(compression="lz4")), ""),
        (stream(options=pa.ipc.IpcWriteOptions(compression="zstd")), ""),
        (stream(times=2), ""),
        (stream(times=0), ""),
        (stream(rows=0), ""),
        (stream({"cell": None}), ""),
        (stream({"more": numbers(1)}), ""),
        (stream({"key": numbers(1)}), "key"),
        (stream({"key": pa.array([None], pa.string())}), "key"),
        (stream({"key": pa.array(["\n"])}), "key"),
        (stream({"cell": pa.array(["x"])}), "cell"),
        (stream({"cell": pa.array([None], pa.list_(pa.int64()))}), "cell"),
        (stream({"cell": pa.array([[0, None, 2]], pa.list_(pa.int64()))}), "cell"),
        (stream({"cell": numbers(0, 1, 2, kind="uint64")}), "cell"),
        (stream({"cell": numbers(0, 1, 2, kind="float64")}), "cell"),
        (stream({"column": numbers(-1, -1, 9)}), "column"),
        (stream({"column": numbers(-1, -1, -2)}), "column"),
        (stream({"cell_columns": numbers(0, 77)}), "cell_columns"),
        (stream({"cell_columns": numbers()}), "cell_columns"),
        (stream({"cell_low": numbers(1, 2, 3)}), "cell_low"),
        (stream({"cell_length": numbers(1, 2, 3)}), "cell_length"),
        (stream({"cell_length": numbers()}), "cell_length"),
        (stream({"sizes": numbers(1, 1)}), "sizes"),
        (stream({"sizes": numbers(0, 3)}), "sizes"),
        (stream({"sizes": numbers(-1, 4)}), "sizes"),
        (stream({"sizes": numbers(2**62, 2**62)}), "sizes"),
        (stream({"sizes": numbers(3)}), "sizes"),
        (stream({"repeats": numbers()}), "repeats"),
        (stream({"repeats": numbers(0)}), "repeats"),
        (stream({"repeats": numbers(1, 2, 3)}), "repeats"),
        (stream({"epsilon": numbers(float("nan"), kind="float64")}), "epsilon"),
        (stream({"epsilon": numbers(float("inf"), kind="float64")}), "epsilon"),
        (stream({"epsilon": numbers(2e100, kind="float64")}), "epsilon"),
        (stream({"epsilon": numbers(0.0, kind="float64")}), "epsilon"),
        (stream({"epsilon": numbers(1, kind="int64")}), "epsilon"),
        (stream({"epsilon": numbers(1.0, 1.0, 1.0, kind="float64")}), "epsilon"),
    ],
)
def test_a_malformed_stream_is_refused(body, field):
    with pytest.raises(FieldError) as error:
        wire_arrow.decode_batch(body, SCHEMA, LIMITS)
    assert error.value.field == field


@pytest.mark.parametrize(
    "changes",
    [
        {"cell": numbers(0, 1, 99)},
        {"cell": numbers(0, -1, 2)},
        {"cell": numbers(0, 1)},
        {"threshold": numbers()},
        {"cell_columns": numbers(0, 0)},
        {"column": numbers(-1, -1, 0)},
    ],
)
def test_a_stream_that_makes_no_batch_is_refused(changes):
    with pytest.raises(QueryError):
        wire_arrow.decode_batch(stream(changes), SCHEMA, LIMITS)


@pytest.mark.parametrize(
    "changes",
    [
        {"repeats": numbers(1001)},
        {"repeats": numbers(600, 600)},
        {"repeats": numbers(2**62, 2**62)},
        {"repeats": numbers(501)},
        {"cell": numbers(*[0] * 2001)},
        {"threshold": numbers(*[0] * 1001)},
        {"sizes": numbers(1, 800), **{name: numbers(*[0] * 801) for name in BOXES}},
    ],
)
def test_a_stream_that_is_too_large_is_refused(changes):
    with pytest.raises(TooLarge):
        wire_arrow.decode_batch(stream(changes), SCHEMA, LIMITS)


@given(st.integers(0, 10**6), st.integers(1, 255), st.integers(1, 3))
def test_a_damaged_stream_is_read_or_refused(place, change, bytes_):
    """Whatever bits flip on the way, the reader ends in a batch or in a plain error."""
    body = bytearray(stream())
    for number in range(bytes_):
        body[(place + number) % len(body)] ^= change
    with suppress(QueryError):
        wire_arrow.decode_batch(bytes(body), SCHEMA, LIMITS)
    body = bytearray(wire_arrow.encode_reply(Reply("k", np.array([0.5, 1.0]), "1", "2", False)))
    for number in range(bytes_):
        body[(place + number) % len(body)] ^= change
    with suppress(QueryError):
        wire_arrow.decode_reply(bytes(body))


@given(schemas(), st.sampled_from(MECHANISMS), st.integers(1, 3), st.integers(6, 99), st.data())
def test_facts_come_back_as_they_were(schema, mechanism, k, records, data):
    claim = claim_named(mechanism, k)
    if claim.protected:
        offset = data.draw(st.sampled_from([None, 0.5]))
        post = data.draw(st.sampled_from(POSTS)) if claim.post == "none" else None
        claim = claim_named(mechanism, k, offset=offset, post=post)
    policies = Policies(0.001 if claim.protected else None, data.draw(st.none() | st.just(7)), True)
    facts = PublicFacts(records, schema, claim, policies)
    plain = json.loads(json.dumps(facts_to_plain(facts)))
    assert facts_from_plain(plain) == facts
    assert facts_from_plain(plain).policies == policies


@given(attributes("a b"))
def test_attributes_come_back_as_they_were(attribute):
    facts = PublicFacts(3, Schema((attribute,)), thinveil.idp())
    assert facts_from_plain(json.loads(json.dumps(facts_to_plain(facts)))) == facts


GRID = {"name": "a", "kind": "integer", "missing": False, "step": "1", "lower": 1, "upper": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"records": 0},
        {"records": "9"},
        {"records": None},
        {"attributes": []},
        {"attributes": [{}]},
        {"attributes": [{"name": "a", "kind": "magic", "missing": False}]},
        {"attributes": [{"name": "a", "kind": "category", "missing": False, "values": [1]}]},
        {"attributes": [{**GRID, "step": "x"}]},
        {"attributes": [{**GRID, "lower": 0.5}]},
        {"attributes": [{**GRID, "lower": 3}]},
        {"attributes": [GRID, GRID]},
        {"claim": {}},
        {"claim": {"sensitivity": {"kind": "magic"}}},
        {"policies": {"colour": 1}},
        {"policies": {"min_epsilon": "x"}},
    ],
)
def test_facts_that_are_none_are_refused(change):
    plain = facts_to_plain(PublicFacts(9, SCHEMA, thinveil.idp()))
    with pytest.raises(FieldError):
        facts_from_plain({**plain, **change})
    with pytest.raises(FieldError):
        facts_from_plain([plain])


def test_a_claim_that_nobody_else_knows_cannot_travel():
    class Own(KLocal):
        pass

    facts = PublicFacts(9, SCHEMA, replace(thinveil.idp(), sensitivity=Own(2)))
    with pytest.raises(UsageError, match="cannot be sent"):
        facts_to_plain(facts)
