"""Attributes of people by beliefs: right for everybody, cheaper with everybody found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from thinveil.attacker import people
from thinveil.attacker.strategies import strategy_named
from thinveil.attacker.thrifty import Thrift
from thinveil.curator.dataset import Dataset
from thinveil.language.claims import Claim, claim_named, idp, unprotected
from thinveil.language.schema import MISSING, Categories, Grid, Schema
from worlds import (
    Watched,
    World,
    attack_with,
    boxes_of,
    coarse,
    column_truth,
    rows_of,
    values_of,
    worlds,
)

PUBLISHED = strategy_named("published")
PLAIN = Thrift(states=32, windows=4, plain=True)
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
        people.attributes(world.facts, PUBLISHED, asked, wanted, **options), target
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
def crowds(draw: st.DrawFn, **limits: Any) -> tuple[World, list[dict[int, int]], list[int], Any]:
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


@settings(max_examples=250)
@given(crowds(), st.sampled_from([None, None, PLAIN]))
def test_everybody_is_found(crowd: Any, thrift: Thrift | None) -> None:
    world, asked, wanted, options = crowd
    target = check(world, asked, wanted, thrift=thrift, **options)
    if world.claim.universe == "bounded" and thrift is None:
        assert target.constant() == []


@settings(max_examples=25)
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
    world = numbered(1, 60, claim)
    check(world, listed(world), WANTED, assume_unique=True, thrift=thrift)


def per_person(world: World) -> np.ndarray:
    """Return how many questions each person took, in the order in which they began."""
    target = check(world, listed(world), WANTED, assume_unique=True)
    asked: dict[int, int] = {}
    for batch in target.batches:
        for (box,) in boxes_of(batch):
            asked[box[0][0]] = asked.get(box[0][0], 0) + 1
    return np.array(list(asked.values()))


def test_what_is_learned_from_the_first_helps_with_the_next() -> None:
    asked = per_person(numbered(2, 300, idp(1)))
    third = len(asked) // 3
    assert asked[-third:].mean() < asked[:third].mean() - 2
    assert asked[:8].mean() > 32  # nothing is known yet
    assert asked[-third:].mean() < 20
