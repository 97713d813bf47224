"""How the user's privacy budget is shared out over answers, whoever asks them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from thinveil.errors import BudgetError, EpsilonError
from thinveil.language.claims import SMALLEST_EPSILON
from thinveil.language.queries import Floats, QueryBatch

LARGEST: Final = 10**9
"""Above this, noise could vanish in the rounding of doubles and pass for an exact answer."""
DEFAULT: Final = "1e-10"
"""The claimed loss of an answer unless the user says otherwise, as in the paper."""

_SHARE: Final = 0.6079  # a little less than 6 / pi^2, so that the shares never sum above 1


def exact_epsilon(text: object, what: str = "epsilon") -> Fraction:
    """Read an epsilon exactly as written.

    Raises:
        EpsilonError: It is not a number, not above zero, or so small that noise overflows.
    """
    try:
        number = Decimal(str(text).strip())
        usable = number.is_finite() and number > 0
    except InvalidOperation:
        raise EpsilonError(f"{what} must be a number, such as {DEFAULT}") from None
    if not usable:
        raise EpsilonError(f"{what} must be a number above zero, not {text}")
    if number < Decimal(repr(SMALLEST_EPSILON)):
        raise EpsilonError(
            f"{what} = {text} is so small that noise at this scale overflows a double; "
            f"use at least {SMALLEST_EPSILON}"
        )
    if number > LARGEST:
        raise EpsilonError(
            f"{what} = {text} is so large that noise could vanish in rounding; use at most "
            f"{LARGEST:,}"
        )
    return Fraction(number)


class Schedule(Protocol):
    """Decides the claimed loss of each answer. Conforms: `Fixed`, `Total`, `Free`."""

    def stamp(self, batch: QueryBatch, drawn: int) -> float | Floats | None:
        """Return the loss of each single answer of a batch, after `drawn` earlier answers."""
        ...

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same loss for every answer."""

    epsilon: Fraction

    def stamp(self, batch: QueryBatch, drawn: int) -> float:
        """Return the fixed loss."""
        return float(self.epsilon)

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        return f"{float(self.epsilon):g} for each answer"


@dataclass(frozen=True, slots=True)
class Total:
    """Shares that sum to at most a total, however many answers there are (erratum 6).

    Answer number j gets total * 6 / (pi^2 j^2). Unlike halving, this does not underflow.
    """

    epsilon: Fraction

    def stamp(self, batch: QueryBatch, drawn: int) -> Floats:
        """Return one share a question; its repeats get the share of the last of them.

        Raises:
            BudgetError: The next share would be so small that noise overflows.
        """
        if isinstance(batch.repeats, int):
            last = drawn + batch.repeats * np.arange(1, batch.questions + 1, dtype=np.float64)
        else:
            last = drawn + np.cumsum(batch.repeats).astype(np.float64)
        shares: Floats = float(self.epsilon) * _SHARE / (last * last)
        if shares[-1] < SMALLEST_EPSILON:
            raise BudgetError(
                "the total epsilon is so small that the share of the next answer would make its "
                "noise overflow a double; use a larger total"
            )
        return shares

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        return f"{float(self.epsilon):g} in total, in shrinking shares"


@dataclass(frozen=True, slots=True)
class Free:
    """No loss is claimed: the target is unprotected."""

    def stamp(self, batch: QueryBatch, drawn: int) -> None:
        """Return nothing."""

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        return "nothing is claimed"
