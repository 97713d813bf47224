"""The table on the screen and in docs/performance.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from bench.figures import Figure

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
START, END = "<!-- results: written by python -m bench --write -->", "<!-- end of results -->"
HEADINGS = ("what", "measured", "bar", "met", "ratio")


def machine(load: float) -> str:
    """Say in words where the figures come from."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, Python "
        f"{platform.python_version()}, numpy {version('numpy')}; load average at the start "
        f"{load:.2f}."
    )


def table(figures: Sequence[Figure], caption: str) -> Table:
    """Return the figures as a table for the screen."""
    shown = Table(title="Benchmarks", caption=caption)
    for place, heading in enumerate(HEADINGS):
        shown.add_column(heading, justify="right" if place == 1 else "left")
    for figure in figures:
        shown.add_row(*_row(figure), style="bold red" if figure.met is False else None)
    return shown


def write(figures: Sequence[Figure], caption: str) -> None:
    """Put the figures between the two markers of the page."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{PAGE} has lost the two comments around its results: put them back")
    lines = [
        f"Measured on {caption}",
        "",
        _line(HEADINGS),
        "| --- | ---: | --- | --- | --- |",
        *(_line(_row(figure)) for figure in figures),
    ]
    content = "\n".join([before + START, "", *lines, "", END + after])
    PAGE.write_text(content, encoding="utf-8")


def _row(figure: Figure) -> tuple[str, ...]:
    met = "" if figure.met is None else "yes" if figure.met else "no"
    return figure.what, figure.measured, figure.bar, met, figure.ratio


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
