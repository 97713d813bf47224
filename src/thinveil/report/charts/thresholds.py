"""What all pictures of answers against thresholds share: the axis, and how it is spoken of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from thinveil.report.charts.pictures import PERCENT
from thinveil.verdicts.phrases import loss, many
from thinveil.verdicts.staircase import Staircase

HEIGHT: Final = 300
"""Of the charts, in pixels."""
QUESTION: Final = (
    "The attacker asks again and again: are there more than b records of a certain kind? Only b "
    "changes."
)
"""What is asked, for somebody who has not read the paper."""


@dataclass(frozen=True, slots=True)
class Point:
    """The answers at one threshold, as the picture gives it.

    `step` says how far it lies from the count; None where no count was found.
    """

    x: float
    step: int | None
    answers: tuple[float, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Stairs:
    """A staircase as a report may show it.

    Thresholds are given as they are ("threshold"), from the count ("step"), or as parts of the
    table ("part"). Predicate and count are None where they are masked.
    """

    given: str
    predicate: str | None
    count: int | None
    k: int
    epsilon: float | None
    epsilon_claimed: float | None
    points: tuple[Point, ...]
    confidence: float

    @staticmethod
    def of(stairs: Staircase, records: int, masked: bool) -> Stairs:
        """Return a staircase; masked, thresholds count from the count, which is not said.

        Where no count was found, thresholds are given as parts of the number of records.
        """
        count = stairs.count
        given = "threshold" if not masked else "part" if count is None else "step"
        points = []
        for each in stairs.points:
            step = None if count is None else each.threshold - count
            places = {
                "threshold": each.threshold,
                "step": step,
                "part": each.threshold / max(records, 1),
            }
            points.append(Point(places[given] or 0, step, each.answers, each.kind))
        return Stairs(
            given,
            None if masked else stairs.predicate,
            None if masked else count,
            stairs.k or 1,
            stairs.epsilon,
            stairs.epsilon_claimed,
            tuple(points),
            stairs.confidence,
        )

    @property
    def repeats(self) -> int:
        """How often each question was asked."""
        return len(self.points[0].answers)

    def axis(self) -> dict[str, Any]:
        """Return the axis of thresholds."""
        ticks: dict[str, Any] = {"tickMinStep": 1, "grid": False, "titleLimit": 320}
        title = "threshold b of the question"
        if self.given == "step":
            title = "threshold b, from the count found"
            ticks["labelExpr"] = (
                "datum.value == 0 ? 'count' : (datum.value < 0 ? '\u2212' : '+') + abs(datum.value)"
            )
        elif self.given == "part":
            title = "threshold b, as a part of all records"
            ticks |= {"tickMinStep": 0.25, "labelExpr": PERCENT}
        return {
            "field": "x",
            "type": "quantitative",
            "title": title,
            "axis": ticks,
            "scale": {"zero": False, "nice": False, "padding": 12},
        }

    def named(self, each: Point) -> str:
        """Write a threshold for the table."""
        if self.given == "threshold":
            return f"{each.x:,}"
        if self.given == "part":
            return f"{100 * each.x:.0f}\u00a0% of all records"
        away = f"{abs(each.x):,} {'above' if each.x > 0 else 'below'}"
        return away if each.x else "at the count"

    def about(self) -> str:
        """Say what was asked about, and what it cost."""
        what = "What was asked about is not shown."
        if self.predicate:
            found = "no count was found" if self.count is None else f"the count is {self.count:,}"
            what = f"Asked about: {self.predicate}; {found}."
        claimed = self.epsilon_claimed
        cost = "no loss is claimed" if claimed is None else f"claimed loss {loss(claimed)}"
        answers = sum(len(each.answers) for each in self.points)
        return f"{what} {many(answers, 'answer')} for this picture alone, {cost}."
