"""Whether a target does what it claims: what was checked, and what came otherwise.

Where it does not, nothing that its answers seem to show is said: only what it did, how likely one
that keeps its claim would do so (the probability of a false alarm), and what is still believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from thinveil.attacker.checks.found import RESTS_ON_READING, Checked, Evidence
from thinveil.auditing.driver import Meter
from thinveil.verdicts.judging.possible import up
from thinveil.verdicts.phrases import many

BROKEN: Final = "The target does not do what it claims"
KEPT: Final = "The target did what it claims, as far as was checked"
LOOKED_AT: Final = {
    "known": "a known answer",
    "support": "possible answers",
    "fit": "the claimed law",
    "totals": "totals",
    "contradiction": "one table for all answers",
}
"""What kinds of evidence are about, in words."""
_DECIDES: Final = " (--error and --repeats decide that)"
_NOTHING: Final = "Nothing is concluded from"


@dataclass(frozen=True, slots=True)
class Misfit:
    """One thing that a target did otherwise: what, how likely by chance, what is believed still."""

    kind: str
    said: str
    chance: float
    still: str


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """What checks of a claim looked at, and what they found otherwise.

    Args:
        alone: Whether nothing but the claim was checked, so that nobody was attacked.
        answers: How many there were: all where nothing else is said, else those of checks.
        ours: Whether the target is a curator of ours, which does what it claims.
        alarm: The planned chance that a target which keeps its claim is called broken.
        watched: Answers of the attack that were held against the claimed law in passing.
        passed: What was found as claimed, a phrase each.
        power: Sentences that say which lies would have been seen.
        broken: What was found otherwise.
        accusing: So large may the chance of evidence be where a target is called broken.
    """

    DERIVED: ClassVar = ("doubtful", "sentence")

    alone: bool
    answers: int
    ours: bool
    alarm: float
    watched: int
    passed: tuple[str, ...]
    power: tuple[str, ...]
    broken: tuple[Misfit, ...]
    accusing: float

    @staticmethod
    def of(
        meter: Meter,
        evidence: Sequence[Evidence],
        *,
        alone: bool,
        ours: bool,
        accusing: float,
    ) -> ClaimCheck | None:
        """Return what a run showed of its target's claim; None where nobody looked."""
        if meter.checked is None and not evidence and not alone:
            return None
        looked = Checked(0.0) if meter.checked is None else meter.checked
        answers = meter.drawn if evidence or alone else meter.checks
        found = tuple(Misfit(*(getattr(each, name) for name in _FIELDS)) for each in evidence)
        passed, power = tuple(looked.passed), tuple(looked.power)
        seen = (looked.alarm, looked.watched, passed, power, found)
        return ClaimCheck(alone, answers, ours, *seen, accusing)

    @property
    def doubtful(self) -> bool:
        """Whether what came may be chance, or a misread answer, so that nobody is accused.

        A curator of ours does what it claims; and evidence that comes by itself more often than
        statements of a verdict may be wrong accuses nobody.
        """
        if not self.broken:
            return False
        return self.ours or all(each.chance > self.accusing for each in self.broken)

    def sentence(self) -> str:
        """Say what came of it: all that may be said where the claim is broken."""
        if self.doubtful:
            return self._doubtful()
        if not self.broken:
            return self._kept()
        said = (f"{each.said} {_likely(each.chance)}" for each in self.broken)
        still = dict.fromkeys(each.still for each in self.broken)
        also = f"{_NOTHING} {many(self.answers, 'answer')} beyond this."
        return " ".join([f"{BROKEN}.", *said, f"Still believed: {'; '.join(still)}.", also])

    def _doubtful(self) -> str:
        said = " ".join(dict.fromkeys(each.said for each in self.broken))
        most = max(each.chance for each in self.broken)
        read = all(each.kind in RESTS_ON_READING for each in self.broken)
        nothing = f"{_NOTHING} {many(self.answers, 'answer')}."
        if not self.ours:
            may = "An answer may have been misread" if read else "This may be chance"
            return (
                f"{said} {may}: the run allowed for that with a probability of up to "
                f"{up(most)}{_DECIDES}. Or the target does not do what it claims; which of the "
                f"two, this run cannot tell. {nothing}"
            )
        so = "an answer was misread" if read else "this is a false alarm"
        rare = most <= self.accusing
        bug = " That is so rare that an error of thinveil is likelier: please report it."
        return (
            f"{said} The curator is ours and does what it claims, so {so}; the run allowed for "
            f"that with a probability of up to {up(most)}{'' if rare else _DECIDES}."
            f"{bug if rare else ''} {nothing}"
        )

    def _kept(self) -> str:
        """Say what was checked, and what would have been seen."""
        asked = f"{many(self.answers, 'answer')} asked for that"
        if self.watched:
            asked += f", and {self.watched:,} of the attack held against the law"
        if not self.answers and not self.watched:
            return "Nothing was checked: no question about the claim was answered."
        checked = "; ".join(self.passed) or "questions whose answers are known came as claimed"
        start = f"{KEPT}: " if self.alone else "Checked that "
        false = f"the chance of a false alarm was at most {up(self.alarm)}"
        return " ".join([f"{start}{checked} ({asked}; {false}).", *self.power])


def _likely(chance: float) -> str:
    if not chance:
        return "One that does what it claims never looks like this."
    return (
        f"One that does what it claims looks like this with a probability of at most {up(chance)}."
    )


_FIELDS: Final = ("kind", "said", "chance", "still")
