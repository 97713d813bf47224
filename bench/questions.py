"""How few questions: whole tables and single people, as a user asks for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.bank import bank
from bench.bars import Asked, Person
from bench.figures import peak_memory, watch
from bench.mechanisms import wrong_records
from thinveil import Curator, Dataset, PublicFacts, audit, idp
from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.engines.unions import Thrift
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.findings import PeopleFound
from thinveil.attacker.strategies import strategy_named
from thinveil.attacker.terms import Attack
from thinveil.attacker.terms import Person as Known
from thinveil.auditing.driver import run
from thinveil.auditing.schedule import DEFAULT, Fixed, exact_epsilon
from thinveil.paper.experiments import unique_people
from thinveil.paper.figures import ORDER

QUICK_RECORDS = 1_000


def whole(path: Path, quick: bool, strategy: str, mechanism: str, *settings: str) -> list[Asked]:
    """Reconstruct the whole table once; settings are those of `audit`, as name=value."""
    chosen = {name: json.loads(value) for name, _, value in (s.partition("=") for s in settings)}
    data = bank(path, quick, QUICK_RECORDS)
    order = ORDER if strategy == "published" else ()
    with watch() as took:
        verdict = audit(data, strategy=strategy, mechanism=mechanism, order=order, **chosen)
    peak = peak_memory()
    meter = verdict.run.meter
    assert verdict.bits is not None
    return [
        Asked(
            strategy,
            mechanism,
            chosen.get("k", 1),
            _variant(chosen),
            verdict.options.seed,
            meter.queries,
            meter.rounds,
            took.seconds,
            peak,
            verdict.bits,
            wrong_records(verdict, data),
        )
    ]


def _variant(chosen: dict[str, Any]) -> str:
    """Name what differs from the usual dials."""
    return "boxes only" if chosen.get("boxes_only") else "high effort" if "effort" in chosen else ""


def person(path: Path, quick: bool, strategy: str) -> list[Person]:
    """Find attributes of everybody who is unique on five others, and tell members from others.

    Everybody is known to be in the table, and alone: the paper's setting.
    """
    data = bank(path, quick)
    known = unique_people(data)
    unknown = [column for column in range(len(data.schema)) if column not in known[0]]
    balance = data.schema.column("balance")
    making = _making(strategy)
    return [
        _attributes(data, strategy, "balance", known, [balance], making),
        _attributes(data, strategy, f"all {len(unknown)}", known, unknown, making),
        _membership(data, strategy, known),
    ]


Making = Callable[[PublicFacts, list[Known], list[int]], Attack[PeopleFound]]


def _making(name: str) -> Making:
    """Return what makes the attack of a strategy."""
    strategy = strategy_named(name)
    thrift = Thrift() if name == "thrifty" else None

    def making(facts: PublicFacts, known: list[Known], wanted: list[int]) -> Attack[PeopleFound]:
        wish = Wish(people=known, columns=wanted, alone=True, shortcut=False, thrift=thrift)
        return strategy.attack("attribute", facts, Care(), wish)

    return making


def _attributes(
    data: Dataset,
    strategy: str,
    what: str,
    known: list[Known],
    wanted: list[int],
    making: Making,
) -> Person:
    curator = Curator(data, idp())
    with watch() as took:
        ended = run(making(curator.facts, known, wanted), curator, Fixed(exact_epsilon(DEFAULT)))
    if ended.ending != "complete":
        raise AssertionError(f"the attack did not end: {ended.ending} {ended.reason}")
    columns = list(known[0])
    row = {tuple(codes): place for place, codes in enumerate(data.codes[:, columns].tolist())}
    wrong = 0
    for who, found in zip(known, ended.found.people, strict=True):
        truth = data.codes[row[tuple(who.values())]]
        right = [(column, [(int(truth[column]), 1)]) for column in wanted]
        wrong += sorted((each.column, each.values) for each in found.values) != sorted(right)
    meter = ended.meter
    return Person(strategy, what, len(known), meter.queries, meter.rounds, took.seconds, int(wrong))


def _membership(data: Dataset, strategy: str, known: list[Known]) -> Person:
    """Ask whether people are in the table, half of whom are not."""
    columns = list(known[0])
    there = {tuple(codes) for codes in data.codes[:, columns].tolist()}
    rng = np.random.default_rng(0)
    strangers: dict[tuple[int, ...], None] = {}
    while len(strangers) < len(known):
        mixed = tuple(int(rng.choice(data.column(column))) for column in columns)
        if mixed not in there:
            strangers[mixed] = None
    asked = [tuple(who.values()) for who in known] + list(strangers)
    names = [data.schema[column].name for column in columns]
    values = [
        {
            name: data.schema[column].decode(code)
            for name, column, code in zip(names, columns, codes, strict=True)
        }
        for codes in asked
    ]
    with watch() as took:
        verdict = audit(data, attack="membership", known=values, strategy=strategy)
    found = verdict.run.found
    assert isinstance(found, PeopleFound)
    wrong = sum(
        each.present != (codes in there) for codes, each in zip(asked, found.people, strict=True)
    )
    meter = verdict.run.meter
    return Person(
        strategy, "membership", len(asked), meter.queries, meter.rounds, took.seconds, wrong
    )
