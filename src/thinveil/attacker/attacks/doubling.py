"""Finding the bounds of an attribute by doubling (paper, footnote to Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thinveil.attacker.engines.coroutines import Work, exceeds, side_by_side
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.strategies import Strategy
from thinveil.attacker.terms import Attack, Axis, Rules, Search
from thinveil.errors import EvidenceError
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells
from thinveil.language.schema import LIMIT


def doubled(strategy: Strategy, rules: Rules, axis: Axis, s: int) -> Search[Axis]:
    """Find limits for s records: double [-1, 1) until it holds all values that exist."""
    if axis.missing:
        s -= yield from strategy.missing(rules, s)
    reach = 1
    while s and not (yield from exceeds(rules, -reach, reach, s - 1, s)):
        reach *= 2
        if reach * axis.width >= 2 * LIMIT:
            raise EvidenceError("the answers leave some records outside every range of values")
    ends = (1 - LIMIT) // axis.width, (LIMIT - 1) // axis.width
    return axis.within(max(-reach, ends[0]), min(reach - 1, ends[1]))


def with_limits(
    facts: PublicFacts,
    strategy: Strategy,
    axes: Sequence[Axis],
    check: Callable[[Sequence[Axis]], None],
    so_far: Callable[[], Any] = lambda: None,
    care: Care | None = None,
) -> Attack[list[Axis]]:
    """Return the axes with limits for the whole table, found by asking where not public.

    Args:
        facts: What is public.
        strategy: How missing values are counted.
        axes: The axes to be searched later.
        check: Refuses a search that would be too long; called before anything is asked, and
            again when all limits are known.
        so_far: What has been recovered while limits are searched for.
        care: How sure decisions must be.
    """
    check(axes)
    rules = Rules.of(facts)
    unknown = [axis for axis in axes if axis.lower is None]
    found = yield from side_by_side(
        facts,
        Cells.everything(),
        [Work(doubled(strategy, rules, axis, rules.n), 0, axis) for axis in unknown],
        lambda _, __: About("finding bounds", 0.0, so_far),
        care,
    )
    known = {axis.column: axis for axis in found}
    limited = [known.get(axis.column, axis) for axis in axes]
    check(limited)
    return limited
