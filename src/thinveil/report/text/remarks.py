"""How a table was read, at the top of what people see at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console

from thinveil.report.text.screen import Text


def how_it_was_read(console: Console, assumed: Sequence[str], doubts: Sequence[str]) -> None:
    """Print what was assumed when the table was read, and what is public that may not be."""
    if assumed:
        console.print(Text("How the table was read", style="bold"))
    listed(console, assumed)
    for line in doubts:
        console.print(Text(f"Note: {line}", style="yellow"))


def listed(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines below a heading; what goes on in the next line is indented further."""
    for line in lines:
        for number, part in enumerate(Text(line).wrap(console, max(1, console.width - 4))):
            part.rstrip()
            console.print(Text("    " if number else "  ") + part, style=style)
