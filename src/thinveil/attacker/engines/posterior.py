"""A search that carries beliefs, for mechanisms whose single answers tell little.

A large group of records is halved by its values until the parts are small; a small one is
searched for its largest value, then for how many records have it, and so on downwards. What
is believed is carried from answer to answer, so weak evidence is never thrown away. A belief
is only a guess, though: before anything counts as found it is proved by fresh answers, in a
test whose error is a share of the whole attack's. So the error bound does not rest on any
assumption about the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thinveil.attacker.engines.coroutines import Work, side_by_side
from thinveil.attacker.engines.searches import Searches
from thinveil.attacker.evidence.error_budget import Care, risky
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.strategies import Strategy
from thinveil.attacker.terms import Attack, Axis, Rules, Values, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, QueryBatch
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

    Args:
        facts: What is public.
        cells: The groups, one cell each.
        axis: The attribute.
        sizes: How many records each group has; none of them is missing a value.
        care: How sure decisions must be.
        about: Called each round with the settled share and the values found so far.
        found: What is known of each group already; what is found is added there.
    """
    searches = Searches(facts, axis, sizes, care, found)
    total = max(int(sizes.sum()), 1)
    while searches.running:
        owner, low, high, threshold, repeats = searches.questions()
        batch = QueryBatch(
            cells,
            searches.group[owner],
            np.full(len(owner), axis.column),
            scaled(low, axis.width),
            scaled(high, axis.width),
            threshold,
            repeats=repeats,
            about=risky(about(1 - searches.left / total, searches.finished()), care),
        )
        if facts.policies.cache and not facts.claim.reads_exactly:
            batch = varied(facts, batch, repeats, care)
        answers = yield batch
        searches.learn(threshold, answers, repeats)
    return searches.found
