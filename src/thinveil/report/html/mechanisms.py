"""Mechanisms side by side: what each attack recovered from each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from thinveil.report.html.markup import Table, data
from thinveil.report.html.pictures import (
    Key,
    Panel,
    Picture,
    Spec,
    colours,
    dot,
    rows_by,
    share_axis,
    tick,
)
from thinveil.report.html.spelling import amount, between, loss, many, percent

TASKS: Final = {
    "membership": "Is a person in the table?",
    "attribute": "What are a person's other attributes?",
    "dataset": "The whole table",
}


SILENT: Final = "no usable difference"
"""What stands where an attack said nothing."""


def _kind(line: Mapping[str, Any]) -> str:
    if line["mechanism"] == "unprotected":
        return "grey"
    return "blue" if line["control"] else "red"


def compared(comparison: Mapping[str, Any]) -> Picture:
    """Draw what every attack recovered from every mechanism, beside asking nothing."""
    lines = [each for each in comparison["mechanisms"] if _tried(each)]
    panels = tuple(_panel(task, lines) for task in TASKS)
    table = Table(
        "What each attack recovered from each mechanism",
        (
            "Mechanism",
            "Attack",
            "Recovered",
            "Share",
            "95 % interval",
            "Asking nothing",
            "Knowing the histograms",
            "Answers",
            "Claimed loss",
        ),
        [
            (
                data(line["mechanism"]),
                TASKS[each["task"]],
                *(
                    (SILENT, "", "")
                    if _is_silent(each)
                    else (
                        f"{each['recovered']:,} of {each['of']:,} {each['unit']}",
                        percent(each["share"]),
                        between(each.get("interval95")) or "whole table",
                    )
                ),
                percent(each["baseline_share"]),
                "" if each.get("marginals_share") is None else percent(each["marginals_share"]),
                amount(each["queries"]),
                loss(each["epsilon_claimed"]),
            )
            for line in lines
            for each in _tried(line)
        ],
        frozenset({3, 4, 5, 6, 7, 8}),
    )
    kinds = {_kind(line) for line in lines}
    names = {
        "grey": "no protection",
        "red": "noise follows the data (IDP, Bootstrap DP)",
        "blue": "honest differential privacy, as a control",
    }
    keys = [Key("bar", kind, text) for kind, text in names.items() if kind in kinds]
    keys.append(Key("tick", "ink", "an attacker who asks nothing"))
    if any(each.get("marginals_share") is not None for line in lines for each in _tried(line)):
        keys.append(Key("cross", "orange", "one who knows every column's histogram"))
    sample = comparison.get("sampled_from")
    return Picture(
        "mechanisms",
        _headline(lines),
        "The same three attacks, tried on each mechanism at the same claimed loss an answer. A bar "
        "that ends before the mark shows no more than guessing does. An attack that finds no "
        "usable difference says nothing, so there is no bar.",
        panels,
        table,
        tuple(keys),
        f"{many(comparison['records'], 'record')}"
        + (f", drawn from {sample:,}" if sample else "")
        + f"; {comparison['epsilon_per_query']} claimed an answer. {comparison['verdict']}",
    )


def stopped(comparison: Mapping[str, Any]) -> str:
    """Say that somebody stopped a comparison, and what it did not reach; else nothing."""
    if not comparison.get("interrupted"):
        return ""
    left = ", ".join(comparison.get("not_reached") or [])
    return "The comparison was stopped by hand: not every attack was tried" + (
        f", and none on {left}." if left else "."
    )


def _tried(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in line["outcomes"] if each.get("of")]


def _is_silent(outcome: Mapping[str, Any]) -> bool:
    """Tell whether an attack found no usable difference, and so stated nothing."""
    return bool(outcome["ended"] == "undecided" and not outcome["stated"])


def _headline(lines: Sequence[Mapping[str, Any]]) -> str:
    veiled = [each for each in lines if _kind(each) == "red"]
    honest = [each for each in lines if _kind(each) == "blue"]
    gave = bool(veiled) and all(each["everything"] for each in veiled)
    calm = bool(honest) and all(each["at_baseline"] for each in honest)
    if gave and calm:
        return (
            "Noise that follows the data gave everything away; honest noise stayed at the baseline"
        )
    if gave:
        return "Noise that follows the data gave everything away"
    return "What was recovered from each mechanism"


def _panel(task: str, lines: Sequence[Mapping[str, Any]]) -> Panel:
    rows = [
        {
            "name": line["mechanism"],
            "share": None if silent else each["share"],
            "guess": None if silent else each["baseline_share"],
            "told": None if silent else each.get("marginals_share"),
            "text": SILENT if silent else percent(each["share"]),
            "kind": _kind(line),
        }
        for line in lines
        for each in _tried(line)
        if each["task"] == task
        for silent in (_is_silent(each),)
    ]
    kinds = {kind: kind for kind in ("grey", "red", "blue")}
    spec: Spec = {
        "height": 30 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": rows_by("name")},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.62}},
                "encoding": {
                    "x": {"field": "share", "type": "quantitative", **share_axis("recovered")},
                    "color": {"field": "kind", "scale": colours(kinds), "legend": None},
                },
            },
            {
                "transform": [{"filter": "isValid(datum.told)"}],
                "mark": dot("orange", 80, shape="cross", stroke="var(--on-bar)", strokeWidth=1),
                "encoding": {"x": {"field": "told", "type": "quantitative"}},
            },
            {
                "transform": [{"filter": "isValid(datum.guess)"}],
                "mark": tick(26),
                "encoding": {"x": {"field": "guess", "type": "quantitative"}},
            },
            {
                "transform": [{"filter": "datum.share > 0.6"}],
                "mark": {"type": "text", "align": "right", "dx": -6, "color": "var(--on-bar)"},
                "encoding": {
                    "x": {"field": "share", "type": "quantitative"},
                    "text": {"field": "text"},
                },
            },
            {
                "transform": [
                    {"filter": "!(datum.share > 0.6)"},
                    {
                        "calculate": "max(datum.share || 0, datum.guess || 0, datum.told || 0)",
                        "as": "end",
                    },
                ],
                "mark": {"type": "text", "align": "left", "dx": 11, "color": "var(--ink)"},
                "encoding": {
                    "x": {"field": "end", "type": "quantitative"},
                    "text": {"field": "text"},
                },
            },
        ],
    }
    said = "; ".join(
        f"{row['name']} {row['text']}"
        + ("" if row["guess"] is None else f", guessing {percent(row['guess'])}")
        for row in rows
    )
    return Panel(spec, f"{TASKS[task]} Share recovered: {said or 'not tried'}.", TASKS[task])
