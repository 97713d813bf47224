"""What a comparison of mechanisms found, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from thinveil.errors import EXIT_COMPLETE, EXIT_EARLY
from thinveil.language.claims import Claim
from thinveil.verdicts.comparing.candidates import Skipped
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.phrases import many, spelled

TASKS: Final = ("membership", "attribute", "dataset")
"""The attacks of a comparison, from one bit to everything."""

_Z95: Final = 1.959964


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share measured on so many people.

    >>> tuple(round(end, 3) for end in wilson(1.0, 40))
    (0.912, 1.0)
    """
    z2 = _Z95**2 / trials
    middle = (share + z2 / 2) / (1 + z2)
    spread = math.sqrt(z2 * share * (1 - share) + z2 * z2 / 4) / (1 + z2)
    return max(0.0, middle - spread), min(1.0, middle + spread)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attack on one mechanism recovered, against an attacker who asks nothing.

    Args:
        task: The attack.
        unit: What is counted.
        recovered: How many were recovered: stated as facts, and right.
        stated: How many the attack stated as facts at all.
        of: How many there were.
        baseline: How many an attacker who asks nothing gets right, on average.
        strategy: How was searched.
        queries: Answers drawn, repeats included.
        questions: Different questions asked.
        epsilon_claimed: The claimed loss; None where nothing is claimed.
        error_probability: A bound on the chance that anything was decided wrongly.
        ended: "complete", or "undecided" where no usable difference was found.
        reason: The sentence that goes with an ending other than complete.
        seconds: How long it took.
        trials: How many people it was tried on; None for the whole table.
        trial: For membership, what the trials showed.
        marginals: How many an attacker gets right who was told the histogram of each column.
        transcript: A hash over all questions and answers.
    """

    task: str
    unit: str
    recovered: int
    stated: int
    of: int
    baseline: float
    strategy: str
    queries: int
    questions: int
    epsilon_claimed: float | None
    error_probability: float
    ended: str
    reason: str
    seconds: float
    trials: int | None = None
    trial: Trial | None = None
    marginals: float = 0.0
    transcript: str = ""

    @property
    def share(self) -> float:
        """The share that was recovered."""
        return self.recovered / self.of

    @property
    def everything(self) -> bool:
        """Whether all of it was recovered, and nothing wrong was stated beside it."""
        return self.recovered == self.of == self.stated

    @property
    def at_baseline(self) -> bool:
        """Whether no more was shown than somebody gets who asks nothing.

        Of people who were drawn, a little more than on average is no more. Trials of membership
        in which much is left open may still show a difference.
        """
        if self.trial is not None and self.trial.epsilon_at_least > 0:
            return False
        if self.recovered <= self.baseline:
            return True
        low = 1.0 if self.interval is None else self.interval[0]
        return low <= self.baseline / self.of and not self.everything

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the share, where people were drawn."""
        return None if self.trials is None else wilson(self.share, self.trials)

    def to_plain(self) -> dict[str, Any]:
        """Return the outcome as plain JSON values."""
        return {
            "task": self.task,
            "unit": self.unit,
            "recovered": self.recovered,
            "stated": self.stated,
            "of": self.of,
            "share": self.share,
            "interval95": None if self.interval is None else list(self.interval),
            "people": self.trials,
            "baseline": self.baseline,
            "baseline_share": self.baseline / self.of,
            "marginals": self.marginals,
            "marginals_share": self.marginals / self.of,
            "everything": self.everything,
            "at_baseline": self.at_baseline,
            "strategy": self.strategy,
            "queries": self.queries,
            "questions": self.questions,
            "epsilon_claimed": self.epsilon_claimed,
            "error_probability": self.error_probability,
            "ended": self.ended,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "transcript_sha256": self.transcript,
            "trial": None if self.trial is None else self.trial.to_plain(),
        }


@dataclass(frozen=True, slots=True)
class Line:
    """One mechanism and what the attacks on it found.

    Args:
        mechanism: Its name.
        claim: What it says of itself.
        outcomes: One for each attack that was reached.
        missing: Why it was not tried, if it was not.
    """

    mechanism: str
    claim: Claim
    outcomes: tuple[Outcome | Skipped, ...]
    missing: str = ""

    @property
    def tried(self) -> tuple[Outcome, ...]:
        """The attacks that were run."""
        return tuple(each for each in self.outcomes if isinstance(each, Outcome))

    @property
    def done(self) -> bool:
        """Whether every attack was reached, and any could be run."""
        return bool(self.tried) and len(self.outcomes) == len(TASKS)

    @property
    def control(self) -> bool:
        """Whether it is an honest mechanism, there to show what staying safe looks like."""
        return self.claim.protected and not self.claim.leaks_by_noise

    @property
    def everything(self) -> bool:
        """Whether all attacks are done, and each that could be run recovered everything."""
        return self.done and all(each.everything for each in self.tried)

    @property
    def at_baseline(self) -> bool:
        """Whether all attacks are done, and none that could be run got beyond the baseline."""
        return self.done and all(each.at_baseline for each in self.tried)

    @property
    def epsilon_claimed(self) -> float | None:
        """The largest claimed loss among the attacks; None where nothing is claimed."""
        claimed = [each.epsilon_claimed for each in self.tried if each.epsilon_claimed is not None]
        return max(claimed, default=None)

    def to_plain(self) -> dict[str, Any]:
        """Return the line as plain JSON values."""
        return {
            "mechanism": self.mechanism,
            "which_is": self.claim.describe(),
            "k": self.claim.k,
            "control": self.control,
            "everything": self.everything,
            "at_baseline": self.at_baseline,
            "missing": self.missing,
            "outcomes": [each.to_plain() for each in self.outcomes],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All mechanisms, what was assumed, and how the trials were made.

    Args:
        lines: One for each mechanism that was reached.
        asked_for: The mechanisms that were to be compared.
        records: The size of the table.
        columns: What is public about each column.
        trials: How the trials of membership and attribute inference were made.
        interrupted: Whether somebody stopped it.
        epsilon_per_query: The claimed loss of each answer.
        k: The group size of IDP.
        universe: "unbounded" or "bounded".
        seed: The seed of trials and noise.
        error: The planned chance of any wrong decision in a run.
        most_repeats: How many answers to one question were tried at most.
        people: How many people the trials were to have at most.
    """

    lines: tuple[Line, ...]
    asked_for: tuple[str, ...]
    records: int
    columns: tuple[str, ...]
    trials: tuple[str | Skipped, ...]
    interrupted: bool
    epsilon_per_query: str
    k: int
    universe: str
    seed: int
    error: str
    most_repeats: int
    people: int

    @property
    def exit_code(self) -> int:
        """0 where all was compared, 3 where somebody stopped it."""
        return EXIT_EARLY if self.interrupted else EXIT_COMPLETE

    def assumed_public(self) -> list[str]:
        """List what the attacker was assumed to know, whatever the mechanism."""
        return [
            f"the number of records: {self.records:,}",
            f"the mechanism and its parameters, {self.universe} universe",
            *self.columns,
        ]

    def how_trials_were_made(self) -> list[str]:
        """Say how people were chosen, and what an attacker who asks nothing does."""
        said = []
        for task, each in zip(TASKS, self.trials, strict=False):
            how = each if isinstance(each, str) else f"not tried: {each.reason}."
            said.append(f"{task}: {how}")
        return [
            *said,
            "asking nothing: a coin for membership; for attributes an even pick from the public "
            "values, zero where bounds are not public; for the whole table the same, record by "
            "record.",
            "knowing the marginals: told how often each value occurs in each column, and no more; "
            "names the most common value, joins columns by chance, flips a coin for membership.",
        ]

    def sentence(self) -> str:
        """Say what the comparison shows, and no more than that."""
        parts = []
        veiled = [each for each in self.lines if each.claim.leaks_by_noise]
        gave = [each for each in veiled if each.everything]
        if gave:
            loss = max(each.epsilon_claimed or 0.0 for each in gave)
            parts.append(
                f"{many(len(gave), 'relaxed mechanism')} gave everything away at a claimed loss "
                f"of at most {spelled(loss)}"
                + (
                    ", as no protection does."
                    if any(not each.claim.protected and each.everything for each in self.lines)
                    else "."
                )
            )
        elif any(not each.claim.protected and each.everything for each in self.lines):
            parts.append("Without protection everything was given away.")
        some = [each.mechanism for each in veiled if each.done and not each.everything]
        if some:
            parts.append(f"Only a part, or nothing, was recovered from {', '.join(some)}.")
        controls = [each for each in self.lines if each.control and each.done]
        calm = [each for each in controls if each.at_baseline]
        if calm:
            found = all(one.ended == "undecided" for each in calm for one in each.tried)
            parts.append(
                f"{many(len(calm), 'control')} stayed at the baseline"
                + (
                    f": no usable difference was found in {self.most_repeats:,} answers to one "
                    "question."
                    if found
                    else "."
                )
            )
        parts += [
            f"{each.mechanism} went beyond the baseline, at a claimed loss of "
            f"{spelled(each.epsilon_claimed or 0.0)}: so large a loss promises little."
            for each in controls
            if not each.at_baseline
        ]
        if self.interrupted:
            parts.append("The comparison was interrupted: this is what was done so far.")
        return " ".join(parts) or "Nothing was compared."

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "records": self.records,
            "assumed_public": self.assumed_public(),
            "trials": self.how_trials_were_made(),
            "people": self.people,
            "epsilon_per_query": self.epsilon_per_query,
            "k": self.k,
            "universe": self.universe,
            "seed": self.seed,
            "error_wanted": float(self.error),
            "most_repeats": self.most_repeats,
            "interrupted": self.interrupted,
            "mechanisms": [each.to_plain() for each in self.lines],
            "not_reached": list(self.asked_for[len(self.lines) :]),
            "verdict": self.sentence(),
        }
