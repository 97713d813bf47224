"""Where every answer is noisy: how large the noise is at each threshold, and around what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, median
from typing import Any, Final

from thinveil.report.charts.pictures import Key, Panel, Picture, Spec, Table, layer
from thinveil.report.charts.thresholds import HEIGHT, QUESTION, Point, Stairs
from thinveil.verdicts.phrases import many, size, sureness

_DEVIATION: Final = 1.6
"""The deviation of a median of noise, beside its typical size and times the root of how many.

It is 1.44 for Laplace noise and 1.57 for Cauchy noise.
"""
_TESTS: Final = 3
"""What is looked for: noise that is larger next to the count, levels, and sizes that differ."""

Row = dict[str, Any]


def picture(stairs: Stairs) -> Picture:
    """Draw how large the noise is; or what lies behind it, where that shows instead."""
    rows = [_row(stairs, each) for each in stairs.points]
    near, far = ([row for row in rows if row["near"] is side] for side in (True, False))
    wide = _deviations(stairs.confidence, _TESTS * len(rows) * (len(rows) - 1))  # over all pairs
    noisier = bool(near and far) and _larger(near, far, wide)
    levels = not noisier and _levels_differ(rows, wide)
    what = "level" if levels else "size"
    title, told = _told(near, far, noisier, levels, wide)
    words = "middle of the answers" if levels else "typical size of the noise"
    unit = 1.0
    if not levels:
        unit = 10.0 ** (3 * math.floor(math.log10(max(row["size"] for row in rows) or 1.0) / 3))
    repeats, sure = many(stairs.repeats, "answer"), sureness(stairs.confidence)
    table = Table(
        f"The {words} in {repeats} at every threshold",
        ("Threshold b", "Answers", "Typical size of the noise", "Middle of the answers"),
        [
            (stairs.named(each), row["answers"], size(row["size"]), size(row["level"]))
            for each, row in zip(stairs.points, rows, strict=True)
        ],
        frozenset({1, 2, 3}),
    )
    label = (
        f"The {words} in {repeats} at each of {many(len(rows), 'threshold')}: about "
        f"{size(_mean(far, what))}"
        + (f" elsewhere and {size(_mean(near, what))} next to the count." if near else ".")
    )
    keys = [Key("dot", "blue", f"{words}, elsewhere" if near else words)]
    if near:
        keys.insert(0, Key("dot", "red", f"{words}, next to the count"))
    return Picture(
        "staircase",
        title,
        f"{QUESTION} Each question is asked {stairs.repeats:,} times. {told}",
        (Panel(_spec(stairs, rows, what, words, unit), label),),
        table,
        (*keys, Key("stem", "blue", f"about where it lies, {sure} for all together")),
        stairs.about(),
    )


def _row(stairs: Stairs, each: Point) -> Row:
    """Return the middle of the answers to a question, and how far from it they usually are."""
    level = median(each.answers)
    return {
        "x": each.x,
        "level": level,
        "size": median(abs(answer - level) for answer in each.answers),
        "near": each.step is not None and -stairs.k <= each.step < stairs.k,
        "answers": len(each.answers),
    }


def _spec(stairs: Stairs, rows: Sequence[Row], what: str, words: str, unit: float) -> Spec:
    drawn, wide = [], _deviations(stairs.confidence, 2 * len(rows))
    for row in rows:
        error = wide * _DEVIATION * row["size"] / math.sqrt(row["answers"])
        low, high = row[what] - error, row[what] + error
        low = low if what == "level" else max(0.0, low)
        drawn.append({**row, "y": row[what] / unit, "low": low / unit, "high": high / unit})
    title = words if unit == 1 else f"{words}, in {size(unit).removeprefix('1 ')}s"
    y: dict[str, Any] = {"type": "quantitative", "title": title}
    if what == "size":
        y["scale"] = {"domainMin": 0}
    colour = {"condition": {"test": "datum.near", "value": "var(--red)"}, "value": "var(--blue)"}
    line = {"type": "rule", "strokeWidth": 2, "opacity": 0.6}
    return {
        "height": HEIGHT,
        "data": {"values": drawn},
        "encoding": {"x": stairs.axis(), "color": colour},
        "layer": [
            layer(line, y={"field": "low", **y}, y2={"field": "high"}),
            layer(
                {"type": "point", "filled": True, "size": 80, "opacity": 1}, y={"field": "y", **y}
            ),
        ],
    }


def _mean(rows: Sequence[Row], what: str = "size") -> float:
    return sum(float(row[what]) for row in rows) / max(len(rows), 1)


def _deviations(confidence: float, statements: int) -> float:
    """Return how many deviations hold for so many one-sided statements together (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / max(statements, 2))


def _told(
    near: Sequence[Row], far: Sequence[Row], noisier: bool, levels: bool, wide: float
) -> tuple[str, str]:
    """Say what the answers show, as far as it is beyond chance."""
    if noisier:
        times = _mean(near) / _mean(far)
        return (
            f"Every answer is noisy, but {times:.1f} times as noisy next to the count",
            "The noise is larger next to the true count, so its size gives the count away.",
        )
    if levels:
        return (
            "The noise is small enough for repeated answers to show the step",
            "At so large a loss for each answer the true yes or no shows behind the noise.",
        )
    rows = sorted((*near, *far), key=lambda row: float(row["size"]))
    if _larger(rows[-1:], rows[:1], wide):
        return (
            "The size of the noise differs between thresholds",
            "Where the size of the noise depends on the threshold, it can tell something.",
        )
    return (
        "The noise looks equally large at every threshold: no count shows",
        "In these answers the size of the noise does not depend on the threshold.",
    )


def _larger(some: Sequence[Row], others: Sequence[Row], wide: float) -> bool:
    """Tell whether noise is larger in some rows than in others, beyond chance."""
    large, small = _mean(some), _mean(others)
    if not small or not large:
        return large > small
    chance = sum(1 / sum(row["answers"] for row in side) for side in (some, others))
    return math.log(large / small) > wide * _DEVIATION * math.sqrt(chance)


def _levels_differ(rows: Sequence[Row], wide: float) -> bool:
    """Tell whether the middle of the answers differs between thresholds, beyond chance."""
    ordered = sorted(rows, key=lambda row: float(row["level"]))
    low, high = ordered[0], ordered[-1]
    chance = sum(row["size"] ** 2 / row["answers"] for row in (low, high))
    return bool(high["level"] - low["level"] > wide * _DEVIATION * math.sqrt(chance))
