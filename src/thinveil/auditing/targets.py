"""What can be audited: anything with public facts that answers batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from thinveil.curator.ledger import Event, Ledger
from thinveil.errors import TargetError
from thinveil.language.claims import Claim
from thinveil.language.contracts import Target as Target
from thinveil.language.policies import NO_POLICIES
from thinveil.language.queries import Answers, QueryBatch


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


def fingerprint(target: Target) -> str:
    """Return a text that tells this target from others, for transcripts."""
    own = getattr(target, "fingerprint", None)
    policies = target.facts.policies
    rules = "" if policies == NO_POLICIES else f" {policies!r}"
    return f"{own or type(target).__qualname__} {target.facts!r}{rules}"


def ledger_of(target: Target) -> Ledger | None:
    """Return the target's own ledger, where it has one that can be read here."""
    ledger = getattr(target, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else None


def checked(answer: object, batch: QueryBatch, claim: Claim) -> Answers:
    """Turn whatever a target returned into answers, or say what is wrong with it.

    Raises:
        TargetError: The number of answers is wrong, or one is not a finite number.
    """
    given = answer.values if isinstance(answer, Answers) else answer
    try:
        values = np.asarray(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise TargetError("the target's answer is not an array of numbers") from None
    wanted = batch.queries
    if values.shape != (wanted,):
        raise TargetError(f"the target gave {values.size} answers where {wanted} were asked for")
    if not claim.may_answer(values):
        raise TargetError("the target answered with something that is not a finite number")
    return Answers(values, batch.repeats, batch.epsilon)
