"""Attacks on people: are they in the table, are they unique, what are their values?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from thinveil.attacker.attacks.table import Wish, cell_of, column_found, limited
from thinveil.attacker.engines.protocol import Cohorts, Engine, Hints
from thinveil.attacker.findings import PeopleFound, PersonFound
from thinveil.attacker.terms import Attack, Axis, Person, Values
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes
from thinveil.language.schema import MISSING


def membership(engine: Engine, wish: Wish) -> Attack[PeopleFound]:
    """Tell for each person whether anybody in the table fits (Example 3).

    One question decides (erratum 7). A strategy that follows the paper asks its two under
    protection, b = k and b = k - 1, and demands the boundary between them.
    """
    return _told(engine, wish.people, (0,), "membership")


def uniqueness(engine: Engine, wish: Wish) -> Attack[PeopleFound]:
    """Tell for each person whether exactly one record fits (Example 2).

    Two questions, or one if the person is known to be present. Right also where the
    printed pair fails (erratum 7).
    """
    return _told(engine, wish.people, (1,) if wish.present else (0, 1), "uniqueness")


def _told(
    engine: Engine, people: Sequence[Person], steps: tuple[int, ...], label: str
) -> Attack[PeopleFound]:
    """Tell for each person whether more records fit than each step says."""
    groups, known = _groups(engine.facts, people)

    def person(told: Sequence[bool]) -> PersonFound:
        present = bool(told[0]) or steps[0] > 0
        return PersonFound(present, None if steps[-1] == 0 else present and not told[-1])

    def so_far(results: Sequence[Any]) -> PeopleFound:
        return _filled(known, results, person)

    told = yield from engine.more_than(
        groups, steps, lambda done, results: About(label, done, lambda: so_far(results))
    )
    return so_far(told.tolist())


def person_of(facts: PublicFacts, count: int) -> PersonFound:
    """Return what the number of records that fit says of a person."""
    if not facts.claim.counts:
        return PersonFound(present=count != 0)
    return PersonFound(present=count > 0, unique=count == 1, matches=count)


def _groups(
    facts: PublicFacts, people: Sequence[Person]
) -> tuple[Cohorts, list[PersonFound | None]]:
    """Return the records that fit people, and what is known of people without asking."""
    cells, constant = cells_of(facts, people)
    rows = np.flatnonzero([always is None for always in constant])
    known = [None if each is None else person_of(facts, facts.records * each) for each in constant]
    return Cohorts(cells, rows, np.full(len(rows), facts.records)), known


def _filled(
    known: Sequence[PersonFound | None],
    results: Sequence[Any],
    person: Callable[[Any], PersonFound],
) -> PeopleFound:
    """Put people who were asked about among those who are known without."""
    told = iter(results)
    return PeopleFound(
        tuple(
            each or (PersonFound() if (mine := next(told)) is None else person(mine))
            for each in known
        )
    )


def cells_of(facts: PublicFacts, people: Sequence[Person]) -> tuple[Cells, list[int | None]]:
    """Return the cells that people lie in, and which of them hold no record or all (`cell_of`)."""
    return cell_of(
        facts, [{column: (code, code + 1) for column, code in who.items()} for who in people]
    )


def matches(engine: Engine, people: Sequence[Person]) -> Attack[Codes]:
    """Count how many records fit each person."""
    facts = engine.facts
    groups, known = _groups(facts, people)
    person = partial(person_of, facts)
    counts = yield from engine.count(
        groups,
        lambda done, some: About("matching records", done, lambda: _filled(known, some, person)),
        few=True,
    )
    found = facts.records * np.array([bool(each and each.present) for each in known], np.int64)
    found[groups.rows] = counts
    return found


def attributes(engine: Engine, wish: Wish) -> Attack[PeopleFound]:
    """Find unknown attributes of people from the known ones (Example 4).

    Prior bounds are checked by one question and dropped for a person where they fail.
    """
    facts, people = engine.facts, wish.people
    hints = Hints(len(people), wish.priors, wish.shortcut)
    axes = yield from limited(engine, wish, wish.axes(facts), hints=hints)
    counts = np.ones(len(people), np.int64)
    if not wish.alone:
        counts = yield from matches(engine, people)
    matched = [person_of(facts, each) for each in counts.tolist()]
    there = np.flatnonzero(counts)

    def so_far(results: Sequence[Any]) -> PeopleFound:
        found = list(matched)
        for place, row in enumerate(there.tolist()):
            mine = [results[place * len(axes) + each] for each in range(len(axes))]
            found[row] = _with_values(facts, wish, found[row], axes, mine)
        return PeopleFound(tuple(found))

    results = yield from engine.values(
        Cohorts(cells_of(facts, people)[0], there, counts[there]),
        axes,
        lambda done, results: About("attributes", done, lambda: so_far(results)),
        hints,
    )
    return so_far(results)


def _with_values(
    facts: PublicFacts,
    wish: Wish,
    person: PersonFound,
    axes: Sequence[Axis],
    results: Sequence[Values | None],
) -> PersonFound:
    """Add the values that are found of attributes, and whether priors held."""
    shown = facts.claim.counts
    known = [
        (axis, values)
        for axis, values in zip(axes, results, strict=True)
        if values or (values is not None and not shown)
    ]
    found = (column_found(axis, values, distinct=not shown) for axis, values in known)
    return replace(
        person,
        values=tuple(
            replace(each, partial=shown and sum(many for _, many in each.values) != person.matches)
            for each in found
        ),
        prior_failed=tuple(
            axis.column
            for axis, values in known
            if axis.column in wish.priors and not _within(axis, values, *wish.priors[axis.column])
        ),
    )


def _within(axis: Axis, values: Values, low: int, high: int) -> bool:
    """Tell whether all values lie within bounds, as far as the precision tells."""
    steps = [step for step, _ in values]
    return MISSING not in steps and all(
        low // axis.width <= step <= high // axis.width for step in steps
    )
