"""Intervals and the lower bound on epsilon hold at their confidence."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil import Categories, Curator, Dataset, Schema, batch_of, claim_named
from thinveil.auditing.entries import confidence_of
from thinveil.curator.neighbours import Neighbour
from thinveil.curator.tables.dataset import Held
from thinveil.errors import UsageError
from thinveil.language.queries import Floats
from thinveil.verdicts.judging.intervals import (
    ceiling,
    clopper_pearson,
    epsilon_at_least,
)
from thinveil.verdicts.phrases import sureness
from worlds import examples


@examples(100)
@given(
    trials=st.integers(1, 10**6),
    share=st.floats(0, 1),
    confidence=st.sampled_from((0.5, 0.9, 0.95, 0.999, 1 - 1e-6)),
)
def test_intervals_are_those_of_scipy(trials, share, confidence):
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    right = round(share * trials)
    wanted = stats.binomtest(right, trials).proportion_ci(confidence, "exact")
    assert clopper_pearson(right, trials, confidence) == pytest.approx(tuple(wanted), abs=1e-9)


def pmf(trials: int, share: float) -> Floats:
    """The binomial distribution, by its recurrence in logarithms."""
    k = np.arange(trials + 1)
    chosen = np.array([math.lgamma(trials + 1) - math.lgamma(i + 1) - math.lgamma(trials - i + 1)
                       for i in range(trials + 1)])  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(k > 0, k * np.log(share), 0) + np.where(
            k < trials, (trials - k) * np.log1p(-share), 0
        )
    chances: Floats = np.exp(chosen + logs)
    return chances


@pytest.mark.parametrize("confidence", [0.9, 0.999])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.37, 0.5, 0.99, 1.0])
def test_intervals_cover_the_true_share_often_enough(share, confidence):
    trials = 40
    covered = [
        low <= share <= high
        for low, high in (clopper_pearson(k, trials, confidence) for k in range(trials + 1))
    ]
    assert pmf(trials, share)[covered].sum() >= confidence - 1e-12


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_bound_covers_randomised_response_whose_epsilon_is_known(epsilon, confidence):
    """Exactly: over all outcomes of 30 trials a side, the bound is rarely above the truth."""
    trials = 30
    tpr = math.exp(epsilon) / (1 + math.exp(epsilon))
    chance = np.outer(pmf(trials, tpr), pmf(trials, 1 - tpr))
    above = [
        [epsilon_at_least(a, trials, b, trials, confidence) > epsilon for b in range(trials + 1)]
        for a in range(trials + 1)
    ]
    assert chance[np.array(above)].sum() <= 1 - confidence


@pytest.mark.parametrize("mechanism", ["dp-laplace", "dp-smooth"])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0])
def test_the_bound_covers_real_answers_of_honest_mechanisms(mechanism, epsilon):
    """By simulation: real noise, two worlds, an attacker at the threshold that tells most."""
    experiments, trials, confidence = 400, 100, 0.9
    data = Dataset(Schema((Categories("a", ("x", "y")),)), np.array([[0], [1], [1], [1]]))
    replaced = Neighbour(
        data.schema, data.records, data.counter(), data.codes[:1], data.codes[1:2], "replaced"
    )
    claim = claim_named(mechanism)
    said = []
    worlds: tuple[Held, ...] = (data, replaced)
    for seed, world in enumerate(worlds):
        batch = batch_of([([{0: (0, 1)}], 0)], experiments * trials).stamped(("test", 1), epsilon)
        answers = Curator(world, claim, seed=seed).answer(batch).values
        said.append((answers > 1).reshape(experiments, trials).sum(axis=1).tolist())
    bounds = [
        epsilon_at_least(a, trials, b, trials, confidence) for a, b in zip(*said, strict=True)
    ]
    assert np.mean(np.array(bounds) > epsilon) <= 1 - confidence
    if mechanism == "dp-laplace" and epsilon >= 1:  # and it is no idle bound
        assert np.mean(bounds) > epsilon / 4


def test_the_ceiling_is_what_a_perfect_attack_shows_and_rises_with_trials():
    assert ceiling(1000, 1000, 0.999) == pytest.approx(4.8755, abs=1e-3)
    assert ceiling(10_000, 10_000, 0.999) > ceiling(1000, 1000, 0.999) > ceiling(50, 50, 0.999) > 0
    assert ceiling(1000, 1000, 0.95) > ceiling(1000, 1000, 0.999)


@given(inside=st.integers(0, 60), outside=st.integers(0, 60), a=st.floats(0, 1), b=st.floats(0, 1))
def test_the_bound_is_never_negative_nor_above_the_ceiling(inside, outside, a, b):
    right, wrong = round(a * inside), round(b * outside)
    bound = epsilon_at_least(right, inside, wrong, outside, 0.95)
    assert 0 <= bound <= ceiling(inside, outside, 0.95) + 1e-12
    if right * outside <= wrong * inside:  # no better than chance
        assert bound == 0


@pytest.mark.parametrize("text", ["0.3", "1", "2", "-1", "nan", "much", "", None])
def test_a_confidence_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="--confidence"):
        confidence_of(text)


def test_confidences_are_written_for_people():
    assert sureness(confidence_of("0.999")) == "99.9 %"
    assert sureness(0.999999) == "99.9999 %"
