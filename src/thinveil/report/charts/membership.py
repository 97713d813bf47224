"""The membership trial: how often the attacker is right, what that shows, and the trade-off."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Panel, Picture, Spec, Table
from thinveil.verdicts.judging.tradeoff import Curve
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.phrases import between, loss, many, percent, short, sureness
from thinveil.verdicts.said_of_trials import (
    trade_off_headline,
    trade_off_note,
    trials_explained,
    trials_headline,
    trials_note,
)

Rate = tuple[str, float, tuple[float, float], float]
"""What is counted, its share, its interval, and the share of somebody who asks nothing."""
Loss = tuple[str, float, str]
"""What a privacy loss is, the loss, its colour."""


def picture(trial: Trial) -> Picture:
    """Draw both rates of the trial with intervals, and the bound beside the claim."""
    sure, base = sureness(trial.confidence), trial.baseline
    rates: list[Rate] = [
        ("in the table, and said to be in it", trial.tpr, trial.tpr_interval, base.tpr),
        ("not in it, but said to be in it", trial.fpr, trial.fpr_interval, base.fpr),
    ]
    bound = "shown at least, in the sense of differential privacy"
    losses: list[Loss] = [
        (bound, trial.epsilon_at_least, "red"),
        ("the most that so many trials can show", trial.ceiling, "grey"),
    ]
    if trial.epsilon_claimed is not None:
        losses.insert(0, (f"claimed, in the sense of {trial.sense}", trial.epsilon_claimed, "blue"))
    guesses = {bound: short(base.epsilon_at_least)}
    table = Table(
        f"The membership trial, with {sure} intervals",
        ("Figure", "Measured", "Interval", "Asking nothing"),
        [
            *(
                (name, percent(rate), between(ends), percent(guess))
                for name, rate, ends, guess in rates
            ),
            *(
                (f"privacy loss {name}", _figure(name, value), "", guesses.get(name, ""))
                for name, value, _ in losses
            ),
        ],
        frozenset({1, 2, 3}),
    )
    said = "; ".join(
        f"{name}: {percent(rate)}, interval {between(ends)}, asking nothing {percent(guess)}"
        for name, rate, ends, guess in rates
    )
    amounts = "; ".join(f"{name}: {_figure(name, value)}" for name, value, _ in losses)
    return Picture(
        "membership",
        trials_headline(trial),
        trials_explained(trial),
        (
            Panel(_rates(rates), f"Shares of trials. {said}.", "How often the attacker says “in”"),
            Panel(
                _losses(losses),
                f"Privacy losses in powers of ten. {amounts}.",
                "Privacy loss, in powers of ten",
            ),
        ),
        table,
        (
            Key("dot", "red", f"the attack, with its {sure} interval"),
            Key("tick", "ink", "an attacker who asks nothing"),
        ),
        trials_note(trial),
    )


def trade_off(curve: Curve) -> Picture:
    """Draw how many false alarms each rate of right alarms takes, with the band of both."""
    sure = sureness(curve.confidence)
    seen = sorted({(each.fpr, each.tpr) for each in curve.points} | {(0.0, 0.0), (1.0, 1.0)})
    x = pictures.share_axis("said to be in the table, though replaced")
    y = pictures.share_axis("said to be in the table, and is")
    band = {"type": "area", "opacity": 0.2, "color": "var(--red)", "interpolate": "step-after"}
    idle = {"type": "line", "strokeWidth": 2, "strokeDash": [8, 4], "color": "var(--ink)"}
    ends = [{"fpr": end, "tpr": end} for end in (0, 1)]
    rates = {"x": {"field": "fpr", **x}, "y": {"field": "tpr", **y}}
    line = {"type": "line", "strokeWidth": 2.5, "color": "var(--red)"}
    spec: Spec = {
        "height": 300,
        "layer": [
            {
                "data": {"values": _band(curve)},
                **pictures.layer(
                    band, x={"field": "fpr", **x}, y={"field": "low", **y}, y2={"field": "high"}
                ),
            },
            {"data": {"values": ends}, **pictures.layer(idle, **rates)},
            {
                "data": {"values": [{"fpr": fpr, "tpr": tpr} for fpr, tpr in seen]},
                **pictures.layer(line, **rates),
            },
        ],
    }
    table = Table(
        f"The trade-off of the scores, with {sure} intervals that hold together",
        ("Threshold, nats", "In, though replaced", "Interval", "In, and is", "Interval"),
        [
            (
                f"{each.threshold:.3g}",
                percent(each.fpr),
                between(each.fpr_interval),
                percent(each.tpr),
                between(each.tpr_interval),
            )
            for each in curve.points
        ],
        frozenset({0, 1, 2, 3, 4}),
    )
    best = max(curve.points, key=lambda each: each.tpr_interval[0] - each.fpr_interval[1])
    return Picture(
        "trade-off",
        trade_off_headline(curve),
        "Whoever says “in” more easily is right about more people who are in the table, and wrong "
        "about more who are not. A mechanism that hides who is in it stays near the diagonal.",
        (
            Panel(
                spec,
                f"Right against wrong “in” at {many(len(curve.points), 'threshold')}; farthest "
                f"from the diagonal, surely {percent(best.tpr_interval[0])} or more against "
                f"{percent(best.fpr_interval[1])} or less.",
            ),
        ),
        table,
        (
            Key("line", "red", "the attack"),
            Key("band", "red", f"where its curve lies, at {sure} confidence as a whole"),
            Key("dash", "ink", "an attacker who asks nothing"),
        ),
        trade_off_note(curve),
    )


def _band(curve: Curve) -> list[dict[str, float]]:
    """Return the band as steps: between two places its ends stay as they are."""
    points = curve.points
    ends = {end for each in points for end in each.fpr_interval}
    places = sorted(ends | {0.0, 1.0})
    rows = []
    for place, after in zip(places, [*places[1:], 1.0], strict=True):
        low = max((p.tpr_interval[0] for p in points if p.fpr_interval[1] <= place), default=0.0)
        high = min((p.tpr_interval[1] for p in points if p.fpr_interval[0] >= after), default=1.0)
        rows.append({"fpr": place, "low": low, "high": high})
    return rows


def _rates(rates: Sequence[Rate]) -> Spec:
    rows = [
        {"key": str(place), "share": rate, "low": low, "high": high, "guess": guess}
        for place, (_, rate, (low, high), guess) in enumerate(rates)
    ]
    x = pictures.share_axis("share of trials")
    guess = pictures.layer(pictures.tick(28), x={"field": "guess", **x})
    return {
        "height": 56 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": _lines([name for name, *_ in rates])},
        "layer": [guess, *pictures.interval(x, 90)],
    }


def _figure(name: str, value: float) -> str:
    """Write a privacy loss: a claimed one to its last digit, as elsewhere; others rounded."""
    return loss(value) if name.startswith("claimed") else short(value)


def _losses(losses: Sequence[Loss]) -> Spec:
    above = [value for _, value, _ in losses if value > 0]
    least = min(above, default=1e-3) / 100
    rows = [
        {"key": str(place), "at": max(value, least), "text": _figure(name, value), "colour": colour}
        for place, (name, value, colour) in enumerate(losses)
    ]
    ends = [least, max(1.0, 20 * max(above, default=1.0))]
    labels = {"labelExpr": pictures.POWERS, "tickCount": 4}
    points = [
        pictures.layer(pictures.dot(colour, 100), f"datum.colour == '{colour}'")
        for *_, colour in losses
    ]
    text = pictures.words(dy=-14, fontWeight=600)
    return {
        "height": 56 * len(rows),
        "data": {"values": rows},
        "encoding": {
            "y": _lines([name for name, *_ in losses]),
            "x": pictures.log_axis("at", "privacy loss epsilon", labels, domain=ends),
        },
        "layer": [*points, pictures.layer(text, text={"field": "text"})],
    }


def _lines(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis whose names take several short lines."""
    wrapped = {str(place): textwrap.wrap(name, 22) for place, name in enumerate(names)}
    return pictures.rows_by("key", wrapped, labelLimit=200, grid=True)
