"""Draws the pictures of the README and the docs again: python docs/pictures.py."""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

import thinveil
from thinveil.experiments import paper
from thinveil.report import figures
from thinveil.report.terminal import show_verdict

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Run the default audit and the worked example, and save what they show."""
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ thinveil audit", style="bold"))
    show_verdict(console, thinveil.audit())
    svg = console.export_svg(title="thinveil audit")
    # The picture must not fetch a font from elsewhere; any monospaced one will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, DejaVu Sans Mono")
    (IMAGES / "audit.svg").write_text(svg, encoding="utf-8")
    figures.sensitivity(paper.staircase(), IMAGES)


if __name__ == "__main__":
    main()
