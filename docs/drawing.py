"""What the pictures of the docs share: colours, questions that are really asked, saving."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import thinveil

IMAGES = Path(__file__).parent / "images"
EPSILON = 1e-10
"""The claimed loss of each answer in these pictures, unless they say otherwise."""

# The colour-blind safe palette of Okabe and Ito.
GREY, RED, ORANGE, BLUE = "#777777", "#D55E00", "#E69F00", "#0072B2"
GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"
KINDS = {"exactly 1": (BLUE, "^"), "noise": (ORANGE, "x"), "exactly 0": (GREEN, "v")}
"""How each kind of answer is drawn: a colour and a mark of its own."""

THIRTIES = {0: (30, 40)}
"""The predicate of the staircases: people from 30 to 39."""


def plotter() -> Any:
    """Return matplotlib's pyplot, ready for files that are the same each time."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "thinveil"
    from matplotlib import pyplot

    return pyplot


class Listening:
    """A curator of ours, with everything that was asked of it and what it answered."""

    def __init__(self, data: thinveil.Dataset, claim: thinveil.Claim, seed: int = 0) -> None:
        self._curator = thinveil.Curator(data, claim, seed=seed)
        self.facts = self._curator.facts
        self.heard: list[tuple[Any, Any]] = []

    def answer(self, batch: Any) -> Any:
        """Answer as the curator does, and remember it."""
        answers = self._curator.answer(batch)
        self.heard.append((batch, answers.values))
        return answers.values


def ask(
    data: thinveil.Dataset,
    claim: thinveil.Claim,
    questions: Sequence[tuple[dict[int, tuple[int, int]], int]],
    repeats: int = 1,
    epsilon: float = EPSILON,
    seed: int = 3,
) -> Any:
    """Ask a curator about (box, threshold) pairs; return a row of answers for each."""
    batch = thinveil.batch_of([([box], b) for box, b in questions], repeats=repeats)
    shares = epsilon if claim.protected else None
    answers = thinveil.Curator(data, claim, seed=seed).answer(batch.stamped(("docs", 1), shares))
    return np.array(answers.values, float).reshape(len(questions), repeats)


def kind(answer: float) -> str:
    """Say what an answer looks like."""
    return f"exactly {answer:g}" if answer in (0, 1) else "noise"


def inside(data: thinveil.Dataset, box: dict[int, tuple[int, int]]) -> int:
    """Count the records in a box, by looking: what the attacker may not do."""
    fits = np.ones(data.records, bool)
    for column, (low, high) in box.items():
        fits &= (data.codes[:, column] >= low) & (data.codes[:, column] < high)
    return int(fits.sum())


def canvas(*panels: int, size: tuple[float, float] = (8, 3.6), **how: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, plain and readable."""
    figure, axes = plotter().subplots(*panels, figsize=size, **how)
    for each in np.ravel(axes):
        each.spines[["top", "right"]].set_visible(False)
        each.grid(alpha=0.25)
        each.set_axisbelow(True)
    return figure, axes


def marks(axes: Any, places: Sequence[float], answers: Sequence[float]) -> None:
    """Draw answers, exact ones and noise told apart by colour and mark."""
    for name, (colour, mark) in KINDS.items():
        mine = [(x, y) for x, y in zip(places, answers, strict=True) if kind(y) == name]
        if mine:
            axes.plot(*zip(*mine, strict=True), mark, color=colour, ms=8, mew=2, label=name)


def huge(axes: Any) -> None:
    """Scale an axis so that 0, 1 and ten thousand millions fit on it."""
    axes.set_yscale("symlog", linthresh=2, linscale=4)
    axes.set(ylim=(-1e12, 1e12), yticks=[-1e10, 0, 1, 1e10])
    axes.set_yticklabels(["-10,000,000,000", "0", "1", "10,000,000,000"])
    axes.minorticks_off()


def save(figure: Any, name: str) -> None:
    """Save a picture in few bytes."""
    path = IMAGES / f"{name}.png"
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plotter().close(figure)
    shrink(path)


def shrink(path: Path) -> None:
    """Save a picture again in few bytes: 64 colours are enough for what is drawn here."""
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
