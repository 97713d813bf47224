"""A search that carries beliefs, for mechanisms whose single answers tell little.

A large group of records is halved by its values until the parts are small; a small one is
searched for its largest value, then for how many records have it, and so on downwards. What
is believed (a posterior) is carried from answer to answer, so weak evidence is never thrown
away. A belief is only a guess, though: before anything counts as found it is proved by fresh
answers, in a test whose error is a share of the whole attack's. So the error bound does not
rest on any assumption about the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from thinveil.attacker.engines.coroutines import Work, side_by_side
from thinveil.attacker.engines.posterior.searches import Searches
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import until_sure
from thinveil.attacker.strategies import Strategy
from thinveil.attacker.terms import Attack, Axis, Rules, Values, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Cells, Codes, QueryBatch
from thinveil.language.schema import MISSING


def columns_of(
    facts: PublicFacts,
    strategy: Strategy,
    cells: Cells,
    axis: Axis,
    sizes: Codes,
    care: Care,
    about: Callable[[float, Sequence[Any]], About],
) -> Attack[list[Values]]:
    """Find all values of each group on one axis; missing ones are counted first."""
    rules = Rules.of(facts)
    if rules.bounded and axis.size == 1:
        return [[(MISSING if axis.missing else axis.limits[0], size)] for size in sizes.tolist()]
    gone = np.zeros_like(sizes)
    if axis.missing:
        counted = yield from side_by_side(
            facts,
            cells,
            [
                Work(strategy.missing(rules, size), group, axis, size)
                for group, size in enumerate(sizes.tolist())
            ],
            lambda done, _: about(0.0, [None] * len(sizes)),
            care,
        )
        gone = np.array(counted, np.int64)
    missing: list[Values] = [[(MISSING, each)] if each else [] for each in gone.tolist()]
    return (yield from values_of(facts, cells, axis, sizes - gone, care, about, missing))


def values_of(
    facts: PublicFacts,
    cells: Cells,
    axis: Axis,
    sizes: Codes,
    care: Care,
    about: Callable[[float, Sequence[Any]], About],
    found: list[Values] | None = None,
) -> Attack[list[Values]]:
    """Find all values of each group on one axis, each with its number of records.

    No record is missing a value. `about` is called each round with the settled share and the
    values found so far; `found` is what is known of each group already, and is added to.
    """
    searches = Searches(facts, axis, sizes, care, found=found)
    total = max(int(sizes.sum()), 1)
    codes = partial(scaled, width=axis.width)

    def look() -> About:
        return about(1 - searches.finds.left / total, searches.finds)

    yield from until_sure(facts, care, Asking(searches, cells, axis.column, codes, look))
    return searches.finds.values


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """Searches of one column in the cells of their groups. Conforms to `Inquiry`.

    `codes` turns the values that searches speak of into codes; `about` is called each round.
    """

    searches: Searches
    cells: Cells
    column: int
    codes: Callable[[Codes], Codes]
    about: Callable[[], About]

    @property
    def running(self) -> bool:
        """Whether any search has something left to find."""
        return self.searches.running

    def ask(self) -> QueryBatch:
        """Return what all searches want to know, and how many answers to each they want."""
        owner, low, high, threshold, repeats = self.searches.questions()
        return QueryBatch(
            self.cells,
            self.searches.state.group[owner],
            np.full(len(owner), self.column),
            self.codes(low),
            self.codes(high),
            threshold,
            repeats=repeats,
            about=self.about(),
        )

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        """Take in the answers."""
        self.searches.learn(answers)
