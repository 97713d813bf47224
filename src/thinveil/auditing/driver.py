"""The only loop and the only meter: carries an attack's batches to a target and back."""

from __future__ import annotations

import gc
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar

import numpy as np

from thinveil.attacker.channel import Looked
from thinveil.attacker.checks.found import Checked, Evidence, evidence_of
from thinveil.attacker.evidence.likelihood import ErrorBound
from thinveil.attacker.terms import Attack
from thinveil.auditing.holding import Hold
from thinveil.auditing.schedule import Schedule
from thinveil.auditing.targets import WROTE, Remembering, Restorable, Target, checked, ledger_of
from thinveil.auditing.transcript import Transcript
from thinveil.curator.ledger import Event, Ledger, PostProcessing, Spend
from thinveil.errors import (
    BudgetError,
    BudgetSpent,
    EvidenceError,
    QueryError,
    TargetError,
    ThinveilError,
    Undecided,
)
from thinveil.language.queries import About, Answers, QueryBatch
from thinveil.language.texts import many

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_COLLECT_SECONDS = 20.0

Ending = Literal["complete", "undecided", "cap", "interrupted", "target", "broken"]


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
        proved: Whether that holds of what it knew at the last batch, and not only of its end.
        spent: The claimed loss of everything answered so far.
        channel: What came of looking at doubles; None where nobody looked.
        checks: Answers to questions that check the claim; not among `queries`, `questions` and
            `rounds`, but claimed and spent like all others.
        check_rounds: Batches of those.
        checked: What they found; None where nobody checked.
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
    proved: bool = True
    spent: Fraction = Fraction(0)
    channel: Looked | None = None
    checks: int = 0
    check_rounds: int = 0
    checked: Checked | None = None

    @property
    def drawn(self) -> int:
        """All answers that were drawn, those of checks included."""
        return self.queries + self.checks

    def __post_init__(self) -> None:
        self.by_column = np.zeros(self.columns + 1, np.int64)

    def count(self, batch: QueryBatch, records: int) -> None:
        """Count an answered batch."""
        self.channel = batch.about.channel or self.channel
        self.checked = batch.about.checked or self.checked
        if batch.about.check:
            self.checks += batch.queries
            self.check_rounds += 1
            return
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
        delta: The claimed delta of this run, added up as the loss is.
        seconds: How long it took.
        transcript: A hash over all questions and answers; empty where none was wanted.
        evidence: Where the ending is "broken", what the target did that its claim rules out.
    """

    found: _T
    ending: Ending
    reason: str
    meter: Meter
    spent: Fraction
    resumable: bool = True
    delta: Fraction = Fraction(0)
    seconds: float = 0.0
    transcript: str = ""
    evidence: tuple[Evidence, ...] = ()

    def or_interrupt(self) -> Run[_T]:
        """Pass on an interruption that was turned into an early ending."""
        if self.ending == "interrupted":
            raise KeyboardInterrupt
        return self


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
    """Run a fresh attack against a target until it returns, the budget ends or somebody stops it.

    Recorded answers of the transcript are used first. The cap is on the claimed loss of this run,
    whatever cap the target has itself. The observer is called after each round.

    Raises:
        ThinveilError: Something is wrong that a later resume cannot mend. Interruptions, a
            reached cap, a target that dies and answers that contradict each other end the
            run early instead.
        KeyboardInterrupt: Interrupted twice while the attack thought, which tells nothing then.
    """
    start = time.perf_counter()
    carrier = _Carrier(target, schedule, transcript, Ledger(cap))
    meter = carrier.meter
    ending: Ending = "complete"
    reason = ""
    answers: Answers | None = None
    about = About()
    refused: BudgetError | QueryError | None = None
    evidence: tuple[Evidence, ...] = ()
    hold = Hold()
    try:
        with _rare_collections() as each_round, hold.taken():
            while True:
                hold.begin()
                try:
                    batch = attack.throw(refused) if refused else _sent(attack, answers)
                except StopIteration as stop:
                    found: _T = stop.value
                    about = replace(about, so_far=partial(_same, found))
                    break
                about, refused = batch.about, None
                hold.end()
                try:
                    answers = carrier.carry(batch)
                except (BudgetError, QueryError) as spent:
                    if not about.check:  # the attack may go on without what checks its target
                        raise
                    refused = spent
                    continue
                observer(meter, about)
                each_round()
    except tuple(_ENDINGS) as early:
        if hold.forced:  # in the middle of a thought
            raise
        cold = meter.rounds + meter.check_rounds == 0 and not isinstance(early, BudgetSpent)
        if isinstance(early, BudgetError) and cold:
            raise
        ending = next(name for kind, name in _ENDINGS.items() if isinstance(early, kind))
        reason = "the run was interrupted" if ending == "interrupted" else str(early)
        found = about.so_far()
        if isinstance(early, EvidenceError) and ending == "broken":
            evidence = evidence_of(early, meter.error.total + meter.risk)
    carrier.restore()
    kept, seconds = carrier.ledger, time.perf_counter() - start
    asked = transcript.sha256 if transcript else ""
    claimed = (kept.spent, ending != "broken", kept.delta)
    return Run(found, ending, reason, meter, *claimed, seconds, asked, evidence)


_ENDINGS: Final[dict[type[BaseException], Ending]] = {
    BudgetError: "cap",
    KeyboardInterrupt: "interrupted",
    Undecided: "undecided",
    TargetError: "target",
    EvidenceError: "broken",
}
"""What ends a run early, and how that is called; of two that fit, the first counts."""


def _same(found: _T) -> _T:
    return found


def _sent(attack: Attack[_T], answers: Answers | None) -> QueryBatch:
    """Send an attack its answers, or have it begin."""
    return next(attack) if answers is None else attack.send(answers)


class _Carrier:
    """Carries batches to a target, or hears them again from a transcript, and counts."""

    def __init__(
        self, target: Target, schedule: Schedule, transcript: Transcript | None, ledger: Ledger
    ) -> None:
        self.meter = Meter(len(target.facts.schema))
        self._target, self._schedule = target, schedule
        self._transcript, self._ledger = transcript, ledger
        self._facts = target.facts
        self._own = ledger_of(target)
        self._fresh = self._own is not None and self._own.spent == 0
        self._remembering = target if isinstance(target, Remembering) else None  # slow: asked once
        self._recorded: list[Event] = []
        self._key = transcript.header.run if transcript else secrets.token_hex(8)
        self._watched = _log.isEnabledFor(logging.DEBUG)

    @property
    def ledger(self) -> Ledger:
        """What this run claims: the target's own ledger if it began with the run, else ours."""
        own = self._own
        return own if own is not None and self._fresh else self._ledger

    def carry(self, batch: QueryBatch) -> Answers:
        """Stamp a batch, have it answered or hear it again, and count it."""
        meter = self.meter
        number = meter.rounds + meter.check_rounds + 1
        epsilon = self._schedule.stamp(batch, meter.drawn)
        stamped = batch.stamped((self._key, number), epsilon)
        digest = b"" if self._transcript is None else batch.digest()
        if batch.about.check and self._transcript and self._transcript.left_out(number, digest):
            raise BudgetSpent("this check was refused when the run was recorded")
        values = None if self._transcript is None else self._transcript.replay(number, digest)
        if values is not None:
            answers = checked(values, stamped, self._facts.claim)
            spend = self._hear(stamped, answers)
        else:
            answers, spend = self._ask(stamped, number, digest)
        self._ledger.record(spend)
        meter.count(batch, self._facts.records)
        meter.error.add(self._facts.claim, batch.queries, stamped.epsilon)
        meter.risk, meter.proved = batch.about.risk, batch.about.proved
        meter.spent = self._ledger.spent
        if self._watched:
            how = "replayed" if values is not None else "drawn"
            asked = (batch.questions, batch.queries, how, batch.about.label)
            _log.debug("round %d: %d questions, %d answers %s; %s", number, *asked)
        return answers

    def _hear(self, batch: QueryBatch, answers: Answers) -> Event:
        """Return what a recorded batch cost, and let a target that remembers hear it again."""
        mine, law = self._remembering, self._facts.claim.noise
        drawn = self.meter.drawn
        spend = Spend.of(batch, law) if mine is None else mine.recall(batch, answers, drawn)
        self._recorded.append(spend)
        self.meter.replayed += 1
        self._ledger.admit(spend)
        return spend

    def _ask(self, batch: QueryBatch, number: int, digest: bytes) -> tuple[Answers, Event]:
        """Ask a target what was never answered; return also what it cost."""
        self.restore()
        mine, law = self._remembering, self._facts.claim.noise
        spend = Spend.of(batch, law) if mine is None else mine.price(batch)
        self._ledger.admit(spend)
        if self._transcript is not None:
            self._transcript.sent(number, digest)
        try:
            answer = self._target.answer(batch)
        except ThinveilError:
            raise
        except Exception as error:  # what it says could hold values of the table
            why = WROTE if isinstance(error, ValueError) and "read-only" in str(error) else ""
            raise TargetError(f"the target failed: {type(error).__name__}{why}") from error
        answers = checked(answer, batch, self._facts.claim)
        if self._transcript is not None:
            self._transcript.got(number, digest, answers.values)
        return answers, spend

    def restore(self) -> None:
        """Bring a target in this process to where the transcript ends; the replay was free."""
        recorded, self._recorded = self._recorded, []
        if recorded and isinstance(self._target, Restorable):
            free = PostProcessing(f"replay of {many(self.meter.replayed, 'batch', 'batches')}")
            self._target.restore(self.meter.drawn, [*recorded, free])


@contextmanager
def _rare_collections() -> Iterator[Callable[[], None]]:
    """Let Python's garbage collector run now and then only; yields what to call each round.

    A large attack keeps many thousands of live generators. Left alone, the collector walks
    through all of them again and again, for about a third of the whole time.
    """
    enabled, due = gc.isenabled(), time.monotonic() + _COLLECT_SECONDS

    def each_round() -> None:
        nonlocal due
        if enabled and time.monotonic() > due:
            gc.collect()
            due = time.monotonic() + _COLLECT_SECONDS

    gc.disable()
    try:
        yield each_round
    finally:
        if enabled:
            gc.enable()
