"""The paper's noise test beside our simulation of it, and tests that need fewer answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from thinveil.attacker.evidence.noise_tests import Identical, repetitions
from thinveil.paper import figures as paper
from thinveil.paper.rows import Row, Sheet
from thinveil.paper.simulation import MAGNITUDE, PRINTED, PSI, Measured, Score, Walks

STANDARD_ERRORS: Final = 5
"""A simulated figure agrees when it is off by at most so many standard errors."""

_NAME: Final = "detector"
_EPSILON: Final = 1e-10


@dataclass(frozen=True, slots=True)
class SimulatedRow(Row):
    """A row whose figure is simulated: it agrees when it is no farther off than allowed."""

    allowed: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether ours differs from the published figure by no more than chance explains."""
        return bool(abs(self.published - self.measured) <= self.allowed)

    def to_plain(self) -> dict[str, Any]:
        """Return the row as plain JSON values, with what was allowed."""
        return {**Row.to_plain(self), "allowed": self.allowed}


def rows(measured: Measured) -> list[Row]:
    """Set what was simulated beside the published figures, and the errata beside what is right."""
    psi, magnitude, printed = PSI.name, MAGNITUDE.name, PRINTED
    ten = measured.score(psi, 10)
    backwards = Score(psi, 10, ten.simulations - ten.right, ten.simulations)
    return [
        *(
            _simulated(f"psi_m, m = {m:,}, % right", right, measured.score(psi, m))
            for m, right in paper.PSI.items()
        ),
        *(
            _noted(f"psi_m as printed, m = {m}, % right (erratum 4)", *figure, score)
            for m, figure in paper.PSI_AS_PRINTED.items()
            for score in [measured.score(printed, m)]
        ),
        _noted("psi_m, rule as printed, m = 10, % right (erratum 5)", *paper.BACKWARDS, backwards),
        *(
            _noted(f"mean |z|, m = {m}, % right (ours)", *figure, score)
            for m, figure in paper.MEAN_MAGNITUDE.items()
            for score in [measured.score(magnitude, m)]
        ),
        *(_walked(walks) for walks in measured.walks),
        *_rounding(),
    ]


def _simulated(name: str, right: int, score: Score) -> Row:
    """Compare two simulations: chance moves their difference by some standard errors.

    One wrong decision is added to those that were seen, so that none at all still leaves
    room for a few.
    """
    runs, ours = paper.PSI_SIMULATIONS, score.simulations
    wrong = (runs - right + ours - score.right + 1) / (runs + ours)
    error = 100 * math.sqrt(wrong * (1 - wrong) * (1 / runs + 1 / ours))
    return SimulatedRow(
        _NAME, name, None, 100 * right / runs, score.percent, allowed=STANDARD_ERRORS * error
    )


def _noted(name: str, percent: float, digits: int, score: Score) -> Row:
    """Compare a simulation with a figure of our notes, which is rounded to some digits."""
    share = score.right / score.simulations
    error = 100 * math.sqrt(share * (1 - share) / score.simulations)
    allowed = 0.5 * 10**-digits + STANDARD_ERRORS * error
    return SimulatedRow(_NAME, name, None, percent, score.percent, allowed=allowed)


def _walked(walks: Walks) -> Row:
    """Compare the mean number of answers of the sequential test."""
    name = f"sequential, error {walks.wanted:g}, mean answers, scale {1 + walks.noisier} (ours)"
    noted = paper.SEQUENTIAL[walks.wanted][walks.noisier]
    allowed = 0.5 + STANDARD_ERRORS * walks.standard_error
    return SimulatedRow(_NAME, name, None, noted, round(walks.mean, 2), allowed=allowed)


def _rounding() -> list[Row]:
    """Set the chances that rounded noise looks like none beside those of the notes."""
    binary, whole = Identical("binary"), Identical("integer")
    few, noisy = paper.IDENTICAL, paper.NOISY_QUERIES
    chance, one = binary.error(few, _EPSILON / few), whole.error(1, _EPSILON)
    wanted = repetitions(binary, 1e-10, _EPSILON)
    in_all = repetitions(binary, 1e-6 / paper.DATASET[True], _EPSILON)
    rows = Sheet(_NAME)
    alike = f"{few} rounded answers identical (erratum 3)"
    rows.add(alike, None, paper.IDENTICAL_BY_CHANCE, chance, 6)
    misread = f"so misread of {noisy:,} (erratum 3)"
    rows.add(misread, None, paper.IDENTICAL_MISREAD, chance * noisy, 0)
    needed = "rounded answers for an error of 1e-10 (erratum 3)"
    rows.add(needed, None, paper.IDENTICAL_NEEDED, wanted)
    needed = "rounded answers for 1e-06 over a whole table (ours)"
    rows.add(needed, None, paper.IDENTICAL_NEEDED_IN_ALL, in_all)
    small = "whole-number noise is 0 or 1 (erratum 14)"
    rows.add(small, None, paper.INTEGER_BY_CHANCE, one, 12)
    rows.add(f"any of {noisy:,} such (erratum 14)", None, paper.INTEGER_MISREAD, one * noisy, 4)
    return rows
