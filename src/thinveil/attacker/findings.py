"""What attacks return: pieces of the data, in codes."""

from __future__ import annotations

from dataclasses import dataclass, field

from thinveil.attacker.terms import Values
from thinveil.language.queries import Codes

Stretch = tuple[int | None, int, int]
"""The first step of a part of a column, how many values it has, and how many records lie in it.

The step is None where the part may hold missing values as well.
"""


@dataclass(frozen=True, slots=True, eq=False)
class TableFound:
    """A table as a multiset of records, perhaps not yet complete.

    It may be `distinct`: these are the different records, and how often each occurs is not known
    (Bootstrap DP); counts are then all 1. Bits are, for each column, what it was worth under the
    attack's own beliefs, given the columns before it; None where the attack has none
    (`code_length` fills it in). Columns at the end of which nothing is known may be left off.
    Margins are columns known by themselves: which values they hold how often, and not whose.
    """

    columns: tuple[int, ...]  # in the order in which they were found
    codes: Codes  # a row for each different record; what is not known yet is 0
    known: Codes  # for each row, how many of the columns are known, from the left
    counts: Codes  # for each row, how many records it stands for
    widths: tuple[int, ...]  # for each column, the precision in steps of its grid
    distinct: bool = False
    bits: tuple[float, ...] | None = None
    margins: tuple[ColumnFound, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnFound:
    """The values of one column with their counts; all 1 where only existence is known.

    Its bits are what it was worth under the attack's own beliefs, None where there are none;
    so they are in all that follows. They do not tell two findings apart. Of a column that is
    still being searched there may be ranges whose values are not told apart yet.
    """

    column: int
    values: Values
    width: int = 1
    distinct: bool = False
    bits: float | None = field(default=None, compare=False)
    ranges: tuple[Stretch, ...] = field(default=(), compare=False)
    domain: int | None = field(default=None, compare=False)  # values it was searched among
    partial: bool = field(default=False, compare=False)  # whether there may be further values


@dataclass(frozen=True, slots=True)
class ColumnsFound:
    """Some columns, each by itself; of those still being searched, what is known so far."""

    columns: tuple[ColumnFound, ...]


@dataclass(frozen=True, slots=True)
class CountFound:
    """How many records satisfy a predicate, and whether any; None while unknown.

    While a count is not known, answers may prove that it lies between two others.
    """

    count: int | None
    exists: bool | None = None
    bits: float | None = field(default=None, compare=False)
    between: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PersonFound:
    """What was learned about one person; None where it was not asked or not settled yet."""

    present: bool | None = None  # whether somebody in the table fits what was known
    unique: bool | None = None  # whether exactly one record fits
    matches: int | None = None  # how many records fit
    values: tuple[ColumnFound, ...] = ()  # of each attribute found, among the matching records
    prior_failed: tuple[int, ...] = ()  # attributes whose prior bounds turned out wrong
    bits: float | None = field(default=None, compare=False)  # of all of it, values included


@dataclass(frozen=True, slots=True)
class PeopleFound:
    """What was learned about a list of people, in its order."""

    people: tuple[PersonFound, ...] = ()


Found = TableFound | ColumnsFound | CountFound | PeopleFound
