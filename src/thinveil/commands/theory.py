"""thinveil theory: the paper's definitions on a world small enough to enumerate."""

from __future__ import annotations

import click
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import (
    check_outputs,
    consoles,
    json_option,
    overwrite_option,
    write_json,
)
from thinveil.paper.theory.chapters import Chapter, Setting, plain, shown
from thinveil.paper.theory.tour import CHAPTERS, tour
from thinveil.report.text.screen import Text


@click.command("theory", cls=Command)
@click.option("--records", default=5, help="How many people there are. [5]")
@click.option("--domain", default=3, help="How many records are possible. [3]")
@click.option("--k", default=2, help="The group size of Group IDP. [2]")
@click.option("--seed", default=0, help="The seed of the few answers that are drawn. [0]")
@json_option
@overwrite_option
def command(records: int, domain: int, k: int, seed: int, json_file: str | None) -> int:
    """Walk through the paper's definitions on a world small enough to enumerate.

    Every figure is computed on the spot, from all data sets of the world. docs/theory.md is the
    page that goes with it.

    \b
    Examples:
      thinveil theory
      thinveil theory --records 6 --domain 2 --k 3
    """
    check_outputs([], json=(json_file, "theory"))
    console, notices = consoles(json_file)
    setting = Setting.of(records, domain, k, seed)
    said = (
        f"A world of {records} labelled people, each with one of the records "
        f"{', '.join(map(str, setting.world.domain))}: {len(setting.world)} data sets. "
        f"The actual one is {setting.actual}."
    )
    console.print(Text(said))
    chapters = list(
        track(
            tour(setting),
            "Enumerating",
            total=len(CHAPTERS),
            console=notices,
            transient=True,
            disable=not notices.is_interactive,
        )
    )
    for number, chapter in enumerate(chapters, 1):
        _show(console, number, chapter)
    write_json(
        json_file,
        {
            "records": records,
            "domain": plain(setting.world.domain),
            "actual": plain(setting.actual),
            "k": k,
            "epsilon": float(setting.epsilon),
            "seed": seed,
            "chapters": [chapter.to_plain() for chapter in chapters],
        },
        "theory",
    )
    return 0


def _show(console: Console, number: int, chapter: Chapter) -> None:
    """Print a chapter: its question, its table, and what to remember."""
    console.print()
    console.print(Text(f"{number}. {chapter.title}", style="bold"))
    console.print(Text(chapter.cites, style="dim"))
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, collapse_padding=True)
    for place, heading in enumerate(chapter.headings):
        words = any(isinstance(row[place], str) for row in chapter.rows)
        table.add_column(Text(heading), justify="left" if words else "right", overflow="fold")
    for row in chapter.rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    console.print(table)
    console.print(Text(chapter.sentence))
