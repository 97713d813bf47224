"""The neighbours of a table in the sense of differential privacy: one record is another."""

from __future__ import annotations

from dataclasses import dataclass

from thinveil.curator.counting.scan import Counter, ScanCounter
from thinveil.language.queries import Codes, QueryBatch
from thinveil.language.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Neighbour:
    """A table with one record replaced, held as what changes in the counts.

    Nothing is copied or indexed anew, so thousands of neighbours cost next to nothing.
    """

    schema: Schema
    records: int
    whole: Counter  # of the table itself
    taken: Codes  # the record that goes, as a table of one row
    given: Codes  # the record that comes instead; the table itself if it is the same
    mark: str  # tells this neighbour from others

    def digest(self) -> str:
        """Return the name that tells this neighbour from others."""
        return self.mark

    def counter(self) -> Counter:
        """Return what counts the records of the neighbour."""
        return self

    def count(self, batch: QueryBatch) -> Codes:
        """Return, for each question, how many records lie in its boxes."""
        counts = self.whole.count(batch)
        if self.taken is self.given:
            return counts
        less, more = (ScanCounter(each).count(batch) for each in (self.taken, self.given))
        changed: Codes = counts - less + more
        return changed
