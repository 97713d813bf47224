"""Loading a table, and the first count on it, which builds the indexes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from bench.figures import Figure, duration, memory, watch
from bench.ready import complete
from thinveil import Curator, Dataset, QueryBatch, idp, load, read_schema
from thinveil.attacker.terms import Attack
from thinveil.auditing.driver import run
from thinveil.auditing.schedule import Fixed, exact_epsilon
from thinveil.language.queries import Cells
from thinveil.language.schema import INFINITE

ROWS, COLUMNS, CHUNK = 1_000_000, 10, 50_000
READY_BAR, MEMORY_BAR = 5, 4 * 2**30


def real(path: Path, quick: bool) -> list[Figure]:
    """Load bank-full.csv."""
    with watch() as took:
        data = load(path, read_schema("bank"))
    return _figures("bank-full.csv", data, took.seconds)


def synthetic(path: Path | None, quick: bool) -> list[Figure]:
    """Load a large table whose schema has to be inferred."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.csv"
        _write(file)
        with watch() as took:
            data = load(file)
        size = f"{data.records:,} x {len(data.schema)}, {file.stat().st_size / 1e6:.0f} MB"
    return _figures(f"synthetic CSV ({size})", data, took.seconds, READY_BAR, MEMORY_BAR)


def _figures(
    what: str, data: Dataset, loaded: float, ready: int | None = None, room: int | None = None
) -> list[Figure]:
    peak = memory(f"{what}: peak memory after loading")
    target = Curator(data, idp())
    with watch() as first:
        _count(target)
    with watch() as again:
        _count(target)
    return [
        duration(f"{what}: load", loaded),
        duration(f"{what}: load and index", loaded + first.seconds, ready),
        peak,
        duration(
            f"{what}: first count on every attribute",
            first.seconds,
            ratio=f"{first.seconds / again.seconds:,.0f} x the second count",
        ),
        memory(f"{what}: peak memory with indexes", room),
    ]


def _count(target: Curator) -> None:
    """Ask one question about each attribute, in one batch."""
    attributes = len(target.facts.schema)
    column = np.arange(attributes)
    low = np.zeros(attributes, np.int64)
    batch = QueryBatch(
        Cells.everything(), low, column, low, np.full(attributes, INFINITE), threshold=low
    )

    def attack() -> Attack[None]:
        yield batch

    complete(run(attack(), target, Fixed(exact_epsilon("1e-10"))), [batch])


def _write(path: Path) -> None:
    """Write a table of numbers, decimals, dates and categories, a chunk at a time."""
    rng = np.random.default_rng(0)
    first_day = np.datetime64("2015-01-01")
    towns = np.array([f"town {number:03d}" for number in range(500)])
    words = np.array(["red", "green", "blue", "yellow"])
    with path.open("w", encoding="utf-8") as file:
        print(",".join(f"c{number}" for number in range(COLUMNS)), file=file)
        for _ in range(ROWS // CHUNK):
            columns = [
                rng.integers(0, 100, CHUNK).astype(str),
                rng.integers(-50_000, 200_000, CHUNK).astype(str),
                rng.integers(0, 2, CHUNK).astype(str),
                (rng.integers(0, 500_000, CHUNK) / 100).astype(str),
                (first_day + rng.integers(0, 3_000, CHUNK)).astype(str),
                towns[rng.integers(0, len(towns), CHUNK)],
                words[rng.integers(0, len(words), CHUNK)],
                rng.integers(0, 2_000, CHUNK).astype(str),
                rng.poisson(3, CHUNK).astype(str),
                np.where(rng.random(CHUNK) < 0.05, "", rng.integers(0, 50, CHUNK).astype(str)),
            ]
            file.writelines(",".join(row) + "\n" for row in zip(*columns, strict=True))
