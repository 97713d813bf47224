"""One record, attribute by attribute: likely decisions are asked together.

A record's values are a chain of decisions: this half of what is believed of an attribute or
that one, until it has a value, then the next attribute. A decision that is nearly certain is not
worth a question. But decisions narrow ranges, so any number of them, over several attributes, is
one box. So the likely side of as many decisions is asked for as make the answer a fair bet.
If it is no, one of them is wrong: the last if all others are right, and so it goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import levels, summed
from thinveil.attacker.beliefs.contexts import Mixer
from thinveil.attacker.beliefs.polya_tree import Places
from thinveil.language.queries import Codes, Floats

_ENOUGH: Final = 8  # people before contexts are looked at
_EDGE: Final = 1e-9  # no side of a decision is believed to be less likely
_FAIR: Final = 0.55  # a likelier bet is made fairer by one more decision
_HELD: Final = 0.9  # how likely the user's bounds are thought to hold
_FIRM: Final = 4.0  # and by how many people that is outweighed

Range = tuple[int, int]


class Predictor(Mixer):
    """Predicts one attribute of people from contexts, without knowing how much is left.

    Contexts are levels of those who were found, cells are where their values lie, and mass is
    what is believed of each cell without contexts.
    """

    pairs = 0  # there are few people

    def __init__(
        self, contexts: Sequence[Codes], levels: Sequence[int], mass: Floats, cells: Codes
    ) -> None:
        people = len(cells)
        # One more who is never learned from has the highest levels, so that all have room.
        padded = [np.append(each, top - 1) for each, top in zip(contexts, levels, strict=True)]
        super().__init__(padded, mass)  # type: ignore[arg-type]  # shares do as well
        self.learn(np.arange(people), cells, np.ones(people, np.int64))
        self.refresh()
        parts = zip(self._weight.tolist(), self._logs, strict=True)
        told = [weight * logs for weight, logs in parts]
        self._told = np.concatenate([np.empty((0, self._cells)), *told]).astype(np.float64)
        self._start = np.cumsum([0, *(levels[each] for each in self.chosen)])[:-1]

    def _log_left(self) -> Floats:
        logs: Floats = np.log(self._share)
        return logs

    def row(self, levels: Sequence[int]) -> Floats:
        """Return how likely each cell is, given the level of each context."""
        mine = np.array([levels[each] for each in self.chosen], np.int64)
        logit = self._base + self._told[self._start + mine].sum(axis=0)
        mass: Floats = np.exp(logit - logit.max())
        return mass


class Believed:
    """What is believed at one time: densities, and in which order attributes are searched."""

    def __init__(self, lessons: Lessons) -> None:
        self.lessons = lessons
        people = np.array(lessons.people, np.int64)
        values = np.array(lessons.rows, np.int64).reshape(len(people), len(lessons.domains))
        self.densities = [
            each.learned(np.array(seen, np.int64))
            for each, seen in zip(lessons.domains, lessons.seen, strict=True)
        ]
        sizes = [each.entropy for each in self.densities]
        self.order = sorted(range(len(sizes)), key=lambda place: sizes[place])
        self.plain = [_cumulated(each.mass) for each in self.densities]  # of nobody in particular
        self._predictors: list[Predictor | None] = [None] * len(sizes)
        if len(people) < _ENOUGH:
            return
        contexts = [column[people] for column in lessons.known.T]
        levels = list(lessons.levels)
        for place in self.order:
            density = self.densities[place]
            cells = density.levels(values[:, place])
            if contexts and density.cells > 1:
                self._predictors[place] = Predictor(contexts, levels, density.mass, cells)
            contexts.append(cells)
            levels.append(density.cells)

    def below(self, place: int, person: int, before: Sequence[int]) -> list[float]:
        """Return the belief below each cell of a person's attribute, given the cells before it."""
        predictor = self._predictors[place]
        if predictor is None:
            return self.plain[place]
        return _cumulated(predictor.row([*self.lessons.known[person].tolist(), *before]))


def _cumulated(mass: Floats) -> list[float]:
    upto = summed(mass)
    below: list[float] = (upto / upto[-1]).tolist()
    return below


class Lessons:
    """What all people told so far, by attributes searched for and codes known of each person."""

    def __init__(self, domains: Sequence[Places], known: Codes) -> None:
        self.domains = domains
        columns, self.levels = [], []
        for column in known.T:
            _, level, counts = np.unique(column, return_inverse=True, return_counts=True)
            if len(counts) > 1:
                level = levels(counts)[level.reshape(-1)]
                columns.append(level)
                self.levels.append(int(level.max()) + 1)
        self.known = np.array(columns, np.int64).reshape(len(columns), len(known)).T
        self.people: list[int] = []
        self.rows: list[list[int]] = []
        self.seen: list[list[int]] = [[] for _ in domains]
        self.held = [[_HELD * _FIRM, (1 - _HELD) * _FIRM] for _ in domains]

    def learn(self, person: int, places: Sequence[int]) -> None:
        """Take in all values of somebody who is alone."""
        self.people.append(person)
        self.rows.append(list(places))
        for seen, place in zip(self.seen, places, strict=True):
            seen.append(place)

    def trust(self, place: int) -> float:
        """Return how likely the user's bounds of an attribute are to hold."""
        yes, no = self.held[place]
        return min(max(yes / (yes + no), 0.5), 0.999)


@dataclass(slots=True)
class _State:
    """How far a record is known: attributes before `at`, and the range of that one."""

    at: int
    range: Range
    below: list[float]
    before: list[int]
    fresh: bool  # whether the user's bounds are still to be checked


@dataclass(slots=True)
class _Decision:
    """One decision, and what comes after each of its two sides, as far as that was looked at."""

    state: _State
    sides: tuple[Range, Range]
    first: float  # how likely the first side was before anything was asked
    chance: float  # how likely it is now, if all before are right; 0, 1: certain
    checks: bool = False  # whether it is about the user's bounds
    after: list[_Decision | None] = field(default_factory=lambda: [None, None])

    @property
    def likely(self) -> int:
        """The likely side."""
        return 0 if self.chance >= 0.5 else 1

    @property
    def certain(self) -> bool:
        """Whether one side is ruled out."""
        return self.chance in (0.0, 1.0)

    def believed(self, side: int) -> float:
        """Return how likely a side is."""
        return 1 - self.chance if side else self.chance

    def reached(self, side: int) -> _State:
        """Return the state that a side leads to."""
        state = self.state
        return _State(state.at, self.sides[side], state.below, state.before, False)


@dataclass(slots=True)
class Chain:
    """The search for all attributes of one record."""

    person: int
    believed: Believed  # when the search begins
    bounds: Sequence[Range | None]  # of each attribute, where they are to be checked
    found: dict[int, int] = field(default_factory=dict)
    bits: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    box: dict[int, Range] = field(default_factory=dict)
    chance: float = 0.5
    _state: _State = field(init=False)  # where the decisions that are settled lead
    _next: _Decision | None = None  # what is to be decided there
    _path: list[tuple[_Decision, int]] = field(default_factory=list)  # what is asked for

    def __post_init__(self) -> None:
        for place, density in enumerate(self.believed.densities):
            if density.places.high - density.places.first == 1:
                self.found[place], self.bits[place] = density.places.first, 0.0
        self._state = self._passed(self._begin(0, []))
        self._ask()

    @property
    def over(self) -> bool:
        """Whether everything is found."""
        return not self._path

    # -- where the record may be -------------------------------------------------------------

    def _begin(self, at: int, before: list[int]) -> _State:
        """Return the state in which nothing is known about an attribute but its domain."""
        believed = self.believed
        if at == len(believed.order):
            return _State(at, (0, 1), [], before, False)
        place = believed.order[at]
        domain = believed.densities[place].places
        below = believed.below(place, self.person, before)
        fresh = self.bounds[place] is not None
        return _State(at, (domain.first, domain.high), below, before, fresh)

    def _passed(self, state: _State) -> _State:
        """Return the first state that leaves a choice, at this attribute or a later one."""
        order = self.believed.order
        while state.range[1] - state.range[0] == 1 and state.at < len(order):
            cell = self.believed.densities[order[state.at]].cell(state.range[0])
            state = self._begin(state.at + 1, [*state.before, cell])
        return state

    def _decide(self, state: _State, share: float = 0.5) -> _Decision:
        """Return a decision one of whose sides has about such a chance, at least one half."""
        place = self.believed.order[state.at]
        low, high = state.range
        bounds = self.bounds[place]
        if state.fresh and bounds is not None:
            trust = self.believed.lessons.trust(place)
            return _Decision(state, (bounds, state.range), trust, trust, checks=True)
        density = self.believed.densities[place]
        cut, chance = density.cut(state.below, low, high, share)
        if share > 0.5:
            other, rest = density.cut(state.below, low, high, 1 - share)
            if abs(rest - (1 - share)) < abs(chance - share):
                cut, chance = other, rest
        chance = min(max(chance, _EDGE), 1 - _EDGE)
        return _Decision(state, ((low, cut), (cut, high)), chance, chance)

    # -- questions ---------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask for as many decisions at once as make it a fair bet that all are right."""
        path: list[tuple[_Decision, int]] = []
        chance, fair, asked = 1.0, 1.0, 0
        decision, state = self._next, self._state
        while chance > _FAIR:
            if decision is None:
                state = self._passed(state)
                if state.at == len(self.believed.order):
                    break
                decision = self._decide(state)
                if chance * decision.believed(decision.likely) < 0.5 and not decision.checks:
                    decision = self._decide(state, 0.5 / chance)
                if path:
                    path[-1][0].after[path[-1][1]] = decision
                else:
                    self._next = decision
            # only that bounds hold can be asked for: what lies outside of them is no box
            side = 0 if decision.checks and not decision.certain else decision.likely
            path.append((decision, side))
            chance *= decision.believed(side)
            if not decision.certain and (not asked or abs(chance - 0.5) < abs(fair - 0.5)):
                asked, fair = len(path), chance
            state, decision = decision.reached(side), decision.after[side]
        self._path = path[:asked]
        self.chance = min(max(fair, _EDGE), 1 - _EDGE)
        order = self.believed.order
        self.box = {order[each.state.at]: each.sides[side] for each, side in self._path}

    def tell(self, right: bool) -> None:
        """Take in whether the record lies in the box.

        If it does not, one of the decisions asked for is wrong. The last of them is wrong if all
        before it are right, and they are less likely than they were.
        """
        decision, side = self._path[-1]
        rest = decision.believed(side)  # how likely the last decisions are
        decision.chance = float(right != bool(side))
        for decision, side in self._path[-2::-1]:
            here = decision.believed(side)
            if right:
                decision.chance = 1.0 - side
            elif not decision.certain:
                later = here * (1 - rest)
                rest *= here
                here = min(max(later / (later + 1 - here), _EDGE), 1 - _EDGE)
                decision.chance = 1 - here if side else here
        self._settle()
        self._ask()

    def _settle(self) -> None:
        """Take the decisions that are certain, as far as nothing before them is open."""
        while self._next is not None and self._next.certain:
            decision, side = self._next, self._next.likely
            place = self.believed.order[decision.state.at]
            price = 1 - decision.first if side else decision.first
            self.bits[place] = self.bits.get(place, 0.0) - float(np.log2(price))
            if decision.checks:
                self.believed.lessons.held[place][side] += 1
                if side:
                    self.failed.add(place)
            low, high = decision.sides[side]
            if high - low == 1:
                self.found[place] = low
            self._state, self._next = decision.reached(side), decision.after[side]
        if self._next is None:
            self._state = self._passed(self._state)
