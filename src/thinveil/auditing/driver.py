"""The only loop and the only meter: carries an attack's batches to a target and back."""

from __future__ import annotations

import gc
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from thinveil.attacker.evidence.likelihood import ErrorBound
from thinveil.attacker.terms import Attack
from thinveil.auditing.schedule import Schedule
from thinveil.auditing.targets import Remembering, Restorable, Target, checked, ledger_of
from thinveil.auditing.transcript import Transcript
from thinveil.curator.ledger import Event, Ledger, PostProcessing, Spend
from thinveil.errors import (
    BudgetError,
    BudgetSpent,
    EvidenceError,
    TargetError,
    ThinveilError,
    Undecided,
)
from thinveil.language.queries import About, Answers, QueryBatch

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_COLLECT_SECONDS = 20.0

Ending = Literal["complete", "undecided", "cap", "interrupted", "target"]


@dataclass(slots=True)
class Meter:
    """Counts everything that is asked.

    Args:
        columns: How many attributes the table has.
        queries: Answers drawn, repeats included.
        questions: Rows of batches; a row with repeats counts once.
        rounds: Batches.
        trivial: Questions whose threshold is below 0 or at least n.
        replayed: Batches whose answers came from a transcript.
        by_column: Questions for each attribute narrowed; the last entry counts those that
            narrow none.
        error: The chance that any answer was misread, where single answers are read.
        risk: The chance, as planned by the attack, that it decided anything wrongly.
        spent: The claimed loss of everything answered so far.
    """

    columns: int
    queries: int = 0
    questions: int = 0
    rounds: int = 0
    trivial: int = 0
    replayed: int = 0
    by_column: Any = None
    error: ErrorBound = field(default_factory=ErrorBound)
    risk: float = 0.0
    spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.by_column = np.zeros(self.columns + 1, np.int64)

    def count(self, batch: QueryBatch, records: int) -> None:
        """Count an answered batch."""
        self.queries += batch.queries
        self.questions += batch.questions
        self.rounds += 1
        threshold = batch.threshold
        self.trivial += int(np.count_nonzero((threshold < 0) | (threshold >= records)))
        column = batch.column if batch.offsets is None else batch.column[batch.offsets[:-1]]
        self.by_column += np.bincount(
            np.where(column < 0, self.columns, column), minlength=self.columns + 1
        )


@dataclass(frozen=True, slots=True)
class Run(Generic[_T]):
    """How a run ended and what it found.

    Args:
        found: What the attack returned, or what it had so far where it ended early.
        ending: Why it ended.
        reason: The sentence that goes with an early ending.
        meter: What was asked.
        spent: The claimed loss of this run: by the target's own ledger where it has one that
            began with this run, else by the meter.
        resumable: Whether going on could help; it cannot where answers contradict each other.
    """

    found: _T
    ending: Ending
    reason: str
    meter: Meter
    spent: Fraction
    resumable: bool = True


Observer = Callable[[Meter, About], None]


def run(
    attack: Attack[_T],
    target: Target,
    schedule: Schedule,
    *,
    transcript: Transcript | None = None,
    cap: Fraction | None = None,
    observer: Observer = lambda meter, about: None,
) -> Run[_T]:
    """Run an attack against a target until it returns, the budget ends or somebody stops it.

    Args:
        attack: A fresh attack.
        target: Whatever answers.
        schedule: Where each answer's claimed loss comes from.
        transcript: Where batches and answers are kept; its recorded answers are used first.
        cap: A cap on the claimed loss of this run, whatever cap the target has itself.
        observer: Called after each round with the meter and what the batch was about.

    Raises:
        ThinveilError: Something is wrong that a later resume cannot mend. Interruptions, a
            reached cap, a target that dies and answers that contradict each other end the
            run early instead.
    """
    facts = target.facts
    meter = Meter(len(facts.schema))
    own = ledger_of(target)
    remembering = target if isinstance(target, Remembering) else None  # slow: asked once
    fresh = own is not None and own.spent == 0
    ledger = Ledger(cap)
    recorded: list[Event] = []
    ending: Ending = "complete"
    resumable = True
    reason = ""
    answers: Answers | None = None
    about = About()
    key = transcript.header.run if transcript else secrets.token_hex(8)
    watched = _log.isEnabledFor(logging.DEBUG)
    try:
        with _rare_collections() as each_round:
            while True:
                try:
                    batch = attack.send(answers) if answers is not None else next(attack)
                except StopIteration as stop:
                    found: _T = stop.value
                    break
                about = batch.about
                number = meter.rounds + 1
                stamped = batch.stamped((key, number), schedule.stamp(batch, meter.queries))
                values = None
                digest = b""
                if transcript is not None:
                    digest = batch.digest()
                    values = transcript.replay(number, digest)
                if values is not None:
                    answers = checked(Answers(values, batch.repeats, stamped.epsilon), stamped)
                    spend = _recall(remembering, stamped, answers, meter.queries)
                    recorded.append(spend)
                    meter.replayed += 1
                    ledger.admit(spend)
                else:
                    if recorded:
                        _restore(target, meter, recorded)
                        recorded = []
                    spend = _price(remembering, stamped)
                    ledger.admit(spend)
                    if transcript is not None:
                        transcript.sent(number, digest)
                    answers = checked(_ask(target, stamped), stamped)
                    if transcript is not None:
                        transcript.got(number, digest, answers.values)
                ledger.record(spend)
                meter.count(batch, facts.records)
                meter.error.add(facts.claim, batch.queries, stamped.epsilon)
                meter.risk = about.risk
                meter.spent = ledger.spent
                observer(meter, about)
                each_round()
                if watched:
                    how = "replayed" if values is not None else "drawn"
                    asked = (batch.questions, batch.queries, how, about.label)
                    _log.debug("round %d: %d questions, %d answers %s; %s", number, *asked)
    except BudgetError as refusal:
        if meter.rounds == 0 and not isinstance(refusal, BudgetSpent):
            raise
        ending, reason, found = "cap", str(refusal), about.so_far()
    except KeyboardInterrupt:
        ending, reason, found = "interrupted", "the run was interrupted", about.so_far()
    except Undecided as error:
        ending, reason, found = "undecided", str(error), about.so_far()
    except (TargetError, EvidenceError) as error:
        ending, reason, found = "target", str(error), about.so_far()
        resumable = isinstance(error, TargetError)
    if recorded:
        _restore(target, meter, recorded)
    claimed = own.spent if own is not None and fresh else ledger.spent
    return Run(found, ending, reason, meter, claimed, resumable)


@contextmanager
def _rare_collections() -> Iterator[Callable[[], None]]:
    """Let Python's garbage collector run now and then only; yields what to call each round.

    A large attack keeps many thousands of live generators. Left alone, the collector walks
    through all of them again and again, for about a third of the whole time.
    """
    if not gc.isenabled():
        yield lambda: None
        return
    due = time.monotonic() + _COLLECT_SECONDS

    def each_round() -> None:
        nonlocal due
        if time.monotonic() > due:
            gc.collect()
            due = time.monotonic() + _COLLECT_SECONDS

    gc.disable()
    try:
        yield each_round
    finally:
        gc.enable()


def _restore(target: Target, meter: Meter, recorded: list[Event]) -> None:
    """Bring a target in this process to where the transcript ends; the replay was free."""
    if isinstance(target, Restorable):
        target.restore(
            meter.queries, [*recorded, PostProcessing(f"replay of {meter.replayed} batches")]
        )


def _price(target: Remembering | None, batch: QueryBatch) -> Event:
    """Return what a batch will cost: as the target says, else what is offered for it."""
    return Spend.of(batch) if target is None else target.price(batch)


def _recall(target: Remembering | None, batch: QueryBatch, answers: Answers, drawn: int) -> Event:
    """Return what a recorded batch cost, and let a target that remembers hear it again."""
    return Spend.of(batch) if target is None else target.recall(batch, answers, drawn)


def _ask(target: Target, batch: QueryBatch) -> object:
    """Ask a target; whatever else it raises becomes an error that names no values."""
    try:
        return target.answer(batch)
    except ThinveilError:
        raise
    except Exception as error:
        raise TargetError(f"the target failed: {type(error).__name__}") from error
