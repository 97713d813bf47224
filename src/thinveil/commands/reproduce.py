"""thinveil reproduce: the paper's experiments, published figures beside ours."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.text import Text

from thinveil.auditing.provenance import Provenance
from thinveil.commands.common import command_line
from thinveil.commands.outputs import check_outputs, consoles, json_option, write_json
from thinveil.curator.tables.files import load
from thinveil.errors import EXIT_EARLY, MissingExtra, ThinveilError, UsageError
from thinveil.language.schema_file import read_schema
from thinveil.paper import detector, simulation
from thinveil.paper import experiments as paper
from thinveil.paper.figures import BANK_DIGEST, ERRATA
from thinveil.paper.rows import Row
from thinveil.report.charts import figures
from thinveil.report.text.progress import progress
from thinveil.report.text.terminal import show_rows

_WITHOUT_DATA = ("sensitivity", "detector")
_NAMES = (*paper.EXPERIMENTS, *_WITHOUT_DATA, "all")


@click.command("reproduce")
@click.argument("experiment", type=click.Choice(_NAMES), default="all", metavar="[EXPERIMENT]")
@click.option(
    "--data", metavar="FILE", help="The bank table, bank-full.csv. [environment: THINVEIL_BANK]"
)
@click.option("--figures", "folder", default="figures", help="Where figures go. [figures]")
@click.option("--seed", default=0, help="The seed of the noise. [0]")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    experiment: str,
    data: str | None,
    folder: str,
    seed: int,
    json_file: str | None,
) -> int:
    """Run an experiment of the paper on the bank table and compare every figure.

    EXPERIMENT is membership, targeting, columns, dataset, sensitivity, detector or all (the
    default). The worked example (sensitivity) and the noise tests (detector) need no table.

    \b
    Examples:
      thinveil reproduce all --data bank-full.csv
      thinveil reproduce sensitivity
      thinveil reproduce detector --seed 1
    """
    check_outputs([data], json=json_file)
    console, notices = consoles(json_file)
    wanted = [*paper.EXPERIMENTS, *_WITHOUT_DATA] if experiment == "all" else [experiment]
    source = data or os.environ.get("THINVEIL_BANK")
    table = None
    if set(wanted) - set(_WITHOUT_DATA):
        if not source:
            raise UsageError(
                "this experiment runs on the bank table: give --data bank-full.csv (the Bank "
                "Marketing data set of the UCI repository)"
            )
        table = load(source, read_schema("bank"))
        if table.digest() != BANK_DIGEST:
            notices.print(Text("Note: this is not the table that the paper used", style="yellow"))
    rows: list[Row] = []
    saved: list[Path] = []
    interrupted = ""
    for name in wanted:
        try:
            if name == "sensitivity":
                mine = paper.sensitivity(seed)
            elif name == "detector":
                with progress(notices) as observer:
                    measured = simulation.measure(observer, seed)
                mine = detector.rows(measured)
            else:
                assert table is not None
                with progress(notices) as observer:
                    mine = paper.EXPERIMENTS[name](table, observer, seed)
        except KeyboardInterrupt:
            interrupted = name
            break
        show_rows(console, mine)
        for note in ERRATA[name]:
            console.print(Text(f"  {note}", style="dim"))
        rows += mine
        try:
            if name == "columns":
                saved += figures.single_attributes(mine, Path(folder))
            elif name == "sensitivity":
                saved += figures.sensitivity(paper.staircase(seed=seed), Path(folder))
            elif name == "detector":
                saved += figures.detector(measured, Path(folder))
        except MissingExtra as missing:
            notices.print(Text(f"No figure: {missing}", style="yellow"))
    made = Provenance.now(command_line(ctx), None).to_plain({"experiments": wanted, "seed": seed})
    write_json(json_file, {"rows": [row.to_plain() for row in rows], "provenance": made})
    if saved:
        console.print(Text(f"Figures: {', '.join(str(path) for path in saved)}"))
    different = [row for row in rows if not row.agrees]
    if different:
        raise ThinveilError(f"{len(different)} of {len(rows)} figures differ from the published")
    if interrupted:
        done = f"{len(rows)} figures were done, and agree"
        notices.print(Text(f"Interrupted in the experiment {interrupted}: {done}."))
        return EXIT_EARLY
    chance = sum(isinstance(row, detector.SimulatedRow) for row in rows)
    within = (
        f" ({chance} simulated ones within five standard errors; those marked ours or with an "
        "erratum are of our notes)"
        if chance
        else ""
    )
    console.print(
        Text(f"All {len(rows)} figures agree with the published ones{within}.", style="bold")
    )
    return 0
