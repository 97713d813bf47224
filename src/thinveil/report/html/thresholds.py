"""What all pictures of answers against thresholds share: the axis, and how it is spoken of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from thinveil.report.html.pictures import PERCENT
from thinveil.report.html.spelling import loss, many

HEIGHT: Final = 300
"""Of the charts, in pixels."""
QUESTION: Final = (
    "The attacker asks again and again: are there more than b records of a certain kind? Only b "
    "changes."
)
"""What is asked, for somebody who has not read the paper."""


def place(stairs: Mapping[str, Any]) -> str:
    """Return how thresholds are given: as they are, from the count, or as parts of the table."""
    first = stairs["points"][0]
    return next(name for name in ("threshold", "step", "part") if first[name] is not None)


def axis(stairs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the axis of thresholds."""
    given = place(stairs)
    ticks: dict[str, Any] = {"tickMinStep": 1, "grid": False, "titleLimit": 320}
    title = "threshold b of the question"
    if given == "step":
        title = "threshold b, relative to the count found"
        ticks["labelExpr"] = (
            "datum.value == 0 ? 'count' : (datum.value < 0 ? '\u2212' : '+') + abs(datum.value)"
        )
    elif given == "part":
        title = "threshold b, as a part of all records"
        ticks |= {"tickMinStep": 0.25, "labelExpr": PERCENT}
    return {
        "field": "x",
        "type": "quantitative",
        "title": title,
        "axis": ticks,
        "scale": {"zero": False, "nice": False, "padding": 12},
    }


def named(stairs: Mapping[str, Any], each: Mapping[str, Any]) -> str:
    """Write a threshold for the table."""
    given = place(stairs)
    if given == "threshold":
        return f"{each['threshold']:,}"
    if given == "part":
        return f"{100 * each['part']:.0f}\u00a0% of all records"
    step = each["step"]
    return "at the count" if step == 0 else f"{abs(step):,} {'above' if step > 0 else 'below'}"


def about(stairs: Mapping[str, Any]) -> str:
    """Say what was asked about, and what it cost."""
    what = "What was asked about is not shown."
    if stairs["predicate"]:
        count = stairs["count"]
        found = "no count was found" if count is None else f"the count is {count:,}"
        what = f"Asked about: {stairs['predicate']}; {found}."
    claimed = stairs["epsilon_claimed"]
    cost = "no loss is claimed" if claimed is None else f"claimed loss {loss(claimed)}"
    return f"{what} {many(stairs['queries'] or 0, 'answer')} for this picture alone, {cost}."
