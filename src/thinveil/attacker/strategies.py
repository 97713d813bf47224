"""Strategies by name: which engine finds counts and values, and which attacks are its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from thinveil.attacker.attacks import (
    distinct_table,
    learned_people,
    learned_table,
    noisy_table,
    people,
    table,
)
from thinveil.attacker.attacks.distinct_searches import Existence
from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.engines import linear, published
from thinveil.attacker.engines.any_law import AnyLaw
from thinveil.attacker.engines.coroutines import Coroutines, Kit
from thinveil.attacker.engines.posterior.engine import Posterior
from thinveil.attacker.engines.protocol import Engine
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.terms import Attack
from thinveil.errors import UsageError
from thinveil.language import plugins
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts

Shape = Literal["zones", "presence", "law"]
"""What a claim shows: counts by zones of noise, which records exist, or a law of its own."""
Own = Callable[[PublicFacts, Care, Wish], Attack[Any]]

SHELLS: Final[Mapping[str, Callable[[Engine, Wish], Attack[Any]]]] = {
    "attribute": people.attributes,
    "column": table.columns,
    "count": table.count,
    "dataset": table.table,
    "membership": people.membership,
    "uniqueness": people.uniqueness,
}
"""The attacks by name, as any engine carries them out."""


def shape_of(claim: Claim) -> Shape:
    """Return what a claim shows, which decides how it is attacked."""
    if not claim.zoned:
        return "law"
    return "zones" if claim.counts else "presence"


@dataclass(frozen=True, slots=True)
class Strategy:
    """How attacks are carried out: by which engines, and which attacks are a strategy's own.

    Args:
        name: As on the command line.
        engines: For each shape of claims that the strategy can read, what makes its engine.
        attacks: By shape and name, attacks of its own in place of those over an engine.
        instead: For shapes that it cannot read, the strategy that it gives way to.
    """

    name: str
    engines: Mapping[Shape, Callable[[PublicFacts, Care], Engine]]
    attacks: Mapping[tuple[Shape, str], Own] = field(default_factory=dict)
    instead: Mapping[Shape, str] = field(default_factory=dict)

    def engine(self, facts: PublicFacts, care: Care | None = None) -> Engine:
        """Return the engine against a mechanism."""
        return self.engines[shape_of(facts.claim)](facts, care or Care())

    def attack(self, name: str, facts: PublicFacts, care: Care, wish: Wish) -> Attack[Any]:
        """Return an attack by its name."""
        own = self.attacks.get((shape_of(facts.claim), name))
        if own is not None:
            return own(facts, care, wish)
        return SHELLS[name](self.engine(facts, care), wish)


# -- attacks that learn --------------------------------------------------------------------


def _settled_or_weighed(settled: Own, weighed: Own) -> Own:
    """Return an attack that goes another way where single answers tell little."""

    def attack(facts: PublicFacts, care: Care, wish: Wish) -> Attack[Any]:
        return (settled if facts.claim.reads_exactly else weighed)(facts, care, wish)

    return attack


def _by_posterior(name: str) -> Own:
    """Return an attack that carries evidence, which saves more than learning."""
    return lambda facts, care, wish: SHELLS[name](_posterior(facts, care), wish)


# -- strategies ----------------------------------------------------------------------------


_PUBLISHED: Final = Kit(
    "published",
    published.count,
    published.values,
    published.only,
    published.most_queries,
    asks_twice=True,
)
_LINEAR: Final = Kit(
    "linear", linear.count, linear.values, linear.only, linear.most_queries, lengthy=True
)


def _posterior(facts: PublicFacts, care: Care) -> Engine:
    return Posterior(facts, care, replace(_PUBLISHED, name="posterior", asks_twice=False))


def _learning(name: str) -> Strategy:
    return Strategy(
        name,
        {"zones": published.evenly, "presence": Existence},
        {
            ("zones", "dataset"): _settled_or_weighed(learned_table.table, noisy_table.table),
            ("zones", "column"): _settled_or_weighed(
                learned_table.columns, _by_posterior("column")
            ),
            ("zones", "attribute"): _settled_or_weighed(
                learned_people.attributes, _by_posterior("attribute")
            ),
            ("presence", "dataset"): distinct_table.table,
            ("presence", "column"): distinct_table.columns,
        },
        {"law": "posterior"},
    )


STRATEGIES: Final = {
    "adaptive": _learning("adaptive"),
    "linear": Strategy("linear", {"zones": partial(Coroutines, kit=_LINEAR)}),
    "posterior": Strategy("posterior", {"zones": _posterior, "law": AnyLaw}),
    "published": Strategy("published", {"zones": partial(Coroutines, kit=_PUBLISHED)}),
    "thrifty": _learning("thrifty"),
}
"""All built-in strategies by name, sorted."""

SETTLING: Final = ("linear", "published")
"""The strategies that settle each question by itself, so that a test of the paper may do it."""
LEARNING: Final = ("adaptive", "thrifty")
"""The strategies that learn, and can ask more at once where rounds are dear."""
USUAL: Final = "adaptive"
"""The strategy where the user names none."""


def strategy_for(name: str, claim: Claim) -> str:
    """Return the name of the strategy used against a mechanism.

    Against a law of its own those that learn give way to `posterior`.

    Raises:
        UsageError: The strategy counts, and the mechanism shows no counts; or it reads zones,
            and the mechanism has none.
    """
    strategy, shape = strategy_named(name), shape_of(claim)
    if shape in strategy.engines:
        return strategy.name
    if shape in strategy.instead:
        return strategy.instead[shape]
    why = {
        "law": "has a law of its own, which this strategy cannot read; use posterior",
        "presence": "shows which records exist, not counts; use adaptive or thrifty",
        "zones": "shows counts, which this strategy does not look for",
    }
    raise UsageError(f"--strategy {name}: the mechanism {claim.name} {why[shape]}")


def strategy_names() -> tuple[str, ...]:
    """Return the names of all strategies there are: built-in ones, then those of plug-ins."""
    found = (name for name, _ in plugins.found(plugins.STRATEGY_GROUP))
    return (*STRATEGIES, *(name for name in found if name not in STRATEGIES))


def strategy_named(name: str) -> Strategy:
    """Return a strategy by its name; plug-ins are looked for where none of ours has it.

    Raises:
        UsageError: There is no such strategy.
        PluginError: A plug-in's cannot be loaded, or is none.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    if name not in strategy_names():
        raise UsageError(
            f"there is no strategy {name!r}; choose from {', '.join(strategy_names())}"
        )
    return plugged(name)


def plugged(name: str) -> Strategy:
    """Return a plug-in's strategy.

    Raises:
        PluginError: It cannot be loaded, is none, or its name is taken.
    """
    made = plugins.made(plugins.STRATEGY_GROUP, name, tuple(STRATEGIES), Strategy)
    return replace(made, name=name)
