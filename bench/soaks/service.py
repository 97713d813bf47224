"""The service killed under load, and many clients racing for one budget."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.soaks.processes import Served
from thinveil import PublicFacts, QueryBatch, batch_of
from thinveil.language.wire.arrow import MEDIA_TYPE, decode_reply, encode_batch
from thinveil.language.wire.facts import facts_from_plain
from thinveil.language.wire.json import Asked, Reply

SHARE = 0.001
"""The claimed loss of each answer."""
_RETRY = 0.05
MOST_KEPT = 500
"""Batches that a client keeps to ask them again; an hour's worth would fill its memory."""


@dataclass
class Outcome:
    """What became of a service under load.

    Args:
        kills: How often the service was killed.
        answered: How many batches were answered, each key once.
        again: How many batches were asked again under a key that was answered before.
        lost: How many requests got no reply.
        statuses: How often each status came back.
        broken: What went wrong.
    """

    kills: int = 0
    answered: int = 0
    again: int = 0
    lost: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


@dataclass
class Client:
    """An analyst's program: new batches, and now and then an old one under its old key."""

    served: Served
    analyst: str
    number: int
    seed: int
    outcome: Outcome
    kept: dict[str, tuple[QueryBatch, bytes]] = field(default_factory=dict)
    asked: int = 0
    refused: int = 0
    answered: int = 0  # batches, each key once
    answers: int = 0  # of these batches
    rest: float = 0.0  # seconds between two requests
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        import httpx

        self.rng = np.random.default_rng([self.seed, self.number])
        token = self.served.tokens[self.analyst]
        self.http = httpx.Client(
            base_url=self.served.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=20,
            trust_env=False,
        )

    def close(self) -> None:
        """Let go of the connection."""
        self.http.close()

    def facts(self) -> PublicFacts:
        """Return what the service makes public."""
        return facts_from_plain(self.http.get("/facts").json())

    def ledger(self) -> dict[str, Any]:
        """Return how the analyst's account stands."""
        found: dict[str, Any] = self.http.get("/ledger").json()
        return found

    def new_batch(self, facts: PublicFacts) -> QueryBatch:
        """Return some questions about random ranges."""
        questions = []
        for _ in range(int(self.rng.integers(1, 20))):
            low = int(self.rng.integers(0, 80))
            questions.append(([{0: (low, low + 20)}], int(self.rng.integers(0, 30))))
        return batch_of(questions)

    def send(self, key: str, batch: QueryBatch) -> tuple[int, Reply | None]:
        """Send a batch once; status 0 where no reply came."""
        import httpx

        body = bytes(encode_batch(Asked(key, batch.stamped((key, 1), SHARE))))
        kinds = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE}
        try:
            reply = self.http.post("/answers", content=body, headers=kinds)
        except httpx.HTTPError:
            self.outcome.lost += 1
            return 0, None
        self.outcome.statuses[reply.status_code] += 1
        if reply.status_code != 200:
            return reply.status_code, None
        return 200, decode_reply(reply.content)

    def load(self, facts: PublicFacts) -> None:
        """Ask until told to stop; a batch without a reply is asked again under its key."""
        pending: tuple[str, QueryBatch] | None = None
        while not self.stop.is_set() or pending is not None:
            if self.rest:
                time.sleep(self.rest)
            if pending is None and self.kept and self.rng.integers(5) == 0:
                key = list(self.kept)[int(self.rng.integers(len(self.kept)))]
                batch, before = self.kept[key]
                status, reply = self.send(key, batch)
                if reply is not None:
                    self.outcome.again += 1
                    if reply.values.tobytes() != before or not reply.again:
                        self.outcome.broken.append(f"{key}: other answers under the same key")
                elif status not in (0, 429, 503):
                    self.outcome.broken.append(f"{key}: an answered batch got status {status}")
                continue
            if pending is None:
                self.asked += 1
                pending = f"{self.analyst}-{self.number}-{self.asked}", self.new_batch(facts)
            status, reply = self.send(*pending)
            if reply is not None:
                self.keep(*pending, reply)
                pending = None
            elif status == 402:
                self.refused += 1
                pending = None
                if self.refused > 3:
                    return
            elif status in (0, 429, 503):
                time.sleep(_RETRY)
            else:
                self.outcome.broken.append(f"{pending[0]}: status {status}")
                pending = None

    def keep(self, key: str, batch: QueryBatch, reply: Reply) -> None:
        """Note what was answered; beyond some size a batch at random is forgotten."""
        self.answered += 1
        self.answers += batch.queries
        if len(self.kept) >= MOST_KEPT:
            del self.kept[list(self.kept)[int(self.rng.integers(MOST_KEPT))]]
        self.kept[key] = batch, reply.values.tobytes()

    def cost(self) -> Fraction:
        """Return what the answered batches cost, each key once."""
        return Fraction(self.answers, 1000)


def killed_service(folder: Path, table: Path, seed: int, kills: int) -> Outcome:
    """Kill a service under load, again and again, and hold its ledger to what clients got."""
    rng = np.random.default_rng(seed)
    outcome = Outcome()
    served = Served(folder, table, ("--rate", "100000"), {"rich": "1000000", "poor": "3"})
    served.start()
    clients = [Client(served, "rich", number, seed, outcome) for number in range(3)]
    poor = Client(served, "poor", 9, seed, outcome)
    facts = poor.facts()
    threads = [
        threading.Thread(target=each.load, args=(facts,), daemon=True) for each in [*clients, poor]
    ]
    for thread in threads:
        thread.start()
    try:
        for number in range(kills):
            if kills >= 100 and number % 50 == 0:
                print(f"{number} kills", file=sys.stderr, flush=True)
            time.sleep(float(rng.uniform(0.0, 0.8)))
            served.kill()
            outcome.kills += 1
            served.start()
        time.sleep(0.3)
    finally:
        for each in [*clients, poor]:
            each.stop.set()
        for thread in threads:
            thread.join(120)
    if any(thread.is_alive() for thread in threads):
        outcome.broken.append("a client is still waiting for an answer")
    held_to(outcome, clients, "rich")
    held_to(outcome, [poor], "poor", cap=Fraction(3))
    outcome.answered = sum(each.answered for each in [*clients, poor])
    for each in [*clients, poor]:
        each.close()
    if served.stop() != 0:
        outcome.broken.append("the service did not end cleanly")
    return outcome


def racing_clients(folder: Path, table: Path, seed: int, clients: int, budget: str) -> Outcome:
    """Let many clients race for one budget: never over it, and within one batch of it."""
    outcome = Outcome()
    served = Served(folder, table, ("--rate", "100000"), {"one": budget})
    served.start()
    try:
        racers = [Client(served, "one", number, seed, outcome) for number in range(clients)]
        facts = racers[0].facts()
        threads = [threading.Thread(target=each.load, args=(facts,)) for each in racers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        outcome.answered = sum(each.answered for each in racers)
        held_to(outcome, racers, "one", cap=Fraction(budget))
        largest = Fraction(19, 1000)  # the largest batch that a client asks
        left = Fraction(budget) - sum((each.cost() for each in racers), Fraction(0))
        if not 0 <= left < largest:
            outcome.broken.append(f"{float(left)} was left of the budget")
        for each in racers:
            each.close()
    finally:
        with suppress(AssertionError):
            served.stop()
    return outcome


def held_to(
    outcome: Outcome, clients: list[Client], analyst: str, cap: Fraction | None = None
) -> None:
    """Hold the service's ledger to what its clients got: charged once for each key, no more."""
    stands = clients[0].ledger()
    spent = Fraction(stands["exact"]["spent"])
    got = sum((each.cost() for each in clients), Fraction(0))
    batches = sum(each.answered for each in clients)
    if spent < got:
        outcome.broken.append(f"{analyst}: {float(spent)} spent, and {float(got)} was answered")
    if spent > got or stands["batches"] != batches:
        outcome.broken.append(f"{analyst}: charged for {stands['batches']} batches, got {batches}")
    if cap is not None and spent > cap:
        outcome.broken.append(f"{analyst}: {float(spent)} spent of {float(cap)}")
