"""Attacks on people: are they in the table, are they unique, what are their values?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from thinveil.attacker.attacks.doubling import doubled, with_limits
from thinveil.attacker.attacks.table import WHOLE_CELL, about_depth, cell_of, column_found
from thinveil.attacker.engines.coroutines import Work, exceeds, settled, side_by_side
from thinveil.attacker.engines.posterior.engine import columns_of
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.findings import PeopleFound, PersonFound
from thinveil.attacker.strategies import Strategy
from thinveil.attacker.terms import NOISY, Attack, Axis, Person, Rules, Search, Values, axes_of
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells
from thinveil.language.schema import INFINITE, MISSING


def membership(
    facts: PublicFacts, strategy: Strategy, people: Sequence[Person], care: Care | None = None
) -> Attack[PeopleFound]:
    """Tell for each person whether anybody in the table fits (Example 3).

    One question decides (erratum 7). A strategy that follows the paper asks its two under
    protection, b = k and b = k - 1, and demands the boundary between them.
    """
    return _each(facts, people, "membership", lambda rules: _member(strategy, rules), care)


def _member(strategy: Strategy, rules: Rules) -> Search[PersonFound]:
    present = yield from exceeds(rules, MISSING, INFINITE, 0)
    if strategy.asks_twice and rules.k and not rules.hidden:
        zone = yield MISSING, INFINITE, rules.k - 1  # as printed; the first question decides
        present = present or zone != NOISY
    return PersonFound(present=present)


def uniqueness(
    facts: PublicFacts,
    people: Sequence[Person],
    present: bool = False,
    care: Care | None = None,
) -> Attack[PeopleFound]:
    """Tell for each person whether exactly one record fits (Example 2).

    Two questions, or one if the person is known to be present. Right also where the
    printed pair fails (erratum 7).
    """
    return _each(facts, people, "uniqueness", lambda rules: _unique(rules, present), care)


def _unique(rules: Rules, present: bool) -> Search[PersonFound]:
    if not present:
        present = yield from exceeds(rules, MISSING, INFINITE, 0)
    several = yield from exceeds(rules, MISSING, INFINITE, 1)
    return PersonFound(present=present, unique=present and not several)


def _each(
    facts: PublicFacts, people: Sequence[Person], label: str, make: Any, care: Care | None
) -> Attack[PeopleFound]:
    """Run one small search on the cell of each person."""
    care = care or Care()
    rules = Rules.of(facts)
    cells, constant = _cells(facts, people)
    results = yield from side_by_side(
        facts,
        cells,
        [
            Work(make(rules) if always is None else _certain(rules, always), row, WHOLE_CELL)
            for row, always in enumerate(constant)
        ],
        lambda done, results: About(
            label, done, lambda: PeopleFound(tuple(each or PersonFound() for each in results))
        ),
        care,
    )
    return PeopleFound(tuple(results))


def _certain(rules: Rules, always: int) -> Search[PersonFound]:
    """Return without asking what holds for a predicate that is constant."""
    matches = always * rules.n
    return settled(PersonFound(present=matches > 0, unique=matches == 1, matches=matches))


def _cells(facts: PublicFacts, people: Sequence[Person]) -> tuple[Cells, list[int | None]]:
    return cell_of(
        facts, [{column: (code, code + 1) for column, code in who.items()} for who in people]
    )


def attributes(
    facts: PublicFacts,
    strategy: Strategy,
    people: Sequence[Person],
    wanted: Sequence[int],
    *,
    widths: dict[int, int] | None = None,
    priors: dict[int, tuple[int, int]] | None = None,
    assume_unique: bool = False,
    shortcut: bool = True,
    force: bool = False,
    care: Care | None = None,
) -> Attack[PeopleFound]:
    """Find unknown attributes of people from the known ones (Example 4).

    Args:
        facts: What is public.
        strategy: How values are searched for.
        people: For each person, the codes of known columns; the same columns for all.
        wanted: The columns to find.
        widths: A coarser precision for some columns.
        priors: Bounds, in codes, that the value is believed to lie in. They are checked by
            one question and dropped for a person where they fail.
        assume_unique: Whether every person is known to be in the table, and alone.
        shortcut: Whether a binary attribute of a unique person is a membership question.
        force: Whether to go ahead with a very long attack.
        care: How sure decisions must be.
    """
    care = care or Care()
    rules = Rules.of(facts)
    axes = [axes_of(facts, widths)[column] for column in wanted]
    by_beliefs = strategy.beliefs and not priors
    if len(people) > 1 or strategy.estimate is not None or by_beliefs:

        def check(axes: Sequence[Axis]) -> None:
            for axis in axes:
                strategy.check(rules, [axis], len(people), force)

        axes = yield from with_limits(facts, strategy, axes, check, care=care)
    if assume_unique:
        matched = [PersonFound(present=True, unique=True, matches=1) for _ in people]
    else:
        matched = yield from _matches(facts, strategy, people, care)
    cells, _ = _cells(facts, people)
    sizes = [person.matches or 0 for person in matched]

    def so_far(results: Sequence[Any]) -> PeopleFound:
        per_person = iter(results)
        found = []
        for person in matched:
            mine = [(axis, next(per_person)) for axis in axes] if person.matches else []
            known = [(axis, result) for axis, result in mine if result is not None]
            found.append(
                replace(
                    person,
                    values=tuple(column_found(axis, values) for axis, (values, _) in known),
                    prior_failed=tuple(axis.column for axis, (_, held) in known if not held),
                )
            )
        return PeopleFound(tuple(found))

    if by_beliefs:
        results = yield from _by_beliefs(facts, strategy, cells, axes, sizes, care, so_far)
        return so_far(results)
    results = yield from side_by_side(
        facts,
        cells,
        [
            Work(
                _value(strategy, rules, axis, size, (priors or {}).get(axis.column), shortcut),
                row,
                axis,
            )
            for row, size in enumerate(sizes)
            if size
            for axis in axes
        ],
        lambda done, results: About("attributes", done, lambda: so_far(results)),
        care,
    )
    return so_far(results)


def _by_beliefs(
    facts: PublicFacts,
    strategy: Strategy,
    cells: Cells,
    axes: Sequence[Axis],
    sizes: Sequence[int],
    care: Care,
    so_far: Callable[[Sequence[Any]], PeopleFound],
) -> Attack[list[Any]]:
    """Find the values of all people, one attribute after the other, carrying beliefs.

    Returns the results in the order of single searches: people who are there, then axes.
    """
    there = np.flatnonzero(sizes)
    results: list[Any] = [None] * (len(there) * len(axes))
    for place, axis in enumerate(axes):
        found = yield from columns_of(
            facts,
            strategy,
            Cells(cells.columns, cells.low[there], cells.high[there]),
            axis,
            np.array(sizes, np.int64)[there],
            care,
            about_depth("attributes", place, len(axes), lambda _: so_far(results)),
        )
        results[place :: len(axes)] = [(values, True) for values in found]
    return results


def _matches(
    facts: PublicFacts, strategy: Strategy, people: Sequence[Person], care: Care | None
) -> Attack[list[PersonFound]]:
    """Count how many records fit each person; most are settled by two questions."""

    def search(rules: Rules) -> Search[PersonFound]:
        person = yield from _unique(rules, present=False)
        if not person.present:
            matches = 0
        elif person.unique:
            matches = 1
        else:
            matches = yield from strategy.count(rules, MISSING, INFINITE, rules.n)
        return replace(person, matches=matches)

    found = yield from _each(facts, people, "matching records", search, care)
    return list(found.people)


def _value(
    strategy: Strategy,
    rules: Rules,
    axis: Axis,
    s: int,
    prior: tuple[int, int] | None,
    shortcut: bool,
) -> Search[tuple[Values, bool]]:
    """Find the values of s matching records, and tell whether the prior held."""
    held = True
    if prior is not None:
        low, high = (end // axis.width for end in prior)
        if axis.lower is not None and axis.upper is not None:
            low, high = max(low, axis.lower), min(high, axis.upper)
        if low > high:
            held = False
        elif axis.missing or (low, high) != (axis.lower, axis.upper):
            held = yield from exceeds(rules, low, high + 1, s - 1, s)
            if held:
                axis = replace(axis.within(low, high), missing=False)
    return (yield from _settle(strategy, rules, axis, s, shortcut)), held


def _settle(strategy: Strategy, rules: Rules, axis: Axis, s: int, shortcut: bool) -> Search[Values]:
    """Find the values of s matching records on one axis."""
    if axis.lower is None:
        axis = yield from doubled(strategy, rules, axis, s)
    lower, upper = axis.limits
    if axis.size == 1:
        return [(MISSING if axis.missing else lower, s)]
    if s > 1 or axis.missing:
        return (yield from strategy.column(rules, axis, s))
    if shortcut and axis.size == 2:
        high = yield from exceeds(rules, upper, upper + 1, 0, 1)
        return [(upper if high else lower, 1)]
    return [((yield from strategy.only(rules, axis)), 1)]
