"""One picture for each mechanism, drawn from answers that it really gave."""

import math
from typing import Any

import numpy as np
from drawing import (
    BLUE,
    EPSILON,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    THIRTIES,
    ask,
    canvas,
    huge,
    inside,
    marks,
    save,
)

import thinveil

DATA = thinveil.people(60)
COUNT = inside(DATA, THIRTIES)
THRESHOLDS = range(COUNT + 7)
ASKED = "threshold b in: are there more than b people from 30 to 39?"


def draw() -> None:
    """Draw all of them."""
    unprotected()
    idp()
    idp_integer()
    idp_binary()
    idp_noisy()
    bdp()
    dp_laplace()
    dp_textbook()
    dp_smooth()
    dp_opendp()


def _staircase(name: str, k: int = 1, repeats: int = 1, epsilon: float = EPSILON) -> Any:
    """Ask at every threshold."""
    claim = thinveil.claim_named(name, k)
    return ask(DATA, claim, [(THIRTIES, b) for b in THRESHOLDS], repeats, epsilon)


def _count_line(axes: Any, top: float) -> None:
    axes.axvline(COUNT - 0.5, color=GREY, ls=":", lw=1.5)
    axes.text(COUNT - 0.4, top, f"the count is {COUNT}", color=GREY, va="top")


def unprotected() -> None:
    """Draw true answers: one edge."""
    figure, axes = canvas(size=(8, 2.6))
    marks(axes, THRESHOLDS, _staircase("unprotected")[:, 0].tolist())
    _count_line(axes, 0.85)
    axes.set(xlabel=ASKED, xticks=THRESHOLDS, yticks=[0, 1], ylim=(-0.3, 1.3), ylabel="answer")
    axes.set_title("No protection: the answer changes once, at the count", loc="left")
    axes.legend(frameon=False, loc="lower left")
    save(figure, "mechanism-unprotected")


def idp() -> None:
    """Draw exact, noise, exact: the noise is 2k thresholds wide."""
    figure, panels = canvas(1, 2, size=(10, 4), sharey=True)
    for axes, k in zip(panels, (1, 3), strict=True):
        marks(axes, THRESHOLDS, _staircase("idp", k)[:, 0].tolist())
        axes.axvspan(COUNT - k - 0.5, COUNT + k - 0.5, color=ORANGE, alpha=0.15, lw=0)
        huge(axes)
        axes.axvline(COUNT - 0.5, color=GREY, ls=":", lw=1.5)
        axes.set(xticks=THRESHOLDS, xlabel="threshold b")
        axes.set_title(f"k = {k}: noise at {2 * k} thresholds", loc="left")
    panels[0].set_ylabel("answer")
    panels[0].legend(frameon=False, loc="lower left")
    figure.suptitle("Are there more than b people from 30 to 39? (idp, 1e-10 an answer)")
    save(figure, "mechanism-idp")


def idp_integer() -> None:
    """Draw whole numbers, written out."""
    figure, axes = canvas(size=(9, 3.8))
    answers = _staircase("idp-integer")[:, 0]
    marks(axes, THRESHOLDS, answers.tolist())
    huge(axes)
    for b, answer in zip(THRESHOLDS, answers, strict=True):
        if answer not in (0, 1):
            first = b < COUNT
            side, shift = ("right", -0.2) if first else ("left", 0.2)
            axes.text(b + shift, answer, f"{answer:,.0f}", ha=side, va="center", fontsize=10)
    axes.set(xticks=THRESHOLDS, xlabel=ASKED, ylabel="answer")
    axes.set_title("Rounded to whole numbers: noise is still far from 0 and 1", loc="left")
    axes.legend(frameon=False, loc="lower left")
    save(figure, "mechanism-idp-integer")


def idp_binary() -> None:
    """Draw how often 1 comes back, and how long a run of equal answers must be."""
    figure, (left, right) = canvas(1, 2, size=(10, 3.9), width_ratios=(3, 2))
    share = _staircase("idp-binary", repeats=60).mean(axis=1)
    exact = (share == 0) | (share == 1)
    colours = np.where(exact, BLUE, ORANGE)
    left.bar(THRESHOLDS, share, color=colours, width=0.7)
    left.plot([b for b, zero in zip(THRESHOLDS, share == 0, strict=True) if zero],
              [0] * int((share == 0).sum()), "v", color=GREEN, ms=8)  # fmt: skip
    left.axhline(0.5, color=GREY, ls=":", lw=1)
    left.set(xticks=THRESHOLDS, xlabel="threshold b", ylabel="share of ones in 60 answers")
    left.set_title("Always 1, a fair coin, always 0", loc="left")
    runs = range(1, 45)
    right.semilogy(runs, [2 * 2.0**-m for m in runs], color=RED)
    for m, shift, side in ((15, (8, 4), "left"), (35, (-8, -14), "right")):
        chance = 2 * 2.0**-m
        right.plot(m, chance, "o", color=RED)
        right.annotate(
            f"{m} answers: {chance:.1e}", (m, chance), shift, textcoords="offset points", ha=side
        )
    right.axhline(1e-10, color=GREY, ls=":", lw=1)
    right.set(xlabel="answers to one question", ylabel="chance that a coin shows one side only")
    right.set_title("How sure is a run of equal answers?", loc="left")
    save(figure, "mechanism-idp-binary")


def _spread(axes: Any, answers: Any, colours: list[str]) -> None:
    """Draw single answers as dots beside each other, in units of 1/epsilon."""
    jitter = np.random.default_rng(1).uniform(-0.28, 0.28, answers.shape)
    for b, row, colour in zip(THRESHOLDS, answers, colours, strict=True):
        axes.plot(b + jitter[b], row * EPSILON, ".", color=colour, ms=4.5, alpha=0.6, mew=0)
    axes.set(xticks=THRESHOLDS, ylabel="answer x epsilon", ylim=(-9, 9))


def _mean_size(axes: Any, answers: Any, colours: list[str]) -> None:
    axes.bar(THRESHOLDS, np.abs(answers * EPSILON).mean(axis=1), color=colours, width=0.7)
    axes.set(xticks=THRESHOLDS, xlabel=ASKED, ylabel="mean size", ylim=(0, 2.6))


def idp_noisy() -> None:
    """Draw the spread of answers at two levels."""
    answers = _staircase("idp-noisy", repeats=200)
    near = [COUNT - 1 <= b <= COUNT for b in THRESHOLDS]
    colours = [ORANGE if each else BLUE for each in near]
    figure, (top, bottom) = canvas(2, 1, size=(8, 5.2), height_ratios=(3, 2))
    _spread(top, answers, colours)
    top.set_title("Noise in every answer, twice as wide next to the count", loc="left")
    _mean_size(bottom, answers, colours)
    bottom.axhline(2 * math.log(2), color=GREY, ls=":", lw=1.5)
    bottom.text(-0.4, 2.2, "dotted: 2 ln 2 tells scale 1 from scale 2", color=GREY)
    save(figure, "mechanism-idp-noisy")


def bdp() -> None:
    """Draw none, some, all: the threshold does not matter and the count does not show."""
    ages = np.sort(DATA.codes[:, 0])
    ends = [int(ages[0]), int(ages[0]) + 1, 20, 40, 60, 80, int(ages[-1]), int(ages[-1]) + 1]
    boxes = [{0: (-1000, end)} for end in ends]
    figure, axes = canvas(size=(9, 4))
    for shift, (threshold, mark) in enumerate(((0, "o"), (20, "s"), (45, "D"))):
        answers = ask(DATA, thinveil.bdp(), [(box, threshold) for box in boxes], seed=threshold)
        answers = answers[:, 0]
        colours = [{0.0: GREEN, 1.0: BLUE}.get(each, ORANGE) for each in answers.tolist()]
        axes.scatter(
            [place + (shift - 1) * 0.2 for place in range(len(boxes))], answers,
            c=colours, marker=mark, s=50, label=f"b = {threshold}",
        )  # fmt: skip
    huge(axes)
    axes.set_xticks(range(len(boxes)), [f"{inside(DATA, box)}" for box in boxes])
    axes.set(xlabel="how many of the 60 records satisfy the predicate", ylabel="answer")
    axes.text(0, -1.5, "none:\nexactly 0", color=GREEN, ha="center", va="top")
    axes.text(len(boxes) - 1, 4, "all:\nexactly 1", color=BLUE, ha="center", va="bottom")
    axes.text(3.5, 4, "some: noise, whatever the count and the threshold", ha="center",
              color="#9C6A00")  # fmt: skip
    axes.set_title("Bootstrap DP: which records exist, not how many", loc="left")
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.36), ncols=3)
    save(figure, "mechanism-bdp")


def dp_laplace() -> None:
    """Draw the same spread at every threshold."""
    answers = _staircase("dp-laplace", repeats=200)
    colours = [SKY] * len(THRESHOLDS)
    figure, (top, bottom) = canvas(2, 1, size=(8, 5.2), height_ratios=(3, 2))
    _spread(top, answers, colours)
    top.set_title("Honest noise: the same spread at every threshold", loc="left")
    _mean_size(bottom, answers, colours)
    bottom.axhline(1, color=GREY, ls=":", lw=1.5)
    save(figure, "mechanism-dp-laplace")


def dp_textbook() -> None:
    """Draw which of neighbouring doubles can come from 0 and from 1, and how often one settles."""
    from matplotlib.colors import ListedColormap

    from thinveil.attacker.evidence.doubles import settled, settled_share
    from thinveil.language.laws import Cauchy, Gaussian, Laplace

    figure, (left, right) = canvas(1, 2, size=(10, 3.9))
    rows, wide = 16, 24
    some = ask(DATA, thinveil.claim_named("dp-textbook"), [(THIRTIES, 3)], repeats=50)[0]
    first = some[np.argmin(np.abs(some * EPSILON - 0.7))]
    steps = np.arange(rows * wide) - rows * wide // 2
    near = (np.array(first).view(np.int64) + steps).view(float)
    zero, one = settled(Laplace(), near, 1 / EPSILON)
    what = (zero + 2 * one).reshape(rows, wide)
    names = ("neither", "0 only", "1 only", "both")
    colours = ("#EEEEEE", GREEN, BLUE, ORANGE)
    left.imshow(what, cmap=ListedColormap(colours), vmin=0, vmax=3, aspect="auto")
    for name, colour in zip(names, colours, strict=True):
        left.plot([], [], "s", color=colour, ms=9, label=name)
    left.grid(False)
    left.set(xticks=[], yticks=[], xlabel=f"{rows * wide} neighbouring doubles around {first:.6e}")
    left.set_title("From which true bit can each come? (1e-10)", loc="left")
    left.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4)
    losses = [10.0**power for power in range(-16, 1)]
    for law, colour, mark in (
        (Cauchy(), PINK, "D"), (Laplace(), RED, "o"), (Gaussian(1e-6), SKY, "s"),
    ):  # fmt: skip
        share = [settled_share(law, float(law.widen(each)) / each) for each in losses]
        right.semilogx(losses, share, mark + "-", color=colour, ms=5, label=law.title)
    right.set(xlabel="claimed loss of an answer", ylabel="share of answers", ylim=(0, 1))
    right.set_title("One answer settles the bit", loc="left")
    right.legend(frameon=False, loc="lower center", ncols=3)
    save(figure, "mechanism-dp-textbook")


def dp_smooth() -> None:
    """Draw how smooth sensitivity fades, and that it does not at a small loss."""
    from thinveil.paper.theory.functions import Threshold
    from thinveil.paper.theory.sensitivities import local_sensitivity, smooth_sensitivity
    from thinveil.paper.theory.worlds import World

    world, actual, thresholds = World((0, 1), 10), (1,) * 5 + (0,) * 5, range(10)
    figure, (left, right) = canvas(1, 2, size=(10, 3.9))
    for epsilon, colour, mark in ((1e-10, BLUE, "o"), (1.0, GREEN, "s"), (6.0, PINK, "D")):
        smooth = [
            float(smooth_sensitivity(world, Threshold(bool, b), actual, beta=epsilon / 6))
            for b in thresholds
        ]
        left.plot(thresholds, smooth, mark + "-", color=colour, label=f"epsilon {epsilon:g}")
    local = [float(local_sensitivity(world, Threshold(bool, b), actual)) for b in thresholds]
    left.step(thresholds, local, where="mid", color=RED, ls="--", label="local (idp)")
    left.set(xlabel="threshold b; 5 of 10 records satisfy", ylabel="sensitivity", xticks=thresholds)
    left.set_title("Smooth sensitivity has no edge", loc="left")
    left.set_ylim(-0.05, 1.5)
    left.legend(frameon=False, loc="upper center", fontsize=9, ncols=2)
    answers = _staircase("dp-smooth", repeats=400)
    size = np.median(np.abs(answers), axis=1) * EPSILON
    right.bar(THRESHOLDS, size, color=SKY, width=0.7)
    right.axhline(6, color=GREY, ls=":", lw=1.5)
    right.set(xlabel="threshold b", ylabel="median size x epsilon", xticks=THRESHOLDS)
    right.set_title("400 answers each, at 1e-10: all alike", loc="left")
    save(figure, "mechanism-dp-smooth")


def dp_opendp() -> None:
    """Draw what OpenDP drew beside what we draw and what should be drawn."""
    figure, axes = canvas(size=(8, 3.6))
    edges = np.linspace(0, 6, 31)
    for name, colour, filled in (("dp-laplace", SKY, True), ("dp-opendp", RED, False)):
        sizes = np.abs(_staircase(name, repeats=500) * EPSILON).ravel()
        share = np.histogram(sizes, edges)[0] / len(sizes) / (edges[1] - edges[0])
        axes.stairs(share, edges, color=colour, fill=filled, lw=2, label=f"{name}: {len(sizes):,}")
    axes.plot(edges, np.exp(-edges), color=GREY, ls=":", lw=2, label="exp(-x)")
    axes.set(xlabel="size of an answer x epsilon", ylabel="density")
    axes.set_title("Sizes of answers from OpenDP's sampler and ours: one density", loc="left")
    axes.legend(frameon=False)
    save(figure, "mechanism-dp-opendp")
