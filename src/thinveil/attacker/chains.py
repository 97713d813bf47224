"""One record, attribute by attribute: likely decisions are asked together.

A record's values are a chain of decisions: this half of what is believed of an attribute or
that one, until it has a value, then the next attribute. A decision that is nearly certain is not
worth a question. But decisions narrow ranges, so any number of them, over several attributes, is
one box. So the likely side of as many decisions is asked for as make the answer a fair bet.
If it is no, the first decision that fails is found by halving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from thinveil.attacker.densities import Places
from thinveil.attacker.mixing import Mixer
from thinveil.attacker.stages import LEVELS, binned
from thinveil.language.queries import Codes, Flags, Floats

_ENOUGH: Final = 8  # people before contexts are looked at
_EDGE: Final = 1e-9  # no side of a decision is believed to be less likely
_HELD: Final = 0.9  # how likely the user's bounds are thought to hold
_FIRM: Final = 4.0  # and by how many people that is outweighed

Range = tuple[int, int]


class Predictor(Mixer):
    """Predicts one attribute of people from contexts, without knowing how much is left.

    Args:
        contexts: A row a context: its level for each person found.
        levels: How many levels each context has.
        mass: What is believed of each cell without contexts.
        cells: The cell of each person found.
    """

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
        self._told = np.concatenate([weight * logs for weight, logs in parts]).astype(np.float64)
        self._start = np.cumsum([0, *levels])[:-1]

    def _log_left(self) -> Floats:
        logs: Floats = np.log(self._share)
        return logs

    def _choose_pairs(self, groups: Codes, cells: Codes, counts: Codes, learn: Flags) -> None:
        """Take none: there are few people."""

    def row(self, levels: Sequence[int]) -> Floats:
        """Return how likely each cell is, given the level of each context."""
        logit = self._base + self._told[self._start + levels].sum(axis=0)
        mass: Floats = np.exp(logit - logit.max())
        return mass


class Believed:
    """What is believed at one time: densities, and in which order attributes are searched."""

    def __init__(self, lessons: Lessons) -> None:
        self._lessons = lessons
        people = np.array(lessons.people, np.int64)
        values = np.array(lessons.rows, np.int64).reshape(len(people), len(lessons.domains))
        self.densities = [
            each.learned(np.array(seen, np.int64))
            for each, seen in zip(lessons.domains, lessons.seen, strict=True)
        ]
        sizes = [each.entropy for each in self.densities]
        self.order = sorted(range(len(sizes)), key=lambda place: sizes[place])
        self._plain = [_cumulated(each.mass) for each in self.densities]
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
        """Return the belief below each cell of an attribute.

        Args:
            place: The attribute.
            person: Whose.
            before: The cells of this person's attributes before it in order.
        """
        predictor = self._predictors[place]
        if predictor is None:
            return self._plain[place]
        return _cumulated(predictor.row([*self._lessons.known[person].tolist(), *before]))

    def plain(self, place: int) -> list[float]:
        """Return the belief below each cell of an attribute, of nobody in particular."""
        return self._plain[place]


def _cumulated(mass: Floats) -> list[float]:
    upto = np.concatenate([[0.0], np.cumsum(mass)])
    below: list[float] = (upto / upto[-1]).tolist()
    return below


class Lessons:
    """What all people told so far.

    Args:
        domains: The attributes searched for.
        known: A row a person: the codes of what is known of them.
    """

    def __init__(self, domains: Sequence[Places], known: Codes) -> None:
        self.domains = domains
        columns, self.levels = [], []
        for column in known.T:
            _, level, counts = np.unique(column, return_inverse=True, return_counts=True)
            level = level.reshape(-1)
            if len(counts) > LEVELS:
                level = binned(counts, LEVELS // 2)[level]
            if len(counts) > 1:
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
    """One decision: what is left of its attribute if the likely side is right, and if not."""

    place: int
    likely: Range
    other: Range
    chance: float
    state: _State
    checks: bool


@dataclass(slots=True)
class Chain:
    """The search for all attributes of one record.

    Args:
        person: Whose.
        believed: What is believed when the search begins.
        lessons: How often the user's bounds held.
        bounds: For each attribute, the user's bounds where they are to be checked.
    """

    person: int
    believed: Believed
    lessons: Lessons
    bounds: Sequence[Range | None]
    found: dict[int, int] = field(default_factory=dict)
    bits: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    box: dict[int, Range] = field(default_factory=dict)
    chance: float = 0.5
    _state: _State = field(init=False)
    _path: list[_Decision] = field(default_factory=list)
    _upto: list[float] = field(default_factory=list)
    _holds: int = 0  # so many decisions of the path are known to be right,
    _fails: int = 0  # and one of those up to here is wrong,
    _known: bool = False  # if it has been asked for
    _asked: int = 0

    def __post_init__(self) -> None:
        self._state = self._settled(self._begin(0, []))
        self._plan()

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
        bounds = self.bounds[place]
        return _State(at, (domain.first, domain.high), below, before, bounds is not None)

    def _after(self, state: _State, left: Range) -> _State:
        """Return the state with a narrower range; one of a single value leads to the next."""
        if left[1] - left[0] > 1:
            return _State(state.at, left, state.below, state.before, False)
        density = self.believed.densities[self.believed.order[state.at]]
        return self._begin(state.at + 1, [*state.before, density.cell(left[0])])

    def _settled(self, state: _State) -> _State:
        """Note attributes that have a single value to begin with."""
        while state.at < len(self.believed.order) and state.range[1] - state.range[0] == 1:
            place = self.believed.order[state.at]
            self.found[place] = state.range[0]
            self.bits.setdefault(place, 0.0)
            state = self._after(state, state.range)
        return state

    def _decide(self, state: _State) -> _Decision:
        """Return the next decision."""
        place = self.believed.order[state.at]
        low, high = state.range
        bounds = self.bounds[place]
        if state.fresh and bounds is not None:
            trust = self.lessons.trust(place)
            return _Decision(place, bounds, state.range, trust, state, True)
        cut, chance = self.believed.densities[place].halve(state.below, low, high)
        chance = min(max(chance, _EDGE), 1 - _EDGE)
        lower, upper = (low, cut), (cut, high)
        if chance < 0.5:
            lower, upper, chance = upper, lower, 1 - chance
        return _Decision(place, lower, upper, chance, state, False)

    # -- questions ---------------------------------------------------------------------------

    def _plan(self) -> None:
        """Line up decisions until it is a fair bet that the likely side is right in all."""
        self._path, self._upto = [], [1.0]
        state = self._state
        while state.at < len(self.believed.order):
            if state.range[1] - state.range[0] == 1:
                state = self._after(state, state.range)
                continue
            decision = self._decide(state)
            here, more = self._upto[-1], self._upto[-1] * decision.chance
            if self._path and abs(here - 0.5) <= abs(more - 0.5):
                break
            self._path.append(decision)
            self._upto.append(more)
            if more <= 0.5:
                break
            state = self._after(state, decision.likely)
        self._holds, self._fails, self._known = 0, len(self._path), False
        self._ask(self._fails, 0.0)

    def _ask(self, upto: int, wrong: float) -> None:
        """Prepare the question whether the first decisions are right, `wrong` all of them."""
        self._asked = upto
        self.box = {each.place: each.likely for each in self._path[:upto]}
        right, whole = self._upto[upto] - wrong, self._upto[self._holds] - wrong
        self.chance = min(max(right / whole, _EDGE), 1 - _EDGE) if whole > 0 else 0.5

    def tell(self, right: bool) -> None:
        """Take in whether the record lies in the box."""
        if right and not self._known:
            self._commit(len(self._path), False)
            return
        self._known = True
        if right:
            self._holds = self._asked
        else:
            self._fails = self._asked
        if self._fails - self._holds == 1:
            self._commit(self._holds, True)
            return
        wrong = self._upto[self._fails]
        middle = (self._upto[self._holds] + wrong) / 2
        inside = range(self._holds + 1, self._fails)
        self._ask(min(inside, key=lambda upto: abs(self._upto[upto] - middle)), wrong)

    def _commit(self, right: int, wrong: bool) -> None:
        """Take so many decisions for right, and the one after them for wrong."""
        for decision in self._path[:right]:
            self._take(decision, decision.likely, decision.chance)
        if wrong:
            decision = self._path[right]
            self._take(decision, decision.other, 1 - decision.chance)
        self._plan()

    def _take(self, decision: _Decision, left: Range, chance: float) -> None:
        place = decision.place
        self.bits[place] = self.bits.get(place, 0.0) - float(np.log2(chance))
        if decision.checks:
            held = left == decision.likely
            self.lessons.held[place][0 if held else 1] += 1
            if not held:
                self.failed.add(place)
        state = decision.state
        if left[1] - left[0] > 1:
            self._state = self._after(state, left)
            return
        self._state = self._settled(_State(state.at, left, state.below, state.before, False))
