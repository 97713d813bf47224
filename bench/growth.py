"""The sheet of what a record costs as tables grow, and the figures for its picture.

Nothing here needs numpy: the process that starts all others stays small.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import MIB
from bench.sheets import MEMORY_BAR, Sheet

KEPT = Path(__file__).parent / "scaling.json"
AN_ANSWER = {"adaptive": 1.0, "thrifty": math.log2(3)}
"""Bits that an answer tells: about one record at a time, and about many at once."""
BEYOND_BELIEF = 1.0
"""How many questions a record may be asked beyond its bits under the attack's own beliefs."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A synthetic table reconstructed.

    Args:
        strategy: The strategy's name.
        records: How many records there were.
        questions: Questions in all.
        rounds: Batches.
        bits: The bits of the table under the attack's own beliefs.
        known: Its bits to somebody who knows its distribution.
        seconds: The whole audit with scoring.
        memory: The most bytes that the process held.
        wrong: Records that are wrong or missing.
    """

    strategy: str
    records: int
    questions: int
    rounds: int
    bits: float
    known: float
    seconds: float
    memory: int
    wrong: int

    @property
    def asked(self) -> float:
        """Questions a record."""
        return self.questions / self.records

    @property
    def limit(self) -> float:
        """The fewest questions a record that somebody who knows the distribution expects."""
        return self.known / self.records / AN_ANSWER[self.strategy]

    @property
    def each(self) -> float:
        """Seconds a record."""
        return self.seconds / self.records


def scaling(rows: Sequence[dict[str, Any]], judge: bool) -> Sheet:
    """Return the sheet: questions and seconds a record may change only as theory says."""
    found = [Growth(**row) for row in rows]
    return Sheet(
        "The same distribution at several sizes",
        (
            "strategy, records",
            "exact",
            "bits a record (known)",
            "bits a record (believed)",
            "questions a record",
            "at most",
            "questions a bit",
            "ms a record",
            "at most",
            "seconds",
            "rounds",
            "peak MiB",
            "met",
        ),
        frozenset(range(2, 12)),
        tuple(
            cells
            for strategy in dict.fromkeys(each.strategy for each in found)
            for cells in _rows([each for each in found if each.strategy == strategy], judge)
        ),
    )


def _rows(found: list[Growth], judge: bool) -> list[tuple[str, ...]]:
    """Return the rows of one strategy, from the smallest table on."""
    rows: list[tuple[str, ...]] = []
    found = sorted(found, key=lambda each: each.records)
    first = found[0]
    for place, each in enumerate(found):
        most, longest = math.inf, math.inf
        if place:
            before = found[place - 1]
            most = first.asked - first.limit + each.limit
            longest = before.each * math.log(each.records) / math.log(before.records)
        believed = each.bits / each.records
        good = (
            not each.wrong
            and each.asked <= min(most, believed + BEYOND_BELIEF)
            and each.each <= longest
            and each.memory <= MEMORY_BAR
        )
        rows.append(
            (
                f"{each.strategy}, {each.records:,}",
                "yes" if not each.wrong else "no",
                f"{each.known / each.records:.2f}",
                f"{believed:.2f}",
                f"{each.asked:.2f}",
                _bound(most, ".2f", judge),
                f"{each.questions / each.bits:.3f}",
                f"{1000 * each.each:.3f}",
                _bound(1000 * longest, ".3f", judge),
                f"{each.seconds:.1f}",
                f"{each.rounds:,}",
                f"{each.memory / MIB:,.0f}",
                ("yes" if good else "no") if judge else "",
            )
        )
    return rows


def _bound(value: float, form: str, judge: bool) -> str:
    return f"{value:{form}}" if judge and math.isfinite(value) else ""


def keep(rows: Sequence[dict[str, Any]], caption: str, path: Path = KEPT) -> None:
    """Write the figures that docs/pictures.py draws."""
    text = json.dumps({"measured": caption, "runs": list(rows)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
