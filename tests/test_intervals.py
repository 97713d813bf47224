"""Intervals hold at their confidence."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil.auditing.entries import confidence_of
from thinveil.errors import UsageError
from thinveil.language.queries import Floats
from thinveil.verdicts.judging.intervals import at_least, chance_of, clopper_pearson
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


@examples(100)
@given(trials=st.integers(1, 10**6), share=st.floats(0, 1), error=st.floats(1e-9, 0.5))
def test_one_sided_ends_and_tails_are_those_of_scipy(trials, share, error):
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    right = round(share * trials)
    low = at_least(right, trials, error)
    wanted = stats.binomtest(right, trials, alternative="greater").proportion_ci(1 - error, "exact")
    assert low == pytest.approx(wanted.low, abs=1e-9)
    assert chance_of(right, trials, share) == pytest.approx(
        stats.binom.sf(right - 1, trials, share), rel=1e-6
    )


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


@pytest.mark.parametrize("text", ["0.3", "1", "2", "-1", "nan", "much", "", None])
def test_a_confidence_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="--confidence"):
        confidence_of(text)


def test_confidences_are_written_for_people():
    assert sureness(confidence_of("0.999")) == "99.9 %"
    assert sureness(0.999999) == "99.9999 %"
