"""What a service does once it knows who asks: price, draw, record, and only then answer.

Each analyst has a curator of their own over the one table, capped by their budget. The ledger
file has the last word: answers leave when it has them, and where it failed, everything in
memory is brought back to what it says.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from thinveil.curator.curator import Curator, Release
from thinveil.curator.drawing import SystemEntropy
from thinveil.curator.ledger import Spend
from thinveil.curator.service.analysts import Analyst, new_token, seal_of
from thinveil.curator.service.ledger.file import LedgerFile
from thinveil.curator.tables.dataset import Held
from thinveil.errors import BudgetError, KeyTaken, LedgerError, QueryError, UsageError
from thinveil.language.claims import Claim
from thinveil.language.facts import PublicFacts
from thinveil.language.policies import NO_POLICIES, Policies
from thinveil.language.wire.facts import facts_to_plain
from thinveil.language.wire.json import Asked, Reply, content_digest

log = logging.getLogger("thinveil.service")


@dataclass(frozen=True, slots=True)
class Statement:
    """How an analyst's account stands."""

    budget: Fraction
    spent: Fraction
    batches: int
    answers: int

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.budget - self.spent

    def after(self, drawn: Release) -> Statement:
        """Return how it stands after a batch was answered."""
        spent, answers = self.spent + drawn.cost, self.answers + len(drawn.values)
        return Statement(self.budget, spent, self.batches + 1, answers)

    def to_plain(self) -> dict[str, Any]:
        """Return the figures for JSON, rounded and exact."""
        figures = {"budget": self.budget, "spent": self.spent, "left": self.left}
        return {
            **{name: float(value) for name, value in figures.items()},
            "batches": self.batches,
            "answers": self.answers,
            "exact": {name: str(value) for name, value in figures.items()},
        }


class Accounts:
    """Everything behind the door of a service; `ledger` is where its file is, or is to be."""

    def __init__(
        self, table: Held, claim: Claim, ledger: Path, policies: Policies = NO_POLICIES
    ) -> None:
        self.facts = PublicFacts(table.records, table.schema, claim, policies)
        public = json.dumps(facts_to_plain(self.facts), sort_keys=True)
        self.ledger = LedgerFile(ledger, f"{table.digest()} {public}")
        self._curator = partial(
            Curator,
            table,
            claim,
            counter=table.counter(),
            policies=policies,
            words=SystemEntropy(),
        )
        self._lock = threading.Lock()
        self._accounts: dict[int, tuple[Curator, Statement]] = {}
        self.recording = True  # whether the ledger took what was last to be recorded
        self.analysts: tuple[Analyst, ...] = ()
        self._reload()

    def admit(self, budgets: Sequence[tuple[str, Fraction]]) -> dict[str, str]:
        """Let analysts in; return the tokens of those who were not known before."""
        known = {analyst.name: analyst for analyst in self.analysts}
        fresh: dict[str, Fraction] = {}
        for name, budget in budgets:
            if name in fresh:
                raise UsageError(f"the analyst {name} is given twice")
            if name not in known:
                fresh[name] = budget
            elif known[name].budget != budget:
                raise UsageError(
                    f"the analyst {name} has a budget of {float(known[name].budget):g} in the "
                    f"ledger {self.ledger.path}, and a budget is for good: use another name"
                )
        tokens = {name: new_token() for name in fresh}
        for name, budget in fresh.items():
            self.ledger.admit(name, seal_of(tokens[name]), budget)
        self._reload()
        return tokens

    def renew(self, name: str) -> str:
        """Return a new token for a known analyst; the old one is worth nothing from now on."""
        known = {analyst.name: analyst for analyst in self.analysts}
        if name not in known:
            raise UsageError(f"the ledger {self.ledger.path} knows no analyst {name}")
        token = new_token()
        self.ledger.renew(known[name], seal_of(token))
        self._reload()
        return token

    def answer(self, analyst: Analyst, asked: Asked) -> Reply:
        """Answer a batch once, and the same again whenever its key comes back.

        Raises:
            KeyTaken: Another batch was answered under this key.
            BudgetSpent: The budget does not allow it; nothing was answered.
            BudgetError: The batch carries no usable privacy budget.
            QueryError: The batch is malformed.
            LedgerError: The ledger is not as it was left, or the answers could not be recorded;
                none was given.
        """
        digest = content_digest(asked.batch)
        with self._lock:
            self._mend()
            self._look()
            curator, now = self._accounts[analyst.number]
            if (found := self.ledger.find(analyst, asked.key)) is not None:
                before, drawn = found
                if before != digest:
                    raise KeyTaken(
                        f"another batch was answered under the key {asked.key}: choose a new one"
                    )
                return _reply(asked.key, drawn, now, again=True)
            try:
                drawn = curator.release(asked.batch)
                drawn = replace(drawn, values=drawn.values + 0.0)  # no zero with a sign
                self.ledger.record(analyst, asked.key, digest, drawn)
                curator.ledger.forget()
                now = now.after(drawn)
                self._accounts[analyst.number] = curator, now
            except (QueryError, BudgetError):
                raise  # refused before anything changed
            except BaseException:
                self.recording = False
                raise
            return _reply(asked.key, drawn, now, again=False)

    def statement(self, analyst: Analyst) -> Statement:
        """Tell how an analyst's account stands."""
        with self._lock:
            self._mend()
            return self._accounts[analyst.number][1]

    def tidy(self) -> None:
        """Bring the ledger into one file, between batches; see that it is as it was left."""
        with self._lock:
            if self.recording:
                try:
                    self._look()
                    self.ledger.tidy()
                except LedgerError as error:
                    self.recording = False
                    log.warning("%s", error)

    def close(self) -> None:
        """Let go of the ledger."""
        with self._lock:
            self.ledger.close()

    def _mend(self) -> None:
        """Bring memory back to what the ledger says, after something failed."""
        if not self.recording:
            self.ledger.reopen()
            self._reload()
            self.recording = True

    def _look(self) -> None:
        """See that the ledger is as it was left."""
        try:
            self.ledger.look()
        except LedgerError:
            self.recording = False
            raise

    def _reload(self) -> None:
        self.analysts = tuple(self.ledger.analysts())
        self._accounts = {each.number: self._account(each) for each in self.analysts}

    def _account(self, analyst: Analyst) -> tuple[Curator, Statement]:
        """Return an analyst's curator and how the account stands, as the ledger says."""
        curator = self._curator(cap=analyst.budget)
        batches, answers, spent = self.ledger.totals(analyst)
        if answers:
            law = self.facts.claim.noise
            delta = Fraction(0) if law is None else law.deltas(answers, spent)
            curator.restore(answers, [Spend(answers, spent, delta)])
        for keys, firsts in self.ledger.remembered(analyst):
            curator.remember(keys, firsts)
        return curator, Statement(analyst.budget, spent, batches, answers)


def _reply(key: str, drawn: Release, now: Statement, *, again: bool) -> Reply:
    return Reply(key, drawn.values, str(drawn.cost), str(now.left), again)
