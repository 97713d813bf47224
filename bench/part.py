"""One part of the benchmarks in a process of its own: `python -m bench.part NAME DATA QUICK`.

Prints its figures as JSON. A fresh process makes the peak of its memory mean something.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench import attacks, loading, ready

PARTS = {
    "ready": ready.measure,
    "table": attacks.table,
    "columns": attacks.columns,
    "people": attacks.people,
    "real": loading.real,
    "synthetic": loading.synthetic,
}


def main(name: str, path: str, quick: str) -> None:
    """Measure one part."""
    figures = PARTS[name](Path(path), quick == "quick")
    print(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    main(*sys.argv[1:])
