"""Figures of a benchmark: what was measured, and the bar it should meet."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table.

    Args:
        what: What was measured.
        measured: The figure, as people read it.
        bar: What it should be, or empty where nothing was promised.
        met: Whether it is; None where there is no bar.
        ratio: The figure beside another one of the same run.
    """

    what: str
    measured: str
    bar: str = ""
    met: bool | None = None
    ratio: str = ""


def rate(
    what: str, queries: int, seconds: float, bar: int | None = None, ratio: str = ""
) -> Figure:
    """Return queries a second, against the least that is good enough."""
    speed = queries / seconds
    if bar is None:
        return Figure(what, f"{speed:,.0f} queries/s", ratio=ratio)
    return Figure(what, f"{speed:,.0f} queries/s", f"at least {bar:,}/s", speed >= bar, ratio)


def duration(what: str, seconds: float, bar: int | None = None, ratio: str = "") -> Figure:
    """Return seconds, against the most that is good enough."""
    if bar is None:
        return Figure(what, f"{seconds:.2f} s", ratio=ratio)
    return Figure(what, f"{seconds:.2f} s", f"at most {bar} s", seconds <= bar, ratio)


def memory(what: str, bar: int | None = None, ratio: str = "") -> Figure:
    """Return the peak memory of this process so far, against the most that is good enough."""
    peak = peak_memory()
    measured = f"{peak / MIB:,.0f} MiB"
    if bar is None:
        return Figure(what, measured, ratio=ratio)
    return Figure(what, measured, f"at most {bar // MIB:,} MiB", peak <= bar, ratio)


def peak_memory() -> int:
    """Return the most bytes that this process ever held.

    What Linux tells of usage also counts what the parent held when it started this process, so
    that a small child of a large parent looks large; its own high-water mark does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(slots=True)
class Watch:
    """How long a block took, once it is over."""

    seconds: float = 0.0


@contextmanager
def watch() -> Iterator[Watch]:
    """Time a block."""
    result = Watch()
    start = time.perf_counter()
    yield result
    result.seconds = time.perf_counter() - start
