"""The same distribution at several sizes: what a record costs as tables grow."""

from __future__ import annotations

from pathlib import Path

from bench.figures import peak_memory, watch
from bench.growth import Growth
from bench.mechanisms import wrong_records
from bench.synthetic import synthetic
from thinveil import audit


def measure(path: Path | None, quick: bool, strategy: str, records: str) -> list[Growth]:
    """Reconstruct a synthetic table of so many records once."""
    data, known = synthetic(int(records))
    with watch() as took:
        verdict = audit(data, strategy=strategy)
    peak = peak_memory()
    assert verdict.bits is not None
    return [
        Growth(
            strategy,
            data.records,
            verdict.run.meter.queries,
            verdict.run.meter.rounds,
            verdict.bits,
            known,
            took.seconds,
            peak,
            wrong_records(verdict, data),
        )
    ]
