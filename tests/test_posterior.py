"""The posterior strategy: beliefs are true posteriors, proofs prove, and tables come out exact."""

from __future__ import annotations

from collections import Counter as Multiset
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.beliefs import value_beliefs as ladder
from thinveil.attacker.beliefs.count_beliefs import CountBeliefs
from thinveil.attacker.beliefs.value_beliefs import Ladders
from thinveil.attacker.engines.posterior.searches import Searches
from thinveil.attacker.evidence import proofs
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import row_loglik
from thinveil.attacker.findings import TableFound
from thinveil.attacker.strategies import STRATEGIES
from thinveil.attacker.terms import Axis
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Claim, claim_named, idp, unprotected
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Floats
from thinveil.language.schema import LIMIT, MISSING, Categories, Grid, Schema
from worlds import (
    Watched,
    World,
    as_a,
    attack_with,
    claims,
    column_truth,
    examples,
    leaking_claims,
    looking,
    one_column,
    ranges,
    rows_of,
    shell,
    sweep,
    table_truth,
    worlds,
)

POSTERIOR = STRATEGIES["posterior"]
COUNTING = st.one_of(leaking_claims(bases=("idp",)), leaking_claims(bases=("idp",)), claims(3))
KEY = ("run", 1)


# ---- beliefs about a value


class Dense:
    """The same belief as a ladder's, with a figure for every value."""

    def __init__(self, low: int, top: int) -> None:
        self.values = np.arange(low, top)
        self.log = np.zeros(len(self.values))

    def lean(self, cut: int, nats: float) -> None:
        self.log += np.where(self.values < cut, nats, 0.0)

    def shares(self) -> Floats:
        mass = np.exp(self.log - self.log.max())
        shares: Floats = mass / mass.sum()
        return shares


def spread(ladders: Ladders, row: int, dense: Dense) -> Floats:
    """Return the belief of a ladder's row for every single value."""
    edge, mass = ladders._edge[row], ladders._masses(np.array([row]))[0]
    shares: Floats = np.zeros(len(dense.values))
    for low, high, each in zip(edge[:-1], edge[1:], mass, strict=True):
        if high > low:
            inside = (dense.values >= low) & (dense.values < high)
            assert inside.sum() == high - low
            shares[inside] += each / (high - low)
    shares /= shares.sum()
    return shares


@examples(80)
@given(st.data())
def test_ladders_equal_a_dense_belief(data: st.DataObject) -> None:
    many = data.draw(st.integers(1, 4))
    low = np.array([data.draw(st.integers(-5, 5)) for _ in range(many)])
    size = [data.draw(st.integers(2, 12)) for _ in range(many)]
    ladders = Ladders(low, low + np.array(size))
    dense = [Dense(a, a + b) for a, b in zip(low.tolist(), size, strict=True)]
    for _ in range(data.draw(st.integers(1, 30))):
        rows = np.array(sorted(data.draw(st.sets(st.integers(0, many - 1), min_size=1))))
        if data.draw(st.integers(0, 9)) == 0:
            ladders.begin(rows, low[rows], (low + size)[rows])
            for row in rows.tolist():
                dense[row].log[:] = 0
        cut = ladders.cuts(rows)
        assert ((cut > low[rows]) & (cut < (low + size)[rows])).all()
        if data.draw(st.booleans()):
            cut = np.array(
                [data.draw(st.integers(int(low[r]) + 1, int(low[r]) + size[r] - 1)) for r in rows]
            )
        nats = np.array([data.draw(st.floats(-8, 8)) for _ in rows])
        ladders.lean(rows, cut, nats)
        for row, where, weight in zip(rows.tolist(), cut.tolist(), nats.tolist(), strict=True):
            dense[row].lean(where, weight)
    for row in range(many):
        shares = dense[row].shares()
        assert np.allclose(spread(ladders, row, dense[row]), shares, atol=1e-9)
    value, share = ladders.best(np.arange(many))
    for row in range(many):
        if share[row] > 0.5:
            assert share[row] == pytest.approx(shares_of(dense[row], int(value[row])))
    ladders.keep(np.array([many - 1]))
    assert np.allclose(spread(ladders, 0, dense[-1]), dense[-1].shares(), atol=1e-9)


def shares_of(dense: Dense, value: int) -> float:
    return float(dense.shares()[dense.values == value][0])


@pytest.mark.parametrize("seed", range(6))
def test_what_is_forgotten_hardly_matters(seed: int) -> None:
    """A long noisy search; pieces are let go of on the way, the belief stays."""
    rng = np.random.default_rng(seed)
    size, truth = 5000, int(rng.integers(0, 5000))
    ladders, dense, row = Ladders(np.array([0]), np.array([size])), Dense(0, size), np.array([0])
    for _ in range(4 * ladder._MOST_PIECES):
        cut = ladders.cuts(row)
        nats = rng.normal(1.5 if truth < cut[0] else -1.5, 3**0.5, 1)
        ladders.lean(row, cut, nats)
        dense.lean(int(cut[0]), float(nats[0]))
        assert ladders._density.shape[1] <= ladder._MOST_PIECES
        assert (np.diff(ladders._edge) >= 0).all()
        assert np.abs(spread(ladders, 0, dense) - dense.shares()).sum() < 0.05
    assert ladders.best(row)[0][0] == truth


def test_the_widest_ladder_is_cut_inside() -> None:
    low, top = np.array([1 - LIMIT, -(2**40)]), np.array([LIMIT, 2**40])
    ladders, rows = Ladders(low, top), np.array([0, 1])
    for turn in range(200):
        cut = ladders.cuts(rows)
        assert ((cut > low) & (cut < top)).all()
        ladders.lean(rows, cut, np.array([40.0, -40.0]) * (1 if turn < 100 else -1))
    assert (np.diff(ladders._edge) >= 0).all()


# ---- beliefs about counts

FACES = {
    "idp": idp(),
    "integer": claim_named("idp-integer", 2),
    "binary": claim_named("idp-binary"),
    "binary-3": claim_named("idp-binary", 3),
    "noisy": claim_named("idp-noisy"),
    "noisy-2": claim_named("idp-noisy", 2),
    "noisy-3": claim_named("idp-noisy", 3, offset=0.5),
    "dp-laplace": claim_named("dp-laplace"),
    "dp-smooth": claim_named("dp-smooth"),
    "unprotected": unprotected(),
}
every_face = pytest.mark.parametrize("claim", FACES.values(), ids=FACES)


@every_face
@pytest.mark.parametrize("epsilon", [1e-10, 0.7])
def test_count_beliefs_equal_a_dense_posterior(claim: Claim, epsilon: float) -> None:
    rng = np.random.default_rng(3)
    n = 12
    for turn in range(6):
        sizes = rng.integers(1, n + 1, 3)
        beliefs = CountBeliefs(claim, n)
        beliefs.begin(np.arange(2), sizes[:2])
        beliefs.begin(np.array([2]), sizes[2:])
        ends = np.cumsum(sizes + 1)
        dense = np.split(beliefs._log.copy(), ends[:-1])
        for _ in range(5):
            rows = rng.integers(0, 3, 4)
            b = rng.integers(0, n, 4)
            repeats = rng.integers(1, 4, 4)
            values = rng.laplace(0.5, 1 / epsilon, int(repeats.sum()))
            if claim.post == "integer":
                values = np.rint(values)
            if claim.post == "binary" or not claim.protected or turn % 2:
                values = (values > 0.5).astype(float)
            cost = epsilon if claim.protected else None
            answers = Answers(values, repeats, cost)
            beliefs.weigh(rows, b, answers, repeats)
            starts = np.cumsum(repeats) - repeats
            for row, threshold, start, many in zip(rows, b, starts, repeats, strict=True):
                counts = np.arange(sizes[row] + 1)[None, :]
                some = Answers(values[start : start + many], np.array([many]), cost)
                told = row_loglik(claim, counts, np.array([threshold]), n, some)[0]
                if not isinstance(claim.sensitivity, type(FACES["dp-smooth"].sensitivity)):
                    dense[row] += told
                else:  # treated as if the count were next to the threshold
                    near = np.where(counts[0] > threshold, threshold + 1, threshold)
                    dense[row] += row_loglik(claim, near[None, :], np.array([threshold]), n, some)[
                        0
                    ]
        for row, (log, mine) in enumerate(
            zip(dense, np.split(beliefs._belief()[0], ends[:-1]), strict=True)
        ):
            mass = np.exp(log - log.max())
            assert np.allclose(mine, mass / mass.sum(), atol=1e-6), row
        count, share = beliefs.best()
        for row, log in enumerate(dense):
            assert log[count[row]] >= log.max() - 1e-6
            assert 0 < share[row] <= 1 + 1e-12


@examples(200)
@given(st.sampled_from(sorted(FACES)), st.data())
def test_questions_about_counts_are_possible_and_tell_something(
    name: str, data: st.DataObject
) -> None:
    """Whatever is believed: no search is stuck with questions that cannot change its mind."""
    claim = FACES[name]
    k = claim.k or 0
    n = data.draw(st.integers(max(2 * k, 1), 2 * k + 9))
    size = data.draw(st.integers(1, n))
    beliefs = CountBeliefs(claim, n)
    beliefs.begin(np.array([5]), np.array([size]))
    alive = data.draw(st.sets(st.integers(0, size), min_size=2, max_size=4))
    for count in range(size + 1):
        beliefs._log[count] = data.draw(st.floats(-4, 4)) if count in alive else -60.0
    beliefs._known = None
    rows, b = beliefs.ask()
    assert len(rows) == len(b) > 0
    assert len(set(b.tolist())) == len(b)
    assert ((b >= 0) & (b < n)).all()
    mass, _ = beliefs._belief()
    counts = np.arange(size + 1)
    if claim.hides_direction:
        groups = [(counts > each - k) & (counts <= each + k) for each in b.tolist()]
        splits = [float(mass[inside].sum()) for inside in groups]
    else:
        splits = [float(mass[counts <= each - k].sum()) for each in b.tolist()]
        splits += [float(mass[counts > each + k].sum()) for each in b.tolist()]
    assert any(1e-4 < split < 1 - 1e-4 for split in splits)


@pytest.mark.parametrize("name", ["binary", "noisy", "noisy-3", "integer"])
@pytest.mark.parametrize("truth", [0, 1, 2, 7, 11, 12])
def test_counts_are_found_even_if_nobody_has_the_value(name: str, truth: int) -> None:
    claim = FACES[name]
    curator = Curator(one_column(list(range(12))), claim, seed=truth)
    beliefs = CountBeliefs(claim, 12)
    beliefs.begin(np.array([0]), np.array([12]))
    for _ in range(1500):
        row, b = beliefs.ask()
        repeats = np.full(len(row), 8)
        batch = ranges([0] * len(row), [-1] * len(row), [truth] * len(row), b, repeats=repeats)
        beliefs.weigh(row, b, curator.answer(batch.stamped(KEY, 1e-10)), repeats)
        count, share = beliefs.best()
        if share[0] > 0.999999:
            break
    assert count[0] == truth


# ---- proofs


def visible(claim: Claim, count: int, b: int) -> str:
    """Return what answers at a threshold show of a count, at a tiny loss."""
    k = claim.k or 0
    if b - k < count <= b + k:
        return "noisy"
    return "quiet" if claim.hides_direction else "above" if count > b else "below"


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("hides", [False, True])
def test_tests_that_pass_together_prove_the_count(k: int, hides: bool) -> None:
    if not k:
        claim = unprotected()
    else:
        claim = claim_named("idp-noisy", k) if hides else claim_named("idp-binary", k)
    for n in range(max(2 * k, 1), 2 * k + 8):
        t = np.arange(1, n + 1)
        usual, second, twice = proofs.at_least(claim, n, t)
        assert hides or not twice.any()
        for place, least in enumerate(t.tolist()):
            tests = [usual, second] if twice[place] else [usual]
            asked = [
                (int(test.threshold[place]), int(test.yes[place]), int(test.no[place]))
                for test in tests
            ]
            for count in range(n + 1):
                passed = []
                for b, yes, no in asked:
                    assert 0 <= b < n
                    assert yes == no + 1
                    shown = visible(claim, count, b)
                    assert visible(claim, yes, b) != visible(claim, no, b)
                    passed.append(shown == visible(claim, yes, b) or shown == "above")
                if count == least:
                    assert all(passed)
                if count < least:
                    assert not all(passed)


@pytest.mark.parametrize("upper", [False, True])
@every_face
def test_larger_losses_prove_faster(claim: Claim, upper: bool) -> None:
    paces = [proofs.speed(claim, 100, upper, epsilon) for epsilon in (1e-10, 1e-3, 0.1, 1.0, 5.0)]
    assert all(pace.proof > 0 and pace.step >= 1 for pace in paces)
    if not claim.leaks and claim.protected:
        assert [pace.step for pace in paces] == sorted((p.step for p in paces), reverse=True)
        assert paces[0].step > 10**9


# ---- whole attacks on small worlds


def attacked(attack: Any, world: World) -> Any:
    target = Watched(world.curator())
    ended = attack_with(attack, target)
    if world.claim.universe == "bounded" and world.claim.protected:
        assert target.constant() == []
    if world.claim.protected:
        assert all(0 <= b < world.dataset.records for b in target.thresholds())
    assert ended.meter.risk <= 1e-6
    return ended.found


@examples(100)
@given(worlds(columns=3, records=9, claim=COUNTING), st.data())
def test_a_table_is_reconstructed(world: World, data: st.DataObject) -> None:
    schema = world.dataset.schema
    widths = {
        column: data.draw(st.sampled_from([2, 3, 1000]))
        for column, attribute in enumerate(schema)
        if attribute.kind != "category" and data.draw(st.integers(0, 3)) == 0
    }
    order = data.draw(st.lists(st.sampled_from(range(len(schema))), unique=True))
    found = attacked(shell("dataset", world.facts, POSTERIOR, order=order, widths=widths), world)
    assert (found.known == len(schema)).all()
    rebuilt = Multiset(
        {tuple(row): int(c) for row, c in zip(found.codes.tolist(), found.counts, strict=True)}
    )
    assert len(rebuilt) == len(found.codes)
    assert rebuilt == table_truth(world.dataset, found.columns, found.widths)


@examples(40)
@given(worlds(columns=2, records=8, claim=COUNTING))
def test_columns_and_people(world: World) -> None:
    schema, rows = world.dataset.schema, rows_of(world.dataset)
    wanted = list(range(len(schema)))
    found = attacked(shell("column", world.facts, POSTERIOR, columns=wanted), world)
    assert [each.values for each in found.columns] == [
        column_truth(rows, column) for column in wanted
    ]
    assume(len(schema) > 1)
    people = [{0: row[0]} for row in rows[:3]]
    found = attacked(shell("attribute", world.facts, POSTERIOR, people=people, columns=[1]), world)
    for person, each in zip(people, found.people, strict=True):
        mine = [row for row in rows if row[0] == person[0]]
        assert each.matches == len(mine)
        assert [part.values for part in each.values] == [column_truth(mine, 1)]


@examples(40)
@given(worlds(columns=2, records=7, claim=COUNTING))
def test_what_is_found_so_far_is_true(world: World) -> None:
    looks: list[tuple[float, Any]] = []
    attack_with(looking(shell("dataset", world.facts, POSTERIOR), looks), world.curator())
    assert [done for done, _ in looks] == sorted(done for done, _ in looks)
    for done, found in looks:
        assert 0 <= done <= 1
        assert found.counts.sum() == world.dataset.records
        for known in range(len(found.columns) + 1):
            some = found.known >= known
            truth = table_truth(world.dataset, found.columns[:known], found.widths[:known])
            told: Multiset[Any] = Multiset()
            for row, count in zip(found.codes[some].tolist(), found.counts[some], strict=True):
                told[tuple(row[:known])] += int(count)
            assert all(told[row] <= truth[row] for row in told)


@pytest.mark.parametrize("shape", ["equal", "all but one", "one more", "steps"])
@pytest.mark.parametrize(
    "name", sweep(["binary", "noisy-2", "noisy", "binary-3", "noisy-3", "integer"], 2)
)
def test_tables_with_one_large_group_end(name: str, shape: str) -> None:
    """Counts near n have one edge only; a wrong guess must not be counted for ever."""
    claim = FACES[name]
    k = claim.k or 0
    for n in (2 * k, 2 * k + 3, 20):
        values = {
            "equal": [3] * n,
            "all but one": [3] * (n - 1) + [2],
            "one more": [3] * (n - 1) + [5],
            "steps": list(range(n)),
        }[shape]
        for seed in range(2):
            world = World(one_column(values, lower=0, upper=20), claim, seed)
            found = attacked(shell("dataset", world.facts, POSTERIOR), world)
            pairs = zip(found.codes[:, 0].tolist(), found.counts.tolist(), strict=True)
            assert dict(pairs) == dict(Multiset(values))


def test_a_wrong_guess_is_found_out() -> None:
    """Beliefs are only guesses: whatever is nominated, what is accepted is true."""
    claim = FACES["noisy"]
    data = one_column([1, 1, 4, 6, 6, 6, 9, 12], lower=0, upper=15)
    for seed in range(20):
        curator = Curator(data, claim, seed=seed)
        searches = Searches(curator.facts, Axis(0, 0, 15), np.array([8]), Care())
        searches._beliefs.keep(np.zeros(1, np.bool_))
        state = searches.state
        state.halving[0] = seed % 2
        if seed % 2:  # the upper half, from 8 on, holds two
            state.value[0], state.count[0] = 8, [0, 1, 3, 8][seed % 4]
        else:  # 0, 3, 6 or 9: never the largest
            state.value[0], state.count[0] = seed % 4 * 3, 1 + seed % 3
        searches._prove(np.array([0]))
        for _ in range(3000):
            owner, low, high, b, repeats = searches.questions()
            batch = ranges([0] * len(owner), low, high, b, repeats=repeats)
            searches.learn(curator.answer(batch.stamped(KEY, 1e-10)))
            if not searches.running:
                break
        assert sorted(searches.finds.values[0]) == [(1, 2), (4, 1), (6, 3), (9, 1), (12, 1)]


# ---- what it costs


def test_without_noise_nothing_is_repeated() -> None:
    data = one_column([1, 1, 4, 6, 6, 6, 9, 12], lower=0, upper=15)
    for claim, most in ((unprotected(), 4), (idp(), 8)):
        world = World(data, claim)
        costs = {
            name: attack_with(shell("dataset", world.facts, STRATEGIES[name]), world.curator())
            for name in ("published", "posterior")
        }
        queries = {name: ended.meter.queries for name, ended in costs.items()}
        assert queries["posterior"] <= most * queries["published"]


FROZEN = {
    # mechanism: answers and rounds on forty records of two columns, for seeds 0 and 1
    "idp-integer": ((309, 44), (309, 44)),
    "idp-binary": ((1005, 126), (1017, 140)),
    "idp-noisy": ((10915, 124), (11398, 125)),
}


@cache
def forty() -> Dataset:
    rng = np.random.default_rng(1)
    schema = Schema((Categories("sex", ("f", "m")), Grid("age", lower=0, upper=120, missing=True)))
    age = rng.integers(18, 80, 40)
    age[::9] = MISSING
    return Dataset(schema, np.column_stack([rng.integers(0, 2, 40), age]))


@pytest.mark.parametrize(("mechanism", "expected"), FROZEN.items(), ids=FROZEN)
def test_frozen_counts(mechanism: str, expected: Any) -> None:
    costs = []
    for seed in (0, 1):
        verdict = thinveil.audit(forty(), mechanism=mechanism, seed=seed, strategy="posterior")
        assert verdict.run.ending == "complete"
        costs.append((verdict.run.meter.queries, verdict.run.meter.rounds))
    assert tuple(costs) == expected


@pytest.mark.parametrize(
    ("mechanism", "most"),
    sweep([("idp-integer", 0.8), ("idp-noisy", 22.0), ("idp-binary", 2.8)], 3),
)
def test_answers_for_each_question_of_the_published_search(mechanism: str, most: float) -> None:
    data = thinveil.people()
    verdict = thinveil.audit(data, mechanism=mechanism, strategy="posterior")
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.run.meter.queries <= most * 149_826  # frozen in test_frozen.py


@pytest.mark.parametrize(
    ("mechanism", "k"),
    [
        *((f"idp{more}", k) for more in ("", "-integer", "-binary", "-noisy") for k in (1, 3)),
        ("bdp", 1),
    ],
)
@pytest.mark.nightly
def test_a_sample_of_the_bank_table(mechanism: str, k: int, bank: Dataset) -> None:
    """Part of what `python -m bench soak` runs for ten seeds."""
    rows = np.random.default_rng(k).choice(bank.records, 800, replace=False)
    sample = Dataset(bank.schema, bank.codes[rows])
    verdict = thinveil.audit(sample, mechanism=mechanism, k=k, seed=k)
    assert verdict.run.ending == "complete"
    found = as_a(TableFound, verdict.run.found)
    truth = table_truth(sample, found.columns, found.widths)
    rebuilt = Multiset(
        {tuple(row): int(c) for row, c in zip(found.codes.tolist(), found.counts, strict=True)}
    )
    assert rebuilt == (Multiset(dict.fromkeys(truth, 1)) if mechanism == "bdp" else truth)


def test_facts_are_all_it_needs() -> None:
    facts = PublicFacts(9, Schema((Grid("x", lower=0, upper=5),)), FACES["binary"])
    batch = next(shell("dataset", facts, POSTERIOR))
    assert batch.questions == 1
    assert batch.about.risk == 0
