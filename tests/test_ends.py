"""How attacks end when something is off: nothing runs for ever, nothing is overstated."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import thinveil
from thinveil.attacker.engines.published import largest
from thinveil.attacker.terms import BELOW, NOISY, Axis, Rules
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import EvidenceError
from thinveil.language.claims import claim_named
from thinveil.language.policies import Policies
from worlds import Watched, one_column, sweep


@pytest.mark.parametrize("seed", sweep(range(10), 5))
@pytest.mark.parametrize("mechanism", ["dp-laplace", "dp-smooth"])
def test_protected_searches_ask_no_trivial_threshold(mechanism: str, seed: int) -> None:
    """All words are alike there, so a cached answer would be weighed many times over."""
    data = one_column(list(range(20)), lower=0, upper=30)
    claim = claim_named(mechanism, offset=1.0)
    target = Watched(Curator(data, claim, seed=seed, policies=Policies(cache=True)))
    verdict = thinveil.audit(
        target,
        truth=data,
        attack="count",
        known={"x": "25..28"},
        epsilon_per_query=4,
        checks="off",
    )
    assert verdict.run.ending == "complete"
    assert verdict.result["count"] == 0
    assert all(0 <= b < 20 for b in target.thresholds())


class Changing:
    """A curator whose table loses two records for two others after some rounds."""

    def __init__(self, mechanism: str, rounds: int) -> None:
        claim = claim_named(mechanism)
        values = np.arange(30)
        before, after = (one_column(each.tolist(), lower=0, upper=63) for each in (values, values))
        after = Dataset(after.schema, np.where(after.codes < 28, after.codes, after.codes + 20))
        self._curators = [Curator(each, claim) for each in (before, after)]
        self.facts = self._curators[0].facts
        self._left = rounds

    def answer(self, batch: thinveil.QueryBatch) -> thinveil.Answers:
        self._left -= 1
        return self._curators[self._left < 0].answer(batch)


@pytest.mark.parametrize("mechanism", ["idp-integer", "idp-binary", "idp-noisy"])
@pytest.mark.parametrize("rounds", sweep([3, 10, 20], 2))
def test_a_table_that_changes_half_way_ends_the_run(mechanism: str, rounds: int) -> None:
    def watch(meter: object, about: object) -> None:
        assert getattr(meter, "rounds", 0) < 20_000, "it runs for ever"

    verdict = thinveil.audit(Changing(mechanism, rounds), observer=watch, checks="off")
    assert verdict.run.ending in ("complete", "broken")
    if verdict.run.ending == "broken":
        assert "contradict" in verdict.run.reason
        assert not verdict.run.resumable


def test_a_search_for_the_largest_value_ends_on_contradictions() -> None:
    search = largest(Rules(20, 1, bounded=False), Axis(0, 0, 9), -1, 10, 1)
    next(search)
    answers = [BELOW] + [NOISY] * 100  # the first cut is below, then nothing ever is
    with pytest.raises(EvidenceError, match="contradict"):
        deque(map(search.send, answers), maxlen=0)


def test_what_was_settled_before_it_got_undecided_is_said() -> None:
    data = thinveil.people(40)
    names, rows = data.schema.names, data.rows()
    known = [dict(zip(names[:3], row[:3], strict=True)) for row in rows[:12]]
    verdict = thinveil.audit(
        data,
        mechanism="dp-laplace",
        epsilon_per_query=1,
        attack="membership",
        known=known,
        most_repeats=50,
    )
    assert verdict.run.ending == "undecided"
    settled = sum("present" in person for person in verdict.result)
    assert 0 < settled < 12
    assert "Nothing was settled" not in verdict.sentence()
    nothing = thinveil.audit(data, mechanism="dp-laplace", attack="membership", known=known)
    assert "Nothing was settled" in nothing.sentence()
    assert "learned nothing" not in nothing.sentence()


def test_part_of_a_column_is_called_part() -> None:
    curator = Curator(thinveil.people(60), claim_named("idp"), policies=Policies(max_queries=60))
    verdict = thinveil.audit(curator, attack="column", columns=["age"])
    assert verdict.run.ending == "cap"
    assert "part of the column age" in verdict.sentence()
