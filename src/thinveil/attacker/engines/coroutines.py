"""Small searches as generators of single questions, and running many of them at once.

`side_by_side` merges the questions of many searches (coroutines) into batches, a round each. A
`Kit` is what a strategy searches one group by, and `Coroutines` the engine made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress
from typing import Any, Final

import numpy as np

from thinveil.attacker.doubling import doubled, within
from thinveil.attacker.engines.protocol import Cohorts, Hints, Look
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import Settling, settling, until_sure
from thinveil.attacker.terms import (
    NOISY,
    Attack,
    Axis,
    Question,
    Rules,
    Search,
    Values,
    explained,
    scaled,
)
from thinveil.errors import TooManyQueries
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Answers, Cells, Codes, Flags, QueryBatch
from thinveil.language.schema import INFINITE, LOWEST, MISSING

MOST_QUERIES: Final = 10_000_000
"""What a strategy may ask without an explicit go-ahead."""
WHOLE_CELL: Final = Axis(WHOLE, 0, 0)
"""Where a question is about a cell as it is."""


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


@dataclass(slots=True)
class Work:
    """One search and where it looks."""

    search: Search[Any]
    cell: int
    axis: Axis
    weight: int = 1


def side_by_side(
    facts: PublicFacts, cells: Cells, work: Iterable[Work], look: Look, care: Care | None = None
) -> Attack[list[Any]]:
    """Run searches together, one batch a round, and return their results in order.

    `look` is called each round with the settled share of the weight and the results so far
    (None where a search still runs).
    """
    care = care or Care()
    rounds = _Rounds(cells, work, look, settling(facts, care))
    yield from until_sure(facts, care, rounds)
    return rounds.results


class _Rounds:
    """Searches that wait for an answer, and what each of them asked. Conforms to `Inquiry`."""

    def __init__(self, cells: Cells, work: Iterable[Work], look: Look, tally: Settling) -> None:
        self.results: list[Any] = []
        self._cells, self._look, self._tally = cells, look, tally
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
        self._send = [each.search.send for _, each in self._running]
        where = [(each.cell, each.axis.column, each.axis.width) for _, each in self._running]
        self._where = np.ascontiguousarray(np.array(where, np.int64).reshape(-1, 3).T)
        self._coarse = bool((self._where[2] != 1).any())
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
        cell, column, width = self._where
        if self._coarse:
            low, high = scaled(low, width), scaled(high, width)
        about = self._look(self._settled / self._total, self.results)
        repeats = self._tally.repeats()
        return QueryBatch(
            self._cells, cell, column, low, high, threshold, repeats=repeats, about=about
        )

    def learn(self, batch: QueryBatch, answers: Answers) -> None:
        decided, zone = self._tally.add(batch, answers)
        asked, send, ended = self._asked, self._send, []
        for place in np.flatnonzero(decided).tolist():
            try:
                asked[place] = send[place](zone[place])
            except StopIteration as stop:
                self._end(*self._running[place], stop.value)
                ended.append(place)
        if ended:
            keep = np.ones(len(decided), np.bool_)
            keep[ended] = False
            stay = keep.tolist()
            self._running = list(compress(self._running, stay))
            self._send, self._asked = list(compress(send, stay)), list(compress(asked, stay))
            self._where, decided = self._where[:, keep], decided[keep]
            self._tally.keep(keep)
        self._tally.begin(decided)


@dataclass(frozen=True, slots=True)
class Kit:
    """What a strategy searches a single group by."""

    name: str
    count: Callable[[Rules, int, int, int], Search[int]]  # in a range, given the most there are
    values: Callable[[Rules, Axis, int, Values], Search[Values]]  # all of a group of records
    only: Callable[[Rules, Axis], Search[int]]  # the value of one known record
    most_queries: Callable[[Rules, Sequence[Axis], int], int] | None = None  # a bound, if known
    lengthy: bool = False  # whether the bound may be so large that a go-ahead is needed
    asks_twice: bool = False  # whether membership asks the printed pair of questions


class Coroutines:
    """An engine that searches each group by itself, by a kit, all of them side by side.

    `care` says how sure decisions must be, where single answers do not tell.
    """

    def __init__(self, facts: PublicFacts, care: Care, kit: Kit) -> None:
        self.facts, self.care, self.kit = facts, care, kit
        self.rules = Rules.of(facts)

    def check(self, axes: Sequence[Axis], groups: int) -> None:
        """Refuse to start what would ask more than ten million queries."""
        if self.kit.most_queries is None or not self.kit.lengthy:
            return
        known = [axis for axis in axes if axis.lower is not None]
        queries = self.kit.most_queries(self.rules, known, groups)
        if queries > MOST_QUERIES:
            raise TooManyQueries(
                f"the {self.kit.name} strategy may ask up to {queries:,} queries here, above "
                f"{MOST_QUERIES:,}: add --force to go ahead, or use --strategy published"
            )

    def limits(
        self, axes: Sequence[Axis], about: About, hints: Hints | None = None
    ) -> Attack[list[Axis]]:
        """Return axes with limits; those of one person are best found with the value."""
        if hints is not None and hints.people == 1 and not self.kit.lengthy:
            return list(axes)
        unknown = [axis for axis in axes if axis.lower is None]
        work = [Work(self.limits_of(each, self.rules.n), 0, each) for each in unknown]
        everything = Cells.everything()
        found = yield from side_by_side(self.facts, everything, work, lambda *_: about, self.care)
        known = {axis.column: axis for axis in found}
        return [known.get(axis.column, axis) for axis in axes]

    def limits_of(self, axis: Axis, s: int) -> Search[Axis]:
        """Find limits for s records: double [-1, 1) until it holds all values that exist."""
        if axis.missing:
            s -= yield from self.missing(s)

        def beyond(reach: int) -> Search[bool]:
            return s > 0 and not (yield from exceeds(self.rules, -reach, reach, s - 1, s))

        return within(axis, (yield from doubled(axis.width, beyond)))

    def values(
        self, groups: Cohorts, axes: Sequence[Axis], look: Look, hints: Hints | None = None
    ) -> Attack[list[Values]]:
        """Find all values of each group on each axis, all of them side by side."""
        sizes = zip(groups.rows.tolist(), groups.sizes.tolist(), strict=True)
        jobs = [(row, size, axis) for row, size in sizes for axis in axes]
        found: list[Values] = [[] for _ in jobs]  # as they come, for those who look on
        search = self.values_of if hints is None else partial(self._of_person, hints)
        work = [
            Work(search(axis, size, mine), row, axis, size)
            for (row, size, axis), mine in zip(jobs, found, strict=True)
        ]
        return (
            yield from side_by_side(
                self.facts, groups.cells, work, lambda done, _: look(done, found), self.care
            )
        )

    def values_of(self, axis: Axis, s: int, found: Values) -> Search[Values]:
        """Find the values of s records on an axis; missing ones are counted first."""
        if axis.missing or (self.rules.bounded and axis.size == 1):
            return self._with_missing(axis, s, found)
        return self.kit.values(self.rules, axis, s, found)

    def _with_missing(self, axis: Axis, s: int, found: Values) -> Search[Values]:
        """Count missing values before all others.

        What is constant in a bounded universe is not asked: a curator would answer it exactly.
        """
        if self.rules.bounded and axis.size == 1:
            found.append((MISSING if axis.missing else axis.limits[0], s))
            return found
        if gone := (yield from self.missing(s)):
            found.append((MISSING, gone))
        if s > gone:
            yield from self.kit.values(self.rules, axis, s - gone, found)
        return found

    def missing(self, s: int) -> Search[int]:
        """Count the missing values of s records; one question tells whether there are any."""
        if not (yield from exceeds(self.rules, MISSING, LOWEST, 0, s)):
            return 0
        if s == 1:
            return 1
        return (yield from self.kit.count(self.rules, MISSING, LOWEST, s))

    def _of_person(self, hints: Hints, axis: Axis, s: int, found: Values) -> Search[Values]:
        """Find the values of the s records that fit a person."""
        if axis.column in hints.priors:
            axis = yield from self._narrowed(axis, s, hints.priors[axis.column])
        if axis.lower is None:
            axis = yield from self.limits_of(axis, s)
        lower, upper = axis.limits
        if axis.size == 1:
            found.append((MISSING if axis.missing else lower, s))
        elif s > 1 or axis.missing:
            yield from self.values_of(axis, s, found)
        elif hints.shortcut and axis.size == 2:
            high = yield from exceeds(self.rules, upper, upper + 1, 0, 1)
            found.append((upper if high else lower, 1))
        else:
            found.append(((yield from self.kit.only(self.rules, axis)), 1))
        return found

    def _narrowed(self, axis: Axis, s: int, prior: tuple[int, int]) -> Search[Axis]:
        """Return the axis within prior bounds, if all s records are found to lie there."""
        low, high = (end // axis.width for end in prior)
        if axis.lower is not None and axis.upper is not None:
            low, high = max(low, axis.lower), min(high, axis.upper)
        if low > high or not (axis.missing or (low, high) != (axis.lower, axis.upper)):
            return axis
        if (yield from exceeds(self.rules, low, high + 1, s - 1, s)):
            return replace(axis.within(low, high), missing=False)
        return axis

    def more_than(self, groups: Cohorts, steps: Sequence[int], look: Look) -> Attack[Flags]:
        """Tell whether groups hold more records than each step says, one question each."""
        told = yield from self._each(groups, partial(self._more, steps), look)
        return np.array(told, np.bool_).reshape(len(told), len(steps))

    def _more(self, steps: Sequence[int]) -> Search[list[bool]]:
        told: list[bool] = []
        for step in steps:
            told += [(yield from exceeds(self.rules, MISSING, INFINITE, step))]
        if self.kit.asks_twice and steps == (0,) and self.rules.k and not self.rules.hidden:
            zone = yield MISSING, INFINITE, self.rules.k - 1  # as printed; the first one decides
            told[0] = told[0] or zone != NOISY
        return told

    def count(self, groups: Cohorts, look: Look, few: bool = False) -> Attack[Codes]:
        """Count the records of groups; where few are expected, two questions settle most."""
        told = yield from self._each(groups, partial(self._count, few), look)
        return np.array(told, np.int64)

    def _count(self, few: bool) -> Search[int]:
        if few:
            some, several = yield from self._more((0, 1))
            if not (some and several):
                return int(some)
        return (yield from self.kit.count(self.rules, MISSING, INFINITE, self.rules.n))

    def _each(
        self, groups: Cohorts, make: Callable[[], Search[Any]], look: Look
    ) -> Attack[list[Any]]:
        work = [
            Work(explained(self.rules, make()), row, WHOLE_CELL) for row in groups.rows.tolist()
        ]
        return (yield from side_by_side(self.facts, groups.cells, work, look, self.care))
