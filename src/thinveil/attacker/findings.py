"""What attacks return: pieces of the data, in codes."""

from __future__ import annotations

from dataclasses import dataclass, field

from thinveil.attacker.terms import Values
from thinveil.language.queries import Codes


@dataclass(frozen=True, slots=True, eq=False)
class TableFound:
    """A table as a multiset of records, perhaps not yet complete.

    Args:
        columns: The attributes in the order in which they were found.
        codes: A row for each different record; what is not known yet is 0.
        known: For each row, how many of the columns are known, from the left.
        counts: For each row, how many records it stands for.
        widths: For each column, the precision in steps of its grid.
        distinct: Whether these are the different records, and how often each occurs is not
            known (Bootstrap DP); counts are then all 1.
        bits: For each column, what it was worth under the attack's own beliefs, given the
            columns before it; None where the attack has none (`codelength` fills it in).
            Columns at the end of which nothing is known yet may be left off.
    """

    columns: tuple[int, ...]
    codes: Codes
    known: Codes
    counts: Codes
    widths: tuple[int, ...]
    distinct: bool = False
    bits: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class ColumnFound:
    """The values of one column with their counts; all 1 where only existence is known.

    Its bits are what it was worth under the attack's own beliefs, None where there are none;
    so they are in all that follows. They do not tell two findings apart.
    """

    column: int
    values: Values
    width: int = 1
    distinct: bool = False
    bits: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnsFound:
    """Some columns, each by itself; of those still being searched, what is known so far."""

    columns: tuple[ColumnFound, ...]


@dataclass(frozen=True, slots=True)
class CountFound:
    """How many records satisfy a predicate, and whether any; None while unknown."""

    count: int | None
    exists: bool | None = None
    bits: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PersonFound:
    """What was learned about one person; None where it was not asked or not settled yet.

    Args:
        present: Whether somebody in the table fits what was known.
        unique: Whether exactly one record fits.
        matches: How many records fit.
        values: For each attribute found, its values among the matching records.
        prior_failed: Attributes whose prior bounds turned out wrong.
        bits: What all of it was worth, the values included.
    """

    present: bool | None = None
    unique: bool | None = None
    matches: int | None = None
    values: tuple[ColumnFound, ...] = ()
    prior_failed: tuple[int, ...] = ()
    bits: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PeopleFound:
    """What was learned about a list of people, in its order."""

    people: tuple[PersonFound, ...] = field(default=())


Found = TableFound | ColumnsFound | CountFound | PeopleFound
