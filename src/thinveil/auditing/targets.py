"""What can be audited: anything with public facts that answers batches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

import numpy as np

from thinveil.curator.ledger import Event, Ledger
from thinveil.errors import TargetError
from thinveil.language.claims import Claim
from thinveil.language.contracts import Target as Target
from thinveil.language.policies import NO_POLICIES
from thinveil.language.queries import Answers, Floats, QueryBatch
from thinveil.language.texts import many

WROTE: Final = ". It wrote into its questions, which can only be read: let it copy them first"
"""What is added where a target failed because it changed what it was asked."""


@runtime_checkable
class Restorable(Protocol):
    """A target in this process whose noise and ledger continue an interrupted run."""

    def restore(self, answers: int, events: Iterable[Event]) -> None:
        """Go on as if so many answers had been drawn and these events had happened."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A target in this process that may give an answer again, free of charge.

    Without these two, every answer is taken to cost what its batch offers for it.
    """

    def price(self, batch: QueryBatch) -> Event:
        """Return what answering a stamped batch would cost, or refuse it; change nothing."""
        ...

    def recall(self, batch: QueryBatch, answers: Answers, drawn: int) -> Event:
        """Hear a batch of an interrupted run again, in order; return what it cost.

        What was heard counts once `restore` says where the run goes on.
        """
        ...


def is_target(source: Any) -> TypeGuard[Target]:
    """Tell whether something can be audited as it is.

    A data frame of Spark Connect says that it has whatever it is asked for, as a column.
    """
    return isinstance(source, Target) and type(source).__module__.split(".")[0] != "pyspark"


def fingerprint(target: Target) -> str:
    """Return a text that tells this target from others, for transcripts."""
    own = getattr(target, "fingerprint", None)
    policies = target.facts.policies
    rules = "" if policies == NO_POLICIES else f" {policies!r}"
    return f"{own or type(target).__qualname__} {target.facts!r}{rules}"


def round_seconds(target: Target) -> float:
    """Return what a round costs besides its questions, as the target states it; 0 unless it does.

    Raises:
        TargetError: What it states is no time.
    """
    stated = getattr(target, "round_seconds", 0.0)
    if not isinstance(stated, Real) or not 0 <= float(stated) < math.inf:
        raise TargetError("the target's round_seconds is not a number of seconds")
    return float(stated)


def ledger_of(target: Target) -> Ledger | None:
    """Return the target's own ledger, where it has one that can be read here."""
    ledger = getattr(target, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else None


def checked(answer: object, batch: QueryBatch, claim: Claim) -> Answers:
    """Turn whatever a target returned into answers, or say what is wrong with it.

    They are copied, so that the target may use its array again. Truth values are 0 and 1.

    Raises:
        TargetError: They are not numbers, too few or too many, or one is not finite.
    """
    values = _numbers(answer.values if isinstance(answer, Answers) else answer)
    wanted, each = batch.queries, batch.repeats
    if values.size != wanted:
        raise TargetError(
            f"the target gave {many(values.size, 'answer')} where {wanted} were asked for"
        )
    rows = (batch.questions, each) if isinstance(each, int) else None
    if values.ndim > 1 and values.shape != rows:
        raise TargetError(
            f"the target's answers come in the shape {values.shape}: they must stand in one row, "
            "those to one question next to each other"
        )
    values = values.reshape(-1)
    if not claim.may_answer(values):
        what = "an infinite number" if np.isinf(values).any() else "something"
        raise TargetError(f"the target answered with {what} that is not a finite number")
    return Answers(values, each, batch.epsilon)


def _numbers(given: object) -> Floats:
    """Return a new array of doubles from whatever holds numbers.

    Raises:
        TargetError: It holds something else; what, is said by its type, never by its value.
    """
    if given is None:
        raise TargetError("the target gave no answers: it returned None")
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        raise TargetError("the target left some answers out: its array is masked")
    try:
        array = np.asarray(given)
    except Exception as error:  # ragged lists, and whatever an object of its own may raise
        raise TargetError(f"{_NO_NUMBERS}: {type(error).__name__}") from None
    kind = array.dtype.kind
    if kind == "O":
        if not array.ndim:
            raise TargetError(f"{_NO_NUMBERS}, but one {type(given).__name__}")
        if odd := [each for each in array.flat if not isinstance(each, Real)]:
            raise TargetError(f"{_NO_NUMBERS}: it holds something of type {type(odd[0]).__name__}")
    elif kind not in _NUMBERS:
        raise TargetError(f"{_NO_NUMBERS}, but of {_OTHERS.get(kind, array.dtype.name)}")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is told so
            return np.array(array, np.float64)
    except OverflowError:
        raise TargetError("the target answered with a number that no double can hold") from None
    except Exception as error:
        raise TargetError(f"{_NO_NUMBERS}: {type(error).__name__}") from None


_NO_NUMBERS: Final = "the target's answer is not an array of numbers"
_NUMBERS: Final = "biuf"  # the kinds that NumPy has for truth values and real numbers
_OTHERS: Final = {"c": "complex numbers", "M": "dates", "S": "texts", "T": "texts", "U": "texts"}
