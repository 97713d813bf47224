"""The sheet of a census at several sizes, and its bars.

Nothing here needs numpy: the process that starts all others stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.figures import MIB
from bench.sheets import Sheet

SECONDS_BAR = 600
MEMORY_BAR = 8192 * MIB


@dataclass(frozen=True, slots=True)
class Census:
    """A census in Parquet files, rebuilt.

    Args:
        records: How many records there were.
        size: The bytes of the files.
        different: How many of the records differ.
        opened: Seconds to open it: codes, checks and the count of each different record.
        seconds: Seconds of the whole audit after that.
        questions: Questions in all.
        rounds: Batches.
        memory: The most bytes that the process held.
        exact: Whether it was rebuilt to the last record.
    """

    records: int
    size: int
    different: int
    opened: float
    seconds: float
    questions: int
    rounds: int
    memory: int
    exact: bool


def parquet(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet of a census in Parquet files, at several sizes."""
    found = [Census(**row) for row in rows]
    return Sheet(
        "A census of five columns in Parquet files",
        (
            "records",
            "MB",
            "different",
            "exact",
            "open, s",
            "rebuild, s",
            "questions",
            "a different record",
            "rounds",
            "s a million",
            "peak MiB",
            "met",
        ),
        frozenset({0, 1, 2, *range(4, 11)}),
        tuple(
            (
                f"{each.records:,}",
                f"{each.size / 1e6:,.1f}",
                f"{each.different:,}",
                "yes" if each.exact else "no",
                f"{each.opened:.1f}",
                f"{each.seconds:.1f}",
                f"{each.questions:,}",
                f"{each.questions / each.different:.2f}",
                f"{each.rounds:,}",
                f"{each.seconds / each.questions * 1e6:.1f}",
                f"{each.memory / MIB:,.0f}",
                ("yes" if _good(each) else "no") if judge else "",
            )
            for each in found
        ),
    )


def _good(each: Census) -> bool:
    """Tell whether a census was rebuilt exactly, in time and in memory."""
    quick = each.opened + each.seconds <= SECONDS_BAR
    return each.exact and quick and each.memory <= MEMORY_BAR
