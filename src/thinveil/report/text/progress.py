"""A progress line for long runs, drawn on the error stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from thinveil.auditing.driver import Meter, Observer
from thinveil.language.queries import About
from thinveil.language.texts import one_line

_EVERY = 0.1  # seconds between two looks


@contextmanager
def progress(console: Console) -> Iterator[Observer]:
    """Show how far an attack is; yields the observer that a driver calls each round."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[asked]:,} answers"),
        TimeElapsedColumn(),
    )
    hidden = not console.is_interactive
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=1.0, asked=0)
        due = 0.0

        def observe(meter: Meter, about: About) -> None:
            nonlocal due
            now = time.monotonic()
            if now >= due:
                due = now + _EVERY
                label = one_line(about.label)
                bar.update(task, description=label, completed=about.done, asked=meter.queries)

        yield observe
