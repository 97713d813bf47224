"""Attributes of people by beliefs: right for everybody, cheaper with everybody found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from thinveil.attacker.attacks import learned_people as people
from thinveil.attacker.attacks.record_chain import Believed, Chain, Lessons
from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.beliefs.polya_tree import Places
from thinveil.attacker.engines.unions import Thrift
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import Axis
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Claim, claim_named, idp, unprotected
from thinveil.language.schema import LIMIT, MISSING, Categories, Grid, Schema
from worlds import (
    Watched,
    World,
    attack_with,
    boxes_of,
    coarse,
    column_truth,
    examples,
    rows_of,
    sweep,
    values_of,
    worlds,
)

PLAIN = Thrift(states=16, windows=2, plain=True)
LEAKING = [
    claim_named("idp", 1, post="integer"),
    claim_named("idp", 1, post="binary"),
    claim_named("idp", 1, offset=1.0),
    claim_named("idp", 2, "bounded", offset=1.0),
]


def fitting(world: World, person: dict[int, int]) -> list[tuple[int, ...]]:
    return [row for row in rows_of(world.dataset) if person.items() <= dict(enumerate(row)).items()]


def check(world: World, asked: list[dict[int, int]], wanted: list[int], **options: Any) -> Watched:
    """Attack, and hold all that is found against the table."""
    target = Watched(world.curator())
    found = attack_with(
        people.attributes(world.facts, Care(), Wish(people=asked, columns=wanted, **options)),
        target,
    ).found
    widths, priors = options.get("widths") or {}, options.get("priors") or {}
    for person, each in zip(asked, found.people, strict=True):
        rows = fitting(world, person)
        assert each.matches == len(rows)
        assert each.present == (len(rows) > 0)
        assert each.unique == (len(rows) == 1)
        assert each.bits is not None
        if not rows:
            assert each.values == each.prior_failed == ()
            continue
        assert [part.column for part in each.values] == wanted
        for part in each.values:
            assert part.width == widths.get(part.column, 1)
            assert part.values == column_truth(rows, part.column, part.width)
            assert part.bits is not None
            assert part.bits >= 0
        failed = []
        for column, bounds in priors.items():
            width = widths.get(column, 1)
            low, high = (coarse(end, width) for end in bounds)
            if not all(low <= coarse(row[column], width) <= high for row in rows):
                failed.append(column)
        assert sorted(each.prior_failed) == sorted(failed)
    return target


@st.composite
def crowds(draw: st.DrawFn, /, **limits: Any) -> tuple[World, list[dict[int, int]], list[int], Any]:
    """Some people, in the table or not, what is wanted of them, and widths and priors."""
    world = draw(worlds(**limits))
    schema, rows = world.dataset.schema, rows_of(world.dataset)
    known = draw(st.lists(st.sampled_from(range(len(schema))), unique=True))
    rest = [column for column in range(len(schema)) if column not in known]
    assume(rest)
    asked = []
    for _ in range(draw(st.integers(1, 12))):
        who, stranger = draw(st.sampled_from(rows)), draw(st.integers(0, 4)) == 0
        asked.append(
            {
                column: draw(values_of(schema[column], large=False)) if stranger else who[column]
                for column in known
            }
        )
    wanted = draw(st.lists(st.sampled_from(rest), unique=True, min_size=1))
    widths = {
        column: draw(st.sampled_from([1, 2, 3, 10**6]))
        for column in wanted
        if not isinstance(schema[column], Categories) and draw(st.integers(0, 3)) == 0
    }
    priors = {}
    for column in wanted:
        if draw(st.integers(0, 2)) == 0:
            low = draw(st.one_of(st.integers(-8, 8), st.sampled_from([-(10**6), -(2**61)])))
            high = low + draw(st.one_of(st.integers(0, 8), st.sampled_from([10**6, 2**62])))
            priors[column] = (low, high)
    return world, asked, wanted, {"widths": widths, "priors": priors}


@examples(150)
@given(crowds(), st.sampled_from([None, None, None, PLAIN]))
def test_everybody_is_found(crowd: Any, thrift: Thrift | None) -> None:
    world, asked, wanted, options = crowd
    target = check(world, asked, wanted, thrift=thrift, **options)
    if world.claim.universe == "bounded" and thrift is None:
        assert target.constant() == []


@examples(25)
@given(crowds(records=7, columns=3, domain=5, claim=st.sampled_from(LEAKING)))
def test_everybody_is_found_by_repeated_questions(crowd: Any) -> None:
    world, asked, wanted, options = crowd
    check(world, asked, wanted, **options)


def numbered(seed: int, records: int, claim: Claim) -> World:
    """People with an id, a group, and values that depend on it, on each other and on nothing."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, records)
    rare = (rng.random(records) < 0.1).astype(np.int64)
    table = [
        np.arange(records),
        group,
        np.where(rng.random(records) < 0.9, group, 3),
        rare,
        np.where(rare == 1, rng.integers(1, 300, records), -1),
        np.where(rng.random(records) < 0.2, 0, np.exp(rng.normal(6, 1, records)).astype(np.int64)),
        np.where(rng.random(records) < 0.3, MISSING, rng.normal(500, 9, records).astype(np.int64)),
    ]
    schema = Schema(
        (
            Grid("id", lower=0, upper=records),
            Grid("group", lower=0, upper=2),
            Categories("follows", ("a", "b", "c", "d")),
            Categories("rare", ("no", "yes")),
            Grid("since", lower=-1, upper=999),
            Grid("balance", lower=-100_000, upper=1_000_000),
            Grid("open", missing=True),
        )
    )
    return World(Dataset(schema, np.column_stack(table).astype(np.int64)), claim)


WANTED = [2, 3, 4, 5, 6]


def listed(world: World) -> list[dict[int, int]]:
    return [{0: row[0], 1: row[1]} for row in rows_of(world.dataset)]


@pytest.mark.parametrize("thrift", [None, PLAIN])
@pytest.mark.parametrize("claim", [idp(1), idp(3), unprotected()])
def test_a_list_is_found_exactly(claim: Claim, thrift: Thrift | None) -> None:
    world = numbered(1, 16, claim)
    check(world, listed(world), WANTED, alone=True, thrift=thrift)


def questions(world: World, **options: Any) -> Watched:
    return check(world, listed(world), WANTED, alone=True, **options)


def test_what_is_learned_from_the_first_helps_with_the_next() -> None:
    asked: dict[int, int] = {}
    for batch in questions(numbered(2, 240, idp(1))).batches:
        for (box,) in boxes_of(batch):
            asked[box[0][0]] = asked.get(box[0][0], 0) + 1
    each = np.array(list(asked.values()))  # in the order in which people began
    assert each[-80:].mean() < each[:80].mean() - 2
    assert each[-80:].mean() < each[:8].mean() - 10


def test_of_whom_nothing_is_left_to_find_nothing_is_asked() -> None:
    """Bounds and step leave one value: whoever is known to be alone is over at once."""
    schema = Schema((Grid("id", lower=0, upper=9), Grid("pay", lower=0, upper=99)))
    codes = np.column_stack([np.arange(6), np.arange(6) * 7])
    world = World(Dataset(schema, codes), idp(1))
    asked = [{0: who} for who in range(6)]
    target = check(world, asked, [1], widths={1: 100}, alone=True)
    assert target.batches == []


@pytest.mark.parametrize(("seed", "records", "frozen"), sweep([(4, 40, 983), (3, 120, 2281)], 2))
def test_frozen_questions(seed: int, records: int, frozen: int) -> None:
    world = numbered(seed, records, idp(1))
    target = questions(world)
    assert sum(batch.questions for batch in target.batches) == frozen
    for claim in (idp(2), unprotected()):
        again = questions(World(world.dataset, claim))
        assert sum(batch.questions for batch in again.batches) == frozen


@pytest.mark.parametrize("thrift", [None, PLAIN])
def test_same_seed_same_questions(thrift: Thrift | None) -> None:
    world = numbered(5, 6, idp(1))
    first, second = (questions(world, thrift=thrift) for _ in range(2))
    assert [each.digest() for each in first.batches] == [each.digest() for each in second.batches]


def test_unions_save_questions() -> None:
    world = numbered(6, 60, idp(1))
    thrift = Thrift(states=48, windows=4, plain=True)
    alone, together = (
        check(world, listed(world), [5], alone=True, thrift=each).batches for each in (None, thrift)
    )
    spent = [sum(batch.questions for batch in each) for each in (alone, together)]
    assert spent[1] < 0.9 * spent[0]


def test_people_are_searched_side_by_side() -> None:
    world = numbered(7, 200, idp(1))
    assert len(questions(world).batches) < 300


# ---- single people


@pytest.mark.parametrize("size", [2, 3, 10, 100, 1000, 10**6])
@pytest.mark.parametrize("missing", [False, True])
def test_one_person_costs_little_more_than_halving(size: int, missing: bool) -> None:
    schema = Schema(
        (Grid("id", lower=0, upper=9), Grid("x", lower=0, upper=size - 1, missing=missing))
    )
    rng = np.random.default_rng(size)
    for value in {0, size - 1, size // 2, *rng.integers(0, size, 8).tolist()}:
        world = World(Dataset(schema, np.array([[1, value], [2, 0]])), idp(1))
        target = check(world, [{0: 1}], [1], alone=True)
        asked = sum(batch.questions for batch in target.batches)
        assert asked <= math.ceil(math.log2(size)) + 2


@pytest.mark.parametrize("value", [0, -1, 5, -1000, 10**6, 10**12, LIMIT - 1, 1 - LIMIT, MISSING])
def test_bounds_need_not_be_known(value: int) -> None:
    schema = Schema((Grid("id", lower=0, upper=9), Grid("x", missing=True)))
    world = World(Dataset(schema, np.array([[1, value], [2, 0]])), idp(1))
    target = check(world, [{0: 1}], [1], alone=True)
    asked = sum(batch.questions for batch in target.batches)
    doubling = 1 + 2 * (0 if value == MISSING else abs(value).bit_length())
    assert asked <= doubling + 4


# ---- chains and densities


def chains(known: Sequence[Sequence[int]], sizes: Sequence[int]) -> Believed:
    places = [Places(Axis(column, 0, size - 1)) for column, size in enumerate(sizes)]
    lessons = Lessons(places, np.zeros((len(known), 1), np.int64))
    for person, values in enumerate(known):
        lessons.learn(person, values)
    return Believed(lessons)


@examples(60)
@given(st.data())
def test_joint_questions_find_every_record(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    record = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    pool = data.draw(st.lists(record, min_size=1, max_size=3))
    believed = chains(data.draw(st.lists(st.sampled_from(pool), max_size=30)), sizes)
    cost = bits = 0.0
    for values in product(*(range(size) for size in sizes)):
        chain = Chain(0, believed, [None] * len(sizes))
        told = 0.0
        while not chain.over:
            right = all(low <= values[place] < high for place, (low, high) in chain.box.items())
            told -= math.log2(chain.chance if right else 1 - chain.chance)
            chain.tell(right)
            cost += 2 ** -sum(chain.bits.values()) if chain.over else 0.0
        assert chain.found == dict(enumerate(values))
        assert sum(chain.bits.values()) == pytest.approx(told, abs=1e-6)
        bits += 2 ** -sum(chain.bits.values())
    assert bits == pytest.approx(1, abs=1e-6)


def test_several_likely_values_are_one_question() -> None:
    believed = chains([(1, 2, 0)] * 60, (4, 4, 2))
    chain = Chain(0, believed, [None] * 3)
    assert chain.box == {0: (1, 2), 1: (2, 3), 2: (0, 1)}
    assert chain.chance > 0.8
    chain.tell(True)
    assert chain.over
    assert chain.found == {0: 1, 1: 2, 2: 0}
    assert sum(chain.bits.values()) < 0.3


def test_questions_are_about_as_many_as_bits() -> None:
    world = numbered(8, 150, idp(1))
    wish = Wish(people=listed(world), columns=WANTED, alone=True)
    attack = people.attributes(world.facts, Care(), wish)
    ended = attack_with(attack, world.curator())
    bits = sum(each.bits or 0.0 for each in ended.found.people)
    assert ended.meter.queries <= bits + 0.6 * 150


SHAPES = {
    "normal": lambda rng: rng.normal(50_000, 300, 300),
    "heavy tail": lambda rng: np.exp(rng.normal(8, 1, 300)),
    "spike": lambda rng: np.where(rng.random(300) < 0.5, 0, np.exp(rng.normal(6, 2, 300))),
    "uniform": lambda rng: rng.integers(0, 1_000_000, 300),
}
BITS = {"normal": 10.27, "heavy tail": 13.59, "spike": 6.6, "uniform": 19.93}


@pytest.mark.parametrize("shape", SHAPES)
def test_densities_learn_any_shape(shape: str) -> None:
    values = np.clip(SHAPES[shape](np.random.default_rng(1)), 0, 999_999).astype(np.int64)
    places = Places(Axis(0, 0, 999_999))
    density = places.learned(values[:200])
    below = [0.0, *np.cumsum(density.mass).tolist()]
    asked = 0
    for value in values[200:].tolist():
        low, high = places.first, places.high
        while high - low > 1:
            cut, chance = density.cut(below, low, high)
            assert low < cut < high
            assert 0 <= chance <= 1
            low, high = (low, cut) if value < cut else (cut, high)
            asked += 1
        assert low == value
    assert asked / 100 < BITS[shape] + 1


@given(st.lists(st.integers(-3, 20), max_size=30), st.booleans(), st.floats(0.05, 0.95))
def test_a_cut_is_as_near_to_its_share_as_any(
    values: list[int], missing: bool, share: float
) -> None:
    places = Places(Axis(0, -2, 20, missing=missing))
    seen = [each for each in values if each >= places.first]
    density = places.learned(np.array(seen, np.int64))
    below = [0.0, *np.cumsum(density.mass).tolist()]
    cut, chance = density.cut(below, places.first, places.high, share)
    shares = {at: density.upto(below, at) for at in range(places.first + 1, places.high)}
    assert chance == pytest.approx(shares[cut])
    assert abs(chance - share) == pytest.approx(min(abs(p - share) for p in shares.values()))
