"""The picture behind the attacks: one predicate, asked at one threshold after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from thinveil.attacker.findings import TableFound
from thinveil.attacker.terms import Attack
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Box, Floats, batch_of
from thinveil.language.schema import MISSING

_FEW: Final = 8  # a count that leaves room for thresholds on both sides, and is easily drawn
_AROUND: Final = 4
_STEPS: Final = 13


def staircase(box: Box, thresholds: Sequence[int], repeats: int) -> Attack[Floats]:
    """Ask about one box at all thresholds; return the answers, a row for each threshold."""
    answers = yield batch_of(
        [([box], threshold) for threshold in thresholds], repeats, About("a staircase")
    )
    return answers.values.reshape(len(thresholds), repeats)


def worth_showing(found: TableFound | None, facts: PublicFacts) -> tuple[int, int, int] | None:
    """Choose a value whose count was found, for its staircase: (column, code, count).

    The smallest count that has room for thresholds on both sides is taken, so that the
    picture is easy to read. None where no count was found.
    """
    if found is None or found.distinct:
        return None
    room = max(_FEW, facts.claim.reach + _AROUND)
    best: tuple[int, int, int] | None = None
    for place, column in enumerate(found.columns):
        some = found.known > place
        if found.widths[place] != 1 or not some.any():
            continue
        values, where = np.unique(found.codes[some, place], return_inverse=True)
        counts = np.bincount(where, weights=found.counts[some]).astype(np.int64)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            fits = room <= count <= facts.records - room and value != MISSING
            if fits and (best is None or count < best[2]):
                best = column, value, count
    return best


def thresholds_around(count: int | None, facts: PublicFacts) -> list[int]:
    """Return thresholds on both sides of a count; where none is known, all over the table."""
    if count is None:
        return sorted(set(np.linspace(0, facts.records - 1, _STEPS).astype(int).tolist()))
    far = max(facts.claim.reach, 1) + _AROUND
    return list(range(max(0, count - far), min(facts.records, count + far)))
