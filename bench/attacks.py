"""Whole attacks with their generators, as a user runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.bank import bank
from bench.figures import MIB, Figure, duration, memory, rate, watch
from thinveil import Dataset, Verdict, audit
from thinveil.paper.figures import ORDER

RATE_BAR = 500_000
TABLE_SECONDS = 60
TABLE_MEMORY = 2048 * MIB
COLUMNS_SECONDS = 120
MECHANISMS = ("unprotected", "idp")


def table(path: Path, quick: bool) -> list[Figure]:
    """Reconstruct the whole table in the published order, unprotected and protected."""
    data = bank(path, quick)
    figures = []
    total = 0.0
    asked: list[int] = []
    for mechanism in MECHANISMS:
        verdict, seconds = _audit(data, mechanism=mechanism, order=ORDER)
        meter = verdict.run.meter
        total += seconds
        asked.append(meter.queries)
        ratio = "" if mechanism == "unprotected" else f"{_times(asked)} x the unprotected queries"
        figures += [
            rate(f"whole table, {mechanism}", meter.queries, verdict.seconds, RATE_BAR),
            Figure(
                f"whole table, {mechanism}: asked",
                f"{meter.queries:,} queries in {meter.rounds:,} rounds",
                ratio=ratio,
            ),
            duration(f"whole table, {mechanism}: whole audit with scoring", seconds),
        ]
    return [
        *figures,
        duration("whole table, both together", total, TABLE_SECONDS),
        memory("whole table, peak memory", TABLE_MEMORY),
    ]


def columns(path: Path, quick: bool) -> list[Figure]:
    """Find every attribute by itself, all of them side by side."""
    data = bank(path, quick)
    figures = []
    total = 0.0
    asked: list[int] = []
    for mechanism in MECHANISMS:
        verdict, seconds = _audit(
            data, mechanism=mechanism, attack="column", columns=data.schema.names
        )
        meter = verdict.run.meter
        total += seconds
        asked.append(meter.queries)
        ratio = "" if mechanism == "unprotected" else f"{_times(asked)} x the unprotected queries"
        figures += [
            duration(f"single attributes, {mechanism}", seconds),
            Figure(
                f"single attributes, {mechanism}: asked",
                f"{meter.queries:,} queries in {meter.rounds:,} rounds",
                ratio=ratio,
            ),
            Figure(
                f"single attributes, {mechanism}: a round",
                f"{verdict.seconds / meter.rounds * 1e6:,.1f} µs",
            ),
        ]
    return [*figures, duration("single attributes, both together", total, COLUMNS_SECONDS)]


def people(path: Path | None, quick: bool) -> list[Figure]:
    """Audit the embedded people: what a first try costs."""
    verdict, seconds = _audit(None, strategy="adaptive")
    asked = f"{verdict.run.meter.queries:,} queries"
    return [duration(f"embedded people ({asked})", seconds)]


def _audit(
    data: Dataset | None, strategy: str = "published", **settings: Any
) -> tuple[Verdict, float]:
    with watch() as took:
        verdict = audit(data, strategy=strategy, **settings)
    if verdict.run.ending != "complete" or (verdict.score and not verdict.score.exact):
        raise AssertionError("the attack did not find everything")
    return verdict, took.seconds


def _times(asked: list[int]) -> str:
    return f"{asked[1] / asked[0]:.3f}"
