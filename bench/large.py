"""Tables of millions of records where every count would be a burden to weigh: three attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import Figure, duration, memory, watch
from bench.mechanisms import wrong_records
from bench.synthetic import SCHEMA, synthetic
from thinveil import Dataset, Schema, audit

SECONDS_BAR = 120
MEMORY_BAR = 8 * 2**30
ATTRIBUTES, CHUNK = 3, 1_000_000


def measure(
    path: Path | None, quick: bool, mechanism: str, strategy: str, records: str
) -> Sequence[Figure]:
    """Reconstruct three attributes of a synthetic table in memory; the parts are drawn apart."""
    size, codes = int(records), []
    for number, start in enumerate(range(0, size, CHUNK)):
        part, _ = synthetic(min(CHUNK, size - start), number)
        codes.append(part.codes[:, :ATTRIBUTES])
    data = Dataset(Schema(SCHEMA.attributes[:ATTRIBUTES]), np.concatenate(codes))
    with watch() as took:
        verdict: Any = audit(data, mechanism=mechanism, strategy=strategy)
    what, meter = f"{mechanism}, {strategy}, {size:,} records", verdict.run.meter
    figures = [memory(f"{what}: peak memory", MEMORY_BAR)]
    if verdict.run.ending == "complete" and wrong_records(verdict, data):
        raise SystemExit("some records are wrong")
    ending = "exact" if verdict.run.ending == "complete" else "no usable difference"
    each = f"{ending}; {meter.queries:,} answers, {meter.rounds:,} rounds"
    return [duration(what, took.seconds, SECONDS_BAR, each), *figures]
