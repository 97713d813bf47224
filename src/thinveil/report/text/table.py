"""The reconstructed table as a CSV file."""

from __future__ import annotations

import codecs
import csv

from thinveil.files import replacing
from thinveil.verdicts.verdict import Verdict


def write_table(verdict: Verdict, path: str) -> None:
    """Write what was reconstructed of the data set, a line a record, in schema order.

    A cell is empty where the value is missing, and holds a question mark where a run that
    ended early does not know it.

    Raises:
        UsageError: The attack was not on the data set.
        OutputError: The file cannot be written.
    """
    rows = verdict.rows()
    # The file holds what was confidential: nobody else gets to read it.
    with replacing(path, f"--output {path}", private=True) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file))
        writer.writerow(verdict.facts.schema.names)
        writer.writerows(rows)
