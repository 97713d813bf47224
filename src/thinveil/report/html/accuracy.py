"""How much of each attribute was recovered, with intervals, against both baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from thinveil.report.html.markup import Html, Table, data, paragraph, tag
from thinveil.report.html.masking import MASK
from thinveil.report.html.pictures import Key, Panel, Picture, Spec, dot, rows_by, share_axis, tick
from thinveil.report.html.spelling import between, many, percent, sureness
from thinveil.report.html.targets import GUESSES_MASKED, TARGETED, YES_OR_NO, is_unsettled, unit_of

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


def of_one(run: Mapping[str, Any]) -> Html:
    """Say whether what was said of one person or one count is right: a share would mean little."""
    what = "count" if run["attack"] == "count" else "person"
    if is_unsettled(run):
        return tag("div", tag("h3", f"Nothing was said of the {what} asked about"), id="accuracy")
    beside = GUESSES_MASKED if run["accuracy"].get("guesses_masked") else ""
    if run["attack"] in YES_OR_NO:
        beside = "It stands beside a coin flip."
    precise = ", at the chosen precision" if run["precision"] else ""
    said = tag("h3", f"What was said of one {what} is {judged_one(run)}{precise}")
    return tag("div", said, paragraph(beside) if beside else "", id="accuracy")


def judged_one(run: Mapping[str, Any]) -> str:
    """Return whether what was said of one person or one count is right."""
    whole = run["accuracy"]["records"]
    if 0 < whole["recovered"] < whole["of"]:
        return "partly right"
    return "right" if whole["recovered"] else "wrong"


def picture(run: Mapping[str, Any]) -> Picture:
    """Draw the shares of each attribute: whose value is not said, and named person by person."""
    found = run["accuracy"]
    attributes, records, unit = found["attributes"], found["records"], unit_of(run, "records")
    columns = [each for each in attributes if each["share"] is not None]
    inferred = [each for each in attributes if each.get("inferred")]
    panels = []
    if not attributes:
        panels.append(_panel("What was said, and is right", "right", [{**records, "name": unit}]))
    if columns:
        known = [{**each, "marginals_share": None} for each in columns]
        panels.append(_panel("Values of a column, whoever they belong to", "recovered", known))
    if inferred:
        named = [{**each["inferred"], "name": each["name"]} for each in inferred]
        heading = "A person's value, named by somebody who knows their other attributes"
        if run["attack"] == "attribute":
            heading = "A person's value, named from what was known of them"
        panels.append(_panel(heading, "named rightly", named))
    sure = sureness(found["confidence"])
    width = 10 if inferred else 5
    lines: list[tuple[object, ...]] = [(f"all {unit}", *_shares(records), *_inferred(None))]
    for each in attributes:
        cells = (*_shares(each), *_inferred(each.get("inferred")))
        lines.append((data(each["name"]), *cells))
    table = Table(
        f"Shares with {sure} intervals, beside both baselines",
        _HEADINGS[:width],
        [line[:width] for line in lines],
        frozenset(range(1, width)),
    )
    hidden = found.get("guesses_masked")
    keys = [Key("dot", "red", f"the attack, with its {sure} interval")]
    if not hidden:
        keys.append(Key(*_MARKS["nothing"]))
    if (inferred or not attributes) and not hidden:
        keys.append(Key(*_MARKS["marginals"]))
    if any(each["inferred"].get("possible_share") is not None for each in inferred):
        keys.append(Key(*_MARKS["possible"]))
    told = (
        " Whoever knows a column's histogram has its values by definition: that mark is drawn "
        "only where values must be tied to people."
    )
    return Picture(
        "accuracy",
        _headline(run),
        GUESSES_MASKED
        if hidden
        else "A figure means something only beside what guessing gets. Where the dot is no further "
        "right than the marks of the guessers, the attack learned nothing new there.",
        tuple(panels),
        table,
        tuple(keys),
        found["meaning"] + (told if columns else ""),
    )


def _shares(one: Mapping[str, Any]) -> tuple[str, ...]:
    if one["share"] is None:
        return ("",) * 4
    return (
        percent(one["share"]),
        between(one.get("interval")),
        *(
            MASK if one[name] is None else percent(one[name])
            for name in ("nothing_share", "marginals_share")
        ),
    )


def _inferred(one: Mapping[str, Any] | None) -> tuple[str, ...]:
    return ("",) * 5 if one is None else (*_shares(one), _possible(one))


def _possible(one: Mapping[str, Any]) -> str:
    return "" if one.get("possible_share") is None else percent(one["possible_share"])


def _headline(run: Mapping[str, Any]) -> str:
    """Say in how many attributes more is right in this table than any guesser gets right."""
    found = run["accuracy"]
    attributes, whole, unit = found["attributes"], found["records"], unit_of(run, "records")
    precise = ", at the chosen precision" if run["precision"] else ""
    share = f"{percent(whole['share'])} of {unit}"
    if found.get("guesses_masked"):
        return f"{share} right{precise}"
    guess = max(whole["nothing_share"], 0.0 if _is_columns(found) else whole["marginals_share"])
    against = f"{share}{precise}, against {percent(guess)} by guessing"
    better = sum(map(_is_beyond, attributes))
    where = "among those asked about" if run["attack"] in TARGETED else "in this table"
    if better == 0 and whole["share"] <= guess:
        return f"Nothing was recovered beyond what guessing gets {where}"
    if better == 0:
        return against
    which = "every attribute"
    if better < len(attributes):
        which = f"{better} of {many(len(attributes), 'attribute')}"
    return f"Beyond guessing in {which} {where}; {against}"


def _is_beyond(attribute: Mapping[str, Any]) -> bool:
    """Tell whether an attribute goes beyond guessing in every panel that it is drawn in."""
    named = attribute.get("inferred")
    column = attribute["share"] is None or attribute["share"] > attribute["nothing_share"]
    return column and (
        not named or named["share"] > max(named["nothing_share"], named["marginals_share"])
    )


def _is_columns(found: Mapping[str, Any]) -> bool:
    """Tell whether single columns were attacked: whoever knows histograms has those."""
    each = found["attributes"]
    return bool(each) and not any(one.get("inferred") for one in each)


def _panel(heading: str, what: str, shares: Sequence[Mapping[str, Any]]) -> Panel:
    rows = [
        {
            "name": one["name"],
            "share": one["share"],
            "low": one["interval"][0],
            "high": one["interval"][1],
            "nothing": one["nothing_share"],
            "marginals": one["marginals_share"],
            "possible": one.get("possible_share"),
        }
        for one in shares[:_MOST]
    ]
    x = {"type": "quantitative", **share_axis(f"share {what}")}
    layers: list[Spec] = []
    if any(row["possible"] is not None for row in rows):
        ring = dot("green", 190, filled=False, strokeWidth=2)
        layers.append({"mark": ring, "encoding": {"x": {"field": "possible", **x}}})
    layers += [
        {
            "mark": {"type": "rule", "strokeWidth": 3, "color": "var(--red)"},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {"mark": dot("red"), "encoding": {"x": {"field": "share", **x}}},
    ]
    if any(row["nothing"] is not None for row in rows):
        layers.insert(-2, {"mark": tick(18), "encoding": {"x": {"field": "nothing", **x}}})
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
        f"{row['name']} {percent(row['share'])}"
        + ("" if row["nothing"] is None else f", asking nothing {percent(row['nothing'])}")
        + ("" if row["marginals"] is None else f", by histograms {percent(row['marginals'])}")
        for row in rows[:12]
    )
    return Panel(spec, f"{heading}. Share {what}: {said}.", heading)
