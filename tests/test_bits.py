"""At a large loss rounding leaves the true bit: attacks read that instead of the noise."""

from __future__ import annotations

import numpy as np
import pytest

import thinveil
from thinveil.attacker.evidence.true_bit import Seen, by_bits
from thinveil.language.claims import KLocal, claim_named
from thinveil.language.facts import PublicFacts
from worlds import sweep

DATA = thinveil.people(20)


def test_what_is_seen_is_the_bit_with_its_real_noise() -> None:
    facts = by_bits(PublicFacts(40, DATA.schema, claim_named("idp-binary", 2)))
    claim = facts.claim
    assert claim.sensitivity == Seen(KLocal(2))
    assert claim.k is None
    assert claim.counts
    assert not claim.hides_direction
    count, b = np.arange(10), np.full(10, 4)
    real = KLocal(2).at(count, b, 40, 1.0)
    assert claim.sensitivity.at(count, b, 40, 1.0).tolist() == real.tolist()
    assert claim.sensitivity.breakpoints(b, 40).tolist() == [[4]] * 10


@pytest.mark.parametrize("epsilon", sweep(["100", "20", "2"], 3))
@pytest.mark.parametrize("mechanism", ["idp-binary", "idp-integer", "idp-noisy"])
def test_a_large_loss_does_not_protect(mechanism: str, epsilon: str) -> None:
    whole = thinveil.audit(DATA, mechanism=mechanism, epsilon_per_query=epsilon, k=2)
    assert whole.run.ending == "complete"
    assert whole.score is not None
    assert whole.score.exact
    assert whole.epsilon_claimed == pytest.approx(whole.run.meter.queries * float(epsilon))
    row = dict(zip(DATA.schema.names, DATA.rows()[0], strict=True))
    who = thinveil.audit(
        DATA,
        mechanism=mechanism,
        epsilon_per_query=epsilon,
        attack="membership",
        known={"age": row["age"], "postcode": row["postcode"]},
    )
    assert who.result[0]["correct"] is True


@pytest.mark.parametrize("post", sweep(["integer", "binary"], 2))
def test_nor_does_it_protect_which_records_exist(post: str) -> None:
    for epsilon in ("1e-10", "20"):
        verdict = thinveil.audit(DATA, mechanism="bdp", post=post, epsilon_per_query=epsilon)
        assert verdict.score is not None
        assert verdict.score.exact


def test_what_bits_do_not_tell_either_stays_undecided() -> None:
    verdict = thinveil.audit(DATA, mechanism="idp-noisy", post="binary")
    assert verdict.run.ending == "undecided"
    assert "no usable difference" in verdict.sentence().lower()
