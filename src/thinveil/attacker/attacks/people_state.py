"""The people of a list: what is wanted of each, what was found, and whose turn it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from thinveil.attacker.attacks.record_chain import Chain, Lessons, Range
from thinveil.attacker.attacks.table import Wish, column_found
from thinveil.attacker.beliefs.polya_tree import Places
from thinveil.attacker.code_length import person_bits
from thinveil.attacker.engines.waves import Pace, Waves
from thinveil.attacker.findings import PeopleFound, PersonFound
from thinveil.attacker.fixed_order import shuffled
from thinveil.attacker.terms import Rules, Values, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes
from thinveil.language.schema import MISSING

_WORTH: Final = 8  # a wave is at least this part of those who are over


@dataclass(slots=True)
class Part:
    """An attribute of a person whom several records fit, and what was found of it."""

    person: int
    place: int
    held: bool  # whether the user's bounds hold
    left: int  # records without a value
    values: Values = field(default_factory=list)
    bits: float = 0.0


class Crowd:
    """The people of a list, what is learned from them and what was found of each.

    Everybody who is different is a cell, with what is known already, above all how many records
    fit; rows are the list: who of them is meant.
    """

    def __init__(
        self,
        facts: PublicFacts,
        wish: Wish,
        cells: Cells,
        matched: Sequence[PersonFound],
        rows: Sequence[int],
    ) -> None:
        self.rules, self.cells, self.matched = Rules.of(facts), cells, matched
        self._facts, self._rows, self._assumed = facts, rows, wish.alone
        self.axes = axes = wish.axes(facts)
        self.domains = [Places(axis, facts.schema[axis.column].kind == "category") for axis in axes]
        self.lessons = Lessons(self.domains, cells.low)
        self.bounds: list[Range | None] = []
        self.refuted: set[int] = set()  # attributes whose bounds exclude all that is possible
        for place, axis in enumerate(axes):
            prior = wish.priors.get(axis.column)
            self.bounds.append(None if prior is None else self._bound(place, *prior))
        self.found: list[dict[int, tuple[Values, float, bool]]] = [{} for _ in matched]
        self.half: list[dict[int, Part]] = [{} for _ in matched]  # of several records, not over
        self.chains: dict[int, Chain] = {}  # of people who are searched now

    def _bound(self, place: int, low: int, high: int) -> Range | None:
        """Return the user's bounds of an attribute, where there is something to check."""
        domain, width = self.domains[place], self.axes[place].width
        low, high = max(low // width, domain.low), min(high // width + 1, domain.high)
        if low >= high:
            self.refuted.add(place)
        return None if low >= high or (low, high) == (domain.first, domain.high) else (low, high)

    def person(self, row: int) -> PersonFound:
        """Return what is known about one person."""
        person = self.matched[row]
        if row in self.chains:
            self.take(self.chains[row])
        half = {
            place: (each.values, each.bits, each.held and place not in self.refuted)
            for place, each in self.half[row].items()
            if each.values
        }
        mine = sorted((self.found[row] | half).items())
        values = tuple(
            replace(
                column_found(self.axes[place], self.domains[place].steps(values)),
                bits=bits,
                partial=place in half,
            )
            for place, (values, bits, _) in mine
        )
        failed = tuple(self.axes[place].column for place, (_, _, held) in mine if not held)
        person = replace(person, values=values, prior_failed=failed)
        told = sum(each.bits or 0.0 for each in values)
        bits = told if self._assumed else person_bits(self._facts, person) or 0.0
        return replace(person, bits=bits)

    def note(self, row: int, place: int, values: Values, bits: float, held: bool) -> None:
        """Take in the values of one attribute of one person, as places."""
        self.half[row].pop(place, None)
        self.found[row][place] = values, bits, held and place not in self.refuted

    def take(self, chain: Chain) -> None:
        """Take in what a chain has found."""
        for place, value in chain.found.items():
            held = place not in chain.failed
            self.note(chain.person, place, [(value, 1)], chain.bits[place], held)

    def places(self, row: int) -> list[int]:
        """Return the value of each attribute of somebody who is alone."""
        return [self.found[row][place][0][0][0] for place in range(len(self.domains))]

    def recall(self, row: int) -> None:
        """Learn from the values of all records that fit somebody."""
        for place, seen in enumerate(self.lessons.seen):
            for value, many in self.found[row][place][0]:
                seen += [value] * many

    def codes(self, place: Codes, low: Codes, high: Codes) -> tuple[Codes, Codes, Codes]:
        """Return ranges of places of attributes as columns and codes."""
        kinds = [(axis.column, axis.width) for axis in self.axes]
        column, width = np.array(kinds, np.int64)[place].T
        first = np.array([domain.low for domain in self.domains], np.int64)[place]
        low = np.where(low < first, MISSING, low)
        return column, scaled(low, width), scaled(high, width)

    def so_far(self) -> PeopleFound:
        """Return what is known about everybody."""
        return PeopleFound(tuple(self.person(row) for row in self._rows))

    def about(self) -> About:
        """Describe a round."""
        there = sum(bool(person.matches) for person in self.matched)
        found = sum(map(len, self.found))
        return About("attributes", found / max(there * len(self.axes), 1), self.so_far)


class Turns(Waves):
    """Who of some people is searched when: more at once the more are over."""

    def __init__(self, people: Codes, pace: Pace) -> None:
        super().__init__(people[shuffled(len(people))], pace)

    def next(self) -> list[int]:
        """Return who begins now."""
        pace = self.pace
        room = pace.room(-(-max(pace.over, pace.least) // _WORTH))
        wave: list[int] = self.begin(room).tolist() if room and self.waiting else []
        return wave

    def over(self, person: int) -> list[int]:
        """Note that somebody is over; return a whole wave if that was the last of it."""
        waves = self.end(np.array([person]), np.array([1]))
        return [each for wave in waves for each in self.members[wave].tolist()]
