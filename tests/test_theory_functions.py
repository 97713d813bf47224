"""Closed forms and fast code against enumeration: sensitivities, zones and drawn noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinveil.attacker.terms import ABOVE, BELOW, NOISY
from thinveil.errors import EpsilonError, UsageError
from thinveil.language.claims import Bootstrap, Global, KLocal, Smooth, idp
from thinveil.language.queries import Codes
from thinveil.paper.theory.functions import (
    Count,
    Function,
    Histogram,
    Median,
    TableSize,
    Threshold,
    Total,
)
from thinveil.paper.theory.laplace import KLaplace
from thinveil.paper.theory.sensitivities import (
    bootstrap_sensitivity,
    global_sensitivity,
    k_local_sensitivity,
    l1,
    local_by_distance,
    local_sensitivity,
    smooth_sensitivity,
)
from thinveil.paper.theory.worlds import LARGEST, World, distance
from worlds import examples, sweep

# ---- worlds


def test_neighbours_are_what_their_definitions_say() -> None:
    world = World((0, 1, 2), 4)
    everything = list(world)
    assert len(everything) == len(set(everything)) == len(world) == 81
    for data in [(0, 0, 0, 0), (0, 1, 2, 2)]:
        assert set(world.neighbours(data)) == {d for d in everything if distance(d, data) == 1}
        for k in (1, 2, 3, 4, 7):
            near = list(world.within(data, k))
            assert len(near) == len(set(near)) == sum(math.comb(4, c) * 2**c for c in range(k + 1))
            assert set(near) == {d for d in everything if distance(d, data) <= k}
        pairs = list(world.bootstrap_pairs(data))
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == {
            (a, b)
            for a, b in product(everything, repeat=2)
            if distance(a, b) == 1 and set(a) | set(b) <= set(data)
        }
    assert set(world.pairs()) == {
        (a, b) for a, b in product(everything, repeat=2) if distance(a, b) == 1
    }


@pytest.mark.parametrize(
    ("domain", "size", "match"),
    [
        ((), 3, "at least one"),
        ((0, 1), 0, "at least one"),
        ((0, 0), 2, "different"),
        (tuple(range(10)), 6, "too many"),
        ((0, 1), 10**9, "too many"),
    ],
)
def test_worlds_that_make_no_sense_are_refused(domain, size, match) -> None:
    with pytest.raises(UsageError, match=match):
        World(domain, size)


def test_the_largest_world_and_a_world_of_one_record_are_fine() -> None:
    assert len(World(tuple(range(10)), 5)) == LARGEST
    assert list(World(("only",), 3)) == [("only",) * 3]
    assert local_sensitivity(World(("only",), 3), len, ("only",) * 3) == 0
    assert global_sensitivity(World(("only",), 3), len) == 0


@pytest.mark.parametrize("data", [(0, 1), (0, 1, 7), [0, 1, 1]])
def test_a_data_set_of_another_world_is_refused(data) -> None:
    with pytest.raises(UsageError, match="not a data set"):
        list(World((0, 1), 3).neighbours(data))


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_a_group_of_nobody_is_refused(k) -> None:
    world = World((0, 1), 3)
    with pytest.raises(UsageError, match="at least 1"):
        list(world.within((0, 0, 0), k))
    for function in (TableSize(), Count(bool), Total(0, 1), Median(0, 1), Histogram((0, 1))):
        with pytest.raises(UsageError, match="at least 1"):
            function.k_local((0, 0, 0), k)
    with pytest.raises(UsageError, match="at least 1"):
        KLaplace(TableSize(), k, 1)


# ---- closed forms


@st.composite
def tables(draw: st.DrawFn, most: int = 5) -> tuple[World, tuple[int, ...], int]:
    """A world of small numbers with gaps, one of its data sets, and a group size."""
    domain = tuple(sorted(draw(st.sets(st.integers(-3, 6), min_size=1, max_size=3))))
    size = draw(st.integers(1, most))
    data = tuple(draw(st.lists(st.sampled_from(domain), min_size=size, max_size=size)))
    return World(domain, size), data, draw(st.integers(1, size + 1))


def functions_of(world: World) -> list[Function]:
    domain: Any = world.domain  # of numbers
    low, high = min(domain), max(domain)
    made: list[Function] = [
        TableSize(),
        Total(low, high),
        Median(low, high),
        Histogram(world.domain),
        Histogram(("low", "rest"), lambda value: "low" if value == low else "rest")
        if len(world.domain) > 1
        else Histogram(("low",), lambda _: "low"),
    ]
    for cut in (low, low + 1, high + 1):
        varies = len({value < cut for value in domain}) == 2

        def below(value: Any, cut: int = cut) -> bool:
            return bool(value < cut)

        made.append(Count(below, varies))
        made += [Threshold(below, b, varies) for b in range(-2, world.size + 2)]
    return made


@examples(60)
@given(tables())
def test_every_closed_form_is_the_enumerated_k_local_sensitivity(case) -> None:
    world, data, k = case
    for function in functions_of(world):
        assert function.k_local(data, k) == k_local_sensitivity(world, function, data, k)


def test_attributes_of_wider_records() -> None:
    world = World(tuple(product("ab", (0, 3))), 3)

    def pay(record):
        return record[1]

    bins = Histogram(("a", "b"), lambda record: record[0])
    for data in world:
        for function in (Total(0, 3, pay), Median(0, 3, pay), bins):
            for k in (1, 2, 3):
                assert function.k_local(data, k) == k_local_sensitivity(world, function, data, k)


@pytest.mark.parametrize(
    ("function", "answer", "sensitivity"),
    [
        (TableSize(), (10_001,), 0),
        (Count(lambda value: value < 10), (10,), 3),
        (Total(0, 20_000), (50_005_000,), 3 * 20_000 - 3),
        (Median(0, 20_000), (5_000,), 3),
        (Histogram((0, 1), lambda value: value % 2), (5_001, 5_000), 6),
    ],
)
def test_closed_forms_on_a_table_far_too_large_to_enumerate(function, answer, sensitivity) -> None:
    table = range(10_001)
    assert function(table) == answer
    assert function.k_local(table, 3) == sensitivity


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Total(3, 1), "lower one first"),
        (lambda: Median(0, math.inf), "finite"),
        (lambda: Total(0, math.nan), "finite"),
        (lambda: Histogram(()), "bins"),
        (lambda: Histogram((0, 0)), "once"),
        (lambda: Total(0, 3)([1, 4]), "outside the bounds"),
        (lambda: Median(0, 3).k_local([-1, 2], 1), "outside the bounds"),
        (lambda: Median(0, 3)([]), "without records"),
        (lambda: Histogram((0, 1))([2]), "none of"),
        (lambda: KLaplace(TableSize(), 1, 0), "above zero"),
        (lambda: KLaplace(TableSize(), 1, math.inf), "above zero"),
        (lambda: smooth_sensitivity(World((0, 1), 2), sum, (0, 0), 0), "above zero"),
    ],
)
def test_functions_that_make_no_sense_are_refused(make, match) -> None:
    with pytest.raises(UsageError, match=match):
        make()


# ---- sensitivities by enumeration


def test_the_size_of_the_table_is_never_sensitive() -> None:
    world = World((0, 1, 2), 3)
    assert global_sensitivity(world, len) == 0
    for data in world:
        assert k_local_sensitivity(world, len, data, 3) == 0
        assert bootstrap_sensitivity(world, len, data) == 0
        assert smooth_sensitivity(world, len, data, 1) == 0


def test_the_median_is_insensitive_on_some_data_sets_and_not_on_others() -> None:
    world = World((0, 5, 10), 5)
    median = Median(0, 10)
    assert global_sensitivity(world, median) == 10
    assert local_sensitivity(world, median, (0, 0, 0, 0, 10)) == 0
    assert local_sensitivity(world, median, (0, 0, 0, 10, 10)) == 10
    assert k_local_sensitivity(world, median, (0, 0, 0, 0, 10), 2) == 10
    assert bootstrap_sensitivity(world, median, (0, 0, 5, 5, 5)) == 5
    # two changed records away, one more moves the median all the way; see the list
    assert local_by_distance(world, median, (0, 0, 0, 0, 10))[:2] == [0, 10]
    assert smooth_sensitivity(world, median, (0, 0, 0, 0, 10), 0.5) == 10 * math.exp(-0.5)


@examples(40)
@given(tables(most=3))
def test_how_the_sensitivities_stand_to_each_other(case) -> None:
    compare(*case)


@pytest.mark.nightly
@settings(max_examples=40)
@given(tables())
def test_how_they_stand_to_each_other_in_larger_worlds(case) -> None:
    compare(*case)


def compare(world: World, data: tuple[int, ...], k: int) -> None:
    for function in functions_of(world)[:6]:
        top = global_sensitivity(world, function)
        local = local_sensitivity(world, function, data)
        group = k_local_sensitivity(world, function, data, k)
        smooth = smooth_sensitivity(world, function, data, 0.3)
        assert local <= group <= k * top
        assert local <= smooth <= top
        assert bootstrap_sensitivity(world, function, data) <= top
        assert max(local_by_distance(world, function, data)) == top
        for other in world.neighbours(data):
            there = smooth_sensitivity(world, function, other, 0.3)
            assert there <= math.exp(0.3) * smooth * (1 + 1e-12)


def test_the_distance_of_answers_is_the_l1_norm_and_exact() -> None:
    assert l1((1, Fraction(1, 3)), (0, 1)) == Fraction(5, 3)
    assert l1(2.5, 1) == 1.5


# ---- the fast code


def shape(count: Any, b: int) -> tuple[Codes, Codes]:
    return np.array([count]), np.array([b])


def data_sets(world: World) -> list[Any]:
    """Return the data sets of a world, each once whatever its order."""
    every: Any = world
    return sorted({tuple(sorted(data)) for data in every})


WORLDS = [World((0, 1), 4), World((0, 1), 6), World((0, 1), 1), World((0, 1, 2), 4)]
every_world = pytest.mark.parametrize(
    "world", sweep(WORLDS, 2), ids=lambda world: f"{len(world.domain)}^{world.size}"
)
PREDICATES = {
    "varies": lambda record: record > 0,
    "always": lambda record: True,
    "never": lambda record: False,
}


@every_world
@pytest.mark.parametrize("name", PREDICATES)
def test_claims_state_the_enumerated_k_local_sensitivity(world: World, name: str) -> None:
    predicate, n = PREDICATES[name], world.size
    constant = np.array([name != "varies"])
    for k in range(1, n + 1):
        for data, b in product(data_sets(world), range(-2, n + 2)):
            query = Threshold(predicate, b)
            truth = k_local_sensitivity(world, query, data, k)
            count = sum(map(predicate, data))
            bit, scale = idp(k, "bounded").law(*shape(count, b), constant, n, 1.0)
            assert (bit.item(), scale.item()) == (bool(query(data)[0]), truth)
            if name == "varies" and 0 <= b < n:
                assert KLocal(k).at(*shape(count, b), n, None).item() == truth
                zone = BELOW if count <= b - k else ABOVE if count > b + k else NOISY
                exact = ABOVE if query(data)[0] else BELOW
                assert zone == (NOISY if truth else exact)


BETA = 0.4 / 6


@every_world
def test_bootstrap_global_and_smooth_sensitivities_of_the_attack_query(world: World) -> None:
    n = world.size
    for b in range(-1, n + 1):
        query = Threshold(PREDICATES["varies"], b)
        reachable = 0 <= b < n
        assert global_sensitivity(world, query) == reachable
        for data in data_sets(world):
            (c,) = Count(PREDICATES["varies"])(data)
            some = 0 < c < n
            formula = math.exp(-BETA * max(b - c, c - b - 1, 0)) if reachable else 0.0
            assert bootstrap_sensitivity(world, query, data) == query.bootstrap(data)
            assert query.bootstrap(data) == (some and reachable)
            smooth = smooth_sensitivity(world, query, data, BETA)
            assert smooth == pytest.approx(formula, rel=1e-12)
            assert query.smooth(data, BETA) == pytest.approx(formula, rel=1e-12)
            if reachable:
                stated = [
                    each.at(*shape(c, b), n, 6 * BETA).item()
                    for each in (Bootstrap(), Global(), Smooth())
                ]
                assert stated == pytest.approx([float(some), 1.0, formula], rel=1e-12)


# ---- k-Laplace, drawn


def test_drawn_noise_has_the_ordinary_laplace_distribution() -> None:
    table = [2, 9, 11, 17, 20]
    mechanism = KLaplace(Histogram((0, 1, 2), lambda value: value // 10), 2, Fraction(1, 2))
    assert mechanism.scale(table) == 8  # 2k records' worth of L1, over a half
    drawn = mechanism.draw(table, np.random.default_rng(7), 40_000) - np.array([2, 2, 1])
    assert drawn.shape == (40_000, 3)
    for component in drawn.T:
        ordered = np.sort(component)
        law = np.where(ordered < 0, 0.5 * np.exp(ordered / 8), 1 - 0.5 * np.exp(-ordered / 8))
        steps = np.arange(1, len(ordered) + 1) / len(ordered)
        assert np.abs(steps - law).max() * math.sqrt(len(ordered)) < 1.6  # Kolmogorov-Smirnov
        assert component.var() == pytest.approx(2 * 8**2, rel=0.05)  # erratum 1
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.02


def test_draws_follow_the_generator_and_are_exact_where_nothing_can_change() -> None:
    mechanism = KLaplace(Median(0, 10), 1, 1e-10)
    first = mechanism.draw([1, 2, 9], np.random.default_rng(3), 5)
    again = mechanism.draw([1, 2, 9], np.random.default_rng(3), 5)
    assert np.array_equal(first, again)
    assert np.abs(first).min() > 1e3
    assert mechanism.draw([0] * 5, np.random.default_rng(3), 4).tolist() == [[0.0]] * 4
    assert issubclass(EpsilonError, UsageError)
