"""How the user's privacy budget is shared out over answers, whoever asks them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final, Literal, Protocol

import numpy as np

from thinveil.curator.ledger import exact
from thinveil.errors import BudgetError, BudgetSpent, EpsilonError, UsageError
from thinveil.language.claims import SMALLEST_EPSILON
from thinveil.language.queries import Codes, Floats, QueryBatch, batch_of
from thinveil.language.texts import many

LARGEST: Final = 10**9
"""Above this, noise could vanish in the rounding of doubles and pass for an exact answer."""
DEFAULT: Final = "1e-10"
"""The claimed loss of an answer unless the user says otherwise, as in the paper."""

Split = Literal["equal", "halving", "shrinking"]
SPLITS: Final[tuple[Split, ...]] = ("equal", "halving", "shrinking")
"""The ways to share out a total, sorted."""

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
    """Decides the claimed loss of each answer.

    Conforms: `Fixed`, `Total`, `Equal`, `Halving`, `Free`.
    """

    def stamp(self, batch: QueryBatch, drawn: int) -> float | Floats | None:
        """Return the loss of each single answer of a batch, after `drawn` earlier answers.

        Raises:
            BudgetSpent: A total was split over fewer answers, or cannot be halved further.
            BudgetError: The next share would be so small that noise overflows.
        """
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

    Answer number j gets total * 6 / (pi^2 j^2), or the most that one may get if that is less.
    Unlike halving, this does not underflow.
    """

    epsilon: Fraction
    each: Fraction | None = None

    def stamp(self, batch: QueryBatch, drawn: int) -> Floats:
        """Return one share a question; its repeats get the share of the last of them."""
        last = _last(batch, drawn).astype(np.float64)
        shares = _capped(float(self.epsilon) * _SHARE / (last * last), self.each)
        if shares[-1] < SMALLEST_EPSILON:
            raise BudgetError(
                "the total epsilon is so small that the share of the next answer would make its "
                "noise overflow a double; use a larger total"
            )
        return shares

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        return f"{float(self.epsilon):g} in total, in shrinking shares{_at_most(self.each)}"


@dataclass(frozen=True, slots=True)
class Equal:
    """A total in equal shares over a bounded number of answers (Algorithms 1 and 2).

    Each answer gets total / N, or the most that one may get if that is less; an answer beyond the
    last of them is refused. Where N is None, `auditing.attacks.planned` finds it.

    >>> Equal(Fraction(1), 8).share
    0.125
    """

    epsilon: Fraction
    answers: int | None
    each: Fraction | None = None

    def __post_init__(self) -> None:
        if self.answers is None:
            return
        if type(self.answers) is not int or self.answers < 1:
            raise UsageError("--answers must be a whole number of at least 1")
        if self.share < SMALLEST_EPSILON:
            raise EpsilonError(
                f"the total epsilon split over {many(self.answers, 'answer')} leaves each a share "
                f"below {SMALLEST_EPSILON}, where noise overflows a double; use a larger total"
            )

    @property
    def share(self) -> float:
        """The largest double of which N together do not pass the total, nor one its limit."""
        share = self.epsilon / self._planned
        return _below(share if self.each is None else min(share, self.each), exact)

    @property
    def _planned(self) -> int:
        if self.answers is None:
            raise UsageError("--split equal: say over how many answers, --answers N")
        return self.answers

    def stamp(self, batch: QueryBatch, drawn: int) -> float:
        """Return the share, or refuse what was not planned for."""
        if drawn + batch.queries > self._planned:
            raise BudgetSpent(
                f"the total epsilon was split over {many(self._planned, 'answer')}: {drawn:,} "
                f"{'is' if drawn == 1 else 'are'} drawn, the next batch asks for "
                f"{batch.queries:,}; a larger --answers goes further"
            )
        return self.share

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        over = "the answers it takes" if self.answers is None else many(self.answers, "answer")
        total = f"{float(self.epsilon):g} in total"
        return f"{total}, split equally over {over}{_at_most(self.each)}"


@dataclass(frozen=True, slots=True)
class Halving:
    """A total in shares that halve: answer number j gets total / 2^j (erratum 6).

    The first ones get the most that one may get, if that is less.
    A share that a double's noise can bear is left for some hundred answers only: about a
    thousand at a total of 1. The answer after the last of them is refused.

    >>> Halving(Fraction(1)).limit
    996
    """

    epsilon: Fraction
    each: Fraction | None = None

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise EpsilonError(
                f"half of the total epsilon is below {SMALLEST_EPSILON}, where noise overflows a "
                "double; use a larger total"
            )

    @property
    def total(self) -> float:
        """The largest double that does not pass the total."""
        return _below(self.epsilon)

    @property
    def limit(self) -> int:
        """How many answers there are whose share is not too small."""
        halvings = math.frexp(self.total)[1] - math.frexp(SMALLEST_EPSILON)[1] + 1
        while halvings > 0 and math.ldexp(self.total, -halvings) < SMALLEST_EPSILON:
            halvings -= 1
        return halvings

    def stamp(self, batch: QueryBatch, drawn: int) -> Floats:
        """Return one share a question, as `Total` does."""
        if drawn + batch.queries > self.limit:
            raise BudgetSpent(
                f"a total of {float(self.epsilon):g} can be halved for "
                f"{many(self.limit, 'answer')}, then shares fall below {SMALLEST_EPSILON} and "
                f"noise overflows a double: {drawn:,} {'is' if drawn == 1 else 'are'} drawn, the "
                f"next batch asks for {batch.queries:,}; shrinking shares have no such limit"
            )
        return _capped(np.ldexp(self.total, -_last(batch, drawn)), self.each)

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        return (
            f"{float(self.epsilon):g} in total, halved with each answer, for at most "
            f"{many(self.limit, 'answer')}{_at_most(self.each)}"
        )


def shared_out(
    total: Fraction, split: str, answers: int | None, each: Fraction | None = None
) -> Schedule:
    """Return the schedule that shares out a total in the way that is named.

    No answer gets more than `each` where that is given (Algorithm 2 takes 1e-10 for a count).

    Raises:
        UsageError: There is no such way, or the number of answers is of no use.
    """
    if split not in SPLITS:
        raise UsageError(f"--split is one of {', '.join(SPLITS)}")
    if split == "equal":
        return Equal(total, answers, each)
    if answers is not None:
        raise UsageError("--answers N goes with --split equal")
    return Halving(total, each) if split == "halving" else Total(total, each)


def _below(most: Fraction, read: Callable[[float], Fraction] = Fraction) -> float:
    """Return the largest double that does not pass a limit, as a ledger reads it."""
    share = float(most)
    while read(share) > most:
        share = math.nextafter(share, 0)
    return share


def _capped(shares: Floats, each: Fraction | None) -> Floats:
    return shares if each is None else np.minimum(shares, _below(each))


def _at_most(each: Fraction | None) -> str:
    return "" if each is None else f", at most {float(each):g} each"


def first_loss(schedule: Schedule) -> float | None:
    """Return the loss of the first answer, asked for by itself; None where nothing is claimed."""
    loss = schedule.stamp(batch_of([([{}], 0)]), 0)
    return None if loss is None else float(np.max(loss))


def most_answers(schedule: Schedule, cap: Fraction | None) -> int | None:
    """Return how many answers a schedule and a cap allow; None where batches decide it."""
    if isinstance(schedule, Halving):
        return schedule.limit
    if not isinstance(schedule, (Equal, Fixed)):
        return None
    each = float(schedule.epsilon) if isinstance(schedule, Fixed) else schedule.share
    planned = schedule.answers if isinstance(schedule, Equal) else None
    within = None if cap is None else int(cap // exact(each))
    return min((most for most in (planned, within) if most is not None), default=None)


def _last(batch: QueryBatch, drawn: int) -> Codes:
    """Return, for each question, the number of its last answer in the whole run."""
    if isinstance(batch.repeats, int):
        return drawn + batch.repeats * np.arange(1, batch.questions + 1)
    return drawn + np.cumsum(batch.repeats)


@dataclass(frozen=True, slots=True)
class Free:
    """No loss is claimed: the target is unprotected."""

    def stamp(self, batch: QueryBatch, drawn: int) -> None:
        """Return nothing."""

    def describe(self) -> str:
        """Say the schedule in a phrase."""
        return "nothing is claimed"
