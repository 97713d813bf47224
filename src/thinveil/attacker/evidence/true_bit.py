"""Reading the true bit instead of the noise, where a large loss leaves noise too small.

A rounded mechanism at a loss of several units an answer gives the true bit nearly always:
whether there was noise no longer shows, and what the noise was to protect does. The same
attacks then run as they would against honest noise, by the bit alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from thinveil.attacker.terms import Attack
from thinveil.errors import Undecided
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Floats
from thinveil.language.shapes import EVEN, Sensitivity

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Seen:
    """A sensitivity of which only the true bit is looked at. Conforms to `Sensitivity`.

    Counts next to the threshold stand for all on their side: farther ones are no noisier.
    """

    shape: ClassVar = EVEN

    real: Sensitivity

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return the sensitivity as it is."""
        return self.real.at(count, threshold, records, epsilon)

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """The true bit changes at b."""
        return threshold[:, None]


def by_bits(facts: PublicFacts) -> PublicFacts:
    """Return public facts as an attack sees them that reads the true bit alone."""
    claim = facts.claim
    return replace(facts, claim=replace(claim, sensitivity=Seen(claim.sensitivity)))


def else_by_bits(
    facts: PublicFacts,
    first: Attack[_T],
    second: Callable[[PublicFacts], Attack[_T]],
    again: bool = True,
) -> Attack[_T]:
    """Run an attack; where noise tells it nothing, run it again on the true bits.

    `second` makes the same attack for what else is seen of the target, unless not `again`.
    """
    claim = facts.claim
    try:
        return (yield from first)
    except Undecided as undecided:
        if not claim.reach or claim.reads_exactly or not again:
            raise
        try:
            return (yield from second(by_bits(facts)))
        except Undecided:
            raise undecided from None
