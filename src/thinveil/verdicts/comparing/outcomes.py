"""What a comparison of mechanisms found, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from thinveil.auditing.entries import confidence_of
from thinveil.errors import EXIT_COMPLETE, EXIT_EARLY
from thinveil.language.texts import one_line
from thinveil.verdicts import sentences
from thinveil.verdicts.comparing.candidates import Skipped
from thinveil.verdicts.comparing.risk import Risk
from thinveil.verdicts.comparing.shared import Settings
from thinveil.verdicts.judging.intervals import checked, interval_of_people
from thinveil.verdicts.judging.possible import Possible
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.names import ClaimRecord
from thinveil.verdicts.phrases import sureness
from thinveil.verdicts.typed import FLAT, Mark, Plain

TASKS: Final = ("membership", "attribute", "dataset")
"""The attacks of a comparison, from one bit to everything."""
FORMAT: Final = 1
"""The format of a file that holds a comparison."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attack on one mechanism recovered, against an attacker who asks nothing.

    What was recovered was stated as a fact, and is right; `baseline`, `marginals` and `others` are
    how many an attacker gets right, on average, who asks nothing, who was told the histogram of
    each column, and who has all other records (None where that is no question). `trials` counts
    the people it was tried on, None for the whole table; for membership, `trial` says what the
    trials showed. `bits_known` are those of an attack on the whole table that may have no record.
    """

    DERIVED: ClassVar = (
        "share", "interval", "baseline_share", "marginals_share", "others_share", "everything",
        "at_baseline",
    )  # fmt: skip

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
    confidence: float
    trials: Annotated[int | None, Mark("people")] = None
    trial: Trial | None = None
    marginals: float = 0.0
    others: float | None = None
    transcript: Annotated[str, Mark("transcript_sha256")] = ""
    bits_known: float = 0.0

    def __post_init__(self) -> None:
        checked(self.recovered, self.of, self.confidence)
        if self.of < 1:
            raise ValueError("an attack needs something to recover")

    @property
    def silent(self) -> bool:
        """Whether the attack found no usable difference, and so stated nothing."""
        return self.ended == "undecided" and not self.stated

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
        """Whether no more was shown than the best of those gets who never ask.

        Of people who were drawn, a little more than on average is no more. Trials of membership
        in which much is left open may still show a difference; a few guesses that are all right by
        luck show none.
        """
        if self.trial is not None and self.trial.epsilon_at_least > 0:
            return False
        if self.ended != "complete" and self.bits_known > 0:
            return False
        guess = max(self.baseline, self.marginals, self.others or 0.0)
        if self.recovered <= guess:
            return True
        low = 1.0 if self.interval is None else self.interval[0]
        luck = self.error_probability > 1 - self.confidence
        return low <= guess / self.of and (luck or not self.everything)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the share, where people were drawn."""
        if not self.trials:
            return None
        return interval_of_people(self.share, self.trials, self.confidence)

    @property
    def baseline_share(self) -> float:
        """The share of an attacker who asks nothing."""
        return self.baseline / self.of

    @property
    def marginals_share(self) -> float:
        """The share of an attacker who knows the marginals."""
        return self.marginals / self.of

    @property
    def others_share(self) -> float | None:
        """The share of an attacker who has all other records."""
        return None if self.others is None else self.others / self.of


@dataclass(frozen=True, slots=True)
class Line:
    """One mechanism, what the attacks on it found, or why it was not tried.

    `possible` is what its law says before anything is asked.
    """

    DERIVED: ClassVar = (
        "mechanism", "which_is:claim.which_is", "k:claim.k", "control:claim.control",
        "everything", "at_baseline",
    )  # fmt: skip

    claim: ClaimRecord
    outcomes: tuple[Outcome | Skipped, ...]
    missing: str = ""
    possible: Possible | None = None

    @property
    def mechanism(self) -> str:
        """Its name."""
        return self.claim.name

    @property
    def tried(self) -> tuple[Outcome, ...]:
        """The attacks that were run."""
        return tuple(each for each in self.outcomes if isinstance(each, Outcome))

    @property
    def done(self) -> bool:
        """Whether every attack was reached, and any could be run."""
        return bool(self.tried) and len(self.outcomes) == len(TASKS)

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


@dataclass(frozen=True, slots=True)
class Comparison(Plain):
    """All mechanisms, what was assumed, and how the trials were made.

    `settings` is what all runs share, `columns` what is public about each column, `drawn` how the
    trials of membership and attribute inference were made, and `sampled_from` the size of the
    table that the records were drawn from, if they were. `read_as`, `doubts`,
    `numbers_public` and `rounded_away` are what was assumed when the table was read, as in a
    record.
    """

    DERIVED: ClassVar = (
        "error_wanted", "assumed_public", "trials", "not_reached", "verdict", "statements",
        "confidence_each",
    )  # fmt: skip

    lines: Annotated[tuple[Line, ...], Mark("mechanisms")]
    settings: Annotated[Settings, FLAT]
    records: int
    columns: tuple[str, ...]
    drawn: tuple[str | Skipped, ...]
    interrupted: bool
    sampled_from: int | None = None
    risk: Risk | None = None
    provenance: Any = None
    read_as: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    numbers_public: tuple[str, ...] = ()
    rounded_away: tuple[str, ...] = ()
    format: int = FORMAT

    @property
    def exit_code(self) -> int:
        """0 where all was compared, 3 where somebody stopped it."""
        return EXIT_EARLY if self.interrupted else EXIT_COMPLETE

    def assumed_public(self) -> list[str]:
        """List what the attacker was assumed to know, whatever the mechanism."""
        return [
            f"the number of records: {self.records:,}",
            f"the mechanism and its parameters, {self.settings.universe} universe",
            *self.columns,
        ]

    def trials(self) -> list[str]:
        """Say how people were chosen, and what an attacker who asks nothing does."""
        said = []
        for task, each in zip(TASKS, self.drawn, strict=False):
            how = each if isinstance(each, str) else f"not tried: {each.reason}."
            said.append(f"{task}: {how}")
        return [
            *said,
            "asking nothing: a coin for membership; for attributes an even pick from the public "
            "values, zero where bounds are not public; for the whole table the same, record by "
            "record.",
            "knowing the marginals: told how often each value occurs in each column, and no more; "
            "names the most common value, joins columns by chance, flips a coin for membership.",
            "knowing all other records: has everybody's records but that of the person whose value "
            "is wanted, and names what they suggest.",
            f"all intervals and bounds of the comparison, {self.statements} at most, hold together "
            f"with {sureness(confidence_of(self.settings.confidence))} confidence: each by itself "
            f"with {sureness(self.confidence_each)} (Bonferroni).",
        ]

    @property
    def statements(self) -> int:
        """How many intervals and bounds there can be."""
        return self.settings.statements

    @property
    def confidence_each(self) -> float:
        """How sure each of them is by itself."""
        return self.settings.confidence_each

    @property
    def not_reached(self) -> tuple[str, ...]:
        """The mechanisms that were to be compared and were not."""
        return self.settings.mechanisms[len(self.lines) :]

    @property
    def error_wanted(self) -> float:
        """The planned chance of any wrong decision in a run."""
        return float(self.settings.error)

    def verdict(self) -> str:
        """Say what the comparison shows, and no more than that."""
        return one_line(sentences.comparison(self))

    sentence = verdict
