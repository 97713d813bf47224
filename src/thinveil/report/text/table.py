"""The reconstructed table as a CSV file."""

from __future__ import annotations

import codecs
import csv
from typing import Final

from thinveil.attacker.findings import TableFound
from thinveil.errors import UsageError
from thinveil.files import replacing
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.verdict import Verdict

UNKNOWN: Final = "?"
"""What stands in a cell whose value is not known yet."""


def write_table(verdict: Verdict, path: str) -> None:
    """Write what was reconstructed of the data set, a line a record, in schema order.

    A cell is empty where the value is missing, and holds a question mark where a run that
    ended early does not know it.

    Raises:
        UsageError: The attack was not on the data set.
        OutputError: The file cannot be written.
    """
    found = verdict.run.found
    if not isinstance(found, TableFound):
        raise UsageError("--output: only the attack on the data set reconstructs a table")
    schema = verdict.facts.schema
    # The file holds what was confidential: nobody else gets to read it.
    with replacing(path, f"--output {path}", private=True) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file))
        writer.writerow(schema.names)
        for codes, known, count in zip(
            found.codes.tolist(), found.known.tolist(), found.counts.tolist(), strict=True
        ):
            values = dict(zip(found.columns[:known], codes, strict=False))
            row = [
                plain(schema[column].decode(values[column])) if column in values else UNKNOWN
                for column in range(len(schema))
            ]
            writer.writerows([row] * count)
