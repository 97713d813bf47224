"""The reconstructed table as a CSV file."""

from __future__ import annotations

import codecs
from itertools import chain

from thinveil.files import UTF8, csv_rows, replacing
from thinveil.verdicts.verdict import Verdict


def write_table(verdict: Verdict, path: str, *, safe: bool, overwrite: bool) -> None:
    """Write what was reconstructed of the data set, a line a record, in schema order.

    A cell is empty where the value is missing, and holds a question mark where a run that
    ended early does not know it. Where `safe`, formulas are made harmless. What thinveil cannot
    tell from a table of the user's keeps its name, unless `overwrite` says otherwise.

    Raises:
        UsageError: The attack was not on the data set.
        OutputError: The file cannot be written.
    """
    rows = verdict.rows()
    with replacing(path, f"--output {path}", overwrite=overwrite, spare=True) as file:
        whole = chain([verdict.facts.schema.names], rows)
        csv_rows(codecs.getwriter(UTF8[0])(file, UTF8[1]), whole, ending="\r\n", safe=safe)
