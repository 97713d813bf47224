"""A run that a page watches: an attack in a thread of its own, and a numbered list of events.

The driver's loop runs the attack. The target is wrapped: it lets questions through at the pace
that the page wants, a portion of a round at a time, and writes them down. Noise belongs to the
ordinal of an answer, so how a round is cut changes nothing.

Events, in order: one "start", then "asked" (questions and answers) and "round" (meter and cells
that changed) in turn, then one "end". "state" tells of pauses in between.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import numpy as np

from thinveil.attacker.findings import ColumnFound, ColumnsFound, Found, PeopleFound, TableFound
from thinveil.auditing.attempt import attempt_on, curator_of
from thinveil.auditing.driver import Meter, Run
from thinveil.curator.curator import Curator
from thinveil.errors import ThinveilError
from thinveil.lab.journal import Journal
from thinveil.lab.pace import Pace
from thinveil.lab.reveal import Onlooker, Revealed, change
from thinveil.lab.setting import Setting
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, QueryBatch
from thinveil.verdicts.judging.scoring import guess, score
from thinveil.verdicts.names import LINES
from thinveil.verdicts.results import knowledge_of, result_of
from thinveil.verdicts.verdict import Verdict

FORMAT: Final = 1
"""The version of the events; the page refuses a recording of another."""
_LAW: Final = ("protected", "leaks", "textbook", "counts", "reach", "offset", "post")
"""What the page needs of a claim to say what an answer tells."""


class Session:
    """One run of one tab, as chosen."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.pace = Pace(setting.speed, setting.paused, setting.options.attack == "dataset")
        truth = setting.table.data
        self._target = _Watched(curator_of(truth, setting.options), self)
        self._attempt = attempt_on(self._target, setting.options, ours=True)
        self._journal = Journal(truth)
        self._onlooker = Onlooker(truth, setting.fitting)
        self._seen: Revealed | None = None
        self._told: dict[str, Any] = {}
        self._events: list[str] = []
        self._done = False
        self._thread = threading.Thread(target=self._run, name="thinveil-lab", daemon=True)
        self._emit("start", **_start(setting, self._target.facts))

    def start(self) -> None:
        """Begin to attack."""
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether the last event is there."""
        return self._done

    def since(self, number: int) -> list[str]:
        """Return all events from a number on, each as JSON."""
        return self._events[max(0, number) :]

    def join(self, timeout: float | None = None) -> None:
        """Wait until the attack has ended."""
        self._thread.join(timeout)

    def say_state(self) -> None:
        """Tell everybody who watches whether the run is paused."""
        if not self._done:
            self._emit("state", paused=self.pace.paused)

    def _emit(self, kind: str, **more: Any) -> None:
        self._events.append(json.dumps({"kind": kind, **more}, separators=(",", ":")))

    def note(self, batch: QueryBatch, answers: Answers) -> None:
        """Tell of questions that were just answered."""
        self._emit("asked", answers=batch.queries, **self._journal.write(batch, answers))

    def _run(self) -> None:
        try:
            self._end(self._attempt.run(self._round))  # type: ignore[arg-type]
        except ThinveilError as error:
            self._emit("end", ending="error", sentence=f"The run failed: {error}.")
        except Exception as error:  # what it says could hold values of the table
            name = type(error).__name__
            self._emit("end", ending="error", sentence=f"The run failed by a bug: {name}.")
        self._done = True

    def _round(self, meter: Meter, about: About) -> None:
        """Tell of a round; called by the driver's loop."""
        self._emit(
            "round",
            number=meter.rounds,
            questions=meter.questions,
            answers=meter.queries,
            claimed=self._target.claimed,
            **self._news(label=about.label, **self._look(about.so_far())),
        )

    def _news(self, **told: Any) -> dict[str, Any]:
        """Return what was not told in the same words before; "cells" are a change already."""
        news = {
            name: value
            for name, value in told.items()
            if name == "cells" or self._told.get(name) != value
        }
        self._told |= told
        return news

    def _look(self, found: Found | None) -> dict[str, Any]:
        now = self._onlooker.look(found)
        cells = change(self._seen, now, self.setting.table.data)
        self._seen = now
        if now.values:
            self.pace.calm()
        told: dict[str, Any] = {"people": now.people, "values": now.values}
        told |= {"cells": cells} if cells else {}
        if isinstance(found, PeopleFound) and found.people:
            who = found.people[0]
            told["person"] = {
                name: getattr(who, name)
                for name in ("present", "unique", "matches")
                if getattr(who, name) is not None
            }
        return told

    def _end(self, ended: Run[Found | None]) -> None:
        setting, truth, facts = self.setting, self.setting.table.data, self._target.facts
        found = None if ended.ending == "broken" else ended.found
        seed = setting.options.seed
        scored = score(found, truth) if isinstance(found, TableFound) else None
        verdict = Verdict(
            options=setting.options,
            facts=facts,
            run=replace(ended, found=found),
            score=scored,
            findings=result_of(found, setting.options, facts, truth),
            seconds=ended.seconds,
            seed=seed,
            remarks=truth.remarks,
            ours=True,
            knowledge=knowledge_of(found, facts.schema, truth),
        )
        self._emit(
            "end",
            ending=ended.ending,
            sentence=verdict.sentence(),
            questions=ended.meter.questions,
            answers=ended.meter.queries,
            rounds=ended.meter.rounds,
            claimed=self._target.claimed,
            **self._look(found),
        )


class _Watched:
    """A curator whose questions are let through at a pace, and written down."""

    def __init__(self, curator: Curator, session: Session) -> None:
        self._curator, self._session = curator, session
        self.facts, self.ledger = curator.facts, curator.ledger

    @property
    def claimed(self) -> float | None:
        """The claimed loss of everything answered so far."""
        return float(self.ledger.spent) if self.facts.claim.protected else None

    def answer(self, batch: QueryBatch) -> Answers:
        """Answer a batch, perhaps in portions."""
        parts = []
        asked = 0
        while asked < batch.questions:
            portion = self._session.pace.allow(batch.questions - asked)
            rows = np.arange(asked, asked + portion)
            some = batch if portion == batch.questions else batch.some(rows)
            answers = self._curator.answer(some)
            self._session.note(some, answers)
            parts.append(answers.values)
            asked += portion
        return Answers(np.concatenate(parts), batch.repeats, batch.epsilon)


def _start(setting: Setting, facts: PublicFacts) -> dict[str, Any]:
    options = setting.options
    return {
        "format": FORMAT,
        "table": setting.table.to_plain(),
        "mechanism": {
            "name": facts.claim.name,
            "line": LINES[options.mechanism],
            "about": facts.claim.describe(),
            **{name: getattr(facts.claim, name) for name in _LAW},
        },
        "k": facts.claim.k,
        "epsilon": options.epsilon_per_query,
        "attack": options.attack,
        "strategy": options.strategy_for(facts.claim),
        "columns": list(options.columns),
        "person": setting.person,
        "known": dict(options.people[0]) if options.people else {},
        "fitting": list(setting.fitting),
        "seed": options.seed,
        "code": setting.code,
        "baseline": _baseline(setting, facts),
    }


def _baseline(setting: Setting, facts: PublicFacts) -> dict[str, Any]:
    """Return what a guess from public facts alone gets right, laid next to people as findings are.

    For an attack on one person there is none but chance.
    """
    truth, options = setting.table.data, setting.options
    guessed = guess(facts.schema, facts.records, options.seed)
    if options.attack == "dataset":
        width = len(facts.schema)
        ones = np.ones(facts.records, np.int64)
        rows = TableFound(tuple(range(width)), guessed, ones * width, ones, (1,) * width)
        blind = Onlooker(truth).look(rows)
        return {"people": blind.people, "values": blind.values}
    if options.attack == "column":
        columns = [facts.schema.column(name) for name in options.columns]
        found = [
            ColumnFound(each, list(Counter(guessed[:, each].tolist()).items())) for each in columns
        ]
        return {"people": None, "values": Onlooker(truth).look(ColumnsFound(tuple(found))).values}
    return {"people": None, "values": None}
