"""Targets that lie: how often is each found out, and how often is an honest one accused?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from thinveil.auditing.attempt import attempt_on, checks_of
from thinveil.auditing.options import Options
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Dataset
from thinveil.language.claims import Claim, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Floats, QueryBatch
from thinveil.language.schema import Grid, Schema

HONEST: Final = (
    "bdp", "dp-laplace", "dp-smooth", "dp-textbook", "idp", "idp-binary", "idp-integer",
    "idp-noisy", "unprotected",
)  # fmt: skip
LEAKING: Final = ("bdp", "idp", "idp-binary", "idp-integer", "idp-noisy", "unprotected")


def table(seed: int, records: int = 12, top: int = 15, columns: int = 2) -> Dataset:
    """Return a small table of whole numbers, drawn evenly."""
    rng = np.random.default_rng([seed, records])
    schema = Schema(tuple(Grid(f"x{at}", lower=0, upper=top) for at in range(columns)))
    return Dataset(schema, rng.integers(0, top + 1, (records, columns)))


@dataclass(slots=True)
class Liar:
    """A target that claims one thing and does another.

    Args:
        facts: What it claims.
        does: What answers a batch; it is told how many answers were given before.
    """

    facts: PublicFacts
    does: Callable[[QueryBatch, int], Floats]
    given: int = field(default=0)

    def answer(self, batch: QueryBatch) -> Floats:
        """Answer as it does, not as it claims; it knows checks from attacks, the worst case."""
        values = self.does(batch, self.given)
        self.given += 0 if batch.about.check else batch.queries
        return values


def honestly(curator: Curator) -> Callable[[QueryBatch, int], Floats]:
    """Return what a curator does, as another's doing."""
    return lambda batch, given: curator.answer(batch).values


def claiming(claim: Claim, truth: Curator, more: int = 0) -> Liar:
    """Return a target that claims this and does that, with so many records more."""
    n = truth.facts.records + more
    return Liar(PublicFacts(n, truth.facts.schema, claim), honestly(truth))


def noise(seed: int, rate: float = 1.0) -> Callable[[QueryBatch, int], Floats]:
    """Answer by noise alone, of the claimed width."""
    rng = np.random.default_rng(seed)

    def draw(batch: QueryBatch, given: int) -> Floats:
        loss = 1.0 if batch.epsilon is None else np.max(batch.epsilon)
        return rng.laplace(0, rate / loss, batch.queries)

    return draw


def coins(seed: int) -> Callable[[QueryBatch, int], Floats]:
    """Answer by coins."""
    rng = np.random.default_rng(seed)
    return lambda batch, given: rng.integers(0, 2, batch.queries).astype(np.float64)


def always(value: float) -> Callable[[QueryBatch, int], Floats]:
    """Answer the same always."""
    return lambda batch, given: np.full(batch.queries, value)


def wider(truth: Curator, by: float) -> Callable[[QueryBatch, int], Floats]:
    """Answer with noise so many times as wide."""

    def answer(batch: QueryBatch, given: int) -> Floats:
        assert batch.key is not None
        assert batch.epsilon is not None
        return truth.answer(batch.stamped(batch.key, np.asarray(batch.epsilon) / by)).values

    return answer


def changing(before: Curator, after: Curator, given: int) -> Callable[[QueryBatch, int], Floats]:
    """Answer from another table after so many answers."""
    return lambda batch, so_far: (before if so_far < given else after).answer(batch).values


def length(name: str, options: Options, seed: int, claim: Claim) -> int:
    """Return how many answers an attack takes."""
    target = Curator(table(seed), claim, seed=seed)
    return attempt_on(target, options).run().meter.queries


Lie = tuple[str, str, Callable[[int], tuple[Any, Options]]]


def lies() -> Iterator[Lie]:
    """Yield each lie: its name, what is claimed, and what makes the target and the attack."""

    def options(name: str, **more: Any) -> Options:
        return Options(mechanism=name, **more)

    def lie(what: str, name: str, make: Callable[[int], Any], **more: Any) -> Lie:
        return what, name, lambda seed: (make(seed), options(name, **more))

    def honest(name: str, seed: int, **more: Any) -> Curator:
        return Curator(table(seed), claim_named(name, **more), seed=seed)

    def facts(name: str, seed: int) -> PublicFacts:
        return honest(name, seed).facts

    yield lie("pure noise", "bdp", lambda s: Liar(facts("bdp", s), noise(s)))
    yield lie("coins", "idp-binary", lambda s: Liar(facts("idp-binary", s), coins(s)))
    yield lie(
        "noise twice as wide", "idp-noisy",
        lambda s: Liar(facts("idp-noisy", s), wider(honest("idp-noisy", s), 2)),
    )  # fmt: skip
    for name in ("idp", "idp-binary", "idp-integer", "idp-noisy"):
        yield lie("k = 2 sold as k = 1", name,
                  lambda s, name=name: claiming(claim_named(name), honest(name, s, k=2)))  # fmt: skip
        yield lie("n one too large", name,
                  lambda s, name=name: claiming(claim_named(name), honest(name, s), 1))  # fmt: skip
    yield lie("honest Laplace noise, strategy posterior", "idp",
              lambda s: claiming(claim_named("idp"), honest("dp-laplace", s)),
              strategy="posterior")  # fmt: skip
    yield lie("honest Laplace noise, membership", "idp",
              lambda s: claiming(claim_named("idp"), honest("dp-laplace", s)),
              attack="membership", people=({"x0": "3", "x1": "4"},))  # fmt: skip
    yield lie("honest Laplace noise", "idp-noisy",
              lambda s: claiming(claim_named("idp-noisy"), honest("dp-laplace", s)))  # fmt: skip
    for value in (0.0, 1.0, 0.5):
        for name in LEAKING:
            yield lie(f"always {value:g}", name,
                      lambda s, name=name, value=value: Liar(facts(name, s), always(value)))  # fmt: skip
    for name in LEAKING:
        def half(s: int, name: str = name) -> Liar:
            claim = claim_named(name)
            some = length(name, options(name), s, claim) // 2
            one, other = (Curator(table(each), claim, seed=each) for each in (s, s + 10**6))
            return Liar(one.facts, changing(one, other, some))

        yield lie("another table half-way", name, half)


def tried(lie: Lie, seeds: range) -> tuple[int, int, int]:
    """Return how often a lie was found out, in how many runs, and the answers of all."""
    caught = answers = 0
    for seed in seeds:
        target, options = lie[2](seed)
        ended = attempt_on(target, options).run()
        caught += ended.ending == "broken"
        answers += ended.meter.drawn
    return caught, len(seeds), answers
