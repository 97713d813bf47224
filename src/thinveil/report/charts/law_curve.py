"""What the law of a claim says before anything is asked: delta against epsilon."""

from __future__ import annotations

from typing import Final

from thinveil.report.charts import pictures
from thinveil.report.charts.pictures import Key, Named, Panel, Picture, Spec, Table
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.judging.possible import Possible, down, up
from thinveil.verdicts.phrases import many, short

_FEW: Final = 8  # points that are said in words and in the table
_SMALL: Final = 0.01  # figures below are written as powers of ten


def picture(possible: Possible) -> Picture:
    """Draw the curve of delta, as far as the law decides it."""
    several = many(possible.answers, "answer")
    points = possible.curve[:: max(len(possible.curve) // _FEW, 1)]
    rows = [(short(each.epsilon), down(each.low), up(each.high)) for each in points]
    table = Table(
        f"delta(epsilon) of {several} to one question, by the law of the mechanism",
        ("epsilon", "delta at least", "delta at most"),
        rows,
        frozenset({0, 1, 2}),
    )
    title = "No epsilon holds for certain" if possible.nearly else "No finite epsilon holds"
    if possible.pure is not None:
        title = f"By its law, epsilon {up(possible.pure)} holds for {several}"
    known = possible.certain and possible.every
    said = "; ".join(f"at epsilon {epsilon} at most {high}" for epsilon, _, high in rows)
    return Picture(
        "law",
        title,
        "The mechanism says how its answers scatter. So before anything is asked, anybody can "
        "compute how well answers to one question tell two tables apart that differ in one "
        "record. delta is the chance that they tell more than epsilon allows: at 0 the promise "
        "holds, at 1 nothing is left of it.",
        (Panel(_chart(possible), f"delta against epsilon. {said}."),),
        table,
        (Key("line", _colour(possible), f"delta of {several}"),),
        "Computed, not measured: in closed form, or on a grid with both ends proved."
        if known
        else "Computed, not measured, from what the mechanism says of itself.",
    )


def table(compared: Comparison) -> Table:
    """Return what the laws of several mechanisms say, a row each."""
    told = ((each.mechanism, each.possible) for each in compared.lines)
    return Table(
        "By their laws alone: answers to one question, on two tables that differ in one record",
        ("Mechanism", "What holds"),
        [(Named(name), law.brief()) for name, law in told if law is not None],
    )


def _chart(possible: Possible) -> Spec:
    rows = [{"epsilon": each.epsilon, "delta": each.high} for each in possible.curve]
    most = max(each.high for each in possible.curve)
    line = {"type": "line", "strokeWidth": 2.5, "color": f"var(--{_colour(possible)})"}
    scale = {"domain": [0, 1 if most > _SMALL else most or 1]}
    far = possible.curve[-1].epsilon
    return {
        "height": 180,
        "data": {"values": rows},
        "layer": [
            pictures.layer(
                line,
                x=pictures.number("epsilon", "epsilon", axis={"grid": False, **_powers(far)}),
                y=pictures.number(
                    "delta", "delta", scale=scale, axis={"tickCount": 5, **_powers(most)}
                ),
            )
        ],
    }


def _powers(most: float) -> dict[str, str]:
    return {"format": "~e"} if 0 < most <= _SMALL else {}


def _colour(possible: Possible) -> str:
    """Return the colour of what it shows: that nothing holds, or how much does."""
    return "blue" if possible.holds or possible.nearly else "red"
