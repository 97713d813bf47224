"""thinveil reproduce: the paper's experiments, its figures beside ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from thinveil.auditing.provenance import Provenance
from thinveil.commands.shared.common import command_line
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import (
    check_outputs,
    consoles,
    deferring,
    json_option,
    note,
    overwrite_option,
    overwriting,
    write_json,
)
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.files import load
from thinveil.errors import EXIT_EARLY, MissingExtra, ThinveilError, UsageError
from thinveil.language.schema_file import read_schema
from thinveil.paper import detector, simulation
from thinveil.paper import experiments as paper
from thinveil.paper.figures import BANK_DIGEST, ERRATA
from thinveil.paper.rows import Row, counted
from thinveil.report.charts import paper as figures
from thinveil.report.text.progress import progress
from thinveil.report.text.reproduced import show_rows
from thinveil.report.text.screen import Text

_WITHOUT_DATA = ("sensitivity", "detector")
_NAMES = (*paper.EXPERIMENTS, *_WITHOUT_DATA, "all")


@click.command("reproduce", cls=Command)
@click.argument("experiment", type=click.Choice(_NAMES), default="all", metavar="[EXPERIMENT]")
@click.option(
    "--data", metavar="FILE", help="The bank table, bank-full.csv. [environment: THINVEIL_BANK]"
)
@click.option("--figures", "folder", default="figures", help="Where figures go. [figures]")
@click.option("--seed", default=0, help="The seed of the noise. [0]")
@json_option
@overwrite_option
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
    Each figure says whether the paper prints it.

    \b
    Examples:
      thinveil reproduce all --data bank-full.csv
      thinveil reproduce sensitivity
      thinveil reproduce detector --seed 1
    """
    wanted = [*paper.EXPERIMENTS, *_WITHOUT_DATA] if experiment == "all" else [experiment]
    check_outputs([data], json=(json_file, "reproduction"))
    if Path(folder).exists():
        for path in (path for name in wanted for path in figures.paths(name, Path(folder))):
            check_outputs([data], figures=(path, "picture"))
    console, notices = consoles(json_file)
    table = _bank(data, notices) if set(wanted) - set(_WITHOUT_DATA) else None
    rows: list[Row] = []
    saved: list[Path] = []
    interrupted = ""
    for name in wanted:
        try:
            mine, draw = _measured(name, table, notices, seed)
        except KeyboardInterrupt:
            interrupted = name
            break
        show_rows(console, mine)
        for each in ERRATA[name]:
            console.print(Text(f"  {each}", style="dim"))
        rows += mine
        try:
            with deferring():
                saved += draw(Path(folder))
        except MissingExtra as missing:
            notices.print(Text(f"No figure: {missing}", style="yellow"))
    made = Provenance.now(command_line(ctx), None).to_plain({"experiments": wanted, "seed": seed})
    measured = {"rows": [row.to_plain() for row in rows], "provenance": made}
    write_json(json_file, measured, "reproduction")
    if saved:
        console.print(Text(f"Figures: {', '.join(str(path) for path in saved)}"))
    different = [row for row in rows if not row.agrees]
    if different:
        raise ThinveilError(f"{len(different)} of {counted(rows)} differ from what they should be")
    if interrupted:
        done = f"{counted(rows)} were done, and agree"
        notices.print(Text(f"Interrupted in the experiment {interrupted}: {done}."))
        return EXIT_EARLY
    console.print(Text(_agreement(rows), style="bold"))
    return 0


def _bank(data: str | None, notices: Console) -> Dataset:
    """Read the bank table, and say so where it is another than the paper's."""
    source = data or os.environ.get("THINVEIL_BANK")
    if not source:
        raise UsageError(
            "this experiment runs on the bank table: give --data bank-full.csv (the Bank "
            "Marketing data set of the UCI repository)"
        )
    table = load(source, read_schema("bank"))
    if table.digest() != BANK_DIGEST:
        note(notices, "this is not the table that the paper used")
    return table


def _measured(
    name: str, table: Dataset | None, notices: Console, seed: int
) -> tuple[list[Row], Callable[[Path], list[Path]]]:
    """Run an experiment; return its rows, and how to draw its figures into a folder."""
    if name == "sensitivity":
        steps = paper.staircase(seed=seed)
        return paper.sensitivity(seed), partial(figures.sensitivity, steps, overwrite=overwriting())
    with progress(notices) as observer:
        if name == "detector":
            measured = simulation.measure(observer, seed)
            draw = partial(figures.detector, measured, overwrite=overwriting())
            return detector.rows(measured), draw
        assert table is not None
        rows = paper.EXPERIMENTS[name](table, observer, seed)
    if name == "columns":
        return rows, partial(figures.single_attributes, rows, overwrite=overwriting())
    return rows, lambda folder: []


def _agreement(rows: Sequence[Row]) -> str:
    """Say that all figures agree, whence they are, and in which sense the simulated ones do."""
    chance = sum(row.allowed is not None for row in rows)
    within = f" Simulated ones, {chance} of them, agree within five standard errors."
    return f"{counted(rows)}: all agree.{within if chance else ''}"
