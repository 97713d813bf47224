"""What trials of membership showed: guesses by score, their rates, and a bound beside the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from thinveil.verdicts import said_of_trials
from thinveil.verdicts.judging.abstaining import Guesses
from thinveil.verdicts.judging.guesses import epsilon_by_guesses, seen_loss
from thinveil.verdicts.judging.intervals import checked, clopper_pearson
from thinveil.verdicts.judging.tradeoff import Curve
from thinveil.verdicts.typed import Mark, Plain

SEEN: Final = 0.9
"""The chance at which the power of trials is stated: a usual figure."""


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

    Every trial has a score, and the sign of the score is what the attack says: rates are of all
    trials. The bound is of those guesses that are worth making (`judging/abstaining`).

    Args:
        inside: How many trials were on the table as it is.
        outside: How many were on a neighbour.
        right: How often the attack said "in" of the table as it is.
        wrong: How often it said "in" of a neighbour.
        guesses: The guesses that count for the bound, and how many of them are right.
        curve: Which false positives each rate of true positives takes; None of trials that were
            stopped.
        hunches: How often somebody who asks nothing said "in", of the table and of a neighbour.
        epsilon_claimed: The largest claimed loss of one trial; None where nothing is claimed.
        delta_claimed: The largest claimed delta of one trial; the bound is at this delta.
        sense: In which sense that is claimed.
        most_queries: The most answers that one trial drew.
        most_repeats: How many answers a trial could draw by the settings.
        alone: How many records targets were drawn from.
        transcripts: A hash over what was asked and answered.
        cut: How many trials ended before they were sure for another reason than these settings.
        error: A bound on the chance that any guess is wrong, if answers follow the public law.
        reason: Why trials were cut.
        simulated: Whether a target elsewhere is audited, which the trials did not ask.
    """

    DERIVED: ClassVar = (
        "trials", "guessed_right", "tpr", "tpr_interval", "fpr", "fpr_interval",
        "epsilon_at_least", "ceiling", "seen_loss", "seen_chance", "queries_a_trial",
        "targets", "baseline", "interrupted", "sentence",
    )  # fmt: skip

    inside: Annotated[int, Mark("in")]
    outside: Annotated[int, Mark("out")]
    right: Annotated[int, Mark("true_positives")]
    wrong: Annotated[int, Mark("false_positives")]
    guesses: Guesses
    curve: Curve | None
    hunches: tuple[int, int]
    confidence: float
    epsilon_claimed: float | None
    sense: Annotated[str, Mark("claimed_sense")]
    queries: int
    questions: int
    most_queries: int
    most_repeats: int
    alone: int
    seed: int
    asked_for: int
    transcripts: Annotated[str, Mark("transcripts_sha256")]
    delta_claimed: float = 0.0
    cut: int = 0
    error: float = 0.0
    reason: str = ""
    simulated: bool = False

    def __post_init__(self) -> None:
        said = ((self.right, self.wrong), self.hunches)
        for of, counts in zip((self.inside, self.outside), zip(*said, strict=True), strict=True):
            for count in counts:
                checked(count, of, self.confidence)
        made = self.guesses.made
        checked(self.guesses.right, made, self.confidence)
        checked(made + self.guesses.held_out, self.trials, self.confidence)
        checked(self.cut, self.trials, self.confidence)

    @property
    def trials(self) -> int:
        """How many trials were run."""
        return self.inside + self.outside

    @property
    def guessed_right(self) -> int:
        """How often the attack was right, every trial taken as a guess."""
        return self.right + self.outside - self.wrong

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
        return self._shown(self.guesses.right, self.guesses.made)

    @property
    def ceiling(self) -> float:
        """The most that so many trials could have shown: every one guessed, and rightly."""
        return self._shown(self.trials, self.trials)

    @property
    def seen_loss(self) -> float | None:
        """The least loss that would have shown a bound above 0 with a chance of `SEEN`.

        None where so few trials show nothing, whatever is lost.
        """
        least = seen_loss(
            self.trials - self.guesses.held_out,
            self.confidence,
            SEEN,
            delta=self.delta_claimed,
            planned=not self.interrupted,
        )
        return None if least == math.inf else least

    @property
    def seen_chance(self) -> float:
        """The chance with which that loss would have been seen."""
        return SEEN

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
            self._shown(said + self.outside - wrongly, self.trials),
        )

    def _shown(self, right: int, made: int) -> float:
        """Return the bound of so many right guesses; of a run that was stopped, at any time."""
        return epsilon_by_guesses(
            right,
            made,
            self.confidence,
            delta=self.delta_claimed,
            trials=self.asked_for,
            planned=not self.interrupted,
        )

    def targets(self) -> str:
        """Say how targets and worlds were drawn."""
        drawn = said_of_trials.HOW_DRAWN
        return f"{drawn} {said_of_trials.SIMULATED}" if self.simulated else drawn

    def sentence(self) -> str:
        """Say what the trials show, beside the claim, and no more than that."""
        return said_of_trials.trials(self)
