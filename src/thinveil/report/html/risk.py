"""The curves of risk: what is recovered against the claimed loss, and against answers allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from thinveil.report.html.markup import Table, data
from thinveil.report.html.pictures import POWERS, Key, Panel, Picture, Spec, colours, share_axis
from thinveil.report.html.prose import family
from thinveil.report.html.spelling import amount, many, percent

_COLOURS: Final = {
    "unprotected": "grey",
    "idp": "red",
    "idp-binary": "pink",
    "idp-integer": "green",
    "idp-noisy": "orange",
    "bdp": "sky",
    "dp-laplace": "blue",
}
_DASHES: Final = {"line": [1, 0], "dash": [8, 4], "dots": [2, 3]}
"""How lines are drawn in turn, by the name of their sign in legends."""


def stopped(risk: Mapping[str, Any]) -> str:
    """Say that somebody stopped the curves; else nothing."""
    if not risk.get("interrupted"):
        return ""
    return "The risk curves were stopped by hand: what is drawn is what was done by then."


def lacking(runs: Sequence[Mapping[str, Any]], control: bool) -> str:
    """Say which kind of mechanism a curve lacks, without which it would mislead; else nothing.

    Args:
        runs: What is to be drawn.
        control: Whether an honest mechanism belongs to it.
    """
    kinds = {family(str(each["mechanism"])) for each in runs}
    if not kinds - {"dp", "unprotected"}:
        return "no relaxed mechanism was reached"
    return "the honest control was not reached" if control and "dp" not in kinds else ""


def against_loss(risk: Mapping[str, Any]) -> Picture:
    """Draw the records recovered against the total loss that is claimed."""
    curve = risk["against_loss"]
    points = _by_loss(curve["runs"])
    names = list(dict.fromkeys(each["mechanism"] for each in points))
    guess = curve["baseline_records"]
    x = {
        "field": "epsilon",
        "type": "quantitative",
        "title": "total privacy loss that is claimed",
        "scale": {"type": "log", "nice": False},
        "axis": {"labelExpr": POWERS, "tickCount": 5, "grid": False, "labelOverlap": "greedy"},
    }
    lowest = min(each["epsilon"] for each in points)
    spec: Spec = {
        "height": 300,
        "data": {"values": points},
        "layer": [
            {
                "data": {"values": [{"from": lowest, "to": 1.0}]},
                "mark": {"type": "rect", "color": "var(--green)", "opacity": 0.1},
                "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}},
            },
            {
                "mark": {"type": "area", "opacity": 0.2, "line": False},
                "encoding": {
                    "x": x,
                    "y": {
                        "field": "low",
                        "type": "quantitative",
                        **share_axis("records recovered"),
                    },
                    "y2": {"field": "high"},
                    "color": _coloured(names),
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 2.5},
                "encoding": {
                    "x": x,
                    "y": {"field": "mean", "type": "quantitative"},
                    "color": _coloured(names),
                    "strokeDash": _dashed(names),
                },
            },
            _rule(guess),
        ],
    }
    table = Table(
        "Records recovered against the total claimed loss: mean of several runs, lowest, highest",
        ("Mechanism", "Total claimed loss", "Mean", "Lowest", "Highest"),
        [
            (
                data(row["mechanism"]),
                f"{row['epsilon']:g}",
                *(percent(row[name]) for name in ("mean", "low", "high")),
            )
            for row in points
        ],
        frozenset({1, 2, 3, 4}),
    )
    label = f"Records recovered against the total claimed loss. {risk['verdict']}"
    keys = [*_keys(names), Key("band", "green", "total losses that are usually called private")]
    return Picture(
        "risk-loss",
        _loss_headline(points, names),
        "The same search on each mechanism, with a total loss that is shared out equally over all "
        "answers. A mechanism that protects gives little away at the left and more to the right.",
        (Panel(spec, label),),
        table,
        (*keys, Key("dash", "ink", f"asking nothing: {percent(guess)} of records")),
        f"{many(curve['records'], 'record')}; {curve['answers_allowed']:,} answers allowed. "
        f"{risk['verdict']}",
    )


def _loss_headline(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    first = {
        name: next((row["mean"] for row in points if row["mechanism"] == name), 0.0)
        for name in names
    }
    open_ = [name for name in names if first[name] == 1]
    if open_ and any(not first[name] for name in names):
        return (
            f"At the smallest claimed loss {' and '.join(open_)} gave every record away, and "
            + (f"{' and '.join(name for name in names if not first[name])} none")
        )
    return "How much is recovered depends on the mechanism, not on the claimed loss alone"


def _by_loss(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(run["mechanism"] for run in runs)
    order = {name: place for place, name in enumerate(names)}
    shares: dict[tuple[str, float], list[float]] = {}
    for run in runs:
        shares.setdefault((run["mechanism"], run["epsilon"]), []).append(run["records"])
    return [
        {
            "mechanism": name,
            "epsilon": epsilon,
            "mean": sum(each) / len(each),
            "low": min(each),
            "high": max(each),
        }
        for (name, epsilon), each in sorted(shares.items(), key=lambda item: order[item[0][0]])
    ]


def against_answers(risk: Mapping[str, Any]) -> Picture:
    """Draw the values recovered against the answers that a curator allows."""
    curve = risk["against_answers"]
    points = [each for each in curve["points"] if each["queries"] > 0]
    names = list(dict.fromkeys(each["mechanism"] for each in points))
    guess = curve["baseline_values"]
    spec: Spec = {
        "height": 300,
        "data": {"values": points},
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 2.5, "interpolate": "step-after"},
                "encoding": {
                    "x": {
                        "field": "queries",
                        "type": "quantitative",
                        "title": "answers that the curator allows",
                        "scale": {"type": "log", "nice": False},
                        "axis": {
                            "format": ",d",
                            "tickCount": 5,
                            "grid": False,
                            "labelOverlap": "greedy",
                        },
                    },
                    "y": {
                        "field": "values",
                        "type": "quantitative",
                        **share_axis("values recovered"),
                    },
                    "color": _coloured(names),
                    "strokeDash": _dashed(names),
                },
            },
            _rule(guess),
        ],
    }
    shares = (0.25, 0.5, 0.75, 1.0)
    rows = [
        (
            data(name),
            *(_first(points, name, share) for share in shares),
            _first(points, name, 0.5, "records"),
        )
        for name in names
    ]
    table = Table(
        "Answers after which such a share of the values is known",
        ("Mechanism", *(percent(share) for share in shares), "Half of the records"),
        rows,
        frozenset({1, 2, 3, 4, 5}),
    )
    halves = "; ".join(f"{name} {_first(points, name, 0.5)}" for name in names)
    return Picture(
        "risk-answers",
        _answers_headline(points, names),
        "How much of the table is known if the curator stops after so many answers. A value counts "
        "together with those searched before it in the same record.",
        (Panel(spec, f"Answers until half of the values are known: {halves}."),),
        table,
        (*_keys(names), Key("dash", "ink", f"asking nothing: {percent(guess)} of values")),
        f"{many(curve['records'], 'record')}; {curve['epsilon_per_query']} claimed an answer.",
    )


def _first(
    points: Sequence[Mapping[str, Any]], name: str, share: float, what: str = "values"
) -> str:
    reached = _reached(points, name, share, what)
    return "never" if reached is None else amount(reached["queries"])


def _answers_headline(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    halves = [
        (each["queries"], name)
        for name in names
        if (each := _reached(points, name, 0.5, "values")) is not None
    ]
    if not halves:
        return "What is known if the curator stops after so many answers"
    answers, name = min(halves)
    return f"Half of all values were known after {amount(answers)} answers ({name})"


def _reached(
    points: Sequence[Mapping[str, Any]], name: str, share: float, what: str
) -> Mapping[str, Any] | None:
    """Return the first point at which such a share is known."""
    for each in points:
        if each["mechanism"] == name and each[what] >= share - 1e-12:
            return each
    return None


def _rule(share: float) -> Spec:
    return {
        "data": {"values": [{"guess": share}]},
        "mark": {"type": "rule", "color": "var(--ink)", "strokeDash": [4, 3], "strokeWidth": 1.5},
        "encoding": {"y": {"field": "guess", "type": "quantitative"}},
    }


def _colour(name: str) -> str:
    return _COLOURS.get(name, "grey")


def _coloured(names: Sequence[str]) -> dict[str, Any]:
    scale = colours({name: _colour(name) for name in names})
    return {"field": "mechanism", "type": "nominal", "scale": scale, "legend": None}


def _dashed(names: Sequence[str]) -> dict[str, Any]:
    dashes = list(_DASHES.values())
    scale = {
        "domain": list(names),
        "range": [dashes[place % len(dashes)] for place in range(len(names))],
    }
    return {"field": "mechanism", "type": "nominal", "scale": scale, "legend": None}


def _keys(names: Sequence[str]) -> list[Key]:
    signs = list(_DASHES)
    return [Key(signs[place % len(signs)], _colour(name), name) for place, name in enumerate(names)]
