"""One part of the benchmarks in a process of its own: `python -m bench.part QUICK DATA NAME ...`.

Prints its rows as JSON. A fresh process makes the peak of its memory mean something.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import attacks, loading, mechanisms, noise, questions, ready, scaling

PARTS: dict[str, Callable[..., list[Any]]] = {
    "ready": ready.measure,
    "table": attacks.table,
    "columns": attacks.columns,
    "people": attacks.people,
    "real": loading.real,
    "synthetic": loading.synthetic,
    "reconstruct": mechanisms.reconstruct,
    "soak": mechanisms.soak,
    "noise": noise.measure,
    "person": questions.person,
    "whole": questions.whole,
    "scaling": scaling.measure,
}


def main(quick: str, path: str, name: str, *settings: str) -> None:
    """Measure one part."""
    rows = PARTS[name](Path(path), quick == "quick", *settings)
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
