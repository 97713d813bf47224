"""The paper's figures, drawn from measured rows and saved as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thinveil.errors import MissingExtra, OutputError
from thinveil.files import replacing
from thinveil.paper import figures as published
from thinveil.paper import simulation
from thinveil.paper.rows import Row


def plotter() -> Any:
    """Return matplotlib's pyplot, ready for files.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        matplotlib.rcParams["svg.hashsalt"] = "thinveil"
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("Drawing figures", "plots") from None
    return pyplot


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    failed = f"cannot save figures in {folder}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{failed}: {error.strerror}") from None
    paths = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
    for path in paths:
        kind = path.suffix.removeprefix(".")
        undated = {"Date": None} if kind == "svg" else None
        with replacing(path, failed) as file:
            figure.savefig(file, format=kind, dpi=160, bbox_inches="tight", metadata=undated)
    return paths


def single_attributes(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw queries against distinct values for each attribute by itself."""
    pyplot = plotter()
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
    pyplot = plotter()
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


def detector(measured: simulation.Measured, folder: Path) -> list[Path]:
    """Draw how often tests on m answers are right, and how many answers a sequential one needs."""
    pyplot = plotter()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    for test, mark, label in (
        (simulation.PSI.name, "o-", "psi_m (the paper's)"),
        (simulation.MAGNITUDE.name, "s-", "mean |z| (likelihood ratio)"),
    ):
        mine = [score for score in measured.scores if score.test == test]
        left.plot(
            [score.repeats for score in mine],
            [score.percent for score in mine],
            mark,
            markersize=5,
            label=label,
        )
    left.scatter(
        list(published.PSI),
        [100 * each / published.PSI_SIMULATIONS for each in published.PSI.values()],
        marker="x",
        s=90,
        color="black",
        zorder=3,
        label="psi_m as published",
    )
    left.set(
        xscale="log",
        xlabel="answers m to one question",
        ylabel="decided rightly, %",
        title="Laplace(1) or Laplace(2)? A fixed number of answers",
    )
    wanted = measured.walks[0].wanted
    for walks in (walks for walks in measured.walks if walks.wanted == wanted):
        bins = walks.lengths[: len(walks.lengths) // 4 * 4].reshape(-1, 4).sum(axis=1)
        right.stairs(
            100 * bins / walks.runs / 4,
            range(0, 4 * len(bins) + 1, 4),
            fill=True,
            alpha=0.5,
            label=f"Laplace({1 + walks.noisier}): {walks.mean:.0f} on average",
        )
    right.set(
        xlabel="answers until it is settled",
        ylabel="share of runs, % an answer",
        xlim=(0, 250),
        title=f"Answer by answer, error at most {wanted:g}",
    )
    for axes in (left, right):
        axes.grid(True, alpha=0.3)
        axes.legend()
    figure.tight_layout()
    paths = _save(figure, folder, "detector")
    pyplot.close(figure)
    return paths
