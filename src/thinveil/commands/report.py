"""thinveil report: a run, written by thinveil audit --json, as a page to hand on."""

from __future__ import annotations

from pathlib import Path

import click

from thinveil.commands.shared.common import (
    check_outputs,
    consoles,
    overwrite_option,
    write_result,
)
from thinveil.commands.shared.grouped import Command
from thinveil.errors import RecordError, UsageError
from thinveil.report.html import page
from thinveil.report.text.screen import Text
from thinveil.verdicts.record import fitting, read_comparison, read_run


@click.command("report", cls=Command)
@click.argument("run", metavar="RUN.json")
@click.option(
    "--comparison",
    metavar="FILE",
    help="What thinveil compare --risk --json FILE wrote, to be shown beside the run.",
)
@click.option(
    "--show-records",
    is_flag=True,
    help="Show recovered records and what was known of people; else all values are masked.",
)
@click.option("--output", metavar="FILE", help="Where the page goes. [RUN.html]")
@overwrite_option
def command(run: str, comparison: str | None, show_records: bool, output: str | None) -> int:
    """Turn RUN.json, which thinveil audit --json wrote, into a page to hand on.

    The page is one HTML file that loads nothing: it opens from disk, prints, and is readable on a
    phone. It holds no value of any record unless --show-records is given.

    \b
    Examples:
      thinveil people --records 60 --output people.csv
      thinveil audit people.csv --json run.json
      thinveil report run.json
      thinveil compare people.csv --json compare.json
      thinveil report run.json --comparison compare.json --output handout.html
    """
    target = output or str(Path(run).parent / f"{Path(run).stem or 'report'}.html")
    check_outputs([run, comparison], output=(target, "report"))
    found = read_run(run)
    beside = None
    if comparison is not None:
        try:
            beside = read_comparison(comparison)
        except RecordError as error:
            raise RecordError(f"--comparison {error}") from None
    if show_records and not found.records_shown and not found.result:
        raise UsageError(
            f"--show-records: {run} holds no records. Run the audit again with --show-records "
            "and --json, where the true table is at hand"
        )
    with fitting(run if comparison is None else f"{run} or {comparison}"):
        text = page(found, comparison=beside, show_records=show_records)
    if write_result("output", target, text, "report"):
        consoles(None)[1].print(Text(f"The report is in {target}; it opens in any browser."))
    return 0
