"""The paper's figures, drawn from measured rows and saved as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from thinveil.errors import OutputError
from thinveil.paper import figures as published
from thinveil.paper import simulation
from thinveil.paper.rows import Row
from thinveil.report.charts.files import APART, save
from thinveil.report.charts.pictures import Spec, colours, dot, layer, log_axis, number, words

_WIDTH, _HEIGHT = 480, 300
_COUNTS: Final = {"format": "~s"}
_NAMED: Final = ("balance", "duration", "pdays", "age", "job")
"""The attributes that are named in the picture: the others would stand on top of each other."""
_FIGURES: Final = {
    "columns": "single-attributes", "sensitivity": "sensitivity", "detector": "detector",
}  # fmt: skip
_BIN: Final = 4  # answers that share a bar
_MOST: Final = 250  # answers, where the histograms end


def paths(experiment: str, folder: Path) -> list[Path]:
    """Return where the figure of an experiment goes, in each format; nowhere if it has none."""
    name = _FIGURES.get(experiment)
    return [folder / f"{name}.{kind}" for kind in ("svg", "png")] if name else []


def _save(spec: Spec, folder: Path, experiment: str, overwrite: bool) -> list[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot save figures in {folder}: {error.strerror}") from None
    saved = paths(experiment, folder)
    for path in saved:
        save(spec, path, overwrite=overwrite, spare=True)
    return saved


def _panel(title: str, layers: list[Spec], height: int = _HEIGHT) -> Spec:
    about = {"text": title, "anchor": "start", "frame": "group", "fontSize": 15, "offset": 12}
    return {"title": about, "width": _WIDTH, "height": height, "layer": layers}


def _kinds(meaning: dict[str, str]) -> dict[str, Any]:
    """Return colours by the field `kind`, with a legend above."""
    legend = {"title": None, "orient": "top", "labelFontSize": 13, "labelLimit": 400}
    return {"field": "kind", "type": "nominal", "scale": colours(meaning), "legend": legend}


def single_attributes(rows: Sequence[Row], folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Draw queries against distinct values for each attribute by itself."""
    prefix = "distinct values of "
    distinct = {
        row.name.removeprefix(prefix): row.measured for row in rows if row.name.startswith(prefix)
    }
    unprinted = {row.protected for row in rows if row.name in distinct and row.whence != "printed"}
    kinds = {
        protected: said + " (not printed in the paper)" * (protected in unprinted)
        for protected, said in ((True, "protected by IDP"), (False, "no protection"))
    }
    points = [
        {
            "name": row.name,
            "distinct": distinct[row.name],
            "queries": row.measured,
            "kind": kinds[row.protected],
        }
        for row in rows
        if row.protected in kinds and row.name in distinct
    ]
    named = [each for each in points if each["name"] in _NAMED and each["kind"] == kinds[True]]
    where = {
        "x": log_axis("distinct", "distinct values of the attribute", _COUNTS, padding=20),
        "y": log_axis("queries", "queries to reconstruct it exactly", _COUNTS, padding=20),
    }
    colour = _kinds({kinds[True]: "red", kinds[False]: "blue"})
    scale = {"domain": list(kinds.values()), "range": ["circle", "cross"]}
    shape = {**colour, "scale": scale}  # with a legend of its own it joins that of the colours
    mark = {"type": "point", "size": 80, "strokeWidth": 2}
    points_layer = {"data": {"values": points}, **layer(mark, **where, color=colour, shape=shape)}
    text = words(align="right", dx=-10, dy=-8)
    names = {"data": {"values": named}, **layer(text, **where, text={"field": "name"})}
    title = "Each attribute by itself (bank table)"
    return _save(_panel(title, [points_layer, names]), folder, "columns", overwrite)


def sensitivity(
    steps: Sequence[tuple[int, float, int]], folder: Path, k: int = 1, *, overwrite: bool = False
) -> list[Path]:
    """Draw the staircase: what comes back at each threshold, and what it gives away."""
    rows = [
        {
            "threshold": threshold,
            "shown": shown,
            "text": "noise" if shown else f"exactly {answer:g}",
        }
        for threshold, answer, shown in steps
    ]
    asked = "threshold b in: are there more than b incomes in [1, 10)?"
    ends = [-0.6, len(steps) - 0.4]
    ticks = {"values": [row["threshold"] for row in rows], "grid": False}
    where = {
        "x": number("threshold", asked, scale={"domain": ends, "nice": False}, axis=ticks),
        "y": number(
            "shown",
            f"{k}-local sensitivity",
            scale={"domain": [-0.15, 1.35]},
            axis={"values": [0, 1], "format": "d"},
        ),
    }
    line = {"type": "line", "interpolate": "step", "color": "var(--blue)", "strokeWidth": 2.5}
    spec = _panel(
        "Six incomes: the edges of the noise give the count away",
        [
            layer(line, **where),
            layer(dot("blue"), **where),
            layer(words(dy=-14), **where, text={"field": "text"}),
        ],
        height=220,
    )
    whole = {**spec, "width": 640, "data": {"values": rows}}
    return _save(whole, folder, "sensitivity", overwrite)


def detector(measured: simulation.Measured, folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Draw how often tests on m answers are right, and how many answers a sequential one needs."""
    both = {"hconcat": [_tests(measured), _walks(measured)], "resolve": APART}
    return _save(both, folder, "detector", overwrite)


def _tests(measured: simulation.Measured) -> Spec:
    tests = {
        simulation.PSI.name: "psi_m (the paper's)",
        simulation.MAGNITUDE.name: "mean |z| (likelihood ratio)",
    }
    points = [
        {"repeats": score.repeats, "percent": score.percent, "kind": tests[score.test]}
        for score in measured.scores
        if score.test in tests
    ]
    printed = "psi_m as published"
    points += [
        {"repeats": repeats, "percent": 100 * each / published.PSI_SIMULATIONS, "kind": printed}
        for repeats, each in published.PSI.items()
    ]
    blue, red = tests.values()
    where = {
        "x": log_axis("repeats", "answers m to one question", {"format": ",d"}),
        "y": number("percent", "decided rightly, %", scale={"zero": False}),
        "color": _kinds({blue: "blue", red: "red", printed: "ink"}),
    }
    title = "Laplace(1) or Laplace(2)? A fixed number of answers"
    line = {"type": "line", "point": {"filled": True, "size": 45}, "strokeWidth": 2}
    cross = {"type": "point", "shape": "cross", "angle": 45, "size": 120, "filled": True}
    layers: list[Spec] = [
        layer(line, f"datum.kind != '{printed}'", **where),
        layer(cross, f"datum.kind == '{printed}'", **where),
    ]
    return {**_panel(title, layers), "data": {"values": points}}


def _walks(measured: simulation.Measured) -> Spec:
    wanted = measured.walks[0].wanted
    bars = []
    kinds = {}
    for walks, colour in zip(
        (each for each in measured.walks if each.wanted == wanted), ("blue", "orange"), strict=False
    ):
        kind = f"Laplace({1 + walks.noisier}): {walks.mean:.0f} on average"
        kinds[kind] = colour
        bins = walks.lengths[: len(walks.lengths) // _BIN * _BIN].reshape(-1, _BIN).sum(axis=1)
        for place, share in enumerate((100 * bins / walks.runs / _BIN).tolist()):
            if place * _BIN < _MOST:
                ends = {"from": place * _BIN, "to": (place + 1) * _BIN}
                bars.append({**ends, "share": share, "kind": kind})
    title = f"Answer by answer, error at most {wanted:g}"
    x = number("from", "answers until it is settled", bin="binned", axis={"grid": False})
    bar: Spec = {
        "mark": {"type": "bar", "opacity": 0.55},
        "encoding": {
            "x": {**x, "scale": {"domain": [0, _MOST]}},
            "x2": {"field": "to"},
            "y": number("share", "share of runs, % an answer", stack=None),
            "color": _kinds(kinds),
        },
    }
    return {**_panel(title, [bar]), "data": {"values": bars}}
