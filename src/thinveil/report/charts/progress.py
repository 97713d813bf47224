"""How far the attack got: shares rebuilt against questions asked, and where questions went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Named, Panel, Picture, Spec, Table
from thinveil.verdicts.phrases import amount, loss, many, percent
from thinveil.verdicts.record import Moment, Record
from thinveil.verdicts.sentences import PRECISE
from thinveil.verdicts.typed import to_json

_MOST_BARS: Final = 30
_MOST_ROWS: Final = 200
_BITS: Final = (
    "Every answer rules tables out. Bits count how many, of all that {}: 0 % before the first "
    "answer, 100 % once one table is left. A table unlike most of these may show more bits than "
    "answers carry on average. Columns that are known by themselves count, long before any record "
    "does."
)
_PUBLIC: Final = "the public facts allow"
_FOUND: Final = "the public facts allow, and limits as found where they are not public"
_JUMPS: Final = " Before its limits are found nothing counts of a column, so bits may jump then."
_COMMON: Final = 1.0
"""A loss that is common for a whole release."""


def rebuilt(run: Record, trace: Sequence[Moment]) -> Picture:
    """Draw the shares of bits, records and values known, and the claimed loss, against answers."""
    first, last = trace[0], trace[-1]
    claims, counted = run.epsilon_claimed is not None, last.bits is not None
    single = len(trace) == 1
    axis = pictures.share_axis("share known")
    lines = [
        _line("values", "orange", [6, 3], axis, point=single),
        _line("records", "red", [], axis, point=single),
        *([_line("bits", "ink", [], axis, point=single, strokeWidth=4)] if counted else []),
    ]
    spec: Spec = {"height": 300, "data": {"values": to_json(trace)}, "layer": lines}
    keys = [
        *([Key("line", "ink", "bits known, of all bits of the table")] if counted else []),
        Key("line", "red", "whole records rebuilt"),
        Key("dash", "orange", "single values rebuilt"),
    ]
    spent = last.epsilon_claimed
    top = max(_COMMON, spent)
    if claims:
        right = {
            "title": "claimed loss",
            "scale": {"domain": [0, top], "nice": False},
            "axis": {"grid": False, "orient": "right", "tickCount": 4},
        }
        spec["layer"] = [{"layer": lines}, _line("epsilon_claimed", "blue", [2, 3], right)]
        spec["resolve"] = {"scale": {"y": "independent"}}
        keys.append(Key("dots", "blue", f"claimed loss, on the right axis from 0 to {top:g}"))
    table = Table(
        "Shares known after so many answers",
        ("Answers", "Bits", "Records", "Values", *(["Claimed loss"] if claims else [])),
        [
            (
                amount(each.queries),
                percent(each.bits),
                percent(each.records),
                percent(each.values),
                *([loss(each.epsilon_claimed)] if claims else []),
            )
            for each in _thinned(trace)
        ],
        frozenset({0, 1, 2, 3, 4}),
    )
    share = f"{percent(last.records)} of records rebuilt"
    known = f"{percent(last.bits)} of all bits known, {share}," if counted else share
    title = f"{known} after {many(last.queries, 'answer')}"
    if run.precision:
        title += f", {PRECISE}"
    judged = "the true table was not at hand to check it"
    if run.accuracy or run.score is not None:
        judged = "how much is right stands with the verdict"
    bits = _BITS.format(_FOUND) + _JUMPS if run.limits_found else _BITS.format(_PUBLIC)
    explained = (
        f"{bits} A record counts once all its attributes are known together. This counts what "
        f"was rebuilt, right or wrong; {judged}."
        if not run.is_nothing
        else "No value was settled; the verdict says what would have been seen."
        if run.ended == "undecided"
        else "No value was settled before the run ended: more answers settle some."
    )
    if claims:
        title += f", at a claimed loss of {loss(spent)}"
        explained += " The claimed loss is drawn against 1, a common budget for a whole release" + (
            "; it hardly moves." if spent < 0.01 else "."
        )
    label = (
        f"Over {many(last.queries, 'answer')}, "
        + (f"bits known rise to {percent(last.bits)}, " if counted else "")
        + f"records rebuilt rise from "
        f"{percent(first.records)} to {percent(last.records)}, and values from "
        f"{percent(first.values)} to {percent(last.values)}"
        + (f"; the claimed loss ends at {loss(spent)} on an axis to {top:g}." if claims else ".")
    )
    return Picture("rebuilt", title, explained, (Panel(spec, label),), table, tuple(keys))


def _line(field: str, colour: str, dash: list[int], y: dict[str, Any], **mark: Any) -> Spec:
    ticks = {"grid": False, "format": ",d", "tickCount": 5}
    return {
        "mark": {
            "type": "line",
            "color": f"var(--{colour})",
            "strokeDash": dash,
            "interpolate": "step-after",
            "strokeWidth": 2.5,
            **mark,
        },
        "encoding": {
            "x": pictures.number(
                "queries", "answers given so far", axis=ticks, scale={"nice": False}
            ),
            "y": {"field": field, "type": "quantitative", **y},
        },
    }


def _thinned(trace: Sequence[Moment]) -> Sequence[Moment]:
    """Return a trace with at most so many rows as somebody might read."""
    every = -(-len(trace) // _MOST_ROWS)
    return [*trace[:-1:every], trace[-1]] if every > 1 else trace


def questions(run: Record) -> Picture:
    """Draw how many questions each attribute took."""
    asked = {name: count for name, count in run.questions_by_attribute.items() if count}
    most = sorted(asked, key=lambda name: -asked[name])
    drawn = [name for name in asked if name in most[:_MOST_BARS]]
    rows = [{"name": name, "questions": asked[name], "text": amount(asked[name])} for name in drawn]
    scale, ticks = {"domainMax": 1.25 * asked[most[0]]}, {"format": ",d", "tickCount": 4}
    x = pictures.number("questions", "questions", axis=ticks, scale=scale)
    spec: Spec = {
        "height": 30 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": pictures.rows_by("name", drawn), "x": x},
        "layer": [
            {"mark": {"type": "bar", "color": "var(--blue)", "height": {"band": 0.62}}},
            pictures.layer(pictures.words(align="left", dx=6), text={"field": "text"}),
        ],
    }
    first, attributes = most[0], many(len(asked), "attribute")
    if len(asked) == 1:
        title = f"All questions were about {first}"
    elif len(set(asked.values())) == 1:
        title = f"Questions went equally to {attributes}"
    elif 2 * asked[first] <= sum(asked.values()):
        title = f"Questions went to {attributes}; {first} took the most"
    else:
        title = f"Most questions went to one attribute: {first}"
    bits = run.bits_by_attribute if run.score is not None else {}
    table = Table(
        "Questions for each attribute, and how much was found out about it",
        ("Attribute", "Questions", "Bits found"),
        [
            (Named(name), amount(count), amount(bits.get(name)))
            for name, count in run.questions_by_attribute.items()
        ],
        frozenset({1, 2}),
    )
    ahead = ", ".join(f"{name} {amount(asked[name])}" for name in most[:5])
    return Picture(
        "questions",
        title,
        "An attribute with many possible values takes many questions; one that follows from "
        "the others takes few.",
        (Panel(spec, f"Questions per attribute, the most first: {ahead}."),),
        table,
        note=f"The {_MOST_BARS} attributes with most questions are drawn."
        * (len(asked) > len(drawn)),
    )
