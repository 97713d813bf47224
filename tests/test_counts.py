"""Beliefs about many counts at once, held against a list of what each of them may still be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.beliefs import count_limits as wide
from thinveil.attacker.beliefs.arrays import ramp
from thinveil.attacker.beliefs.beta_binomial import CONCENTRATIONS, Spread, log_gamma
from thinveil.attacker.beliefs.count_curves import Widths
from thinveil.attacker.beliefs.count_zones import Counts, candidates, outcome_entropy
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Rules
from thinveil.errors import EvidenceError
from worlds import examples, sure, sweep


def zone_of(rules: Rules, count: int, b: int) -> int:
    """Say what a truthful answer looks like."""
    if b - rules.k < count <= b + rules.k:
        return NOISY
    return ABOVE if count > b and not rules.hidden else BELOW


@st.composite
def rows(draw: st.DrawFn) -> tuple[Rules, list[tuple[int, int, int, list[float]]]]:
    """Rules, and for each count its lowest value, its highest, the true one, and beliefs."""
    hidden = draw(st.booleans())
    k = draw(st.integers(1 if hidden else 0, 4))
    n = draw(st.integers(max(2 * k, 2), 2 * k + 30))
    found = []
    for _ in range(draw(st.integers(1, 6))):
        low = draw(st.integers(0, n - 1))
        high = draw(st.integers(low + 1, n))
        weights = st.sampled_from([1.0, 1.0, 2.0, 50.0, 1e-9])
        mass = draw(st.lists(weights, min_size=high - low + 1, max_size=high - low + 1))
        found.append((low, high, draw(st.integers(low, high)), mass))
    return Rules(n, k, bounded=False, hidden=hidden), found


@examples(300)
@given(rows(), st.booleans())
def test_counts_against_a_list_of_what_is_possible(case, patient) -> None:
    rules, listed = case
    counts = Counts(rules, patient)
    low, high = (np.array([row[part] for row in listed]) for part in (0, 1))
    masses = [np.array(row[3]) / sum(row[3]) for row in listed]
    counts.begin(np.arange(len(listed)) * 7, low, high, np.concatenate(masses))
    possible = {7 * place: set(range(a, b + 1)) for place, (a, b, _, _) in enumerate(listed)}
    settled: dict[int, int] = {}
    for _ in range(200):
        if not len(counts):
            break
        row, b = counts.ask()
        keys = counts.key[row].tolist()
        assert set(keys) == set(counts.key.tolist())  # nobody waits
        assert ((b >= 0) & (b < rules.n)).all()
        zone = [
            zone_of(rules, listed[key // 7][2], each)
            for key, each in zip(keys, b.tolist(), strict=True)
        ]
        before = {key: len(mine) for key, mine in possible.items()}
        for key, each, seen in zip(keys, b.tolist(), zone, strict=True):
            possible[key] = {c for c in possible[key] if zone_of(rules, c, each) == seen}
        done, found, cost = counts.tell(np.array(zone, np.int64))
        # every round tells something: no question whose answer was certain
        assert all(len(possible[key]) < before[key] or before[key] == 1 for key in set(keys))
        for key, count, bits in zip(done.tolist(), found.tolist(), cost.tolist(), strict=True):
            assert possible[key] == {count}
            settled[key] = count
            a, _, truth, _ = listed[key // 7]
            assert bits == pytest.approx(-math.log2(masses[key // 7][truth - a]), abs=1e-6)
        assert all(len(possible[key]) > 1 for key in counts.key.tolist())
    assert settled == {7 * place: row[2] for place, row in enumerate(listed)}


@examples(100)
@given(rows(), st.integers(2, 8), st.integers(0, 3))
def test_narrow_counts_are_handed_over(case, width, rounds) -> None:
    rules, listed = case
    counts = Counts(rules)
    low, high = (np.array([row[part] for row in listed]) for part in (0, 1))
    mass = np.concatenate([np.array(row[3]) / sum(row[3]) for row in listed])
    counts.begin(np.arange(len(listed)), low, high, mass)
    for _ in range(rounds):
        if len(counts):
            row, b = counts.ask()
            truth = [listed[key][2] for key in counts.key[row].tolist()]
            zone = [zone_of(rules, c, each) for c, each in zip(truth, b.tolist(), strict=True)]
            counts.tell(np.array(zone, np.int64))
    before = len(counts)
    key, low, size, mass, cost = counts.take(width)
    assert len(key) + len(counts) == before
    assert mass.shape == (len(key), width)
    assert (size <= width).all()
    assert mass.sum(axis=1) == pytest.approx(np.ones(len(key)))
    for place, one in enumerate(key.tolist()):
        assert low[place] <= listed[one][2] < low[place] + size[place]
        assert (mass[place, size[place] :] == 0).all()
        assert cost[place] >= 0
    assert (counts._size > width).all()


@pytest.mark.parametrize("k", [0, 1, 2, 3, 7, 20])
def test_thresholds_tell_nearly_as_much_as_the_best(k: int) -> None:
    rng = np.random.default_rng(k)
    n, rows = 200, 40
    rules = Rules(n, k, bounded=False)
    counts = Counts(rules, patient=True)
    none, all_of_them = np.zeros(rows, np.int64), np.full(rows, n)
    prior = Spread().prior(all_of_them, rng.random(rows), none, all_of_them)
    counts.begin(np.arange(rows), none, all_of_them, prior)
    mass = prior.reshape(rows, n + 1)
    _, b = counts.ask()

    def told(belief, threshold):
        below = belief[: max(threshold - k + 1, 0)].sum()
        above = belief[threshold + k + 1 :].sum()
        return float(outcome_entropy(*(np.array(x) for x in (below, 1 - below - above, above))))

    for belief, threshold in zip(mass, b.tolist(), strict=True):
        best = max(told(belief, each) for each in range(n))
        assert told(belief, threshold) >= 0.9 * best


def test_candidates_are_few_and_around_the_median() -> None:
    median = np.array([50])
    for k in range(40):
        near = [int(each[0]) for each in candidates(median, k)]
        assert len(set(near)) == len(near) <= 12
        assert min(near) == 50 - k - 1
        assert max(near) == 50 + k


def test_answers_that_no_table_explains() -> None:
    for hidden in (False, True):
        counts = Counts(Rules(10, 1, bounded=False, hidden=hidden))
        counts.begin(np.array([0]), np.array([3]), np.array([4]), np.array([0.5, 0.5]))
        row, _ = counts.ask()
        counts._asked = np.full(len(row), 8)
        with pytest.raises(EvidenceError, match="contradict"):
            counts.tell(np.full(len(row), NOISY))


# ---- priors


def test_log_gamma_is_that_of_the_library() -> None:
    x = np.concatenate([np.geomspace(1e-4, 1e7, 500), np.arange(1, 200)])
    expected = np.array([math.lgamma(each) for each in x])
    assert log_gamma(x) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_ramps() -> None:
    assert ramp(np.array([3, 0, 2])).tolist() == [0, 1, 2, 0, 1]


@examples(100)
@given(
    st.lists(
        st.tuples(st.integers(1, 700), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=8,
    )
)
def test_priors_add_up_to_one_and_rule_nothing_out(groups) -> None:
    s = np.array([each[0] for each in groups])
    p = np.array([each[1] for each in groups])
    ends = np.sort(np.array([[round(each[0] * end) for end in each[2:]] for each in groups]))
    low, high = ends[:, 0], ends[:, 1]
    mass = Spread().prior(s, p, low, high)
    starts = np.cumsum(high - low + 1) - (high - low + 1)
    assert len(mass) == (high - low + 1).sum()
    assert (mass > 0).all()
    assert np.add.reduceat(mass, starts) == pytest.approx(np.ones(len(s)))


def test_a_prior_is_a_mixture_of_beta_binomials() -> None:
    s, p = 12, 0.3
    mass = Spread().prior(np.array([s]), np.array([p]), np.array([0]), np.array([s]))

    def one(count: int, kappa: float) -> float:
        a, b = kappa * p, kappa * (1 - p)
        log = math.lgamma(count + a) + math.lgamma(s - count + b) - math.lgamma(s + kappa)
        log -= math.lgamma(a) + math.lgamma(b) - math.lgamma(kappa)
        return math.comb(s, count) * math.exp(log)

    for count in range(s + 1):
        expected = sum(one(count, kappa) for kappa in CONCENTRATIONS) / len(CONCENTRATIONS)
        assert mass[count] == pytest.approx(expected, rel=1e-5)


def test_priors_learn_how_alike_records_are() -> None:
    rng = np.random.default_rng(1)
    s, p = np.full(2000, 20), np.full(2000, 0.5)
    alike, apart = Spread(), Spread()
    alike.learn(s, p, np.where(rng.random(2000) < 0.5, 0, 20))
    apart.learn(s, p, rng.binomial(20, 0.5, 2000))
    row = np.array([20]), np.array([0.5]), np.array([0]), np.array([20])
    assert alike.prior(*row)[0] > 10 * apart.prior(*row)[0]
    assert apart.prior(*row)[10] > 2 * alike.prior(*row)[10]


@pytest.mark.parametrize(("mechanism", "k"), sweep([("idp", 3), ("idp", 1), ("unprotected", 1)], 3))
@pytest.mark.parametrize("records", sweep([300, 3_000, 6_000], 3))
def test_counts_of_large_groups_are_narrowed_by_their_curve(mechanism, k, records, monkeypatch):
    """Bins instead of single values cost hardly a question more, and the end is the same."""
    data = thinveil.people(records)
    dense = thinveil.audit(data, mechanism=mechanism, k=k)
    monkeypatch.setattr(wide, "_LARGE", 0)
    monkeypatch.setattr(wide, "MOST", 64)
    binned = thinveil.audit(data, mechanism=mechanism, k=k)
    assert sure(dense.score).exact
    assert sure(binned.score).exact
    assert binned.run.meter.queries <= 1.02 * dense.run.meter.queries
    assert binned.run.meter.rounds <= 1.1 * dense.run.meter.rounds
    assert binned.bits == pytest.approx(dense.bits, rel=0.02)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_wide_count_is_narrowed_to_the_only_one_left(k):
    """Whatever the count is: limits hold it, questions stay few, and bits add up to its chance."""
    rules = Rules(5_000_000, k, False)
    size = np.array([5_000_000, 100_000, 40_000, 4_000_000, 1_000, 1_000])
    chance = np.array([0.3, 0.0001, 0.9999, 0.5, 0.5, 0.5])
    low, high = np.array([0, 0, 100, 1_000_000, 0, 0]), np.append(size[:3], [3_000_000, 1_000, 900])
    truth = np.array([1_500_100, 0, 40_000, 1_000_000, 1_000, 507])
    counts, asked = wide.WideCounts(rules), 0
    found, told = np.full(6, -1), np.zeros(6)
    counts.begin(np.arange(6), size, chance, low, high)
    curves = Widths().curves(size, chance)
    rows = np.arange(6)
    expected = curves.between(rows, truth, truth) / curves.between(rows, low, high)
    while len(counts):
        row, b = counts.ask()
        asked += len(row)
        true = truth[counts.key[row]].tolist()
        zone = np.array([zone_of(rules, *each) for each in zip(true, b.tolist(), strict=True)])
        key, count, bits = counts.tell(zone)
        found[key], told[key] = count, bits
    assert found.tolist() == truth.tolist()
    np.testing.assert_allclose(told, -np.log2(expected), rtol=1e-3)
    assert asked < 6 * 3 * 24  # three a round for so few, none of more than 24 rounds


def test_an_impossible_answer_about_a_wide_count_is_told():
    counts = wide.WideCounts(Rules(5_000_000, 1, False))
    key, size = np.zeros(1, np.int64), np.array([1000])
    counts.begin(key, size, np.array([0.5]), key, size)
    row, _ = counts.ask()
    counts.tell(np.full(len(row), BELOW))
    row, b = counts.ask()
    counts._asked = b + 1000
    with pytest.raises(EvidenceError):
        counts.tell(np.full(len(row), ABOVE))
