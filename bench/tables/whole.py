"""Audit all data sets of four packages as people would: `python -m bench tables`."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

from bench.tables.comparing import Differs, Found, compare, public_numbers, read
from bench.tables.gathering import Table, gather
from bench.tables.sheet import Kind, Outcome
from thinveil import audit
from thinveil.errors import ThinveilError
from thinveil.language.schema import Grid

SECONDS: Final = 120
"""How long one table may take, in processor time: other work on the machine does not count."""
WORKERS: Final = 2
QUICK: Final = 20
"""A quick run takes every so many tables."""
FEW: Final = 2
"""Fewer records than this are refused by right: there is nobody to hide among."""


class TimeIsUp(BaseException):
    """A table took too long; no handler of ordinary errors stops it."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def one(table: Table, seconds: float = SECONDS) -> Outcome:
    """Audit one file as `thinveil audit FILE` does, and compare what was found with the file."""
    cells = read(table.path, table.layout)
    size = cells.records, len(cells.columns)

    def ended(kind: Kind, why: str = "") -> Outcome:
        return Outcome(table.package, table.form, table.name, kind, why, (), *size)

    start = time.process_time()
    try:
        with _within(seconds):
            found = reconstructed(table.path)
    except TimeIsUp:
        return ended("not finished", f"more than {seconds:.0f} s")
    except ThinveilError as error:
        why = str(error).replace(str(table.path), table.path.name)
        return ended("refused" if cells.records >= FEW else "few records", why)
    except Exception as error:
        return ended("wrong", f"{type(error).__name__}: {error}")
    took = time.process_time() - start
    try:
        kind, columns = compare(cells, found)
        outcome = ended(kind, "" if kind == "exact" else f"column {', '.join(columns)}")
        public = public_numbers(cells, found)
    except Differs as error:
        return ended("wrong", str(error))
    return replace(outcome, public=public, seconds=took, notes=len(found.notes) + len(found.doubts))


def reconstructed(path: Path) -> Found:
    """Return the table that an audit with all defaults rebuilds."""
    verdict = audit(path)
    schema = verdict.facts.schema
    return Found(
        schema.names,
        [each.step if isinstance(each, Grid) and each.rounded else None for each in schema],
        [each.kind for each in schema],
        list(verdict.rows()),
        verdict.remarks.assumed,
        verdict.remarks.doubts,
    )


def run(tables: Iterable[Table], workers: int = WORKERS) -> Iterator[Outcome]:
    """Audit files, some at a time."""
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(one, tables)


def part(path: Path, quick: bool, package: str) -> list[Outcome]:
    """Audit all data sets of one package."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            tables = gather(package, Path(folder))
        except ModuleNotFoundError as error:
            raise SystemExit(
                f"{error.name} is not installed: python -m pip install --group tables"
            ) from None
        return list(run(tables[::QUICK] if quick else tables))
