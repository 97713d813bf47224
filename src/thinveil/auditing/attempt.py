"""The one place where an attack meets a curator of ours, or whatever else answers.

Audits, trials, comparisons, staircases, the paper's experiments and the lab all come through here.
They differ in what they hand in: who holds the table, the attack, caps, seeds and observers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Generic, TypeVar

from thinveil.attacker.findings import Found
from thinveil.attacker.strategies import LEARNING
from thinveil.attacker.terms import Attack, Person
from thinveil.auditing.attacks import attack_on, checks_on, planned, trial_on
from thinveil.auditing.driver import Observer, Run, run
from thinveil.auditing.options import Options
from thinveil.auditing.schedule import Schedule
from thinveil.auditing.targets import Target, round_seconds
from thinveil.auditing.transcript import Header, Transcript
from thinveil.curator.counting.scan import Counter
from thinveil.curator.curator import Curator
from thinveil.curator.tables.dataset import Held
from thinveil.language.claims import Claim

_T = TypeVar("_T")
DEAR: Final = 0.1
"""Seconds a round from which on fewer rounds are worth some more questions."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt(Generic[_T]):
    """A fresh attack that is ready to be run against a target, once.

    The cap is on its claimed loss, whatever cap the target has itself.
    """

    target: Target
    attack: Attack[_T]
    schedule: Schedule
    cap: Fraction | None = None

    def run(
        self,
        observer: Observer = lambda meter, about: None,
        transcript: Transcript | None = None,
    ) -> Run[_T]:
        """Run the attack; what was asked is kept in the transcript, which stays open."""
        what = (self.attack, self.target, self.schedule)
        return run(*what, transcript=transcript, cap=self.cap, observer=observer)


def curator_of(
    held: Held,
    options: Options,
    claim: Claim | None = None,
    counter: Counter | None = None,
    seed: int | None = None,
) -> Curator:
    """Return a fresh curator of a table, as the options describe it.

    A claim stands for the mechanism where the options do not name it. What counts the table's
    records is given where it is at hand, and a seed where it is another than that of the options.
    """
    return Curator(
        held,
        options.claim() if claim is None else claim,
        seed=options.seed if seed is None else seed,
        cap=options.cap_value(),
        counter=counter,
        policies=options.policies(),
    )


def attempt_on(target: Target, options: Options, *, ours: bool = False) -> Attempt[Found]:
    """Return the attack that the options ask for, ready to be run against a target.

    A curator behind it is `ours` if it runs in this process, so that its logarithms are ours.

    Raises:
        UsageError: Something asked for does not fit the target.
    """
    facts = target.facts
    ours = ours or isinstance(target, Curator)
    checks = checked(target, options, ours)
    options = planned(options, facts, checks)
    attack = attack_on(options, facts, 0 if ours else 1, checks=checks)
    return Attempt(target, attack, options.schedule(facts.claim), options.cap_value())


def paced(options: Options, target: Target) -> Options:
    """Return options that say how dear rounds are, where that was left open.

    What was decided stands in the record of a run, so that it goes on as it began; there, as for
    whoever does not come through here, `auto` is as good as `usual`.
    """
    dear = options.rounds == "auto" and round_seconds(target) >= DEAR
    return replace(options, rounds="few") if dear and options.strategy in LEARNING else options


def checked(target: Target, options: Options, ours: bool = False) -> bool:
    """Tell whether an attack also checks its target: unless told, one that is not ours."""
    if options.checks is None:
        return not (ours or isinstance(target, Curator))
    return options.checks == "on"


def checks_of(target: Target, options: Options) -> Attempt[None]:
    """Return checks of whether a target does what it claims, ready to be run, and no attack."""
    facts = target.facts
    attack = checks_on(options, facts)
    return Attempt(target, attack, options.schedule(facts.claim), options.cap_value())


def trial_of(target: Target, options: Options, person: Person) -> Attempt[float]:
    """Return one trial of membership, ready to be run against a target.

    Raises:
        UsageError: The target is not what its description says.
    """
    facts = target.facts
    attack = trial_on(options, facts, person)
    return Attempt(target, attack, options.schedule(facts.claim), options.cap_value())


def hashed(
    attempt: Attempt[_T], observer: Observer = lambda meter, about: None, mark: str = ""
) -> Run[_T]:
    """Run an attempt; what was asked and answered is hashed, and kept nowhere."""
    recorded = Transcript(Header(mark, {}))
    try:
        return attempt.run(observer, recorded)
    finally:
        recorded.close()


def once(
    curator: Curator, options: Options, observer: Observer = lambda meter, about: None
) -> Run[Found]:
    """Run the attack that the options ask for against a fresh curator; hash what was asked."""
    return hashed(attempt_on(curator, options), observer, curator.fingerprint)
