"""What was spent, as a list of events that only grows.

Sums are of the events alone, each added once, and exact: an epsilon given as one number is read as
its shortest decimal (1e-10 is exactly one ten-billionth), a column of epsilons is added up as exact
binary fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeVar

import numpy as np

from thinveil.errors import BudgetError, BudgetSpent
from thinveil.language.contracts import Law
from thinveil.language.queries import Codes, Floats, QueryBatch

Array = TypeVar("Array", Codes, Floats)


@lru_cache(maxsize=64)
def exact(epsilon: float) -> Fraction:
    """Read a float as the shortest decimal that names it."""
    return Fraction(repr(float(epsilon)))


def exact_sum(values: Floats) -> Fraction:
    """Add doubles without any rounding."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    total = Fraction(0)
    for power in np.unique(exponent).tolist():
        some = whole[exponent == power]
        summed = (int((some >> 26).sum()) << 26) + int((some & (2**26 - 1)).sum())
        total += Fraction(summed) * Fraction(2) ** (power - 53)
    return total


@dataclass(frozen=True, slots=True)
class Spend:
    """One release: how many answers were drawn, and their claimed losses together."""

    queries: int
    cost: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.queries < 0 or self.cost < 0 or self.delta < 0:
            raise BudgetError("a release cannot cost less than nothing")

    @staticmethod
    def of(batch: QueryBatch, law: Law | None = None) -> Spend:
        """Return what answering a stamped batch costs; nothing where nothing is claimed."""
        queries, epsilon = batch.queries, batch.epsilon
        if epsilon is None:
            return Spend(queries, Fraction(0))
        if isinstance(epsilon, np.ndarray):
            cost = exact_sum(spread(epsilon, batch.repeats))
        else:
            cost = exact(epsilon) * queries
        return Spend(queries, cost, Fraction(0) if law is None else law.deltas(queries, cost))


def spread(values: Array, repeats: int | Codes) -> Array:
    """Return the value of each question once for each of its answers."""
    return values if isinstance(repeats, int) and repeats == 1 else np.repeat(values, repeats)


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """Something made from answers already released. It costs nothing, by definition."""

    what: str
    cost: ClassVar = Fraction(0)
    delta: ClassVar = Fraction(0)


Event = Spend | PostProcessing


class Ledger:
    """An append-only list of events, with an optional cap on their composed loss.

    >>> ledger = Ledger(cap=Fraction(1, 2))
    >>> ledger.charge(Spend(4, Fraction(1, 2)))
    >>> ledger.spent
    Fraction(1, 2)
    """

    def __init__(self, cap: Fraction | None = None) -> None:
        if cap is not None and cap <= 0:
            raise BudgetError("the cap must be above zero")
        self.cap = cap
        self._events: list[Event] = []
        self._spent = self._delta = Fraction(0)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order; since `forget`, where that was called."""
        return tuple(self._events)

    @property
    def spent(self) -> Fraction:
        """The claimed loss of all events together: sequential composition adds up."""
        return self._spent

    @property
    def delta(self) -> Fraction:
        """The delta of all events: it adds up as their losses do."""
        return self._delta

    def admit(self, event: Event) -> None:
        """Refuse an event that would pass the cap; record nothing.

        Raises:
            BudgetSpent: The event would pass the cap.
        """
        if self.cap is not None and self.spent + event.cost > self.cap:
            raise BudgetSpent(
                f"the cap on the claimed loss is reached: {float(self.spent):.10g} of "
                f"{float(self.cap):.10g} is spent, the next batch asks for {float(event.cost):.10g}"
            )

    def charge(self, event: Event) -> None:
        """Record an event, or refuse it and change nothing.

        Raises:
            BudgetSpent: The event would pass the cap.
        """
        self.admit(event)
        self.record(event)

    def record(self, event: Event) -> None:
        """Record an event that was admitted before."""
        self._events.append(event)
        self._spent += event.cost
        self._delta += event.delta

    def forget(self) -> None:
        """Let go of the list of events, which is kept elsewhere; what was spent stays."""
        self._events.clear()
