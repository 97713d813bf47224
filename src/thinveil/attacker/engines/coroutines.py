"""Small searches as generators of single questions, and running many of them at once.

`side_by_side` merges the questions of many searches (coroutines) into batches, a round each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import Settling, settling, until_sure
from thinveil.attacker.terms import NOISY, Attack, Axis, Question, Rules, Search, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Answers, Cells, QueryBatch

_T = TypeVar("_T")


def exceeds(rules: Rules, low: int, high: int, t: int, most: int | None = None) -> Search[bool]:
    """Tell whether the range, which holds at most `most` records, holds more than t.

    One question is enough for every n >= 2k: the upper boundary where it exists,
    else the lower one. Where the direction is hidden it may take a few more.
    """
    if rules.hidden:
        return (yield from _exceeds_hidden(rules, low, high, t, most))
    return rules.exceeds(t, (yield low, high, rules.threshold(t)))


def _exceeds_hidden(rules: Rules, low: int, high: int, t: int, most: int | None) -> Search[bool]:
    """Scan windows of 2k counts from below until t is passed or the noise is found."""
    n, k = rules.n, rules.k
    most = n if most is None else min(most, n)
    if t >= most:
        return False
    start = 0
    while most > t + 2 * k and start + k <= n:
        if start > t:
            return True
        if (yield low, high, start + k - 1) == NOISY:
            most = start + 2 * k - 1
            if most <= t:
                return False
            break
        start += 2 * k
    if start > t:
        return True
    return (yield from reaches(rules, low, high, t + 1, start))


def reaches(rules: Rules, low: int, high: int, t: int, fewest: int) -> Search[bool]:
    """Tell without direction whether c >= t, where `fewest` <= c < t + 2k is known."""
    n, k = rules.n, rules.k
    if t + k <= n:
        return (yield low, high, t + k - 1) == NOISY
    if fewest < t - 2 * k and (yield low, high, n - 1) != NOISY:
        return False  # fewer than n - k records, and t is more than that
    return (yield low, high, t - 1 - k) != NOISY


def settled(value: _T) -> Search[_T]:
    """Return a search that has nothing to ask: its result is known."""
    return value
    yield


@dataclass(slots=True)
class Work:
    """One search and where it looks."""

    search: Search[Any]
    cell: int
    axis: Axis
    weight: int = 1


def side_by_side(
    facts: PublicFacts,
    cells: Cells,
    work: Iterable[Work],
    about: Callable[[float, list[Any]], About],
    care: Care | None = None,
) -> Attack[list[Any]]:
    """Run searches together, one batch a round, and return their results in order.

    Args:
        facts: What is public, for reading answers.
        cells: The groups of records that the searches look at.
        work: The searches.
        about: Called each round with the settled share of the weight and the results so
            far (None where a search still runs).
        care: How sure decisions must be, where single answers do not tell.
    """
    care = care or Care()
    rounds = _Rounds(cells, work, about, settling(facts, care))
    yield from until_sure(facts, care, rounds)
    return rounds.results


class _Rounds:
    """Searches that wait for an answer, and what each of them asked. Conforms to `Inquiry`."""

    def __init__(
        self,
        cells: Cells,
        work: Iterable[Work],
        about: Callable[[float, list[Any]], About],
        tally: Settling,
    ) -> None:
        self.results: list[Any] = []
        self._cells, self._about, self._tally = cells, about, tally
        self._running: list[tuple[int, Work]] = []
        self._asked: list[Question] = []
        self._settled = self._total = 0
        for number, each in enumerate(work):
            self.results.append(None)
            self._total += each.weight
            try:
                self._asked.append(next(each.search))
                self._running.append((number, each))
            except StopIteration as stop:
                self._end(number, each, stop.value)
        self._senders = [each.search.send for _, each in self._running]
        where = [(each.cell, each.axis.column, each.axis.width) for _, each in self._running]
        self._where = np.array(where, np.int64).reshape(-1, 3)
        tally.begin(np.ones(len(where), np.bool_))

    def _end(self, number: int, work: Work, result: Any) -> None:
        self.results[number] = result
        self._settled += work.weight

    @property
    def running(self) -> bool:
        return len(self._running) > 0

    def ask(self) -> QueryBatch:
        flat = np.fromiter(chain.from_iterable(self._asked), np.int64, 3 * len(self._asked))
        low, high, threshold = np.ascontiguousarray(flat.reshape(-1, 3).T)
        cell, column, width = np.ascontiguousarray(self._where.T)
        if (width != 1).any():
            low, high = scaled(low, width), scaled(high, width)
        about = self._about(self._settled / self._total, self.results)
        repeats = self._tally.repeats()
        return QueryBatch(
            self._cells, cell, column, low, high, threshold, repeats=repeats, about=about
        )

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        decided, zone = self._tally.add(batch, answers)
        ended = []
        for place in np.flatnonzero(decided).tolist():
            try:
                self._asked[place] = self._senders[place](zone[place])
            except StopIteration as stop:
                self._end(*self._running[place], stop.value)
                ended.append(place)
        if ended:
            keep = np.ones(len(decided), np.bool_)
            keep[ended] = False
            stay = np.flatnonzero(keep).tolist()
            self._running = [self._running[place] for place in stay]
            self._senders = [self._senders[place] for place in stay]
            self._asked = [self._asked[place] for place in stay]
            self._where, decided = self._where[keep], decided[keep]
            self._tally.keep(keep)
        self._tally.begin(decided)
