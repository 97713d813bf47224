"""Every engine keeps the one contract: the same counts, values and limits, however it asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from thinveil.attacker.attacks.people import cells_of
from thinveil.attacker.engines.protocol import SOME, Cohorts, Engine, Hints
from thinveil.attacker.strategies import STRATEGIES, shape_of
from thinveil.attacker.terms import axes_of
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import UsageError
from thinveil.language.claims import Claim, claim_named
from thinveil.language.queries import About
from thinveil.language.schema import MISSING, Categories, Grid, Schema
from worlds import attack_with

SCHEMA = Schema(
    (Categories("job", ("a", "b", "c")), Grid("pay", missing=True), Grid("age", lower=0, upper=9))
)
ROWS = [[0, 5, 1], [0, 5, 2], [0, -9, 2], [1, MISSING, 7], [1, 40, 7], [2, 40, 9]]
DATA = Dataset(SCHEMA, np.array(ROWS))


@dataclass(frozen=True)
class Two:
    """A law that no zones describe: noise of two scales."""

    def at(self, count: Any, threshold: Any, records: int, epsilon: Any) -> Any:
        return np.where(np.abs(count - threshold) <= 1, 1.0, 0.3)

    def breakpoints(self, threshold: Any, records: int) -> Any:
        return np.stack([threshold - 2, threshold, threshold + 1], axis=1)


CLAIMS = {
    "exact": claim_named("idp"),
    "integer": claim_named("idp", post="integer"),
    "existence": claim_named("bdp"),
    "existence, always noisy": claim_named("bdp", offset=1.0),
    "a law": Claim("two", Two(), "laplace"),
}
ENGINES = [
    (what, name)
    for what, claim in CLAIMS.items()
    for name, strategy in STRATEGIES.items()
    if shape_of(claim) in strategy.engines and not (name == "linear" and what == "integer")
]
every_engine = pytest.mark.parametrize(("what", "name"), ENGINES)


def settled(what: str, name: str, ask: Any) -> Any:
    """Ask an engine against a fresh curator."""
    curator = Curator(DATA, CLAIMS[what], seed=3)
    engine: Engine = STRATEGIES[name].engine(curator.facts)
    assert engine.facts is curator.facts
    return attack_with(ask(engine), curator).found


def look(done: float, results: Any) -> About:
    assert 0 <= done <= 1
    return About("asking", done, lambda: list(results))


def people(jobs: list[int], *sizes: int) -> Cohorts:
    cells, _ = cells_of(Curator(DATA, CLAIMS["exact"]).facts, [{0: job} for job in jobs])
    return Cohorts(cells, np.arange(len(jobs)), np.array(sizes or [len(ROWS)] * len(jobs)))


@every_engine
def test_counts(what: str, name: str) -> None:
    groups = people([2, 0, 1, 0])
    for few in (False, True):
        found = settled(what, name, lambda engine, few=few: engine.count(groups, look, few))
        shown = CLAIMS[what].counts
        assert found.tolist() == ([1, 3, 2, 3] if shown else [SOME] * 4)
    if not CLAIMS[what].counts:
        with pytest.raises(UsageError, match="not how many"):
            settled(what, name, lambda engine: engine.more_than(groups, (0, 1), look))
        return
    told = settled(what, name, lambda engine: engine.more_than(groups, (0, 1, 2), look))
    assert told.tolist() == [
        [True, False, False], [True] * 3, [True, True, False], [True] * 3
    ]  # fmt: skip


@every_engine
def test_limits_hold_all_values(what: str, name: str) -> None:
    axes = axes_of(Curator(DATA, CLAIMS[what]).facts)
    job, pay, age = settled(what, name, lambda engine: engine.limits(axes, About("limits")))
    assert (job, age) == (axes[0], axes[2])
    assert pay.limits == (-64, 63)
    assert pay.missing


@pytest.mark.parametrize(
    # linear would walk down from the upper limit, step by step
    ("what", "name"),
    [each for each in ENGINES if each[1] != "linear"],
)
def test_values_of_people_come_group_by_group(what: str, name: str) -> None:
    axes = axes_of(Curator(DATA, CLAIMS[what]).facts)[1:]

    def values(engine: Engine) -> Any:
        hints = Hints(2)
        mine = yield from engine.limits(axes, About("limits"), hints)
        return (yield from engine.values(people([1, 0], 2, 3), mine, look, hints))

    found = settled(what, name, values)
    truth = [[(MISSING, 1), (40, 1)], [(7, 2)], [(-9, 1), (5, 2)], [(1, 1), (2, 2)]]
    if not CLAIMS[what].counts:
        truth = [[(value, 1) for value, _ in each] for each in truth]
    assert [sorted(each) for each in found] == truth
