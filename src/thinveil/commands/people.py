"""thinveil people: the embedded people as a CSV file, to try things out on."""

from __future__ import annotations

import csv
import io
from shlex import quote
from typing import Final

import click
from rich.text import Text

from thinveil.commands.outputs import check_outputs, consoles
from thinveil.files import write_file

MOST: Final = 1_000_000
"""More people than that are nobody's first steps."""


@click.command("people")
@click.option(
    "--records", type=click.IntRange(1, MOST), default=2000, help="How many people. [2000]"
)
@click.option("--seed", default=2024, help="The same seed makes up the same people. [2024]")
@click.option("--output", metavar="FILE", help="Write the table there instead of printing it.")
def command(records: int, seed: int, output: str | None) -> int:
    """Write a table of people who do not exist as CSV, to try everything on.

    They are the people that thinveil audit attacks where no table is given: age, postcode, job,
    salary, diagnosis, insurance, day of admission and ward, in a hospital that does not exist.

    \b
    Examples:
      thinveil people --records 60 --output people.csv
      thinveil people --seed 7 > others.csv
    """
    from thinveil.curator.tables.people import people

    check_outputs([], output=output)
    text = io.StringIO()
    data = people(records, seed)
    csv.writer(text, lineterminator="\n").writerows([data.schema.names, *data.rows()])
    if output is None:
        click.echo(text.getvalue(), nl=False)
        return 0
    write_file(output, text.getvalue(), f"--output {output}")
    consoles(None)[1].print(
        Text(f"Wrote {output}: {records:,} made-up people. Now: thinveil audit {quote(output)}")
    )
    return 0
