"""Losses, finite and noisy mechanisms, and the definitions they satisfy or break."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil.errors import EpsilonError, UsageError
from thinveil.language.claims import reduce_group
from thinveil.paper.theory.definitions import (
    bdp_loss,
    diagnose,
    dp_loss,
    group_idp_loss,
    group_pairs,
    original_losses,
    person_loss,
    satisfies_original,
    worst_loss,
)
from thinveil.paper.theory.functions import Count, Function, Histogram, Median, Threshold, Total
from thinveil.paper.theory.laplace import KLaplace, Noisy, cauchy_loss, laplace, laplace_loss
from thinveil.paper.theory.losses import INFINITE, NOTHING, Loss, bound
from thinveil.paper.theory.mechanisms import (
    Finite,
    compose,
    constant,
    divergence,
    geometric,
    postprocess,
    randomised_response,
    tabulate,
    truthful,
)
from thinveil.paper.theory.sensitivities import bootstrap_sensitivity, global_sensitivity
from thinveil.paper.theory.worlds import World
from worlds import examples, sweep

WORLD = World((0, 1, 2), 4)
ACTUAL = (0, 0, 1, 2)
LN2 = Loss(Fraction(2))


def positive(record: int) -> bool:
    return record > 0


def satisfies_dp(mechanism, world, epsilon) -> bool:
    return dp_loss(mechanism, world) <= bound(epsilon)


def satisfies_group_idp(mechanism, world, data, epsilon, k=1) -> bool:
    return group_idp_loss(mechanism, world, data, k) <= bound(epsilon)


def satisfies_bdp(mechanism, world, data, epsilon) -> bool:
    return bdp_loss(mechanism, world, data) <= bound(epsilon)


# ---- losses


def test_losses_are_compared_exactly_however_close() -> None:
    below = Fraction(math.log(2))  # the double nearest to ln 2, which lies below it
    assert Loss.of(below) < LN2 <= LN2 < Loss.of(below + Fraction(1, 10**16))
    digits = "6931471805599453094172321214581765680755001343602552541206800094933936219696947"
    tight = Fraction(int(digits), 10 ** len(digits))
    assert Loss.of(tight) < LN2 < Loss.of(tight + Fraction(1, 10 ** len(digits)))
    assert Loss(Fraction(1, 2), Fraction(1)) < Loss(power=Fraction(1))
    assert NOTHING < Loss(Fraction(10**30 + 1, 10**30)) < Loss.of(Fraction(2, 10**30)) < INFINITE
    assert not INFINITE < INFINITE
    assert max([LN2, NOTHING, INFINITE]) is INFINITE


numbers = st.fractions(Fraction(1, 50), 50, max_denominator=50)


@examples(100)
@given(numbers, st.fractions(-3, 3, max_denominator=20), numbers, st.fractions(-3, 3))
def test_losses_add_and_compare_like_numbers(ratio, power, other_ratio, other_power) -> None:
    a, b = Loss(ratio, power), Loss(other_ratio, other_power)
    assert (a + b).epsilon == pytest.approx(a.epsilon + b.epsilon, abs=1e-9)
    if abs(a.epsilon - b.epsilon) > 1e-9:
        assert (a < b) == (a.epsilon < b.epsilon)
        assert (a <= b) == (a.epsilon < b.epsilon)
    assert a <= a < a + Loss.of(1)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (NOTHING, "0"),
        (LN2, "ln 2"),
        (Loss(Fraction(3, 2), Fraction(1, 2)), "ln 3/2 + 1/2"),
        (Loss.of(0.1), "0.1"),
        (INFINITE, "infinite"),
        (INFINITE + LN2, "infinite"),
        (Loss.of(math.inf), "infinite"),
    ],
)
def test_losses_are_printed_the_way_they_are_written(loss, text) -> None:
    assert str(loss) == text


def test_tiny_losses_keep_their_digits() -> None:
    assert Loss(1 + Fraction(1, 10**12)).epsilon == pytest.approx(1e-12, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, NOTHING])
def test_a_bound_is_above_zero(epsilon) -> None:
    with pytest.raises(EpsilonError, match="above zero"):
        bound(epsilon)
    with pytest.raises(UsageError, match="above zero"):
        satisfies_dp(constant(WORLD, 0), WORLD, epsilon)


# ---- finite mechanisms


@st.composite
def mechanisms(draw: st.DrawFn, world: World, outputs: int = 3, zeros: bool = True) -> Finite:
    """Any mechanism at all on a world."""
    weight = st.integers(0 if zeros else 1, 5)
    laws = {}
    for data in world:
        weights = draw(st.lists(weight, min_size=outputs, max_size=outputs))
        weights[0] += not any(weights)
        laws[data] = {o: Fraction(w, sum(weights)) for o, w in enumerate(weights)}
    return Finite(laws)


TINY = World((0, 1), 2)


@examples(100)
@given(mechanisms(TINY))
def test_the_divergence_is_the_worst_over_every_set_of_outputs(mechanism: Finite) -> None:
    for first, second in TINY.pairs():
        p, q = mechanism.laws[first], mechanism.laws[second]
        worst: Fraction | None = Fraction(1)
        for chosen in chain.from_iterable(combinations(range(3), size) for size in (1, 2, 3)):
            mine, other = sum(p[o] for o in chosen), sum(q[o] for o in chosen)
            if mine and not other:
                worst = None
            elif mine and worst is not None:
                worst = max(worst, mine / other)
        assert mechanism.loss(first, second) == divergence(p, q) == Loss(worst)


def test_each_definition_looks_at_its_own_pairs() -> None:
    query = Threshold(positive, 3)  # c = 2: one more person would not do, two would
    mechanism = truthful(WORLD, query)
    assert dp_loss(mechanism, WORLD) == INFINITE
    assert group_idp_loss(mechanism, WORLD, ACTUAL, 1) == NOTHING
    assert group_idp_loss(mechanism, WORLD, ACTUAL, 2) == INFINITE
    assert bdp_loss(mechanism, WORLD, ACTUAL) == INFINITE
    assert bdp_loss(mechanism, WORLD, (1, 1, 2, 2)) == NOTHING
    assert satisfies_group_idp(mechanism, WORLD, ACTUAL, 1e-300)
    assert not satisfies_group_idp(mechanism, WORLD, ACTUAL, 100, k=2)
    assert not satisfies_dp(mechanism, WORLD, 100)


def test_an_epsilon_of_ln_2_is_met_exactly_and_not_missed_by_rounding() -> None:
    mechanism = randomised_response(WORLD, Threshold(positive, 1), 2)
    assert dp_loss(mechanism, WORLD) == LN2
    assert satisfies_dp(mechanism, WORLD, LN2)
    assert not satisfies_dp(mechanism, WORLD, math.log(2))  # that double is a little less
    assert satisfies_dp(mechanism, WORLD, math.nextafter(math.log(2), 1))
    assert satisfies_bdp(mechanism, WORLD, ACTUAL, LN2)
    assert satisfies_group_idp(mechanism, WORLD, ACTUAL, LN2, k=4)


def test_the_original_group_idp_has_a_loss_for_each_number_of_records() -> None:
    mechanism = geometric(WORLD, Count(positive), 2, 0, 4)
    one, two = LN2, LN2 + LN2
    assert original_losses(mechanism, WORLD, ACTUAL, 2) == (one, two)
    assert satisfies_original(mechanism, WORLD, ACTUAL, [one, two])
    assert not satisfies_original(mechanism, WORLD, ACTUAL, [one, one])
    assert not satisfies_group_idp(mechanism, WORLD, ACTUAL, one, k=2)
    with pytest.raises(UsageError, match="k losses"):
        satisfies_original(mechanism, WORLD, ACTUAL, [])
    with pytest.raises(UsageError, match="does not fit"):
        satisfies_original(mechanism, WORLD, ACTUAL, [one] * 5)


@examples(40)
@given(mechanisms(World((0, 1), 3), 2), st.lists(numbers, min_size=1, max_size=3))
def test_the_smallest_epsilon_for_k_meets_the_original_definition(mechanism, epsilons) -> None:
    world, data = World((0, 1), 3), (0, 1, 1)
    k, smallest = reduce_group(epsilons)
    losses = original_losses(mechanism, world, data, k)
    assert max(losses) == group_idp_loss(mechanism, world, data, k)
    if satisfies_group_idp(mechanism, world, data, smallest, k):
        assert satisfies_original(mechanism, world, data, epsilons)


@pytest.mark.parametrize("ratio", [1, 2, Fraction(7, 3)])
def test_geometric_noise_is_a_law_and_loses_one_step_a_record(ratio) -> None:
    mechanism = geometric(WORLD, Count(positive), ratio, 0, 4)
    assert dp_loss(mechanism, WORLD) == Loss(Fraction(ratio))
    truth = truthful(WORLD, Count(positive))
    assert dp_loss(truth, WORLD) == INFINITE


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Finite({}), "at least one"),
        (lambda: Finite({(0,): {}}), "add up"),
        (lambda: Finite({(0,): {0: Fraction(1, 3), 1: Fraction(1, 3)}}), "add up"),
        (lambda: Finite({(0,): {0: Fraction(-1), 1: Fraction(2)}}), "add up"),
        (lambda: randomised_response(TINY, min, Fraction(1, 2)), "at least 1"),
        (lambda: geometric(TINY, sum, 2, 0, 1), "between its two ends"),
        (lambda: dp_loss(constant(TINY, 0), WORLD), "no law"),
        (lambda: compose(constant(TINY, 0), constant(WORLD, 0)), "same world"),
        (lambda: laplace(sum, 1, 0), "above zero"),
        (lambda: cauchy_loss((0, 0), Fraction(1), (1, 1), Fraction(1)), "single number"),
        (lambda: list(group_pairs(TINY, (0, 0), 0)), "at least 1"),
        (lambda: Loss(Fraction(0)), "above zero"),
    ],
)
def test_mechanisms_that_make_no_sense_are_refused(make, match) -> None:
    with pytest.raises(UsageError, match=match):
        make()


# ---- post-processing and composition of Group IDP


@examples(60)
@given(mechanisms(TINY), st.data())
def test_post_processing_never_adds_to_the_loss(mechanism: Finite, data) -> None:
    share = st.integers(1, 3)
    channel = {o: Fraction(data.draw(share), 4) for o in range(3)}
    after = postprocess(mechanism, lambda o: {"x": channel[o], "y": 1 - channel[o]})
    merged = postprocess(mechanism, lambda o: min(o, 1))
    for actual in TINY:
        for k in (1, 2):
            before = group_idp_loss(mechanism, TINY, actual, k)
            assert group_idp_loss(after, TINY, actual, k) <= before
            assert group_idp_loss(merged, TINY, actual, k) <= before
            assert group_idp_loss(postprocess(mechanism, str), TINY, actual, k) == before


@examples(60)
@given(mechanisms(TINY), mechanisms(TINY, 2))
def test_two_releases_lose_at_most_the_sum(first: Finite, second: Finite) -> None:
    both = compose(first, second)
    for actual in TINY:
        for k in (1, 2):
            losses = [group_idp_loss(each, TINY, actual, k) for each in (first, second, both)]
            assert max(losses[:2]) <= losses[2] <= losses[0] + losses[1]


def test_composition_reaches_its_bound_where_both_lean_the_same_way() -> None:
    first = geometric(WORLD, Count(positive), 2, 0, 4)
    second = geometric(WORLD, Count(positive), 3, 0, 4)
    assert group_idp_loss(compose(first, second), WORLD, ACTUAL) == Loss(Fraction(6))


# ---- noise with a density


def supremum(first, second, density) -> float:
    """The largest log ratio of two densities, on a fine grid with long ends."""
    grid = np.concatenate([np.linspace(-60, 60, 240_001), [-1e7, -1e5, 1e5, 1e7]])
    return float((density(grid, *first) - density(grid, *second)).max())


def log_laplace(x, centre, scale):
    return -np.abs(x - centre) / scale - math.log(2 * scale)


def log_cauchy(x, centre, scale):
    return -np.log(math.pi * scale * (1 + ((x - centre) / scale) ** 2))


@pytest.mark.parametrize("first", [(0, 1), (0, 3), (2, 2)])
@pytest.mark.parametrize("second", [(0, 1), (1, 3), (-2, 2)])
def test_closed_forms_of_the_divergence_are_the_supremum_of_the_densities(first, second) -> None:
    (m, s), (o, t) = first, second
    exact = laplace_loss((m,), Fraction(s), (o,), Fraction(t))
    seen = supremum(first, second, log_laplace)
    if s > t:
        assert exact == INFINITE
        assert seen > 1e5
    else:
        assert exact.epsilon == pytest.approx(seen, abs=1e-9)
    rounded = cauchy_loss((m,), Fraction(s), (o,), Fraction(t))
    assert rounded.epsilon == pytest.approx(supremum(first, second, log_cauchy), abs=1e-6)


def test_no_noise_beside_noise_is_an_infinite_loss() -> None:
    for loss in (laplace_loss, cauchy_loss):
        assert loss((1,), Fraction(0), (1,), Fraction(0)) == NOTHING
        assert loss((1,), Fraction(0), (2,), Fraction(0)) == INFINITE
        assert loss((1,), Fraction(0), (1,), Fraction(1)) == INFINITE
        assert loss((1,), Fraction(1), (1,), Fraction(0)) == INFINITE


FUNCTIONS: list[Function] = [Median(0, 2), Count(positive), Histogram((0, 1, 2)), Total(0, 2)]


@pytest.mark.parametrize(
    ("function", "k"),
    sweep(product(FUNCTIONS, (1, 2, 3)), 5),
    ids=lambda each: str(each) if isinstance(each, int) else type(each).__name__,
)
def test_k_laplace_chosen_for_the_data_satisfies_group_idp_at_its_epsilon(function, k) -> None:
    epsilon = Fraction(1, 10)
    mechanism = KLaplace(function, k, epsilon)
    for data in WORLD:
        loss = group_idp_loss(mechanism.chosen_for(data), WORLD, data, k)
        sensitive = function.k_local(data, k) > 0
        assert loss == (Loss.of(epsilon) if sensitive else NOTHING)  # no less than allowed


@pytest.mark.parametrize("b", sweep(range(-1, 5), 3))
def test_k_laplace_as_one_algorithm_loses_everything_at_the_edge_of_the_noise(b: int) -> None:
    mechanism = KLaplace(Threshold(positive, b), 1, Fraction(1, 10))
    for data in WORLD:
        assert satisfies_group_idp(mechanism.chosen_for(data), WORLD, data, Fraction(1, 10))
    worst = dp_loss(mechanism.recalibrated(), WORLD)
    assert worst == (INFINITE if 0 <= b < 4 else NOTHING)


def test_laplace_noise_at_the_global_and_the_bootstrap_sensitivity() -> None:
    epsilon = Fraction(1, 3)
    for function in FUNCTIONS:
        dp = laplace(function, global_sensitivity(WORLD, function), epsilon)
        assert dp_loss(dp, WORLD) == Loss.of(epsilon)
        for data in (ACTUAL, (0, 0, 1, 1), (2, 2, 2, 2)):
            bootstrap = laplace(function, bootstrap_sensitivity(WORLD, function, data), epsilon)
            assert satisfies_bdp(bootstrap, WORLD, data, epsilon)
    assert not satisfies_bdp(laplace(sum, 1, epsilon), WORLD, ACTUAL, epsilon)


@pytest.mark.parametrize("epsilon", sweep([1.0, 0.1, 3.0], 3))
def test_smooth_sensitivity_with_cauchy_noise_is_differentially_private(epsilon: float) -> None:
    world = World((0, 1), 6)
    for b in range(6):
        query = Threshold(positive, b)

        def scale(data, query=query):
            return Fraction(6 * query.smooth(data, epsilon / 6) / epsilon)

        loss = dp_loss(Noisy(query, scale, cauchy_loss), world)
        assert NOTHING < loss <= Loss.of(epsilon)


# ---- the loss at the actual data set


def test_the_loss_at_the_data_says_how_sensitive_the_data_is() -> None:
    median = Median(0, 2)
    world = World((0, 1, 2), 5)
    mechanism = laplace(median, global_sensitivity(world, median), 1)
    found = diagnose(mechanism, world, (0, 0, 0, 1, 2))
    assert found.general == Loss.of(1)
    assert found.actual == Loss.of(Fraction(1, 2))
    assert found.smallest == NOTHING
    assert 0 < found.reaching < len(world)
    half = Loss.of(Fraction(1, 2))
    assert found.people == (half, half, half, NOTHING, NOTHING)


@examples(40)
@given(mechanisms(TINY))
def test_the_worst_person_at_the_worst_data_set_is_the_general_loss(mechanism: Finite) -> None:
    for data in TINY:
        people = [person_loss(mechanism, TINY, data, place) for place in range(2)]
        assert max(people) == group_idp_loss(mechanism, TINY, data)
    found = diagnose(mechanism, TINY, (0, 1))
    everywhere = [group_idp_loss(mechanism, TINY, data) for data in TINY]
    assert max(everywhere) == found.general == dp_loss(mechanism, TINY)
    assert min(everywhere) == found.smallest
    assert worst_loss(mechanism, []) == NOTHING
    assert tabulate(TINY, mechanism.laws.__getitem__).laws == mechanism.laws
