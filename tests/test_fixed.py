"""The paper's own tests, a fixed number of answers each, as a way to settle questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import thinveil
from thinveil.attacker.evidence.error_budget import TESTS, Care
from thinveil.attacker.evidence.noise_tests import (
    PAPER_PSI_REPEATS,
    FixedTally,
    Identical,
    MeanMagnitude,
    Variance,
    noise_test,
)
from thinveil.attacker.evidence.sequential import Tally, settling
from thinveil.attacker.terms import ABOVE, BELOW, NOISY
from thinveil.errors import EvidenceError, Undecided, UsageError
from thinveil.language.claims import claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers
from thinveil.language.schema import Grid, Schema
from worlds import ranges

DATA = thinveil.people(40)
SCHEMA = Schema((Grid("x", lower=0, upper=9),))


def tally(mechanism: str, **care: Any) -> FixedTally:
    facts = PublicFacts(100, SCHEMA, claim_named(mechanism))
    made = settling(facts, Care(**care))
    assert isinstance(made, FixedTally)
    return made


def test_each_mechanism_has_its_tests() -> None:
    assert noise_test(claim_named("idp-binary"), "identical") == Identical("binary")
    assert noise_test(claim_named("idp-integer"), "identical") == Identical("integer")
    assert noise_test(claim_named("bdp", post="binary"), "identical") == Identical("binary")
    assert noise_test(claim_named("idp-noisy", offset=0.5), "psi") == Variance(0.5)
    assert noise_test(claim_named("idp-noisy", offset=2.0), "mean") == MeanMagnitude(2.0)
    assert isinstance(settling(PublicFacts(9, SCHEMA, claim_named("idp-noisy")), Care()), Tally)
    assert list(TESTS) == sorted(TESTS)


@pytest.mark.parametrize(
    ("mechanism", "test"),
    [("idp-noisy", "identical"), ("dp-laplace", "identical"), ("idp-binary", "psi"),
     ("dp-laplace", "mean"), ("idp-integer", "mean")],
)  # fmt: skip
def test_a_test_that_does_not_fit_is_refused(mechanism: str, test: str) -> None:
    with pytest.raises(UsageError, match=f"--test {test}"):
        thinveil.audit(DATA, mechanism=mechanism, test=test)


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings, words in (
        ({"mechanism": "idp", "test": "psi"}, "single answers of idp tell"),
        ({"mechanism": "idp-noisy", "test": "psi", "strategy": "posterior"}, "way of its own"),
        ({"mechanism": "idp-noisy", "repeats": 9}, "which --test"),
        ({"mechanism": "idp-noisy", "test": "psi", "repeats": 1}, "at least 2"),
        ({"mechanism": "idp-binary", "test": "identical", "repeats": 0}, "at least 1"),
        ({"mechanism": "idp-binary", "test": "sequential", "repeats": 9}, "no fixed number"),
        ({"mechanism": "idp-binary", "test": "guessing"}, "--test is one of"),
    ):
        with pytest.raises(UsageError, match=words):
            thinveil.audit(DATA, **settings)


def heard(made: FixedTally, values: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Tell a tally as many answers as it wants, at a loss of 1e-10 each."""
    drawn = made.repeats()
    many = len(drawn)
    batch = ranges([0] * many, [0] * many, [1] * many, range(3, 3 + many), repeats=drawn)
    return made.add(batch, Answers(values, drawn, 1e-10))


def test_repetitions_are_planned_from_the_wanted_error() -> None:
    """44 equal answers settle a question at 1e-6 over a whole table (docs/errata.md, 3)."""
    binary = tally("idp-binary", error=1e-6, expected=3_983_176, test="identical")
    binary.begin(np.ones(3, np.bool_))
    assert binary.repeats().tolist() == [1, 1, 1]  # the first answer shows what one costs
    settled, _ = heard(binary, np.zeros(3))
    assert not settled.any()
    assert binary.repeats().tolist() == [44, 44, 44]
    rows = np.concatenate([np.zeros(44), np.ones(44), np.arange(44) % 2])
    settled, zones = heard(binary, rows)
    assert settled.all()
    assert zones == [BELOW, ABOVE, NOISY]


def test_the_direction_stays_hidden() -> None:
    noisy = tally("idp-noisy", test="psi")
    noisy.begin(np.ones(2, np.bool_))
    assert noisy.repeats().tolist() == [PAPER_PSI_REPEATS] * 2
    rng = np.random.default_rng(5)
    values = np.concatenate([1 + rng.laplace(0, 1e10, 1000), rng.laplace(0, 2e10, 1000)])
    _, zones = heard(noisy, values)
    assert zones == [BELOW, NOISY]


def test_too_many_repeats_are_said_to_be() -> None:
    mean = tally("idp-noisy", test="mean", most_repeats=50)
    mean.begin(np.ones(1, np.bool_))
    heard(mean, np.ones(1))
    with pytest.raises(Undecided, match=r"'mean' would need \d+ answers .* at most 50 are tried"):
        mean.repeats()


def test_an_unrounded_answer_of_a_rounded_mechanism_is_an_error() -> None:
    binary = tally("idp-binary", test="identical", repeats=2)
    binary.begin(np.ones(1, np.bool_))
    with pytest.raises(EvidenceError, match="0 or 1"):
        heard(binary, np.array([0.0, 0.5]))


@pytest.mark.parametrize(
    ("mechanism", "test", "cache"),
    [("idp-binary", "identical", False), ("idp-integer", "identical", True),
     ("idp-noisy", "mean", False), ("idp-noisy", "psi", False),
     pytest.param("idp-binary", "identical", True, marks=pytest.mark.nightly)],
)  # fmt: skip
def test_whole_tables_are_exact(mechanism: str, test: str, cache: bool) -> None:
    data = thinveil.people(8)
    verdict = thinveil.audit(
        data, mechanism=mechanism, test=test, cache=cache, k=1 + cache, strategy="published"
    )
    assert verdict.strategy == "published"
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.to_plain()["noise_test"] == test
    if test != "psi":
        assert verdict.error_probability <= 1e-6


def test_shrinking_shares_are_read_at_their_own_scale() -> None:
    data = thinveil.people(6)
    for mechanism, test in (
        ("idp-noisy", "mean"),
        ("idp-noisy", "psi"),
        ("idp-binary", "identical"),
    ):
        verdict = thinveil.audit(
            data, mechanism=mechanism, test=test, epsilon="1e-3", strategy="published"
        )
        assert verdict.score is not None
        assert verdict.score.exact


def test_fifteen_identical_answers_are_too_few() -> None:
    """Erratum 3: of thousands of noisy questions some agree fifteen times by chance."""
    verdict = thinveil.audit(
        thinveil.people(150),
        mechanism="idp-binary",
        test="identical",
        repeats=8,
        strategy="published",
    )
    assert verdict.run.ending != "complete" or not (verdict.score and verdict.score.exact)
    assert verdict.error_probability > 0.5  # and the result says that it may well be wrong


@pytest.mark.parametrize("strategy", ["adaptive", "thrifty", "posterior"])
@pytest.mark.parametrize(
    ("mechanism", "test"),
    [("idp-binary", "identical"), ("idp-noisy", "mean"), ("idp-noisy", "psi")],
)
def test_strategies_that_weigh_answers_refuse_the_papers_tests(
    strategy: str, mechanism: str, test: str
) -> None:
    with pytest.raises(UsageError, match=r"--test.* way"):
        thinveil.Options(mechanism=mechanism, strategy=strategy, test=test)
    thinveil.Options(mechanism=mechanism, strategy="linear", test=test)
