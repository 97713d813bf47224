"""thinveil people: the embedded people as a CSV file, to try things out on."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import click

from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import (
    check_outputs,
    consoles,
    overwrite_option,
    overwriting,
    safe_csv_option,
)
from thinveil.files import csv_rows, write_file
from thinveil.language.texts import many, quoted
from thinveil.report.text.screen import Text
from thinveil.report.text.streams import pour

MOST: Final = 1_000_000
"""More people than that are nobody's first steps."""


@click.command("people", cls=Command)
@click.option(
    "--records", type=click.IntRange(1, MOST), default=2000, help="How many people. [2000]"
)
@click.option("--seed", default=2024, help="The same seed makes up the same people. [2024]")
@click.option("--output", metavar="FILE", help="Write the table there instead of printing it.")
@safe_csv_option
@overwrite_option
def command(records: int, seed: int, output: str | None, safe_csv: bool) -> int:
    """Write a table of people who do not exist as CSV, to try everything on.

    They are the people that thinveil audit attacks where no table is given: age, postcode, job,
    salary, diagnosis, insurance, day of admission and ward, in a hospital that does not exist.

    \b
    Examples:
      thinveil people --records 60 --output people.csv
      thinveil people --seed 7 > others.csv
    """
    from thinveil.curator.tables.people import people

    made = io.StringIO()
    data = people(records, seed)
    csv_rows(made, [data.schema.names, *data.rows()], ending="\n", safe=safe_csv)
    text = made.getvalue()
    if output is None:
        pour(text)
        return 0
    people_made = many(records, "made-up person", "made-up people")
    if _holds(Path(output), text.encode()):
        said = f"{output} holds {people_made} already."
    else:
        check_outputs([], output=(output, ""))
        write_file(output, text, f"--output {output}", overwrite=overwriting())
        said = f"Wrote {output}: {people_made}."
    consoles(None)[1].print(Text(f"{said} Now: thinveil audit {quoted(output)}"))
    return 0


def _holds(path: Path, content: bytes) -> bool:
    """Tell whether a file has this content already: another page had the same line, say."""
    try:
        same = path.is_file() and path.stat().st_size == len(content)
        return same and path.read_bytes() == content
    except OSError:
        return False
