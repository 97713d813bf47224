"""What checks of a claim found: what was looked at, and what no target that keeps it would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from thinveil.errors import ClaimBroken, EvidenceError

Kind = Literal["known", "support", "fit", "totals", "contradiction"]
"""A known answer that came otherwise; a value that the law cannot give; a misfit of many values;
counts that do not add up; answers that no table explains."""
RESTS_ON_READING: Final = ("contradiction", "totals")
"""Evidence that a misread answer gives as well: its chance is at least that of one."""
PUBLIC: Final = "what is public and can be seen elsewhere, and none of its answers"
"""What can be believed where nothing that a target answered can."""
EXACT: Final = (
    "what is public, and answers without noise, which were right wherever they were known"
)
"""What can be believed where only the size of the noise is not as claimed."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that a target did and that one which keeps its claim would not do.

    Args:
        kind: What was looked at.
        said: A sentence for people: what was asked, what came, what would have come.
        chance: At most so likely does a target that keeps its claim look like this.
        still: A sentence for people: what can still be believed although the claim is broken.
    """

    kind: Kind
    said: str
    chance: float
    still: str


@dataclass(slots=True)
class Checked:
    """What checks of a claim have looked at, while a run lasts and after it.

    Args:
        alarm: The chance that a target which keeps its claim is ever called broken, as planned.
        questions: Questions asked for this alone.
        answers: Their answers.
        watched: Answers of the attack that were held against the claimed law in passing.
        passed: What was looked at and found as claimed, a phrase each.
        broken: What was found otherwise; empty where nothing was.
        power: Sentences that say which lies would have been seen.
    """

    alarm: float
    questions: int = 0
    answers: int = 0
    watched: int = 0
    passed: list[str] = field(default_factory=list)
    broken: list[Evidence] = field(default_factory=list)
    power: list[str] = field(default_factory=list)


def broken(evidence: Sequence[Evidence]) -> ClaimBroken:
    """Return the error that ends a run because its target does not do what it claims."""
    return ClaimBroken(" ".join(each.said for each in evidence), tuple(evidence))


def evidence_of(error: EvidenceError, misread: float) -> tuple[Evidence, ...]:
    """Return what an error shows that ended a run, in which an answer was misread so likely.

    Beside what checks found, these are answers that no law gives, and contradictions that an
    attack itself ran into: it believed each answer with a planned probability of error.
    """
    if isinstance(error, ClaimBroken) and error.evidence:
        found = (each for each in error.evidence if isinstance(each, Evidence))
        return tuple(
            replace(each, chance=min(1.0, max(each.chance, misread)))
            if each.kind in RESTS_ON_READING
            else each
            for each in found
        )
    text = str(error)
    said = f"{text[:1].upper()}{text[1:]}."
    if isinstance(error, ClaimBroken):
        return (Evidence("support", said, 0.0, PUBLIC),)
    return (Evidence("contradiction", said, min(1.0, misread), PUBLIC),)
