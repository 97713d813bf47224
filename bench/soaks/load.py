"""A service under load for an hour: its memory stays, and its ledger has what was answered."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.soaks.processes import Served
from bench.soaks.service import Client, Outcome, held_to

REST = 0.01
"""Seconds between two requests of a client: some 200 a second of all, which two cores bear."""
SAMPLE = 5.0
"""Seconds between two looks at the memory."""


@dataclass
class Loaded:
    """What an hour led to.

    Args:
        outcome: What clients saw.
        sizes: Seconds since the start and bytes of memory, look by look.
        rude: Requests that were malformed, unfinished or from nobody known.
        rude_statuses: How often each status came back to these; 0 for none.
    """

    outcome: Outcome = field(default_factory=Outcome)
    sizes: list[tuple[float, int]] = field(default_factory=list)
    rude: int = 0
    rude_statuses: Counter[int] = field(default_factory=Counter)

    def at(self, share: float) -> int:
        """Return the largest memory of the looks about a moment, a share of the whole time."""
        wanted = share * self.sizes[-1][0]
        near = sorted(self.sizes, key=lambda each: abs(each[0] - wanted))[:6]
        return max(size for _, size in near)

    @property
    def first(self) -> int:
        """After a twelfth of the time: five minutes of an hour."""
        return self.at(1 / 12)

    @property
    def last(self) -> int:
        """At the end."""
        return self.at(1)

    @property
    def ratio(self) -> float:
        """How many times the memory of the beginning that of the end is."""
        return self.last / self.first

    @property
    def statuses(self) -> str:
        """How often each status came back, in one line."""
        both = self.outcome.statuses + self.rude_statuses
        return ", ".join(f"{status}: {times:,}" for status, times in sorted(both.items()))


def loaded(folder: Path, table: Path, seed: int, minutes: float) -> Loaded:
    """Load a service with honest and rude clients, and look at its memory all the while."""
    found = Loaded()
    served = Served(folder, table, ("--rate", "100000"), {"rich": "1000000000", "poor": "3"})
    served.start()
    clients = [Client(served, "rich", number, seed, found.outcome, rest=REST) for number in (0, 1)]
    poor = Client(served, "poor", 2, seed, found.outcome, rest=REST)
    facts = poor.facts()
    over = threading.Event()
    threads = [threading.Thread(target=each.load, args=(facts,)) for each in [*clients, poor]]
    threads.append(threading.Thread(target=_rude, args=(served, found, seed, over)))
    for thread in threads:
        thread.start()
    began, told = time.monotonic(), 0.0
    try:
        while (passed := time.monotonic() - began) < 60 * minutes:
            time.sleep(min(SAMPLE, minutes))
            found.sizes.append((time.monotonic() - began, _memory(served)))
            if passed - told >= 300:
                told = passed
                size = found.sizes[-1][1] / 2**20
                print(f"{passed / 60:.0f} minutes: {size:.1f} MiB", file=sys.stderr, flush=True)
    finally:
        over.set()
        for each in [*clients, poor]:
            each.stop.set()
        for thread in threads:
            thread.join(120)
    held_to(found.outcome, clients, "rich")
    found.outcome.answered = sum(each.answered for each in [*clients, poor])
    for each in [*clients, poor]:
        each.close()
    if served.stop() != 0:
        found.outcome.broken.append("the service did not end cleanly")
    log = served.log.read_text()
    if "Traceback" in log or "unexpected" in log:
        found.outcome.broken.append("something unexpected stands in the log")
    return found


def _memory(served: Served) -> int:
    """Return the bytes of memory that the service holds."""
    assert served.process is not None
    with open(f"/proc/{served.process.pid}/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def _rude(served: Served, found: Loaded, seed: int, over: threading.Event) -> None:
    """Send what nobody should: unfinished headers and bodies, junk, wrong tokens, no reading."""
    rng = np.random.default_rng([seed, 99])
    token = served.tokens["rich"]
    known = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    post = f"POST /answers HTTP/1.1\r\nHost: x\r\n{known}"
    junk = json.dumps([[[]] * 3000] * 10).encode()
    deep = b"[" * 50_000
    messages = (
        b"GET /facts HTTP/1.1\r\nHost: x\r\nX-Half: ",
        b"GET /facts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer nobody\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        f"{post}Content-Length: 500\r\n\r\n{{".encode(),
        *(f"{post}Content-Length: {len(each)}\r\n\r\n".encode() + each for each in (junk, deep)),
        f"GET /facts HTTP/1.1\r\nHost: x\r\n{known}\r\n".encode() * 20,
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 100_000,
    )
    held: list[socket.socket] = []
    while not over.is_set():
        time.sleep(REST)
        found.rude += 1
        status = 0
        with suppress(OSError):
            line = socket.create_connection(("127.0.0.1", served.port), timeout=2)
            held.append(line)
            line.settimeout(0.05)
            line.sendall(messages[int(rng.integers(len(messages)))])
            said = line.recv(64)
            status = int(said.split()[1]) if said.startswith(b"HTTP/") else 0
        found.rude_statuses[status] += 1
        while len(held) > int(rng.integers(0, 40)):
            held.pop(0).close()
    for each in held:
        each.close()
