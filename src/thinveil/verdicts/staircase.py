"""Asks for the picture that shows why an attack works: one predicate, all thresholds near."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from thinveil.attacker.findings import Found, TableFound
from thinveil.attacker.staircase import staircase, thresholds_around, worth_showing
from thinveil.auditing.attempt import Attempt, curator_of
from thinveil.auditing.options import Options
from thinveil.curator.tables.dataset import Held
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Floats
from thinveil.verdicts.phrases import plain

_REPEATS: Final = 200
_SEED: Final = 7  # the picture has noise of its own


@dataclass(frozen=True, slots=True, eq=False)
class Staircase:
    """Answers about one predicate at many thresholds.

    Args:
        predicate: The predicate in words.
        count: The count that the attack found for it; None where it found none.
        k: The group size of the mechanism, if it has one.
        thresholds: What was asked about.
        answers: A row of answers for each threshold.
        exact: Whether single answers tell noise from no noise.
        epsilon: The claimed loss of each answer; None where nothing is claimed.
        spent: The claimed loss of all of them.
    """

    predicate: str
    count: int | None
    k: int | None
    thresholds: tuple[int, ...]
    answers: Floats
    exact: bool
    epsilon: float | None
    spent: float | None

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "predicate": self.predicate,
            "count": self.count,
            "k": self.k,
            "epsilon": self.epsilon,
            "repeats": self.answers.shape[1],
            "queries": self.answers.size,
            "epsilon_claimed": self.spent,
            "points": [
                {
                    "threshold": threshold,
                    "answers": answers,
                    "kind": "exact" if self.exact and set(answers) <= {0.0, 1.0} else "noise",
                }
                for threshold, answers in zip(self.thresholds, self.answers.tolist(), strict=True)
            ],
        }


def staircase_of(held: Held, options: Options, found: Found | None) -> Staircase | None:
    """Ask a fresh curator of the table about what the attack found, for a picture.

    What is asked is decided by what was recovered, not by the table. None where a staircase
    shows nothing (Bootstrap DP tells no counts) or the curator's rules leave no room for it.
    """
    claim = options.claim()
    curator = curator_of(held, replace(options, seed=options.seed + _SEED, cap=None))
    facts = curator.facts
    chosen = worth_showing(found if isinstance(found, TableFound) else None, facts)
    if not claim.counts or (chosen is None and claim.leaks_by_noise):
        return None
    column, code, count = (0, *_anything(facts), None) if chosen is None else chosen
    thresholds = thresholds_around(count, facts)
    repeats = 1 if claim.reads_exactly or options.cache else _REPEATS
    asking = staircase({column: (code, code + 1)}, thresholds, repeats)
    ended = Attempt(curator, asking, options.schedule(claim)).run().run
    if ended.ending != "complete":
        return None
    attribute, spent = facts.schema[column], float(ended.spent)
    return Staircase(
        predicate=f"{attribute.name} = {plain(attribute.decode(code))}",
        count=count,
        k=claim.k,
        thresholds=tuple(thresholds),
        answers=ended.found,
        exact=claim.reads_exactly and claim.leaks_by_noise,
        epsilon=spent / (repeats * len(thresholds)) if claim.protected else None,
        spent=spent if claim.protected else None,
    )


def _anything(facts: PublicFacts) -> tuple[int]:
    """Return some value of the first column, where nothing was found that could choose one."""
    return (facts.schema[0].lower or 0,)
