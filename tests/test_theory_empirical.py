"""Empirical neighbours: hints, choosers, what NPairs gives away, and the empty hint."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from test_theory_definitions import mechanisms
from thinveil.errors import UsageError
from thinveil.paper.theory.definitions import dp_loss, group_idp_loss, worst_loss
from thinveil.paper.theory.empirical import (
    Checked,
    always,
    bdp_pairs,
    check,
    coverage,
    dp_pairs,
    empty,
    idp_pairs,
    leak,
    loophole,
    records_in,
    recover,
    sharing,
    state_totals,
    table_size,
    unlabelled,
    unrestricted,
)
from thinveil.paper.theory.functions import Count, Threshold
from thinveil.paper.theory.laplace import KLaplace, laplace
from thinveil.paper.theory.losses import INFINITE, NOTHING, Loss
from thinveil.paper.theory.mechanisms import Finite, constant, geometric, truthful
from thinveil.paper.theory.worlds import World

CENSUS = World(tuple(product("AB", (0, 1))), 3)
OURS = (("A", 0), ("A", 1), ("B", 1))
LN2 = Loss(Fraction(2))


def state(record: tuple[str, int]) -> str:
    return record[0]


def in_order(data: Any) -> tuple[Any, ...]:
    return tuple(sorted(data))


def positive(record: int) -> bool:
    return record > 0


# ---- hints and choosers

HINTS = {
    "unrestricted": (unrestricted, 1),
    "empty": (empty, 64),
    "size": (table_size, 64),
    "states": (state_totals(state), 24),
    "idp npairs": (idp_pairs(CENSUS), 1),
    "idp npairs, k = 2": (idp_pairs(CENSUS, 2), 1),
    "bdp npairs": (bdp_pairs(CENSUS), 6),
}


@pytest.mark.parametrize("name", HINTS)
@pytest.mark.parametrize("npairs", [idp_pairs(CENSUS), bdp_pairs(CENSUS), dp_pairs(CENSUS)])
def test_the_chooser_that_leaks_its_hint_passes_at_every_epsilon(name, npairs) -> None:
    hint, left = HINTS[name]
    found = check(CENSUS, npairs, hint, leak(CENSUS), 1e-300)
    assert found.holds
    assert found.worst == NOTHING
    assert sharing(CENSUS, hint, OURS) == left
    for data in (OURS, (("B", 0),) * 3):
        chosen = leak(CENSUS)(hint(data))
        assert isinstance(chosen, Finite)
        assert all(law == {hint(data): 1} for law in chosen.laws.values())


def test_the_check_finds_the_data_set_where_a_chooser_fails() -> None:
    world = World((0, 1), 4)
    query = Threshold(positive, 2)
    found = check(world, idp_pairs(world), empty, always(truthful(world, query)), 5)
    assert not found.holds
    assert found.worst == INFINITE
    where: tuple[Any, ...] = found.at
    assert sum(where) in (2, 3)  # only there can one person flip the answer
    # a chooser that looks, and answers truthfully only where nothing can change, passes
    careful = check(
        world,
        idp_pairs(world),
        unrestricted,
        lambda data: truthful(world, query) if sum(data) in (0, 1, 4) else constant(world, "-"),
        1e-300,
    )
    assert careful.holds


def test_k_laplace_is_a_chooser_with_the_sensitivity_as_its_hint() -> None:
    world, epsilon = World((0, 1, 2), 4), Fraction(1, 10**10)
    query = Threshold(positive, 1)
    for k in (1, 2):
        found = check(
            world,
            idp_pairs(world, k),
            partial(query.k_local, k=k),
            lambda sensitivity: laplace(query, sensitivity, epsilon),
            epsilon,
        )
        assert found.holds
        assert found.worst == Loss.of(epsilon)
        one = always(KLaplace(query, k, epsilon).recalibrated())
        assert not check(world, idp_pairs(world, k), empty, one, epsilon).holds


def test_a_check_states_its_bound() -> None:
    assert Checked(LN2, (0,), LN2).holds
    assert not Checked(LN2, (0,), Loss.of(Fraction(1, 2))).holds
    with pytest.raises(UsageError, match="above zero"):
        check(CENSUS, idp_pairs(CENSUS), empty, leak(CENSUS), 0)


# ---- what NPairs gives away


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("world", [World((0, 1), 2), World((0, 1), 4), World((0, 1, 2), 3)])
def test_labelled_npairs_of_group_idp_are_the_data_set(world: World, k: int) -> None:
    npairs = idp_pairs(world, k)
    assert all(recover(npairs(data)) == data for data in world)


def test_one_record_hides_only_among_two() -> None:
    assert recover(idp_pairs(World((0, 1), 1))((0,))) is None
    assert recover(idp_pairs(World((0, 1, 2), 1))((0,))) == (0,)
    assert recover([]) is None


def test_without_labels_constant_data_over_two_values_is_not_recovered_by_that_rule() -> None:
    world = World((0, 1), 3)
    npairs = idp_pairs(world)
    found = {data: recover(unlabelled(npairs(data))) for data in world}
    assert found[0, 0, 0] is None
    assert found[1, 1, 1] is None
    assert all(found[data] == in_order(data) for data in world if len(set(data)) == 2)
    # the sets of pairs still differ: a cleverer rule than "in every pair" tells them apart
    hints = {in_order(data): unlabelled(npairs(data)) for data in world}
    assert len(set(hints.values())) == len(hints) == 4
    wide = World((0, 1, 2), 3)
    assert all(recover(unlabelled(idp_pairs(wide)(data))) == in_order(data) for data in wide)


@pytest.mark.parametrize("world", [World((0, 1), 3), World((0, 1, 2), 3), World((0, 1), 1)])
def test_bdp_gives_away_the_distinct_records_unless_all_are_equal(world: World) -> None:
    npairs = bdp_pairs(world)
    for data in world:
        distinct = frozenset(data)
        assert records_in(npairs(data)) == (distinct if len(distinct) > 1 else frozenset())
        assert all(npairs(data) == npairs(other) for other in world if set(other) == distinct)


# ---- the empty hint


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("values", [1, 2, 3, 4])
def test_when_the_empty_hint_gives_exactly_dp(values: int, size: int) -> None:
    world = World(tuple(range(values)), size)
    assert coverage(world, idp_pairs(world)).is_dp
    assert coverage(world, idp_pairs(world, 2)).is_dp == (size == 1 or values == 1)
    bootstrap = coverage(world, bdp_pairs(world))
    assert not bootstrap.extra
    assert bootstrap.is_dp == (values <= size)
    if values > size:
        loose = loophole(world, bootstrap)
        assert worst_loss(loose, bootstrap.covered) <= LN2 < dp_loss(loose, world)
        assert check(world, bdp_pairs(world), empty, always(loose), LN2).holds
    else:
        with pytest.raises(UsageError, match="no loophole"):
            loophole(world, bootstrap)


def test_the_loophole_is_twice_as_wide_where_a_detour_of_two_leads_round() -> None:
    world = World((0, 1, 2), 2)
    loose = loophole(world, coverage(world, bdp_pairs(world)))
    assert dp_loss(loose, world) == LN2 + LN2
    alone = World((0, 1), 1)
    assert dp_loss(loophole(alone, coverage(alone, bdp_pairs(alone))), alone) == INFINITE


SMALL = World((0, 1), 2)


@settings(max_examples=60)
@given(mechanisms(SMALL))
def test_with_the_empty_hint_idp_is_dp_for_any_mechanism_at_all(mechanism: Finite) -> None:
    found = check(SMALL, idp_pairs(SMALL), empty, always(mechanism), 1)
    assert found.worst == dp_loss(mechanism, SMALL)
    covering = check(SMALL, bdp_pairs(SMALL), empty, always(mechanism), 1)
    assert covering.worst == dp_loss(mechanism, SMALL)  # two values, two people
    group = check(SMALL, idp_pairs(SMALL, 2), empty, always(mechanism), 1)
    assert group.worst >= found.worst
    assert group.worst == max(group_idp_loss(mechanism, SMALL, data, 2) for data in SMALL)


def test_with_the_empty_hint_group_idp_asks_more_than_dp() -> None:
    world = World((0, 1), 3)
    mechanism = geometric(world, Count(positive), 2, 0, 3)
    assert check(world, idp_pairs(world), empty, always(mechanism), LN2).holds
    assert not check(world, idp_pairs(world, 2), empty, always(mechanism), LN2).holds
    assert coverage(world, idp_pairs(world, 2)).extra
