"""Asking the same in new words: bounded universes, where an empty range must be found first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinveil
from thinveil.attacker.evidence.error_budget import Care, Empty
from thinveil.attacker.evidence.rephrasing import _least, _part, find_empty, varied
from thinveil.auditing.driver import run
from thinveil.auditing.schedule import Fixed
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import Undecided, UsageError
from thinveil.language.claims import claim_named
from thinveil.language.extents import Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.normal import Normal
from thinveil.language.policies import Policies
from thinveil.language.queries import batch_of
from thinveil.language.schema import Categories, Grid, Schema
from worlds import EPSILON, boxes_of, examples, inside, sweep

CACHE = Policies(cache=True)
SMALL = Schema(
    (Grid("x", lower=0, upper=5), Grid("y", lower=0, upper=7), Categories("z", ("a", "b")))
)
RECORDS = [(x, y, z) for x in range(6) for y in range(8) for z in range(2)]


@examples(100)
@given(st.data())
def test_new_words_keep_their_meaning_and_are_never_the_same(data: st.DataObject) -> None:
    claim = claim_named("idp-binary", universe="bounded")
    facts = PublicFacts(9, SMALL, claim, CACHE)
    column = data.draw(st.integers(0, 1))
    top = SMALL[column].upper or 0
    low = data.draw(st.integers(0, top - 1))
    care = Care()
    care.empty = Empty(column, low, data.draw(st.integers(low + 1, top + 1)))
    columns = data.draw(st.sets(st.integers(0, 2), min_size=1))
    box = {}
    for each in columns:
        start = data.draw(st.integers(0, SMALL[each].upper or 0))
        box[each] = (start, data.draw(st.integers(start + 1, (SMALL[each].upper or 0) + 1)))
    size = care.empty.high - care.empty.low
    many = min(size * (size + 1) // 2, 6)
    batch = batch_of([([box], 1)])
    asked = varied(facts, batch, np.array([many]), care)
    allowed = [r for r in RECORDS if not care.empty.low <= r[column] < care.empty.high]
    meant = [inside(record, box) for record in allowed]
    for boxes in boxes_of(asked):
        hits = [[inside(record, each) for each in boxes] for record in allowed]
        assert [any(hit) for hit in hits] == meant
        assert all(sum(hit) <= 1 for hit in hits)
    keys = Normal(Extent.of(SMALL, "bounded"), 9).keys(asked)
    if all(SMALL[each].upper for each in columns):
        assert len({key.tobytes() for key in np.asarray(keys).reshape(many, -1)}) == many


def test_words_run_out_with_a_clear_message() -> None:
    empty = Empty(0, 10, 14)
    start, end = _part(empty, np.arange(10))
    assert len(set(zip(start.tolist(), end.tolist(), strict=True))) == 10
    assert start.min() == 10
    assert end.max() == 14
    with pytest.raises(Undecided, match="10 different wordings"):
        _part(empty, np.array([10]))


def test_without_an_empty_range_a_bounded_universe_has_no_words() -> None:
    facts = PublicFacts(9, SMALL, claim_named("idp-noisy", universe="bounded"), CACHE)
    with pytest.raises(UsageError, match="known to be empty"):
        varied(facts, batch_of([([{0: (1, 3)}], 1)]), np.array([2]), Care())


def test_the_least_over_all_truths_is_the_brute_force_minimum() -> None:
    lead = np.random.default_rng(1).normal(size=(2, 9))
    assert _least(lead) == pytest.approx(
        min(lead[1, :at].sum() + lead[0, at:].sum() for at in range(10))
    )


def table_with(values: np.ndarray, upper: int) -> Dataset:
    other = np.arange(len(values)) % 2
    schema = Schema((Grid("v", lower=0, upper=upper), Categories("w", ("a", "b"))))
    return Dataset(schema, np.column_stack([values, other]))


COMPOSED = [
    ("idp-integer", {}),
    ("idp-noisy", {}),
    ("idp-noisy", {"k": 2}),
    ("idp-binary", {}),
    ("bdp", {"post": "binary"}),
]


@pytest.mark.parametrize(("name", "more"), COMPOSED, ids=str)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), spread=st.sampled_from([30, 400, 3000]))
def test_what_is_found_to_be_empty_is_empty(
    name: str, more: dict[str, Any], seed: int, spread: int
) -> None:
    rng = np.random.default_rng(seed)
    data = table_with(rng.integers(0, spread, 40), 3000)
    claim = claim_named(name, universe="bounded", **more)
    curator = Curator(data, claim, seed=seed, policies=CACHE)
    ended = run(find_empty(curator.facts, Care()), curator, Fixed(EPSILON))
    if ended.ending == "complete":
        column = data.column(ended.found.column)
        assert not ((column >= ended.found.low) & (column < ended.found.high)).any()
    else:
        assert ended.ending == "undecided"
        assert spread == 3000


@pytest.mark.parametrize(("name", "more"), sweep(COMPOSED, 3), ids=str)
def test_a_cache_in_a_bounded_universe_does_not_help(name: str, more: dict[str, Any]) -> None:
    values = np.random.default_rng(3).integers(0, 900, 12)
    data = table_with(np.repeat(values, 2), 4000)
    verdict = thinveil.audit(data, mechanism=name, universe="bounded", cache=True, **more)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.epsilon_claimed == pytest.approx(verdict.run.meter.queries * 1e-10)
    known = {"v": int(values[0]), "w": "a"}
    who = thinveil.audit(
        data,
        mechanism=name,
        universe="bounded",
        cache=True,
        attack="membership",
        known=known,
        **more,
    )
    assert who.result[0]["correct"] is True


def test_a_full_range_leaves_nothing_to_vary() -> None:
    data = table_with(np.arange(0, 300, 2), 299)
    verdict = thinveil.audit(data, mechanism="idp-binary", universe="bounded", cache=True)
    assert verdict.run.ending == "undecided"
    assert "no range was found to be empty" in verdict.sentence()
    assert verdict.score is not None
    assert verdict.score.recovered == 0
