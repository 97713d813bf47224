"""How many records satisfy each predicate of a batch, by looking at all of them.

The oracle: the other counters are held equal to this one by tests.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from thinveil.language.queries import Codes, QueryBatch


class Counter(Protocol):
    """Counts records. Conforms: `ScanCounter`, `IndexCounter`, `DatabaseCounter`.

    One whose rounds cost more than their questions states so in `round_seconds`.
    """

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        ...


class ScanCounter:
    """Counts by looking at every record for every box. Slow and plain."""

    def __init__(self, table: Codes) -> None:
        self._table = table

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        columns = batch.columns()
        low, high = batch.ranges(columns)
        table = self._table[:, columns]
        inside = [
            int(((table >= start) & (table < end)).all(axis=1).sum())
            for start, end in zip(low, high, strict=True)
        ]
        return batch.total(np.array(inside, np.int64))
