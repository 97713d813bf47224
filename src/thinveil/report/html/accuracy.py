"""How much of each attribute was recovered, with intervals, against both baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from thinveil.report.html.markup import Table, data
from thinveil.report.html.pictures import Key, Panel, Picture, Spec, dot, rows_by, share_axis, tick
from thinveil.report.html.spelling import between, many, percent, sureness

_MOST: Final = 40
_MARKS: Final = {
    "nothing": ("tick", "ink", "an attacker who asks nothing and guesses from public facts"),
    "marginals": ("cross", "orange", "one who knows every column's histogram, and no more"),
    "possible": ("ring", "green", "somebody who has the true table"),
}
_HEADINGS: Final = (
    "Attribute",
    "Recovered",
    "Interval",
    "Asking nothing",
    "Knowing the histograms",
    "Named rightly",
    "Interval",
    "Asking nothing",
    "Knowing the histograms",
    "With the true table",
)


def picture(run: Mapping[str, Any]) -> Picture:
    """Draw the shares of each attribute: whose value is not said, and named person by person."""
    found = run["accuracy"]
    attributes, records = found["attributes"], found["records"]
    inferred = [each for each in attributes if each.get("inferred")]
    panels = [
        _panel(
            "Values of a column, whoever they belong to",
            "recovered",
            attributes,
            [{**each, "marginals_share": None} for each in attributes],
        )
    ]
    if inferred:
        panels.append(
            _panel(
                "A person's value, named by somebody who knows their other attributes",
                "named rightly",
                inferred,
                [each["inferred"] for each in inferred],
            )
        )
    sure = sureness(found["confidence"])
    width = 10 if inferred else 5
    lines: list[tuple[object, ...]] = [("whole records", *_shares(records), *_inferred(None))]
    for each in attributes:
        cells = (*_shares(each), *_inferred(each.get("inferred")))
        lines.append((data(each["name"]), *cells))
    table = Table(
        f"Shares with {sure} intervals, beside both baselines",
        _HEADINGS[:width],
        [line[:width] for line in lines],
        frozenset(range(1, width)),
    )
    keys = [Key("dot", "red", f"the attack, with its {sure} interval")]
    used = ["nothing", "marginals", *(["possible"] if inferred else [])]
    return Picture(
        "accuracy",
        _headline(attributes, records),
        "A figure means something only beside what guessing gets. Where the dot is no further "
        "right than the marks of the guessers, the attack learned nothing new there.",
        tuple(panels),
        table,
        (*keys, *(Key(*_MARKS[name]) for name in used)),
        f"{found['meaning']} Whoever knows a column's histogram has its values by definition: that "
        "mark is drawn only where values must be tied to people.",
    )


def _shares(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        percent(one["share"]),
        between(one.get("interval")),
        percent(one["nothing_share"]),
        percent(one["marginals_share"]),
    )


def _inferred(one: Mapping[str, Any] | None) -> tuple[str, ...]:
    return ("",) * 5 if one is None else (*_shares(one), percent(one.get("possible_share")))


def _headline(attributes: Sequence[Mapping[str, Any]], records: Mapping[str, Any]) -> str:
    """Say in how many attributes the whole interval is beyond both baselines."""
    tied = [each.get("inferred") or {**each, "marginals_share": 0.0} for each in attributes]
    better = sum(
        (each.get("interval") or [each["share"]])[0]
        > max(each["nothing_share"], each["marginals_share"])
        for each in tied
    )
    if better == 0:
        return "Nothing was recovered beyond what guessing gets"
    which = "every attribute"
    if better < len(attributes):
        which = f"{better} of {many(len(attributes), 'attribute')}"
    guess = max(records["nothing_share"], records["marginals_share"])
    return (
        f"Beyond guessing in {which}; {percent(records['share'])} of whole records, against "
        f"{percent(guess)} by guessing"
    )


def _panel(
    heading: str,
    what: str,
    named: Sequence[Mapping[str, Any]],
    shares: Sequence[Mapping[str, Any]],
) -> Panel:
    rows = [
        {
            "name": one["name"],
            "share": share["share"],
            "low": (share.get("interval") or [share["share"]] * 2)[0],
            "high": (share.get("interval") or [share["share"]] * 2)[1],
            "nothing": share["nothing_share"],
            "marginals": share["marginals_share"],
            "possible": share.get("possible_share"),
        }
        for one, share in list(zip(named, shares, strict=True))[:_MOST]
    ]
    x = {"type": "quantitative", **share_axis(f"share {what}")}
    layers: list[Spec] = []
    if any(row["possible"] is not None for row in rows):
        ring = dot("green", 190, filled=False, strokeWidth=2)
        layers.append({"mark": ring, "encoding": {"x": {"field": "possible", **x}}})
    layers += [
        {"mark": tick(18), "encoding": {"x": {"field": "nothing", **x}}},
        {
            "mark": {"type": "rule", "strokeWidth": 3, "color": "var(--red)"},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {"mark": dot("red"), "encoding": {"x": {"field": "share", **x}}},
    ]
    if any(row["marginals"] is not None for row in rows):
        cross = dot("orange", 90, shape="cross")
        layers.insert(-2, {"mark": cross, "encoding": {"x": {"field": "marginals", **x}}})
    spec: Spec = {
        "height": 30 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": rows_by("name", grid=True)},
        "layer": layers,
    }
    said = "; ".join(
        f"{row['name']} {percent(row['share'])}, asking nothing {percent(row['nothing'])}"
        + ("" if row["marginals"] is None else f", by histograms {percent(row['marginals'])}")
        for row in rows[:12]
    )
    return Panel(spec, f"{heading}. Share {what}: {said}.", heading)
