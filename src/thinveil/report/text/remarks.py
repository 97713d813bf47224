"""How a table was read, at the top of what people see at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text


def how_it_was_read(console: Console, assumed: Sequence[str], doubts: Sequence[str]) -> None:
    """Print what was assumed when the table was read, and what is public that may not be."""
    if assumed:
        console.print(Text("How the table was read", style="bold"))
    for line in assumed:
        console.print(Text(f"  {line}"))
    for line in doubts:
        console.print(Text(f"Note: {line}", style="yellow"))
