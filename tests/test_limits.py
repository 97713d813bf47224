"""Limits and shares: what a single decision may err, what an answer tells, how few there are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.evidence.error_budget import Care
from thinveil.auditing.attacks import care_for
from thinveil.auditing.options import Options
from thinveil.language.claims import claim_named
from thinveil.language.facts import PublicFacts
from worlds import examples

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
    known = {} if attack == "dataset" else {"people": (WHOLE[0],)}
    options = Options(attack=attack, mechanism=mechanism, **known)
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
