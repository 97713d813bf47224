"""A handful of records as they were recovered, next to the true ones, for whoever asks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.curator.tables.dataset import Dataset
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.scoring import coarse
from thinveil.verdicts.verdict import Verdict

SHOWN: Final = 5
"""How many records are shown."""
_SEED: Final = 11  # so that they are drawn apart from trials and samples


def examples(verdict: Verdict, truth: Dataset | None) -> list[dict[str, Any]] | None:
    """Return some true records with the reconstructed one that agrees in most attributes.

    None where no table was reconstructed or the true one is not at hand. What was not found
    is left out of a reconstructed record.
    """
    found = verdict.run.found
    if truth is None or not isinstance(found, TableFound) or not len(found.codes):
        return None
    rng = np.random.default_rng((verdict.options.seed, _SEED))
    rows = rng.permutation(truth.records)[:SHOWN].tolist()
    actual = coarse(truth.codes[:, found.columns], found.widths)
    known = np.arange(len(found.columns)) < found.known[:, None]
    shown = []
    for row in rows:
        best = int(np.argmax(((found.codes == actual[row]) & known).sum(axis=1)))
        told = found.known[best]
        shown.append(
            {
                "true": _record(truth, range(len(truth.schema)), truth.codes[row].tolist()),
                "recovered": _record(
                    truth, found.columns[:told], found.codes[best, :told].tolist()
                ),
            }
        )
    return shown


def _record(truth: Dataset, columns: Any, codes: list[int]) -> dict[str, Any]:
    """Return a record as plain values, in the order of the schema."""
    values = {
        column: plain(truth.schema[column].decode(code))
        for column, code in zip(columns, codes, strict=True)
    }
    return {truth.schema[column].name: values[column] for column in sorted(values)}
