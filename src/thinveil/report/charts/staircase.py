"""The staircase: one question at every threshold near a count, and what was answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from thinveil.report.charts import pictures, spread
from thinveil.report.charts.pictures import Key, Panel, Picture, Spec, Table
from thinveil.report.charts.thresholds import HEIGHT, QUESTION, Point, Stairs
from thinveil.verdicts.phrases import many, size

_DRAWN: Final = 20
"""How many answers to one question are drawn."""
_STEP: Final = 0.28
"""How much of the way up to the largest noise the step from 0 to 1 takes; a matter of looks."""


def picture(stairs: Stairs) -> Picture:
    """Draw the answers against the thresholds, exact and noisy ones told apart."""
    points = [replace(each, kind=_kind(stairs, each)) for each in stairs.points]
    if stairs.repeats > 1 and all(each.kind == "noise" for each in points):
        return spread.picture(stairs)
    return _steps(stairs, points)


def _kind(stairs: Stairs, each: Point) -> str:
    """Return whether an answer is exact; of repeated ones, whether all of them are the same."""
    answers = set(each.answers)
    alike = len(each.answers) > 1 and len(answers) == 1 and answers <= {0.0, 1.0}
    plain = stairs.epsilon is None  # without a claim there is no noise
    return "exact" if alike or plain or each.kind == "exact" else "noise"


def _different(each: Point) -> list[float]:
    return list(dict.fromkeys(each.answers))[:8]


def _steps(stairs: Stairs, points: Sequence[Point]) -> Picture:
    """Draw single answers: exact ones on two steps, noise far away from both."""
    rows: list[dict[str, Any]] = [
        {"x": each.x, "y": answer, "kind": each.kind}
        for each in points
        for answer in dict.fromkeys(each.answers[:_DRAWN])
    ]
    noisy = [row["x"] for row in rows if row["kind"] == "noise"]
    exact = [row for row in rows if row["kind"] == "exact"]
    x = stairs.axis()
    y = pictures.number("y", "answer", **_squeezed(rows))
    layers: list[Spec] = []
    if noisy and exact:
        layers.append(pictures.rect("orange", 0.16, x, min(noisy) - 0.5, max(noisy) + 0.5))
    marks = {
        "exact": pictures.dot("blue"),
        "noise": pictures.dot("red", 110, shape="triangle-up", filled=False, strokeWidth=2),
    }
    tips = [
        pictures.number("y", "answer"),
        {"field": "kind", "type": "nominal", "title": "which is"},
    ]
    layers += [
        pictures.layer(mark, f"datum.kind == '{kind}'", x=x, y=y, tooltip=tips)
        for kind, mark in marks.items()
        if any(row["kind"] == kind for row in rows)
    ]
    spec = {"height": HEIGHT, "data": {"values": rows}, "layer": layers}
    repeated = stairs.repeats > 1
    one = "always the same answer" if repeated else "an exact answer"
    keys = [Key("dot", "blue", f"{one}: 1 for yes, 0 for no")] if exact else []
    if noisy:
        other = "answers that differ" if repeated else "an answer drowned in noise"
        keys.append(Key("triangle", "red", other))
    if noisy and exact:
        keys.append(Key("band", "orange", "the thresholds next to the count"))
    largest = max((abs(row["y"]) for row in rows if row["kind"] == "noise"), default=0.0)
    title, explained = _finding(stairs, bool(exact), len(set(noisy)), largest)
    table = Table(
        "Every threshold that was asked, and what was answered",
        ("Threshold b", "Kind of answer", "Different answers" if repeated else "Answer"),
        [
            (stairs.named(each), each.kind, ", ".join(map(_short, _different(each))))
            for each in points
        ],
        frozenset({2}),
    )
    label = (
        f"Answers at {many(len(points), 'threshold')}: {many(len(exact), 'exact answer')} of 0 or 1"
        + (
            f", and noise up to {size(largest)} at {many(len(set(noisy)), 'threshold')}"
            if noisy
            else ""
        )
        + (" around the count." if noisy and exact else ".")
    )
    return Picture(
        "staircase", title, explained, (Panel(spec, label),), table, tuple(keys), stairs.about()
    )


def _finding(stairs: Stairs, exact: bool, noisy: int, largest: float) -> tuple[str, str]:
    """Say what the steps show."""
    if exact and noisy and stairs.repeats > 1:
        return (
            "Answers that change show where the count is",
            f"{QUESTION} Each question is asked {stairs.repeats:,} times. Far from the true "
            "count all its answers are the same, and close to it they differ: that gives the "
            "count away.",
        )
    if exact and noisy:
        return (
            "The noise shows where the count is",
            f"{QUESTION} Far from the true count the answer is exact, and close to it there is "
            f"noise of up to {size(largest)}: so the place of the noise gives the count away.",
        )
    if exact:
        return (
            "Without protection the step from yes to no is the count",
            f"{QUESTION} The answer changes from 1 to 0 exactly at the count.",
        )
    return (
        "All answers near this count are noise: no step shows",
        f"{QUESTION} No answer is exact here, so a single count does not show in this way.",
    )


def _squeezed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a scale on which 0 and 1 are told apart beside noise of billions.

    On a symlog scale y stands at log(1 + y / c). With c = top^-a, 1 stands at a / (1 + a) of
    the way to the top, nearly; so a is chosen for that to be `_STEP`, however large the noise.
    """
    largest = max(abs(row["y"]) for row in rows)
    if largest <= 2:
        ends = [min(-0.25, *(row["y"] for row in rows)), max(1.25, *(row["y"] for row in rows))]
        return {"scale": {"domain": ends}, "axis": {"values": [0, 1], "format": "d"}}
    top = 10.0 ** math.ceil(math.log10(largest))
    signs = {0.0: "0 (no)", 1.0: "1 (yes)", top: size(top)}
    lowest = -1.0
    if min(row["y"] for row in rows) < 0:
        lowest = -top
        signs[lowest] = f"\u2212{size(top)}"
    cases = "".join(f"datum.value == {value!r} ? '{text}' : " for value, text in signs.items())
    return {
        "scale": {
            "type": "symlog",
            "constant": top ** (_STEP / (_STEP - 1)),
            "domain": [lowest, top],
            "nice": False,
        },
        "axis": {"values": list(signs), "labelExpr": f"{cases}''"},
    }


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 1e3 and value == int(value) else f"{value:,.4g}"
