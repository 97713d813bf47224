"""The membership trial: how often the attacker is right, and what that shows of epsilon."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Panel, Picture, Spec, Table
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.phrases import between, percent, short, sureness
from thinveil.verdicts.said_of_trials import trials_explained, trials_headline, trials_note

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
                (f"privacy loss {name}", short(value), "", guesses.get(name, ""))
                for name, value, _ in losses
            ),
        ],
        frozenset({1, 2, 3}),
    )
    said = "; ".join(
        f"{name}: {percent(rate)}, interval {between(ends)}, asking nothing {percent(guess)}"
        for name, rate, ends, guess in rates
    )
    amounts = "; ".join(f"{name}: {short(value)}" for name, value, _ in losses)
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


def _losses(losses: Sequence[Loss]) -> Spec:
    above = [value for _, value, _ in losses if value > 0]
    least = min(above, default=1e-3) / 100
    rows = [
        {"key": str(place), "at": max(value, least), "text": short(value), "colour": colour}
        for place, (_, value, colour) in enumerate(losses)
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
