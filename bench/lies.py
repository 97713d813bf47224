"""Targets that lie: how often is each found out, and how often is an honest one accused?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from bench.sheets import Caught
from thinveil.attacker.findings import Found
from thinveil.auditing.attempt import attempt_on
from thinveil.auditing.driver import Meter, Run
from thinveil.auditing.options import Options
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Claim, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Floats, QueryBatch
from thinveil.language.schema import Grid, Schema
from thinveil.verdicts.judging.intervals import at_least

LEAKING: Final = ("bdp", "idp", "idp-binary", "idp-integer", "idp-noisy", "unprotected")
RUNS: Final = {"noise": (3000, 30), "exact": (300, 30), "half-way": (100, 3), "honest": (25, 3)}
"""Attacks on each target, all and for a quick look: where noise is weighed, where answers are
exact, where the table changes, and on honest ones."""
LEVEL: Final = 0.05
HONEST: Final = (*LEAKING, "dp-laplace", "dp-smooth", "dp-textbook")

Doing = Callable[[QueryBatch, int], Floats]
"""What answers a batch after so many answers."""


def table(seed: int, records: int = 12, top: int = 15, columns: int = 2) -> Dataset:
    """Return a small table of whole numbers, drawn evenly."""
    rng = np.random.default_rng([seed, records])
    schema = Schema(tuple(Grid(f"x{at}", lower=0, upper=top) for at in range(columns)))
    return Dataset(schema, rng.integers(0, top + 1, (records, columns)))


def honest(name: str, seed: int, **more: Any) -> Curator:
    """Return a curator of such a table that does what it claims."""
    return Curator(table(seed), claim_named(name, **more), seed=seed)


@dataclass(slots=True)
class Liar:
    """A target that claims one thing and does another."""

    facts: PublicFacts
    does: Doing
    given: int = field(default=0)

    def answer(self, batch: QueryBatch) -> Floats:
        """Answer as it does, not as it claims."""
        values = self.does(batch, self.given)
        self.given += batch.queries
        return values


def behind(truth: Curator, claim: Claim | None = None, more: int = 0) -> Liar:
    """Return a curator as somebody else's target, which may claim otherwise, or more records."""
    known = truth.facts
    facts = PublicFacts(known.records + more, known.schema, claim or known.claim, known.policies)
    return Liar(facts, lambda batch, given: truth.answer(batch).values)


def sold(name: str, as_name: str, seed: int, more: int = 0, **really: Any) -> Liar:
    """Return a target that is one mechanism and claims another, or so many records more."""
    return behind(honest(name, seed, **really), claim_named(as_name), more)


def noise(name: str, seed: int) -> Liar:
    """Return a target that answers by noise alone, of the claimed width."""
    rng = np.random.default_rng(seed)

    def draw(batch: QueryBatch, given: int) -> Floats:
        loss = 1.0 if batch.epsilon is None else np.max(batch.epsilon)
        return rng.laplace(0, 1 / loss, batch.queries)

    return Liar(honest(name, seed).facts, draw)


def coins(name: str, seed: int) -> Liar:
    """Return a target that answers by coins."""
    rng = np.random.default_rng(seed)
    facts = honest(name, seed).facts
    return Liar(facts, lambda batch, given: rng.integers(0, 2, batch.queries).astype(float))


def always(name: str, value: float, seed: int) -> Liar:
    """Return a target that answers the same always."""
    return Liar(honest(name, seed).facts, lambda batch, given: np.full(batch.queries, value))


def wider(name: str, by: float, seed: int) -> Liar:
    """Return a target whose noise is so many times as wide as it claims."""
    truth = honest(name, seed)

    def answer(batch: QueryBatch, given: int) -> Floats:
        assert batch.key is not None
        assert batch.epsilon is not None
        return truth.answer(batch.stamped(batch.key, batch.epsilon / by)).values

    return Liar(truth.facts, answer)


def changing(name: str, seed: int) -> Liar:
    """Return a target that answers from another table once half of an attack is answered."""
    drawn: list[tuple[int, int]] = []

    def watch(meter: Meter, about: About) -> None:
        drawn.append((meter.queries, meter.drawn))

    attempt_on(behind(honest(name, seed)), Options(mechanism=name)).run(watch)
    half = next(all_ for queries, all_ in drawn if 2 * queries >= drawn[-1][0])
    one, other = honest(name, seed), honest(name, seed + 10**6)
    return Liar(
        one.facts, lambda batch, given: (one if given < half else other).answer(batch).values
    )


@dataclass(frozen=True, slots=True)
class Lie:
    """A lie: what is really done, what is claimed, and the target for a seed."""

    what: str
    claim: str
    make: Callable[[int], Liar]
    more: dict[str, Any] = field(default_factory=dict)

    def run(self, seed: int, **more: Any) -> Run[Found]:
        """Attack the target once."""
        options = Options(mechanism=self.claim, **self.more, **more)
        return attempt_on(self.make(seed), options).run()


def lies() -> Iterator[Lie]:
    """Yield all lies."""
    yield Lie("pure noise", "bdp", partial(noise, "bdp"))
    yield Lie("pure noise", "idp-noisy", partial(noise, "idp-noisy"))
    yield Lie("coins", "idp-binary", partial(coins, "idp-binary"))
    yield Lie("noise twice as wide", "idp-noisy", partial(wider, "idp-noisy", 2))
    yield Lie("noise half as wide", "idp-noisy", partial(wider, "idp-noisy", 0.5))
    for name in ("idp", "idp-binary", "idp-integer", "idp-noisy"):
        yield Lie("k = 2 sold as k = 1", name, partial(sold, name, name, k=2))
        yield Lie("n one too large", name, partial(sold, name, name, more=1))
    person = {"attack": "membership", "people": ({"x0": "3", "x1": "4"},)}
    laplace = partial(sold, "dp-laplace", "idp")
    yield Lie("honest noise, strategy posterior", "idp", laplace, {"strategy": "posterior"})
    yield Lie("honest noise, membership", "idp", laplace, person)
    yield Lie("honest noise", "idp-noisy", partial(sold, "dp-laplace", "idp-noisy"))
    for value in (0.0, 1.0, 0.5):
        for name in LEAKING:
            yield Lie(f"always {value:g}", name, partial(always, name, value))
    for name in LEAKING:
        yield Lie("another table half-way", name, partial(changing, name))


def counted(what: str, claim: str, runs: Iterable[Run[Found]], bar: float) -> Caught:
    """Run attacks and count how many say that the claim is broken."""
    ended = list(runs)
    broken, many = sum(each.ending == "broken" for each in ended), len(ended)
    least = at_least(broken, many, LEVEL)
    most = 1 - at_least(many - broken, many, LEVEL)
    checks, queries = (
        fmean(getattr(each.meter, name) for each in ended) for name in ("checks", "queries")
    )
    return Caught(what, claim, many, broken, least, most, checks, queries, bar)


def liars(path: Path, quick: bool) -> list[Caught]:
    """Attack each liar many times."""
    rows = []
    for lie in lies():
        kind = "noise" if lie.claim == "idp-noisy" and "always" not in lie.what else "exact"
        many = RUNS["half-way" if "half-way" in lie.what else kind][quick]
        rows.append(counted(lie.what, lie.claim, map(lie.run, range(many)), 0.999))
    return rows


def honest_ones(path: Path, quick: bool) -> list[Caught]:
    """Attack honest targets many times, at the usual error and at a large one."""
    rows = []
    for error in ("1e-6", "0.2"):
        for name in HONEST:
            runs = (
                attempt_on(behind(honest(name, seed)), Options(mechanism=name, error=error)).run()
                for seed in range(RUNS["honest"][quick])
            )
            rows.append(counted(f"honest, --error {error}", name, runs, float(error)))
    return rows
