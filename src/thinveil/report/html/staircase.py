"""The staircase: one question at every threshold near a count, and what was answered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from thinveil.report.html.markup import Table
from thinveil.report.html.pictures import PERCENT, Key, Panel, Picture, Spec, dot
from thinveil.report.html.spelling import loss, many, size

_HEIGHT: Final = 300
_DEVIATION: Final = 1.6
"""The relative deviation of a median of noise, times the root of how many: Laplace or Cauchy."""
_QUESTION: Final = (
    "The attacker asks again and again: are there more than b records of a certain kind? Only b "
    "changes."
)


def picture(run: Mapping[str, Any]) -> Picture:
    """Draw the answers against the thresholds, exact and noisy ones told apart."""
    stairs = run["staircase"]
    points = stairs["points"]
    repeated = all(each["kind"] == "noise" for each in points) and (stairs["repeats"] or 1) > 1
    return _spread(stairs) if repeated else _steps(stairs)


def _place(stairs: Mapping[str, Any]) -> str:
    """Return how thresholds are given: as they are, from the count, or as parts of the table."""
    first = stairs["points"][0]
    return next(name for name in ("threshold", "step", "part") if first[name] is not None)


def _axis(stairs: Mapping[str, Any]) -> dict[str, Any]:
    place = _place(stairs)
    axis: dict[str, Any] = {"tickMinStep": 1, "grid": False, "titleLimit": 320}
    title = "threshold b of the question"
    if place == "step":
        title = "threshold b, relative to the count found"
        axis["labelExpr"] = (
            "datum.value == 0 ? 'count' : (datum.value < 0 ? '\u2212' : '+') + abs(datum.value)"
        )
    elif place == "part":
        title = "threshold b, as a part of all records"
        axis |= {"tickMinStep": 0.25, "labelExpr": PERCENT}
    return {
        "field": "x",
        "type": "quantitative",
        "title": title,
        "axis": axis,
        "scale": {"zero": False, "nice": False, "padding": 12},
    }


def _named(stairs: Mapping[str, Any], each: Mapping[str, Any]) -> str:
    """Write a threshold for the table."""
    place = _place(stairs)
    if place == "threshold":
        return f"{each['threshold']:,}"
    if place == "part":
        return f"{each['part']:.0%} of all records"
    step = each["step"]
    return "at the count" if step == 0 else f"{abs(step):,} {'above' if step > 0 else 'below'}"


def _about(stairs: Mapping[str, Any]) -> str:
    """Say what was asked about, and what it cost."""
    what = "What was asked about is not shown."
    if stairs["predicate"]:
        count = stairs["count"]
        found = "no count was found" if count is None else f"the count is {count:,}"
        what = f"Asked about: {stairs['predicate']}; {found}."
    cost = (
        f"{many(stairs['queries'] or 0, 'answer')}, claimed loss {loss(stairs['epsilon_claimed'])}."
    )
    return f"{what} {cost}"


def _steps(stairs: Mapping[str, Any]) -> Picture:
    """Draw single answers: exact ones on two steps, noise far away from both."""
    points = stairs["points"]
    rows = [
        {
            "x": each[_place(stairs)],
            "y": answer,
            "kind": "noise" if each["kind"] == "noise" else "exact",
        }
        for each in points
        for answer in each["answers"]
    ]
    noisy = [row["x"] for row in rows if row["kind"] == "noise"]
    exact = [row for row in rows if row["kind"] == "exact"]
    x = _axis(stairs)
    y = {"field": "y", "type": "quantitative", "title": "answer", **_squeezed(rows)}
    layers: list[Spec] = []
    if noisy and exact:
        band = [{"from": min(noisy) - 0.5, "to": max(noisy) + 0.5}]
        layers.append(
            {
                "data": {"values": band},
                "mark": {"type": "rect", "color": "var(--orange)", "opacity": 0.16},
                "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}},
            }
        )
    layers += [
        {
            "transform": [{"filter": "datum.kind == 'exact'"}],
            "mark": dot("blue"),
            "encoding": {"x": x, "y": y, "tooltip": _tooltip()},
        },
        {
            "transform": [{"filter": "datum.kind == 'noise'"}],
            "mark": dot("red", 110, shape="triangle-up", filled=False, strokeWidth=2),
            "encoding": {"x": x, "y": y, "tooltip": _tooltip()},
        },
    ]
    spec = {"height": _HEIGHT, "data": {"values": rows}, "layer": layers}
    keys = [Key("dot", "blue", "an exact answer: 1 for yes, 0 for no")] if exact else []
    if noisy:
        keys.append(Key("triangle", "red", "an answer drowned in noise"))
    if noisy and exact:
        keys.append(Key("band", "orange", "the thresholds next to the count"))
    largest = max((abs(row["y"]) for row in rows if row["kind"] == "noise"), default=0.0)
    title, explained = _finding(stairs, bool(exact), len(set(noisy)), largest)
    table = Table(
        "Every threshold that was asked, and the answer",
        ("Threshold b", "Kind of answer", "Answer"),
        [
            (_named(stairs, each), each["kind"], ", ".join(map(_short, each["answers"][:8])))
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
        "staircase", title, explained, (Panel(spec, label),), table, tuple(keys), _about(stairs)
    )


def _tooltip() -> list[dict[str, str]]:
    return [
        {"field": "y", "type": "quantitative", "title": "answer"},
        {"field": "kind", "type": "nominal", "title": "which is"},
    ]


def _finding(stairs: Mapping[str, Any], exact: bool, noisy: int, largest: float) -> tuple[str, str]:
    """Say what the steps show."""
    if exact and noisy:
        return (
            "The noise shows where the count is",
            f"{_QUESTION} Far from the true count the answer is exact, and close to it there is "
            f"noise of up to {size(largest)}: so the place of the noise gives the count away.",
        )
    if exact:
        return (
            "Without protection the step from yes to no is the count",
            f"{_QUESTION} The answer changes from 1 to 0 exactly at the count.",
        )
    return (
        "All answers near this count are noise: no step shows",
        f"{_QUESTION} No answer is exact here, so a single count does not show in this way.",
    )


def _squeezed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a scale on which 0 and 1 are told apart beside noise of billions."""
    largest = max(abs(row["y"]) for row in rows)
    if largest <= 2:
        return {"scale": {"domain": [-0.25, 1.25]}, "axis": {"values": [0, 1], "format": "d"}}
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
            "constant": top**-0.39,
            "domain": [lowest, top],
            "nice": False,
        },
        "axis": {"values": list(signs), "labelExpr": f"{cases}''"},
    }


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 1e3 and value == int(value) else f"{value:,.4g}"


def _spread(stairs: Mapping[str, Any]) -> Picture:
    """Draw how large repeated answers are: larger next to the count, or all alike."""
    k = stairs["k"] or 1
    rows = []
    for each in stairs["points"]:
        typical = median(abs(answer) for answer in each["answers"])
        error = _DEVIATION / math.sqrt(len(each["answers"]))
        near = each["step"] is not None and -k <= each["step"] < k
        rows.append(
            {"x": each[_place(stairs)], "size": typical, "low": max(0.0, 1 - 2 * error) * typical,
             "high": (1 + 2 * error) * typical, "near": near, "answers": len(each["answers"])}
        )  # fmt: skip
    near, far = ([row for row in rows if row["near"] is side] for side in (True, False))
    unit = 10.0 ** (3 * math.floor(math.log10(max(row["size"] for row in rows)) / 3))
    colour = {"condition": {"test": "datum.near", "value": "var(--red)"}, "value": "var(--blue)"}
    title = f"typical size of the answers, in {size(unit).removeprefix('1 ')}s"
    y = {"type": "quantitative", "title": title, "scale": {"domainMin": 0}}
    spec = {
        "height": _HEIGHT,
        "data": {"values": [_in_units(row, unit) for row in rows]},
        "encoding": {"x": _axis(stairs), "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6},
                "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {"y": {"field": "size", **y}},
            },
        ],
    }
    keys = [Key("dot", "blue", "typical size, elsewhere" if near else "typical size")]
    if near:
        keys.insert(0, Key("dot", "red", "typical size, next to the count"))
    repeats = many(stairs["repeats"] or 1, "answer")
    table = Table(
        f"Typical size (median) of {repeats} at every threshold",
        ("Threshold b", "Answers", "Typical size"),
        [
            (_named(stairs, each), row["answers"], size(row["size"]))
            for each, row in zip(stairs["points"], rows, strict=True)
        ],
        frozenset({1, 2}),
    )
    label = (
        f"Typical size of {repeats} at each of {many(len(rows), 'threshold')}: about "
        f"{size(_mean(far))}"
        + (f" elsewhere and {size(_mean(near))} next to the count." if near else ".")
    )
    title, told = _told(near, far)
    return Picture(
        "staircase",
        title,
        f"{_QUESTION} Each question is asked {stairs['repeats']:,} times. {told}",
        (Panel(spec, label),),
        table,
        (*keys, Key("stem", "blue", "how sure it is: two standard errors to each side")),
        _about(stairs),
    )


def _in_units(row: Mapping[str, Any], unit: float) -> dict[str, Any]:
    return {**row, **{name: row[name] / unit for name in ("size", "low", "high")}}


def _mean(rows: Sequence[Mapping[str, Any]]) -> float:
    return sum(float(row["size"]) for row in rows) / max(len(rows), 1)


def _told(near: Sequence[Mapping[str, Any]], far: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Say what the sizes show, as far as it is beyond chance."""
    if near and far and _differ(_mean(near), near, _mean(far), far):
        return (
            f"Every answer is noisy, but {_mean(near) / _mean(far):.1f} times as noisy next to the "
            "count",
            "The noise is larger next to the true count, so its size gives the count away.",
        )
    smallest, largest = (end([*near, *far], key=lambda row: row["size"]) for end in (min, max))
    if _differ(largest["size"], [largest], smallest["size"], [smallest]):
        return (
            "The size of the noise differs between thresholds",
            "Where the size of noise depends on the threshold it can tell something.",
        )
    return (
        "The noise looks equally large at every threshold: no count shows",
        "In these answers the size of the noise does not depend on the threshold.",
    )


def _differ(
    large: float,
    some: Sequence[Mapping[str, Any]],
    small: float,
    others: Sequence[Mapping[str, Any]],
) -> bool:
    """Tell whether one size is larger than another, by five standard errors."""
    chance = sum(1 / sum(row["answers"] for row in side) for side in (some, others))
    return math.log(large / small) > 5 * _DEVIATION * math.sqrt(chance)
