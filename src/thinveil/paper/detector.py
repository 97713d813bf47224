"""The paper's noise test beside our simulation of it, and tests that need fewer answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from thinveil.attacker.evidence.noise_tests import Identical, repetitions
from thinveil.paper import figures as paper
from thinveil.paper.rows import Row, Sheet
from thinveil.paper.simulation import MAGNITUDE, PRINTED, PSI, Measured, Score, Walks

STANDARD_ERRORS: Final = 5
"""A simulated figure agrees when it is off by at most so many standard errors."""

_OVER_ALL: Final = "rounded answers for 1e-06 over a whole table"
_EPSILON: Final = 1e-10


def rows(measured: Measured) -> list[Row]:
    """Set what was simulated beside the published figures, and the errata beside what is right."""
    rows = Sheet("detector")
    for m, right in paper.PSI.items():
        _simulated(rows, f"psi_m, m = {m:,}, % right", right, measured.score(PSI.name, m))
    for m, figure in paper.PSI_AS_PRINTED.items():
        score = measured.score(PRINTED, m)
        _noted(rows, f"psi_m as printed, m = {m}, % right (erratum 4)", *figure, score)
    ten = measured.score(PSI.name, 10)
    score = replace(ten, right=ten.simulations - ten.right)
    _noted(rows, "psi_m, rule as printed, m = 10, % right (erratum 5)", *paper.BACKWARDS, score)
    for m, figure in paper.MEAN_MAGNITUDE.items():
        _noted(rows, f"mean |z|, m = {m}, % right", *figure, measured.score(MAGNITUDE.name, m))
    for walks in measured.walks:
        _walked(rows, walks)
    _rounding(rows)
    return rows


def _simulated(rows: Sheet, name: str, right: int, score: Score) -> None:
    """Compare two simulations: chance moves their difference by some standard errors.

    One wrong decision is added to those that were seen, so that none at all still leaves
    room for a few.
    """
    runs, ours = paper.PSI_SIMULATIONS, score.simulations
    wrong = (runs - right + ours - score.right + 1) / (runs + ours)
    error = 100 * math.sqrt(wrong * (1 - wrong) * (1 / runs + 1 / ours))
    rows.add(name, None, 100 * right / runs, score.percent, allowed=STANDARD_ERRORS * error)


def _noted(rows: Sheet, name: str, percent: float, digits: int, score: Score) -> None:
    """Compare a simulation with a figure that is not in the paper, rounded to some digits."""
    share = score.right / score.simulations
    error = 100 * math.sqrt(share * (1 - share) / score.simulations)
    allowed = 0.5 * 10**-digits + STANDARD_ERRORS * error
    rows.add(name, None, percent, score.percent, allowed=allowed, whence="ours")


def _walked(rows: Sheet, walks: Walks) -> None:
    """Compare the mean number of answers of the sequential test."""
    name = f"sequential, error {walks.wanted:g}, mean answers, scale {1 + walks.noisier}"
    noted = paper.SEQUENTIAL[walks.wanted][walks.noisier]
    allowed = 0.5 + STANDARD_ERRORS * walks.standard_error
    rows.add(name, None, noted, round(walks.mean, 2), allowed=allowed, whence="ours")


def _rounding(rows: Sheet) -> None:
    """Set the chances that rounded noise looks like none beside those of the errata."""
    binary, whole = Identical("binary"), Identical("integer")
    few, noisy = paper.IDENTICAL, paper.NOISY_QUERIES
    chance, one = binary.error(few, _EPSILON / few), whole.error(1, _EPSILON)
    wanted = repetitions(binary, 1e-10, _EPSILON)
    in_all = repetitions(binary, 1e-6 / paper.DATASET[True], _EPSILON)
    for name, figure, ours, digits in (
        (f"{few} rounded answers identical (erratum 3)", paper.IDENTICAL_BY_CHANCE, chance, 6),
        (f"so misread of {noisy:,} (erratum 3)", paper.IDENTICAL_MISREAD, chance * noisy, 0),
        ("rounded answers for an error of 1e-10 (erratum 3)", paper.IDENTICAL_NEEDED, wanted, None),
        (_OVER_ALL, paper.IDENTICAL_NEEDED_IN_ALL, in_all, None),
        ("whole-number noise is 0 or 1 (erratum 14)", paper.INTEGER_BY_CHANCE, one, 12),
        (f"any of {noisy:,} such (erratum 14)", paper.INTEGER_MISREAD, one * noisy, 4),
    ):
        rows.add(name, None, figure, ours, digits, whence="ours")
