"""Pictures of a comparison of mechanisms and of risk curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from thinveil.errors import UsageError
from thinveil.files import replacing
from thinveil.language.claims import claim_named
from thinveil.report.charts.figures import plotter
from thinveil.report.text.comparison import HEADINGS
from thinveil.verdicts.comparing.candidates import Skipped
from thinveil.verdicts.comparing.curves import Risk
from thinveil.verdicts.comparing.outcomes import TASKS, Comparison, Line, Outcome

# The colour-blind safe palette of Okabe and Ito.
_GREY, _RED, _ORANGE, _BLUE = "#777777", "#D55E00", "#E69F00", "#0072B2"
_GREEN, _PINK, _SKY = "#009E73", "#CC79A7", "#56B4E9"
_COLOURS: Final = {
    "unprotected": _GREY,
    "idp": _RED,
    "idp-binary": _PINK,
    "idp-integer": _GREEN,
    "idp-noisy": _ORANGE,
    "bdp": _SKY,
    "dp-laplace": _BLUE,
}
FORMATS: Final = (".pdf", ".png", ".svg")
"""How the names of pictures may end."""


def check_figure(option: str, path: str | None) -> None:
    """Make sure before a long run that a picture can be drawn.

    Raises:
        MissingExtra: matplotlib is not installed.
        UsageError: The file's name does not say a known format.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(f"{option} {path}: the name must end in {', '.join(FORMATS)}")
    plotter()


def _save(figure: Any, path: str | Path) -> None:
    pyplot = plotter()
    kind = Path(path).suffix.lower().removeprefix(".")
    date = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    undated = {date: None} if date else None
    try:
        with replacing(path, f"cannot save the figure {path}") as file:
            figure.savefig(file, format=kind, dpi=150, bbox_inches="tight", metadata=undated)
    finally:
        pyplot.close(figure)


def _kind(line: Line) -> tuple[str, str]:
    """Return the colour of a mechanism, and what it means."""
    if not line.claim.protected:
        return _GREY, "no protection"
    if line.control:
        return _BLUE, "honest differential privacy (control)"
    return _RED, "noise follows the data (IDP, bootstrap DP)"


def comparison(compared: Comparison, path: str | Path) -> None:
    """Draw what every attack recovered from every mechanism, beside asking nothing."""
    pyplot = plotter()
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines = [each for each in compared.lines if each.tried]
    figure, panels = pyplot.subplots(
        1, len(TASKS), figsize=(13, 1.9 + 0.52 * len(lines)), sharey=True
    )
    for axes, task in zip(panels, TASKS, strict=True):
        axes.set_title(HEADINGS[task], fontsize=13, loc="left")
        axes.set(xlim=(0, 2.35), xticks=[0, 0.5, 1], xticklabels=["0 %", "50 %", "100 %"])
        axes.set_ylim(len(lines) - 0.45, -0.55)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(axis="y", length=0, labelsize=12)
        for place, line in enumerate(lines):
            for each in line.outcomes:
                if each.task == task:
                    _bar(axes, place, each, _kind(line)[0])
    panels[0].set_yticks(range(len(lines)), [line.mechanism for line in lines])
    kinds = dict(_kind(line)[::-1] for line in lines)
    nothing = Line2D([], [], color="black", linestyle=(0, (2, 1)), label="asking nothing")
    figure.legend(
        handles=[*(Patch(color=colour, label=label) for label, colour in kinds.items()), nothing],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=4,
        frameon=False,
        fontsize=11,
    )
    figure.suptitle(_headline(compared), fontsize=15, x=0.01, ha="left")
    figure.tight_layout(w_pad=0.5)
    _save(figure, path)


def _headline(compared: Comparison) -> str:
    """Say in a title what the picture shows."""
    veiled = [each for each in compared.lines if each.claim.leaks_by_noise and each.tried]
    honest = [each for each in compared.lines if each.control and each.tried]
    where = f"{compared.records:,} records, {compared.epsilon_per_query} claimed an answer"
    gave = veiled and all(each.everything for each in veiled)
    if gave and honest and all(each.at_baseline for each in honest):
        return (
            "Noise that follows the data gave everything away; honest noise gave nothing away"
            f"\n({where})"
        )
    return f"What was recovered from each mechanism ({where})"


def _bar(axes: Any, place: int, each: Outcome | Skipped, colour: str) -> None:
    """Draw one bar, the mark of asking nothing, and the figures beside them."""
    if isinstance(each, Skipped):
        axes.text(0.02, place, "not tried", va="center", fontsize=10, color=_GREY)
        return
    axes.barh(place, each.share, height=0.62, color=colour)
    axes.barh(place, 1, height=0.62, facecolor="none", edgecolor="#BBBBBB", linewidth=0.8)
    guess = each.baseline / each.of
    axes.plot([guess] * 2, [place - 0.4, place + 0.4], color="black", linestyle=(0, (2, 1)))
    if each.ended == "undecided" and not each.stated:
        what = "no usable difference"
    else:
        what = f"{each.recovered:,} of {each.of:,} {each.unit}"
    loss = each.epsilon_claimed
    claimed = "nothing claimed" if loss is None else f"loss {loss:.2g}"
    axes.text(1.06, place - 0.17, what, va="center", fontsize=10.5, color=colour, weight="bold")
    axes.text(1.06, place + 0.2, f"{each.queries:,} answers, {claimed}", va="center", fontsize=9)


def risk(drawn: Risk, path: str | Path) -> None:
    """Draw what is recovered against the claimed loss, and against the answers allowed."""
    pyplot = plotter()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14, 5.6))
    _against_loss(left, drawn)
    _against_answers(right, drawn)
    for axes in (left, right):
        axes.set_ylim(-0.04, 1.08)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.grid(True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.label.set_size(11)
    figure.tight_layout(w_pad=3)
    _save(figure, path)


def _titled(axes: Any, title: str, how: str) -> None:
    """Put the point of a picture above it, and below that how it was made."""
    axes.set_title(f"{title}\n\n", loc="left", fontsize=12, weight="bold")
    axes.text(0, 1.02, how, transform=axes.transAxes, fontsize=9.5, linespacing=1.3)


def _against_loss(axes: Any, drawn: Risk) -> None:
    marks = {"idp": ("o", 8, "none"), "idp-noisy": (".", 8, None), "dp-laplace": ("D", 4, None)}
    names = {"idp": "IDP", "idp-noisy": "IDP, always noisy", "dp-laplace": "honest DP"}
    for name in dict.fromkeys(each.mechanism for each in drawn.losses):
        curve = drawn.loss_curve(name)
        totals = [epsilon for epsilon, _ in curve]
        shares = [[each.records for each in known] for _, known in curve]
        colour = _COLOURS.get(name, _GREY)
        mark, size, fill = marks.get(name, ("x", 6, None))
        axes.plot(
            totals,
            [sum(each) / len(each) for each in shares],
            marker=mark,
            markersize=size,
            markerfacecolor=fill,
            color=colour,
            linewidth=1.5,
            label=f"{names.get(name, name)} ({name})",
        )
        axes.fill_between(
            totals, [min(x) for x in shares], [max(x) for x in shares], color=colour, alpha=0.2
        )
        least = drawn.least_loss(name)
        if not claim_named(name).leaks_by_noise:
            values = [sum(each.values for each in known) / len(known) for _, known in curve]
            label = f"{names.get(name, name)}: single values"
            axes.plot(totals, values, color=colour, linestyle=":", linewidth=1.5, label=label)
            if least is not None:
                axes.annotate(
                    f"honest DP gives all records\naway only at a total of {least:,.0f}",
                    (least, 0.97),
                    xytext=(1e-2, 0.8),
                    ha="center",
                    va="center",
                    color=colour,
                    arrowprops={"arrowstyle": "->", "color": colour},
                )
    axes.axvspan(1e-13, 1, color=_GREEN, alpha=0.07, linewidth=0)
    axes.text(
        1.4e-12, 0.12, "total losses that are usually\ncalled private: up to 1", color="#006644"
    )
    guess = drawn.loss_baseline.records
    axes.axhline(guess, color="black", linestyle=(0, (2, 1)), linewidth=1, zorder=1)
    axes.text(1.4e-12, guess + 0.02, f"asking nothing: {guess:.0%} of records", fontsize=9)
    axes.set(xscale="log", xlim=(5e-13, 2e6), xlabel="total privacy loss that is claimed")
    axes.set_ylabel("records recovered", fontsize=11)
    runs = len({each.seed for each in drawn.losses})
    _titled(
        axes,
        "The same promise, the same search: only honest noise keeps it",
        f"{drawn.sample:,} records; the total split equally over {drawn.answers:,} answers;\n"
        f"mean of {runs} runs a point, bands from the lowest to the highest",
    )
    axes.legend(loc="center left", bbox_to_anchor=(0.02, 0.45), fontsize=9.5, framealpha=1)


def _against_answers(axes: Any, drawn: Risk) -> None:
    for name in dict.fromkeys(each.mechanism for each in drawn.allowances):
        points = drawn.answers_curve(name)
        colour = _COLOURS.get(name, _GREY)
        answers = [each.queries for each in points]
        values = [each.known.values for each in points]
        records = [each.known.records for each in points]
        axes.step(answers, values, where="post", color=colour, linewidth=1.8, label=name)
        axes.step(answers, records, where="post", color=colour, linestyle=":", linewidth=1.3)
        axes.plot(answers[-1:], values[-1:], "o", color=colour, markersize=6)
    guess = drawn.answers_baseline.values
    axes.axhline(guess, color="black", linestyle=(0, (2, 1)), linewidth=1, zorder=1)
    axes.text(1.1, guess + 0.015, f"asking nothing: {guess:.0%} of values", fontsize=9)
    axes.plot([], [], color="black", linestyle=":", label="whole records")
    axes.set(xscale="log", xlim=(1, None))
    axes.set_xlabel(
        f"answers that the curator allows (times {drawn.epsilon_per_query}: claimed loss)"
    )
    axes.set_ylabel("values recovered", fontsize=11)
    half = drawn.answers_for("idp", 0.5)
    _titled(
        axes,
        "A limit on answers must be very low to help"
        + ("" if half is None else f" (idp: half gone at {half:,})"),
        f"{drawn.records:,} records; solid: values, each known together with those searched\n"
        "before it in the same record; the dot: everything is known",
    )
    axes.legend(loc="upper left", fontsize=9.5, framealpha=1)
