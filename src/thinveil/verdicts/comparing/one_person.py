"""The best attack on one person: all of a total loss spent on whether he or she is in the table.

How well the best of all tests tells two neighbouring tables apart follows from the law of the
answers: their total variation, which is delta at epsilon 0. Half of it is how much more often
than a coin a guess is right. Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.language.claims import Claim
from thinveil.verdicts.judging.divergence import delta_of
from thinveil.verdicts.judging.pairs import pairs_of

SPLITS: Final = (1, 100, 10_000)
"""Over how many answers to one question a total is split: the best of these counts."""
ONE_PERSON: Final = tuple(f"{10 ** (quarter / 4):.3g}" for quarter in range(-12, 9))
"""Totals from 0.001 to 100, four a decade, where honest answers begin to tell of one person."""
_ALL: Final = 1 - 1e-9  # an advantage that no further split could better


@dataclass(frozen=True, slots=True)
class Advantage:
    """How much better than a coin the best attack guesses whether one person is in the table.

    Args:
        mechanism: Whom it attacks.
        epsilon: The total loss that it may spend.
        advantage: Twice the chance of a right guess, less 1: 0 is a coin, 1 is always right.
        answers: Over how many answers the total is split; None where a search found the table.
        by: "law" where it follows from that of answers, "search" where one found every record.
    """

    mechanism: str
    epsilon: float
    advantage: float
    answers: int | None
    by: str

    @property
    def right(self) -> float:
        """How many of such guesses are right, where as many people are in as out."""
        return (1 + self.advantage) / 2


def by_law(claim: Claim, records: int, total: float, most: int) -> tuple[float, int]:
    """Return the advantage of the best test on so large a total, and its number of answers."""
    best, answers = 0.0, 1
    for split in SPLITS:
        if split > most or best >= _ALL:
            break
        for pair in pairs_of(claim, records, total / split)[0]:
            told = float(delta_of(pair, split, np.zeros(1))[0][0])
            if told > best:
                best, answers = told, split
    return best, answers


def advantages(
    name: str,
    claim: Claim,
    records: int,
    totals: Iterable[float],
    most: int,
    found: Sequence[float] = (),
) -> list[Advantage]:
    """Return the advantage at each total; `found` are totals at which a search found everybody.

    Whoever may spend more may also spend less, so it never falls.
    """
    told: list[Advantage] = []
    best, answers = 0.0, 1
    for total in sorted({*totals, *found}):
        if any(each <= total for each in found):
            told.append(Advantage(name, total, 1.0, None, "search"))
            continue
        if best < _ALL:
            best, answers = max((best, answers), by_law(claim, records, total, most))
        told.append(Advantage(name, total, best, answers, "law"))
    return told
