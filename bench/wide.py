"""Tables of few records and many columns: `python -m bench wide`.

The whole command, from reading the file to the printed verdict. Nothing here needs numpy: the
process that starts all others stays small.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import watch
from bench.sheets import Sheet

RECORDS = 165
COLUMNS = (150, 300, 600, 1109)
KINDS: dict[str, Callable[[random.Random], str]] = {
    "digits": lambda rng: str(rng.randrange(10)),
    "floats": lambda rng: f"{rng.gauss(8, 2):.3f}",
    "categories": lambda rng: rng.choice(("no", "yes")),
}
"""What a cell holds: whole numbers from 0 to 9, measurements of three decimals, yes or no."""
PARTS = tuple(("wide", kind, str(columns)) for kind in KINDS for columns in COLUMNS)
SECONDS_BAR = 30
"""How long the widest table may take, printed."""
GROWTH_BAR = 2.0
"""How many times the seconds a column of the narrowest table: less the start of the program."""


@dataclass(frozen=True, slots=True)
class Wide:
    """A wide table of random cells, audited by the command.

    Args:
        kind: What its cells hold.
        columns: How many there are.
        seconds: The command that prints the verdict.
        reported: The same with `--report --no-comparison`: one mechanism, not all.
        questions: Questions in all.
        wrong: Records that are wrong or missing.
    """

    kind: str
    columns: int
    seconds: float
    reported: float
    questions: int
    wrong: int

    @property
    def each(self) -> float:
        """Milliseconds a column."""
        return 1000 * self.seconds / self.columns


def measure(path: Path | None, quick: bool, kind: str, columns: str) -> list[Wide]:
    """Audit one table, without and with a report."""
    many, rng = int(columns), random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        table, found = Path(folder) / "table.csv", Path(folder) / "found.json"
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(f"c{column}" for column in range(many))
            writer.writerows([KINDS[kind](rng) for _ in range(many)] for _ in range(RECORDS))
        with watch() as took:
            _audit(str(table), "--json", str(found))
        with watch() as longer:
            _audit(str(table), "--report", str(Path(folder) / "report.html"), "--no-comparison")
        record = json.loads(found.read_text("utf-8"))
    wrong = RECORDS - record["records_recovered"]
    return [Wide(kind, many, took.seconds, longer.seconds, record["questions"], wrong)]


def _audit(*arguments: str) -> None:
    command = [sys.executable, "-m", "thinveil", "audit", *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def wide(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet: seconds and questions a column, side by side."""
    found = [Wide(**row) for row in rows]
    return Sheet(
        f"{RECORDS} records and many columns",
        (
            "cells, columns",
            "exact",
            "seconds",
            "with a report",
            "ms a column",
            "times the narrowest",
            "questions a column",
            "met",
        ),
        frozenset(range(2, 7)),
        tuple(_cells(each, found, judge) for each in found),
    )


def _cells(each: Wide, found: Sequence[Wide], judge: bool) -> tuple[str, ...]:
    first = next(one for one in found if one.kind == each.kind)
    times = each.each / first.each
    widest = each.columns == COLUMNS[-1]
    good = not each.wrong and times <= GROWTH_BAR and (each.seconds <= SECONDS_BAR or not widest)
    return (
        f"{each.kind}, {each.columns:,}",
        "no" if each.wrong else "yes",
        f"{each.seconds:.1f}",
        f"{each.reported:.1f}",
        f"{each.each:.1f}",
        f"{times:.2f}",
        f"{each.questions / each.columns:,.1f}",
        ("yes" if good else "no") if judge else "",
    )
