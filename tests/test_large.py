"""In large tables not every count is weighed: the ways for that, on small tables."""

from __future__ import annotations

import numpy as np
import pytest

import thinveil
from thinveil.attacker.beliefs import count_limits, count_parts
from thinveil.attacker.beliefs.count_beliefs import CountBeliefs
from thinveil.attacker.beliefs.count_curves import Curves, Widths
from thinveil.attacker.beliefs.count_parts import LargeBeliefs, PartBeliefs
from thinveil.language.claims import claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers
from worlds import sure, sweep

SIZE = np.array([700, 40, 3000])
CURVES = {
    "values": Curves.of_values(SIZE, np.array([False, True, False])),
    "halves": Curves.of_halves(SIZE),
    "bells": Widths().curves(SIZE, np.array([0.3, 0.00001, 0.8])),
}


def _table() -> thinveil.Dataset:
    """Return a table with few values, so that its groups are large."""
    rng = np.random.default_rng(3)
    first = rng.choice(3, 900, p=[0.5, 0.3, 0.2])
    codes = np.column_stack([first, rng.binomial(9, 0.4, 900), rng.binomial(4, 0.2 + 0.2 * first)])
    grids = (
        thinveil.Grid(name, lower=0, upper=top) for name, top in zip("abc", (2, 9, 4), strict=True)
    )
    return thinveil.Dataset(thinveil.Schema(tuple(grids)), codes)


def _every(curves: Curves) -> tuple[np.ndarray, np.ndarray]:
    row = np.repeat(np.arange(len(SIZE)), SIZE + 1)
    count = np.concatenate([np.arange(size + 1) for size in SIZE])
    return row, curves.between(row, count, count)


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_holds_all_belief_and_its_parts_add_up(name):
    curves = CURVES[name]
    row, mass = _every(curves)
    np.testing.assert_allclose(np.bincount(row, mass), 1.0, atol=1e-9)
    low, high = np.array([3, 0, 100]), np.array([600, 20, 2999])
    inside = np.concatenate(
        [
            (np.arange(s + 1) >= a) & (np.arange(s + 1) <= b)
            for s, a, b in zip(SIZE, low, high, strict=True)
        ]
    )
    parts = curves.between(np.arange(3), low, high)
    np.testing.assert_allclose(np.bincount(row, mass * inside), parts, atol=1e-9)


def test_widths_learn_how_far_counts_lie_from_what_was_expected():
    rng = np.random.default_rng(0)
    size, chance = np.full(200, 100_000), np.full(200, 0.5)
    near, far = Widths(), Widths()
    near.learn(size, chance, rng.binomial(100_000, 0.5, 200))
    far.learn(size, chance, rng.integers(0, 100_001, 200))
    mass = [
        each.curves(size[:1], chance[:1]).between(np.zeros(1, int), *np.array([[49_000], [51_000]]))
        for each in (near, far)
    ]
    assert mass[0] > 0.9 > 0.3 > mass[1]


class _Given:
    """Counts as likely as curves say, weighed one by one."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves

    def counts(self, records, chance):
        return _every(self._curves)[1]

    def curves(self, records, chance):
        return self._curves


@pytest.mark.parametrize("mechanism", ["idp-binary", "idp-noisy", "dp-laplace"])
@pytest.mark.parametrize("name", CURVES)
def test_parts_believe_what_single_counts_do(mechanism, name):
    """Fast equals naive: cut only where something was told, belief is the same."""
    claim, records, rng = claim_named(mechanism), 5000, np.random.default_rng(1)
    dense, parts = CountBeliefs(claim, records), PartBeliefs(claim, records)
    owner = np.arange(3)
    dense.begin(owner, SIZE, prior=_Given(CURVES[name]), chance=np.zeros(3))
    parts.start(owner, CURVES[name])
    for _ in range(4):
        row = np.sort(rng.integers(0, 3, 12))
        threshold = rng.integers(0, SIZE[row])
        drawn = np.full(12, 3)
        if mechanism == "idp-binary":
            values = rng.integers(0, 2, 36).astype(float)
        else:
            values = rng.laplace(scale=1.5, size=36)
        answers = Answers(values, drawn, 1.0)
        dense.weigh(row, threshold, answers, drawn)
        parts.weigh(row, threshold, answers, drawn)
        np.testing.assert_allclose(parts._median(), dense._median(), atol=1)
        upto = rng.integers(0, SIZE)
        np.testing.assert_allclose(
            parts._share(owner, upto), dense._share(owner, upto), atol=1e-6, rtol=1e-5
        )
    parts.keep(np.array([True, False, True]))
    dense.keep(np.array([True, False, True]))
    upto = np.array([300, 2000])
    np.testing.assert_allclose(
        parts._share(np.arange(2), upto), dense._share(np.arange(2), upto), atol=1e-6, rtol=1e-5
    )


def _answered(claim, count, threshold, drawn, epsilon, rng):
    """Return answers that are always noisy, twice as much where the count is near a threshold."""
    near = (threshold - claim.reach < count) & (count <= threshold + claim.reach)
    scale = np.repeat(np.where(near, 2.0, 1.0), drawn) / epsilon
    return Answers(rng.laplace(scale=scale), drawn, epsilon)


@pytest.mark.parametrize(("mechanism", "most"), [("idp-noisy", 2**17), ("idp-binary", 2**20)])
def test_how_large_is_large(mechanism, most):
    """Where directions hide it pays sooner."""
    schema, claim = thinveil.Schema((thinveil.Grid("a", lower=0, upper=9),)), claim_named(mechanism)
    hides = [count_parts.is_large(PublicFacts(most + more, schema, claim)) for more in (0, 1)]
    assert hides == [False, True]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_scan_finds_a_count_wherever_it_lies(k):
    """No count is left out: by a window beyond it that was asked before, or one across an edge."""
    claim, rng = claim_named("idp-noisy", k), np.random.default_rng(5)
    found: dict[int, int] = {}
    counts = np.array([*range(7), 300, 2990, 5540, 5576, 5577, 5578])
    parts = PartBeliefs(claim, 2**21)

    def start(owner, doubted=None):
        size = np.full(len(owner), 5578)
        parts.start(owner, Widths().curves(size, np.full(len(owner), 0.535)), doubted)

    start(np.arange(len(counts)))
    for _ in range(400):
        row, threshold = parts.ask()
        drawn = np.full(len(row), 16)
        count = counts[parts.owner[row]]
        parts.weigh(row, threshold, _answered(claim, count, threshold, drawn, 1e-6, rng), drawn)
        count, share = parts.best()
        settled = share >= 0.97  # as `searches` has it
        found |= dict(zip(parts.owner[settled].tolist(), count[settled].tolist(), strict=True))
        wrong = settled & (count != counts[parts.owner])  # what is proved afresh finds them
        owner, count = parts.owner[wrong], count[wrong]
        parts.keep(~settled)
        if len(owner):
            start(owner, count)
        if not len(parts.owner):
            break
    assert found == dict(enumerate(counts.tolist()))


def test_small_counts_of_a_large_table_are_weighed_one_by_one():
    beliefs = LargeBeliefs(claim_named("idp-binary"), 5000)
    beliefs.begin(np.array([7, 8, 9]), np.array([600, 5, 900]), evenly=True)
    assert beliefs.owner.tolist() == [8, 7, 9]
    row, _ = beliefs.ask()
    assert row.tolist() == [0, 1, 2]
    beliefs.keep(np.array([False, True, True]))
    assert beliefs.owner.tolist() == [7, 9]
    assert (beliefs.best()[1] < 0.1).all()


@pytest.mark.parametrize("strategy", ["adaptive", "thrifty"])
@pytest.mark.parametrize(
    ("mechanism", "k"),
    sweep([("idp-noisy", 1), ("idp-binary", 1), ("idp-noisy", 2), ("idp-noisy", 3)], 2),
)
def test_a_large_table_is_found_exactly(mechanism, k, strategy, monkeypatch):
    """Counts in parts: the same table in the end.

    Where directions show, for hardly an answer more. Where they hide, scans are made for large
    tables, and ask about twice as much of this small one: nothing is promised of it.
    """
    data = _table()
    settings = {"mechanism": mechanism, "k": k, "strategy": strategy}
    every = thinveil.audit(data, **settings)
    monkeypatch.setattr(count_parts, "LARGE", 0)
    monkeypatch.setattr(count_parts, "MOST", 16)
    parts = thinveil.audit(data, **settings)
    assert sure(every.score).exact
    assert sure(parts.score).exact
    if mechanism == "idp-binary":
        assert parts.run.meter.queries <= 1.05 * every.run.meter.queries


@pytest.mark.parametrize(("mechanism", "k"), sweep([("idp", 1), ("unprotected", 1), ("idp", 3)], 2))
def test_thrifty_narrows_large_counts_by_their_curve(mechanism, k, monkeypatch):
    """Bins instead of single values cost hardly a question more, and the end is the same."""
    data = _table()
    settings = {"mechanism": mechanism, "k": k, "strategy": "thrifty", "effort": 64}
    dense = thinveil.audit(data, **settings)
    monkeypatch.setattr(count_limits, "_LARGE", 0)
    monkeypatch.setattr(count_limits, "MOST", 32)
    binned = thinveil.audit(data, **settings)
    assert sure(dense.score).exact
    assert sure(binned.score).exact
    assert binned.run.meter.queries <= 1.03 * dense.run.meter.queries
