"""Every reader of what comes from outside, fed with hostile content: read, or a clear error.

`python -m bench.soaks.fuzzing.running NAME SEED COUNT` runs the cases of one reader in a process of
its own, with bounds on its memory, so that not even a crash of a library passes unseen.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.figures import peak_memory
from bench.soaks.fuzzing import documents, services, tables
from bench.soaks.fuzzing.cases import CANARY, Maker
from thinveil.errors import ThinveilError

READERS: Mapping[str, Maker] = {
    "CSV, damaged": tables.csv_bytes,
    "CSV, odd cells": tables.csv_cells,
    "Parquet": tables.parquet_bytes,
    "Arrow": tables.arrow_bytes,
    "spreadsheets": tables.sheets,
    "schema files": documents.schema_files,
    "results": documents.results,
    "comparisons": documents.comparisons,
    "transcripts": documents.transcripts,
    "ledgers": documents.ledgers,
    "facts": services.facts,
    "replies": services.replies,
    "batches": services.batches,
}
"""All readers, by their names."""
CASES = {
    "CSV, damaged": 4_000, "CSV, odd cells": 1_500, "Parquet": 3_000, "Arrow": 2_500,
    "spreadsheets": 1_500, "schema files": 3_000, "results": 2_000, "comparisons": 700,
    "transcripts": 1_500, "ledgers": 1_500, "facts": 2_000, "replies": 1_500, "batches": 3_000,
}  # fmt: skip
"""How many cases a reader gets in the whole run: 27,700."""
SECONDS = 120
"""How long a case may take, on a machine that is busy; most take some milliseconds."""
MEMORY = 3 * 2**30
"""The most bytes of address space of the process that reads."""
UNPACKED = "0.25"
"""What a file may unpack to, in GiB: what asks for more is refused, whatever it says."""
_AT_ONCE = 250


@dataclass
class Fuzzed:
    """What became of the cases of a reader."""

    reader: str
    cases: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    peak: int = 0


class _TooLong(Exception):
    """A case took too long."""


@contextmanager
def _bounded(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzzed(reader: str, seed: int, count: int, first: int = 0) -> Fuzzed:
    """Run cases of a reader in this process. A case depends on the seed and its number alone."""
    outcome = Fuzzed(reader)
    make = READERS[reader]
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, list(READERS).index(reader), number])
        with tempfile.TemporaryDirectory() as folder:
            outcome.cases += 1
            where = f"{reader}, seed {seed}, case {number}"
            try:
                with _bounded(SECONDS), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    make(rng, Path(folder))()
                outcome.read += 1
            except ThinveilError as error:
                outcome.refused[type(error).__name__] += 1
                if CANARY in str(error):
                    outcome.broken.append(f"{where}: the message shows a value: {error}")
                if "not enough memory" in str(error):
                    outcome.broken.append(f"{where}: {error}")
            except Exception as error:  # whatever it is, it is what is looked for
                at = traceback.extract_tb(error.__traceback__)
                path = " > ".join(f"{Path(each.filename).name}:{each.lineno}" for each in at[-4:])
                outcome.broken.append(
                    f"{where}: {type(error).__name__}: {str(error)[:200]} ({path})"
                )
    outcome.peak = peak_memory()
    return outcome


def apart(reader: str, seed: int, count: int) -> Fuzzed:
    """Run cases of a reader in processes of their own; one that dies is broken, too."""
    outcome = Fuzzed(reader)
    for first in range(0, count, _AT_ONCE):
        some = min(_AT_ONCE, count - first)
        numbers = map(str, (seed, some, first))
        words = [sys.executable, "-m", "bench.soaks.fuzzing.running", reader, *numbers]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            at = f"{reader}, seed {seed}, cases from {first}"
            outcome.broken.append(f"{at}: exit {done.returncode}: {done.stderr[-600:]}")
            continue
        part = json.loads(done.stdout.splitlines()[-1])
        outcome.cases += part["cases"]
        outcome.read += part["read"]
        outcome.refused.update(part["refused"])
        outcome.broken += part["broken"]
        outcome.peak = max(outcome.peak, part["peak"])
    return outcome


def main(reader: str, seed: str, count: str, first: str = "0") -> None:
    """Run the cases in this process, within bounds, and print what became of them."""
    faulthandler.enable()
    os.environ["THINVEIL_MOST_UNPACKED"] = UNPACKED
    os.environ.setdefault("COLUMNS", "200")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(json.dumps(vars(fuzzed(reader, int(seed), int(count), int(first)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
