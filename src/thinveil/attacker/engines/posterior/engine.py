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

import numpy as np

from thinveil.attacker.engines.coroutines import Coroutines, Work, side_by_side
from thinveil.attacker.engines.posterior.searches import Searches
from thinveil.attacker.engines.protocol import Cohorts, Hints, Look, in_turn
from thinveil.attacker.evidence.sequential import until_sure
from thinveil.attacker.terms import Attack, Axis, Values, scaled
from thinveil.language.queries import About, Answers, Cells, Codes, QueryBatch
from thinveil.language.schema import MISSING


class Posterior(Coroutines):
    """An engine that carries beliefs; counts, limits and priors are searched group by group."""

    def limits(
        self, axes: Sequence[Axis], about: About, hints: Hints | None = None
    ) -> Attack[list[Axis]]:
        """Return axes with limits: beliefs need them."""
        priors = hints is not None and hints.priors
        return (yield from super().limits(axes, about, hints if priors else None))

    def values(
        self, groups: Cohorts, axes: Sequence[Axis], look: Look, hints: Hints | None = None
    ) -> Attack[list[Values]]:
        """Find all values of each group, one axis after the other."""
        if hints is not None and hints.priors:
            return (yield from super().values(groups, axes, look, hints))
        return (yield from in_turn(self.facts, groups, axes, look, self._column))

    def _column(self, cells: Cells, sizes: Codes, axis: Axis, look: Look) -> Attack[list[Values]]:
        """Find all values of each group on one axis; missing ones are counted first."""
        many = sizes.tolist()
        gone = [0] * len(many)
        if axis.missing:
            work = [Work(self.missing(s), group, axis, s) for group, s in enumerate(many)]
            about_none = look(0.0, [None] * len(many))
            gone = yield from side_by_side(
                self.facts, cells, work, lambda *_: about_none, self.care
            )
        missing: list[Values] = [[(MISSING, each)] if each else [] for each in gone]
        left = sizes - np.array(gone, np.int64)
        searches = Searches(self.facts, axis, left, self.care, found=missing)
        finds, total = searches.finds, max(int(left.sum()), 1)

        def about() -> About:
            return look(1 - finds.left / total, finds)

        codes = partial(scaled, width=axis.width)
        asking = Asking(searches, cells, axis.column, codes, about)
        yield from until_sure(self.facts, self.care, asking)
        return finds.values


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
        cell, column = self.searches.state.group[owner], np.full(len(owner), self.column)
        low, high = self.codes(low), self.codes(high)
        about = self.about()
        return QueryBatch(self.cells, cell, column, low, high, threshold, None, repeats, about)

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        """Take in the answers."""
        self.searches.learn(answers)
