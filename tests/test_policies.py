"""Policies of a curator: what is refused, what is answered again, and what the attacker knows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.auditing.attacks import attack_on
from thinveil.auditing.driver import run
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import Fixed
from thinveil.auditing.targets import fingerprint
from thinveil.commands.main import run as command
from thinveil.curator.cache import AnswerCache
from thinveil.curator.curator import Curator
from thinveil.curator.ledger import Event, PostProcessing, Spend
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import BudgetError, BudgetSpent, QueryError, TranscriptError, UsageError
from thinveil.language.claims import Claim, idp, unprotected
from thinveil.language.extents import Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.normal import Normal
from thinveil.language.policies import NO_POLICIES, Policies
from thinveil.language.queries import WHOLE, Answers, Cells, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, LOWEST, MISSING, Grid, Schema
from thinveil.verdicts.verdict import Verdict
from worlds import Watched, domain_of, examples, inside, one_column, ranges, schemas, sweep

N = 12
DATA = one_column(list(range(N)))
KEY = ("run", 1)
CLAIMS = {
    "unprotected": unprotected(),
    "idp": idp(),
    "group": idp(3),
    "noisy": replace(idp(), offset=1.0),
    "integer": replace(idp(), post="integer"),
    "binary": replace(idp(), post="binary"),
}
every_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
protected_claim = pytest.mark.parametrize(
    "claim", [each for each in CLAIMS.values() if each.protected], ids=list(CLAIMS)[1:]
)


def asking(many: int, repeats: Any = 1) -> QueryBatch:
    """Different questions in the noisy zone, c = b + 1."""
    high = [2 + each % 9 for each in range(many)]
    return ranges([0] * many, [-each for each in range(many)], high, [h - 1 for h in high],
                  repeats=repeats)  # fmt: skip


def stamp(batch: QueryBatch, claim: Claim, epsilon: Any = 1.0) -> QueryBatch:
    return batch.stamped(KEY, epsilon if claim.protected else None)


def state(curator: Curator) -> Any:
    """Everything of a curator that a refusal must leave alone, seen from outside."""
    return curator.ledger.events, curator.ledger.spent


# ---- the description


def test_policies_are_public_and_said() -> None:
    policies = Policies(1e-6, 1000, True)
    facts = PublicFacts(N, DATA.schema, idp(), policies)
    said = "\n".join(facts.assumed_public())
    for part in ("share below 1e-06", "at most 1,000 answers in all", "the same answer"):
        assert part in said
    assert PublicFacts(N, DATA.schema, idp()).policies == NO_POLICIES
    assert "policy" not in "\n".join(PublicFacts(N, DATA.schema, idp()).assumed_public())


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_epsilon": 0.0},
        {"min_epsilon": -1.0},
        {"min_epsilon": float("nan")},
        {"min_epsilon": float("inf")},
        {"max_queries": 0},
        {"max_queries": -3},
        {"max_queries": 2.0},
        {"max_queries": True},
    ],
    ids=str,
)
def test_policies_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Policies(**wrong)


def test_an_unprotected_curator_has_no_smallest_share() -> None:
    with pytest.raises(UsageError, match="no smallest share"):
        Curator(DATA, unprotected(), policies=Policies(min_epsilon=0.1))
    with pytest.raises(UsageError, match="--min-epsilon"):
        Options(mechanism="unprotected", min_epsilon="0.1")


def test_policies_tell_targets_apart_and_none_change_nothing() -> None:
    plain = Curator(DATA, idp())
    marks = {
        fingerprint(Curator(DATA, idp(), policies=each))
        for each in (NO_POLICIES, Policies(0.5), Policies(0.5, 9), Policies(cache=True))
    }
    assert len(marks) == 4
    assert fingerprint(plain) == f"{plain.fingerprint} {plain.facts!r}"
    assert "olicies" not in fingerprint(plain)


# ---- the smallest share and the largest number of answers


@protected_claim
@pytest.mark.parametrize("share", [0.25, np.array([1.0, 0.25, 1.0])], ids=["one", "column"])
def test_a_share_that_is_too_small_refuses_the_whole_batch(claim: Claim, share: Any) -> None:
    curator = Curator(DATA, claim, seed=4, policies=Policies(min_epsilon=0.5))
    free = Curator(DATA, claim, seed=4)
    before = state(curator)
    for ask in (curator.answer, curator.price):
        with pytest.raises(BudgetError, match=r"below 0\.5") as refused:
            ask(stamp(asking(3), claim, share))
        assert not isinstance(refused.value, BudgetSpent)
        assert state(curator) == before
    fine = stamp(asking(3), claim, 0.5)  # exactly the smallest, and the noise was not touched
    assert curator.answer(fine).values.tolist() == free.answer(fine).values.tolist()


@every_claim
def test_a_batch_that_would_pass_the_limit_is_refused_whole(claim: Claim) -> None:
    curator = Curator(DATA, claim, seed=4, policies=Policies(max_queries=7))
    free = Curator(DATA, claim, seed=4)
    three = stamp(asking(3), claim)
    assert curator.answer(three).values.tolist() == free.answer(three).values.tolist()
    before = state(curator)
    for batch in (asking(5), asking(1, 5), asking(2, np.array([1, 4]))):
        for _ in range(2):
            with pytest.raises(BudgetSpent, match="at most 7 answers in all: 3 answers are given"):
                curator.answer(stamp(batch, claim))
        assert state(curator) == before
    four = stamp(asking(2, 2), claim)
    assert curator.answer(four).values.tolist() == free.answer(four).values.tolist()
    with pytest.raises(BudgetSpent):
        curator.answer(stamp(asking(1), claim))


def test_answers_from_the_cache_count_as_answers_given() -> None:
    curator = Curator(DATA, idp(), policies=Policies(max_queries=5, cache=True))
    curator.answer(stamp(asking(2), idp()))
    curator.answer(stamp(asking(3), idp()))
    with pytest.raises(BudgetSpent):
        curator.answer(stamp(asking(1), idp()))


# ---- the cache


@every_claim
@pytest.mark.parametrize("repeats", [1, 4, np.array([3, 1, 5])], ids=["one", "four", "uneven"])
def test_the_same_question_gets_the_same_answer_and_is_charged_once(
    claim: Claim, repeats: Any
) -> None:
    curator = Curator(DATA, claim, seed=2, policies=Policies(cache=True))
    plain = Curator(DATA, claim, seed=2)
    batch = stamp(asking(3, repeats), claim, np.array([1.0, 0.5, 0.25]))
    first, drawn = curator.answer(batch), plain.answer(batch)
    cost = Fraction(7, 4) if claim.protected else Fraction(0)
    assert list(curator.ledger.events) == [Spend(3, cost)]
    for number in range(3):
        row = first.row(number).tolist()
        assert row == [drawn.row(number)[0]] * len(row)  # the first draw decides
    later = curator.answer(stamp(asking(3, 2), claim, 0.001))
    assert later.values.tolist() == [each for n in range(3) for each in [first.row(n)[0]] * 2]
    assert curator.ledger.spent == cost
    assert curator.ledger.events[1] == PostProcessing("answers that were given before")


@every_claim
def test_the_first_occurrence_in_a_batch_decides(claim: Claim) -> None:
    curator = Curator(DATA, claim, seed=6, policies=Policies(cache=True))
    batch = ranges([0, 0, WHOLE, 0, 0], [0, 1, 3, 0, 1], [5, 5, 4, 5, 5], [4, 3, 50, 4, 3],
                   repeats=np.array([2, 1, 1, 3, 2]))  # fmt: skip
    answers = curator.answer(stamp(batch, claim))
    plain = Curator(DATA, claim, seed=6).answer(stamp(batch, claim)).values
    a, b, c = plain[0], plain[2], plain[3]
    assert answers.values.tolist() == [a, a, b, c, a, a, a, b, b]
    assert curator.ledger.events == (Spend(3, Fraction(3 if claim.protected else 0)),)


def test_every_answer_takes_its_word_whatever_the_cache_knows() -> None:
    cached = Curator(DATA, idp(), policies=Policies(cache=True))
    plain = Curator(DATA, idp())
    new = ranges([0], [-50], [6], [5]).stamped(KEY, 1.0)
    for curator in (cached, plain):
        curator.answer(stamp(asking(3, 2), idp()))
        curator.answer(stamp(asking(2, 5), idp()))
    assert cached.answer(new).values.tolist() == plain.answer(new).values.tolist()


def test_a_cap_is_judged_by_what_is_fresh() -> None:
    curator = Curator(DATA, idp(), cap=Fraction(3), policies=Policies(cache=True))
    curator.answer(stamp(asking(3, 10), idp()))
    assert curator.ledger.spent == 3
    curator.answer(stamp(asking(3, 10), idp()))
    before = state(curator), curator.price(stamp(asking(4), idp()))
    for _ in range(2):
        with pytest.raises(BudgetSpent):
            curator.answer(stamp(asking(4), idp()))
    assert (state(curator), curator.price(stamp(asking(4), idp()))) == before
    assert before[1] == Spend(1, Fraction(1))  # what was refused is not remembered


def test_pricing_changes_nothing_and_refuses_what_cannot_be_asked() -> None:
    curator = Curator(DATA, idp(), policies=Policies(cache=True))
    batch = stamp(asking(2, 3), idp(), 0.5)
    for _ in range(2):
        assert curator.price(batch) == Spend(2, Fraction(1))
        assert curator.ledger.events == ()
    with pytest.raises(QueryError):
        curator.price(ranges([7], [0], [1], [0]).stamped(KEY, 1.0))
    with pytest.raises(BudgetError):
        curator.price(asking(1))


# ---- normal forms


def keys_of(normal: Normal, *questions: Any) -> list[tuple[int, ...]]:
    return [tuple(key) for key in normal.keys(batch_of(questions)).T.tolist()]


def normal_of(data: Dataset, universe: Any = "unbounded") -> Normal:
    return Normal(Extent.of(data.schema, universe), data.records)


WORDS: list[tuple[str, Any, Any]] = [
    ("thresholds below zero", ([{0: (0, 3)}], -1), ([{1: (4, 5)}], -(10**12))),
    ("thresholds of n and above", ([{0: (0, 3)}], 6), ([{0: (0, 3)}], 10**12)),
    ("no restriction", ([{}], 2), ([{0: (MISSING, INFINITE), 1: (MISSING, 99)}], 2)),
    ("bounds", ([{1: (0, 5)}], 2), ([{1: (-7, 5)}], 2)),
    ("the missing code where none can be missing", ([{1: (MISSING, 5)}], 2), ([{1: (0, 5)}], 2)),
    ("constant true", ([{}], 0), ([{1: (0, 10)}], 3)),
    ("constant false", ([{1: (4, 4)}], 0), ([{1: (20, 30)}, {0: (5, 1)}], 3)),
    ("empty boxes", ([{0: (1, 3)}], 2), ([{0: (1, 3)}, {0: (9, 9)}, {1: (40, 50)}], 2)),
    ("touching boxes", ([{0: (1, 9)}], 2), ([{0: (1, 3)}, {0: (5, 9)}, {0: (3, 5)}], 2)),
    ("missing and values", ([{0: (MISSING, 3)}], 2), ([{0: (MISSING, LOWEST)}, {0: (-9, 3)}], 2)),
    (
        "corners",
        ([{0: (0, 2), 1: (0, 4)}, {0: (2, 5), 1: (0, 2)}], 2),
        ([{0: (0, 5), 1: (0, 2)}, {0: (0, 2), 1: (2, 4)}], 2),
    ),
    (
        "four quarters",
        ([{0: (0, 4), 1: (0, 4)}], 1),
        ([{0: a, 1: b} for a in [(0, 1), (1, 4)] for b in [(2, 4), (-3, 2)]], 1),
    ),
]


@pytest.mark.parametrize(("one", "other"), [each[1:] for each in WORDS], ids=[w[0] for w in WORDS])
def test_the_same_question_in_other_words(one: Any, other: Any) -> None:
    schema = Schema((Grid("a", lower=-9, upper=20, missing=True), Grid("b", lower=0, upper=9)))
    data = Dataset(schema, np.zeros((6, 2), np.int64))
    normal = normal_of(data, "bounded")
    first, second, third = keys_of(normal, one, other, ([{0: (3, 4)}], 1))
    assert first == second != third


def test_cells_and_narrowing_ranges_are_the_same() -> None:
    schema = Schema((Grid("a"), Grid("b", missing=True), Grid("c")))
    normal = Normal(Extent.of(schema, "unbounded"), 6)
    one = QueryBatch(
        Cells((2, 0), np.array([[1, 5]]), np.array([[3, 9]])),
        *np.array([[0], [1], [MISSING], [7], [2]]),
    )
    other = QueryBatch(
        Cells((0, 1), np.array([[0, 0], [5, MISSING]]), np.array([[1, 1], [9, 7]])),
        *np.array([[1], [2], [1], [3], [2]]),
    )
    assert normal.keys(one).tolist() == normal.keys(other).tolist()
    plain = ([{0: (5, 9), 1: (MISSING, 7), 2: (1, 3)}], 2)
    assert keys_of(normal, plain) == [tuple(normal.keys(one)[:, 0].tolist())]


def test_every_region_of_a_small_universe_has_one_key_however_it_is_cut() -> None:
    schema = Schema((Grid("a", lower=4, upper=5, missing=True), Grid("b", lower=-1, upper=1)))
    normal = Normal(Extent.of(schema, "bounded"), 5)
    spans = [[(MISSING, LOWEST), (4, 5), (5, 6)], [(-1, 0), (0, 1), (1, 2)]]
    places = list(product(range(3), range(3)))
    seen = set()
    for region in product([False, True], repeat=9):
        held = [place for place, there in zip(places, region, strict=True) if there]
        if not held:
            continue
        cells = [{0: spans[0][i], 1: spans[1][j]} for i, j in held]
        rows = [
            {0: (spans[0][i][0] if i else MISSING, spans[0][n][1]), 1: spans[1][j]}
            for j in range(3)
            for i, n in _stretches([(i, j) in held for i in range(3)])
        ]
        keys = keys_of(normal, (cells, 2), (cells[::-1], 2), (rows, 2))
        assert len(set(keys)) == 1, held
        seen.add(keys[0])
    assert len(seen) == 511


def _stretches(there: list[bool]) -> list[tuple[int, int]]:
    """Return the first and the last place of each stretch of true ones."""
    found: list[tuple[int, int]] = []
    for place, each in enumerate(there):
        if each and found and found[-1][1] == place - 1:
            found[-1] = found[-1][0], place
        elif each:
            found.append((place, place))
    return found


@st.composite
def questions(draw: st.DrawFn, schema: Schema, most: int) -> Any:
    """A union of disjoint boxes over a small universe, and a threshold."""
    end = st.one_of(st.integers(-2, 5), st.sampled_from([MISSING, LOWEST, INFINITE]))
    box = st.dictionaries(st.integers(0, len(schema) - 1), st.tuples(end, end), max_size=3)
    boxes: list[Any] = []
    for each in draw(st.lists(box, min_size=1, max_size=most)):
        if not any(_overlap(each, other) for other in boxes):
            boxes.append(each)
    return boxes, draw(st.integers(-2, 4))


def _overlap(one: Any, other: Any) -> bool:
    whole = (MISSING, INFINITE)
    return all(
        max(one.get(c, whole)[0], other.get(c, whole)[0])
        < min(one.get(c, whole)[1], other.get(c, whole)[1])
        for c in {*one, *other}
    )


SMALL = st.builds(
    lambda sizes: Schema(
        tuple(
            Grid(f"a{place}", lower=low, upper=low + size, missing=missing)
            for place, (low, size, missing) in enumerate(sizes)
        )
    ),
    st.lists(
        st.tuples(st.integers(-1, 1), st.integers(0, 2), st.booleans()), min_size=1, max_size=3
    ),
)


@pytest.mark.parametrize("most", [1, 5], ids=["boxes", "unions"])
@examples(300)
@given(data=st.data())
def test_equal_keys_mean_the_same_question_and_the_other_way_round(
    most: int, data: st.DataObject
) -> None:
    records = 3
    schema = data.draw(SMALL)
    normal = Normal(Extent.of(schema, "bounded"), records)
    asked = data.draw(st.lists(questions(schema, most), min_size=2, max_size=6))
    possible = list(product(*(domain_of(attribute) for attribute in schema)))
    keys = keys_of(normal, *asked)
    assert keys == [keys_of(normal, each)[0] for each in asked]  # batching does not matter
    meaning: list[object] = []
    for boxes, threshold in asked:
        holds = frozenset(row for row in possible if any(inside(row, box) for box in boxes))
        b = min(max(threshold, -1), records)
        if b < 0 or (len(holds) == len(possible) and b < records):
            meaning.append("always")
        elif b >= records or not holds:
            meaning.append("never")
        else:
            meaning.append((holds, b))
    for i in range(len(asked)):
        for j in range(i):
            assert (keys[i] == keys[j]) == (meaning[i] == meaning[j])


@examples(60)
@given(data=st.data())
def test_an_unbounded_universe_tells_all_codes_apart(data: st.DataObject) -> None:
    schema = data.draw(schemas(bounds=None, columns=3))
    normal = Normal(Extent.of(schema, "unbounded"), 3)
    asked = data.draw(st.lists(questions(schema, 3), min_size=2, max_size=5))
    codes = [*range(-3, 7), 10**6, -(10**6)]
    possible = list(product(*([MISSING, *codes] if each.missing else codes for each in schema)))
    meaning = [
        (frozenset(row for row in possible if any(inside(row, box) for box in boxes)), b)
        for boxes, b in asked
    ]
    for one, first in zip(keys_of(normal, *asked), meaning, strict=True):
        for other, second in zip(keys_of(normal, *asked), meaning, strict=True):
            if one == other and 0 <= first[1] < 3 and 0 <= second[1] < 3:
                alike = {0, len(possible)}
                assert first == second or {len(first[0]), len(second[0])} <= alike


def test_a_union_that_falls_to_pieces_keeps_its_boxes_and_stays_quick() -> None:
    columns = 12
    schema = Schema(tuple(Grid(f"a{each}") for each in range(columns)))
    normal = Normal(Extent.of(schema, "unbounded"), 6)
    rng = np.random.default_rng(3)
    union = []
    for number in range(60):
        box = {c: (int(low), int(low) + 500) for c, low in enumerate(rng.integers(0, 400, columns))}
        box[0] = (number, number + 1)
        union.append(box)
    pieces = [{**box, 0: (0, 900)} for box in union]
    for number, box in enumerate(pieces):
        box[11] = (number, number + 1)
    one, same, other = keys_of(normal, (pieces, 2), (list(reversed(pieces)), 2), ([*pieces[1:]], 2))
    assert one == same != other


@examples(60)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=300), st.integers(1, 60))
def test_the_table_of_answers_is_a_dictionary(numbers: list[int], step: int) -> None:
    cache = AnswerCache()
    known: dict[int, float] = {}
    crowded = np.uint64(2**63)  # all keys want neighbouring slots
    for start in range(0, len(numbers), step):
        part = np.array(numbers[start : start + step], np.uint64)
        keys = np.stack([crowded + part // np.uint64(3), part])
        looked = cache.look(keys)
        assert looked.known.tolist() == [int(each) in known for each in part]
        values = np.arange(start, start + len(part), dtype=np.float64)
        for number, value in zip(part.tolist(), values.tolist(), strict=True):
            known.setdefault(number, value)
        expected = [known[number] for number in part.tolist()]
        assert cache.settle(looked, values[looked.fresh]).tolist() == expected
        assert len(cache) == len(known)


# ---- whole runs


class Cut(Watched):
    """A cached curator whose run is interrupted at one batch, before or after its answer."""

    def __init__(self, curator: Curator, stop: int | None = None, after: bool = False) -> None:
        super().__init__(curator)
        self.stop, self.after = stop, after
        self.heard: list[list[float]] = []

    def price(self, batch: QueryBatch) -> Event:
        return self.curator.price(batch)

    def recall(self, batch: QueryBatch, answers: Answers, drawn: int) -> Event:
        self.heard.append(answers.values.tolist())
        return self.curator.recall(batch, answers, drawn)

    def answer(self, batch: QueryBatch) -> Answers:
        stopping = batch.key is not None and batch.key[1] == self.stop
        if stopping and not self.after:
            raise KeyboardInterrupt
        answers = super().answer(batch)
        if stopping:
            raise KeyboardInterrupt
        self.heard.append(answers.values.tolist())
        return answers


PEOPLE = thinveil.people(40)
RUNS: dict[str, dict[str, Any]] = {
    "fixed": {"strategy": "published", "checks": "off"},
    "total": {"strategy": "published", "epsilon": "0.001", "checks": "off"},
    "capped": {"strategy": "published", "cap": "1e-7", "checks": "off"},
    "learns": {"strategy": "adaptive", "checks": "off"},
}
"""The published strategy asks some questions twice; one that learns never does."""


def cached(claim: Claim = CLAIMS["idp"], cap: Any = None) -> Curator:
    return Curator(PEOPLE, claim, seed=9, cap=cap, policies=Policies(cache=True))


@cache
def uninterrupted(how: str) -> tuple[Cut, Verdict, Verdict]:
    """Return a run with a cache, what it was answered, and the same run without a cache."""
    undisturbed = Cut(cached())
    whole = thinveil.audit(undisturbed, truth=PEOPLE, **RUNS[how])
    return undisturbed, whole, thinveil.audit(Curator(PEOPLE, idp(), seed=9), **RUNS[how])


@pytest.mark.parametrize(
    ("how", "after", "same"), sweep(product(RUNS, [False, True], [False, True]), 9)
)
def test_a_resumed_cached_run_is_the_uninterrupted_one(
    how: str, after: bool, same: bool, tmp_path: Path
) -> None:
    undisturbed, whole, plain = uninterrupted(how)
    if how != "capped":
        saved = plain.run.spent - whole.run.spent
        assert saved == 0 if how == "learns" else saved > 0
        assert whole.score is not None
        assert whole.score.exact
    for stop in (2, whole.run.meter.rounds // 2, whole.run.meter.rounds):
        path = tmp_path / str(stop)
        first = Cut(cached(), stop, after)
        broken = thinveil.audit(first, truth=PEOPLE, transcript=path, **RUNS[how])
        assert broken.run.ending == "interrupted"
        second = Cut(first.curator if same else cached())
        verdict = thinveil.audit(second, truth=PEOPLE, resume=path)
        assert second.heard == undisturbed.heard
        assert verdict.run.ending == whole.run.ending
        assert verdict.run.spent == whole.run.spent == second.curator.ledger.spent
        assert verdict.run.meter.queries == whole.run.meter.queries
        assert verdict.score == whole.score


@pytest.mark.parametrize("name", ["unprotected", "idp", "group"])
def test_a_cached_run_claims_what_its_curator_says(name: str) -> None:
    claim = CLAIMS[name]
    curator = cached(claim)
    verdict = thinveil.audit(curator, truth=PEOPLE, strategy="published")
    assert verdict.score is not None
    assert verdict.score.exact
    fresh = sum(event.queries for event in curator.ledger.events if isinstance(event, Spend))
    assert fresh < verdict.run.meter.queries
    assert verdict.run.spent == curator.ledger.spent
    # the second run is free of charge
    again = thinveil.audit(curator, truth=PEOPLE, strategy="published")
    assert again.run.spent == 0
    assert again.run.meter.queries == verdict.run.meter.queries


def test_a_cap_of_the_run_is_judged_by_the_curators_prices() -> None:
    verdict = thinveil.audit(cached())
    spent = verdict.run.spent
    for cap, ending in ((spent, "complete"), (spent - Fraction(1, 10**10), "cap")):
        for curator in (cached(), cached(cap=cap)):
            attack = attack_on(Options(), curator.facts)
            ended = run(attack, curator, Fixed(Fraction(1, 10**10)), cap=cap)
            assert ended.ending == ending
            assert ended.spent <= cap


def test_a_failed_resume_leaves_the_curator_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run"
    thinveil.audit(cached(), transcript=path)
    header, frames = path.read_bytes().split(b"\n", 1)
    fields = json.loads(header)
    fields["options"]["attack"] = "count"
    fields["options"]["people"] = [{"age": "30..50"}]
    path.write_bytes(json.dumps(fields).encode() + b"\n" + frames)
    curator = cached()
    with pytest.raises(TranscriptError, match="differs"):
        thinveil.audit(curator, resume=path)
    assert curator.ledger.events == ()
    assert thinveil.audit(curator).run.spent == thinveil.audit(cached()).run.spent


def test_a_target_brings_its_own_policies() -> None:
    curator = cached()
    with pytest.raises(UsageError, match="own policies"):
        thinveil.audit(curator, max_queries=5)
    known = {"age": 44}
    assert thinveil.audit(curator, cache=True, attack="membership", known=known).exit_code == 0


def test_every_run_of_a_curator_counts_towards_its_limit() -> None:
    curator = Curator(PEOPLE, idp(), policies=Policies(max_queries=2))
    asked: Iterable[int] = (
        thinveil.audit(curator, attack="membership", known={"age": 44}).exit_code for _ in range(3)
    )
    assert list(asked) == [0, 0, 3]


# ---- the command line


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rows = "".join(f"{20 + 7 * each % 50},{31415 + each}\n" for each in range(12))
    Path("table.csv").write_text(f"age,pay\n{rows}")


def told(*arguments: str) -> tuple[int, dict[str, Any]]:
    code = command(["audit", "table.csv", *arguments, "--json", "out.json"])
    return code, json.loads(Path("out.json").read_text())


@pytest.mark.usefixtures("_elsewhere")
def test_the_limit_ends_a_run_early(capsys: pytest.CaptureFixture[str]) -> None:
    code, result = told("--max-queries", "60")
    assert (code, result["ended"]) == (3, "cap")
    assert 0 < result["queries"] <= 60
    assert "at most 60 answers in all" in result["verdict"]
    assert "the policy: it gives at most 60 answers in all" in result["assumed_public"]
    assert "gives at most 60 answers in all" in capsys.readouterr().out
    assert sorted(each.name for each in Path().iterdir()) == ["out.json", "table.csv"]


@pytest.mark.usefixtures("_elsewhere")
def test_shares_that_become_too_small_end_a_run_early() -> None:
    code, result = told("--epsilon", "1", "--min-epsilon", "0.001")
    assert (code, result["ended"]) == (3, "cap")
    assert 0 < result["queries"] <= 24
    assert "below 0.001" in result["reason"]
    assert "31415" not in result["reason"]


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("more", [(), ("--transcript", "run.transcript")], ids=["bare", "kept"])
def test_a_share_that_is_too_small_from_the_start_is_an_error(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    share = ["--min-epsilon", "1e-9", "--epsilon-per-query", "1e-10"]
    assert command(["audit", "table.csv", *share, *more]) == 1
    message = capsys.readouterr().err
    assert "share below 1e-09" in message
    assert "1e-10" in message
    assert "31415" not in message
    assert [each.name for each in Path().iterdir()] == ["table.csv"]
    code, result = told("--min-epsilon", "1e-3")  # known to all, so nobody offers less
    assert (code, result["exact"]) == (0, True)
    assert result["epsilon_claimed"] == pytest.approx(result["queries"] * 1e-3)


@pytest.mark.usefixtures("_elsewhere")
def test_a_cache_from_the_command_line() -> None:
    published = ("--strategy", "published")
    _, plain = told(*published)
    code, result = told(*published, "--cache", "--transcript", "run.transcript")
    assert (code, result["exact"], result["queries"]) == (0, True, plain["queries"])
    assert result["epsilon_claimed"] < plain["epsilon_claimed"]
    assert command(["audit", "--resume", "run.transcript", "--json", "again.json"]) == 0
    again = json.loads(Path("again.json").read_text())
    assert again["epsilon_claimed"] == result["epsilon_claimed"]


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(
    "wrong",
    [
        ("--min-epsilon", "0"),
        ("--min-epsilon", "much"),
        ("--max-queries", "0"),
        ("--max-queries", "2.5"),
        ("--mechanism", "unprotected", "--min-epsilon", "0.1"),
    ],
    ids=" ".join,
)
def test_policies_that_cannot_be_meant(
    wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["audit", "table.csv", *wrong]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_policies_in_python() -> None:
    verdict = thinveil.audit(PEOPLE, max_queries=np.int64(50), min_epsilon=1e-12, cache=True)
    assert verdict.exit_code == 3
    assert verdict.facts.policies == Policies(1e-12, 50, True)
    with pytest.raises(UsageError, match="whole number"):
        thinveil.audit(PEOPLE, max_queries=2.5)
