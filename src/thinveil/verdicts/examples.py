"""A handful of records as they were recovered, next to the true ones, for whoever asks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.curator.tables.dataset import Dataset
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.record import Example
from thinveil.verdicts.scoring import coarse
from thinveil.verdicts.verdict import Verdict

SHOWN: Final = 5
"""How many records are shown."""
_SEED: Final = 11  # so that they are drawn apart from trials and samples


def examples(verdict: Verdict, truth: Dataset | None) -> tuple[Example, ...] | None:
    """Return some true records with the reconstructed one that agrees in most attributes.

    None where no table was reconstructed or the true one is not at hand. What was not found
    is left out of a reconstructed record.
    """
    found = verdict.run.found
    if truth is None or not isinstance(found, TableFound) or not len(found.codes):
        return None
    rng = np.random.default_rng((verdict.options.seed, _SEED))
    actual = coarse(truth.codes[:, found.columns], found.widths)
    known = np.arange(len(found.columns)) < found.known[:, None]
    shown = []
    for row in rng.permutation(truth.records)[:SHOWN].tolist():
        best = int(np.argmax(((found.codes == actual[row]) & known).sum(axis=1)))
        told = found.known[best]
        true = _record(truth, range(len(truth.schema)), truth.codes[row].tolist())
        mine = _record(truth, found.columns[:told], found.codes[best, :told].tolist())
        shown.append(Example(true, mine))
    return tuple(shown)


def _record(truth: Dataset, columns: Iterable[int], codes: list[int]) -> dict[str, Any]:
    """Return a record as plain values, in the order of the schema."""
    values = dict(sorted(zip(columns, codes, strict=True)))
    return {
        truth.schema[column].name: plain(truth.schema[column].decode(code))
        for column, code in values.items()
    }
