"""What all runs of a comparison share: which mechanisms, how they are sorted, and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from thinveil.attacker.evidence.error_budget import MOST_REPEATS, USUAL_ERROR
from thinveil.auditing.driver import Meter, Observer
from thinveil.auditing.entries import USUAL_CONFIDENCE
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import DEFAULT
from thinveil.curator.tables.dataset import Dataset
from thinveil.errors import PluginError
from thinveil.language.claims import MECHANISMS, claim_named
from thinveil.language.facts import PublicFacts
from thinveil.language.plugins import mechanism_names
from thinveil.language.queries import About
from thinveil.verdicts.typed import Mark

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
        confidence: How sure intervals and bounds are.
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

    def options(self, mechanism: str, **more: Any) -> Options:
        """Return the options of one run against a mechanism."""
        claim = claim_named(mechanism)
        same = ("universe", "seed", "error", "most_repeats", "confidence")
        usual: dict[str, Any] = {name: getattr(self, name) for name in same}
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
