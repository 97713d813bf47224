"""Mechanisms side by side: what each attack recovered from each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from thinveil.auditing.entries import confidence_of
from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Named, Panel, Picture, Spec, Table
from thinveil.verdicts.comparing.outcomes import Comparison, Line, Outcome
from thinveil.verdicts.names import KINDS
from thinveil.verdicts.phrases import amount, between, loss, many, percent, sureness, upper
from thinveil.verdicts.sentences import SILENT, comparison_headline

TASKS: Final = {
    "membership": "Is a person in the table?",
    "attribute": "What are a person's other attributes?",
    "dataset": "The whole table",
}
_ROOM: Final = 0.7  # the rest of a narrow panel's width is about that of a figure
_MORE: Final = (
    "Asking nothing", "Knowing the histograms", "Knowing all other records", "Answers",
    "Claimed loss",
)  # fmt: skip


def compared(comparison: Comparison) -> Picture:
    """Draw what every attack recovered from every mechanism, beside asking nothing."""
    lines = [each for each in comparison.lines if each.tried]
    kinds = {line.claim.kind for line in lines}
    keys = [Key("bar", kind, text) for kind, text in KINDS.items() if kind in kinds]
    drawn = f", drawn from {comparison.sampled_from:,}" if comparison.sampled_from else ""
    return Picture(
        "mechanisms",
        comparison_headline(lines),
        "The same three attacks, tried on each mechanism at the same claimed loss an answer. A bar "
        "that ends before the mark shows no more than guessing does. An attack that finds no "
        "usable difference says nothing, so there is no bar.",
        tuple(_panel(task, lines) for task in TASKS),
        _table(lines, sureness(confidence_of(comparison.settings.confidence))),
        (
            *keys,
            Key("tick", "ink", "an attacker who asks nothing"),
            Key("cross", "orange", "one who knows every column's histogram"),
            Key("diamond", "blue", "one who has all other records"),
        ),
        f"{many(comparison.records, 'record')}{drawn}; {comparison.settings.epsilon_per_query} "
        f"claimed an answer. {comparison.verdict()} {upper(comparison.trials()[-1])}",
    )


def _table(lines: Sequence[Line], sure: str) -> Table:
    tried = [(line, each) for line in lines for each in line.tried]
    return Table(
        "What each attack recovered from each mechanism",
        (
            "Mechanism",
            "Attack",
            "Recovered",
            "Share",
            f"Interval, {sure} all together",
            *_MORE,
        ),
        [
            (
                Named(line.mechanism),
                TASKS.get(each.task, each.task),
                *_recovered(each),
                percent(each.baseline_share),
                percent(each.marginals_share),
                "" if each.others_share is None else percent(each.others_share),
                amount(each.queries),
                loss(each.epsilon_claimed),
            )
            for line, each in tried
        ],
        frozenset({3, 4, 5, 6, 7, 8, 9}),
    )


def _recovered(each: Outcome) -> tuple[str, str, str]:
    if each.silent:
        return SILENT, "", ""
    what = f"{each.recovered:,} of {each.of:,} {each.unit}"
    return what, percent(each.share), between(each.interval) or "whole table"


def _place(each: Outcome) -> dict[str, Any]:
    """Say where the figure stands: after bar and marks, or on the bar and clear of the marks."""
    if each.silent:
        return {"place": "after", "at": 0.0}
    marks = max(each.baseline_share, each.marginals_share, each.others_share or 0.0)
    end = max(each.share, marks)
    if end <= _ROOM or each.share < 1 - _ROOM:
        return {"place": "after", "at": end if end <= _ROOM else each.share}
    if marks > each.share - (1 - _ROOM):
        return {"place": "first", "at": 0.0}
    return {"place": "last", "at": each.share}


def _panel(task: str, lines: Sequence[Line]) -> Panel:
    rows: list[dict[str, Any]] = [
        {
            "name": line.mechanism,
            "share": None if each.silent else each.share,
            "guess": None if each.silent else each.baseline_share,
            "told": None if each.silent else each.marginals_share,
            "others": None if each.silent else each.others_share,
            "text": SILENT if each.silent else percent(each.share),
            "kind": line.claim.kind,
            **_place(each),
        }
        for line in lines
        for each in line.tried
        if each.task == task
    ]
    text, scale = {"field": "text"}, pictures.colours({kind: kind for kind in KINDS})
    cross = pictures.dot("orange", 80, shape="cross", stroke="var(--on-bar)", strokeWidth=1)
    diamond = pictures.dot("blue", 80, shape="diamond", stroke="var(--on-bar)", strokeWidth=1)
    spec: Spec = {
        "height": 30 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": pictures.rows_by("name", [row["name"] for row in rows])},
        "layer": [
            pictures.layer(
                {"type": "bar", "height": {"band": 0.62}},
                x={"field": "share", **pictures.share_axis("recovered")},
                color={"field": "kind", "scale": scale, "legend": None},
            ),
            pictures.layer(cross, "isValid(datum.told)", x=pictures.number("told")),
            pictures.layer(diamond, "isValid(datum.others)", x=pictures.number("others")),
            pictures.layer(pictures.tick(26), "isValid(datum.guess)", x=pictures.number("guess")),
            *(
                pictures.layer(
                    mark, f"datum.place == '{place}'", x=pictures.number("at"), text=text
                )
                for place, mark in (
                    ("last", pictures.words("on-bar", align="right", dx=-6)),
                    ("first", pictures.words("on-bar", align="left", dx=6)),
                    ("after", pictures.words(align="left", dx=11)),
                )
            ),
        ],
    }
    said = "; ".join(
        f"{row['name']} {row['text']}"
        + ("" if row["guess"] is None else f", guessing {percent(row['guess'])}")
        for row in rows
    )
    return Panel(spec, f"{TASKS[task]} Share recovered: {said or 'not tried'}.", TASKS[task])
