"""The real table that most benchmarks use."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thinveil import Dataset, load, read_schema

QUICK_RECORDS = 3_000


def bank(path: Path, quick: bool, records: int = QUICK_RECORDS) -> Dataset:
    """Return bank-full.csv, or a sample of its records for a quick look."""
    data = load(path, read_schema("bank"))
    if not quick:
        return data
    rows = np.random.default_rng(0).choice(data.records, records, replace=False)
    return data.sample(np.sort(rows))
