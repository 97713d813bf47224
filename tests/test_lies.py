"""Targets that lie are found out; honest ones are not accused, as often as is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from bench.lies import (
    HONEST,
    LEAKING,
    Liar,
    Lie,
    always,
    behind,
    changing,
    honest,
    lies,
    sold,
    table,
)

import thinveil
from thinveil.attacker.checks.fit import Fit
from thinveil.attacker.checks.found import Checked
from thinveil.attacker.checks.kept import lead_of_another_table
from thinveil.attacker.checks.passing import Passing
from thinveil.attacker.checks.watch import MOST, Plan, watched
from thinveil.auditing.attempt import attempt_on, checks_of
from thinveil.auditing.driver import run
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import Fixed
from thinveil.curator.curator import Curator
from thinveil.errors import QueryError
from thinveil.language.claims import claim_named
from thinveil.language.policies import Policies
from thinveil.language.queries import Answers, Floats, QueryBatch, batch_of
from thinveil.language.schema import MISSING
from thinveil.verdicts.judging.intervals import chance_of
from worlds import sweep

SUDDEN = [lie for lie in lies() if "half-way" not in lie.what]
SLOW = [lie for lie in lies() if "half-way" in lie.what]


def name_of(lie: Lie) -> str:
    return f"{lie.claim}: {lie.what}"


@pytest.mark.parametrize("lie", SUDDEN, ids=name_of)
def test_a_lie_is_found_out_before_the_attack_begins(lie: Lie) -> None:
    for seed in range(4):
        ended = lie.run(seed)
        assert ended.ending == "broken"
        assert ended.meter.queries == 0
        assert ended.evidence
        assert ended.evidence[0].chance <= 1e-6 / 8
        checked = ended.meter.checked
        assert checked is not None
        assert tuple(checked.broken) == ended.evidence


@pytest.mark.parametrize("lie", SLOW, ids=name_of)
def test_another_table_half_way_is_found_out(lie: Lie) -> None:
    ended = lie.run(3)
    assert ended.ending == "broken"
    assert ended.evidence[0].kind in ("totals", "contradiction")


@pytest.mark.nightly
@pytest.mark.parametrize("lie", [*SUDDEN, *SLOW], ids=name_of)
def test_lies_are_found_out_999_times_in_1000(lie: Lie) -> None:
    many = 200 if lie in SLOW else 2000
    missed = sum(lie.run(seed).ending != "broken" for seed in range(1000, 1000 + many))
    # so many misses or more come with a chance of 1e-6 at most where 1 in 1,000 is missed
    assert chance_of(missed, many, 0.001) > 1e-6


@pytest.mark.parametrize("universe", ["unbounded", "bounded"])
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_target_is_not_accused(name: str, universe: str) -> None:
    target = behind(honest(name, 5, universe=universe))
    ended = attempt_on(target, Options(mechanism=name)).run()
    assert ended.ending in ("complete", "undecided")
    meter, checked = ended.meter, ended.meter.checked
    assert checked is not None
    assert not checked.broken
    assert 0 < checked.questions <= MOST + meter.questions // 100
    assert checked.answers == meter.checks
    assert checked.passed
    alone = checks_of(behind(honest(name, 5, universe=universe)), Options(mechanism=name)).run()
    assert alone.ending == "complete"
    assert alone.found is None
    assert alone.meter.queries == 0
    assert alone.meter.checks > 0
    assert alone.meter.checked is not None
    assert "would not have been seen" in alone.meter.checked.power[-1]


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_cache_is_not_accused(name: str) -> None:
    """The same question has the same noise there, as its policy says."""
    for k in (1, 2) if name in ("idp", "idp-noisy") else (1,):
        claim = claim_named(name, k=k)
        for seed in range(3):
            truth = Curator(table(seed), claim, seed=seed, policies=Policies(cache=True))
            ended = thinveil.audit(behind(truth), check_claim=True).run
            assert ended.ending == "complete"
            said = " ".join(ended.meter.checked.power) if ended.meter.checked else ""
            assert ("group size" in said) == (name in ("idp", "idp-integer"))


@pytest.mark.parametrize("records", sweep([60, 100], 2))
def test_half_of_another_table_is_seen_where_only_existence_shows(
    records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.lies.table", lambda seed: table(seed, records))
    for seed in range(8):
        ended = attempt_on(changing("bdp", seed), Options(mechanism="bdp")).run()
        assert ended.ending == "broken"


@pytest.mark.nightly
@pytest.mark.parametrize("error", ["1e-6", "0.2"])
@pytest.mark.parametrize("name", HONEST)
def test_false_alarms_are_as_rare_as_is_said(name: str, error: str) -> None:
    many, alarms, by_checks = 200, 0, 0
    for seed in range(many):
        ended = attempt_on(behind(honest(name, seed)), Options(mechanism=name, error=error)).run()
        alarms += ended.ending == "broken"
        by_checks += any(each.kind in ("known", "fit", "support") for each in ended.evidence)
    assert chance_of(alarms, many, float(error)) > 1e-6
    assert chance_of(by_checks, many, float(error) / 8) > 1e-6


@pytest.mark.parametrize("name", LEAKING)
def test_tiny_tables_with_missing_values_and_no_bounds_are_not_accused(name: str) -> None:
    schema = thinveil.Schema(
        (thinveil.Grid("a", missing=True), thinveil.Grid("b", lower=0, upper=1))
    )
    for records in (2, 3):
        codes = np.array([[MISSING, 0], [5, 1], [-7, 1]][:records])
        truth = Curator(thinveil.Dataset(schema, codes), claim_named(name), seed=1)
        for attempt in (attempt_on, checks_of):
            assert attempt(behind(truth), Options(mechanism=name)).run().ending == "complete"


def test_weights_have_mean_one_under_the_claim() -> None:
    """Each is an e-value: the chance that it reaches 1 / alpha is at most alpha."""
    rng = np.random.default_rng(2)
    claim = claim_named("idp")
    facts = behind(honest("idp-noisy", 1)).facts
    fits, seen, earlier = [], [], []
    batch = batch_of([([{0: (0, 4)}], 3)] * 4, repeats=8)
    for _ in range(1000):
        fit = Fit(claim)
        row = np.repeat(np.arange(3), 4)
        fit.learn(rng.laplace(0, 1e10, 12), row, np.zeros(12, np.bool_), np.full(12, 1e-10))
        fits.append(fit.nats)
        passing = Passing(facts)
        wide = np.repeat([1.0, 2.0, 1.0, 2.0], 8)
        passing.look(batch, Answers(rng.laplace(0, 1e10 * wide), 8, 1e-10))
        seen.append(passing.weight)
        lead = math.log(2) - np.abs(rng.laplace(0, 2, (40, 4))) / 2  # width 2 against width 1
        question = rng.integers(0, 9, 40)
        earlier.append(lead_of_another_table(lead.sum(axis=1), question))
    for nats in (fits, seen, earlier):
        weights = np.exp(np.array(nats))
        assert weights.mean() < 1 + 4 * weights.std() / math.sqrt(len(weights))
        assert (weights >= 20).mean() < 0.05


def looked(name: str, draw: Callable[[int], Floats], rounds: int) -> Passing:
    """Watch a target of four questions a round, two of them with wider noise where it has two."""
    claim = claim_named(name)
    passing = Passing(behind(honest(name, 1)).facts)
    wide = [1.0, 1 + bool(claim.offset and claim.leaks), 1.0, 1.0]
    batch = batch_of([([{0: (0, 4)}], 3)] * 4, repeats=8)
    for _ in range(rounds):
        values = draw(32) * 1e10 * np.repeat(wide, 8)
        passing.look(batch, Answers(np.rint(values) if "integer" in name else values, 8, 1e-10))
    return passing


@pytest.mark.parametrize("name", ["idp", "idp-integer", "idp-noisy", "dp-laplace"])
def test_noise_of_another_shape_is_seen_in_passing(name: str) -> None:
    rng = np.random.default_rng(5)
    shapes = {
        "noise of another shape": lambda many: np.abs(rng.laplace(size=many)),
        "noise of another": lambda many: rng.choice([-(2**0.5), 2**0.5], many),
    }
    if name != "idp-noisy":  # of two widths eight answers tell little of the shape
        shapes["noise"] = lambda many: rng.normal(0, 2**0.5, many)
    if name in ("idp", "idp-noisy"):
        shapes["whole numbers"] = lambda many: np.rint(rng.laplace(size=many) * 1e10) / 1e10
    for said, draw in shapes.items():
        passing = looked(name, draw, 100)
        assert passing.weight > math.log(8e6), said
        assert said in passing.best()


@pytest.mark.parametrize("far", [1e300, 1.7e308, -1.7e308])
def test_an_answer_beyond_all_bounds_does_not_blind_who_looks(far: float) -> None:
    """Of such an answer some weights overflow; the others stay, and tell."""
    values = np.random.default_rng(7).laplace(size=32)
    values[3] = far
    passing = Passing(behind(honest("idp", 1)).facts)
    passing.look(batch_of([([{0: (0, 4)}], 3)] * 4, repeats=8), Answers(values, 8, 1.0))
    assert passing.weight > math.log(8e6)
    assert not np.isnan(passing.nats).any()
    fit = Fit(claim_named("idp"))
    fit.learn(values, np.repeat(np.arange(4), 8), np.zeros(32, np.bool_), np.ones(32))
    assert fit.chance < 1e-6
    assert fit.best() == "noise 8 times as wide as claimed"


def test_each_weight_in_passing_has_mean_one_under_the_claim() -> None:
    rng = np.random.default_rng(6)
    for name in ("idp", "idp-integer", "idp-noisy"):
        nats = [looked(name, lambda many: rng.laplace(size=many), 6).nats for _ in range(150)]
        weights = np.exp(np.array(nats))
        spare = 4 * weights.std(axis=0) / math.sqrt(len(weights))
        assert (weights.mean(axis=0) < 1 + spare + 1e-9).all(), name
        assert ((weights >= 20).mean(axis=0) < 0.05).all(), name


def test_our_own_curator_is_checked_only_where_that_is_wanted() -> None:
    for checks, asked in ((None, False), ("on", True), ("off", False)):
        options = Options(mechanism="idp", checks=checks)
        ended = attempt_on(honest("idp", 1), options).run()
        assert (ended.meter.checks > 0) == asked
        assert (ended.meter.checked is not None) == asked
    plain = attempt_on(honest("idp", 1), Options(mechanism="idp")).run()
    watched_ = attempt_on(honest("idp", 1), Options(mechanism="idp", checks="on")).run()
    assert watched_.meter.queries == plain.meter.queries


@pytest.mark.parametrize("most", [8, 40, 200, 4000])
def test_checks_take_an_eighth_of_a_public_limit_at_most(most: int) -> None:
    truth = Curator(table(1), claim_named("idp-noisy"), policies=Policies(max_queries=most))
    ended = attempt_on(behind(truth), Options(mechanism="idp-noisy")).run()
    assert ended.meter.checks <= most // 8
    assert ended.ending in ("cap", "complete")


def test_a_refused_check_ends_the_checks_and_not_the_attack() -> None:
    truth = honest("idp", 2)

    class Refusing(Liar):
        def answer(self, batch: thinveil.QueryBatch) -> Floats:
            if (batch.low.max() > 2**60) or batch.cells.low.max(initial=0) > 2**60:
                raise thinveil.errors.BudgetError("no")
            return Liar.answer(self, batch)

    target = Refusing(truth.facts, lambda batch, given: truth.answer(batch).values)
    ended = attempt_on(target, Options(mechanism="idp")).run()
    assert ended.ending == "complete"
    assert ended.meter.checks == 0


def test_a_target_may_refuse_thresholds_that_nobody_crosses() -> None:
    truth = honest("idp", 3)

    def answer(batch: QueryBatch, given: int) -> Floats:
        if batch.threshold.min() < 0 or batch.threshold.max() >= truth.facts.records:
            raise QueryError("such thresholds are not taken here")
        return truth.answer(batch).values

    ended = attempt_on(Liar(truth.facts, answer), Options(mechanism="idp")).run()
    assert ended.ending == "complete"
    assert ended.meter.checks > 0


@pytest.mark.parametrize("name", ["idp", "idp-noisy"])
def test_a_watched_run_goes_on_where_it_stopped(name: str, tmp_path: Path) -> None:
    whole = thinveil.audit(behind(honest(name, 3)), truth=table(3))

    class Stopping(Liar):
        def answer(self, batch: thinveil.QueryBatch) -> Floats:
            if batch.key is not None and batch.key[1] == 4:
                raise KeyboardInterrupt
            return Liar.answer(self, batch)

    truth = honest(name, 3)
    cut = Stopping(truth.facts, lambda batch, given: truth.answer(batch).values)
    first = thinveil.audit(cut, truth=table(3), transcript=tmp_path / "run")
    assert first.run.ending == "interrupted"
    named = {"__qualname__": Stopping.__qualname__}  # by which a transcript knows its target
    again = type("Stopping", (Liar,), named)(truth.facts, cut.does)
    verdict = thinveil.audit(again, truth=table(3), resume=tmp_path / "run")
    assert verdict.run.ending == "complete"
    assert verdict.run.meter.checks == whole.run.meter.checks
    assert verdict.run.meter.replayed == 3
    assert verdict.score == whole.score


@pytest.mark.parametrize(("k", "more"), [(2, 0), (1, 1)])
def test_a_bounded_universe_shows_group_size_and_records_too(k: int, more: int) -> None:
    claim = claim_named("idp", universe="bounded")
    for seed in range(5):
        liar = behind(honest("idp", seed, k=k, universe="bounded"), claim, more)
        assert checks_of(liar, Options(mechanism="idp")).run().ending == "broken"


def test_more_records_than_the_table_has_are_a_contradiction() -> None:
    """The pigeonhole: checks aside, what was found must fit into the table."""
    truth = honest("idp", 1)
    found = attempt_on(truth, Options(mechanism="idp")).run().found
    facts = thinveil.PublicFacts(11, truth.facts.schema, truth.facts.claim)

    def attack() -> thinveil.Attack[object]:
        yield batch_of([([{0: (0, 3)}], 1)])
        return found

    watch = watched(attack(), facts, Checked(1e-7), Plan())
    ended = run(watch, behind(honest("idp", 4), more=-1), Fixed(Fraction(1, 10**10)))
    assert ended.ending == "broken"


@pytest.mark.parametrize("name", LEAKING)
def test_what_breaks_a_claim_is_said_in_sentences(name: str) -> None:
    liar = always(name, 0.5, 2) if name == "unprotected" else sold("dp-laplace", name, 2)
    verdict = thinveil.audit(liar)
    assert verdict.exit_code == 1
    assert "does not do what it claims" in verdict.sentence()
