"""Small searches as generators of single questions, and running many of them at once.

`side_by_side` merges the questions of many searches (coroutines) into batches, a round each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from thinveil.attacker.evidence.error_budget import Care, risky
from thinveil.attacker.evidence.likelihood import zones
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.evidence.sequential import settling
from thinveil.attacker.terms import NOISY, Attack, Axis, Question, Rules, Search, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, QueryBatch

_T = TypeVar("_T")


def exceeds(rules: Rules, low: int, high: int, t: int, most: int | None = None) -> Search[bool]:
    """Tell whether the range, which holds at most `most` records, holds more than t.

    One question for every n >= 2k (NOTES, section 1): the upper boundary where it exists,
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
    results: list[Any] = []
    running: list[tuple[int, Work]] = []
    asked: list[Question] = []
    settled = total = 0
    for number, each in enumerate(work):
        results.append(None)
        total += each.weight
        try:
            asked.append(next(each.search))
            running.append((number, each))
        except StopIteration as stop:
            results[number] = stop.value
            settled += each.weight
    senders = [each.search.send for _, each in running]
    cell = np.array([each.cell for _, each in running], np.int64)
    column = np.array([each.axis.column for _, each in running], np.int64)
    width = np.array([each.axis.width for _, each in running], np.int64)
    if not facts.claim.reads_exactly:
        waiting = _Waiting(results, running, asked, cell, column, width, settled, total)
        yield from _repeated(facts, cells, waiting, about, care or Care())
        return results
    while running:
        batch = _batch(cells, cell, column, width, asked, about(settled / total, results))
        answers = yield batch
        asked = []
        ask = asked.append
        ended = []
        told = zip(senders, zones(facts.claim, answers), strict=True)
        for place, (send, zone) in enumerate(told):
            try:
                ask(send(zone))
            except StopIteration as stop:
                number, each = running[place]
                results[number] = stop.value
                settled += each.weight
                ended.append(place)
        if ended:
            keep = np.ones(len(running), np.bool_)
            keep[ended] = False
            cell, column, width = cell[keep], column[keep], width[keep]
            gone = set(ended)
            senders = [each for place, each in enumerate(senders) if place not in gone]
            running = [each for place, each in enumerate(running) if place not in gone]
    return results


@dataclass(slots=True)
class _Waiting:
    """Searches that wait for an answer, and what each of them asked."""

    results: list[Any]
    running: list[tuple[int, Work]]
    asked: list[Question]
    cell: Codes
    column: Codes
    width: Codes
    settled: int
    total: int


def _repeated(
    facts: PublicFacts,
    cells: Cells,
    work: _Waiting,
    about: Callable[[float, list[Any]], About],
    care: Care,
) -> Attack[None]:
    """Run searches whose questions take several answers each; each goes on when it can."""
    tally = settling(facts, care)
    tally.begin(np.ones(len(work.running), np.bool_))
    cached = facts.policies.cache
    while work.running:
        told = about(work.settled / work.total, work.results)
        plain = _batch(cells, work.cell, work.column, work.width, work.asked, risky(told, care))
        repeats = tally.repeats()
        asks = varied(facts, plain, repeats, care) if cached else replace(plain, repeats=repeats)
        answers = yield asks
        decided, zone = tally.add(plain.threshold, answers, repeats)
        keep = np.ones(len(work.running), np.bool_)
        for place in np.flatnonzero(decided).tolist():
            number, each = work.running[place]
            try:
                work.asked[place] = each.search.send(zone[place])
            except StopIteration as stop:
                work.results[number] = stop.value
                work.settled += each.weight
                keep[place] = False
        if not keep.all():
            stay = np.flatnonzero(keep).tolist()
            work.running = [work.running[place] for place in stay]
            work.asked = [work.asked[place] for place in stay]
            work.cell, work.column, work.width = (
                work.cell[keep],
                work.column[keep],
                work.width[keep],
            )
            tally.keep(keep)
        tally.begin(decided[keep])


def _batch(
    cells: Cells, cell: Codes, column: Codes, width: Codes, asked: Sequence[Question], about: About
) -> QueryBatch:
    flat = np.fromiter(chain.from_iterable(asked), np.int64, 3 * len(asked))
    low, high, threshold = np.ascontiguousarray(flat.reshape(-1, 3).T)
    if (width != 1).any():
        low, high = scaled(low, width), scaled(high, width)
    return QueryBatch(cells, cell, column, low, high, threshold, about=about)
