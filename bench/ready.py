"""Ready batches: how fast driver, curator, noise, ledger and meter are by themselves.

The batches of the published attack on the whole table are recorded once. Then they are
asked again by an attack that has nothing to think about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.bank import bank
from bench.figures import Figure, rate, watch
from thinveil import Answers, Curator, Dataset, Options, QueryBatch
from thinveil.attacker.terms import Attack
from thinveil.auditing.attacks import attack_on
from thinveil.auditing.driver import Run, run
from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.language.queries import About

BAR = 3_000_000
OPTIONS = Options(mechanism="idp", strategy="published")
LAST_ATTRIBUTES = 5
REPETITIONS = 3
SCANNED_BATCHES = 40
SCANNED_OF_EACH = 10


def measure(path: Path, quick: bool) -> list[Figure]:
    """Return the rates of ready batches, and of a sample of them counted by scanning."""
    data = bank(path, quick)
    batches = _record(data)
    first = len(data.schema) - LAST_ATTRIBUTES
    prefixed = [batch for batch in batches if len(batch.cells.columns) >= first]
    last_rate = _rate(data, prefixed)
    every_rate = _rate(data, batches)
    sample = _sample(prefixed)
    scanned, scan_seconds = _replay(data, sample, ScanCounter(data.codes))
    indexed, _ = _replay(data, sample)
    _same(scanned.found, indexed.found)
    scan_rate = scanned.meter.queries / scan_seconds
    return [
        rate(
            f"ready batches, last {LAST_ATTRIBUTES} attributes ({_size(prefixed)})",
            *last_rate,
            BAR,
            f"{last_rate[0] / last_rate[1] / scan_rate:,.0f} x scanning",
        ),
        rate(f"ready batches, all attributes ({_size(batches)})", *every_rate),
        rate(f"scanning a sample of them ({_size(sample)})", scanned.meter.queries, scan_seconds),
    ]


def _size(batches: list[QueryBatch]) -> str:
    return f"{sum(batch.queries for batch in batches):,} queries in {len(batches):,} rounds"


def _record(data: Dataset) -> list[QueryBatch]:
    """Return everything that the published attack asks, without what it was about."""
    kept: list[QueryBatch] = []

    def recording(attack: Attack[Any]) -> Attack[Any]:
        batch = next(attack)
        while True:
            kept.append(replace(batch, about=About()))
            answers = yield batch
            try:
                batch = attack.send(answers)
            except StopIteration as stop:
                return stop.value

    target = Curator(data, OPTIONS.claim())
    attack = recording(attack_on(OPTIONS, target.facts))
    complete(run(attack, target, OPTIONS.schedule(target.facts.claim)), kept)
    return kept


def _ready(batches: Iterable[QueryBatch], keep: bool) -> Attack[list[Answers]]:
    """Ask batches that are ready, whatever the answers are."""
    answers = []
    for batch in batches:
        got = yield batch
        if keep:
            answers.append(got)
    return answers


def _replay(
    data: Dataset, batches: list[QueryBatch], counter: Counter | None = None, keep: bool = True
) -> tuple[Run[list[Answers]], float]:
    """Ask ready batches of a fresh curator, whose indexes are built on the way."""
    target = Curator(data, OPTIONS.claim(), counter=counter)
    schedule = OPTIONS.schedule(target.facts.claim)
    with watch() as took:
        ended = run(_ready(batches, keep), target, schedule)
    complete(ended, batches)
    return ended, took.seconds


def _rate(data: Dataset, batches: list[QueryBatch]) -> tuple[int, float]:
    """Return how many queries there are, and the median of the seconds they took."""
    times = [_replay(data, batches, keep=False)[1] for _ in range(REPETITIONS)]
    return sum(batch.queries for batch in batches), median(times)


def _sample(batches: list[QueryBatch]) -> list[QueryBatch]:
    """Return a few questions of batches spread over all of them."""
    chosen = np.unique(np.linspace(0, len(batches) - 1, SCANNED_BATCHES).astype(int))
    rng = np.random.default_rng(0)
    sample = []
    for batch in (batches[place] for place in chosen.tolist()):
        some = rng.integers(0, batch.questions, SCANNED_OF_EACH)
        parts = {
            name: getattr(batch, name)[some]
            for name in ("cell", "column", "low", "high", "threshold")
        }
        sample.append(replace(batch, **parts))
    return sample


def complete(ended: Run[Any], batches: Sequence[QueryBatch]) -> None:
    """Refuse a run that ended early: it would look fast."""
    asked = sum(batch.queries for batch in batches)
    if ended.ending != "complete" or ended.meter.queries != asked:
        raise AssertionError(f"the run was not completed: {ended.ending} {ended.reason}")


def _same(left: list[Answers], right: list[Answers]) -> None:
    """Both counters got the same noise, so their answers have to be the same."""
    for one, other in zip(left, right, strict=True):
        if not np.array_equal(one.values, other.values):
            raise AssertionError("the index and the scan gave different answers")
