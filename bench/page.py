"""The tables on the screen and in bench/RESULTS.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table

from bench.sheets import Sheet

PAGE = Path(__file__).parent / "RESULTS.md"


def machine(load: float) -> str:
    """Say in words where the figures come from."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, Python "
        f"{platform.python_version()}, numpy {version('numpy')}; load average at the start "
        f"{load:.2f}."
    )


def table(sheet: Sheet, caption: str) -> Table:
    """Return a sheet as a table for the screen."""
    shown = Table(title=sheet.title, caption=caption)
    for place, heading in enumerate(sheet.headings):
        justify: JustifyMethod = "right" if place in sheet.right else "left"
        shown.add_column(heading, justify=justify, min_width=None if place else 29)
    for row in sheet.rows:
        shown.add_row(*row, style="bold red" if "no" in row else None)
    return shown


def write(name: str, sheet: Sheet, caption: str) -> None:
    """Put a sheet between its two markers on the page."""
    first, last = f"<!-- {name}: written by python -m bench --write -->", f"<!-- end of {name} -->"
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not (start and end):
        raise SystemExit(f"{PAGE} has lost the two comments around {name}: put them back")
    places = range(len(sheet.headings))
    lines = [
        f"Measured on {caption}",
        "",
        _line(sheet.headings),
        _line(["---:" if place in sheet.right else "---" for place in places]),
        *map(_line, sheet.rows),
    ]
    content = "\n".join([before + start, "", *lines, "", end + after])
    PAGE.write_text(content, encoding="utf-8")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
