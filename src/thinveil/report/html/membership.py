"""The membership trial: how often the attacker is right, and what that shows of epsilon."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from thinveil.report.html.markup import Table
from thinveil.report.html.pictures import (
    POWERS,
    Key,
    Panel,
    Picture,
    Spec,
    dot,
    rows_by,
    share_axis,
    tick,
)
from thinveil.report.html.spelling import between, many, percent, spelled, sureness

Rate = tuple[str, float, Sequence[float], float]
"""What is counted, its share, its interval, and the share of somebody who asks nothing."""
Loss = tuple[str, float, str]
"""What a privacy loss is, the loss, its colour."""


def picture(run: Mapping[str, Any]) -> Picture:
    """Draw both rates of the trial with intervals, and the bound beside the claim."""
    trial = run["membership"]
    sure = sureness(trial["confidence"])
    base, bound = trial["baseline"], trial["epsilon_at_least"]
    rates: list[Rate] = [
        ("in the table, and said to be in it", trial["tpr"], trial["tpr_interval"], base["tpr"]),
        ("not in it, but said to be in it", trial["fpr"], trial["fpr_interval"], base["fpr"]),
    ]
    losses: list[Loss] = [
        ("shown at least, in the sense of differential privacy", bound, "red"),
        ("the most that so many trials can show", trial["ceiling"], "grey"),
    ]
    if trial["epsilon_claimed"] is not None:
        sense = f"claimed, in the sense of {trial['claimed_sense']}"
        losses.insert(0, (sense, trial["epsilon_claimed"], "blue"))
    guesses = ["" if colour != "red" else _short(base["epsilon_at_least"]) for *_, colour in losses]
    table = Table(
        f"The membership trial, with {sure} intervals",
        ("Figure", "Measured", "Interval", "Asking nothing"),
        [
            *(
                (name, percent(rate), between(interval), percent(guess))
                for name, rate, interval, guess in rates
            ),
            *(
                (f"privacy loss {name}", _short(value), "", guess)
                for (name, value, _), guess in zip(losses, guesses, strict=True)
            ),
        ],
        frozenset({1, 2, 3}),
    )
    said = "; ".join(
        f"{name}: {percent(rate)}, interval {between(interval)}, asking nothing {percent(guess)}"
        for name, rate, interval, guess in rates
    )
    amounts = "; ".join(f"{name}: {_short(value)}" for name, value, _ in losses)
    return Picture(
        "membership",
        headline(trial),
        f"In each of {many(trial['trials'], 'trial')} a coin decides whether a person's record is "
        "in the table or was replaced by another; the attacker asks, and says which. A mechanism "
        "with differential privacy must keep both rates close to each other."
        + "".join(f" {each}" for each in provisos(trial)),
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
        explained(trial),
    )


def headline(trial: Mapping[str, Any]) -> str:
    """Say the bound; a bound of 0 says nothing of a difference, so then what was seen instead."""
    sure, bound = sureness(trial["confidence"]), trial["epsilon_at_least"]
    if bound > 0:
        return (
            f"In the sense of differential privacy the loss is at least {_short(bound)}, "
            f"at {sure} confidence"
        )
    if trial["ceiling"] == 0:
        return "So few trials can show no bound, whatever the attack does"
    if trial["queries"] == 0:
        return "Nothing was asked in the trials"
    if trial.get("undecided") == trial["trials"]:
        return "No usable difference was found in the trials"
    return f"No bound above 0 on epsilon was shown, at {sure} confidence"


def provisos(trial: Mapping[str, Any]) -> list[str]:
    """Say whether somebody stopped the trials, and whether they asked the target at all."""
    said = []
    trials, wanted = trial["trials"], trial.get("asked_for")
    if trial.get("interrupted") or (wanted is not None and trials < wanted):
        of = many(trials, "trial") if wanted is None else f"{trials:,} of {many(wanted, 'trial')}"
        said.append(f"This was stopped by hand after {of}.")
    if trial.get("simulated"):
        said.append(
            "The trials were run on the auditor's machine, from the mechanism's description and "
            "the table given as truth: the target itself was not asked."
        )
    return said


def _short(value: float) -> str:
    return spelled(float(f"{value:.3g}"))


def explained(trial: Mapping[str, Any]) -> str:
    """Say what the bound means, what its ceiling is, and what it does not mean."""
    undecided, why = trial.get("undecided") or 0, trial.get("reason") or ""
    most = (
        "no bound above 0" if not trial["ceiling"] else f"no more than {_short(trial['ceiling'])}"
    )
    parts = [
        f"Even a perfect score in {many(trial['trials'], 'trial')} shows {most} at "
        f"{sureness(trial['confidence'])} confidence; more trials raise this ceiling",
    ]
    if trial["epsilon_claimed"] is not None and trial["claimed_sense"] != "differential privacy":
        parts.append(
            f"This does not refute the claim: {trial['claimed_sense']} promises less than "
            "differential privacy does"
        )
    parts.append(f"{many(trial['queries'], 'answer')} in all")
    if undecided:
        parts.append(
            f"{many(undecided, 'trial')} stayed undecided and counted as “not in the table”"
        )
    if why and (undecided or not trial["queries"]):
        parts.append(f"Why nothing was said: {why}")
    # Said above already, where a reader sees it first.
    targets = re.sub(r"[^.]*the target itself was not asked\.?", "", str(trial["targets"])).strip()
    parts += [targets, f"The baseline is {trial['baseline']['what']}"]
    return " ".join(part.rstrip(". ") + "." for part in parts)


def _rates(rates: Sequence[Rate]) -> Spec:
    rows = [
        {"key": str(place), "share": rate, "low": low, "high": high, "guess": guess}
        for place, (_, rate, (low, high), guess) in enumerate(rates)
    ]
    x = {"type": "quantitative", **share_axis("share of trials")}
    return {
        "height": 56 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": _lines([name for name, *_ in rates])},
        "layer": [
            {"mark": tick(28), "encoding": {"x": {"field": "guess", **x}}},
            {
                "mark": {"type": "rule", "strokeWidth": 3, "color": "var(--red)"},
                "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
            },
            {"mark": dot("red", 90), "encoding": {"x": {"field": "share", **x}}},
        ],
    }


def _losses(losses: Sequence[Loss]) -> Spec:
    above = [value for _, value, _ in losses if value > 0]
    least = min(above, default=1e-3) / 100
    rows = [
        {"key": str(place), "at": max(value, least), "text": _short(value), "colour": colour}
        for place, (_, value, colour) in enumerate(losses)
    ]
    x = {
        "field": "at",
        "type": "quantitative",
        "title": "privacy loss epsilon",
        "scale": {
            "type": "log",
            "domain": [least, max(1.0, 20 * max(above, default=1.0))],
            "nice": False,
        },
        "axis": {"labelExpr": POWERS, "tickCount": 4, "labelOverlap": "greedy", "grid": False},
    }
    points = [
        {"transform": [{"filter": f"datum.colour == '{colour}'"}], "mark": dot(colour, 100)}
        for *_, colour in losses
    ]
    text = {"type": "text", "dy": -14, "color": "var(--ink)", "fontWeight": 600}
    return {
        "height": 56 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": _lines([name for name, *_ in losses]), "x": x},
        "layer": [*points, {"mark": text, "encoding": {"text": {"field": "text"}}}],
    }


def _lines(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis whose names take several short lines."""
    wrapped = {str(place): _wrapped(name) for place, name in enumerate(names)}
    expression = f"{json.dumps(wrapped)}[datum.value]"
    return rows_by("key", labelExpr=expression, labelLimit=200, grid=True)


def _wrapped(text: str, width: int = 22) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
