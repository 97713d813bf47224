"""Does this claim make sense, and does it keep what it promises?"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from thinveil.errors import ThinveilError, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.mechanisms.claim import Claim
from thinveil.language.plugins import check_claim
from thinveil.language.schema import Grid, Schema
from thinveil.language.shapes import holds
from thinveil.language.wire.facts import facts_from_plain, facts_to_plain
from thinveil.testing.laws import check_law, ensure, masses


def check_mechanism(claim: Claim) -> None:
    """Check a claim: breakpoints, shape, noise law, wire, and what a control promises.

    Whether breakpoints are true, and whether noise is as wide as differential privacy needs, is
    looked up at every count and threshold of small tables. A claim that leaks promises nothing
    that could be looked up so; its sensitivity must at least differ where it says.
    """
    try:
        check_claim(claim)
    except ThinveilError as error:
        raise AssertionError(f"{claim.name} {error}") from None
    for records in (2, 5, 12):
        zones = holds(claim.sensitivity, claim.shape, records)
        ensure(zones, f"{claim.name}: of {records} records, noise is elsewhere than its shape says")
    if claim.noise is not None:
        check_law(claim.noise)
    _check_wire(claim)
    if claim.control or claim.textbook:  # in numbers without rounding, both promise the same
        for records, loss in product((2, 5), (0.1, 1.0)):
            _check_promise(claim, records, loss)


def _check_wire(claim: Claim) -> None:
    facts = PublicFacts(10_000, Schema((Grid("x", lower=0, upper=9),)), claim)
    try:
        plain = facts_to_plain(facts)
    except UsageError:
        return  # it has no name, so it stays in this process
    ensure(facts_from_plain(plain).claim == claim, f"{claim.name} changes on the wire")


def _check_promise(claim: Claim, records: int, loss: float) -> None:
    """Compare the laws of neighbouring counts: P(A) <= exp(epsilon) P'(A) + delta, for all A."""
    law = claim.noise
    assert law is not None
    count, exact = np.arange(records + 1), float(law.deltas(1, Fraction(loss)))
    for threshold in range(records):
        b = np.full_like(count, threshold)
        bit, scale = claim.law(count, b, np.zeros(len(count), np.bool_), records, loss)
        ensure((scale > 0).all(), f"{claim.name}: some count has an answer without noise")
        wide = (scale / loss).tolist()
        most = float(np.abs(law.quantile(np.array([1e-5]), max(wide))[0])) + 2
        edges = np.linspace(-most, most, 4001) if claim.post == "none" else np.arange(-200.0, 201.0)
        chance = [masses(law, edges, bool(bit[c]), wide[c], claim.post) for c in count.tolist()]
        for p, q in [*pairwise(chance), *pairwise(chance[::-1])]:
            worse = float(np.maximum(p - np.exp(loss) * q, 0).sum())
            ensure(
                worse <= exact + 1e-5,
                f"{claim.name} says it is a control, but neighbouring counts differ by more "
                f"than epsilon {loss:g}: of {records} records, at the threshold {threshold}",
            )
