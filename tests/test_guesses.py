"""Bounds by guesses, by canaries and by curves hold at their confidence, and show enough."""

import math
from dataclasses import asdict
from json import dumps
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest
from bench import trials as simulated
from hypothesis import given
from hypothesis import strategies as st

from test_intervals import pmf
from thinveil import Categories, Curator, Dataset, Schema, batch_of, claim_named
from thinveil.curator.neighbours import Neighbour
from thinveil.curator.tables.dataset import Held
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Flags, Floats
from thinveil.verdicts.judging import tradeoff
from thinveil.verdicts.judging.abstaining import FEWEST, _roughly, as_it_goes, choose, counting
from thinveil.verdicts.judging.guesses import (
    PLANNED,
    epsilon_anytime,
    epsilon_at_error,
    epsilon_by_canaries,
    epsilon_by_guesses,
    evidence,
    seen_loss,
    seen_share,
)
from thinveil.verdicts.judging.intervals import at_least, chance_of
from thinveil.verdicts.judging.tradeoff import trade_off
from worlds import examples, told

CONFIDENCES = (0.95, 0.999)
SIZES = (1, 2, 3, 7, 12, 20, 60, 150)
SLACK = 1e-9  # of the error: quantiles are found by halving


def share(epsilon: float) -> float:
    """The chance of a right guess that epsilon allows."""
    return 1 / (1 + math.exp(-epsilon))


def tail(chances: Floats, above: Flags) -> float:
    """The chance of the outcomes marked."""
    return float(chances[above].sum())


def just_below(bounds: Floats) -> list[float]:
    """Losses at which most outcomes are misses: below each bound, and some others."""
    return [*(bounds[bounds > 0] * (1 - 1e-7)), 0.0, 0.3, 1.0, 2.5, 6.0]


# the bound by right guesses


def test_few_trials_show_something_and_many_show_more():
    assert epsilon_at_error(2000, 2000, 0.001) == pytest.approx(5.67, abs=0.005)
    assert epsilon_at_error(20, 20, 0.001) == pytest.approx(0.885, abs=5e-4)
    assert epsilon_by_guesses(2000, 2000, 0.999) == pytest.approx(5.65, abs=0.005)
    assert epsilon_by_guesses(20, 20, 0.999) == pytest.approx(0.868, abs=5e-4)
    assert simulated.two_rates(1000, 1000, 0, 1000, 0.999) == pytest.approx(4.88, abs=0.01)
    assert simulated.two_rates(10, 10, 0, 10, 0.999) == 0


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("made", [*SIZES, pytest.param(2000, marks=pytest.mark.nightly)])
def test_the_bound_covers_exactly_and_wastes_nothing(made, confidence):
    """Exactly, over all outcomes of randomised response; just below a bound it is tight."""
    error = PLANNED * (1 - confidence)
    bounds = np.array([epsilon_by_guesses(each, made, confidence) for each in range(made + 1)])
    assert (np.diff(bounds) >= 0).all()
    assert bounds[made // 2] == 0
    for epsilon in just_below(bounds):
        missed = tail(pmf(made, share(epsilon)), bounds > epsilon)
        assert missed <= error * (1 + SLACK)
    for bound in bounds[bounds > 1e-6]:
        assert tail(pmf(made, share(bound)), bounds >= bound) == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("delta", [1e-6, 0.001, 0.02, 0.2])
@pytest.mark.parametrize("trials", [10, 30, pytest.param(80, marks=pytest.mark.nightly)])
def test_with_a_delta_the_bound_covers_whoever_is_shown_coins(trials, delta, confidence):
    """Exactly: who is shown K coins guesses those, and so many others as they like."""
    error = PLANNED * (1 - confidence)
    for others in {0, trials // 2, trials}:
        bounds = [
            [
                epsilon_by_guesses(
                    k + right, k + min(others, trials - k), confidence, delta=delta, trials=trials
                )
                for right in range(min(others, trials - k) + 1)
            ]
            for k in range(trials + 1)
        ]
        for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
            missed = 0.0
            for k, chance in enumerate(pmf(trials, delta)):
                right = pmf(len(bounds[k]) - 1, share(epsilon))
                missed += chance * tail(right, np.array(bounds[k]) > epsilon)
            assert missed <= error * (1 + SLACK)


def test_a_delta_takes_right_guesses_away():
    assert epsilon_by_guesses(900, 1000, 0.95, delta=1e-12) == pytest.approx(
        epsilon_by_guesses(900, 1000, 0.95), abs=1e-3
    )
    bounds = [epsilon_by_guesses(900, 1000, 0.95, delta=each) for each in (0, 1e-4, 0.01, 0.3)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[2] > 1
    assert bounds[3] > 0
    few = epsilon_by_guesses(50, 50, 0.95, delta=0.01, trials=50)
    assert few > epsilon_by_guesses(50, 50, 0.95, delta=0.01, trials=2000)
    assert epsilon_by_guesses(50, 50, 0.95, delta=1.0) == 0


# a run that somebody stops


def ever_missed(made: int, epsilon: float, confidence: float) -> tuple[float, float]:
    """Chances, over all paths: missed after any guess, and so or at the planned end."""
    right, enough = share(epsilon), -math.log((1 - PLANNED) * (1 - confidence))
    alive = np.ones(1)  # the chance to have this many right, and never to have missed
    missed = 0.0
    for count in range(1, made + 1):
        alive = np.append(alive * (1 - right), 0) + np.append(0, alive * right)
        over = [evidence(each, count - each, epsilon) > enough for each in range(count + 1)]
        missed += tail(alive, np.array(over))
        alive[over] = 0
    end = [epsilon_by_guesses(each, made, confidence) > epsilon for each in range(made + 1)]
    return missed, missed + tail(alive, np.array(end))


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    ("made", "epsilon"),
    [
        *((40, 0.0), (100, 1.0), (200, 0.5), (200, 4.0)),
        *(pytest.param(800, e, marks=pytest.mark.nightly) for e in (0.0, 0.5, 1.0, 2.0, 4.0)),
    ],
)
def test_whenever_it_is_stopped_the_bound_covers_exactly(made, epsilon, confidence):
    stopped, ever = ever_missed(made, epsilon, confidence)
    assert stopped <= (1 - PLANNED) * (1 - confidence)
    assert ever <= 1 - confidence


def test_a_stopped_run_shows_less_than_a_planned_end_but_not_nothing():
    for right, made in ((20, 20), (2000, 2000), (800, 1000), (1300, 2000)):
        assert 0 < epsilon_anytime(right, made, 0.999) < epsilon_by_guesses(right, made, 0.999)
    assert epsilon_anytime(2000, 2000, 0.999) > 5.2
    assert epsilon_anytime(0, 0, 0.999) == epsilon_anytime(5, 10, 0.999) == 0
    assert epsilon_anytime(20, 20, 0.999) == epsilon_by_guesses(20, 20, 0.999, planned=False)
    assert epsilon_anytime(200, 210, 0.999) > epsilon_anytime(200, 210, 0.999, delta=0.01) > 0


def test_the_bound_is_where_the_evidence_is_enough():
    for right, made in ((30, 30), (90, 100), (1300, 2000)):
        found = epsilon_anytime(right, made, 0.95)
        assert evidence(right, made - right, found) == pytest.approx(-math.log(0.005))


# canaries


def test_forty_canaries_of_a_million_millions_show_29():
    assert epsilon_by_canaries(40, 40, 10**12, 0.999) == pytest.approx(29.3, abs=0.01)
    assert epsilon_by_canaries(0, 40, 10**12, 0.999) == 0
    assert epsilon_by_canaries(1, 40, 10**12, 0.999) > 15
    assert epsilon_by_canaries(40, 40, 10**300, 0.999) > 600
    assert epsilon_by_canaries(40, 40, 1, 0.999) == 0
    assert epsilon_by_canaries(40, 40, 10**12, 0.999, delta=0.5) < 29.3
    assert epsilon_by_canaries(2, 40, 10**12, 0.999, delta=0.5) == 0
    assert epsilon_by_canaries(18, 20, 2, 0.999) == epsilon_at_error(18, 20, 1 - 0.999)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("values", [2, 5, 1000, 10**12])
def test_canaries_cover_exactly(values, delta, confidence):
    """Exactly, over all outcomes, where each canary is found as often as it may be."""
    for canaries in (1, 5, 40):
        bounds = np.array(
            [
                epsilon_by_canaries(each, canaries, values, confidence, delta=delta)
                for each in range(canaries + 1)
            ]
        )
        for epsilon in just_below(bounds):
            most = math.exp(epsilon) + (values - 1) * delta
            chances = pmf(canaries, most / (math.exp(epsilon) + values - 1))
            assert tail(chances, bounds > epsilon) <= (1 - confidence) * (1 + 1e-6)


@given(st.integers(2, 6), st.floats(0, 3), st.integers(0, 2**32 - 1))
def test_no_attack_finds_canaries_more_often_than_the_bound_allows(values, epsilon, seed):
    """By the definition: the delta of a random mechanism at an epsilon, and its best luck."""
    rng = np.random.default_rng(seed)
    said = rng.dirichlet(np.full(values + 1, 0.3), values) + 0.2 * np.eye(values, values + 1)
    said /= said.sum(axis=1, keepdims=True)  # said[w, v]: v is named where w was planted
    over = said[:, None] - math.exp(epsilon) * said[None]
    delta = float(np.maximum(over, 0).sum(axis=2).max())
    found = float(np.trace(said[:, :values])) / values
    assert (values - 1) * (found - delta) <= math.exp(epsilon) * (1 - found) + 1e-12


# power


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("trials", [12, 60, pytest.param(400, marks=pytest.mark.nightly)])
def test_the_loss_that_would_have_been_seen_is_seen_so_often_and_no_smaller_one(trials, confidence):
    loss = seen_loss(trials, confidence, 0.8)
    shows = np.array([epsilon_by_guesses(k, trials, confidence) > 0 for k in range(trials + 1)])
    assert tail(pmf(trials, share(loss)), shows) == pytest.approx(0.8)
    assert tail(pmf(trials, share(0.99 * loss)), shows) < 0.8
    for delta in (0.0, 0.1):
        found = seen_share(trials, 50, confidence, 0.8, delta=delta)
        shows = np.array(
            [
                epsilon_by_canaries(k, trials, 50, confidence, delta=delta) > 0
                for k in range(trials + 1)
            ]
        )
        assert tail(pmf(trials, found), shows) == pytest.approx(0.8)


def test_power_grows_with_trials_and_says_where_there_is_none():
    losses = [seen_loss(trials, 0.999) for trials in (20, 200, 2000, 20_000)]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] == pytest.approx(0.197, abs=0.002)
    assert seen_loss(10, 0.999) == math.inf
    assert seen_loss(0, 0.999) == math.inf
    assert seen_share(3, 2, 0.999) == math.inf
    assert seen_share(40, 10**12, 0.999) == pytest.approx(1 - 0.1 ** (1 / 40))


# which guesses are made


@pytest.mark.parametrize("trials", [20, 2000])
def test_ties_are_guessed_together_and_none_is_held_out(trials):
    """The last bits of a double split no tie."""
    rng = np.random.default_rng(1)
    inside = rng.random(trials) < 0.5
    scores = simulated.response(0.7)(rng, inside)
    jitter = scores * (1 + rng.integers(-9, 9, trials) * 2.0**-52)
    assert (np.unique(np.abs(jitter)).size) > 2
    for found in (choose(scores, inside), choose(jitter, inside)):
        assert (found.made, found.held_out, found.threshold) == (trials, 0, 0.0)


def test_an_atom_among_other_scores_is_never_split_either():
    rng = np.random.default_rng(2)
    inside = rng.random(2000) < 0.5
    scores = simulated.laplace(1.0)(rng, inside)
    sure = np.abs(scores) > 1 - 1e-9
    found = choose(scores, inside)
    assert found.held_out == 100
    assert found.threshold < 1 - 1e-9
    assert found.made >= sure[100:].sum()


@examples(200)
@given(
    st.sampled_from((5, 50, FEWEST - 1, FEWEST, 900)),
    st.sampled_from((0.0, 1e-9, 0.3, 3.0)),
    st.integers(0, 2**32 - 1),
)
def test_coins_that_count_choose_nothing(trials, spread, seed):
    """Validity hangs on this: with other coins, the same trials are guessed."""
    rng = np.random.default_rng(seed)
    scores = np.clip(rng.standard_cauchy(trials) * spread, -1e4, 1e4)
    one, other = rng.random((2, trials)) < 0.5
    found = choose(scores, one)
    other[: found.held_out] = one[: found.held_out]
    again = choose(scores, other)
    assert (found.made, found.threshold) == (again.made, again.threshold)
    made = np.abs(scores[found.held_out :]) >= found.threshold
    assert found.made == np.count_nonzero(made)
    said = (scores > 0)[found.held_out :]
    assert again.right == np.count_nonzero(made & (said == other[found.held_out :]))


@examples(200)
@given(st.integers(1, 300), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_in_a_stopped_run_what_counts_was_decided_before(trials, when, seed):
    """Validity hangs on this: the end, later scores, and coins from there on change nothing."""
    when = min(when, trials - 1)
    rng = np.random.default_rng(seed)
    inside, other = rng.random((2, trials)) < 0.5
    scores, later = simulated.laplace(2.0)(rng, inside), rng.standard_normal(trials)
    flags, _ = counting(scores, inside)
    other[:when] = inside[:when]
    later[: when + 1] = scores[: when + 1]
    assert (counting(later, other)[0][: when + 1] == flags[: when + 1]).all()
    assert (counting(scores[: when + 1], inside[: when + 1])[0] == flags[: when + 1]).all()
    found = as_it_goes(scores, inside)
    assert found == choose(scores, inside, planned=False)
    assert found.made == flags.sum()
    assert found.held_out == 0


def test_no_trials_are_no_guesses():
    nothing = np.zeros(0), np.zeros(0, np.bool_)
    for planned in (True, False):
        found = choose(*nothing, planned=planned)
        assert (found.right, found.made, found.trials) == (0, 0, 0)
    assert epsilon_by_guesses(0, 0, 0.999) == 0


def test_held_out_trials_tell_scores_that_say_nothing():
    """Sizes that are made up: whoever trusts them abstains for nothing."""
    for name in ("made-up sizes, 1", "made-up sizes, far too sure, 1"):
        assert fmean(simulated.planned(name, 0.999, 30)) > 0.65


def test_the_threshold_knows_what_delta_takes_away():
    """A few sure guesses would be lost to it."""
    assert fmean(simulated.planned("normal noise, mu 1, delta 0.05", 0.999, 30)) > 0.8
    assert fmean(simulated.planned("response shown at times, 1, delta 0.01", 0.999, 30)) > 0.75


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_rough_bound_is_near_the_true_one(confidence):
    for made in (10, 100, 1900):
        for wrong in {0, 1, made // 20, made // 4}:
            low = at_least(made - wrong, made, 1 - confidence)
            rough = _roughly(np.array([made - wrong]), np.array([wrong]), 1 - confidence)
            assert float(rough[0]) == pytest.approx(math.log(low / (1 - low)), abs=0.03)


# the trade-off curve


@pytest.mark.parametrize("scores", [1, 2, 30, 1000])
def test_each_end_of_the_band_errs_as_often_as_it_may(scores):
    ranks = tradeoff._ranks(scores)
    assert len(ranks) <= 32
    assert ranks[0] == 1
    assert ranks[-1] == scores
    known = tradeoff._world(np.arange(float(scores)), ranks, 1e-4)
    for rank, low, high in zip(ranks.tolist(), known.low, known.high, strict=True):
        # U_k < u says that at least k of the draws are below u
        assert chance_of(rank, scores, float(low)) == pytest.approx(1e-4)
        assert chance_of(scores + 1 - rank, scores, float(1 - high)) == pytest.approx(1e-4)


def test_a_curve_is_small_in_order_and_plain():
    rng = np.random.default_rng(3)
    inside = rng.random(2000) < 0.5
    curve = trade_off(simulated.gaussian(2.0)(rng, inside), inside, 0.999)
    assert 30 < len(curve.points) <= 64
    assert 1.3 < curve.mu_at_least < 2
    for low, high in zip(curve.points, curve.points[1:], strict=False):
        assert low.threshold > high.threshold
        assert low.fpr <= high.fpr
        assert low.tpr <= high.tpr
    for point in curve.points:
        assert point.fpr_interval[0] <= point.fpr <= point.fpr_interval[1]
        assert point.tpr_interval[0] <= point.tpr <= point.tpr_interval[1]
    assert "NaN" not in dumps(asdict(curve))
    assert "Infinity" not in dumps(asdict(curve))


def test_a_curve_of_a_sure_attack_and_of_none():
    inside = np.arange(2000) % 2 == 0
    sure = trade_off(np.where(inside, 1e4, -1e4), inside, 0.999)
    assert sure.mu_at_least == pytest.approx(2 * NormalDist().inv_cdf((5e-4 / 64) ** 1e-3), abs=0.1)
    assert trade_off(np.zeros(2000), inside, 0.999).mu_at_least == 0
    assert trade_off(np.where(inside, -1.0, 1.0), inside, 0.999).mu_at_least == 0
    for few in (0, 1, 3):
        assert trade_off(np.ones(few), np.ones(few, np.bool_), 0.95).mu_at_least == 0


# whole audits


AUDITS = [
    *((name, 40) for name in simulated.CELLS),
    *(
        pytest.param(name, simulated.AUDITS, marks=pytest.mark.nightly)
        for name in simulated.CELLS
    ),
]  # fmt: skip


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("name", "audits"), AUDITS)
def test_whole_audits_miss_no_more_often_than_they_may_and_meet_their_bars(
    name, audits, confidence
):
    """Bars are of the mean bound; where few audits are run, but for four standard errors."""
    loss, bounds = simulated.CELLS[name][1], simulated.planned(name, confidence, audits)
    missed = sum(each > loss + 1e-9 for each in bounds)
    assert simulated.acceptable(missed, audits, PLANNED * (1 - confidence))
    bar = simulated.bar_of(name)
    if bar is not None and confidence == CONFIDENCES[-1]:
        luck = 0 if audits == simulated.AUDITS else 4 * stdev(bounds) / math.sqrt(audits)
        assert fmean(bounds) + luck >= bar


@pytest.mark.parametrize("audits", [40, pytest.param(4000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("name", simulated.STOPPED)
def test_whoever_stops_when_it_suits_misses_no_more_often(name, confidence, audits):
    missed = simulated.stopped(name, confidence, audits)
    assert simulated.acceptable(missed, audits, (1 - PLANNED) * (1 - confidence))


@pytest.mark.parametrize("audits", [100, pytest.param(4000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("name", simulated.CURVES)
def test_bands_and_mu_miss_no_more_often_than_they_may(name, confidence, audits):
    missed, _ = simulated.curves(name, confidence, audits)
    assert simulated.acceptable(missed, audits, 1 - confidence)


@pytest.mark.parametrize("mechanism", ["dp-laplace", "dp-smooth"])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0])
def test_real_answers_of_honest_mechanisms_are_covered(mechanism, epsilon):
    """Noise that a curator drew, one answer a trial, scored by the public law."""
    experiments, trials, confidence = 50, 400, 0.9
    data = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [1], [1], [1]]))
    replaced = Neighbour(
        data.schema, data.records, data.counter(), data.codes[:1], data.codes[1:2], "replaced"
    )
    claim = claim_named(mechanism)
    facts = PublicFacts(data.records, data.schema, claim)
    drawn = []
    worlds: tuple[Held, ...] = (replaced, data)
    for seed, world in enumerate(worlds):
        asked = [([{0: (0, 1)}], 0)] * (experiments * trials)
        batch = batch_of(asked, 1).stamped(("test", 1), epsilon)
        weighed = told(facts, batch, Curator(world, claim, seed=seed).answer(batch), (0, 1))
        drawn.append((weighed[:, 1] - weighed[:, 0]).reshape(experiments, trials))
    bounds = []
    for number, out, into in zip(range(experiments), *drawn, strict=True):
        inside = np.random.default_rng(number).random(trials) < 0.5
        found = choose(np.where(inside, into, out), inside, confidence=confidence)
        bounds.append(epsilon_by_guesses(found.right, found.made, confidence))
    missed = sum(each > epsilon + 1e-9 for each in bounds)
    assert simulated.acceptable(missed, experiments, PLANNED * (1 - confidence))
    if mechanism == "dp-laplace" and epsilon >= 1:  # and it is no idle bound
        assert np.mean(bounds) > epsilon / 2
