"""The paper's experiments on the bank table, each a function that returns rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.likelihood import zones
from thinveil.attacker.strategies import strategy_named
from thinveil.attacker.terms import ABOVE, NOISY, Person
from thinveil.auditing.attempt import Attempt, curator_of
from thinveil.auditing.driver import Observer, Run
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import DEFAULT
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import idp
from thinveil.language.queries import batch_of
from thinveil.language.schema import Grid, Schema
from thinveil.paper import figures as paper
from thinveil.paper.rows import Row, Sheet, Whence
from thinveil.verdicts.judging.scoring import score

_STRATEGY = strategy_named("published")


def _run(
    data: Dataset,
    protected: bool,
    name: str,
    wish: Wish,
    observer: Observer = lambda meter, about: None,
    seed: int = 0,
) -> Run[Any]:
    """Run an attack of the paper on a fresh curator: k = 1, 1e-10 an answer, unbounded."""
    options = Options(mechanism="idp" if protected else "unprotected", seed=seed)
    curator = curator_of(data, options)
    schedule = options.schedule(curator.facts.claim)
    attack = _STRATEGY.attack(name, curator.facts, Care(), wish)
    return Attempt(curator, attack, schedule).run(observer).or_interrupt()


def membership(data: Dataset, observer: Observer, seed: int = 0) -> list[Row]:
    """How many queries decide whether a person is in the table."""
    who = unique_people(data)[0]
    rows = Sheet("membership")
    for protected, figure in paper.MEMBERSHIP.items():
        ended = _run(data, protected, "membership", Wish(people=[who]), observer, seed)
        assert ended.found.people[0].present is True
        rows.add("queries for one person", protected, figure, ended.meter.queries)
    return rows


def unique_people(data: Dataset) -> list[Person]:
    """Return what the attacker knows about those who are unique on the linking attributes."""
    columns = [data.schema.column(name) for name in paper.LINKING]
    cells, first, counts = np.unique(
        data.codes[:, columns], axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    return [
        dict(zip(columns, cells[place].tolist(), strict=True))
        for place in order.tolist()
        if counts[place] == 1
    ]


def targeting(data: Dataset, observer: Observer, seed: int = 0) -> list[Row]:
    """How many queries find the attributes of one person, on average."""
    people = unique_people(data)
    known = set(people[0])
    wanted = [column for column in range(len(data.schema)) if column not in known]
    balance = data.schema.column("balance")
    rows = Sheet("targeting")
    rows.add("people unique on five attributes", None, paper.UNIQUE_PEOPLE, len(people))
    wish = Wish(people=people, columns=wanted, alone=True, shortcut=False)
    for protected in (True, False):
        ended = _run(data, protected, "attribute", wish, observer, seed)
        _check_people(data, people, ended.found)
        one = int(ended.meter.by_column[balance]) / len(people)
        whole = ended.meter.queries / len(people)
        bit = one / paper.BALANCE_BITS
        rows.add("balance, queries a person", protected, paper.BALANCE, one, 1)
        rows.add("balance, to four digits", protected, paper.BALANCE_FINE, one, 4, whence="program")
        rows.add("balance, queries a bit", protected, paper.PER_BIT, bit, 1)
        rows.add("all 12 unknown attributes", protected, paper.RECORD, whole, 1)
        rows.add("all 12, to four digits", protected, paper.RECORD_FINE, whole, 4, whence="program")
    return rows


def _check_people(data: Dataset, people: list[Person], found: Any) -> None:
    """Make sure that the queries counted bought the right values."""
    columns = list(people[0])
    place = {tuple(row): i for i, row in enumerate(data.codes[:, columns].tolist())}
    for who, person in zip(people, found.people, strict=True):
        record = data.codes[place[tuple(who.values())]]
        for each in person.values:
            assert each.values == [(int(record[each.column]), 1)]


def columns(data: Dataset, observer: Observer, seed: int = 0) -> list[Row]:
    """How many queries reconstruct each attribute by itself."""
    names = [data.schema.column(name) for name in paper.ORDER]
    rows = Sheet("columns")
    for protected, figures in paper.COLUMNS.items():
        ended = _run(data, protected, "column", Wish(columns=names), observer, seed)
        for each in ended.found.columns:
            values, counts = np.unique(data.column(each.column), return_counts=True)
            assert each.values == list(zip(values.tolist(), counts.tolist(), strict=True))
        asked = _by_name(data, ended)
        for name, figure in figures.items():
            whence: Whence = "printed" if protected else "program"
            rows.add(name, protected, figure, asked[name], whence=whence)
        if protected:
            found = ended.found.columns
            distinct = {data.schema[each.column].name: len(each.values) for each in found}
            value, person = asked["balance"] / distinct["balance"], asked["balance"] / data.records
            rows.add("balance, queries a distinct value", True, paper.PER_VALUE, value, 0)
            rows.add("balance, queries a person", True, paper.PER_BALANCE, person, 0)
            for name, figure in paper.DISTINCT.items():
                rows.add(f"distinct values of {name}", None, figure, distinct[name])
    return rows


def _by_name(data: Dataset, ended: Run[Any]) -> dict[str, int]:
    """Return how many questions each attribute took."""
    return dict(zip(data.schema.names, ended.meter.by_column.tolist(), strict=False))


def dataset(data: Dataset, observer: Observer, seed: int = 0) -> list[Row]:
    """How many queries reconstruct the whole table."""
    order = [data.schema.column(name) for name in paper.ORDER]
    rows = Sheet("dataset")
    for protected, total in paper.DATASET.items():
        ended = _run(data, protected, "dataset", Wish(order=order), observer, seed)
        queries, trivial = ended.meter.queries, ended.meter.trivial
        person = queries / data.records
        element = person / len(data.schema)
        right = score(ended.found, data).recovered
        rows.add("total queries", protected, total, queries)
        rows.add("queries a person", protected, paper.PER_PERSON[protected], person, 1)
        rows.add("queries a data element", protected, paper.PER_ELEMENT[protected], element, 1)
        rows.add("records recovered", protected, data.records, right)
        if protected:
            rows.add("claimed privacy loss", True, paper.CLAIMED, float(ended.spent))
            asked = _by_name(data, ended)
            for name, figure in paper.DATASET_BY_ATTRIBUTE.items():
                rows.add(f"queries for {name}", True, figure, asked[name], whence="program")
        else:
            left = queries - trivial
            rows.add("trivial queries (erratum 8)", False, paper.TRIVIAL, trivial, whence="ours")
            rows.add("without them (erratum 8)", False, paper.WITHOUT_TRIVIAL, left, whence="ours")
    by_size = sorted(order, key=lambda column: data.schema[column].size or 0)
    asked_so = _run(data, True, "dataset", Wish(order=by_size), observer, seed).meter.queries
    name = "by public domain size (erratum 11)"
    rows.add(name, True, paper.BY_DOMAIN_SIZE, asked_so, whence="ours")
    return rows


def six_incomes() -> Dataset:
    """Return the table of the worked example."""
    return Dataset(Schema((Grid("income"),)), np.array(paper.INCOMES, np.int64)[:, None])


def staircase(k: int = 1, seed: int = 0) -> list[tuple[int, float, int]]:
    """Ask for incomes in [1, 10) at every threshold: threshold, answer, sensitivity shown."""
    curator = Curator(six_incomes(), idp(k), seed=seed)
    thresholds = list(range(curator.facts.records))
    batch = batch_of([([{0: (1, 10)}], b) for b in thresholds])
    answers = curator.answer(batch.stamped(("staircase", 1), float(DEFAULT)))
    shown = [int(zone == NOISY) for zone in zones(curator.facts.claim, answers)]
    return list(zip(thresholds, answers.values.tolist(), shown, strict=True))


def sensitivity(seed: int = 0) -> list[Row]:
    """The worked example: sensitivity against threshold, and the count it gives away."""
    steps = staircase(seed=seed)
    noisy = [threshold for threshold, _, shown in steps if shown]
    exact = {threshold: answer for threshold, answer, shown in steps if not shown}
    data = six_incomes()
    ended = _run(data, True, "count", Wish(box={0: (1, 10)}), seed=seed)
    whole = _run(data, True, "dataset", Wish(), seed=seed)
    incomes = np.repeat(whole.found.codes[:, 0], whole.found.counts)
    rows = Sheet("sensitivity")
    rows.add("thresholds with sensitivity 1", True, [1, 2], noisy)
    rows.add("answer at b = 0", True, ABOVE / 2, exact.get(0))
    rows.add("answer at b = 3", True, 0.0, exact.get(3))
    rows.add("people with an income in [1, 10)", True, 2, ended.found.count)
    rows.add("incomes recovered", True, list(paper.INCOMES), np.sort(incomes).tolist())
    return rows


EXPERIMENTS: Final[dict[str, Callable[[Dataset, Observer, int], list[Row]]]] = {
    "membership": membership,
    "targeting": targeting,
    "columns": columns,
    "dataset": dataset,
}
"""The experiments that need the bank table, by name."""
