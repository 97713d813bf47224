"""Run all benchmarks: `python -m bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench import bars, growth, page, sheets, sizes, wide
from bench.tables import sheet as real_tables
from bench.tables.gathering import PACKAGES

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("THINVEIL_BANK") or ROOT / ".." / "shared" / "data" / "bank-full.csv")

COUNTING = ("idp", "idp-integer", "idp-binary", "idp-noisy")
"""The mechanisms that leak counts; bdp shows which records exist, and has no group size."""
MECHANISMS = (
    ("idp", "1", "published"),
    ("idp", "3", "published"),
    *((name, "1", "posterior") for name in COUNTING),
    *((name, k, "adaptive") for name in COUNTING for k in ("1", "3")),
    *((name, "1", "thrifty") for name in COUNTING),
    *(("bdp", "1", strategy) for strategy in ("adaptive", "thrifty")),
)
MISTAKES = (
    *((name, k, "adaptive") for name in COUNTING for k in ("1", "3")),
    *((name, "1", "thrifty") for name in COUNTING),
    ("idp", "3", "thrifty"),
    *(("bdp", "1", strategy) for strategy in ("adaptive", "thrifty")),
)
SIZES = {"adaptive": (1_000, 10_000, 100_000, 1_000_000), "thrifty": (1_000, 10_000, 100_000)}
QUICK_SIZE = 10_000
PARQUET_SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000, 330_000_000)
QUICK_PARQUET_SIZE = 100_000
LARGE_SIZES = (100_000, 1_000_000, 10_000_000)
LARGE = (("idp", "thrifty"), ("idp-binary", "adaptive"), ("idp-noisy", "adaptive"))
QUICK_COLUMNS = 300
SOAKS = (
    "service", "race", "memory", "auditor", "network", "openapi", "files", "fuzz", "disk", "canary",
)  # fmt: skip
GROUPS = {
    "speed": (
        ("ready",),
        ("table",),
        ("columns",),
        ("draws",),
        ("real",),
        ("people",),
        ("synthetic",),
    ),
    "questions": bars.PARTS,
    "scaling": tuple(
        ("scaling", strategy, str(size)) for strategy, sizes in SIZES.items() for size in sizes
    ),
    "mechanisms": tuple(("reconstruct", *each) for each in MECHANISMS),
    "mistakes": tuple(("mistakes", *each) for each in MISTAKES),
    "tests": (("noise",),),
    "databases": (
        ("database", "duckdb"),
        ("database", "postgresql"),
        ("database", "spark"),
        ("database", "spark-jobs"),
        *((("database", "sail"),) if "THINVEIL_SAIL" in os.environ else ()),
        ("spark-census",),
    ),
    "parquet": tuple(("parquet", str(size)) for size in PARQUET_SIZES),
    "large": (
        *(("large", *each, str(size)) for each in LARGE for size in LARGE_SIZES),
        ("large", "dp-laplace", "adaptive", str(LARGE_SIZES[-1])),
    ),
    "service": (("service",),),
    "evidence": (
        ("start",),
        *(("trials", name) for name in (*COUNTING, "bdp", "dp-laplace", "dp-smooth")),
        ("report", "people"),
        ("report", "bank"),
    ),
    "trials": (("bounds",),),
    "lies": (("liars",), ("honest",)),
    "soak": tuple(("soak", what) for what in SOAKS),
    "tables": tuple(("tables", package) for package in PACKAGES),
    "wide": wide.PARTS,
}
"""What is measured together: parts with their settings, each a process of its own."""
WITHOUT_DATA = (
    "people", "synthetic", "draws", "noise", "scaling", "parquet", "spark-census", "start",
    "trials", "bounds", "large", "liars", "honest", "soak", "tables", "wide",
)  # fmt: skip
SHEETS = {
    "speed": sheets.speed,
    "questions": bars.questions,
    "scaling": growth.scaling,
    "mechanisms": sheets.mechanisms,
    "mistakes": sheets.mistakes,
    "tests": sheets.tests,
    "databases": sheets.databases,
    "parquet": sizes.parquet,
    "large": sheets.large,
    "service": sheets.service,
    "evidence": sheets.evidence,
    "trials": sheets.trials,
    "lies": sheets.lies,
    "soak": sheets.soak,
    "tables": real_tables.tables,
    "wide": wide.wide,
}


@click.command()
@click.argument("groups", nargs=-1, type=click.Choice(list(GROUPS)))
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="bank-full.csv.")
@click.option("--quick", is_flag=True, help="A sample of the records; bars are not judged.")
@click.option("--write", is_flag=True, help="Put the results into bench/RESULTS.md.")
def main(groups: tuple[str, ...], data: Path, quick: bool, write: bool) -> None:
    """Measure how thinveil does, each part in a fresh process: all GROUPS, or those named."""
    console = Console(width=None if sys.stdout.isatty() else 200)
    started = time.perf_counter()
    if write and (quick or not data.exists()):
        raise click.UsageError("--write needs a full run on the real data")
    if not data.exists():
        console.print(f"no {data}: parts on real data are skipped; give --data or THINVEIL_BANK")
    for group in groups or GROUPS:
        caption = page.machine(os.getloadavg()[0])
        rows = []
        for part in _parts(group, quick, data.exists()):
            with console.status(f"measuring: {' '.join(part)}"):
                rows += _measure(part, data, quick)
        if not rows:
            continue
        sheet = SHEETS[group](rows, not quick)
        console.print(page.table(sheet, caption))
        if write:
            page.write(group, sheet, caption)
            if group == "scaling":
                growth.keep(rows, caption)
            console.print(f"written to {page.PAGE.relative_to(ROOT)}")
    console.print(f"{(time.perf_counter() - started) / 60:.1f} minutes in all")


def _parts(group: str, quick: bool, real: bool) -> list[tuple[str, ...]]:
    """Return the parts of a group that can and should run."""
    return [
        part
        for part in GROUPS[group]
        if (real or part[0] in WITHOUT_DATA) and not (quick and _long(part))
    ]


def _long(part: tuple[str, ...]) -> bool:
    """Return whether a part is left out where people want a quick look."""
    if part[0] == "scaling":
        return int(part[2]) > QUICK_SIZE
    if part[0] == "wide":
        return int(part[2]) > QUICK_COLUMNS
    if part[0] == "large":
        return int(part[3]) > QUICK_PARQUET_SIZE
    if part[0] == "parquet":
        return int(part[1]) > QUICK_PARQUET_SIZE
    return part[0] in ("synthetic", "spark-census") or any(
        f"seed={seed}" in part for seed in bars.SEEDS[1:]
    )


def _measure(part: tuple[str, ...], data: Path, quick: bool) -> list[dict[str, Any]]:
    """Run one part in a process of its own and return its rows."""
    settings = ["quick" if quick else "full", str(data), *part]
    command = [sys.executable, "-m", "bench.part", *settings]
    # -m looks in the current directory first, so it has to be the repository.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"the part {' '.join(part)} failed with exit code {done.returncode}")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


if __name__ == "__main__":
    main()
