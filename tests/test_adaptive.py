"""How many questions the attacks that learn need: frozen counts, and budgets as formulas.

Frozen counts hold for several tables that differ in kind, so that a change that helps one and
hurts another shows. To see the new ones after a change, and to put them in place of FROZEN:

    python tests/test_adaptive.py
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given

import thinveil
from thinveil.attacker.attacks import learned_table as adaptive
from thinveil.attacker.engines.unions import BOXES, Thrift
from thinveil.attacker.findings import TableFound
from thinveil.attacker.strategies import STRATEGIES
from thinveil.commands.main import run as command
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError
from thinveil.language.claims import claim_named, idp, unprotected
from thinveil.language.compiling import compiled
from thinveil.language.queries import QueryBatch
from thinveil.language.schema import MISSING, Categories, Grid, Schema
from thinveil.verdicts.verdict import Verdict
from worlds import (
    Watched,
    World,
    as_a,
    attack_with,
    boxes_of,
    examples,
    numbers,
    overheard,
    sweep,
    table_truth,
    wished,
    worlds,
)

LEARNING: Final = ("adaptive", "thrifty")
SETTINGS: Final = (("idp", 1), ("idp", 3), ("unprotected", 1))
THRIFT: Final[dict[str, Any]] = {"effort": 64, "windows": 32}
TINY: Final = Thrift(states=16, windows=2, plain=not compiled())

FROZEN: dict[tuple[str, str], dict[tuple[str, int], tuple[int, int]]] = {
    ("independent", "adaptive"): {
        ("idp", 1): (2_977, 111),
        ("idp", 3): (3_130, 128),
        ("unprotected", 1): (3_161, 134),
    },
    ("independent", "thrifty"): {
        ("idp", 1): (2_327, 438),
        ("idp", 3): (3_055, 603),
        ("unprotected", 1): (3_072, 608),
    },
    ("dependent", "adaptive"): {
        ("idp", 1): (2_146, 179),
        ("idp", 3): (2_186, 182),
        ("unprotected", 1): (2_372, 216),
    },
    ("dependent", "thrifty"): {
        ("idp", 1): (1_814, 387),
        ("idp", 3): (2_166, 484),
        ("unprotected", 1): (2_364, 538),
    },
    ("heavy", "adaptive"): {
        ("idp", 1): (4_592, 196),
        ("idp", 3): (4_788, 205),
        ("unprotected", 1): (4_875, 234),
    },
    ("heavy", "thrifty"): {
        ("idp", 1): (3_521, 596),
        ("idp", 3): (4_639, 799),
        ("unprotected", 1): (4_754, 837),
    },
    ("repeated", "adaptive"): {
        ("idp", 1): (881, 123),
        ("idp", 3): (823, 115),
        ("unprotected", 1): (1_053, 151),
    },
    ("repeated", "thrifty"): {
        ("idp", 1): (848, 140),
        ("idp", 3): (798, 149),
        ("unprotected", 1): (1_047, 204),
    },
    ("people", "adaptive"): {
        ("idp", 1): (6_488, 218),
        ("idp", 3): (6_712, 237),
        ("unprotected", 1): (6_792, 253),
    },
    ("people", "thrifty"): {
        ("idp", 1): (5_049, 933),
        ("idp", 3): (6_561, 1_313),
        ("unprotected", 1): (6_650, 1_328),
    },
    ("mixed", "adaptive"): {
        ("idp", 1): (6_419, 198),
        ("idp", 3): (6_654, 218),
        ("unprotected", 1): (6_798, 228),
    },
    ("mixed", "thrifty"): {
        ("idp", 1): (5_029, 797),
        ("idp", 3): (6_464, 1_101),
        ("unprotected", 1): (6_621, 1_108),
    },
    ("bank", "adaptive"): {
        ("idp", 1): (80_493, 672),
        ("unprotected", 1): (83_046, 772),
    },
    ("bank", "thrifty"): {
        ("idp", 1): (59_494, 3_501),
        ("unprotected", 1): (80_061, 4_992),
    },
}
"""Of each table and strategy: by mechanism and k, questions and rounds."""


# ---- tables that differ in kind


def independent() -> Dataset:
    """Columns that know nothing of each other, all values alike."""
    rng, sizes = np.random.default_rng(1), (2, 5, 12, 40, 300)
    schema = Schema(tuple(Grid(f"u{size}", lower=0, upper=size - 1) for size in sizes))
    return Dataset(schema, np.column_stack([rng.integers(0, size, 200) for size in sizes]))


def dependent() -> Dataset:
    """One is a function of another, one is -1 exactly when a third is unknown, one is near."""
    rng, n = np.random.default_rng(2), 400
    a, d = rng.integers(0, 10, n), rng.choice(3, n, p=(0.7, 0.2, 0.1))
    c = np.where(d == 0, -1, rng.integers(1, 300, n))
    schema = Schema(
        (
            Grid("a", lower=0, upper=9),
            Grid("b", lower=0, upper=6),
            Grid("c", lower=-1, upper=400),
            Categories("d", ("unknown", "yes", "no")),
            Grid("e", lower=0, upper=40),
        )
    )
    return Dataset(
        schema, np.column_stack([a, (a * a + 3) % 7, c, d, 3 * a + rng.integers(0, 3, n)])
    )


def heavy() -> Dataset:
    """A spike and a heavy tail in a wide domain, and a share of that with noise."""
    rng, n = np.random.default_rng(3), 300
    tail = (1000 * rng.pareto(1.2, n)).astype(np.int64)
    a = np.where(rng.random(n) < 0.4, 0, tail).clip(0, 10**7)
    b = np.rint(a * rng.normal(0.1, 0.02, n) + rng.normal(0, 500, n)).astype(np.int64)
    schema = Schema(
        (
            Grid("wide", lower=0, upper=10**7),
            Grid("both", lower=-(10**6), upper=10**6),
            Categories("c", ("x", "y", "z")),
        )
    )
    return Dataset(schema, np.column_stack([a, b.clip(-(10**6), 10**6), rng.integers(0, 3, n)]))


def repeated() -> Dataset:
    """Five constant columns, and twelve different records, some of them often."""
    rng = np.random.default_rng(4)
    schema = Schema(
        (
            *(Grid(f"same{each}", lower=0, upper=10**each) for each in range(1, 6)),
            Categories("c", tuple("abcdefgh")),
            Grid("x", lower=0, upper=999),
            Grid("y", lower=0, upper=99),
        )
    )
    same = [np.full(12, each) for each in range(1, 6)]
    pool = np.column_stack([*same, *(rng.integers(0, size, 12) for size in (8, 1000, 100))])
    return Dataset(schema, pool[rng.choice(12, 500, p=np.arange(1, 13) / 78)])


def mixed() -> Dataset:
    """Missing values, bounds that are not public, categories."""
    rng, n = np.random.default_rng(5), 300

    def gone(codes: Any, share: float) -> Any:
        return np.where(rng.random(n) < share, MISSING, codes)

    age = rng.integers(18, 90, n)
    schema = Schema(
        (
            Grid("age", missing=True),
            Grid("pay", missing=True),
            Categories("job", ("a", "b", "c", "d"), missing=True),
            Grid("shift"),
            Grid("wide", lower=-500, upper=500, missing=True),
        )
    )
    bell = np.rint(rng.normal(0, 60, n)).astype(np.int64).clip(-500, 500)
    columns = [
        gone(age, 0.05),
        gone(100 * age + rng.integers(0, 2000, n), 0.3),
        gone(rng.integers(0, 4, n), 0.1),
        rng.integers(-3, 4, n) * 1000,
        gone(bell, 0.5),
    ]
    return Dataset(schema, np.column_stack(columns))


def a_function() -> Dataset:
    """A column of many values, one of eight, and one that is a function of the latter."""
    rng, records = np.random.default_rng(7), 2000
    d = rng.choice(8, records, p=np.array([30, 20, 15, 10, 10, 5, 5, 5]) / 100)
    schema = Schema(
        (
            Grid("e", lower=0, upper=999),
            Categories("d", tuple("abcdefgh")),
            Grid("c", lower=0, upper=99),
        )
    )
    c = np.array([40, 7, 93, 22, 61, 5, 88, 13])[d]
    return Dataset(schema, np.column_stack([rng.integers(0, 1000, records), d, c]))


def random_table(seed: int) -> Dataset:
    """A small table of up to five columns, each of another kind."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 160))
    attributes: list[Any] = []
    columns: list[Any] = []
    for place in range(int(rng.integers(1, 6))):
        name, missing, kind = f"a{place}", bool(rng.integers(0, 2)), int(rng.integers(0, 5))
        if kind == 0:
            size = int(rng.integers(2, 9))
            names = tuple(f"v{each}" for each in range(size))
            attributes.append(Categories(name, names, missing))
            codes = rng.choice(size, n, p=rng.dirichlet(np.ones(size)))
        elif kind == 1:
            upper = int(10 ** rng.integers(1, 6))
            attributes.append(Grid(name, lower=0, upper=upper, missing=missing))
            codes = rng.integers(0, upper + 1, n)
        elif kind == 2:
            attributes.append(Grid(name, missing=missing))
            middle, wide = rng.integers(-99, 99), 3 * 10 ** rng.random()
            codes = np.rint(rng.normal(middle, wide, n)).astype(np.int64)
        elif kind == 3 and columns:
            attributes.append(Grid(name, lower=0, upper=19, missing=missing))
            codes = np.abs(columns[0]) % 20
        else:
            attributes.append(Grid(name, lower=-(10**6), upper=10**6, missing=missing))
            tail = (10 * rng.pareto(1, n)).clip(0, 10**6).astype(np.int64)
            codes = np.where(rng.random(n) < 0.5, 7, tail)
        if missing and kind != 3:
            codes = np.where(rng.random(n) < 0.4 * rng.random(), MISSING, codes)
        columns.append(np.asarray(codes, np.int64))
    return Dataset(Schema(tuple(attributes)), np.column_stack(columns))


TABLES: Final[dict[str, Callable[[], Dataset]]] = {
    "independent": independent,
    "dependent": dependent,
    "heavy": heavy,
    "repeated": repeated,
    "people": lambda: thinveil.people(150),
    "mixed": mixed,
}


@cache
def audited(data: Callable[[], Dataset], strategy: str, mechanism: str, k: int) -> Verdict:
    """Attack a table; what is found is exact."""
    thrift = THRIFT if strategy == "thrifty" else {}
    verdict = thinveil.audit(data(), strategy=strategy, mechanism=mechanism, k=k, **thrift)
    assert verdict.run.ending == "complete"
    assert verdict.score is not None
    assert verdict.score.exact
    return verdict


def asked(verdict: Verdict) -> tuple[int, int]:
    return verdict.run.meter.queries, verdict.run.meter.rounds


def near(expected: int) -> Any:
    """Logarithms differ in their last digits from machine to machine, and so do medians."""
    return pytest.approx(expected, rel=0.005, abs=4)


slow_if_plain = pytest.mark.skipif(not compiled(), reason="takes long without numba")
nightly = pytest.mark.nightly
by_strategy = pytest.mark.parametrize(
    "strategy", ["adaptive", pytest.param("thrifty", marks=slow_if_plain)]
)
LARGE = ("dependent", "heavy", "independent", "mixed", "people")
"""Tables that take seconds."""


# ---- frozen counts


def hold(table: str, data: Callable[[], Dataset], strategy: str) -> None:
    """Hold questions and rounds against the frozen ones, and protection against none."""
    questions = {}
    for (mechanism, k), expected in FROZEN[table, strategy].items():
        verdict = audited(data, strategy, mechanism, k)
        queries, rounds = asked(verdict)
        assert queries == near(expected[0]), (mechanism, k)
        assert rounds == pytest.approx(expected[1], rel=0.03, abs=4), (mechanism, k)
        questions[mechanism, k] = asked(verdict)[0]
    plain = questions["unprotected", 1]
    assert questions["idp", 1] < (0.82 if strategy == "thrifty" else 1) * plain
    assert questions.get(("idp", 3), 0) <= plain


@by_strategy
@pytest.mark.parametrize(
    "table", [pytest.param(each, marks=[nightly] * (each in LARGE)) for each in TABLES]
)
def test_frozen_counts(table: str, strategy: str) -> None:
    hold(table, TABLES[table], strategy)


@nightly
@by_strategy
def test_frozen_counts_on_a_sample_of_the_bank_table(bank: Dataset, strategy: str) -> None:
    hold("bank", lambda: sample(bank), strategy)


def sample(bank: Dataset) -> Dataset:
    """Two thousand of its records."""
    rows = np.random.default_rng(6).choice(bank.records, 2000, replace=False)
    return Dataset(bank.schema, bank.codes[rows])


@pytest.mark.parametrize("table", [*TABLES, "bank"])
@pytest.mark.parametrize(("mechanism", "k"), SETTINGS[::2])
def test_unions_save_questions(table: str, mechanism: str, k: int) -> None:
    many, few = (FROZEN[table, strategy][mechanism, k][0] for strategy in LEARNING)
    # without protection an answer tells one bit at most, however many boxes it is about
    assert few < (many if mechanism == "idp" else 1.01 * many)


# ---- budgets as formulas

BUDGETS: Final = {
    # a share of the bits, and questions for each attribute
    ("adaptive", "idp", 1): (1.05, 12),
    ("adaptive", "idp", 2): (1.1, 18),
    ("adaptive", "idp", 3): (1.1, 24),
    ("adaptive", "unprotected", 1): (1.1, 36),
    ("thrifty", "idp", 1): (0.8, 16),
    ("thrifty", "idp", 2): (1.02, 8),
    ("thrifty", "idp", 3): (1.02, 8),
    ("thrifty", "unprotected", 1): (1.05, 16),
}
"""How many questions small random tables take at most, by what they tell: see `verdict.bits`.

Measured on 60 tables; the worst of them needs all but a few of these. Where there is little to
ask, the adaptive attack asks several questions at a time, which are not all needed."""
MORE_UNDER_IDP: Final = {"adaptive": 8, "thrifty": 1}
"""By how many questions an attribute protection may make an attack longer.

Of 360 comparisons, one of the adaptive strategy (k = 3, 106 questions without protection) was
longer, by 5; none of the thrifty strategy was."""


@pytest.mark.parametrize(
    ("seed", "strategy"),
    [
        *((seed, "adaptive") for seed in (102, 103)),
        *(pytest.param(each, "adaptive", marks=nightly) for each in (100, 101, 104, 105, 106, 107)),
        pytest.param(102, "thrifty", marks=slow_if_plain),
        *(  # those that end soon
            pytest.param(seed, "thrifty", marks=[slow_if_plain, nightly])
            for seed in (100, 101, 105)
        ),
    ],
)
def test_questions_are_bounded_by_bits_and_by_those_without_protection(
    seed: int, strategy: str
) -> None:
    thrift: dict[str, Any] = {"effort": 32, "windows": 4} if strategy == "thrifty" else {}
    data = random_table(seed)
    plain = None
    for mechanism, k in (("unprotected", 1), ("idp", 1), ("idp", 2), ("idp", 3)):
        verdict = thinveil.audit(data, strategy=strategy, mechanism=mechanism, k=k, **thrift)
        assert verdict.score is not None
        assert verdict.score.exact
        assert verdict.bits is not None
        share, each = BUDGETS[strategy, mechanism, k]
        questions = verdict.run.meter.queries
        assert questions <= share * verdict.bits + each * len(data.schema)
        plain = questions if plain is None else plain
        assert questions <= plain + MORE_UNDER_IDP[strategy] * len(data.schema)


# ---- what is asked about which attribute


def by_stage(data: Dataset, claim: Any, order: Any = (), thrift: Thrift | None = None) -> Any:
    """Return questions by the first word of what they are about and by column, and the run."""
    target, heard = Watched(Curator(data, claim)), list[QueryBatch]()
    attack = wished(adaptive.table, target.facts, order=order, thrift=thrift)
    ended = attack_with(overheard(attack, heard.append), target)
    questions: Multiset[tuple[str, int]] = Multiset()
    for batch in heard:
        for union in boxes_of(batch):
            (column,) = {list(box)[-1] for box in union}
            questions[batch.about.label.split()[0], column] += 1
    total: Multiset[int] = Multiset()
    for (_, column), count in questions.items():
        total[column] += count
    assert [total[column] for column in range(len(data.schema))] == (
        ended.meter.by_column[:-1].tolist()
    )
    return questions, ended.found, target


FUNCTION: Final = {(): 110, (0, 1, 2): 1310}
"""What a function of 2,000 records costs beyond its histogram, by the order of attributes.

It was 100 where it is asked about in eight groups, and 1,248 in 1,800: by chance, as four other
tables cost 1,075 to 1,196, and 1,105 to 1,208 before decisions were rounded (this one 1,091)."""


@slow_if_plain
@pytest.mark.parametrize(
    "order",
    [pytest.param(each, marks=[nightly] * bool(place)) for place, each in enumerate(FUNCTION)],
)
def test_a_functional_dependency_is_found(order: tuple[int, ...]) -> None:
    questions, found, _ = by_stage(a_function(), idp(), order, Thrift(64, 32))
    assert questions["attribute", 2] <= FUNCTION[order]
    assert found.columns == (order or (1, 2, 0))


@pytest.mark.parametrize("thrift", [None, TINY], ids=LEARNING)
@pytest.mark.parametrize("claim", [idp(), unprotected()], ids=["idp", "unprotected"])
def test_constant_columns_cost_nothing_beyond_their_histogram(claim: Any, thrift: Any) -> None:
    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Grid("same", lower=0, upper=1000),
            Categories("also", tuple("abc"), missing=True),
            Grid("x", lower=0, upper=9),
            Grid("far"),
        )
    )
    codes = np.column_stack(
        [np.full(40, 17), np.full(40, MISSING), rng.integers(0, 10, 40), np.full(40, 10**9)]
    )
    questions, found, _ = by_stage(Dataset(schema, codes), claim, thrift=thrift)
    assert {column for word, column in questions if word == "attribute"} <= {2}
    assert questions["attribute", 2] == 0  # its groups are one, and its histogram is known
    assert sorted(found.columns[:3]) == [0, 1, 3]


@pytest.mark.parametrize("thrift", [None, TINY], ids=LEARNING)
def test_records_that_are_all_equal_cost_their_histograms(thrift: Any) -> None:
    data = Dataset(
        Schema((Grid("x", lower=0, upper=99), Categories("c", tuple("abc")))),
        np.tile([41, 2], (30, 1)),
    )
    questions, found, _ = by_stage(data, idp(), thrift=thrift)
    assert {word for word, _ in questions} == {"histograms"}
    assert found.counts.tolist() == [30]


def entropy(codes: Any) -> float:
    _, counts = np.unique(codes, return_counts=True)
    share = counts / counts.sum()
    return float(-(share * np.log2(share)).sum())


@pytest.mark.parametrize("thrift", sweep([None, TINY], 2), ids=LEARNING)
def test_attributes_that_tell_least_come_first(thrift: Any) -> None:
    data = thinveil.people(30)
    told = [entropy(data.column(column)) for column in range(len(data.schema))]
    _, found, _ = by_stage(data, idp(), thrift=thrift)
    assert all(told[a] <= told[b] + 1e-9 for a, b in pairwise(found.columns))
    _, found, _ = by_stage(data, idp(), (4, 1), thrift=thrift)
    assert found.columns[:2] == (4, 1)
    rest = found.columns[2:]
    assert all(told[a] <= told[b] + 1e-9 for a, b in pairwise(rest))
    names = data.schema.names
    verdict = thinveil.audit(data, order=(names[4], names[1]))
    assert as_a(TableFound, verdict.run.found).columns[:2] == (4, 1)


# ---- unions


@slow_if_plain
@pytest.mark.parametrize(
    "claim", sweep([idp(), idp(3), unprotected()], 3), ids=["k=1", "k=3", "none"]
)
def test_boxes_only_asks_no_union(claim: Any) -> None:
    data = dependent()
    for thrift, most in ((Thrift(64, 8, boxes_only=True), 1), (Thrift(64, 8), BOXES)):
        _, found, target = by_stage(data, claim, thrift=thrift)
        rebuilt = dict(zip(map(tuple, found.codes.tolist()), found.counts.tolist(), strict=True))
        assert rebuilt == table_truth(data, found.columns, found.widths)
        assert target.overlapping() == []
        assert target.most_boxes() <= most
        assert (target.most_boxes() > 1) == (most > 1)


@nightly
@slow_if_plain
def test_near_certain_records_make_long_questions_but_not_too_long() -> None:
    rng = np.random.default_rng(8)
    data = Dataset(
        Schema((Grid("x", lower=0, upper=2999), Categories("c", ("no", "yes")))),
        np.column_stack([rng.permutation(3000)[:900], np.arange(900) % 200 == 7]).astype(np.int64),
    )
    questions, _, target = by_stage(data, idp(), (0, 1), Thrift(64, 4))
    assert 32 < target.most_boxes() <= BOXES
    assert questions["attribute", 1] < 60  # 5 of 900: 42 bits


# ---- nothing is asked twice; the same questions every time


PEOPLE: Final = thinveil.people(20)


def asked_of(data: Dataset, claim: Any, thrift: Thrift | None, seed: int = 0) -> list[bytes]:
    """Return digests of all batches."""
    target = Watched(Curator(data, claim, seed=seed))
    attack_with(wished(adaptive.table, target.facts, thrift=thrift), target)
    return [batch.stamped(("run", 1), 1e-10).digest() for batch in target.batches]


@pytest.mark.skipif(not compiled(), reason="there is nothing to compare without numba")
@pytest.mark.parametrize(
    "claim", sweep([idp(), idp(2), unprotected()], 3), ids=["k=1", "k=2", "none"]
)
def test_compiled_loops_ask_what_plain_ones_ask(claim: Any) -> None:
    for data in (thinveil.people(12), random_table(49)):
        fast, plain = (
            asked_of(data, claim, Thrift(states=24, windows=3, plain=plain))
            for plain in (False, True)
        )
        assert fast == plain


@pytest.mark.parametrize("thrift", sweep([None, TINY], 2), ids=LEARNING)
@pytest.mark.parametrize("claim", [idp(), unprotected()], ids=["idp", "unprotected"])
def test_noise_does_not_change_what_is_asked(claim: Any, thrift: Any) -> None:
    first, again, other = (asked_of(PEOPLE, claim, thrift, seed) for seed in (0, 0, 1))
    assert first == again == other


@pytest.mark.parametrize("thrift", [None, TINY], ids=LEARNING)
@examples(80)
@given(world=worlds(columns=3))
def test_no_question_is_asked_twice(thrift: Any, world: World) -> None:
    """Beyond the search for bounds, that is, which is the one of the published attack."""
    target, heard = world.curator(), list[QueryBatch]()
    attack_with(
        overheard(wished(adaptive.table, target.facts, thrift=thrift), heard.append), target
    )
    questions = [
        (tuple(sorted(tuple(sorted(box.items())) for box in union)), b)
        for batch in heard
        if batch.about.label == "histograms" or batch.about.label.startswith("attribute")
        for union, b in zip(boxes_of(batch), batch.threshold.tolist(), strict=True)
    ]
    assert len(set(questions)) == len(questions)


class Stopping(Watched):
    """A target whose run is interrupted at one batch."""

    stop = 0

    def answer(self, batch: Any) -> Any:
        assert batch.key is not None
        if batch.key[1] == self.stop:
            raise KeyboardInterrupt
        return super().answer(batch)


@pytest.mark.parametrize("mechanism", sweep(["idp", "unprotected"], 2))
@pytest.mark.parametrize("strategy", sweep(["adaptive", "thrifty"], 2))
def test_an_interrupted_run_goes_on_where_it_was(
    mechanism: str, strategy: str, tmp_path: Path
) -> None:
    data, claim = thinveil.people(25), claim_named(mechanism)
    chosen: dict[str, Any] = {"strategy": strategy}
    if strategy == "thrifty":
        chosen |= THRIFT
    whole = Watched(Curator(data, claim, seed=3))
    undisturbed = thinveil.audit(whole, truth=data, **chosen)
    for number, part in enumerate((0.05, 0.4, 0.9)):
        path = tmp_path / str(number)
        first, second = (Stopping(Curator(data, claim, seed=3)) for _ in range(2))
        first.stop = int(part * undisturbed.run.meter.rounds)
        broken = thinveil.audit(first, truth=data, transcript=path, **chosen)
        assert broken.run.ending == "interrupted"
        verdict = thinveil.audit(second, truth=data, resume=path)
        assert verdict.score == undisturbed.score
        assert asked(verdict) == asked(undisturbed)
        assert verdict.run.spent == undisturbed.run.spent
        assert verdict.bits == undisturbed.bits
        digests = [batch.digest() for batch in whole.batches]
        mine = [*first.batches, *second.batches]
        assert numbers(mine) == numbers(whole.batches)
        assert len(mine) == len(digests)
        assert first.thresholds() + second.thresholds() == whole.thresholds()


# ---- every mechanism, every attack


@pytest.mark.parametrize("strategy", LEARNING)
@pytest.mark.parametrize("mechanism", ["idp-integer", "idp-binary", "idp-noisy", "bdp"])
def test_every_mechanism_gives_the_table_away(mechanism: str, strategy: str) -> None:
    thrift: dict[str, Any] = {"effort": 16, "windows": 4} if strategy == "thrifty" else {}
    data = thinveil.people(10)
    verdict = thinveil.audit(data, strategy=strategy, mechanism=mechanism, **thrift)
    assert verdict.run.ending == "complete"
    assert verdict.score is not None
    assert verdict.score.exact


@pytest.mark.parametrize("strategy", LEARNING)
@pytest.mark.parametrize("mechanism", ["idp", "unprotected", "idp-binary", "idp-noisy", "bdp"])
def test_every_attack_finds_the_truth(mechanism: str, strategy: str) -> None:
    chosen: dict[str, Any] = {"strategy": strategy, "mechanism": mechanism}
    if strategy == "thrifty":
        chosen |= {"effort": 16, "windows": 4}
    data = thinveil.people(10)
    names = data.schema.names
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in data.rows()]
    known = [{name: row[name] for name in ("age", "postcode")} for row in rows]
    (column,) = thinveil.audit(data, attack="column", columns=("diagnosis",), **chosen).result
    assert column["exact"]
    found = thinveil.audit(
        data, attack="membership", known=[*known, {**known[0], "age": 3}], **chosen
    )
    assert [each["present"] for each in found.result] == [True] * 10 + [False]
    found = thinveil.audit(data, attack="attribute", known=known, **chosen)
    assert all(each["correct"] for each in found.result)
    if mechanism == "bdp":  # shows which records exist, not how many
        return
    found = thinveil.audit(data, attack="uniqueness", known=known, **chosen)
    fits = [sum(one == other for other in known) for one in known]
    assert [each["unique"] for each in found.result] == [each == 1 for each in fits]
    found = thinveil.audit(data, attack="count", known={"age": "30..60"}, **chosen)
    assert found.result["count"] == sum(30 <= (row["age"] or 0) <= 60 for row in rows)


# ---- settings


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if each != "thrifty"])
@pytest.mark.parametrize("option", [("--effort", "64"), ("--windows", "8"), ("--boxes-only",)])
def test_thrift_is_for_the_thrifty(
    strategy: str, option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["audit", "--strategy", strategy, *option]) == 2
    assert f"{option[0]} is for --strategy thrifty" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("option", ["--effort", "--windows"])
@pytest.mark.parametrize("value", ["0", "-3", "65537", "many", "2.5"])
def test_thrift_that_cannot_be_meant(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["audit", "--strategy", "thrifty", option, value]) == 2
    message = capsys.readouterr().err
    assert option in message
    assert "Traceback" not in message
    wrong: dict[str, Any] = {"effort" if option == "--effort" else "windows": value}
    with pytest.raises(UsageError, match=option):
        thinveil.Options(strategy="thrifty", **wrong)


def test_every_effort_is_refused_or_enough() -> None:
    data = random_table(49)
    for effort in range(1, 20):
        try:
            options = thinveil.Options(strategy="thrifty", effort=effort, windows=1)
        except UsageError:
            assert effort < 16
            continue
        _, found, _ = by_stage(data, idp(), thrift=options.thrift())
        assert found.counts.sum() == data.records


@nightly
def test_more_effort_saves_questions() -> None:
    if not compiled():
        pytest.skip("takes long without numba")
    little, much = (
        sum(by_stage(heavy(), idp(), thrift=Thrift(states, 8))[0].values()) for states in (16, 256)
    )
    assert much < 0.95 * little


# ---- what to put in place of FROZEN


def _show() -> None:
    """Print frozen counts as they are now."""
    from conftest import BANK

    tables = dict(TABLES)
    if BANK.exists():
        bank = thinveil.load(BANK, thinveil.read_schema("bank"))
        tables["bank"] = lambda: sample(bank)
    print("FROZEN: dict[tuple[str, str], dict[tuple[str, int], tuple[int, int]]] = {")
    for table, data in tables.items():
        for strategy in LEARNING:
            print(f'    ("{table}", "{strategy}"): {{')
            for mechanism, k in SETTINGS[:: 2 if table == "bank" else 1]:
                questions, rounds = asked(audited(data, strategy, mechanism, k))
                print(f'        ("{mechanism}", {k}): ({questions:_}, {rounds:_}),', flush=True)
            print("    },")
    print("}")


if __name__ == "__main__":
    _show()
