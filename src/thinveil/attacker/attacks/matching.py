"""The values of several records that fit one person, counted value by value."""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.attacks.people_state import Crowd, Turns
from thinveil.attacker.attacks.record_chain import Believed, Range
from thinveil.attacker.engines.coroutines import Work, exceeds, side_by_side
from thinveil.attacker.engines.splitting import Splits
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.terms import Attack, Values
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Floats, QueryBatch

_TURNS: Final = (8, 1.0)  # few at first, then as many as are over


class _Matching(Splits):
    """Splits what several records that fit one person may have; an owner is an attribute of one.

    Args:
        crowd: Everybody.
        believed: What is believed.
    """

    def __init__(self, crowd: Crowd, believed: Believed) -> None:
        super().__init__(crowd.rules)
        self._crowd = crowd
        self.believed = believed
        self.whose: list[tuple[int, int, bool]] = []  # person, attribute, whether bounds held
        self._values: list[Values] = []
        self._told: list[float] = []
        self._left: list[int] = []
        self.over: list[int] = []

    def begin(self, person: int, place: int, bounds: Range | None, held: bool) -> None:
        """Add an attribute of a person whom several records fit."""
        domain, size = self._crowd.domains[place], self._crowd.matched[person].matches or 0
        low, high = bounds if bounds is not None and held else (domain.first, domain.high)
        owner = np.array([len(self.whose)])
        self.whose.append((person, place, held))
        self._values.append([])
        self._told.append(0.0)
        self._left.append(size)
        self.add(owner, np.array([low]), np.array([high]), np.array([size]))

    def plan(self, nodes: Codes) -> tuple[Codes, Floats, Codes, Codes]:
        """Cut where half of what is believed of anybody lies on either side."""
        cuts = []
        for owner, low, high in zip(
            self.owner[nodes].tolist(),
            self.first[nodes].tolist(),
            self.end[nodes].tolist(),
            strict=True,
        ):
            place = self.whose[owner][1]
            below = self.believed.plain(place)
            cuts.append(self.believed.densities[place].cut(below, low, high))
        cut = np.array([each for each, _ in cuts], np.int64)
        chance = np.array([each for _, each in cuts])
        size = self.size[nodes]
        return cut, chance, np.zeros_like(size), size

    def charge(self, nodes: Codes, bits: Floats) -> None:
        """Add what was told about nodes to their owners."""
        for owner, told in zip(self.owner[nodes].tolist(), bits.tolist(), strict=True):
            self._told[owner] += told

    def settle(self, nodes: Codes) -> None:
        """Note values with their counts."""
        for owner, place, size in zip(
            self.owner[nodes].tolist(),
            self.first[nodes].tolist(),
            self.size[nodes].tolist(),
            strict=True,
        ):
            self._values[owner].append((place, size))
            self._left[owner] -= size
            if not self._left[owner]:
                person, attribute, held = self.whose[owner]
                values = sorted(self._values[owner])
                self._crowd.note(person, attribute, values, self._told[owner], held)
                self.over.append(person)


def several(facts: PublicFacts, crowd: Crowd, care: Care) -> Attack[None]:
    """Find the values of all records that fit people, where several do."""
    there = np.flatnonzero([(person.matches or 0) > 1 for person in crowd.matched])
    waves = Turns(there, *_TURNS)
    if not waves.waiting:
        return
    held = yield from _checked(facts, crowd, care)
    lessons = crowd.lessons
    splits = _Matching(crowd, Believed(lessons))
    column = np.array([axis.column for axis in crowd.axes], np.int64)
    while waves.waiting or splits.waiting:
        wave = waves.begin()
        if wave:
            splits.believed = Believed(lessons)
        for person in wave:
            for place, bounds in enumerate(crowd.bounds):
                splits.begin(person, place, bounds, held.get((person, place), True))
        if splits.waiting:
            nodes, threshold = splits.questions()
            person, place, _ = np.array([splits.whose[owner] for owner in splits.owner[nodes]]).T
            low, high = crowd.codes(place, splits.first[nodes], splits.cut[nodes])
            batch = QueryBatch(
                crowd.cells, person, column[place], low, high, threshold, about=crowd.about()
            )
            zone = yield from zones_of(facts, batch, care)
            splits.learn(zone)
        over, splits.over = splits.over, []
        for person in dict.fromkeys(over):
            if len(crowd.found[person]) == len(crowd.axes):
                for each in waves.end(person):
                    crowd.recall(each)


def _checked(facts: PublicFacts, crowd: Crowd, care: Care) -> Attack[dict[tuple[int, int], bool]]:
    """Tell where the user's bounds hold for all of several records that fit a person."""
    asked = [
        (row, place, person.matches, bounds)
        for row, person in enumerate(crowd.matched)
        for place, bounds in enumerate(crowd.bounds)
        if person.matches is not None and person.matches > 1 and bounds is not None
    ]
    held = yield from side_by_side(
        facts,
        crowd.cells,
        [
            Work(exceeds(crowd.rules, *bounds, size - 1, size), row, crowd.axes[place])
            for row, place, size, bounds in asked
        ],
        lambda _, __: crowd.about(),
        care,
    )
    return {(row, place): yes for (row, place, _, _), yes in zip(asked, held, strict=True)}
