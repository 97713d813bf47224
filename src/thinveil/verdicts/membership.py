"""What trials of membership showed: two rates, their intervals, and a bound beside the claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from thinveil.verdicts import said_of_trials
from thinveil.verdicts.judging.intervals import ceiling, checked, clopper_pearson, epsilon_at_least
from thinveil.verdicts.typed import Mark, Plain


@dataclass(frozen=True, slots=True)
class Coin:
    """How often somebody says "in" who asks nothing, and the bound that this would show."""

    what: str
    tpr: float
    fpr: float
    epsilon_at_least: float


@dataclass(frozen=True, slots=True)
class Trial(Plain):
    """What trials of membership showed; figures are of all trials together unless said otherwise.

    Args:
        inside: How many trials were on the table as it is.
        outside: How many were on a neighbour.
        right: How often the attack said "in" of the table as it is.
        wrong: How often it said "in" of a neighbour.
        silent: How often it found no usable difference, and so said "not in": of the table, and
            of a neighbour.
        hunches: How often somebody who asks nothing said "in", of the table and of a neighbour.
        epsilon_claimed: The largest claimed loss of one trial; None where nothing is claimed.
        sense: In which sense that is claimed.
        most_queries: The most answers that one trial drew.
        alone: How many records targets were drawn from.
        transcripts: A hash over what was asked and answered.
        error: A bound on the chance that anything was decided wrongly.
        simulated: Whether a target elsewhere is audited, which the trials did not ask.
    """

    DERIVED: ClassVar = (
        "trials", "tpr", "tpr_interval", "fpr", "fpr_interval", "epsilon_at_least", "ceiling",
        "queries_a_trial", "undecided", "targets", "baseline", "interrupted", "sentence",
    )  # fmt: skip

    inside: Annotated[int, Mark("in")]
    outside: Annotated[int, Mark("out")]
    right: Annotated[int, Mark("true_positives")]
    wrong: Annotated[int, Mark("false_positives")]
    silent: tuple[int, int]
    hunches: tuple[int, int]
    confidence: float
    epsilon_claimed: float | None
    sense: Annotated[str, Mark("claimed_sense")]
    queries: int
    questions: int
    most_queries: int
    alone: int
    seed: int
    asked_for: int
    transcripts: Annotated[str, Mark("transcripts_sha256")]
    error: float = 0.0
    reason: str = ""
    simulated: bool = False

    def __post_init__(self) -> None:
        said = ((self.right, self.wrong), self.hunches, self.silent)
        for of, counts in zip((self.inside, self.outside), zip(*said, strict=True), strict=True):
            for count in counts:
                checked(count, of, self.confidence)

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
    def queries_a_trial(self) -> float:
        """How many answers a trial drew, on average."""
        return self.queries / max(self.trials, 1)

    @property
    def baseline(self) -> Coin:
        """The same rates and bound for somebody who asks nothing."""
        said, wrongly = self.hunches
        return Coin(
            said_of_trials.ASKING_NOTHING,
            said / max(self.inside, 1),
            wrongly / max(self.outside, 1),
            epsilon_at_least(said, self.inside, wrongly, self.outside, self.confidence),
        )

    def targets(self) -> str:
        """Say how targets and worlds were drawn."""
        drawn = said_of_trials.HOW_DRAWN
        return f"{drawn} {said_of_trials.SIMULATED}" if self.simulated else drawn

    def sentence(self) -> str:
        """Say what the trials show, beside the claim, and no more than that."""
        return said_of_trials.trials(self)
