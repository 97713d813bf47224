"""Limits and shares: what a single decision may err, what an answer tells, how few there are."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.attacks import final_proofs as leaves
from thinveil.attacker.attacks.final_proofs import Claims, proved_in_bulk
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.fixed_order import drawn
from thinveil.auditing.attacks import care_for
from thinveil.auditing.driver import run
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import Free
from thinveil.curator.curator import Curator
from thinveil.errors import UsageError
from thinveil.language.claims import claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.laws.gaussian import Gaussian
from thinveil.language.laws.laplace import Laplace
from thinveil.language.queries import About, Cells, Floats
from thinveil.language.schema import Categories, Grid, Schema
from thinveil.verdicts.limits.bounds import bits_an_answer, fewest, tails
from thinveil.verdicts.limits.capacity import told_by
from thinveil.verdicts.limits.shortest_code import by_columns
from worlds import examples, sure, sweep

PEOPLE = thinveil.people()
WHOLE = [dict(zip(PEOPLE.schema.names, row, strict=True)) for row in PEOPLE.rows()[:5]]


# ---- the error of a single decision is the whole error


@examples(200)
@given(
    st.floats(1e-12, 0.99),
    st.integers(1, 10**4),
    st.integers(1, 100),
    st.lists(st.integers(0, 500), min_size=1, max_size=30),
)
def test_planned_shares_never_sum_above_the_error(
    error: float, expected: int, planned: int, sizes: list[int]
) -> None:
    care, spent = Care(error, expected=expected, planned=planned), 0.0
    for size in sizes:
        spent += size * math.exp(-care.nats(size))
        assert spent <= care.risk * (1 + 1e-9) <= error * (1 + 1e-9)


def test_one_planned_decision_has_nearly_all_of_the_error() -> None:
    care = Care(0.2, planned=1)
    assert math.exp(-care.nats(1)) == pytest.approx(0.2 * 15 / 16)
    assert math.exp(-care.nats(1)) > 0  # and one that nobody foresaw has a share too


@pytest.mark.parametrize(
    ("attack", "mechanism", "planned", "expected"),
    [
        ("membership", "idp-binary", 1, 1),
        ("membership", "idp-noisy", 2, 1),  # two windows, for the direction is hidden
        ("uniqueness", "idp-binary", 2, 1),
        ("count", "idp-binary", 0, 11),
        ("dataset", "idp-binary", 0, 2000 * 8),
    ],
)
def test_an_attack_expects_the_decisions_that_it_takes(
    attack: str, mechanism: str, planned: int, expected: int
) -> None:
    people = () if attack == "dataset" else ({"job": "baker"},)
    options = Options(attack=attack, mechanism=mechanism, people=people)
    care = care_for(options, PublicFacts(2000, PEOPLE.schema, claim_named(mechanism)))
    assert (care.planned, care.expected) == (planned, expected)


def test_membership_of_one_person_costs_what_one_decision_costs() -> None:
    """At an error of 0.2 some 50 answers, where shares for a whole table took 96 at least."""
    asked = []
    for seed, who in enumerate(WHOLE):
        verdict = thinveil.audit(
            PEOPLE, mechanism="idp-noisy", attack="membership", known=[who], error="0.2", seed=seed
        )
        asked.append(verdict.run.meter.queries)
        assert verdict.run.meter.risk <= 0.2
    assert sum(asked) / len(asked) < 80


# ---- what one answer tells: the capacity of its channel


def information(
    law: Laplace | Gaussian, inputs: Sequence[tuple[bool, float]], chance: Floats
) -> float:
    """Return how many bits an answer tells if laws are chosen like this, by plain sums."""
    widest = max(scale for _, scale in inputs)
    x = np.linspace(-60 * widest, 60 * widest, 16_001)
    laws = [
        np.exp(law.density(np.abs(x - bit), np.full(len(x), 1 / scale))) for bit, scale in inputs
    ]
    mixed = np.maximum(chance @ np.array(laws), 1e-300)
    told = [p @ np.log2(np.maximum(p, 1e-300) / mixed) * (x[1] - x[0]) for p in laws]
    return float(chance @ np.array(told))


@pytest.mark.parametrize("law", [Laplace(), Gaussian(1e-5)], ids=lambda law: law.name)
@pytest.mark.parametrize(("rate", "offset"), [(1e-6, 1.0), (0.5, 0.25), (6.0, 3.0)])
def test_no_choice_of_questions_tells_more_than_the_capacity(
    law: Laplace | Gaussian, rate: float, offset: float
) -> None:
    far, near = offset / rate, (1 + offset) / rate
    inputs = ((False, far), (False, near), (True, near), (True, far))
    told = told_by(law, inputs)
    chances = [np.array([p, 1 - p, 1 - p, p]) / 2 for p in np.linspace(0, 1, 21)]
    best = max(information(law, inputs, each) for each in chances)
    assert best * (1 - 1e-4) <= told.bits <= 1.02 * best  # the best of 21 choices, by rough sums
    assert all(told.bits <= each for each in told.orders)
    assert list(told.orders) == sorted(told.orders)


@pytest.mark.parametrize("loss", [1e-300, 1e-10, 1e-4])
def test_an_answer_that_is_always_noisy_tells_a_thirteenth_of_a_bit(loss: float) -> None:
    assert bits_an_answer(claim_named("idp-noisy"), 100, loss) == pytest.approx(0.07812, rel=1e-4)


@pytest.mark.parametrize("loss", [1e-6, 1e-2, 0.5, 3.0])
@pytest.mark.parametrize("mechanism", ["dp-laplace", "idp-noisy", "idp"])
def test_orders_bound_the_capacity_from_above(mechanism: str, loss: float) -> None:
    claim = claim_named(mechanism)
    least = bits_an_answer(claim, 100, loss)
    for told in tails(claim, 100, loss).values():
        assert told >= least * (1 - 1e-5)


# ---- how few answers there could be


@pytest.mark.parametrize("records", [3, 5])
def test_short_codes_leave_room_for_all_other_tables(records: int) -> None:
    """2^-bits sums to at most 1 over all tables of this shape (Kraft)."""
    schema = Schema((Categories("x", ("a", "b", "c")), Categories("y", ("a", "b"))))
    cells = list(itertools.product(range(3), range(2)))
    sums: dict[str, float] = defaultdict(float)
    for rows in itertools.combinations_with_replacement(cells, records):
        for name, bits in by_columns(schema, np.array(rows), (1, 1)).items():
            sums[name] += 2.0**-bits
    assert sums.keys() == {"columns", "pairs"}
    assert all(0 < total <= 1 for total in sums.values()), sums


def sampled(bank: thinveil.Dataset, records: int) -> thinveil.Dataset:
    rows = np.random.default_rng(6).choice(bank.records, records, replace=False)
    return thinveil.Dataset(bank.schema, bank.codes[rows])


FEWEST = {
    # of thrifty, the attack that asks least: frozen in test_adaptive, or measured there
    ("people", 60): 2_104,
    ("people", 2000): 48_289,
    ("bank", 300): 9_737,
}


@pytest.fixture(params=FEWEST, ids=str)
def table(request: pytest.FixtureRequest) -> tuple[thinveil.Dataset, int]:
    """A table, and how many questions the thriftiest attack asks of it."""
    name, records = request.param
    data = thinveil.people(records)
    if name == "bank":
        data = sampled(request.getfixturevalue("bank"), records)
    return data, FEWEST[request.param]


@pytest.mark.parametrize("strategy", sweep(["adaptive", "published"], 2))
def test_no_attack_of_ours_asks_less_than_what_is_called_the_fewest(
    table: tuple[thinveil.Dataset, int], strategy: str
) -> None:
    data, least = table
    verdict = thinveil.audit(data, strategy=strategy)
    bounds = sure(verdict.bounds)
    assert 0.85 * least < sure(bounds.questions) <= least
    assert bounds.chance == 0.001


@pytest.mark.nightly
def test_the_thriftiest_attack_asks_what_is_written_above(
    table: tuple[thinveil.Dataset, int],
) -> None:
    data, least = table
    verdict = thinveil.audit(data, strategy="thrifty")
    assert verdict.run.meter.queries == least
    assert sure(sure(verdict.bounds).questions) <= least


@pytest.mark.parametrize("mechanism", ["idp-noisy", "idp-binary"])
def test_repeated_answers_are_held_against_what_one_of_them_tells(mechanism: str) -> None:
    verdict = thinveil.audit(thinveil.people(14), mechanism=mechanism)
    bounds, asked = sure(verdict.bounds), verdict.run.meter.queries
    assert sure(bounds.questions) <= asked
    assert sure(bounds.questions) > 0.7 * sure(bounds.bits) / bounds.bits_an_answer


def test_a_guess_may_beat_the_limit_but_guesses_seldom_do() -> None:
    """The limit is for tables as the code expects them: it says with which chance it fails."""
    assert fewest(100.0, {math.inf: 1.0}, 2.0**-10) == 90
    assert fewest(100.0, {math.inf: 1.0, 2.0: 0.5}, 2.0**-10) == 156  # (100 - 11 - 11) / 0.5
    assert fewest(9.0, {math.inf: 1.0}, 2.0**-10) is None


# ---- draws with a chance of error hang on the seed of the run


def pair_that_meets(many: int, unions: int) -> tuple[int, int]:
    """Return two cells that the first drawing of seed 0 puts into one union."""
    union = drawn(many, 1) % np.uint64(unions)
    return 0, int(np.flatnonzero(union == union[0])[1])


def test_a_table_made_against_the_order_of_one_seed_is_caught_by_others() -> None:
    """One record too many and one too few, side by side in the union that seed 0 draws."""
    many = 8 * leaves._BOXES
    here, gone = pair_that_meets(many, 8)
    records = np.arange(many)
    records[gone] = here  # so two are here and none there, where one is claimed of each
    both = np.column_stack([records, np.zeros(many, np.int64)])
    data = thinveil.Dataset(Schema((Grid("x"), Grid("y"))), both)
    curator = Curator(data, claim_named("unprotected"))
    cells = Cells.points((1,), np.zeros((many, 1), np.int64))
    claims = Claims(cells, 0, np.arange(many), 1, np.ones(many, np.int64))

    def passed(seed: int) -> bool:
        care = Care(0.2, planned=1, seed=seed)  # one drawing is enough for this error
        ran = run(proved_in_bulk(curator.facts, claims, care, About()), curator, Free())
        return bool(ran.found.all())

    assert passed(0)
    fooled = sum(passed(seed) for seed in range(1, 41))
    assert fooled <= 14  # of 40, each with a chance of 1 in 8: more with a chance of 1e-4


def test_the_seed_of_a_run_reaches_its_draws() -> None:
    facts = PublicFacts(2000, PEOPLE.schema, claim_named("idp-noisy"))
    assert care_for(Options(seed=7), facts).seed == 7
    assert drawn(5, 3).tolist() == drawn(5, 3, 0).tolist() != drawn(5, 3, 7).tolist()


@pytest.mark.parametrize(("k", "advice"), [(1, "Use a larger table"), (2, "Use a smaller k or a")])
def test_no_smaller_k_is_advised_where_there_is_none(k: int, advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        PublicFacts(1, PEOPLE.schema, claim_named("idp", k))
