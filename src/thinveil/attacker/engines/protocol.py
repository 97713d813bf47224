"""What every engine offers, so that the six attacks on tables and people are written once.

An engine finds counts and values of groups of records by asking a curator. How it asks, and how
it reads the answers, is its own affair; the attacks (`attacks/table.py`, `attacks/people.py`) know
this contract alone. Conforming: `coroutines.Coroutines` (the paper's searches),
`posterior.engine.Posterior`, `any_law.AnyLaw` and `distinct_searches.Existence` (Bootstrap DP).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from thinveil.attacker.terms import Attack, Axis, Values
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Flags
from thinveil.language.schema import MISSING

SOME: Final = -1
"""In place of a count, where it is only shown that some records are there, and not all."""

Look = Callable[[float, Sequence[Any]], About]
"""Describes a round: from the settled share, and what is known of each group so far. None stands
for nothing; values may be some of several."""


@dataclass(frozen=True, slots=True, eq=False)
class Cohorts:
    """Groups of records to be asked about."""

    cells: Cells
    rows: Codes  # the cells that are meant
    sizes: Codes  # how many records each of them holds; at most, where that is asked

    @staticmethod
    def everybody(facts: PublicFacts) -> Cohorts:
        """Return all records as one group."""
        return Cohorts(Cells.everything(), np.zeros(1, np.int64), np.array([facts.records]))


@dataclass(frozen=True, slots=True)
class Hints:
    """What an engine may make use of where the values of people are wanted.

    Limits found for one person may not be worth it for the whole table. Priors are bounds, in
    codes, that values are believed to lie in. They are checked.
    """

    people: int
    priors: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    shortcut: bool = True  # whether a binary attribute of a unique person is a membership question


class Engine(Protocol):
    """Finds counts and values of groups of records, many groups at once."""

    @property
    def facts(self) -> PublicFacts:
        """What is public."""
        ...

    def check(self, axes: Sequence[Axis], groups: int) -> None:
        """Refuse to search axes, one after the other, if that would ask far too much.

        Axes whose limits are not known yet are left out.

        Raises:
            TooManyQueries: It would.
        """
        ...

    def limits(
        self, axes: Sequence[Axis], about: About, hints: Hints | None = None
    ) -> Attack[list[Axis]]:
        """Return axes with limits for the whole table, found by asking where not public.

        With hints, `values` may be left to find them.
        """
        ...

    def values(
        self, groups: Cohorts, axes: Sequence[Axis], look: Look, hints: Hints | None = None
    ) -> Attack[list[Values]]:
        """Find all values of each group on each axis: group after group, the axes of each.

        Counts are all 1 where only existence is shown. Hints come with the values of people.
        """
        ...

    def more_than(self, groups: Cohorts, steps: Sequence[int], look: Look) -> Attack[Flags]:
        """Tell for each group, a row, whether it holds more than so many records, each a column."""
        ...

    def count(self, groups: Cohorts, look: Look, few: bool = False) -> Attack[Codes]:
        """Count the records of each group; `few` where most are expected to hold none or one.

        Returns SOME where counts are not shown, and neither none nor all records are there.
        """
        ...


Searching = Callable[[Cells, Codes, Axis, Look], Attack[list[Values]]]
"""Finds the values of cells that hold so many records each, on one axis."""


def in_turn(
    facts: PublicFacts, groups: Cohorts, axes: Sequence[Axis], look: Look, search: Searching
) -> Attack[list[Values]]:
    """Find the values of groups on one axis after the other, as `values` returns them.

    What is constant in a bounded universe is not asked: a curator would answer it exactly.
    """
    results: list[Any] = [None] * (len(groups.rows) * len(axes))
    cells = Cells(
        groups.cells.columns, groups.cells.low[groups.rows], groups.cells.high[groups.rows]
    )
    for place, axis in enumerate(axes):

        def look_on(done: float, some: Sequence[Any], place: int = place) -> About:
            return look((place + done) / len(axes), some if len(axes) == 1 else results)

        if facts.claim.universe == "bounded" and axis.size == 1:
            only = MISSING if axis.missing else axis.limits[0]
            results[place :: len(axes)] = [[(only, size)] for size in groups.sizes.tolist()]
        else:
            results[place :: len(axes)] = yield from search(cells, groups.sizes, axis, look_on)
    return results
