"""Draws the pictures of the docs again: python docs/pictures.py.

With the word terminal, only the audit of docs/index.md is drawn.
With the word mechanisms or attacks, only the pictures of those pages are drawn.
With the word compared, only the worked example, the comparison and the risk curves are.
With the word scaling, only what a record costs as tables grow is drawn, from bench/scaling.json.
With the word attributes and the path of bank-full.csv, the bank table is reconstructed by three
strategies, and the table and the picture of docs/questions.md are made anew.
"""

import io
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pictures_attacks
import pictures_mechanisms
from drawing import IMAGES, plotter, shrink
from rich.console import Console
from rich.text import Text

import thinveil
from thinveil.paper import experiments as paper
from thinveil.report.charts import paper as figures
from thinveil.report.charts.files import save_pictures
from thinveil.report.charts.mechanisms import compared as mechanisms_compared
from thinveil.report.charts.risk import against_answers, against_loss
from thinveil.report.text.terminal import show_verdict
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.outcomes import Comparison, Outcome
from thinveil.verdicts.comparing.risk import risk
from thinveil.verdicts.phrases import mean

BENCH = Path(__file__).parents[1] / "bench"
COLOURS = {"adaptive": "#0072B2", "thrifty": "#D55E00"}


def main() -> None:
    """Run the default audit, the worked example and the comparison; save what they show."""
    terminal()
    side_by_side()
    scaling(BENCH / "scaling.json", BENCH / "scaling.png")
    pictures_mechanisms.draw()
    pictures_attacks.draw()


def terminal() -> None:
    """Show the default audit as a terminal does."""
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ thinveil audit", style="bold"))
    show_verdict(console, thinveil.audit())
    svg = console.export_svg(title="thinveil audit")
    # The picture must not fetch a font from elsewhere; any monospaced one will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, DejaVu Sans Mono")
    (IMAGES / "audit.svg").write_text(svg, encoding="utf-8")


def side_by_side() -> None:
    """Draw the worked example, the comparison and the risk curves."""
    figures.sensitivity(paper.staircase(), IMAGES, overwrite=True)
    (IMAGES / "sensitivity.svg").unlink()  # no page shows it
    compared = compare(thinveil.people())
    save_pictures([mechanisms_compared(compared)], IMAGES / "compare.png", 420, overwrite=True)
    write_table(compared)
    drawn = risk(thinveil.people())
    both = [against_loss(drawn), against_answers(drawn)]
    save_pictures(both, IMAGES / "risk.png", 560, overwrite=True)
    for name in ("sensitivity", "compare", "risk"):
        shrink(IMAGES / f"{name}.png")


def scaling(source: Path, path: Path) -> None:
    """Draw what a record costs as tables grow: `python -m bench scaling --write` measured it."""
    runs: list[dict[str, Any]] = json.loads(source.read_text("utf-8"))["runs"]
    pyplot = plotter()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), width_ratios=(3, 2))
    known = sorted({(each["records"], each["known"] / each["records"]) for each in runs})
    sizes = [records for records, _ in known]
    bits = [each for _, each in known]
    left.plot(sizes, bits, "--", color="#777777", label="bits a record, distribution known")
    left.plot(
        sizes,
        [each / math.log2(3) for each in bits],
        ":",
        color="#777777",
        label="the same at log2(3) bits an answer",
    )
    for strategy, colour in COLOURS.items():
        mine = [each for each in runs if each["strategy"] == strategy]
        mine.sort(key=lambda each: each["records"])
        sizes = [each["records"] for each in mine]
        asked = [each["questions"] / each["records"] for each in mine]
        believed = [each["bits"] / each["records"] for each in mine]
        left.plot(sizes, asked, "o-", color=colour, label=f"{strategy}: questions a record")
        if strategy == "adaptive":
            left.plot(sizes, believed, "x", color=colour, ms=8, label="bits a record, as believed")
        each_took = [1000 * each["seconds"] / each["records"] for each in mine]
        right.plot(sizes, each_took, "o-", color=colour, label=strategy)
    left.set(xscale="log", xlabel="records", ylim=(0, None), title="Questions a record")
    right.set(
        xscale="log", yscale="log", xlabel="records", title="Milliseconds a record (whole audit)"
    )
    left.legend(frameon=False, fontsize=9, loc="lower left")
    right.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    figure.suptitle("What a record costs as tables grow (one distribution, IDP, k = 1)")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    shrink(path)


def attributes(data: str) -> None:
    """Write where questions go, attribute by attribute, into docs/questions.md."""
    table = thinveil.load(data, thinveil.read_schema("bank"))
    audits = {
        name: thinveil.audit(table, strategy=name) for name in ("published", "adaptive", "thrifty")
    }
    asked = {
        name: dict(zip(table.schema.names, each.run.meter.by_column.tolist(), strict=False))
        for name, each in audits.items()
    }
    bits = audits["adaptive"].bits_by_attribute
    names = sorted(bits, key=lambda name: bits[name])
    rows = [
        f"| {name} | {bits[name]:,.0f} | "
        + " | ".join(f"{asked[strategy][name]:,}" for strategy in asked)
        + f" | {asked['thrifty'][name] / max(bits[name], 1):.2f} |"
        for name in names
    ]
    total = {name: sum(each.values()) for name, each in asked.items()}
    lines = [
        "| attribute | bits | published | adaptive | thrifty | thrifty, questions a bit |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        f"| **all** | {sum(bits.values()):,.0f} | {total['published']:,} | {total['adaptive']:,} | "
        f"{total['thrifty']:,} | {total['thrifty'] / sum(bits.values()):.2f} |",
    ]
    page = IMAGES.parent / "questions.md"
    block = re.compile(r"(<!-- attributes -->\n).*?(<!-- end attributes -->)", re.DOTALL)
    shown = "\n".join(lines)
    text = page.read_text("utf-8")
    page.write_text(block.sub(lambda m: f"{m[1]}\n{shown}\n\n{m[2]}", text), "utf-8")
    pyplot = plotter()
    figure, axes = pyplot.subplots(figsize=(9, 5))
    places = range(len(names))
    for shift, (name, colour) in zip(
        (0.27, 0, -0.27), {"published": "#999999", **COLOURS}.items(), strict=True
    ):
        axes.barh(
            [place + shift for place in places],
            [asked[name][each] for each in names],
            0.25,
            color=colour,
            label=f"{name}: {total[name]:,}",
        )
    axes.plot([bits[each] for each in names], places, "k|", ms=14, label="bits")
    axes.set(yticks=list(places), yticklabels=names, xlabel="questions", xscale="symlog")
    axes.set_title("Where the questions go: bank-full, IDP, k = 1")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(IMAGES / "attributes.png", dpi=150)
    pyplot.close(figure)
    shrink(IMAGES / "attributes.png")


def write_table(compared: Comparison) -> None:
    """Write the table of docs/compare.md."""
    first = compared.lines[0].tried
    lines = [
        "| mechanism | membership | attribute inference | full reconstruction |",
        "| --- | --- | --- | --- |",
        f"| asking nothing | {' | '.join(_guess(each, each.baseline) for each in first)} |",
        f"| knowing the marginals | {' | '.join(_guess(each, each.marginals) for each in first)} |",
        f"| knowing all others | {' | '.join(_guess(each, each.others) for each in first)} |",
        *(
            f"| `{line.mechanism}` | {' | '.join(cell(each) for each in line.tried)} |"
            for line in compared.lines
        ),
    ]
    page = IMAGES.parent / "compare.md"
    text = page.read_text("utf-8")
    table = "\n".join(lines)
    block = re.compile(r"(<!-- compare: .*? -->\n).*?(<!-- end -->)", re.DOTALL)
    page.write_text(block.sub(lambda m: f"{m[1]}\n{table}\n\n{m[2]}", text), "utf-8")


def _guess(each: Outcome, right: float | None) -> str:
    """Write what somebody gets who never asks."""
    return "" if right is None else f"{mean(right)} of {each.of:,} {each.unit}"


def cell(each: Outcome) -> str:
    """Write one outcome for a page."""
    loss = each.epsilon_claimed
    what = f"{each.recovered:,} of {each.of:,}" if each.stated else "no usable difference found"
    what += " different" if each.unit == "different records" else ""
    claimed = "nothing claimed" if loss is None else f"loss {loss:.2g}"
    return f"{what}; {each.queries:,} answers, {claimed}"


if __name__ == "__main__":
    if sys.argv[1:] == ["terminal"]:
        terminal()
    elif sys.argv[1:] == ["scaling"]:
        scaling(BENCH / "scaling.json", BENCH / "scaling.png")
    elif sys.argv[1:] == ["mechanisms"]:
        pictures_mechanisms.draw()
    elif sys.argv[1:] == ["attacks"]:
        pictures_attacks.draw()
    elif sys.argv[1:] == ["compared"]:
        side_by_side()
    elif sys.argv[1:2] == ["attributes"]:
        attributes(sys.argv[2])
    else:
        main()
