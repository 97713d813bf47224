"""One part of the benchmarks in a process of its own: `python -m bench.part QUICK DATA NAME ...`.

Prints its rows as JSON. A fresh process makes the peak of its memory mean something.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

PARTS = {
    "ready": "bench.ready:measure",
    "table": "bench.attacks:table",
    "columns": "bench.attacks:columns",
    "people": "bench.attacks:people",
    "real": "bench.loading:real",
    "synthetic": "bench.loading:synthetic",
    "reconstruct": "bench.mechanisms:reconstruct",
    "mistakes": "bench.mechanisms:mistakes",
    "noise": "bench.noise:measure",
    "draws": "bench.noise:draws",
    "person": "bench.questions:person",
    "whole": "bench.questions:whole",
    "scaling": "bench.scaling:measure",
    "database": "bench.databases:whole",
    "spark-census": "bench.databases:census",
    "parquet": "bench.parquet:measure",
    "large": "bench.large:measure",
    "service": "bench.http:measure",
    "start": "bench.evidence:start",
    "trials": "bench.evidence:trials",
    "report": "bench.evidence:report",
    "bounds": "bench.trials:measure",
    "liars": "bench.lies:liars",
    "honest": "bench.lies:honest_ones",
    "soak": "bench.soaks.whole:part",
    "tables": "bench.tables.whole:part",
    "wide": "bench.wide:measure",
}
"""Where each part is measured; only that module is imported."""


def main(quick: str, path: str, name: str, *settings: str) -> None:
    """Measure one part."""
    module, _, function = PARTS[name].partition(":")
    measure: Callable[..., list[Any]] = getattr(importlib.import_module(module), function)
    rows = measure(Path(path), quick == "quick", *settings)
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
