"""Draws the pictures of the README and the docs again: python docs/pictures.py."""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

import thinveil
from thinveil.experiments import paper
from thinveil.experiments.compare import compare
from thinveil.experiments.outcomes import Comparison, Outcome
from thinveil.experiments.risk import risk
from thinveil.report import curves, figures
from thinveil.report.terminal import show_verdict

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Run the default audit, the worked example and the comparison; save what they show."""
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ thinveil audit", style="bold"))
    show_verdict(console, thinveil.audit())
    svg = console.export_svg(title="thinveil audit")
    # The picture must not fetch a font from elsewhere; any monospaced one will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, DejaVu Sans Mono")
    (IMAGES / "audit.svg").write_text(svg, encoding="utf-8")
    figures.sensitivity(paper.staircase(), IMAGES)
    compared = compare(thinveil.people())
    curves.comparison(compared, IMAGES / "compare.png")
    write_table(compared)
    curves.risk(risk(thinveil.people()), IMAGES / "risk.png")


def write_table(compared: Comparison) -> None:
    """Write the table of docs/compare.md."""
    lines = [
        "| mechanism | membership | attribute inference | full reconstruction |",
        "| --- | --- | --- | --- |",
        "| asking nothing | "
        + " | ".join(
            f"{each.baseline:.4g} of {each.of:,} {each.unit}" for each in compared.lines[0].tried
        )
        + " |",
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


def cell(each: Outcome) -> str:
    """Write one outcome for a page."""
    loss = each.epsilon_claimed
    what = f"{each.recovered:,} of {each.of:,}" if each.stated else "no usable difference found"
    what += " different" if each.unit == "different records" else ""
    claimed = "nothing claimed" if loss is None else f"loss {loss:.2g}"
    return f"{what}; {each.queries:,} answers, {claimed}"


if __name__ == "__main__":
    main()
