"""How much of each attribute was recovered, against attackers who never ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Named, Panel, Picture, Spec, Table
from thinveil.verdicts.judging.accuracy import Accuracy, AttributeShare
from thinveil.verdicts.judging.intervals import Share
from thinveil.verdicts.phrases import many, percent
from thinveil.verdicts.record import Record
from thinveil.verdicts.sentences import GUESSES_MASKED, MASK, PRECISE, TARGETED, given_away, unit_of

_MOST: Final = 40
_MARKS: Final = {
    "nothing": ("tick", "ink", "an attacker who asks nothing and guesses from public facts"),
    "marginals": ("cross", "orange", "one who knows every column's histogram, and no more"),
    "others": ("diamond", "blue", "one who has the records of everybody else"),
    "possible": ("ring", "green", "somebody who has the true table"),
}
_FIGURES: Final = ("Asking nothing", "Knowing the histograms")
_HEADINGS: Final = (
    "Attribute", "Recovered", *_FIGURES, "Named rightly", *_FIGURES, "Knowing all other records",
    "With the true table",
)  # fmt: skip


def picture(run: Record, found: Accuracy) -> Picture:
    """Draw the shares of each attribute: whose value is not said, and named person by person."""
    unit = unit_of(run, "records")
    columns = [(each.name, each.column) for each in found.attributes if each.column is not None]
    inferred = [(each.name, each.inferred) for each in found.attributes if each.inferred]
    panels = []
    if not found.attributes:
        panels.append(_panel("What was said, and is right", "right", [(unit, found.whole)]))
    if columns:
        heading = "Values of a column, whoever they belong to"
        panels.append(_panel(heading, "recovered", columns, told=False))
    if inferred:
        heading = "A person's value, named by somebody who knows their other attributes"
        if run.attack == "attribute":
            heading = "A person's value, named from what was known of them"
        panels.append(_panel(heading, "named rightly", inferred))
    hidden = found.whole.nothing is None
    keys = [Key("dot", "red", "the attack")]
    if not hidden:
        keys.append(Key(*_MARKS["nothing"]))
    if (inferred or not found.attributes) and not hidden:
        keys.append(Key(*_MARKS["marginals"]))
    if any(each.others is not None for _, each in inferred):
        keys.append(Key(*_MARKS["others"]))
    if any(each.possible_share is not None for _, each in inferred):
        keys.append(Key(*_MARKS["possible"]))
    notes = [found.meaning()]
    told = (
        "Whoever knows a column's histogram has its values by definition: that mark is drawn "
        "only where values must be tied to people."
    )
    notes += [told] if columns else []
    notes += [given_away(found.given_away)] if found.given_away else []
    notes += [found.singling_out.sentence()] if found.singling_out else []
    return Picture(
        "accuracy",
        _headline(run, found),
        GUESSES_MASKED
        if hidden
        else "A figure means something only beside what guessing gets. Where the dot is no further "
        "right than the marks of the guessers, the attack showed nothing beyond guessing there.",
        tuple(panels),
        _table(found, unit, 9 if inferred else 4),
        tuple(keys),
        " ".join(notes),
    )


def _table(found: Accuracy, unit: str, width: int) -> Table:
    whole = (*_shares(found.whole), *_shares(None), "", "")
    lines: list[tuple[object, ...]] = [(f"all {unit}", *whole)]
    for each in found.attributes:
        named = each.inferred
        more = (None, None) if named is None else (named.others_share, named.possible_share)
        last = ("" if one is None else percent(one) for one in more)
        lines.append((Named(each.name), *_shares(each.column), *_shares(named), *last))
    return Table(
        "Shares, beside those of attackers who never ask",
        _HEADINGS[:width],
        [line[:width] for line in lines],
        frozenset(range(1, width)),
    )


def _shares(one: Share | None) -> tuple[str, ...]:
    if one is None:
        return ("",) * 3
    guesses = (one.nothing_share, one.marginals_share)
    return (
        percent(one.share),
        *(MASK if each is None else percent(each) for each in guesses),
    )


def _headline(run: Record, found: Accuracy) -> str:
    """Say in how many attributes more is right in this table than any guesser gets right."""
    attributes, whole = found.attributes, found.whole
    precise = f", {PRECISE}" if run.precision else ""
    share = f"{percent(whole.share)} of {unit_of(run, 'records')}"
    if whole.nothing_share is None:
        return f"{share} right{precise}"
    # whoever knows histograms has single columns by definition
    alone = bool(attributes) and not any(each.inferred for each in attributes)
    guess = whole.nothing_share if alone else whole.guess
    against = f"{share}{precise}, against {percent(guess)} by guessing"
    better = sum(map(_is_beyond, attributes))
    where = "among those asked about" if run.attack in TARGETED else "in this table"
    if better == 0 and whole.share <= guess:
        columns = [each.column for each in attributes if each.column is not None]
        known = sum(one.share > (one.nothing_share or 0.0) for one in columns)
        if known:
            of = f"{known} of {many(len(attributes), 'column')}"
            return f"More values of {of} {where} than guessing gets, and not whose; {against}"
        if run.ended not in ("complete", "undecided"):
            return f"The run ended before more was right than guessing gets {where}"
        return f"Nothing was recovered beyond what guessing gets {where}"
    if better == 0:
        return against
    which = "every attribute"
    if better < len(attributes):
        which = f"{better} of {many(len(attributes), 'attribute')}"
    return f"Beyond guessing in {which} {where}; {against}"


def _is_beyond(attribute: AttributeShare) -> bool:
    """Tell whether an attribute goes beyond guessing in every panel that it is drawn in."""
    column, named = attribute.column, attribute.inferred
    return (column is None or column.share > (column.nothing_share or 0.0)) and (
        named is None or named.share > named.guess
    )


def _panel(
    heading: str, what: str, shares: Sequence[tuple[str, Share]], told: bool = True
) -> Panel:
    rows = [
        {
            "name": name,
            "share": one.share,
            "nothing": one.nothing_share,
            "marginals": one.marginals_share if told else None,
            "others": one.others_share if told else None,
            "possible": one.possible_share,
        }
        for name, one in shares[:_MOST]
    ]
    x = pictures.share_axis(f"share {what}")
    marks = {
        "possible": pictures.dot("green", 190, filled=False, strokeWidth=2),
        "nothing": pictures.tick(18),
        "marginals": pictures.dot("orange", 90, shape="cross"),
    }
    layers: list[Spec] = [
        pictures.layer(mark, x={"field": name, **x})
        for name, mark in marks.items()
        if any(row[name] is not None for row in rows)
    ]
    # on top of the attack, which they often reach
    above = pictures.dot("blue", 60, shape="diamond", stroke="var(--on-bar)", strokeWidth=1)
    others = pictures.layer(above, "isValid(datum.others)", x={"field": "others", **x})
    spec: Spec = {
        "height": 30 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": pictures.rows_by("name", [name for name, _ in shares], grid=True)},
        "layer": [*layers, pictures.layer(pictures.dot("red"), x={"field": "share", **x}), others],
    }
    said = "; ".join(
        f"{name} {percent(one.share)}"
        + ("" if one.nothing_share is None else f", asking nothing {percent(one.nothing_share)}")
        + (
            f", by histograms {percent(one.marginals_share)}"
            if told and one.marginals_share is not None
            else ""
        )
        + (
            f", by all other records {percent(one.others_share)}"
            if told and one.others_share is not None
            else ""
        )
        for name, one in shares[:12]
    )
    return Panel(spec, f"{heading}. Share {what}: {said}.", heading)
