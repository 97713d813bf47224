"""What trials of membership showed: two rates, their intervals, and a bound beside the claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from thinveil.language.claims import Claim
from thinveil.verdicts.intervals import ceiling, clopper_pearson, epsilon_at_least, percent
from thinveil.verdicts.phrases import many, spelled


def sense_of(claim: Claim) -> str:
    """Say in which sense a mechanism claims its privacy loss."""
    shape = claim.shape
    if not claim.leaks_by_noise:
        return "differential privacy"
    if shape.presence:
        return "Bootstrap DP"
    if claim.k is None:
        return f"the mechanism {claim.name}"
    return "Individual DP" if claim.k == 1 else f"Group IDP for groups of {claim.k}"


def how_drawn() -> str:
    """Say how targets and worlds are drawn."""
    return (
        "Each trial drew a record that no other record equals, known by all attributes, and "
        "flipped a coin: the table as it is, or its neighbour in which this record became a copy "
        "of another one. Both worlds draw targets alike. This attacker is the one that "
        "differential privacy guards against, not a typical one."
    )


_SIMULATED: Final = (
    "The trials were run on the auditor's machine, by the mechanism's description and the table "
    "given as truth: the target itself was not asked."
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What trials of membership showed.

    Args:
        inside: How many trials were on the table as it is.
        outside: How many were on a neighbour.
        right: How often the attack said "in" of the table as it is.
        wrong: How often it said "in" of a neighbour.
        silent: How often it found no usable difference, and so said "not in": of the table, and
            of a neighbour.
        hunches: How often somebody who asks nothing said "in", of the table and of a neighbour.
        confidence: How sure the intervals and the bound are.
        epsilon_claimed: The largest claimed loss of one trial; None where nothing is claimed.
        sense: In which sense that is claimed.
        queries: Answers drawn in all trials together.
        questions: Different questions in all of them.
        most_queries: The most answers that one trial drew.
        alone: How many records targets were drawn from.
        seed: The seed of targets, worlds and noise.
        asked_for: How many trials there were to be.
        transcripts: A hash over what was asked and answered in all trials.
        error: A bound on the chance that anything was decided wrongly in any of them.
        reason: Why the attack said nothing, where it did not.
        simulated: Whether a target elsewhere is audited, which the trials did not ask.
    """

    inside: int
    outside: int
    right: int
    wrong: int
    silent: tuple[int, int]
    hunches: tuple[int, int]
    confidence: float
    epsilon_claimed: float | None
    sense: str
    queries: int
    questions: int
    most_queries: int
    alone: int
    seed: int
    asked_for: int
    transcripts: str
    error: float = 0.0
    reason: str = ""
    simulated: bool = False

    @property
    def undecided(self) -> int:
        """How often the attack found no usable difference."""
        return sum(self.silent)

    @property
    def correct(self) -> int:
        """How often it said something, and was right."""
        return self.right + self.outside - self.wrong - self.silent[1]

    @property
    def trials(self) -> int:
        """How many trials were run."""
        return self.inside + self.outside

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it."""
        return self.trials < self.asked_for

    @property
    def tpr(self) -> float:
        """The true positive rate: "in" where the target is in the table."""
        return self.right / max(self.inside, 1)

    @property
    def fpr(self) -> float:
        """The false positive rate: "in" where the target was replaced."""
        return self.wrong / max(self.outside, 1)

    @property
    def tpr_interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval of the true positive rate."""
        return clopper_pearson(self.right, self.inside, self.confidence)

    @property
    def fpr_interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval of the false positive rate."""
        return clopper_pearson(self.wrong, self.outside, self.confidence)

    @property
    def epsilon_at_least(self) -> float:
        """A lower bound on epsilon in the sense of differential privacy, at the confidence."""
        return epsilon_at_least(self.right, self.inside, self.wrong, self.outside, self.confidence)

    @property
    def ceiling(self) -> float:
        """The most that so many trials could have shown."""
        return ceiling(self.inside, self.outside, self.confidence)

    @property
    def baseline(self) -> float:
        """The same bound for somebody who asks nothing."""
        said, wrongly = self.hunches
        return epsilon_at_least(said, self.inside, wrongly, self.outside, self.confidence)

    def targets(self) -> str:
        """Say how targets and worlds were drawn."""
        return f"{how_drawn()} {_SIMULATED}" if self.simulated else how_drawn()

    def sentence(self) -> str:
        """Say what the trials show, beside the claim, and no more than that."""
        parts = [self._shown()]
        if self.interrupted:
            parts.append(
                f"The trials were stopped by hand after {self.trials:,} of {self.asked_for:,}."
            )
        return " ".join([*parts, _SIMULATED] if self.simulated else parts)

    def _shown(self) -> str:
        trials, sure = many(self.trials, "trial"), percent(self.confidence)
        if not self.queries:
            why = f": {self.reason}" if self.reason else ""
            return f"Nothing was asked in {trials} of membership{why}."
        claimed, claim = self.epsilon_claimed, "Of one person's membership the mechanism claims "
        claim += (
            "nothing" if claimed is None else f"{spelled(claimed)} in the sense of {self.sense}"
        )
        bound, most = self.epsilon_at_least, self.ceiling
        if self.undecided == self.trials:
            return (
                f"{claim}; no usable difference was found in {trials} of up to "
                f"{many(self.most_queries, 'answer')} each."
            )
        if not bound:
            few = "" if most else ", and so few can show none, whatever the attack does"
            right = f"the attack was right in {self.correct:,} of {trials}"
            return f"{claim}; {right}, which shows no bound above 0 at {sure} confidence{few}."
        said = f" (the most that {trials} can show)" if bound >= most - 1e-9 else ""
        return (
            f"{claim}; in the sense of differential privacy it is at least {bound:.2f}, at {sure} "
            f"confidence{said}."
        )

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        said, wrongly = self.hunches
        return {
            "trials": self.trials,
            "in": self.inside,
            "out": self.outside,
            "true_positives": self.right,
            "false_positives": self.wrong,
            "tpr": self.tpr,
            "tpr_interval": list(self.tpr_interval),
            "fpr": self.fpr,
            "fpr_interval": list(self.fpr_interval),
            "confidence": self.confidence,
            "epsilon_at_least": self.epsilon_at_least,
            "ceiling": self.ceiling,
            "epsilon_claimed": self.epsilon_claimed,
            "claimed_sense": self.sense,
            "queries": self.queries,
            "queries_a_trial": self.queries / max(self.trials, 1),
            "undecided": self.undecided,
            "targets": self.targets(),
            "baseline": {
                "what": "somebody who asks nothing and flips a coin",
                "tpr": said / max(self.inside, 1),
                "fpr": wrongly / max(self.outside, 1),
                "epsilon_at_least": self.baseline,
            },
            "seed": self.seed,
            "asked_for": self.asked_for,
            "interrupted": self.interrupted,
            "reason": self.reason,
            "simulated": self.simulated,
            "transcripts_sha256": self.transcripts,
            "sentence": self.sentence(),
        }
