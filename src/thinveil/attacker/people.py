"""Attributes of people, where what was found of the first predicts the next.

No histogram of the table is known, and to learn one would cost more than it saves. Beliefs begin
with the public domains (`densities`) and are sharpened by the values found. People take their
turn in waves that grow with what is known. Each is searched attribute by attribute (`chains`);
what the attacker knows of them and what was found before are contexts (`mixing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from thinveil.attacker.asking import zones_of
from thinveil.attacker.care import Care
from thinveil.attacker.chains import Believed, Chain, Lessons, Range
from thinveil.attacker.codelength import person_bits
from thinveil.attacker.densities import Places
from thinveil.attacker.found import PeopleFound, PersonFound
from thinveil.attacker.search import (
    Attack,
    Axis,
    Rules,
    Values,
    Work,
    axes_of,
    exceeds,
    scaled,
    side_by_side,
)
from thinveil.attacker.splits import Splits
from thinveil.attacker.strategies import Strategy
from thinveil.attacker.table import column_found
from thinveil.attacker.targeted import Person, _cells, _matches
from thinveil.attacker.thrifty import Thrift
from thinveil.attacker.windows import Windows
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, About, Cells, Codes, Floats, QueryBatch
from thinveil.language.schema import INFINITE, MISSING

_FEWEST: Final = 8  # people who are searched before anything is learned
_WAVE: Final = 8  # a wave is at least this share of those who are over


def attributes(
    facts: PublicFacts,
    strategy: Strategy,
    people: Sequence[Person],
    wanted: Sequence[int],
    *,
    widths: dict[int, int] | None = None,
    priors: dict[int, tuple[int, int]] | None = None,
    assume_unique: bool = False,
    care: Care | None = None,
    thrift: Thrift | None = None,
) -> Attack[PeopleFound]:
    """Find unknown attributes of people from the known ones, learning on the way (Example 4).

    Args:
        facts: What is public.
        strategy: How records that fit a person are counted, where several do.
        people: For each person, the codes of known columns; the same columns for all.
        wanted: The columns to find.
        widths: A coarser precision for some columns.
        priors: Bounds, in codes, that the value is believed to lie in. They are checked
            and dropped for a person where they fail.
        assume_unique: Whether every person is known to be in the table, and alone.
        care: How sure decisions must be.
        thrift: How to ask about several people at once; None asks about each alone.
    """
    care = care or Care()
    different = {tuple(sorted(who.items())): who for who in people}
    place = {key: row for row, key in enumerate(different)}
    rows = [place[tuple(sorted(who.items()))] for who in people]
    each = list(different.values())
    if assume_unique:
        matched = [PersonFound(present=True, unique=True, matches=1) for _ in each]
    else:
        matched = yield from _matches(facts, strategy, each, care)
    axes = [axes_of(facts, widths)[column] for column in wanted]
    crowd = _Crowd(facts, each, axes, matched, priors or {}, assume_unique)

    def so_far() -> PeopleFound:
        return PeopleFound(tuple(crowd.person(row) for row in rows))

    yield from _alone(facts, crowd, so_far, care, thrift)
    yield from _several(facts, crowd, so_far, care)
    return so_far()


class _Crowd:
    """The people of a list, what is learned from them and what was found of each."""

    def __init__(
        self,
        facts: PublicFacts,
        people: Sequence[Person],
        axes: Sequence[Axis],
        matched: Sequence[PersonFound],
        priors: dict[int, tuple[int, int]],
        assumed: bool,
    ) -> None:
        self.facts = facts
        self.rules = Rules.of(facts)
        self.axes = axes
        self.matched = matched
        self.cells = _cells(facts, people)[0]
        self._assumed = assumed
        self.domains = [Places(axis, facts.schema[axis.column].kind == "category") for axis in axes]
        self.lessons = Lessons(self.domains, self.cells.low)
        self.bounds: list[Range | None] = []
        self.refuted: set[int] = set()  # attributes whose bounds exclude all that is possible
        for place, axis in enumerate(axes):
            self.bounds.append(None)
            if axis.column in priors:
                self._bound(place, priors[axis.column])
        self.found: list[dict[int, tuple[Values, float, bool]]] = [{} for _ in people]
        self.chains: dict[int, Chain] = {}  # of people who are searched now

    def _bound(self, place: int, prior: tuple[int, int]) -> None:
        """Note the user's bounds of an attribute, where there is something to check."""
        domain, width = self.domains[place], self.axes[place].width
        low = max(prior[0] // width, domain.low)
        high = min(prior[1] // width + 1, domain.high)
        if low >= high:
            self.refuted.add(place)
        elif (low, high) != (domain.first, domain.high):
            self.bounds[place] = low, high

    def person(self, row: int) -> PersonFound:
        """Return what is known about one person."""
        person = self.matched[row]
        if row in self.chains:
            self.take(self.chains[row])
        mine = sorted(self.found[row].items())
        values = tuple(
            replace(column_found(self.axes[place], values), bits=bits)
            for place, (values, bits, _) in mine
        )
        failed = tuple(self.axes[place].column for place, (_, _, held) in mine if not held)
        person = replace(person, values=values, prior_failed=failed)
        bits = sum(each.bits or 0.0 for each in values)
        if not self._assumed:
            bits = person_bits(self.facts, person) or 0.0
        return replace(person, bits=bits)

    def note(self, row: int, place: int, values: Values, bits: float, held: bool) -> None:
        """Take in the values of one attribute of one person, as places."""
        domain = self.domains[place]
        steps = [(domain.step(each), many) for each, many in values]
        self.found[row][place] = steps, bits, held and place not in self.refuted

    def take(self, chain: Chain) -> None:
        """Take in what a chain has found."""
        for place, value in chain.found.items():
            held = place not in chain.failed
            self.note(chain.person, place, [(value, 1)], chain.bits[place], held)

    def places(self, row: int) -> list[int]:
        """Return the value of each attribute of somebody who is alone."""
        return [
            domain.place(self.found[row][place][0][0][0])
            for place, domain in enumerate(self.domains)
        ]

    def recall(self, row: int) -> None:
        """Learn from the values of all records that fit somebody."""
        for place, domain in enumerate(self.domains):
            for step, many in self.found[row][place][0]:
                self.lessons.seen[place] += [domain.place(step)] * many

    def codes(self, place: Codes, low: Codes, high: Codes) -> tuple[Codes, Codes]:
        """Return ranges of places of attributes as codes."""
        first = np.array([domain.low for domain in self.domains], np.int64)
        width = np.array([axis.width for axis in self.axes], np.int64)
        low = np.where(low < first[place], MISSING, low)
        return scaled(low, width[place]), scaled(high, width[place])

    @property
    def done(self) -> float:
        """The share of attributes that are found."""
        there = sum(bool(person.matches) for person in self.matched)
        found = sum(len(each) for each in self.found)
        return found / max(there * len(self.axes), 1)


class _Waves:
    """Who is searched when: as many at once as are over, and at least a few."""

    def __init__(self, people: Codes) -> None:
        shuffled = np.random.default_rng(len(people)).permutation(len(people))
        self._order = people[shuffled]
        self._next = 0
        self._wave: dict[int, list[int]] = {}
        self._left: dict[int, int] = {}
        self._flying = 0
        self._over = 0

    @property
    def waiting(self) -> bool:
        """Whether anybody has not begun yet."""
        return self._next < len(self._order)

    def begin(self) -> list[int]:
        """Return who begins now."""
        room = max(_FEWEST, self._over) - self._flying
        if self._flying and room * _WAVE < max(self._over, _FEWEST):
            return []
        wave: list[int] = self._order[self._next : self._next + room].tolist()
        self._next += len(wave)
        self._flying += len(wave)
        if wave:
            self._left[wave[0]] = len(wave)
            self._wave.update(dict.fromkeys(wave, wave))
        return wave

    def end(self, person: int) -> list[int]:
        """Note that somebody is over; return a whole wave if that was the last of it.

        Half a wave would not be typical: likely values are found first.
        """
        self._flying -= 1
        self._over += 1
        wave = self._wave[person]
        self._left[wave[0]] -= 1
        return [] if self._left[wave[0]] else wave


class _Singly:
    """Asks about everybody by himself, all at the same time."""

    def __init__(self, rules: Rules, chains: dict[int, Chain]) -> None:
        self._reader = Splits(rules)
        self._threshold = rules.threshold(0)
        self._chains = chains
        self._asked = np.empty(0, np.int64)

    def questions(self, final: bool) -> tuple[Codes | None, Codes, Codes]:
        """Return where questions begin among the people, people, and thresholds."""
        self._asked = np.array(list(self._chains), np.int64)
        return None, self._asked, np.full(len(self._asked), self._threshold)

    def learn(self, zone: Codes) -> tuple[Codes, Codes]:
        """Return for whom it is known whether they lie in their box, and 1 where they do."""
        return self._asked, self._reader.read_single(zone)


class _Together:
    """Asks about unions of people's boxes."""

    def __init__(self, rules: Rules, chains: dict[int, Chain], thrift: Thrift) -> None:
        self._chains = chains
        self._held: set[int] = set()
        self._windows = Windows(
            records=rules.n,
            k=rules.k,
            hidden=rules.hidden,
            windows=thrift.windows,
            states=thrift.states,
            most_boxes=1 if thrift.boxes_only else 64,
            plain=thrift.plain,
        )

    def questions(self, final: bool) -> tuple[Codes | None, Codes, Codes]:
        """Return where questions begin among the people, people, and thresholds."""
        fresh = [person for person in self._chains if person not in self._held]
        self._held.update(fresh)
        chance = np.array([self._chains[person].chance for person in fresh])
        none = np.zeros(len(fresh), np.int64)
        self._windows.offer(
            np.array(fresh, np.int64), none, none + 1, np.stack([1 - chance, chance], axis=1)
        )
        return self._windows.questions(final)

    def learn(self, zone: Codes) -> tuple[Codes, Codes]:
        """Return for whom it is known whether they lie in their box, and 1 where they do."""
        people, right = self._windows.learn(zone)
        self._held.difference_update(people.tolist())
        return people, right


def _alone(
    facts: PublicFacts,
    crowd: _Crowd,
    so_far: Callable[[], PeopleFound],
    care: Care,
    thrift: Thrift | None,
) -> Attack[None]:
    """Find all attributes of people whom a single record fits."""
    rules, chains, lessons = crowd.rules, crowd.chains, crowd.lessons
    waves = _Waves(np.flatnonzero([person.matches == 1 for person in crowd.matched]))
    asking = _Singly(rules, chains) if thrift is None else _Together(rules, chains, thrift)

    def end(person: int) -> None:
        chain = chains.pop(person)
        crowd.take(chain)
        for each in waves.end(person):
            lessons.learn(each, crowd.places(each))

    while chains or waves.waiting:
        wave = waves.begin()
        if wave:
            believed = Believed(lessons)
        for person in wave:
            chains[person] = Chain(person, believed, lessons, crowd.bounds)
            if chains[person].over:
                end(person)
        if not chains:
            continue
        offsets, people, threshold = asking.questions(not waves.waiting)
        about = About("attributes", crowd.done, so_far)
        batch = _boxes(crowd, people, threshold, offsets, about)
        zone = yield from zones_of(facts, batch, care)
        told, right = asking.learn(zone)
        for person, yes in zip(told.tolist(), right.tolist(), strict=True):
            chains[person].tell(yes == 1)
            if chains[person].over:
                end(person)


def _boxes(
    crowd: _Crowd, people: Codes, threshold: Codes, offsets: Codes | None, about: About
) -> QueryBatch:
    """Return questions about the boxes of people.

    Most narrow one attribute. Where some narrow several, each box is a cell of its own.
    """
    boxes = [crowd.chains[person].box for person in people.tolist()]
    box = np.repeat(np.arange(len(boxes)), [len(each) for each in boxes])
    place = np.array([place for each in boxes for place in each], np.int64)
    ends = np.array([ends for each in boxes for ends in each.values()], np.int64)
    low, high = crowd.codes(place, ends[:, 0], ends[:, 1])
    columns = np.array([axis.column for axis in crowd.axes], np.int64)
    cells = crowd.cells
    if len(box) == len(boxes):
        return QueryBatch(
            cells, people, columns[place], low, high, threshold, offsets=offsets, about=about
        )
    used, narrowed = np.unique(place, return_inverse=True)
    lows = np.full((len(boxes), len(used)), MISSING)
    highs = np.full((len(boxes), len(used)), INFINITE)
    lows[box, narrowed], highs[box, narrowed] = low, high
    return QueryBatch(
        Cells(
            (*cells.columns, *columns[used].tolist()),
            np.hstack([cells.low[people], lows]),
            np.hstack([cells.high[people], highs]),
        ),
        np.arange(len(boxes)),
        np.full(len(boxes), WHOLE),
        np.full(len(boxes), MISSING),
        np.full(len(boxes), INFINITE),
        threshold,
        offsets=offsets,
        about=about,
    )


class _Matching(Splits):
    """Splits what several records that fit one person may have; an owner is an attribute of one.

    Args:
        crowd: Everybody.
        believed: What is believed.
    """

    def __init__(self, crowd: _Crowd, believed: Believed) -> None:
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
            cuts.append(self.believed.densities[place].halve(below, low, high))
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


def _several(
    facts: PublicFacts, crowd: _Crowd, so_far: Callable[[], PeopleFound], care: Care
) -> Attack[None]:
    """Find the values of all records that fit people, where several do."""
    waves = _Waves(np.flatnonzero([(person.matches or 0) > 1 for person in crowd.matched]))
    if not waves.waiting:
        return
    held = yield from _checked(facts, crowd, so_far, care)
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
            about = About("attributes", crowd.done, so_far)
            batch = QueryBatch(
                crowd.cells, person, column[place], low, high, threshold, about=about
            )
            zone = yield from zones_of(facts, batch, care)
            splits.learn(zone)
        over, splits.over = splits.over, []
        for person in over:
            if len(crowd.found[person]) == len(crowd.axes):
                for each in waves.end(person):
                    crowd.recall(each)


def _checked(
    facts: PublicFacts, crowd: _Crowd, so_far: Callable[[], PeopleFound], care: Care
) -> Attack[dict[tuple[int, int], bool]]:
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
        lambda _, __: About("attributes", crowd.done, so_far),
        care,
    )
    return {(row, place): yes for (row, place, _, _), yes in zip(asked, held, strict=True)}
