"""What all runs of a comparison share: which mechanisms, how they are sorted, and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Annotated, Any, Final

from thinveil.attacker.evidence.error_budget import MOST_REPEATS, USUAL_ERROR
from thinveil.auditing.driver import Meter, Observer
from thinveil.auditing.entries import USUAL_CONFIDENCE, confidence_of
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import DEFAULT
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import PluginError
from thinveil.language.claims import MECHANISMS, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.plugins import mechanism_names
from thinveil.language.queries import About
from thinveil.verdicts.typed import Mark

STATEMENTS: Final = 6
"""What a comparison says of each mechanism with an interval or a bound: of membership the share
of right guesses, both rates, epsilon and the trade-off; of attributes the share."""
USUAL_PEOPLE: Final = 40
"""How many people a comparison tries its attacks on, unless told otherwise."""


def _by_kind(name: str) -> tuple[bool, bool, bool, bool, str]:
    claim = claim_named(name)
    return claim.protected, not claim.leaks, claim.control, not claim.counts, name


ORDER: Final = tuple(sorted(MECHANISMS, key=_by_kind))
"""All built-in mechanisms: no protection, noise that depends on the data, drawn in doubles, honest.
"""


def all_in_order() -> tuple[tuple[str, ...], list[str]]:
    """Return all mechanisms there are, plug-ins among them, and what is wrong with the others."""
    sound, wrong = [], []
    for name in mechanism_names():
        try:
            claim_named(name)
            sound.append(name)
        except PluginError as error:
            wrong.append(f"{name} is left out: {error}")
    return in_order(sound), wrong


def in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Sort mechanisms by kind."""
    return tuple(sorted(dict.fromkeys(names), key=_by_kind))


@dataclass(frozen=True, slots=True)
class Settings:
    """What all runs of a comparison share.

    Args:
        people: How many people membership and attribute inference are tried on, at most.
        linking: The attributes by which people are known; found out unless given.
        error: The chance of any wrong decision in a run, where answers must be repeated.
        confidence: How sure all intervals and bounds of the comparison are together.
    """

    mechanisms: Annotated[tuple[str, ...], Mark("asked_for")] = ORDER
    people: int = USUAL_PEOPLE
    linking: tuple[str, ...] = ()
    epsilon_per_query: str = DEFAULT
    k: int = 1
    universe: str = "unbounded"
    seed: int = 0
    error: str = str(USUAL_ERROR)
    most_repeats: int = MOST_REPEATS
    confidence: str = USUAL_CONFIDENCE

    @property
    def statements(self) -> int:
        """How many intervals and bounds the comparison has, where all of it can be run."""
        return STATEMENTS * len(self.mechanisms)

    @property
    def confidence_each(self) -> float:
        """How sure each of them is by itself, so that all hold together (Bonferroni).

        >>> Settings(mechanisms=("idp", "bdp")).confidence_each
        0.999917
        """
        error = (1 - Decimal(str(confidence_of(self.confidence)))) / self.statements
        return float(1 - Context(prec=2, rounding=ROUND_FLOOR).plus(error))

    def options(self, mechanism: str, **more: Any) -> Options:
        """Return the options of one run against a mechanism."""
        claim = claim_named(mechanism)
        same = ("universe", "seed", "error", "most_repeats")
        usual: dict[str, Any] = {name: getattr(self, name) for name in same}
        usual["confidence"] = str(self.confidence_each)
        if claim.k is not None:
            usual["k"] = self.k
        if claim.protected and "epsilon" not in more:
            usual["epsilon_per_query"] = self.epsilon_per_query
        return Options(mechanism=mechanism, **{**usual, **more})

    def facts(self, mechanism: str, data: Dataset) -> PublicFacts:
        """Return what is public about a target, or refuse what no attack can be exact on."""
        return PublicFacts(data.records, data.schema, self.options(mechanism).claim())


def within(observer: Observer, name: str, done: float, part: float) -> Observer:
    """Return an observer that sees one run as a part of the whole."""

    def observe(meter: Meter, about: About) -> None:
        label = f"{name}: {about.label}"
        observer(meter, replace(about, label=label, done=done + part * about.done))

    return observe
