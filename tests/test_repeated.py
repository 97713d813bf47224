"""Attacks that repeat questions: sure enough, never surer than they say, and exact."""

from __future__ import annotations

import math
from collections import Counter as Multiset
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from thinveil.attacker.engines import linear, published
from thinveil.attacker.engines.coroutines import exceeds, reaches
from thinveil.attacker.evidence import error_budget
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import IMPOSSIBLE, Laws, loglik, row_loglik
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.evidence.sequential import Tally
from thinveil.attacker.strategies import STRATEGIES
from thinveil.attacker.terms import ABOVE, BELOW, NOISY, Axis, Rules, Search
from thinveil.auditing.driver import run
from thinveil.auditing.schedule import Equal, Fixed, Schedule, Total
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import EvidenceError, Undecided, UsageError
from thinveil.language.claims import Bootstrap, Claim, claim_named, idp
from thinveil.language.extents import Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.normal import Normal
from thinveil.language.policies import Policies
from thinveil.language.queries import Answers, Cells, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING, Categories, Grid, Schema
from worlds import (
    Draw,
    Watched,
    World,
    answered,
    attack_with,
    column_truth,
    drawn,
    examples,
    inside,
    leaking_claims,
    one_column,
    ranges,
    rows_of,
    shell,
    sure,
    sweep,
    table_truth,
    values_of,
    worlds,
)

KEY = ("run", 1)
COUNTING = leaking_claims(bases=("idp",))
NAMED = {
    "integer": claim_named("idp-integer"),
    "binary": claim_named("idp-binary"),
    "noisy": claim_named("idp-noisy"),
    "noisy-half": claim_named("idp-noisy", offset=0.5),
    "noisy-integer": claim_named("idp-noisy", post="integer"),
}
every_counting = pytest.mark.parametrize("claim", NAMED.values(), ids=NAMED)
LAWS = {
    **NAMED,
    "idp": idp(),
    "noisy-three": claim_named("idp-noisy", offset=3.0),
    "noisy-binary": claim_named("idp-noisy", post="binary"),
    "bdp-binary": claim_named("bdp", post="binary"),
    "bdp-integer": claim_named("bdp", post="integer"),
    "bdp-noisy": claim_named("bdp", offset=1.0),
    "dp-laplace": claim_named("dp-laplace"),
    "dp-laplace-integer": claim_named("dp-laplace", post="integer"),
    "dp-laplace-binary": claim_named("dp-laplace", post="binary"),
    "dp-smooth": claim_named("dp-smooth"),
    "dp-smooth-integer": claim_named("dp-smooth", post="integer"),
    "dp-smooth-binary": claim_named("dp-smooth", post="binary"),
}


# ---- how an error is shared out


@examples(200)
@given(
    st.floats(1e-12, 0.99),
    st.integers(1, 10**6),
    st.lists(st.integers(0, 5000), min_size=1, max_size=30),
)
def test_shares_never_sum_above_the_error(error: float, expected: int, sizes: list[int]) -> None:
    care = Care(error, expected=expected)
    spent = 0.0
    for size in sizes:
        spent += size * math.exp(-care.nats(size))
        assert spent <= error * (1 + 1e-9)
        assert spent <= care.risk * (1 + 1e-9) <= error * (1 + 1e-9)
    assert care.decisions == sum(sizes)


def test_shares_of_single_decisions_add_up_to_the_risk() -> None:
    care = Care(0.01, expected=50)
    spent = sum(math.exp(-care.nats(1)) for _ in range(10_000))
    assert spent == pytest.approx(care.risk)
    assert care.risk == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize("expected", [1, 2, 1000])
def test_nothing_to_decide_is_no_decision(expected: int) -> None:
    care = Care(expected=expected)
    assert math.isfinite(care.nats(0))
    assert care.risk == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"error": 0.0},
        {"error": 1.0},
        {"error": math.nan},
        {"most_repeats": 0},
        {"most_repeats": 2.5},
        {"expected": 0},
    ],
    ids=str,
)
def test_care_that_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Care(**wrong)


def test_words_are_used_once() -> None:
    care = Care()
    assert [care.new_words(3), care.new_words(1), care.new_words(5)] == [0, 3, 4]


# ---- the sequential test


def settle(
    claim: Claim,
    count: int,
    b: int,
    epsilon: float,
    care: Care,
    seed: int = 0,
    curator: Curator | None = None,
) -> Any:
    """Ask one question of a real curator until it is settled; return zone and answers."""
    curator = curator or Curator(one_column(list(range(12))), claim, seed=seed)
    tally = Tally(curator.facts, care)
    tally.begin(np.ones(1, np.bool_))
    asked = 0
    while True:
        repeats = tally.repeats()
        batch = ranges([0], [-1], [count], [b], repeats=repeats).stamped(KEY, epsilon)
        asked += int(repeats[0])
        settled, zones = tally.add(batch, curator.answer(batch))
        if settled[0]:
            assert drawn(curator) == asked <= care.most_repeats
            return zones[0], asked


def zone_of(claim: Claim, count: int, b: int, n: int = 12) -> int:
    """Return the zone that a count is in, as far as the mechanism shows it."""
    if not claim.leaks:
        return ABOVE if count > b else BELOW
    if claim.law(np.array([count]), np.array([b]), np.zeros(1, np.bool_), n, 1.0)[1] > claim.offset:
        return NOISY
    if count > b and isinstance(claim.sensitivity, Bootstrap) and claim.post != "none" and n > 1:
        return NOISY if not claim.hides_direction else BELOW  # some or all: either way, one
    return BELOW if count <= b or claim.hides_direction else ABOVE


@pytest.mark.parametrize("epsilon", sweep([1e-10, 0.5, 3.0], 3))
@pytest.mark.parametrize("claim", sweep(LAWS.values(), 2), ids=LAWS)
def test_every_law_is_told_apart(
    claim: Claim, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what would have been seen is not asked here, and takes long for so many null results
    monkeypatch.setattr(error_budget, "power", lambda *_: "")
    hopeless = epsilon == 1e-10 and (not claim.leaks or (claim.offset and claim.post == "binary"))
    care = Care(most_repeats=2_000 if hopeless else 30_000)
    told = 0
    for b in (0, 4, 11):
        for count in range(13):
            try:
                zone, _ = settle(claim, count, b, epsilon, care)
            except Undecided:
                continue
            assert zone == zone_of(claim, count, b)
            told += 1
    assert told == (0 if hopeless else 39) or (epsilon == 0.5 and claim.offset)


@pytest.mark.parametrize("error", [0.05, 0.2])
@pytest.mark.parametrize("name", ["binary", "noisy", "noisy-half", "bdp-binary", "dp-laplace"])
def test_the_error_of_one_test_is_no_larger_than_allowed(name: str, error: float) -> None:
    claim, many = LAWS[name], 2000
    epsilon = 1.0 if name == "dp-laplace" else 1e-10
    for count, b in ((2, 4), (4, 4), (5, 4), (9, 4)):
        curator = Curator(one_column(list(range(12))), claim, seed=count)
        tally = Tally(curator.facts, Care(most_repeats=10**6))
        tally.begin(np.ones(many, np.bool_))
        tally._nats[:] = math.log((len(tally._zone) - 1) / error)  # each may err so often
        wrong = left = many
        while left:
            repeats = tally.repeats()
            batch = ranges([0] * left, [-1] * left, [count] * left, [b] * left, repeats=repeats)
            answers = curator.answer(batch.stamped(KEY, epsilon))
            settled, zones = tally.add(batch, answers)
            wrong -= int((np.array(zones)[settled] == zone_of(claim, count, b)).sum())
            tally.keep(~settled)
            left -= int(settled.sum())
        assert wrong <= many * error + 4 * math.sqrt(many * error)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_question_is_given_up_after_so_many_answers(most: int) -> None:
    claim, care = claim_named("dp-laplace"), Care(most_repeats=most)
    curator = Curator(one_column(list(range(12))), claim)
    with pytest.raises(Undecided, match=f"{most} answers? to one question"):
        settle(claim, 5, 4, 1e-10, care, curator=curator)
    assert drawn(curator) == most


@pytest.mark.parametrize("claim", LAWS.values(), ids=LAWS)
def test_unequal_shares_are_weighed_by_what_they_cost(claim: Claim) -> None:
    """Each question has its own epsilon: the same as asking them one by one."""
    facts = PublicFacts(12, Schema((Grid("x"),)), claim)
    threshold = np.array([4, 4, 7])
    repeats = np.array([3, 1, 2])
    values = np.array([0.0, 1, 1, 0, 1, 1])
    epsilon = np.array([0.1, 2.0, 7.0])
    counts = Laws.of(claim, 12).counts(claim, threshold, 12)
    together = row_loglik(claim, counts, threshold, 12, Answers(values, repeats, epsilon))
    starts = [0, 3, 4]
    for place, start in enumerate(starts):
        some = Answers(
            values[start : start + repeats[place]], repeats[[place]], float(epsilon[place])
        )
        alone = row_loglik(claim, counts[[place]], threshold[[place]], facts.records, some)
        assert np.allclose(alone[0], together[place])


@examples(150)
@given(st.sampled_from(sorted(LAWS)), st.sampled_from([1e-10, 0.3, 4.0]), st.integers(0, 99))
def test_fast_sums_equal_the_sum_of_single_answers(name: str, epsilon: float, seed: int) -> None:
    claim, rng = LAWS[name], np.random.default_rng(seed)
    threshold = rng.integers(0, 12, 5)
    repeats = rng.integers(1, 6, 5)
    values = rng.laplace(0.5, 1 / epsilon, int(repeats.sum()))
    if claim.post == "integer":
        values = np.rint(values)
    elif claim.post == "binary":
        values = (values > 0.5).astype(float)
    values[rng.random(len(values)) < 0.3] = 1.0
    counts = Laws.of(claim, 12).counts(claim, threshold, 12)
    fast = row_loglik(claim, counts, threshold, 12, Answers(values, repeats, epsilon))
    at = 0
    for row, many in enumerate(repeats.tolist()):
        for place, count in enumerate(counts[row]):
            bit, scale = claim.law(
                np.array([count]), threshold[[row]], np.zeros(1, np.bool_), 12, epsilon
            )
            rate = epsilon / scale if scale[0] else np.ones(1)
            slow = sum(
                max(float(loglik(claim, values[[i]], bit, scale, rate)[0]), IMPOSSIBLE)
                for i in range(at, at + many)
            )
            assert fast[row, place] == pytest.approx(slow, rel=1e-9, abs=1e-9)
        at += many


@pytest.mark.parametrize("claim", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_the_laws_are_all_that_can_happen(claim: Claim, n: int) -> None:
    if claim.k and n < 2 * claim.k:
        return
    laws = Laws.of(claim, n)
    for b in range(n):
        counts = laws.counts(claim, np.array([b]), n)[0]
        known = {
            law(claim, int(count), b, n): zone
            for count, zone in zip(counts, laws.zones, strict=True)
        }
        for count in range(n + 1):
            assert known[law(claim, count, b, n)] == zone_of(claim, count, b, n)


def law(claim: Claim, count: int, b: int, n: int) -> tuple[bool, float]:
    """Return the law of a count; smooth noise only gets narrower with distance."""
    bit, scale = claim.law(np.array([count]), np.array([b]), np.zeros(1, np.bool_), n, 1e-9)
    return bool(bit[0]), round(float(scale[0]), 3)


def test_answers_that_are_not_rounded_are_found_out() -> None:
    threshold, counts = np.array([4]), np.array([[3, 4]])
    for name, value in (("binary", 2.0), ("binary", 0.5), ("integer", 0.5)):
        with pytest.raises(EvidenceError, match="answered something else"):
            row_loglik(NAMED[name], counts, threshold, 12, Answers(np.array([value]), 1, 0.1))


# ---- searches that need no direction


def truthful(search: Search[Any], count_in: Any, rules: Rules, most: int = 10_000) -> Any:
    """Settle a search by true zones, as an always-noisy mechanism shows them."""
    left = iter(range(most - 1))

    def zone_at(low: int, high: int, b: int) -> int:
        assert 0 <= b < rules.n
        assert next(left, None) is not None, "it asks for ever"
        c = count_in(low, high)
        if b - rules.k < c <= b + rules.k:
            return NOISY
        return BELOW if c <= b or rules.hidden else ABOVE

    return answered(search, zone_at)


def always(count: int, low: int, high: int) -> int:
    """Say that every range holds so many records."""
    return count


SHAPES = [(n, k) for k in (1, 2, 3, 4) for n in range(2 * k, 2 * k + 8)]


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_hidden_counts(n: int, k: int) -> None:
    rules = Rules(n, k, bounded=False, hidden=True)
    for most in range(n + 1):
        for c in range(most + 1):
            found, asked = truthful(
                published.count_hidden(rules, 0, 1, most), partial(always, c), rules
            )
            assert found == c
            assert asked <= c // (2 * k) + 2 * math.ceil(math.log2(2 * k)) + 3
            if most == n:
                assert truthful(linear.count(rules, 0, 1, most), partial(always, c), rules)[0] == c


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_exceeds_with_and_without_direction(n: int, k: int, blind: bool) -> None:
    rules = Rules(n, k, bounded=False, hidden=blind)
    for most in [*range(n + 1), None]:
        for c in range((n if most is None else most) + 1):
            for t in range(n):
                found, _ = truthful(exceeds(rules, 0, 1, t, most), partial(always, c), rules)
                assert found == (c > t)


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_reaches(n: int, k: int) -> None:
    rules = Rules(n, k, bounded=False, hidden=True)
    for t in range(1, n + 1):
        for fewest in range(n + 1):
            for c in range(fewest, min(t + 2 * k, n + 1)):
                found, _ = truthful(reaches(rules, 0, 1, t, fewest), partial(always, c), rules)
                assert found == (c >= t)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(("n", "k"), [(n, k) for n, k in SHAPES if n <= 8])
def test_the_largest_value(n: int, k: int, blind: bool, bounded: bool) -> None:
    """Every group size and every place of its values, on a small axis."""
    rules, axis = Rules(n, k, bounded, blind), Axis(0, 0, 4)
    start = 0 if bounded else -1
    rng = np.random.default_rng(n * 10 + k)
    for s in range(1, n + 1):
        for _ in range(12):
            values = rng.integers(0, 5, s)
            values = np.minimum(values, rng.integers(0, 5))

            def count_in(low: int, high: int, values: Any = values) -> int:
                assert not bounded or 0 < high <= 4
                return int(((values >= low) & (values < high)).sum())

            search = published.largest(rules, axis, start, 5, s)
            found, _ = truthful(search, count_in, rules)
            assert found == values.max()


# ---- words that a cache has not heard


FAR = ((MISSING, LOWEST), (LOWEST, INFINITE), (2**61, INFINITE), (LIMIT - 1, LIMIT), (1 - LIMIT, 0))


def questions(draw: Draw, columns: int = 2) -> QueryBatch:
    """Draw questions on ranges of a cell, or on cells as they are."""
    many = draw(st.integers(1, 4))
    low = draw(st.lists(st.integers(-4, 4), min_size=many, max_size=many))
    high = [each + draw(st.integers(0, 5)) for each in low]
    if draw(st.booleans()):
        low[0], high[0] = draw(st.sampled_from(FAR))
    whole = draw(st.booleans())
    cells = Cells(
        (0,), np.array([[-2], [1]]), np.array([[3], [draw(st.sampled_from([4, INFINITE]))]])
    )
    return QueryBatch(
        cells,
        np.array([draw(st.integers(0, 1)) for _ in range(many)]),
        np.full(many, -1 if whole else 1),
        np.array(low),
        np.array(high),
        np.array([draw(st.integers(0, 5)) for _ in range(many)]),
    )


@examples(60)
@given(st.data())
def test_varied_questions_mean_the_same_in_ever_new_words(data: st.DataObject) -> None:
    schema = Schema((Grid("x"), Grid("y", missing=True)))
    facts = PublicFacts(9, schema, claim_named("idp-binary"), Policies(cache=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    rows = rng.choice([-3, -1, 0, 1, 2, 5, LIMIT - 1, 1 - LIMIT], (9, 2))
    rows[0, 1] = MISSING
    counter = Curator(Dataset(schema, rows), idp())._counter
    normal, care = Normal(Extent.of(schema, "unbounded"), 9), Care()
    keys = []
    for _ in range(2):
        batch = questions(data.draw)
        repeats = np.array([data.draw(st.integers(1, 3)) for _ in range(batch.questions)])
        asked = varied(facts, batch, repeats, care)
        row = np.repeat(np.arange(batch.questions), repeats)
        assert asked.questions == asked.queries == repeats.sum()
        assert asked.threshold.tolist() == batch.threshold[row].tolist()
        assert counter.count(asked).tolist() == counter.count(batch)[row].tolist()
        Curator(Dataset(schema, rows), idp()).answer(asked.stamped(KEY, 1.0))  # boxes are disjoint
        keys += [tuple(each) for each in normal.keys(asked).T.tolist()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("strategy", ["published", "posterior"])
@pytest.mark.parametrize("name", ["integer", "binary", "noisy"])
@pytest.mark.parametrize(
    "schedule", sweep([Total(Fraction(1)), Fixed(Fraction(1, 10**6))], 2), ids=["total", "fixed"]
)
def test_a_cache_is_talked_round(name: str, strategy: str, schedule: Schedule) -> None:
    """Also where shares shrink: an answer drawn earlier must never be weighed as a later one."""
    claim = NAMED[name]
    data = Dataset(
        Schema((Grid("x", lower=0, upper=3, missing=True), Grid("y", lower=0, upper=3))),
        np.array([[1, 3], [1, 2], [3, 2], [3, 2], [MISSING, 2]]),
    )

    def target() -> Curator:
        return Curator(data, claim, policies=Policies(cache=True))

    facts, chosen = target().facts, STRATEGIES[strategy]
    curator = target()
    ended = run(shell("dataset", facts, chosen), curator, schedule)
    assert ended.ending == "complete"
    found = ended.found
    rebuilt = Multiset(
        {tuple(row): int(c) for row, c in zip(found.codes.tolist(), found.counts, strict=True)}
    )
    assert rebuilt == table_truth(data, found.columns, found.widths)
    assert ended.meter.queries == len(sure(curator._cache))
    people = [{0: 3, 1: 2}, {0: 3, 1: 3}, {0: MISSING, 1: 2}, {0: 3, 1: 2}]
    ended = run(shell("membership", facts, chosen, people=people), target(), schedule)
    assert [each.present for each in ended.found.people] == [True, False, True, True]
    ended = run(
        shell("attribute", facts, chosen, people=[{0: 1}, {0: 0}], columns=[1]), target(), schedule
    )
    assert [each.matches for each in ended.found.people] == [2, 0]


@pytest.mark.parametrize("width", [1, 2**59])
def test_a_cache_and_codes_at_the_ends_of_the_grid(width: int) -> None:
    data = one_column([LIMIT - 1, 1 - LIMIT, 0, 0])
    curator = Curator(data, NAMED["binary"], policies=Policies(cache=True))
    attack = shell("column", curator.facts, STRATEGIES["posterior"], columns=[0], widths={0: width})
    found = attack_with(attack, curator).found
    assert found.columns[0].values == column_truth(rows_of(data), 0, width)


@every_counting
def test_a_cache_in_a_bounded_universe_is_refused(claim: Claim) -> None:
    bounded = replace(claim, universe="bounded")
    curator = Curator(
        one_column([1, 1, 2, 3], lower=0, upper=3), bounded, policies=Policies(cache=True)
    )
    for strategy in STRATEGIES.values():
        with pytest.raises(UsageError, match="bounded universe"):
            attack_with(shell("dataset", curator.facts, strategy), curator)
    assert curator.ledger.spent == 0


# ---- attacks on small worlds

TINY: dict[str, Any] = {"columns": 2, "domain": 4, "records": 8, "large": False, "claim": COUNTING}


@st.composite
def cases(draw: st.DrawFn) -> tuple[World, Any]:
    """A world with a mechanism that takes repeated questions, and a strategy."""
    name = draw(st.sampled_from(["published", "published", "linear"]))
    limits = TINY if name == "linear" else {"columns": 3, "records": 9, "claim": COUNTING}
    return draw(worlds(**limits)), STRATEGIES[name]


def attacked(attack: Any, world: World) -> Any:
    """Run an attack and hold what it asked against what it must never ask."""
    target = Watched(world.curator())
    ended = attack_with(attack, target)
    if world.claim.universe == "bounded":
        assert target.constant() == []
    assert all(0 <= b < world.dataset.records for b in target.thresholds())
    assert ended.meter.risk <= 1e-6
    return ended.found


@examples(90)
@given(cases(), st.data())
def test_a_table_is_reconstructed(case: Any, data: st.DataObject) -> None:
    world, strategy = case
    widths = {
        column: data.draw(st.sampled_from([2, 3, 1000]))
        for column, attribute in enumerate(world.dataset.schema)
        if attribute.kind != "category" and data.draw(st.integers(0, 3)) == 0
    }
    found = attacked(
        shell("dataset", world.facts, strategy, order=(), widths=widths, force=True), world
    )
    assert (found.known == len(world.dataset.schema)).all()
    rebuilt = Multiset(
        {tuple(row): int(c) for row, c in zip(found.codes.tolist(), found.counts, strict=True)}
    )
    assert len(rebuilt) == len(found.codes)
    assert rebuilt == table_truth(world.dataset, found.columns, found.widths)


@examples(60)
@given(cases(), st.data())
def test_counts_and_columns(case: Any, data: st.DataObject) -> None:
    world, strategy = case
    rows = rows_of(world.dataset)
    column = data.draw(st.integers(0, len(world.dataset.schema) - 1))
    low = data.draw(st.sampled_from([MISSING, LOWEST, -2, 0, 1]))
    box = {column: (low, data.draw(st.sampled_from([0, 1, 3, INFINITE])))}
    found = attacked(shell("count", world.facts, strategy, box=box, force=True), world)
    assert found.count == sum(inside(row, box) for row in rows)
    found = attacked(shell("column", world.facts, strategy, columns=[column], force=True), world)
    assert found.columns[0].values == column_truth(rows, column)


@examples(50)
@given(cases(), st.data())
def test_people(case: Any, data: st.DataObject) -> None:
    world, strategy = case
    schema, rows = world.dataset.schema, rows_of(world.dataset)
    known = data.draw(st.lists(st.sampled_from(range(len(schema))), unique=True, min_size=1))
    people = []
    for _ in range(data.draw(st.integers(1, 3))):
        who, stranger = data.draw(st.sampled_from(rows)), data.draw(st.booleans())
        people.append(
            {
                each: data.draw(values_of(schema[each], large=False)) if stranger else who[each]
                for each in known
            }
        )
    fits = [[row for row in rows if p.items() <= dict(enumerate(row)).items()] for p in people]
    found = attacked(shell("membership", world.facts, strategy, people=people), world)
    assert [each.present for each in found.people] == [bool(each) for each in fits]
    found = attacked(
        shell("uniqueness", world.facts, STRATEGIES["published"], people=people), world
    )
    assert [each.unique for each in found.people] == [len(each) == 1 for each in fits]
    rest = [column for column in range(len(schema)) if column not in known]
    assume(rest)
    priors = {}
    for column in rest:
        if data.draw(st.booleans()):
            low = data.draw(st.integers(-8, 8))
            priors[column] = (low, low + data.draw(st.integers(0, 8)))
    attack = shell(
        "attribute", world.facts, strategy, people=people, columns=rest, priors=priors, force=True
    )
    found = attacked(attack, world)
    for each, mine in zip(found.people, fits, strict=True):
        assert each.matches == len(mine)
        for part in each.values:
            assert part.values == column_truth(mine, part.column)
        assert len(each.values) == (len(rest) if mine else 0)
        failed = [
            column
            for column, (low, high) in priors.items()
            if not all(low <= row[column] <= high for row in mine)
        ]
        assert sorted(each.prior_failed) == sorted(failed)


@pytest.mark.parametrize("k", sweep([2, 1, 3], 3))
@pytest.mark.parametrize("name", ["binary", "noisy"])
def test_every_count_in_every_small_table(name: str, k: int) -> None:
    claim = replace(NAMED[name], sensitivity=idp(k).sensitivity)
    for n in range(2 * k, 2 * k + 4):
        for c in range(n + 1):
            world = World(one_column([1] * c + [0] * (n - c)), claim)
            found = attacked(
                shell("count", world.facts, STRATEGIES["published"], box={0: (1, 2)}), world
            )
            assert found.count == c


# ---- at large losses


@pytest.mark.parametrize("epsilon", sweep(["20", "0.5", "2"], 2))
@pytest.mark.parametrize("strategy", ["published", "posterior"])
@pytest.mark.parametrize(
    "claim",
    [each for each in LAWS.values() if each.counts],
    ids=[name for name, each in LAWS.items() if each.counts],
)
def test_large_losses_give_the_truth_or_nothing(claim: Claim, strategy: str, epsilon: str) -> None:
    data = Dataset(
        Schema((Grid("x", lower=0, upper=5), Categories("c", ("a", "b"), True))),
        np.array([[1, 0], [1, 1], [4, 0], [4, 0], [5, MISSING]]),
    )
    curator = Curator(data, claim, seed=3)
    attack = shell("dataset", curator.facts, STRATEGIES[strategy], care=Care(1e-3, 30_000))
    ended = run(attack, curator, Fixed(Fraction(epsilon)))
    assert ended.spent == ended.meter.queries * Fraction(epsilon)
    if ended.ending == "undecided":
        assert "no usable difference" in ended.reason
        # exact answers hide among noise that rounding takes away
        assert claim.leaks
        assert epsilon == "20"
        assert claim.post != "none"
        return
    found = ended.found
    rebuilt = Multiset(
        {tuple(row): int(c) for row, c in zip(found.codes.tolist(), found.counts, strict=True)}
    )
    assert rebuilt == table_truth(data, found.columns, found.widths)


@pytest.mark.parametrize("name", ["dp-laplace", "dp-smooth"])
@pytest.mark.parametrize("strategy", ["published", "posterior"])
def test_honest_noise_gives_nothing_away_at_a_small_loss(name: str, strategy: str) -> None:
    curator = Curator(one_column([1, 2, 2, 3], lower=0, upper=7), claim_named(name))
    attack = shell("dataset", curator.facts, STRATEGIES[strategy])
    ended = run(attack, curator, Fixed(Fraction(1, 10**10)))
    assert ended.ending == "undecided"
    assert "no usable difference" in ended.reason
    assert ended.found.known.tolist() == [0]


# ---- schedules


@pytest.mark.parametrize(
    "schedule",
    [Fixed(Fraction(1, 10**12)), Total(Fraction(1, 1000)), Equal(Fraction(1, 100), 10**6)],
    ids=["fixed", "shrinking", "equal"],
)
@pytest.mark.parametrize("strategy", ["published", "posterior"])
@every_counting
def test_every_schedule(claim: Claim, strategy: str, schedule: Schedule) -> None:
    data = one_column([1, 1, 2, 6, 6, 6, 7], lower=0, upper=7)
    curator = Curator(data, claim)
    ended = run(shell("dataset", curator.facts, STRATEGIES[strategy]), curator, schedule)
    assert ended.ending == "complete"
    values = list(zip(ended.found.codes[:, 0].tolist(), ended.found.counts.tolist(), strict=True))
    assert sorted(values) == [(1, 2), (2, 1), (6, 3), (7, 1)]
    assert ended.spent <= Fraction(1, 100)
