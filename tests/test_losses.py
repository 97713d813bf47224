"""Sums of privacy losses: both ends against closed forms, sums over all outcomes, simulation."""

import math
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import thinveil
from thinveil.attacker.evidence.error_budget import Care, undecided
from thinveil.attacker.evidence.power import leads, power, seen_loss
from thinveil.attacker.evidence.privacy_loss import (
    Cells,
    deltas,
    inner,
    outer,
    rounded_down,
    shifted_laplace,
    step_for,
    summed,
)  # fmt: skip
from thinveil.attacker.evidence.sequential import Tally
from thinveil.attacker.terms import BELOW
from thinveil.errors import Undecided
from thinveil.language.claims import claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import Cauchy, Laplace
from thinveil.language.laws.cauchy import CAUCHY
from thinveil.language.queries import Answers, batch_of


def finite(p, q):
    """Return cells of a few outcomes, each with a loss of its own."""
    p, q = np.array(p), np.array(q)
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    return Cells(p, p - q, loss, loss)


def brute(p, q, answers, epsilon):
    """Return delta by adding up over all outcomes of all answers, the larger direction."""
    rows = [
        (math.prod(p[i] for i in each), math.prod(q[i] for i in each))
        for each in product(range(len(p)), repeat=answers)
    ]
    factor = math.exp(epsilon)
    return max(
        math.fsum(max(a - factor * b, 0.0) for a, b in rows),
        math.fsum(max(b - factor * a, 0.0) for a, b in rows),
    )


chances = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3).map(
    lambda several: [each / sum(several) for each in several]
)


@given(chances, chances, st.integers(1, 6), st.floats(0.0, 4.0))
def test_both_ends_hold_the_sum_over_all_outcomes(p, q, answers, epsilon):
    low, high = deltas(finite(p, q), answers, np.array([epsilon]), mirror=False)
    exact = brute(p, q, answers, epsilon)
    assert low[0] - 1e-9 <= exact <= high[0] + 1e-9
    assert high[0] - low[0] < 0.01


def test_an_outcome_that_one_world_never_has_is_never_forgotten():
    p, q = [0.5, 0.3, 0.2], [0.6, 0.4, 0.0]
    for answers, epsilon in product((1, 3, 6), (0.0, 1.0, 8.0)):
        low, high = deltas(finite(p, q), answers, np.array([epsilon]), mirror=False)
        exact = brute(p, q, answers, epsilon)
        assert low[0] - 1e-9 <= exact <= high[0] + 1e-9
        assert exact >= 1 - 0.8**answers - 1e-9
        assert high[0] - low[0] < 0.01


@pytest.mark.parametrize("rate", [1e-200, 1e-10, 1e-3, 0.1, 1.0, 5.0])
def test_one_laplace_answer_has_a_closed_form(rate):
    epsilons = rate * np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    low, high = deltas(shifted_laplace(rate, 128), 1, epsilons, mirror=True)
    exact = -np.expm1((epsilons - rate) / 2)
    assert (low <= exact * (1 + 1e-9)).all()
    assert (high >= exact * (1 - 1e-9)).all()
    assert (high - low <= 1e-3 * exact + 1e-12 * rate).all()


@pytest.mark.parametrize(("rate", "epsilon"), [(0.3, 0.0), (0.3, 0.2), (2.0, 1.5)])
def test_two_laplace_answers_are_integrated(rate, epsilon):
    def inside(x):
        """Integrate over the second answer: its loss is enough from some answer on down."""
        here = rate / 2 * math.exp(-rate * abs(x))
        mine = rate * (abs(x - 1) - abs(x))

        def more(y):
            loss = mine + rate * (abs(y - 1) - abs(y))
            return rate / 2 * math.exp(-rate * abs(y)) * max(0.0, -math.expm1(epsilon - loss))

        turn = (1 - (epsilon - mine) / rate) / 2
        ends = [-40 / rate, 0.0, min(max(turn, 0.0), 1.0), 1.0, 40 / rate]
        return here * sum(integrate.quad(more, a, b)[0] for a, b in pairwise(ends) if b > a)

    ends = sorted({-40 / rate, 0, epsilon / rate / 2, 1 - epsilon / rate / 2, 1, 40 / rate})
    exact = sum(integrate.quad(inside, a, b, epsabs=1e-9)[0] for a, b in pairwise(ends))
    low, high = deltas(shifted_laplace(rate, 256), 2, np.array([epsilon]), mirror=True)
    assert low[0] - 1e-6 <= exact <= high[0] + 1e-6
    assert high[0] - low[0] < 1e-4


@pytest.mark.parametrize("answers", [48, 4096])
@pytest.mark.parametrize("rate", [1e-10, 0.02, 0.5])
def test_a_biased_coin_is_a_binomial_sum(answers, rate):
    right = 1 / (1 + math.exp(-rate))
    cells = Cells(
        np.array([right, 1 - right]),
        np.tanh(rate / 2) * np.array([1.0, -1.0]),
        rate * np.array([1.0, -1.0]),
        rate * np.array([1.0, -1.0]),
    )
    ones = np.arange(answers + 1)
    loss, mass = rate * (2 * ones - answers), stats.binom.pmf(ones, answers, right)
    epsilons = math.sqrt(answers) * rate * np.array([0.0, 0.5, 2.0])
    low, high = deltas(cells, answers, epsilons, mirror=True)
    for place, epsilon in enumerate(epsilons.tolist()):
        exact = float(mass @ -np.expm1(np.minimum(epsilon - loss, 0.0)))
        assert low[place] <= exact * (1 + 1e-6) + 1e-15
        assert high[place] >= exact * (1 - 1e-6) - 1e-15
        assert high[place] - low[place] <= 1e-4 * exact + 1e-9 * min(epsilon + rate, 1.0)


def test_grids_keep_what_they_promise():
    cells = shifted_laplace(1.3, 50)
    step = step_for(cells, 7)
    for grid in (inner(cells, step), outer(cells, step)):
        assert grid.mass.sum() <= 1 + 1e-12
    wide = outer(cells, step)
    assert wide.mass.sum() == pytest.approx(1.0)
    assert float(wide.mass @ np.exp(-wide.at * step)) == pytest.approx(1.0)
    assert summed(rounded_down(cells, step), 3).at_least(-3 * 1.3 - 1) == pytest.approx(1.0)


# What would have been seen


@pytest.mark.parametrize(("answers", "nats"), [(1, 5.0), (10, 12.0), (48, 20.7), (512, 20.7)])
def test_what_would_have_been_seen_is_seen_that_often(answers, nats):
    loss, rng = seen_loss(answers, nats), np.random.default_rng(15)
    draws = rng.laplace(0, 1 / loss, (20_000, answers))
    lead = loss * (np.abs(draws - 1) - np.abs(draws)).sum(axis=1)
    share = float((lead >= nats).mean())
    assert 0.892 < share < 0.915  # 20,000 draws scatter by 0.002


@pytest.mark.parametrize(("answers", "nats"), [(4096, 20.0), (48, 20.0), (3, 15.0)])
def test_the_power_of_cauchy_noise_is_its_own(answers, nats):
    loss, rng = seen_loss(answers, nats, law=Cauchy), np.random.default_rng(15)
    rate, runs = loss / CAUCHY, 2000
    t = np.concatenate([rng.standard_cauchy((runs // 10, answers)) for _ in range(10)])
    led = np.log1p(rate * (rate - 2 * t) / (1 + t * t)).sum(axis=1) >= nats
    # four standard errors; what is stated is rather too large, by a few hundredths at most
    assert 0.9 - 4 * np.sqrt(0.09 / runs) < led.mean() < 0.96
    assert loss > 5 * seen_loss(answers, nats)
    assert "of honest Cauchy noise" in power(answers, nats, Cauchy())
    assert "of honest Laplace noise" in power(answers, nats, Laplace())


def test_power_grows_with_answers_and_falls_with_what_is_asked():
    by_answers = [seen_loss(answers, 20.0) for answers in (1, 4, 48, 4096, 2**14, 2**15, 10**7)]
    assert by_answers == sorted(by_answers, reverse=True)
    by_nats = [seen_loss(48, nats) for nats in (3.0, 10.0, 20.0, 40.0)]
    assert by_nats == sorted(by_nats)
    chances = [leads(48, 20.0, loss) for loss in (0.5, 1.0, 1.3, 2.0)]
    assert chances == sorted(chances)
    assert seen_loss(48, 20.0, 0.5) < seen_loss(48, 20.0, 0.9) < seen_loss(48, 20.0, 0.99)


def test_a_null_result_states_its_power():
    care = Care(1e-6, 48)
    said = str(undecided(care, None))
    assert "no usable difference was found" in said
    assert said.endswith(power(48, care.nats(0)))
    assert "would have been seen with probability 90 %" in said
    figure = float(said.split("a loss of ")[1].split()[0])
    assert seen_loss(48, round(care.nats(0), 3)) <= figure < 1.01 * seen_loss(48, 20.0) * 1.03


@pytest.mark.parametrize("most", [20, 64])
def test_the_attack_itself_sees_what_it_says_it_would(most):
    """The sequential test on draws of the claimed noise, at the loss that a null result names."""
    facts = PublicFacts(20, thinveil.people(20).schema, claim_named("dp-laplace"))
    loss = seen_loss(most, round(Care(1e-6, most).nats(1), 3))
    rng, tries, seen = np.random.default_rng(3), 300, 0
    for _ in range(tries):
        tally = Tally(facts, Care(1e-6, most))
        tally.begin(np.ones(1, np.bool_))
        with suppress(Undecided):
            settled = False
            while not settled:
                repeats = np.asarray(tally.repeats())
                values = rng.laplace(0, 1 / loss, int(repeats[0]))
                batch = replace(batch_of([([{0: (0, 1)}], 5)]), repeats=repeats)
                [settled], [zone] = tally.add(batch, Answers(values, repeats, loss))
            seen += zone == BELOW
    assert seen >= 0.9 * tries - 4 * math.sqrt(0.09 * tries)


def test_the_verdict_of_an_undecided_run_states_it_too():
    verdict = thinveil.audit(thinveil.people(20), mechanism="dp-laplace", most_repeats=64)
    assert verdict.run.ending == "undecided"
    said = verdict.sentence()
    assert "would have been seen with probability 90 %" in said
    assert "Nothing was settled from" in said
    assert "learned nothing" not in said


def test_a_cap_is_not_taken_for_no_difference():
    verdict = thinveil.audit(thinveil.people(20), mechanism="dp-laplace", cap="1e-9")
    assert verdict.run.ending == "cap"
    assert "no usable difference" not in verdict.sentence().lower()
    assert "cap" in verdict.sentence()
