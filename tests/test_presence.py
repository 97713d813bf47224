"""Presence: the distinct records, found with what was learned, are the same and cost less."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_existence import (
    BOOTSTRAPS,
    COMPOSED,
    SMALL,
    distinct,
    every_bootstrap,
    oracle,
    widths_for,
)
from thinveil.attacker.attacks import distinct_searches as existence
from thinveil.attacker.attacks import distinct_table as presence
from thinveil.attacker.attacks.table import in_order
from thinveil.attacker.engines.group_testing import Pools
from thinveil.attacker.engines.unions import BOXES, Thrift
from thinveil.attacker.terms import axes_of
from thinveil.auditing.driver import Run, run
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Claim, bdp
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import Policies
from thinveil.language.schema import MISSING, Categories, Grid, Schema
from worlds import (
    Watched,
    World,
    attack_with,
    boxes_of,
    domain_of,
    looking,
    rows_of,
    schedule_for,
    sweep,
    wished,
    worlds,
)

FORMS = {"adaptive": False, "thrifty": True}
every_form = pytest.mark.parametrize("thrifty", FORMS.values(), ids=FORMS)


def table(facts: PublicFacts, thrifty: bool = False, **given: Any) -> Any:
    return wished(presence.table, facts, thrift=Thrift() if thrifty else None, **given)


def attacked(attack: Any, world: World) -> Any:
    """Run an attack; return what it found, or None where nothing can be told."""
    target = Watched(world.curator())
    if world.claim.hides_direction and len(set(rows_of(world.dataset))) == 1:
        ended = run(attack, target, schedule_for(world.claim))
        assert ended.ending == "undecided"
        return None
    ended = attack_with(attack, target)
    assert set(target.thresholds()) <= {0}
    if world.claim.universe == "bounded":
        check_not_constant(target)
    return ended.found


def check_not_constant(target: Watched) -> None:
    """No question may be true of no record that is possible, or of all of them."""
    domains = [set(domain_of(attribute)) for attribute in target.facts.schema]
    for batch in target.batches:
        for union in boxes_of(batch):
            kept = [
                [
                    {code for code in domains[column] if low <= code < high}
                    for column, (low, high) in box.items()
                ]
                for box in union
            ]
            assert all(all(box) for box in kept)
            assert len(union) > 1 or any(
                codes != domains[column] for column, codes in zip(union[0], kept[0], strict=True)
            )


def check(found: Any, data: Dataset, widths: dict[int, int] | None = None) -> None:
    columns = len(data.schema)
    assert found.distinct
    assert sorted(found.columns) == list(range(columns))
    assert found.widths == tuple((widths or {}).get(column, 1) for column in found.columns)
    assert (found.known == columns).all()
    assert (found.counts == 1).all()
    assert len(found.bits) == columns
    assert all(each >= 0 for each in found.bits)
    rows = [tuple(row) for row in found.codes.tolist()]
    assert len(set(rows)) == len(rows)
    assert set(rows) == distinct(rows_of(data), found.columns, found.widths)


# ---- exactness


@every_form
@settings(max_examples=20)
@given(world=worlds(**SMALL), data=st.data())
def test_the_distinct_records_of_a_table(world: World, thrifty: bool, data: st.DataObject) -> None:
    schema = world.dataset.schema
    widths = widths_for(data.draw, schema)
    order = data.draw(st.lists(st.sampled_from(range(len(schema))), unique=True))
    found = attacked(table(world.facts, thrifty, order=order, widths=widths), world)
    if found is not None:
        check(found, world.dataset, widths)
        assert found.columns[: len(order)] == tuple(order) or world.claim.hides_direction


@settings(max_examples=20)
@given(worlds(**SMALL), st.data())
def test_the_distinct_values_of_columns(world: World, data: st.DataObject) -> None:
    schema = world.dataset.schema
    widths = widths_for(data.draw, schema)
    wanted = data.draw(st.lists(st.sampled_from(range(len(schema))), unique=True, min_size=1))
    found = attacked(wished(presence.columns, world.facts, columns=wanted, widths=widths), world)
    if found is None:
        return
    assert [each.column for each in found.columns] == wanted
    for each in found.columns:
        truth = distinct(rows_of(world.dataset), [each.column], [each.width])
        assert each.distinct
        assert each.values == [(value, 1) for (value,) in sorted(truth)]


@every_form
@settings(max_examples=10)
@given(world=worlds(columns=2, records=6, claim=BOOTSTRAPS))
def test_what_is_found_so_far_exists(world: World, thrifty: bool) -> None:
    looks: list[tuple[float, Any]] = []
    attack = looking(table(world.facts, thrifty), looks)
    run(attack, world.curator(), schedule_for(world.claim))
    for done, found in looks:
        assert 0 <= done <= 1
        for known in range(len(found.columns) + 1):
            told = {tuple(row[:known]) for row in found.codes[found.known >= known].tolist()}
            truth = distinct(rows_of(world.dataset), found.columns[:known], found.widths[:known])
            assert told <= truth


SCHEMA = Schema(
    (
        Grid("a", lower=0, upper=40, missing=True),
        Categories("b", ("x", "y", "z")),
        Grid("c"),
        Grid("d", lower=-5, upper=300),
        Categories("e", ("only",)),
    )
)


def mixed(records: int, seed: int, *, unique: bool = False) -> Dataset:
    """A table of several hundred records with dependent, missing and constant columns."""
    rng = np.random.default_rng(seed)
    b = rng.choice(3, records, p=[0.8, 0.15, 0.05])
    a = np.where(b == 0, 7, rng.integers(0, 41, records))
    a = np.where(rng.random(records) < 0.05, MISSING, a)
    c = (rng.standard_t(2, records) * 50).astype(np.int64)
    d = np.arange(records) % 306 - 5 if unique else rng.geometric(0.05, records) % 300
    return Dataset(SCHEMA, np.column_stack([a, b, c, d, np.zeros(records, np.int64)]))


@every_form
@pytest.mark.parametrize("seed", sweep(range(3), 2))
@pytest.mark.parametrize("records", [1, 2, 3, 120])
def test_larger_tables(records: int, seed: int, thrifty: bool) -> None:
    data = mixed(records, seed, unique=seed == 2)
    for widths in ({}, {0: 5, 2: 10}):
        world = World(data, bdp())
        check(attacked(table(world.facts, thrifty, widths=widths), world), data, widths)


@every_form
@every_bootstrap
def test_composed_mechanisms(claim: Claim, thrifty: bool) -> None:
    data = mixed(24, 1)
    world = World(data, claim)
    found = attacked(table(world.facts, thrifty, widths={2: 10}), world)
    check(found, data, {2: 10})


@every_form
@every_bootstrap
@pytest.mark.parametrize("records", [1, 2, 7])
def test_all_records_are_equal(claim: Claim, records: int, thrifty: bool) -> None:
    schema = Schema((Grid("x", lower=-3, upper=40), Categories("c", ("a", "b", "c"), True)))
    world = World(Dataset(schema, np.array([[17, 1]] * records)), claim)
    found = attacked(table(world.facts, thrifty), world)
    assert claim.hides_direction == (found is None)
    if found is not None:
        check(found, world.dataset)


@every_form
@pytest.mark.parametrize("name", ["binary", "noisy-integer"])
def test_a_cache_is_talked_round(name: str, thrifty: bool) -> None:
    data = mixed(24, 1)
    curator = Curator(data, COMPOSED[name], policies=Policies(cache=True))
    check(attack_with(table(curator.facts, thrifty), curator).found, data)


# ---- how many questions


def asked(data: Dataset, attack: Callable[[Any], Any]) -> Run[Any]:
    return attack_with(attack(World(data, bdp()).facts), World(data, bdp()).curator())


def compared(data: Dataset) -> tuple[int, int, int]:
    """Return the answers that the thrifty form, the adaptive form and plain halving take."""
    return (
        asked(data, lambda facts: table(facts, True)).meter.queries,
        asked(data, table).meter.queries,
        halving(data),
    )


def halving(data: Dataset) -> int:
    """Return the questions of plain halving: each attribute in each group, smallest first."""
    axes, total = axes_of(World(data, bdp()).facts), 0
    for place, axis in enumerate(axes):
        if axis.lower is None:
            values = data.codes[:, axis.column].tolist()
            reach, questions = oracle(existence._reach(axis), values, 0, hidden=False)
            axes[place], total = axis.within(-reach, reach - 1), total + questions
    axes = in_order(axes, None)
    records = data.codes[:, [axis.column for axis in axes]]
    for depth, axis in enumerate(axes):
        groups: dict[tuple[int, ...], list[int]] = {}
        for row in records.tolist():
            groups.setdefault(tuple(row[:depth]), []).append(row[depth])
        for values in groups.values():
            others = data.records - len(values)
            total += oracle(existence.column(axis), values, others, hidden=False)[1]
    return total


def random_table(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 60, rng.integers(1, 5))
    schema = Schema(tuple(Grid(f"x{i}", lower=0, upper=int(s) - 1) for i, s in enumerate(sizes)))
    records = int(rng.integers(1, 200))
    return Dataset(schema, np.column_stack([rng.integers(0, s, records) for s in sizes]))


@pytest.mark.parametrize("seed", sweep(range(12), 3))
def test_where_nothing_can_be_learned_little_is_lost(seed: int) -> None:
    data = random_table(seed)
    thrifty, adaptive, plain = compared(data)
    assert thrifty <= 1.05 * adaptive + 8
    assert adaptive <= 1.05 * plain + 20 * len(data.schema)


@pytest.mark.parametrize("seed", sweep(range(2), 2))
def test_structured_tables_take_fewer_questions(seed: int) -> None:
    thrifty, adaptive, plain = compared(mixed(1500, seed))
    assert thrifty <= adaptive
    assert adaptive <= 0.85 * plain


@every_form
def test_unions_are_bounded(thrifty: bool) -> None:
    data = mixed(400, 5)
    target = Watched(World(data, bdp()).curator())
    attack_with(table(target.facts, thrifty), target)
    most = max(
        1 if batch.offsets is None else int(np.diff(batch.offsets).max())
        for batch in target.batches
    )
    assert (1 < most <= BOXES) if thrifty else most == 1


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(1e-6, 0.6), st.booleans()), min_size=1, max_size=60), st.data())
def test_pools_settle_every_test(tests: list[tuple[float, bool]], data: st.DataObject) -> None:
    chance = np.array([each for each, _ in tests])
    truth = np.array([each for _, each in tests])
    kind = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=len(tests), max_size=len(tests)))
    )
    pools = Pools(8)
    pools.add(np.arange(len(tests)))
    told: dict[int, bool] = {}
    while len(pools):
        offsets, rows = pools.questions(chance, kind, False)
        unions = [rows[a:b] for a, b in pairwise(offsets.tolist())]
        assert all(1 <= len(union) <= 8 and len(set(kind[union])) == 1 for union in unions)
        some = np.array([truth[union].any() for union in unions])
        settled, held, _ = pools.learn(some, np.zeros(len(some), np.bool_))
        assert not told.keys() & set(settled.tolist())
        told |= dict(zip(settled.tolist(), held.tolist(), strict=True))
    assert told == dict(enumerate(truth.tolist()))


def uniform(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    schema = Schema((Grid("x", lower=0, upper=9), Grid("y", lower=0, upper=99), Grid("z")))
    rows = [rng.integers(0, size, 600) for size in (10, 100, 1000)]
    return Dataset(schema, np.column_stack(rows))


def dense(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Categories(name, tuple("pqrstu")) for name in "abcde"))
    return Dataset(schema, rng.choice(6, (2000, 5), p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05]))


FROZEN = {
    # table: (queries, rounds) of the thrifty and of the adaptive form
    "mixed": ((13_478, 441), (13_804, 386)),
    "uniform": ((8_635, 229), (8_761, 199)),
    "dense": ((3_682, 92), (3_648, 66)),
}
TABLES = {"mixed": mixed(1500, 0), "uniform": uniform(1), "dense": dense(2)}


@every_form
@pytest.mark.parametrize("name", TABLES)
def test_frozen_counts(name: str, thrifty: bool) -> None:
    meter = asked(TABLES[name], lambda facts: table(facts, thrifty)).meter
    assert (meter.queries, meter.rounds) == FROZEN[name][0 if thrifty else 1]
