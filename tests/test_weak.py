from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from thinveil.attacker.attacks import final_proofs as leaves
from thinveil.attacker.attacks import noisy_table as weak
from thinveil.attacker.attacks.final_proofs import Claims, proved, proved_in_bulk
from thinveil.attacker.beliefs.good_turing import Outlook
from thinveil.attacker.engines.unions import Thrift
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.strategies import STRATEGIES
from thinveil.auditing.driver import run
from thinveil.auditing.schedule import Fixed
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Universe, claim_named
from thinveil.language.compiling import compiled
from thinveil.language.policies import Policies
from thinveil.language.queries import About, Cells
from thinveil.language.schema import MISSING, Attribute, Categories, Grid, Schema
from worlds import shell, sweep, wished

TINY = Fixed(Fraction(1, 10**10))
MECHANISMS = ("idp-integer", "idp-binary", "idp-noisy")
THRIFT = Thrift(states=16, windows=8, plain=not compiled())


def a_table(rng, k):
    n = int(rng.integers(2 * k, 2 * k + 60))
    columns = []
    attributes: list[Attribute] = []
    for number in range(int(rng.integers(1, 4))):
        missing = bool(rng.random() < 0.3)
        size = int(rng.choice([1, 2, 3, 17, 200, 100_000]))
        low = int(rng.integers(-50, 50))
        kind = rng.random()
        if size <= 3 and kind < 0.5:
            names = tuple(f"v{value}" for value in range(size))
            attributes.append(Categories(f"c{number}", names, missing))
            low = 0
        elif kind < 0.85:
            attributes.append(
                Grid(f"c{number}", "integer", Decimal(1), low, low + size - 1, missing)
            )
        else:
            attributes.append(Grid(f"c{number}", missing=missing))
        values = low + rng.integers(0, size, n)
        if rng.random() < 0.3:
            values[:] = values[0]
        if missing:
            values = np.where(rng.random(n) < rng.choice([0.05, 0.5]), MISSING, values)
        columns.append(values)
    return Dataset(Schema(tuple(attributes)), np.column_stack(columns))


def with_structure(rng, n):
    """Two columns that follow from a third, and one with few of many possible values."""
    a = rng.choice(6, n, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    often = rng.integers(0, 5000, 30)
    codes = np.column_stack([a, (a * 7 + 3) % 40, a // 2, rng.choice(often, n)])
    sizes = (6, 40, 3, 5000)
    return Dataset(
        Schema(
            tuple(
                Grid(f"c{number}", "integer", Decimal(1), 0, size - 1)
                for number, size in enumerate(sizes)
            )
        ),
        codes,
    )


def is_exact(found, data):
    rows = np.repeat(found.codes, found.counts, axis=0)
    back = np.empty_like(rows)
    back[:, list(found.columns)] = rows
    truth = data.codes
    return back.shape == truth.shape and bool(
        (back[np.lexsort(back.T)] == truth[np.lexsort(truth.T)]).all()
    )


@pytest.mark.parametrize(
    "seeds", sweep([range(0, 8, 4), range(1, 8, 2), range(2, 8, 4)], 3), ids=str
)
@pytest.mark.parametrize("thrift", [None, THRIFT], ids=["adaptive", "thrifty"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_recovers_random_tables(mechanism, thrift, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 4))
        data = a_table(rng, k)
        bounded = all(attribute.lower is not None for attribute in data.schema)
        universe: Universe = "bounded" if bounded and seed % 2 else "unbounded"
        curator = Curator(data, claim_named(mechanism, k, universe), seed=seed)
        care = Care()
        attack = wished(weak.table, curator.facts, care, thrift=thrift)
        ran = run(attack, curator, TINY)
        assert ran.ending == "complete", (seed, ran.reason)
        assert is_exact(ran.found, data), seed
        assert (ran.found.known == len(data.schema)).all()
        assert len(ran.found.bits) == len(data.schema)
        assert ran.meter.risk <= 1e-6


@cache
def asked_by_posterior(mechanism, seed, n):
    data = with_structure(np.random.default_rng(seed), n)
    curator = Curator(data, claim_named(mechanism, 1), seed=0)
    ran = run(shell("dataset", curator.facts, STRATEGIES["posterior"]), curator, TINY)
    assert is_exact(ran.found, data)
    return ran.meter.queries


@pytest.mark.parametrize(("seed", "n"), sweep([(1, 150), (2, 600)], 2))
@pytest.mark.parametrize("thrift", sweep([None, THRIFT], 2), ids=["adaptive", "thrifty"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_fewer_answers_than_posterior_where_there_is_structure(mechanism, thrift, seed, n):
    data = with_structure(np.random.default_rng(seed), n)
    curator = Curator(data, claim_named(mechanism, 1), seed=0)
    attack = wished(weak.table, curator.facts, thrift=thrift)
    ran = run(attack, curator, TINY)
    assert is_exact(ran.found, data)
    mine, theirs = ran.meter.queries, asked_by_posterior(mechanism, seed, n)
    assert mine < theirs, (n, mine, theirs)


@pytest.mark.parametrize("thrift", sweep([None, THRIFT], 2), ids=["adaptive", "thrifty"])
def test_cached_answers_do_not_mislead_it(thrift):
    data = with_structure(np.random.default_rng(3), 30)
    curator = Curator(data, claim_named("idp-binary", 1), seed=0, policies=Policies(cache=True))
    ran = run(wished(weak.table, curator.facts, thrift=thrift), curator, TINY)
    assert ran.ending == "complete"
    assert is_exact(ran.found, data)


def claims_about(values, counts, column=0):
    cells = Cells.points((1,), np.zeros((len(values), 1), np.int64))
    return Claims(cells, column, np.array(values), 1, np.array(counts))


@pytest.fixture
def many():
    """3,000 different records; and claims about each of them."""
    n = 3000
    schema = Schema(
        (Grid("a", "integer", Decimal(1), 0, 9999), Grid("b", "integer", Decimal(1), 0, 3))
    )
    data = Dataset(schema, np.column_stack([np.arange(n), np.zeros(n, np.int64)]))
    return Curator(data, claim_named("idp-noisy", 1), seed=5)


@pytest.mark.parametrize("prove", [proved, proved_in_bulk])
def test_a_proof_finds_wrong_claims(many, prove):
    values, counts = np.arange(3000), np.ones(3000, np.int64)
    values[[17, 2005]] = [7777, 8888]  # nobody is there
    care = Care(expected=3000)
    ran = run(prove(many.facts, claims_about(values, counts), care, About()), many, TINY)
    assert np.flatnonzero(~ran.found).tolist() == [17, 2005]


def test_bulk_proofs_are_cheap_and_counted(many):
    claims = claims_about(np.arange(3000), np.ones(3000, np.int64))
    bulk, single = Care(expected=3000), Care(expected=3000)
    together = run(proved_in_bulk(many.facts, claims, bulk, About()), many, TINY)
    apart = run(proved(many.facts, claims, single, About()), many, TINY)
    assert together.found.all()
    assert apart.found.all()
    assert together.meter.queries * 10 < apart.meter.queries
    assert single.decisions == 3000
    unions = -(-3000 // leaves._BOXES)
    drawings = -(-np.log(1e6 * 3000) // np.log(unions))
    assert bulk.decisions >= 1 + drawings * unions


def test_a_record_too_many_hides_no_missing_one(many):
    # one claim says two records where one is, another one where none is: the sum is right
    values, counts = np.arange(3000), np.ones(3000, np.int64)
    counts[5], counts[6] = 2, 1
    values[7] = 9000
    values[8], counts[8] = 8, 1
    care = Care(expected=3000)
    ran = run(proved_in_bulk(many.facts, claims_about(values, counts), care, About()), many, TINY)
    assert not ran.found[5]
    assert not ran.found[7]


def test_an_outlook_expects_what_it_saw():
    outlook = Outlook(1000, [np.array([0, 1, 0, 1])])
    even = outlook.view(np.array([0]), [])
    found = np.array([0, 1]), np.array([10, 500]), np.array([60, 40])
    view = outlook.view(np.array([2, 3]), [found])
    seen, value = np.array([0]), np.array([10])
    assert view.bits(seen, value, np.array([1])) < even.bits(seen, value, np.array([1])) - 5
    assert view.bits(np.array([0]), value, np.array([1])) < view.bits(
        np.array([1]), value, np.array([1])
    )
    cut, chance = view.halves(np.array([0]), np.array([0]), np.array([1000]))
    assert 10 <= cut[0] <= 500
    assert 0 < chance[0] < 1


def test_what_cannot_be_proved_is_searched_again(monkeypatch):
    """Checks on the way are made worthless, so that some records are not where they seem."""
    monkeypatch.setattr(weak, "_CHECK", -1.0)
    again = 0
    for seed in (2, 7, 14):
        data = a_table(np.random.default_rng(seed), 1)
        curator = Curator(data, claim_named("idp-noisy"), seed=seed)
        seen: list[About] = []
        ran = run(
            wished(weak.table, curator.facts),
            curator,
            TINY,
            observer=lambda _, about: seen.append(about),  # noqa: B023
        )
        again += any(about.label == "searching again" for about in seen)
        assert ran.ending == "complete", (seed, ran.reason)
        assert is_exact(ran.found, data), seed
        assert (ran.found.known == len(data.schema)).all()
    assert again
