"""Worlds small enough to enumerate, and who is whose neighbour in them.

A world has a finite domain of records and n labelled people, each with one record: a data
set is a tuple, and the place in it says whose record it is. Labels matter (erratum 13).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final, TypeAlias

from thinveil.errors import UsageError

Record: TypeAlias = Hashable
Data: TypeAlias = tuple[Record, ...]
Pair: TypeAlias = tuple[Data, Data]

LARGEST: Final = 100_000
"""A world of more data sets than this is not enumerated."""


@dataclass(frozen=True, slots=True)
class World:
    """All data sets of so many labelled records from a finite domain.

    >>> world = World((0, 1), 3)
    >>> len(world)
    8
    >>> sorted(world.neighbours((0, 0, 0)))
    [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    """

    domain: tuple[Record, ...]
    size: int

    def __post_init__(self) -> None:
        if not self.domain or self.size < 1:
            raise UsageError("a world needs at least one possible record and one person")
        if len(set(self.domain)) < len(self.domain):
            raise UsageError("the possible records of a world must all be different")
        several = len(self.domain) > 1
        if several and (self.size > LARGEST.bit_length() or len(self) > LARGEST):
            raise UsageError(
                f"{len(self.domain)} possible records and {self.size} people make more than "
                f"{LARGEST:,} data sets, too many to enumerate: choose fewer of either"
            )

    def __len__(self) -> int:
        power: int = len(self.domain) ** self.size
        return power

    def __iter__(self) -> Iterator[Data]:
        return product(self.domain, repeat=self.size)

    def __contains__(self, data: object) -> bool:
        return isinstance(data, tuple) and len(data) == self.size and set(data) <= set(self.domain)

    def expect(self, data: Data) -> None:
        """Refuse what is not a data set of this world.

        Raises:
            UsageError: It has the wrong size, or holds an impossible record.
        """
        if data not in self:
            raise UsageError(
                f"not a data set of this world: it takes {self.size} records, each one of the "
                f"{len(self.domain)} of the domain"
            )

    def at_distance(self, data: Data, changed: int) -> Iterator[Data]:
        """Return each data set in which exactly so many people have another record."""
        self.expect(data)
        others = [[record for record in self.domain if record != mine] for mine in data]
        for places in combinations(range(self.size), changed):
            for records in product(*(others[place] for place in places)):
                other = list(data)
                for place, record in zip(places, records, strict=True):
                    other[place] = record
                yield tuple(other)

    def neighbours(self, data: Data) -> Iterator[Data]:
        """Return the dp-neighbours of a data set: one person's record is modified."""
        return self.at_distance(data, 1)

    def within(self, data: Data, k: int) -> Iterator[Data]:
        """Return N_k of a data set: up to k records are modified, so it is itself in it."""
        check_group(k)
        for changed in range(min(k, self.size) + 1):
            yield from self.at_distance(data, changed)

    def pairs(self) -> Iterator[Pair]:
        """Return every ordered pair of dp-neighbours."""
        for data in self:
            for other in self.neighbours(data):
                yield data, other

    def seen_by_bootstrap(self, data: Data) -> World:
        """Return the world of all data sets that hold no record which this one does not hold."""
        self.expect(data)
        present = set(data)
        return World(tuple(record for record in self.domain if record in present), self.size)

    def bootstrap_pairs(self, data: Data) -> Iterator[Pair]:
        """Return every ordered pair of bootstrap neighbours, conditioned on a data set."""
        return self.seen_by_bootstrap(data).pairs()


def distance(first: Data, second: Data) -> int:
    """Count the people whose records differ between two data sets.

    >>> distance((0, 1, 2), (0, 2, 1))
    2
    """
    return sum(mine != other for mine, other in zip(first, second, strict=True))


def check_group(k: int) -> None:
    """Refuse a group of nobody.

    Raises:
        UsageError: k is not a whole number of at least 1.
    """
    if type(k) is not int or k < 1:
        raise UsageError(f"the group size k must be a whole number of at least 1, not {k}")
