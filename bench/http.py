"""The curator behind HTTP: questions a second over loopback, and a whole table from outside."""
# ruff: noqa: A005, it is bench.http and nothing else

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from bench.bank import bank
from bench.figures import Figure, duration, rate, watch
from bench.soaks.processes import Served
from thinveil import Curator, Dataset, PublicFacts, QueryBatch, audit, idp
from thinveil.auditing.http import HttpTarget
from thinveil.language.queries import Answers

RATE_BAR = 200_000
TABLE_SECONDS = 120
CLIENTS = 4
LARGE = 10_000
"""Batches of so many questions count as large."""


def measure(path: Path, quick: bool) -> list[Figure]:
    """Ask a service what the adaptive attack asks, and let the attack itself ask it."""
    data = bank(path, quick)
    batches = asked_by_adaptive(data)
    large = [batch for batch in batches if batch.questions >= LARGE]
    figures = []
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(path, quick, Path(folder)) as (url, token),
    ):
        for what, some, clients in (
            ("all batches of the adaptive attack, indexes built on the way", batches, 1),
            (f"its batches of at least {LARGE:,} questions", large, 1),
            (f"all its batches, {CLIENTS} clients", batches, CLIENTS),
        ):
            if some:
                figures.append(_speed(url, token, some, what, clients))
        figures += _whole(url, token, data, Path(folder))
    return figures


@contextmanager
def serving(path: Path, quick: bool, folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the table in a process of its own; return its address and a token."""
    table, schema = path.absolute(), ["--schema", "bank"]
    if quick:
        table = folder / "sample.csv"
        _sample(path, table)
    served = Served(folder, table, tuple(schema))
    served.start()
    try:
        yield served.url, served.tokens["analyst"]
    finally:
        served.stop()


def _sample(path: Path, table: Path) -> None:
    """Write the sampled records as a file."""
    data = bank(path, quick=True)
    lines = [";".join(data.schema.names), *(";".join(map(str, row)) for row in data.rows())]
    table.write_text("\n".join(lines))


class _Listening:
    """A curator in this process that keeps what it was asked."""

    def __init__(self, data: Dataset) -> None:
        self._curator = Curator(data, idp())
        self.batches: list[QueryBatch] = []

    @property
    def facts(self) -> PublicFacts:
        return self._curator.facts

    def answer(self, batch: QueryBatch) -> Answers:
        self.batches.append(batch)
        return self._curator.answer(batch)


def asked_by_adaptive(data: Dataset) -> list[QueryBatch]:
    """Return every batch that the adaptive attack asks about a table."""
    target = _Listening(data)
    audit(target, strategy="adaptive")
    return target.batches


def _speed(url: str, token: str, batches: list[QueryBatch], what: str, clients: int) -> Figure:
    """Send batches under fresh keys, shared out over some clients."""

    def send(number: int) -> None:
        with closing(HttpTarget(url, token)) as target:
            for place, batch in enumerate(batches[number::clients]):
                target.answer(batch.stamped((f"{what} {number}", place), batch.epsilon))

    with watch() as took, ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, range(clients)))
    queries = sum(batch.queries for batch in batches)
    bar = RATE_BAR if what.startswith("its batches") else None
    return rate(f"over HTTP, {what}", queries, took.seconds, bar, f"{len(batches):,} batches")


def _whole(url: str, token: str, data: Dataset, folder: Path) -> list[Figure]:
    """Reconstruct the whole table from outside."""
    with closing(HttpTarget(url, token)) as target:
        with watch() as took:
            verdict = audit(target, truth=data, strategy="adaptive", transcript=folder / "kept")
        if verdict.score is None or not verdict.score.exact:
            raise AssertionError("the attack did not find everything")
        trips = target.trips.to_plain()
    meter = verdict.run.meter
    return [
        duration(
            "over HTTP, whole table, adaptive",
            took.seconds,
            TABLE_SECONDS,
            f"{meter.queries:,} queries in {meter.rounds:,} rounds",
        ),
        Figure(
            "over HTTP, a round trip",
            f"{trips['median_ms']:.1f} ms median, {trips['p95_ms']:.1f} ms for 95 %, "
            f"{trips['slowest_ms']:.0f} ms at most",
            ratio=f"{trips['bytes_sent'] / 1e6:.0f} MB out, {trips['bytes_received'] / 1e6:.0f} in",
        ),
    ]
