"""The curves of risk: what is recovered against the claimed loss, and against answers allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Final

from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Named, Panel, Picture, Spec, Table
from thinveil.verdicts.comparing.risk import Risk
from thinveil.verdicts.names import colour_of
from thinveil.verdicts.phrases import amount, many, percent

SHARES: Final = (0.25, 0.5, 0.75, 1.0)
"""The shares of which is said after how many answers they are known."""
_DASHES: Final = {"line": [1, 0], "dash": [8, 4], "dots": [2, 3]}
"""How lines are drawn in turn, by the name of their sign in legends."""
_SEARCH: Final = "Whole records: where this search succeeds"
_PERSON: Final = "One person: in the table or not, by the best attack"
_LINE: Final = {"type": "line", "strokeWidth": 2.5}


def against_loss(risk: Risk) -> Picture:
    """Draw what a total loss tells: of whole records by one search, of one person by the best."""
    curve = risk.against_loss
    names, guess = curve.mechanisms, curve.baseline_records
    points: list[dict[str, Any]] = []
    for name in names:
        for epsilon, known in risk.loss_curve(name):
            shares = [each.records for each in known]
            ends = {"low": min(shares), "high": max(shares)}
            mean = sum(shares) / len(shares)
            points.append({"mechanism": name, "epsilon": epsilon, "mean": mean, **ends})
    lowest = min(each["epsilon"] for each in points)
    x = _total()
    spec: Spec = {
        "height": 300,
        "data": {"values": points},
        "layer": [
            pictures.rect("green", 0.1, x, lowest, 1.0),
            pictures.layer(
                {"type": "area", "opacity": 0.2, "line": False},
                x=x,
                y={"field": "low", **pictures.share_axis("records recovered")},
                y2={"field": "high"},
                color=_looks(names)["color"],
            ),
            pictures.layer(_LINE, x=x, y=pictures.number("mean"), **_looks(names)),
            _rule(guess),
        ],
    }
    panels = [Panel(spec, f"Where this search succeeds. {risk.verdict()}", _SEARCH)]
    if curve.one_person:
        panels.append(_one_person(risk, names, lowest))
    return Picture(
        "risk-loss",
        _loss_headline(points, names),
        "Two attacks with the same total loss to spend. The first searches for whole records; it "
        "shows where this search succeeds, not where nothing is given away. The second spends all "
        "on one question, whether one person is in the table, and is the best there is. A "
        "mechanism that protects gives little away at the left and more to the right.",
        tuple(panels),
        _loss_table(risk, points),
        (
            *_keys(names),
            Key("band", "green", "total losses that are usually called private"),
            Key("dash", "ink", f"asking nothing: {percent(guess)} of records"),
        ),
        f"{many(curve.records, 'record')}; {curve.answers_allowed:,} answers allowed. "
        f"{risk.verdict()}",
    )


def _total() -> dict[str, Any]:
    powers = {"labelExpr": pictures.POWERS}
    return pictures.log_axis("epsilon", "total privacy loss that is claimed", powers)


def _one_person(risk: Risk, names: Sequence[str], lowest: float) -> Panel:
    """Draw the advantage of the best attack on one person, by the law of answers."""
    x = _total()
    points = [
        {"mechanism": each.mechanism, "epsilon": each.epsilon, "advantage": each.advantage}
        for each in risk.against_loss.one_person
    ]
    y = {"field": "advantage", **pictures.share_axis("advantage over a coin")}
    spec: Spec = {
        "height": 300,
        "data": {"values": points},
        "layer": [
            pictures.rect("green", 0.1, x, lowest, 1.0),
            pictures.layer(_LINE, x=x, y=y, **_looks(names)),
        ],
    }
    said = [
        f"{name} {percent(each.advantage)}"
        for name in names
        if (each := risk.advantage_at(name, 1.0)) is not None
    ]
    label = f"Advantage over a coin at a total loss of 1: {'; '.join(said)}."
    return Panel(spec, label, _PERSON)


def _loss_table(risk: Risk, points: Sequence[Mapping[str, Any]]) -> Table:
    """Return both attacks in figures."""
    rows = []
    for row in points:
        told = risk.advantage_at(row["mechanism"], row["epsilon"])
        rows.append(
            (
                Named(row["mechanism"]),
                f"{row['epsilon']:g}",
                *(percent(row[name]) for name in ("mean", "low", "high")),
                percent(told.right if told else None),
            )
        )
    return Table(
        "Records that this search recovered against the total claimed loss: mean of several runs, "
        "lowest, highest; and how many guesses about one person the best attack gets right",
        ("Mechanism", "Total claimed loss", "Mean", "Lowest", "Highest", "One person"),
        rows,
        frozenset({1, 2, 3, 4, 5}),
    )


def _loss_headline(points: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    first = {
        name: next((row["mean"] for row in points if row["mechanism"] == name), 0.0)
        for name in names
    }
    all_, none = ([name for name in names if first[name] == share] for share in (1, 0))
    if all_ and none:
        return (
            f"At the smallest claimed loss this search found every record of {_and(all_)}, and "
            f"none of {_and(none)}"
        )
    return "How much is recovered depends on the mechanism, not on the claimed loss alone"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def against_answers(risk: Risk) -> Picture:
    """Draw how much is known against the answers that a curator allows."""
    curve = risk.against_answers
    names = curve.mechanisms
    points = [
        {"mechanism": each.mechanism, "queries": each.queries, "bits": each.bits}
        for each in curve.points
        if each.queries > 0
    ]
    title = "answers that the curator allows"
    spec: Spec = {
        "height": 300,
        "data": {"values": points},
        "layer": [
            pictures.layer(
                {**_LINE, "interpolate": "step-after"},
                x=pictures.log_axis("queries", title, {"format": ",d"}),
                y={"field": "bits", **pictures.share_axis("bits known")},
                **_looks(names),
            ),
        ],
    }
    halves = {name: risk.answers_for(name, 0.5) for name in names}
    rows = [
        (
            Named(name),
            *(_after(risk.answers_for(name, share)) for share in SHARES),
            _after(risk.answers_for(name, 0.5, records=True)),
        )
        for name in names
    ]
    table = Table(
        "Answers after which such a share of the bits is known",
        ("Mechanism", *map(percent, SHARES), "Half of the records"),
        rows,
        frozenset({1, 2, 3, 4, 5}),
    )
    said = "; ".join(f"{name} {_after(each)}" for name, each in halves.items())
    reached = [(each, name) for name, each in halves.items() if each is not None]
    headline = "What is known if the curator stops after so many answers"
    if reached:
        answers, name = min(reached)
        headline = f"Half of all bits were known after {amount(answers)} answers ({name})"
    return Picture(
        "risk-answers",
        headline,
        "How much of the table is known if the curator stops after so many answers: how few of all "
        "tables are left, by even chances. Columns known by themselves count; whole records come "
        "late.",
        (Panel(spec, f"Answers until half of the bits are known: {said}."),),
        table,
        tuple(_keys(names)),
        f"{many(curve.records, 'record')}; {curve.epsilon_per_query} claimed an answer.",
    )


def _after(answers: int | None) -> str:
    return "never" if answers is None else amount(answers)


def _rule(share: float) -> Spec:
    mark = {"type": "rule", "color": "var(--ink)", "strokeDash": [4, 3], "strokeWidth": 1.5}
    rule = pictures.layer(mark, y=pictures.number("guess"))
    return {"data": {"values": [{"guess": share}]}, **rule}


def _looks(names: Sequence[str]) -> dict[str, Any]:
    """Return the colour and the dashes of the line of each mechanism."""
    mechanism = {"field": "mechanism", "type": "nominal", "legend": None}
    colours = pictures.colours({name: colour_of(name) for name in names})
    dashes = {"domain": list(names), "range": [_DASHES[key.sign] for key in _keys(names)]}
    return {"color": {**mechanism, "scale": colours}, "strokeDash": {**mechanism, "scale": dashes}}


def _keys(names: Sequence[str]) -> list[Key]:
    return [Key(sign, colour_of(name), name) for name, sign in zip(names, cycle(_DASHES))]
