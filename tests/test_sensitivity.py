"""The claimed sensitivity against enumeration, the three zones, and what one question decides."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from thinveil.attacker.evidence.likelihood import zones
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Rules
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError
from thinveil.language.claims import KLocal, idp, unprotected
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import batch_of
from thinveil.language.schema import INFINITE, LOWEST, MISSING, Attribute, Categories, Grid, Schema
from worlds import domain_of, examples, inside, one_column, ranges

Record = tuple[int, ...]
Table = tuple[Record, ...]
Box = dict[int, tuple[int, int]]


def within(table: Table, domain: list[Record], k: int) -> set[Table]:
    """Return every data set, as a multiset, that differs in at most k records."""
    reached = {tuple(sorted(table))}
    edge = reached
    for _ in range(k):
        edge = {
            tuple(sorted((*each[:place], record, *each[place + 1 :])))
            for each in edge
            for place in range(len(each))
            for record in domain
        } - reached
        reached = reached | edge
    return reached


def satisfying(table: Table, boxes: list[Box]) -> int:
    return sum(any(inside(record, box) for box in boxes) for record in table)


def disjoint(boxes: list[Box]) -> list[Box]:
    """Keep the boxes that overlap none of those before."""
    kept: list[Box] = []
    for box in boxes:
        whole = (MISSING, INFINITE)
        if not any(
            all(
                max(box.get(c, whole)[0], other.get(c, whole)[0])
                < min(box.get(c, whole)[1], other.get(c, whole)[1])
                for c in (0, 1)
            )
            for other in kept
        ):
            kept.append(box)
    return kept


SPARE = range(-2, 3)
"""Stands in for all whole numbers: range ends lie from -1 to 2, so -2 and 2 are spare."""
END = st.one_of(st.integers(-1, 2), st.sampled_from([MISSING, LOWEST, INFINITE]))
BOUNDED_END = st.one_of(st.integers(-2, 4), st.sampled_from([MISSING, LOWEST, INFINITE]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Dataset, int, str, list[Record], list[tuple[list[Box], int]]]:
    k = draw(st.integers(1, 3))
    universe = draw(st.sampled_from(["unbounded", "bounded"]))
    most = {1: 40, 2: 9, 3: 6}[k]  # enumeration grows fast with k
    schema: list[Attribute] = []
    for place in range(draw(st.integers(1, 2))):
        missing = draw(st.booleans())
        if universe == "unbounded":
            schema.append(Grid(f"a{place}", missing=missing))
        elif draw(st.booleans()):
            size = draw(st.integers(0 if missing else 1, 3))
            schema.append(Categories(f"a{place}", tuple("abc"[:size]), missing))
        else:
            lower = draw(st.integers(-1, 1))
            upper = lower + draw(st.integers(0, 2))
            schema.append(Grid(f"a{place}", lower=lower, upper=upper, missing=missing))
    domain = list(product(*(domain_of(each, SPARE) for each in schema)))
    assume(len(domain) <= most)
    n = draw(st.integers(2 * k, 2 * k + 2))
    rows = draw(st.lists(st.sampled_from(domain), min_size=n, max_size=n))
    end = BOUNDED_END if universe == "bounded" else END
    box = st.dictionaries(st.integers(0, len(schema) - 1), st.tuples(end, end))
    questions = [
        (disjoint(draw(st.lists(box, min_size=1, max_size=4))), draw(st.integers(-2, n + 1)))
        for _ in range(draw(st.integers(1, 6)))
    ]
    return Dataset(Schema(tuple(schema)), np.array(rows)), k, universe, domain, questions


@examples(250)
@given(cases())
def test_answers_are_noisy_exactly_where_k_changed_records_can_change_them(case) -> None:
    dataset, k, universe, domain, questions = case
    table = tuple(tuple(row) for row in dataset.codes.tolist())
    near = within(table, domain, k)
    answers = Curator(dataset, idp(k, universe)).answer(batch_of(questions).stamped(("r", 1), 1.0))
    for (boxes, b), value in zip(questions, answers.values.tolist(), strict=True):
        bit = satisfying(table, boxes) > b
        sensitive = any((satisfying(each, boxes) > b) != bit for each in near)
        assert (value not in (0.0, 1.0)) == sensitive
        if not sensitive:
            assert value == bit


@examples(150)
@given(cases())
def test_constant_predicates_are_those_that_no_record_can_change(case) -> None:
    dataset, _, universe, domain, questions = case
    batch = batch_of(questions)
    found = Constants(Extent.of(dataset.schema, universe)).among(batch).tolist()
    for (boxes, _), constant in zip(questions, found, strict=True):
        truths = {any(inside(record, box) for box in boxes) for record in domain}
        assert constant == (len(truths) == 1)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_formula_equals_moving_the_count_by_up_to_k(k: int) -> None:
    for n in range(2 * k, 2 * k + 4):
        for c, b in product(range(n + 1), range(n)):
            reach = range(max(0, c - k), min(n, c + k) + 1)
            sensitive = len({other > b for other in reach}) == 2
            assert KLocal(k).at(np.array([c]), np.array([b]), n, 1.0).tolist() == [float(sensitive)]


def test_a_bounded_universe_answers_exactly_what_an_unbounded_one_blurs() -> None:
    data = one_column([0, 0, 1, 3], lower=0, upper=3)
    batch = ranges([0] * 4, [-1, 0, 4, 0], [0, 4, 9, 2], [0, 3, 0, 2]).stamped(("r", 1), 1.0)
    blurred = Curator(data, idp()).answer(batch).values
    exact = Curator(data, idp(universe="bounded")).answer(batch).values
    assert zones(idp(), Curator(data, idp()).answer(batch)) == [NOISY] * 4
    assert exact[:3].tolist() == [0.0, 1.0, 0.0]
    assert exact[3] == blurred[3]  # the same noise, whatever stands beside it


def test_a_bounded_universe_needs_bounds() -> None:
    with pytest.raises(UsageError, match="'x'"):
        Curator(one_column([1, 2]), idp(universe="bounded"))


@pytest.mark.parametrize("k", [0, -1])
def test_a_group_has_at_least_one_member(k: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        KLocal(k)


# ---- Lemma countObservation and lemma boundary


def claim_of(k: int):
    return idp(k) if k else unprotected()


def observed(n: int, c: int, k: int, thresholds: range) -> list[int]:
    """Return the zones a real curator shows where c of n records satisfy the predicate."""
    target = Curator(one_column([1] * c + [0] * (n - c)), claim_of(k))
    many = len(thresholds)
    batch = ranges([0] * many, [1] * many, [2] * many, list(thresholds))
    return zones(target.facts.claim, target.answer(batch.stamped(("r", 1), 1e-10)))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
def test_three_zones_and_their_boundaries_give_the_count(k: int) -> None:
    for n in range(max(1, 2 * k), 2 * k + 5):
        for c in range(n + 1):
            seen = observed(n, c, k, range(-2, n + 2))
            assert seen[:2] == [ABOVE, ABOVE]
            assert seen[-2:] == [BELOW, BELOW]
            seen = seen[2:-2]
            assert seen == [
                BELOW if c <= b - k else ABOVE if c > b + k else NOISY for b in range(n)
            ]
            uppers = [b for b in range(n) if seen[b] == BELOW]
            lowers = [b for b in range(n) if seen[b] == ABOVE]
            if c + k < n:
                assert min(uppers) - k == c
            else:
                assert not uppers
            if c > k:
                assert max(lowers) + k + 1 == c
            else:
                assert not lowers
            # a boundary exists for n > 2k; for n = 2k it is missing only at c = k
            assert bool(uppers or lowers) == (n > 2 * k or c != k)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_noisy_zone_holds_2k_counts(k: int) -> None:
    n, b = 4 * k + 2, 2 * k
    noisy = [c for c in range(n + 1) if observed(n, c, k, range(b, b + 1)) == [NOISY]]
    assert noisy == list(range(b - k + 1, b + k + 1))
    assert len(noisy) == 2 * k


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
def test_one_question_decides_every_count(k: int) -> None:
    for n in range(max(1, 2 * k), 2 * k + 5):
        rules = Rules(n, k, bounded=False)
        for c in range(n + 1):
            for t in range(n):
                b = rules.threshold(t)
                assert 0 <= b < n
                (zone,) = observed(n, c, k, range(b, b + 1))
                assert rules.exceeds(t, zone) == (c > t)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_fewer_than_2k_records_are_refused(k: int) -> None:
    schema = Schema((Grid("x"),))
    with pytest.raises(UsageError, match=f"2k = {2 * k}"):
        PublicFacts(2 * k - 1, schema, idp(k))
    assert PublicFacts(2 * k, schema, idp(k)).records == 2 * k


def test_below_2k_records_different_tables_look_alike() -> None:
    k, n = 2, 3
    noisy = {
        c: tuple(
            KLocal(k).at(np.array([c]), np.array([b]), n, 1.0).item() or float(c > b)
            for b in range(n)
        )
        for c in range(n + 1)
    }
    assert noisy[1] == noisy[2]


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(UsageError, match="empty"):
        PublicFacts(0, Schema((Grid("x"),)), unprotected())
