"""Plain tables at a terminal, and the reproduced figures in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from thinveil.paper.rows import Row
from thinveil.report.text.screen import Text


def plain_table(*headings: str, title: str = "") -> Table:
    """Return a table whose first column is of words, and the others of figures."""
    table = Table(title=Text(title) if title else None, title_justify="left", header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right", overflow="fold")
    return table


def show_rows(console: Console, rows: Sequence[Row]) -> None:
    """Print reproduced figures beside those they have to match, a table an experiment."""
    whence = {"printed": "paper", "program": "program", "ours": "ours"}
    for experiment in dict.fromkeys(row.experiment for row in rows):
        headings = ("figure", "protected", "expected", "from", "measured", "")
        table = plain_table(*headings, title=experiment)
        for row in rows:
            if row.experiment == experiment:
                table.add_row(
                    Text(row.name),
                    {True: "yes", False: "no", None: ""}[row.protected],
                    _figure(row.expected),
                    whence[row.whence],
                    _figure(row.measured),
                    Text("agrees", "green") if row.agrees else Text("DIFFERS", "bold red"),
                )
        console.print(table)


def _figure(value: Any) -> Text:
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text(f"{value:.10g}" if isinstance(value, float) else str(value))
