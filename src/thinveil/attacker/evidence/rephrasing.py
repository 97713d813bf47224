"""Asking the same in ever new words, against curators who cache their answers.

A curator who caches gives the same words the same answer, so repeating them tells nothing.
But a range that holds no record may be added to any predicate, or left out of it: the words
change, the meaning stays. In an unbounded universe such ranges are known from the start. In a
bounded one the attack looks for one first, and asks each of many nested ranges once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from thinveil.attacker.evidence.error_budget import Care, Empty, risky
from thinveil.attacker.evidence.likelihood import row_loglik
from thinveil.attacker.terms import Attack
from thinveil.errors import Undecided, UsageError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Cells, Codes, Flags, Floats, QueryBatch
from thinveil.language.schema import INFINITE, LIMIT, MISSING

_T = TypeVar("_T")

_NESTED: Final = 512
_FEWEST: Final = 64
_TAILS: Final = (2, 4, 8, 16)
_LENGTHS: Final = 4096


def leaving(facts: PublicFacts, care: Care, batch: QueryBatch) -> QueryBatch:
    """Return a batch as it leaves for the curator: in new words, where answers are cached.

    What wants a plain number of answers, one, is told by it: such a batch leaves as it is.
    """
    repeats = batch.repeats
    if isinstance(repeats, int):
        return batch
    batch = replace(batch, about=risky(batch.about, care))
    if not facts.policies.cache or facts.claim.reads_exactly:
        return batch
    assert batch.offsets is None, "unions cannot be put in new words"
    return varied(facts, batch, repeats, care)


def varied(facts: PublicFacts, batch: QueryBatch, repeats: Codes, care: Care) -> QueryBatch:
    """Return a batch that asks each question so many times, never in the same words.

    Not even a later test of the same question uses the same words again: a cached answer
    would be taken for one drawn at the loss that is offered then.

    Raises:
        UsageError: In a bounded universe, no range is known to be empty.
        Undecided: All words that it offers are used up.
    """
    row = np.repeat(np.arange(batch.questions), repeats)
    word = care.new_words(len(row)) + np.arange(len(row))
    if facts.claim.universe == "bounded":
        if care.empty is None:
            raise UsageError(
                "the curator caches its answers, this mechanism needs repeated ones, and in a "
                "bounded universe no range is known to be empty"
            )
        return _without(batch, row, care.empty, word)
    return _beyond(batch, row, LIMIT + 2 * word)


def _beyond(batch: QueryBatch, row: Codes, beyond: Codes) -> QueryBatch:
    """Add to each question a range of codes that no value has: they end below 2^62."""
    cells = batch.cells
    cell, column = np.repeat(batch.cell[row], 2), np.repeat(batch.column[row], 2)
    low, high = np.repeat(batch.low[row], 2), np.repeat(np.minimum(batch.high[row], LIMIT), 2)
    extra = np.arange(len(cell)) % 2 == 1
    low[extra], high[extra] = beyond, beyond + 1
    if (whole := column == WHOLE).any():
        # the whole of a cell is varied by the whole of another cell, which is empty
        names = beyond[whole[extra]]
        shape = len(names), len(cells.columns)
        ends = np.full(shape, MISSING), np.full(shape, INFINITE)
        ends[0][:, 0], ends[1][:, 0] = names, names + 1
        cell[extra & whole] = len(cells) + np.arange(len(names))
        inside = np.minimum(cells.high, LIMIT)
        cells = Cells(cells.columns, np.vstack([cells.low, ends[0]]), np.vstack([inside, ends[1]]))
    threshold, offsets = batch.threshold[row], np.arange(0, len(cell) + 1, 2)
    return QueryBatch(cells, cell, column, low, high, threshold, offsets, about=batch.about)


def _without(batch: QueryBatch, row: Codes, empty: Empty, word: Codes) -> QueryBatch:
    """Leave part of an empty range out of each question, and add what lies outside of it."""
    first, end = _part(empty, word)
    columns = sorted({*batch.columns(), empty.column})
    low, high = (ends[row] for ends in batch.ranges(columns))
    place = columns.index(empty.column)
    start, stop = low[:, place], high[:, place]
    left, right = np.maximum(first, start), np.maximum(np.minimum(end, stop), start)
    apart = left >= right  # nothing of the part lies inside: the question stays whole
    # before the part, after it, and what of the part lies outside on either side
    anywhere = np.full_like(low, MISSING), np.full_like(low, INFINITE)
    lows = np.stack([low, low, anywhere[0], anywhere[0]], axis=1)
    highs = np.stack([high, high, anywhere[1], anywhere[1]], axis=1)
    starts = start, np.where(apart, stop, right), first, np.maximum(first, stop)
    stops = np.where(apart, stop, left), stop, np.minimum(end, start), end
    lows[:, :, place], highs[:, :, place] = np.stack(starts, axis=1), np.stack(stops, axis=1)
    kept: Flags = np.all(lows < highs, axis=2)
    nothing = ~kept.any(axis=1)  # the question lies inside the part: so it is empty as well
    lows[nothing, 2, place], highs[nothing, 2, place] = first[nothing], end[nothing]
    kept[nothing, 2] = True
    cells = Cells(tuple(columns), lows[kept], highs[kept])
    cell, threshold = np.arange(len(cells)), batch.threshold[row]
    column, low, high = (np.full(len(cells), each) for each in (WHOLE, MISSING, INFINITE))
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return QueryBatch(cells, cell, column, low, high, threshold, offsets, about=batch.about)


def _part(empty: Empty, word: Codes) -> tuple[Codes, Codes]:
    """Return part number `word` of an empty range: all short ones first, then longer ones."""
    size = empty.high - empty.low
    lengths = np.arange(1, min(size, _LENGTHS) + 1)
    before = np.cumsum(size - lengths + 1)
    if word[-1] >= before[-1]:
        raise Undecided(
            "questions could not be repeated often enough: the curator caches its answers, and the "
            "range that is known to be empty offers no more than "
            f"{int(before[-1]):,} different wordings"
        )
    place = np.searchsorted(before, word, side="right")
    start = empty.low + word - np.where(place > 0, before[np.maximum(place - 1, 0)], 0)
    return start, start + lengths[place]


def worded(
    facts: PublicFacts, care: Care, attack: Attack[_T], nothing: Callable[[], Any] = lambda: None
) -> Attack[_T]:
    """Run an attack, after looking for an empty range where it will need one for its words.

    `nothing` returns what is known before the attack has begun.
    """
    if facts.policies.cache and not facts.claim.reads_exactly and facts.claim.universe == "bounded":
        care.empty = yield from find_empty(facts, care, nothing)
    return (yield from attack)


def find_empty(
    facts: PublicFacts, care: Care, nothing: Callable[[], Any] = lambda: None
) -> Attack[Empty]:
    """Find a range that holds no record, by one question on each of many nested ranges.

    If the innermost range held a record, all would. Each question is asked once, so a cache
    does not matter, and together they are a test as good as repeats of one question.

    Raises:
        Undecided: No column has an empty range at either end that is wide enough.
    """
    claim = facts.claim
    sized = sorted(((each.size or 0, column) for column, each in enumerate(facts.schema)))
    if claim.hides_direction and not claim.counts:
        sized = []  # none and all look alike
    for size, column in reversed(sized):
        attribute = facts.schema[column]
        lower, upper = attribute.lower, attribute.upper
        if lower is None or upper is None or size < 2 * _FEWEST:
            continue
        for share in _TAILS:
            tail = (upper + 1 - lower) // share
            nested = min(_NESTED, tail // 2)
            if nested < _FEWEST:
                break
            inner = np.arange(nested)
            for low, high in (
                (upper + 1 - tail + inner, np.full(nested, upper + 1)),
                (np.full(nested, lower), lower + tail - inner),
            ):
                about = About(f"looking for an empty range: {attribute.name}", 0.0, nothing)
                if (yield from _holds_none(facts, care, column, low, high, about)):
                    return Empty(column, int(low[-1]), int(high[-1]))
    raise Undecided(
        "questions could not be repeated: the curator caches its answers, this mechanism needs "
        "repeated ones, and no range was found to be empty that could change the words"
    )


def _holds_none(
    facts: PublicFacts, care: Care, column: int, low: Codes, high: Codes, about: About
) -> Attack[bool]:
    """Test whether the last of nested ranges, from wide to narrow, holds no record."""
    claim, k = facts.claim, facts.claim.reach
    tests = [(k, 1)]
    if claim.hides_direction:
        tests.append((k - 1, 2 * k))  # rules out counts that are far above
    b, other = np.repeat(np.array(tests), len(low), axis=0).T
    none, columns = np.zeros_like(b), np.full(len(b), column)
    lows, highs = np.tile(low, len(tests)), np.tile(high, len(tests))
    about = risky(about, care)
    answers = yield QueryBatch(Cells.everything(), none, columns, lows, highs, b, about=about)
    told = row_loglik(claim, np.stack([none, other], axis=1), b, facts.records, answers)
    lead = (told[:, 0] - told[:, 1]).reshape(len(tests), len(low))
    return bool(_least(lead) >= care.nats(1))


def _least(lead: Floats) -> float:
    """Return the least that nested questions speak for none, whatever the truth may be.

    Counts fall from range to range. Where both tests are asked, the wider ranges may hold so
    many that the second test is the one to fail, up to some range, and the first from there.
    """
    if len(lead) == 1:
        return float(lead[0].sum())
    first, second = lead
    from_here = np.concatenate([[0.0], np.cumsum(first[::-1])])[::-1]
    up_to_here = np.concatenate([[0.0], np.cumsum(second)])
    return float((from_here + up_to_here).min())
