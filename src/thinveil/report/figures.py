"""The paper's figures, drawn from measured rows and saved as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thinveil.errors import MissingExtra, OutputError
from thinveil.experiments.rows import Row


def _pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("Agg")
        matplotlib.rcParams["svg.hashsalt"] = "thinveil"
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("Drawing figures", "plots") from None
    return pyplot


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    paths = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            figure.savefig(
                path,
                dpi=160,
                bbox_inches="tight",
                metadata={"Date": None} if path.suffix == ".svg" else None,
            )
    except OSError as error:
        raise OutputError(f"cannot save figures in {folder}: {error.strerror}") from None
    return paths


def single_attributes(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw queries against distinct values for each attribute by itself."""
    pyplot = _pyplot()
    prefix = "distinct values of "
    distinct = {
        row.name.removeprefix(prefix): row.measured for row in rows if row.name.startswith(prefix)
    }
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for protected, mark, label in ((True, "x", "protected by IDP"), (False, "+", "no protection")):
        mine = {
            row.name: row.measured
            for row in rows
            if row.protected is protected and row.name in distinct
        }
        axes.scatter(
            [distinct[name] for name in mine], list(mine.values()), marker=mark, s=60, label=label
        )
    for name in ("balance", "duration", "pdays", "age", "job"):
        figures = [row.measured for row in rows if row.name == name and row.protected]
        if name in distinct and figures:
            axes.annotate(
                name,
                (distinct[name], figures[0]),
                xytext=(-8, 6),
                textcoords="offset points",
                ha="right",
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="distinct values of the attribute",
        ylabel="queries to reconstruct it exactly",
        title="Each attribute by itself (bank table)",
    )
    axes.margins(y=0.12)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    paths = _save(figure, folder, "single-attributes")
    pyplot.close(figure)
    return paths


def sensitivity(steps: Sequence[tuple[int, float, int]], folder: Path, k: int = 1) -> list[Path]:
    """Draw the staircase: what comes back at each threshold, and what it gives away."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 3.6))
    thresholds = [threshold for threshold, _, _ in steps]
    axes.step(thresholds, [shown for _, _, shown in steps], where="mid", linewidth=2)
    for threshold, answer, shown in steps:
        text = "noise" if shown else f"exactly {answer:g}"
        axes.annotate(
            text,
            (threshold, shown),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    axes.set(
        xlabel="threshold b in: are there more than b incomes in [1, 10)?",
        ylabel=f"{k}-local sensitivity",
        xlim=(-0.6, len(steps) - 0.4),
        ylim=(-0.15, 1.35),
        yticks=[0, 1],
        title="Six incomes: the edges of the noise give the count away",
    )
    axes.grid(True, alpha=0.3)
    paths = _save(figure, folder, "sensitivity")
    pyplot.close(figure)
    return paths
