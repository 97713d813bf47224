"""Run all benchmarks: `python -m bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from bench import page
from bench.figures import Figure

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("THINVEIL_BANK") or ROOT / ".." / "shared" / "data" / "bank-full.csv")
REAL_PARTS = ("ready", "table", "columns", "real")
OTHER_PARTS = ("people", "synthetic")


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="bank-full.csv.")
@click.option("--quick", is_flag=True, help="A sample of the records; bars are not judged.")
@click.option("--write", is_flag=True, help="Put the results into docs/performance.md.")
def main(data: Path, quick: bool, write: bool) -> None:
    """Measure how fast thinveil is, each part in a fresh process."""
    console = Console()
    load = os.getloadavg()[0]
    parts = [part for part in OTHER_PARTS if not (quick and part == "synthetic")]
    if data.exists():
        parts = [*REAL_PARTS, *parts]
    else:
        console.print(f"no {data}: parts on real data are skipped; give --data or THINVEIL_BANK")
    if write and (quick or not data.exists()):
        raise click.UsageError("--write needs a full run on the real data")
    figures: list[Figure] = []
    for part in parts:
        with console.status(f"measuring: {part}"):
            figures += _measure(part, data, quick)
    if quick:
        figures = [replace(figure, bar="", met=None) for figure in figures]
    caption = page.machine(load)
    console.print(page.table(figures, caption))
    if write:
        page.write(figures, caption)
        console.print(f"written to {page.PAGE.relative_to(ROOT)}")


def _measure(part: str, data: Path, quick: bool) -> list[Figure]:
    """Run one part in a process of its own and return its figures."""
    command = [sys.executable, "-m", "bench.part", part, str(data), "quick" if quick else "full"]
    # -m looks in the current directory first, so it has to be the repository.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"the part {part} failed with exit code {done.returncode}")
    return [Figure(**row) for row in json.loads(done.stdout)]


if __name__ == "__main__":
    main()
