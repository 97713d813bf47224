"""Questions whose answers anybody knows beforehand, and whether they came as claimed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from thinveil.attacker.checks.lots import Lots
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Box, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, LIMIT, LOWEST, MISSING

_SPREAD: Final = 2**20  # ranges beyond all values begin somewhere in so many codes (a round figure)


@dataclass(frozen=True, slots=True)
class Sure:
    """A question whose count is known: how many records lie in a union of boxes.

    Args:
        boxes: The boxes, which lie apart.
        count: How many records they hold; any number where the law does not hang on it.
        threshold: b in "is c > b?".
        what: What it asks about, for people: a phrase.
        repeats: How many answers it wants.
    """

    boxes: Sequence[Box]
    count: int
    threshold: int
    what: str
    repeats: int = 1


def asked(sures: Sequence[Sure]) -> QueryBatch:
    """Return a batch that asks these questions."""
    return batch_of([(each.boxes, each.threshold) for each in sures], [s.repeats for s in sures])


class Known:
    """Makes up questions whose counts are 0 or n, whatever the table: drawn by a public seed.

    In an unbounded universe no value lies beyond 2^62, yet a claim takes such a range for an
    ordinary one: it holds no record, the range up to there holds all, and both are answered as
    the law says at the edges of its zones. In a bounded universe such ranges are constant.
    """

    def __init__(self, facts: PublicFacts, lots: Lots) -> None:
        self._facts, self._lots = facts, lots
        self._bounded = facts.claim.universe == "bounded"

    def nobody(self) -> Box:
        """Return a box that holds no record."""
        column = self._column()
        top = self._facts.schema[column].upper if self._bounded else LIMIT
        low = (0 if top is None else top) + 1 + self._lots.below(_SPREAD)
        return {column: (low, low + 1 + self._lots.below(_SPREAD))}

    def everybody(self) -> list[Box]:
        """Return boxes that hold all records between them, cut somewhere."""
        column = self._column()
        each = self._facts.schema[column]
        low, high = each.lower, each.upper
        top = INFINITE if self._bounded else LIMIT + 1 + self._lots.below(_SPREAD)
        if low is None or high is None or low == high or self._facts.policies.cache:
            return [{column: (MISSING, top)}]
        cut = low + 1 + self._lots.below(high - low)
        return [{column: (MISSING, cut)}, {column: (cut, top)}]

    def half(self) -> tuple[Box, Box]:
        """Return a range from the lowest value up to a cut, and the range from there."""
        wide = [(each.size or 2**32, at) for at, each in enumerate(self._facts.schema)]
        column = max(wide)[1]
        each = self._facts.schema[column]
        low, high = each.lower or 0, each.upper or 0
        cut = low + max(1, (high - low + 1) // 2)
        return {column: (MISSING, cut)}, {column: (cut, INFINITE)}

    def _column(self) -> int:
        return self._lots.below(len(self._facts.schema))

    def thresholds(self, count: int) -> Iterator[int]:
        """Yield thresholds for none or all: at the edges of the zones first, then anywhere."""
        n, k = self._facts.records, self._facts.claim.reach
        edges = (k, k - 1) if count == 0 else (n - k - 1, n - k)
        yield from dict.fromkeys(b for b in edges if 0 <= b < n)
        low, high = (min(k, n - 1), n) if count == 0 else (0, max(n - k, 1))
        while True:
            yield low + self._lots.below(high - low)

    def edges(self, whole: bool = True) -> Iterator[Sure]:
        """Yield questions about nobody and everybody, in turn, and thresholds that none crosses.

        Everybody is asked about in one piece where `whole` is wanted.
        """
        n = self._facts.records
        none, every = self.thresholds(0), self.thresholds(n)
        while True:
            yield Sure([self.nobody()], 0, next(none), "a range without any record")
            boxes = self.everybody()
            if whole or self._facts.policies.cache:
                boxes = [{column: (MISSING, ends[1]) for column, ends in boxes[-1].items()}]
            said = (
                "a union of ranges with all records"
                if len(boxes) > 1
                else "a range with all records"
            )
            yield Sure(boxes, n, next(every), said)

    def trivial(self) -> list[Sure]:
        """Return questions about a range of any size that no count crosses."""
        column, n = self._column(), self._facts.records
        box = {column: (LOWEST, self._facts.schema[column].upper or 0)}
        return [
            Sure([box], 0, -1, "a range"),
            Sure([box], 0, n, "a range"),
        ]
