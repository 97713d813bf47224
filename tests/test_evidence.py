"""What answers tell: log-likelihoods, and the three zones as their special case."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinveil.attacker.evidence.likelihood import (
    IMPOSSIBLE,
    ErrorBound,
    exactness_error,
    zones,
)
from thinveil.attacker.terms import ABOVE, BELOW, NOISY
from thinveil.auditing.driver import run
from thinveil.auditing.schedule import Free
from thinveil.curator.curator import Curator
from thinveil.errors import EvidenceError
from thinveil.language.claims import idp, unprotected
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import Laplace
from thinveil.language.queries import Answers, Loss
from thinveil.language.schema import Grid, Schema
from worlds import one_column, ranges, shell, told

KEY = ("run", 1)


def claim_of(k: int):
    return idp(k) if k else unprotected()


@st.composite
def answered(draw: st.DrawFn, repeats: int = 1):
    k = draw(st.integers(0, 4))
    n = draw(st.integers(max(1, 2 * k), 2 * k + 8))
    curator = Curator(one_column(list(range(n))), claim_of(k), seed=draw(st.integers(0, 99)))
    counts = draw(st.lists(st.integers(0, n), min_size=1, max_size=12))
    many = len(counts)
    thresholds = draw(st.lists(st.integers(-2, n + 1), min_size=many, max_size=many))
    batch = ranges([0] * many, [-1] * many, counts, thresholds, repeats=repeats)
    each = draw(st.sampled_from([1e-10, 1e-3, 0.5, 3.0]))
    epsilon: Loss = np.full(many, each) if draw(st.booleans()) else each
    if not k:
        epsilon = None
    return curator, counts, batch, curator.answer(batch.stamped(KEY, epsilon))


@settings(max_examples=200)
@given(answered())
def test_zones_are_where_the_likelihood_is_largest(case) -> None:
    curator, counts, batch, answers = case
    facts = curator.facts
    k, n = facts.claim.k or 0, facts.records
    around = range(-k - 1, n + k + 2)
    rows = told(facts, batch, answers, around).tolist()
    for number, zone in enumerate(zones(facts.claim, answers)):
        b = int(batch.threshold[number])
        if not 0 <= b < n:
            continue
        likely = dict(zip(around, rows[number], strict=True))
        best = max(likely.values())
        found = {c for c, each in likely.items() if each == best}
        held = {
            BELOW: lambda c, b=b: c <= b - k,
            NOISY: lambda c, b=b: b - k < c <= b + k,
            ABOVE: lambda c, b=b: c > b + k,
        }[zone]
        assert all(held(c) for c in found)
        assert held(counts[number])
        assert likely[counts[number]] > IMPOSSIBLE
        if zone == NOISY:
            assert all((each > IMPOSSIBLE) == held(c) for c, each in likely.items())


@settings(max_examples=100)
@given(answered(repeats=5))
def test_repeats_weigh_together(case) -> None:
    curator, counts, batch, answers = case
    every = range(curator.facts.records + 1)
    together = told(curator.facts, batch, answers, every)
    single = [
        told(curator.facts, batch, Answers(answers.values[place::5], 1, answers.epsilon), every)
        for place in range(5)
    ]
    assert np.allclose(together, sum(single), rtol=1e-9)
    asked = [0 <= b < curator.facts.records for b in batch.threshold.tolist()]
    for row, count, sensible in zip(together.tolist(), counts, asked, strict=True):
        assert not sensible or row[count] > IMPOSSIBLE


def test_noise_leans_towards_the_true_bit() -> None:
    facts = PublicFacts(10, Schema((Grid("x"),)), idp(1))
    batch = ranges([0], [0], [1], [4])
    three, four, five, six = told(facts, batch, Answers(np.array([0.9]), 1, 2.0), range(3, 7))[0]
    assert five - four == pytest.approx(2.0 * (0.9 - 0.1))
    assert five == pytest.approx(math.log(2.0 / 2) - 2.0 * 0.1)
    assert three == six == IMPOSSIBLE


def test_an_exact_answer_may_be_noise_by_chance() -> None:
    facts = PublicFacts(10, Schema((Grid("x"),)), idp(1))
    answers = Answers(np.array([1.0]), 1, 0.5)
    likely = told(facts, ranges([0], [0], [1], [4]), answers, range(3, 7))[0]
    by_chance = math.log(exactness_error(idp(1), 0.5))
    assert likely == pytest.approx([IMPOSSIBLE, by_chance, by_chance, 0.0])


def test_zones_of_single_answers() -> None:
    answers = Answers(np.array([0.0, 1.0, -0.0, 0.5, -3e9, 1 + 2**-52, 2.0]))
    assert zones(idp(), answers) == [BELOW, ABOVE, BELOW, NOISY, NOISY, NOISY, NOISY]
    assert zones(unprotected(), Answers(np.array([0.0, 1.0]))) == [BELOW, ABOVE]


@pytest.mark.parametrize("value", [0.5, -1.0, 2.0, 1 + 2**-52])
def test_without_protection_every_answer_is_a_bit(value: float) -> None:
    with pytest.raises(EvidenceError, match="unprotected"):
        zones(unprotected(), Answers(np.array([1.0, value])))


def test_a_target_that_lies_is_found_out() -> None:
    class Liar:
        facts = PublicFacts(4, Schema((Grid("x"),)), unprotected())

        def answer(self, batch):
            return np.full(batch.queries, 0.25)

    from thinveil.attacker.strategies import STRATEGIES

    attack = shell("count", Liar.facts, STRATEGIES["published"], box={0: (0, 2)})
    ended = run(attack, Liar(), Free())
    assert ended.ending == "broken"
    assert "unprotected" in ended.reason


# ---- the stated chance of a mistake


def test_nothing_can_be_misread_without_protection() -> None:
    assert exactness_error(unprotected(), 1.0) == 0.0
    bound = ErrorBound()
    bound.add(unprotected(), 10**6, None)
    assert bound.total == 0.0


def test_the_chances_of_a_run_add_up() -> None:
    bound = ErrorBound()
    bound.add(idp(), 1000, 1e-10)
    bound.add(idp(), 500, np.array([0.5, 1e-3]))
    assert bound.total == pytest.approx(2**-52 * (1000 * (1 + 1e-10) + 500 * 1.5), rel=1e-12)
    published = ErrorBound()
    published.add(idp(), 5_418_936, 1e-10)
    assert published.total < 1.3e-9


@pytest.mark.parametrize("epsilon", [1e-10, 1e-3, 0.7, 10.0, 1e4])
@pytest.mark.parametrize("bit", [0.0, 1.0])
def test_draws_that_look_exact_are_no_likelier_than_stated(epsilon: float, bit: float) -> None:
    """Go through all words near the two places where a draw can look like 0 or 1."""
    reach = 60_000
    exact = set()
    places = [2**53 - 1]  # magnitude 0
    if epsilon < 30:
        places.append(round(2**53 * math.exp(-epsilon)) - 1)  # magnitude epsilon: the other bit
    for place in places:
        top = np.arange(max(0, place - reach), min(2**53 - 1, place + reach) + 1, dtype=np.uint64)
        for sign in (0, 1):
            words = (top << np.uint64(11)) | np.uint64(sign)
            values = bit + Laplace().standard(words) * (1.0 / epsilon)
            hits = words[(values == 0.0) | (values == 1.0)]
            exact.update(hits.tolist())
    assert exact  # magnitude 0 at least: the chance is not nothing
    # a word's sign bit and its top 53 bits matter: 2^54 equally likely draws
    assert len(exact) / 2**54 <= exactness_error(idp(), epsilon)
