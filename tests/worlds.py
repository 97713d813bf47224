"""Small worlds: random schemas, tables and claims, and plain ways to find the truth in them."""

from __future__ import annotations

import os
from collections import Counter as Multiset
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import row_loglik
from thinveil.attacker.strategies import SHELLS, Strategy
from thinveil.attacker.terms import Attack
from thinveil.auditing.driver import Meter, Run, run
from thinveil.auditing.schedule import Fixed, Free, Schedule
from thinveil.curator.curator import Curator
from thinveil.curator.ledger import Event, Spend
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Claim, Post, Universe, claim_named, idp, unprotected
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Cells, Codes, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, MISSING, Attribute, Categories, Grid, Schema

_T = TypeVar("_T")
EPSILON = Fraction(1, 10**10)
_SEARCHING = os.environ.get("HYPOTHESIS_PROFILE") == "search"


def examples(most: int) -> settings:
    """Return how many examples a costly test tries: all of them where somebody searches.

    The usual profile tries the same examples each time: all of them were tried once, some of
    them keep watch. HYPOTHESIS_PROFILE=search tries as many new ones.
    """
    return settings(max_examples=most if _SEARCHING else max(most // 8, 20))


def sure(value: _T | None) -> _T:
    """Return what must be there."""
    assert value is not None
    return value


def as_a(kind: type[_T], value: object) -> _T:
    """Return what must be of this kind."""
    assert isinstance(value, kind)
    return value


class Draw(Protocol):
    """What draws an example: the argument of a composite strategy, or `data.draw`."""

    def __call__(self, strategy: st.SearchStrategy[_T], /) -> _T: ...


def sweep(cases: Iterable[Any], every: int) -> list[Any]:
    """Return cases for `parametrize` of which each `every`-th is always run.

    The others keep watch at night (marked nightly), and a part of them with each commit. A tuple
    is one value for each of several names.
    """
    return [
        each if place % every == 0 else pytest.param(*_values(each), marks=pytest.mark.nightly)
        for place, each in enumerate(cases)
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


@dataclass(frozen=True)
class World:
    """A table and a claim about it."""

    dataset: Dataset
    claim: Claim
    seed: int = 0

    @property
    def facts(self) -> PublicFacts:
        return PublicFacts(self.dataset.records, self.dataset.schema, self.claim)

    def curator(self) -> Curator:
        return Curator(self.dataset, self.claim, seed=self.seed)


def claims(
    most: int = 4, universes: Sequence[Universe] = ("unbounded", "bounded")
) -> st.SearchStrategy[Claim]:
    """Unprotected, or IDP with a group size from 1 up."""
    return st.builds(
        lambda k, universe: idp(k, universe) if k else unprotected(universe),
        st.integers(0, most),
        st.sampled_from(universes),
    )


def leaking_claims(
    most: int = 3,
    universes: Sequence[Universe] = ("unbounded", "bounded"),
    bases: Sequence[str] = ("idp", "bdp"),
) -> st.SearchStrategy[Claim]:
    """Every mechanism whose noise gives data away, plain, rounded or always noisy.

    Rounding to 0 or 1 and constant noise are not combined: at a tiny loss nothing is left.
    """
    offsets: Sequence[float] = (0.0, 0.5, 1.0)
    posts: Sequence[Post] = ("none", "integer", "binary")
    parts = [(a, post) for a in offsets for post in posts if not (a and post == "binary")]
    return st.builds(
        lambda base, k, universe, part: claim_named(
            base, k if base == "idp" else 1, universe, offset=part[0], post=part[1]
        ),
        st.sampled_from(bases),
        st.integers(1, most),
        st.sampled_from(universes),
        st.sampled_from(parts),
    )


@st.composite
def attributes(
    draw: st.DrawFn, name: str, *, bounds: bool | None = None, most: int = 8
) -> Attribute:
    """A grid or categories; `bounds` says whether a grid has them, None leaves it open."""
    missing = draw(st.booleans())
    if draw(st.booleans()):
        fewest = 0 if missing else 1
        size = draw(st.integers(fewest, min(most, 5)))
        return Categories(name, tuple(f"v{each}" for each in range(size)), missing)
    if not (draw(st.booleans()) if bounds is None else bounds):
        return Grid(name, missing=missing)
    lower = draw(st.one_of(st.integers(-6, 6), st.sampled_from([-1000, LIMIT - 20, -LIMIT + 20])))
    step = draw(st.sampled_from([Decimal(1), Decimal(5)]))
    return Grid(name, "integer", step, lower, lower + draw(st.integers(0, most - 1)), missing)


@st.composite
def schemas(
    draw: st.DrawFn, *, bounds: bool | None = None, columns: int = 4, most: int = 8
) -> Schema:
    """One to four attributes."""
    return Schema(
        tuple(
            draw(attributes(f"a{place}", bounds=bounds, most=most))
            for place in range(draw(st.integers(1, columns)))
        )
    )


def values_of(attribute: Attribute, *, large: bool = True) -> st.SearchStrategy[int]:
    """Codes that fit an attribute: at the bounds often, missing sometimes."""
    if attribute.lower is None or attribute.upper is None:
        kinds = [st.integers(-6, 6)]
        if large:
            kinds += [
                st.sampled_from([-LIMIT + 1, LIMIT - 1, 10**12, -(10**6), 2**40]),
                st.integers(-LIMIT + 1, LIMIT - 1),
            ]
    elif attribute.upper < attribute.lower:
        return st.just(MISSING)
    else:
        kinds = [
            st.integers(attribute.lower, attribute.upper),
            st.sampled_from([attribute.lower, attribute.upper]),
        ]
    if attribute.missing:
        kinds.append(st.just(MISSING))
    return st.one_of(kinds)


@st.composite
def tables(
    draw: st.DrawFn, schema: Schema, *, fewest: int = 1, most: int = 12, large: bool = True
) -> Dataset:
    """A table that fits: free, with duplicates, all equal, or with constant columns."""
    size = draw(st.integers(fewest, max(most, fewest)))
    record = st.tuples(*(values_of(attribute, large=large) for attribute in schema))
    shape = draw(st.sampled_from(["free", "pool", "skewed", "equal", "constant"]))
    if shape == "free":
        rows = draw(st.lists(record, min_size=size, max_size=size))
    else:
        pool = draw(st.lists(record, min_size=1, max_size=1 if shape == "equal" else 4))
        if shape == "skewed":
            pool += [pool[0]] * 6
        rows = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
        if shape == "constant":
            place = draw(st.integers(0, len(schema) - 1))
            rows = [(*row[:place], rows[0][place], *row[place + 1 :]) for row in rows]
    return Dataset(schema, np.array(rows, np.int64))


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    bounds: bool | None = None,
    universes: Sequence[Universe] = ("unbounded", "bounded"),
    columns: int = 4,
    domain: int = 8,
    records: int = 12,
    most_k: int = 4,
    large: bool = True,
    claim: st.SearchStrategy[Claim] | None = None,
) -> World:
    """A table with at least 2k records and a claim about it."""
    made = draw(claims(most_k, universes) if claim is None else claim)
    bounds = True if made.universe == "bounded" else bounds
    schema = draw(schemas(bounds=bounds, columns=columns, most=domain))
    fewest = max(2 * (made.k or 0), 1)
    dataset = draw(tables(schema, fewest=fewest, most=records, large=large))
    return World(dataset, made, draw(st.integers(0, 3)))


def domain_of(attribute: Attribute, around: Iterable[int] = ()) -> list[int]:
    """All codes of an attribute; where bounds are not public, the given ones."""
    lower, upper = attribute.lower, attribute.upper
    codes = list(around) if lower is None or upper is None else list(range(lower, upper + 1))
    return [MISSING, *codes] if attribute.missing else codes


def rows_of(dataset: Dataset) -> list[tuple[int, ...]]:
    """Return the records as tuples of codes."""
    return [tuple(row) for row in dataset.codes.tolist()]


def coarse(code: int, width: int) -> int:
    """Return the low end of the coarse step of a code."""
    return code if code == MISSING else code // width * width


def inside(row: Sequence[int], box: dict[int, tuple[int, int]]) -> bool:
    """Tell whether a record lies in a box."""
    return all(low <= row[column] < high for column, (low, high) in box.items())


def boxes_of(batch: QueryBatch) -> list[list[dict[int, tuple[int, int]]]]:
    """Return, for each question, its boxes as {column: (low, high)}."""
    boxes = []
    for cell, column, low, high in zip(
        batch.cell.tolist(),
        batch.column.tolist(),
        batch.low.tolist(),
        batch.high.tolist(),
        strict=True,
    ):
        ends = zip(batch.cells.low[cell].tolist(), batch.cells.high[cell].tolist(), strict=True)
        box = dict(zip(batch.cells.columns, ends, strict=True))
        if column >= 0:
            box[column] = (low, high)
        boxes.append(box)
    if batch.offsets is None:
        return [[box] for box in boxes]
    ends_of = batch.offsets.tolist()
    return [boxes[start:end] for start, end in pairwise(ends_of)]


def table_truth(dataset: Dataset, columns: Sequence[int], widths: Sequence[int]) -> Multiset[Any]:
    """Return the records as a multiset, in the given order of columns and precision."""
    return Multiset(
        tuple(coarse(row[column], width) for column, width in zip(columns, widths, strict=True))
        for row in rows_of(dataset)
    )


def column_truth(rows: Iterable[Sequence[int]], column: int, width: int = 1) -> list[Any]:
    """Return the values of a column with their counts, sorted."""
    return sorted(Multiset(coarse(row[column], width) for row in rows).items())


def schedule_for(claim: Claim) -> Schedule:
    """Return a tiny loss for every answer, or none at all without protection."""
    return Fixed(EPSILON) if claim.protected else Free()


def attack_with(attack: Attack[Any], target: Any) -> Run[Any]:
    """Run an attack to its end, which no attack on a small world is far from."""

    def observe(meter: Meter, about: About) -> None:
        assert meter.rounds < 8_000, f"the attack does not end: {about.label}"

    ended = run(attack, target, schedule_for(target.facts.claim), observer=observe)
    assert ended.ending == "complete", ended.reason
    return ended


def overheard(attack: Attack[Any], hear: Callable[[QueryBatch], object]) -> Attack[Any]:
    """Run an attack and hear its batches: targets are not told what they are for."""
    try:
        batch = next(attack)
        while True:
            hear(batch)
            batch = attack.send((yield batch))
    except StopIteration as stop:
        return stop.value


def looking(attack: Attack[Any], looks: list[tuple[float, Any]]) -> Attack[Any]:
    """Run an attack and look before each round at what it says it has found."""
    return overheard(attack, lambda batch: looks.append((batch.about.done, batch.about.so_far())))


class Watched:
    """A target that passes everything on and remembers what was asked."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        self.batches: list[QueryBatch] = []

    @property
    def facts(self) -> PublicFacts:
        return self.curator.facts

    @property
    def ledger(self) -> Any:
        return self.curator.ledger

    @property
    def fingerprint(self) -> str:
        return self.curator.fingerprint

    def restore(self, answers: int, events: Iterable[Event]) -> None:
        self.curator.restore(answers, events)

    def answer(self, batch: QueryBatch) -> Answers:
        self.batches.append(batch)
        return self.curator.answer(batch)

    def thresholds(self) -> list[int]:
        return [each for batch in self.batches for each in batch.threshold.tolist()]

    def constant(self) -> list[Any]:
        """Return the questions whose predicate no record, or every record, can satisfy."""
        domains = [domain_of(attribute) for attribute in self.facts.schema]
        found = []
        for batch in self.batches:
            for union in boxes_of(batch):
                satisfying = sum(_share(box, domains) for box in union)
                if satisfying in (0, 1):
                    found.append(union)
        return found

    def overlapping(self) -> list[Any]:
        """Return the questions of which two boxes have a code in common."""
        return [
            union
            for batch in self.batches
            for union in boxes_of(batch)
            if any(_meet(one, other) for one, other in combinations(union, 2))
        ]

    def most_boxes(self) -> int:
        """Return how many boxes the longest question has."""
        return max((len(union) for batch in self.batches for union in boxes_of(batch)), default=0)


def _share(box: dict[int, tuple[int, int]], domains: Sequence[list[int]]) -> Fraction:
    """Return which share of all possible records lies in a box."""
    share = Fraction(1)
    for column, (low, high) in box.items():
        inside = sum(low <= code < high for code in domains[column])
        share *= Fraction(inside, len(domains[column]))
    return share


def _meet(one: dict[int, tuple[int, int]], other: dict[int, tuple[int, int]]) -> bool:
    """Tell whether some record could lie in both boxes."""
    return all(
        max(one[column][0], other[column][0]) < min(one[column][1], other[column][1])
        for column in one.keys() & other.keys()
    )


def one_column(values: Sequence[int], **grid: Any) -> Dataset:
    """Return a table of one whole-number attribute."""
    return Dataset(Schema((Grid("x", **grid),)), np.array(values, np.int64).reshape(-1, 1))


def told(facts: PublicFacts, batch: QueryBatch, answers: Answers, counts: Iterable[int]) -> Any:
    """Return what answers tell of each of these counts: log-likelihoods, a row a question."""
    each = np.array([list(counts)] * batch.questions)
    return row_loglik(facts.claim, each, batch.threshold, facts.records, answers)


def ranges(
    column: Sequence[int] | Codes,
    low: Sequence[int] | Codes,
    high: Sequence[int] | Codes,
    threshold: Sequence[int] | Codes,
    **rest: Any,
) -> QueryBatch:
    """Return a batch of ranges on columns of the whole table."""
    column, low, high, threshold = (
        np.array(each, np.int64) for each in (column, low, high, threshold)
    )
    cell = np.zeros(len(low), np.int64)
    return QueryBatch(Cells.everything(), cell, column, low, high, threshold, **rest)


def ends(*, around: int = 7) -> st.SearchStrategy[int]:
    """Range ends: small ones, infinite ones, those around missing values, large ones."""
    return st.one_of(
        st.integers(-around, around),
        st.sampled_from([MISSING, MISSING + 1, MISSING + 2, INFINITE, 0]),
        st.sampled_from([LIMIT, LIMIT - 1, -LIMIT, -LIMIT + 1, INFINITE - 1, 10**12]),
    )


def numbers(batches: Iterable[QueryBatch]) -> list[int]:
    """Return the numbers that the driver stamped on batches."""
    return [sure(batch.key)[1] for batch in batches]


def drawn(curator: Curator) -> int:
    """Return how many answers a curator has charged for."""
    return sum(event.queries for event in curator.ledger.events if isinstance(event, Spend))


def answered(search: Any, zone_at: Callable[[int, int, int], int]) -> tuple[Any, int]:
    """Run a search, answering each question by a function; return its result and the number."""
    zone, asked = None, 0
    while True:
        try:
            question = search.send(zone)
        except StopIteration as stop:
            return stop.value, asked
        asked += 1
        zone = zone_at(*question)


def shell(
    name: str, facts: PublicFacts, strategy: Strategy, *, care: Care | None = None, **wish: Any
) -> Attack[Any]:
    """Return an attack as any engine carries it out, by the engine of a strategy."""
    given = {key: value for key, value in wish.items() if value is not None}
    return SHELLS[name](strategy.engine(facts, care), Wish(**given))


def wished(attack: Any, facts: PublicFacts, care: Care | None = None, **given: Any) -> Any:
    """Return an attack of its own, as `Strategy.attack` does; what is None is as usual."""
    chosen = {name: value for name, value in given.items() if value is not None}
    return attack(facts, care or Care(), Wish(**chosen))
