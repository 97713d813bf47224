"""Which records exist: Bootstrap DP gives the distinct records away, however it is composed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.attacks import distinct_searches as existence
from thinveil.attacker.attacks import distinct_table as presence
from thinveil.attacker.attacks import witness_cut as cuts
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.strategies import STRATEGIES
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Axis, Search
from thinveil.auditing.driver import run
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError
from thinveil.language.claims import Claim, bdp, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import Policies
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Categories, Grid, Schema
from worlds import (
    Draw,
    Watched,
    World,
    answered,
    attack_with,
    coarse,
    drawn,
    ends,
    examples,
    inside,
    leaking_claims,
    looking,
    one_column,
    rows_of,
    schedule_for,
    shell,
    sweep,
    values_of,
    wished,
    worlds,
)

BOOTSTRAPS = leaking_claims(bases=("bdp",))
SMALL: dict[str, Any] = {"columns": 3, "records": 9, "claim": BOOTSTRAPS}
COMPOSED = {
    "plain": bdp(),
    "integer": claim_named("bdp", post="integer"),
    "binary": claim_named("bdp", post="binary"),
    "noisy": claim_named("bdp", offset=1.0),
    "noisy-integer": claim_named("bdp", offset=0.5, post="integer"),
}
every_bootstrap = pytest.mark.parametrize("claim", COMPOSED.values(), ids=COMPOSED)
HIDDEN = {name: claim for name, claim in COMPOSED.items() if claim.hides_direction}
every_hidden = pytest.mark.parametrize("claim", HIDDEN.values(), ids=HIDDEN)


def looks_equal(world: World) -> bool:
    """Tell whether all records are equal, so that an always-noisy curator shows nothing."""
    return len(set(rows_of(world.dataset))) == 1


def attacked(attack: Any, world: World) -> Any:
    """Run an attack on a world; return what it found, or None where it may not find out."""
    target = Watched(world.curator())
    if world.claim.hides_direction and looks_equal(world):
        ended = run(attack, target, schedule_for(world.claim))
        if ended.ending == "undecided":
            assert re.search("all records look equal|may differ between the cuts", ended.reason)
            return None
        assert ended.ending == "complete"
    else:
        ended = attack_with(attack, target)
    if world.claim.universe == "bounded":
        assert target.constant() == []
    assert set(target.thresholds()) <= {0}
    return ended.found


def widths_for(draw: Draw, schema: Schema) -> dict[int, int]:
    return {
        column: draw(st.sampled_from([2, 3, 10, 1000]))
        for column, attribute in enumerate(schema)
        if attribute.kind != "category" and draw(st.integers(0, 2)) == 0
    }


def distinct(
    rows: Sequence[Sequence[int]], columns: Sequence[int], widths: Sequence[int]
) -> set[tuple[int, ...]]:
    return {
        tuple(coarse(row[column], width) for column, width in zip(columns, widths, strict=True))
        for row in rows
    }


# ---- every world


@examples(100)
@given(worlds(**SMALL), st.data())
def test_the_distinct_records_of_a_table(world: World, data: st.DataObject) -> None:
    schema = world.dataset.schema
    widths = widths_for(data.draw, schema)
    order = data.draw(st.lists(st.sampled_from(range(len(schema))), unique=True))
    found = attacked(wished(presence.table, world.facts, order=order, widths=widths), world)
    if found is None:
        return
    assert found.distinct
    assert sorted(found.columns) == list(range(len(schema)))
    assert found.widths == tuple(widths.get(column, 1) for column in found.columns)
    assert (found.known == len(schema)).all()
    assert (found.counts == 1).all()
    rows = [tuple(row) for row in found.codes.tolist()]
    assert len(set(rows)) == len(rows)
    assert set(rows) == distinct(rows_of(world.dataset), found.columns, found.widths)


@examples(40)
@given(worlds(columns=2, records=6, claim=BOOTSTRAPS))
def test_what_is_found_so_far_exists(world: World) -> None:
    assume(not looks_equal(world))
    looks: list[tuple[float, Any]] = []
    attack_with(looking(wished(presence.table, world.facts), looks), world.curator())
    for done, found in looks:
        assert 0 <= done <= 1
        for known in range(len(found.columns) + 1):
            told = {tuple(row[:known]) for row in found.codes[found.known >= known].tolist()}
            truth = distinct(rows_of(world.dataset), found.columns[:known], found.widths[:known])
            assert told <= truth


@examples(100)
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
        assert each.distinct
        assert each.width == widths.get(each.column, 1)
        truth = distinct(rows_of(world.dataset), [each.column], [each.width])
        assert each.values == [(value, 1) for (value,) in sorted(truth)]


@examples(200)
@given(worlds(**SMALL), st.data())
def test_none_some_or_all(world: World, data: st.DataObject) -> None:
    columns = data.draw(
        st.lists(st.sampled_from(range(len(world.dataset.schema))), unique=True, min_size=1)
    )
    box = {column: (data.draw(ends()), data.draw(ends())) for column in columns}
    found = attacked(shell("count", world.facts, STRATEGIES["adaptive"], box=box), world)
    if found is None:
        return
    count = sum(inside(row, box) for row in rows_of(world.dataset))
    assert found.exists == (count > 0)
    every = count == world.dataset.records
    if world.claim.post != "none" and not world.claim.hides_direction and every:
        assert found.count in (count, None)  # rounded, "some" and "all" need not be told apart
    else:
        assert found.count == (count if every or not count else None)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[World, list[dict[int, int]], list[int]]:
    """Some people, in the table or not, and the columns that are not known of them."""
    world = draw(worlds(**SMALL))
    schema, rows = world.dataset.schema, rows_of(world.dataset)
    known = draw(st.lists(st.sampled_from(range(len(schema))), unique=True))
    people = []
    for _ in range(draw(st.integers(1, 4))):
        who, stranger = draw(st.sampled_from(rows)), draw(st.booleans())
        people.append(
            {
                column: draw(values_of(schema[column], large=False)) if stranger else who[column]
                for column in known
            }
        )
    return world, people, [column for column in range(len(schema)) if column not in known]


def fitting(world: World, person: dict[int, int]) -> list[tuple[int, ...]]:
    return [row for row in rows_of(world.dataset) if person.items() <= dict(enumerate(row)).items()]


@examples(150)
@given(crowds())
def test_membership(crowd: Any) -> None:
    world, people, _ = crowd
    found = attacked(shell("membership", world.facts, STRATEGIES["adaptive"], people=people), world)
    if found is not None:
        present = [bool(fitting(world, person)) for person in people]
        assert [each.present for each in found.people] == present


@examples(80)
@given(crowds(), st.data())
def test_the_values_of_people(crowd: Any, data: st.DataObject) -> None:
    world, people, rest = crowd
    assume(rest)
    widths = widths_for(data.draw, world.dataset.schema)
    wanted = data.draw(st.lists(st.sampled_from(rest), unique=True, min_size=1))
    found = attacked(
        shell(
            "attribute",
            world.facts,
            STRATEGIES["adaptive"],
            people=people,
            columns=wanted,
            widths=widths,
        ),
        world,
    )
    if found is None:
        return
    for person, each in zip(people, found.people, strict=True):
        rows = fitting(world, person)
        assert each.present == bool(rows)
        assert [part.column for part in each.values] == (wanted if rows else [])
        for part in each.values:
            assert part.distinct
            truth = distinct(rows, [part.column], [part.width])
            assert part.values == [(value, 1) for (value,) in sorted(truth)]


# ---- the searches


def oracle(search: Search[Any], values: Sequence[int], others: int, hidden: bool) -> Any:
    """Settle a search truthfully: `others` records of the table are outside its group."""

    def zone_at(low: int, high: int, b: int) -> int:
        assert b == 0
        assert low < high
        count = sum(low <= value < high for value in values)
        if 0 < count < len(values) + others:
            return NOISY
        return ABOVE if count and not hidden else BELOW

    return answered(search, zone_at)


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("size", range(1, 8))
def test_smallest_first_finds_every_set_of_values(size: int, others: int) -> None:
    for chosen in range(1, 2**size):
        values = [value for value in range(size) if chosen >> value & 1]
        for hidden in (False, True) if others else (False,):
            search = existence.smallest_first(0, size, [])
            found, asked = oracle(search, values, others, hidden)
            assert found == [(value, 1) for value in values]
            assert asked <= len(values) * (np.ceil(np.log2(size)) + 2)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("size", range(6))
def test_a_column_with_and_without_missing_values(size: int, missing: bool) -> None:
    axis = Axis(0, 0, size - 1, missing=missing)
    domain = [MISSING] * missing + list(range(size))
    for chosen in range(1, 2 ** len(domain)):
        values = [value for place, value in enumerate(domain) if chosen >> place & 1]
        for others, hidden in ((0, False), (1, False), (1, True)):
            found, _ = oracle(existence.column(axis), values, others, hidden)
            assert sorted(found) == [(value, 1) for value in values]


# ---- cuts


@pytest.mark.parametrize("width", [1, 2, 3, 10])
@pytest.mark.parametrize("at", [LOWEST, -7, -6, -5, 0, 1, 2, 3, 6, 7])
def test_the_two_parts_of_a_cut_axis_hold_every_value_once(at: int, width: int) -> None:
    axis = Axis(0, -10 // width, 9 // width, width, missing=True)
    cut = cuts.Cut(0, at)
    values = {MISSING, *range(-10, 10)}
    for side, (low, high) in enumerate(cut.sides):
        part = cut.part(axis, side)
        mine = sorted(value for value in values if low <= value < high)
        search = cut.within(existence.column(part), width, side)
        found, _ = oracle(search, mine, 1, hidden=True)
        assert {axis.code(step) for step, _ in found} == {coarse(value, width) for value in mine}


def test_cuts_become_finer_and_end() -> None:
    known = list(cuts._cuts(Axis(0, 0, 8, missing=True)))
    assert known[0] == [LOWEST]
    assert sorted(chain.from_iterable(known[1:])) == list(range(1, 9))
    assert list(cuts._cuts(Axis(0, 5, 5))) == []
    assert list(cuts._cuts(Axis(0, 0, -1, missing=True))) == []
    unknown = cuts._cuts(Axis(0, None, None))
    first, second = next(unknown), next(unknown)
    assert {0, 1, -1, 2**61, -(2**61)} <= set(first)
    assert len(first) == len(set(first))
    assert not set(first) & set(second)
    assert {3, -3, 6} <= set(second)


@every_hidden
@pytest.mark.parametrize(
    "values", sweep([[5, 6], [LIMIT - 1, LIMIT - 2**57], [-3, -3, -4], [0, 10**15]], 2)
)
def test_a_cut_is_found_without_bounds(claim: Claim, values: list[int]) -> None:
    world = World(one_column(values), claim)
    found = attacked(wished(presence.columns, world.facts, columns=[0]), world)
    assert found.columns[0].values == [(value, 1) for value in sorted(set(values))]


@every_hidden
def test_a_cut_between_two_values_of_one_coarse_step(claim: Claim) -> None:
    """All records look equal at the coarse precision; the cut is finer than that."""
    schema = Schema((Grid("x", lower=0, upper=99), Grid("y", lower=0, upper=99)))
    for rows in ([[41, 7], [48, 7]], [[41, 7], [48, 80]], [[3, 3]] * 4 + [[4, 3]]):
        world = World(Dataset(schema, np.array(rows)), claim)
        widths = {0: 10, 1: 10}
        found = attacked(wished(presence.table, world.facts, widths=widths), world)
        truth = distinct(rows, found.columns, found.widths)
        assert {tuple(row) for row in found.codes.tolist()} == truth
        assert len(found.codes) == len(truth)
        columns = attacked(
            wished(presence.columns, world.facts, columns=[0, 1], widths=widths), world
        )
        for each in columns.columns:
            values = distinct(rows, [each.column], [10])
            assert each.values == [(value, 1) for (value,) in sorted(values)]


@every_hidden
def test_a_range_that_holds_every_record_is_not_taken_for_an_empty_one(claim: Claim) -> None:
    world = World(one_column([1, 2, 3, 3], lower=0, upper=9), claim)
    for box, count in [((0, 9), 4), ((5, 9), 0), ((1, 4), 4), ((LOWEST, INFINITE), 4)]:
        found = attacked(shell("count", world.facts, STRATEGIES["adaptive"], box={0: box}), world)
        assert (found.count, found.exists) == (count, count > 0)


# ---- tables of equal records


@every_bootstrap
@pytest.mark.parametrize("records", [1, 2, 7])
def test_all_records_are_equal(claim: Claim, records: int) -> None:
    schema = Schema((Grid("x", lower=-3, upper=40), Categories("c", ("a", "b", "c"), True)))
    world = World(Dataset(schema, np.array([[17, 1]] * records)), claim)
    ended = run(wished(presence.table, world.facts), world.curator(), schedule_for(claim))
    if claim.hides_direction:
        assert ended.ending == "undecided"
        assert "all records look equal" in ended.reason
        assert ended.found.known.tolist() == [0]
    else:
        assert ended.ending == "complete"
        assert ended.found.codes.tolist() == [[1, 17]]
        assert ended.found.columns == (1, 0)


@every_bootstrap
def test_all_values_are_missing(claim: Claim) -> None:
    schema = Schema((Grid("x", missing=True), Categories("none", (), True)))
    world = World(Dataset(schema, np.full((3, 2), MISSING)), claim)
    found = attacked(wished(presence.table, world.facts), world)
    assert claim.hides_direction == (found is None)
    if found is not None:
        assert found.codes.tolist() == [[MISSING, MISSING]]


@every_bootstrap
def test_many_duplicates_count_once(claim: Claim) -> None:
    rng = np.random.default_rng(4)
    schema = Schema((Grid("x", lower=0, upper=30, missing=True), Grid("y")))
    rows = np.array([[3, -5], [3, 900], [MISSING, -5], [30, 0], [30, 1]])
    world = World(Dataset(schema, rows[rng.integers(0, 5, 200)]), claim)
    found = attacked(wished(presence.table, world.facts), world)
    assert {tuple(row) for row in found.codes.tolist()} == {
        tuple(row[column] for column in found.columns) for row in rows.tolist()
    }


# ---- care, budgets and refusals


@every_bootstrap
def test_questions_are_bounded_by_the_bits_of_what_exists(claim: Claim) -> None:
    """At most log2 of the domain and two more for each distinct value of each group."""
    rng = np.random.default_rng(7)
    schema = Schema((Grid("x", lower=0, upper=255), Grid("y", lower=0, upper=1023)))
    rows = np.column_stack([rng.integers(0, 256, 60), rng.integers(0, 1024, 60)])
    world = World(Dataset(schema, rows), claim)
    target = Watched(world.curator())
    attack_with(wished(presence.table, world.facts, order=[0, 1]), target)
    asked = {
        (batch.cells.digest, *each)
        for batch in target.batches
        for each in zip(batch.cell.tolist(), batch.low.tolist(), batch.high.tolist(), strict=True)
    }
    first, pairs = len(set(rows[:, 0].tolist())), len({tuple(row) for row in rows.tolist()})
    assert len(asked) <= first * (8 + 2) + pairs * (10 + 2)


@pytest.mark.parametrize("name", ["binary", "noisy"])
def test_the_planned_error_is_kept(name: str) -> None:
    claim = COMPOSED[name]
    world = World(one_column([3, 3, 5, 11, 12, 12, 15], lower=0, upper=15), claim)
    care = Care(error=0.5, expected=10)
    curator = world.curator()
    ended = attack_with(wished(presence.table, world.facts, care=care), curator)
    assert 0 < ended.meter.risk <= care.risk < 0.5
    assert drawn(curator) == ended.meter.queries


@pytest.mark.parametrize("name", ["binary", "noisy"])
def test_a_cache_is_talked_round_or_refused(name: str) -> None:
    claim = COMPOSED[name]
    data = Dataset(
        Schema((Grid("x", lower=0, upper=15), Grid("y", lower=-9, upper=9))),
        np.array([[3, 1], [3, -2], [11, 5], [12, 5], [12, 5]]),
    )
    curator = Curator(data, claim, policies=Policies(cache=True))
    ended = attack_with(wished(presence.table, curator.facts), curator)
    assert {tuple(row) for row in ended.found.codes.tolist()} == {
        tuple(row[column] for column in ended.found.columns) for row in data.codes.tolist()
    }
    curator = Curator(data, claim, policies=Policies(cache=True))
    people = [{0: 3, 1: 1}, {0: 3, 1: 3}]
    ended = attack_with(
        shell("membership", curator.facts, STRATEGIES["adaptive"], people=people), curator
    )
    assert [each.present for each in ended.found.people] == [True, False]
    bounded = Curator(
        data, claim_named("bdp", universe="bounded", post="binary"), policies=Policies(cache=True)
    )
    with pytest.raises(UsageError, match="caches"):
        attack_with(wished(presence.table, bounded.facts), bounded)


def test_a_target_that_hides_records_is_found_out() -> None:
    class Hiding:
        facts = PublicFacts(5, Schema((Grid("x"),)), bdp())

        def answer(self, batch: Any) -> Any:
            return np.full(batch.queries, 0.3)

    ended = run(wished(presence.columns, Hiding.facts, columns=[0]), Hiding(), schedule_for(bdp()))
    assert ended.ending == "broken"
    assert "outside every range" in ended.reason


@pytest.mark.parametrize("attack", ["dataset", "column", "count", "membership", "attribute"])
@pytest.mark.parametrize("post", ["none", "binary"])
def test_end_to_end(attack: str, post: str) -> None:
    data = Dataset(
        Schema((Grid("age", lower=0, upper=120), Categories("sex", ("f", "m")))),
        np.array([[33, 0], [33, 1], [70, 0], [70, 0]]),
    )
    settings: dict[str, dict[str, Any]] = {
        "dataset": {},
        "column": {"columns": ["age"]},
        "count": {"known": {"age": "60..90"}},
        "membership": {"known": {"age": 33, "sex": "m"}},
        "attribute": {"known": {"age": 70}},
    }
    verdict = thinveil.audit(data, mechanism="bdp", post=post, attack=attack, **settings[attack])
    assert verdict.run.ending == "complete"


def test_uniqueness_is_not_shown() -> None:
    with pytest.raises(UsageError, match="not how many"):
        thinveil.audit(
            one_column([1, 2], lower=0, upper=3),
            mechanism="bdp",
            attack="uniqueness",
            known={"x": 1},
        )
