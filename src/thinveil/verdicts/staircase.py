"""Asks for the picture that shows why an attack works: one predicate, all thresholds near."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from thinveil.attacker.findings import Found, TableFound
from thinveil.attacker.staircase import staircase, thresholds_around, worth_showing
from thinveil.auditing.attempt import Attempt, curator_of
from thinveil.auditing.entries import USUAL_CONFIDENCE, confidence_of
from thinveil.auditing.options import Options
from thinveil.curator.tables.dataset import Held
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.sentences import MASK

_REPEATS: Final = 200
_SEED: Final = 7  # the picture has noise of its own


@dataclass(frozen=True, slots=True)
class Step:
    """The answers at one threshold; exact where single answers tell noise from none."""

    threshold: int
    answers: tuple[float, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Staircase:
    """Answers about one predicate at many thresholds.

    Pictures of it are as sure as `confidence`. Beside it stand the count that the attack found for
    it, if it found one, and the claimed loss of each answer and of all of them, where some is
    claimed.
    """

    DERIVED: ClassVar = ("repeats", "queries")

    predicate: str
    count: int | None
    k: int | None
    epsilon: float | None
    epsilon_claimed: float | None
    points: tuple[Step, ...]
    confidence: float = float(USUAL_CONFIDENCE)

    def __post_init__(self) -> None:
        if not self.points or not all(each.answers for each in self.points):
            raise ValueError("a staircase needs answers at every threshold")

    def masked(self) -> Staircase:
        """Return it without the value that was asked about."""
        return replace(self, predicate=f"{self.predicate.split(' = ')[0]} = {MASK}")

    @property
    def repeats(self) -> int:
        """How often each question was asked."""
        return len(self.points[0].answers)

    @property
    def queries(self) -> int:
        """How many answers there are."""
        return sum(len(each.answers) for each in self.points)


def staircase_of(held: Held, options: Options, found: Found | None) -> Staircase | None:
    """Ask a fresh curator of the table about what the attack found, for a picture.

    What is asked is decided by what was recovered, not by the table. None where a staircase
    shows nothing (Bootstrap DP tells no counts) or the curator's rules leave no room for it.
    """
    claim = options.claim()
    curator = curator_of(held, replace(options, seed=options.seed + _SEED, cap=None))
    facts = curator.facts
    chosen = worth_showing(found if isinstance(found, TableFound) else None, facts)
    if not claim.counts or (chosen is None and claim.leaks):
        return None
    # where nothing was found that could choose a value, any of the first column
    column, code, count = chosen or (0, facts.schema[0].lower or 0, None)
    thresholds = thresholds_around(count, facts)
    repeats = 1 if claim.reads_exactly or options.cache else _REPEATS
    asking = staircase({column: (code, code + 1)}, thresholds, repeats)
    ended = Attempt(curator, asking, options.schedule(claim)).run()
    if ended.ending != "complete":
        return None
    attribute, spent = facts.schema[column], float(ended.spent)
    exact = claim.reads_exactly and claim.leaks
    return Staircase(
        predicate=f"{attribute.name} = {plain(attribute.decode(code))}",
        count=count,
        k=claim.k,
        epsilon=spent / (repeats * len(thresholds)) if claim.protected else None,
        epsilon_claimed=spent if claim.protected else None,
        points=tuple(
            Step(each, tuple(got), "exact" if exact and {*got} <= {0.0, 1.0} else "noise")
            for each, got in zip(thresholds, ended.found.tolist(), strict=True)
        ),
        confidence=confidence_of(options.confidence),
    )
