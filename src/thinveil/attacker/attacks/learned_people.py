"""Attributes of people, where what was found of the first predicts the next.

No histogram of the table is known, and to learn one would cost more than it saves. Beliefs begin
with the public domains (`polya_tree`) and are sharpened by the values found. People take their
turn in waves that grow with what is known. Each is searched attribute by attribute
(`record_chain`); what is known of them and what was found before are `contexts`. Where several
records fit somebody, their values are counted.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.attacker.attacks.people import cells_of, matches, person_of
from thinveil.attacker.attacks.people_state import Crowd, Part, Turns
from thinveil.attacker.attacks.record_chain import Believed, Chain, Range
from thinveil.attacker.attacks.table import Wish
from thinveil.attacker.engines.coroutines import Work, exceeds, side_by_side
from thinveil.attacker.engines.published import evenly
from thinveil.attacker.engines.splitting import Splits
from thinveil.attacker.engines.unions import Thrift
from thinveil.attacker.engines.waves import Pace
from thinveil.attacker.engines.windows.windows import Windows
from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.sequential import zones_of
from thinveil.attacker.findings import PeopleFound
from thinveil.attacker.terms import Attack, Rules
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import WHOLE, Cells, Codes, Floats, QueryBatch
from thinveil.language.schema import INFINITE, MISSING

_FEW: Final = 8  # people who are searched before anything is learned
_SHARE: Final = 0.6  # then fewer at a time than are over: so much is known of them
_MANY: Final = 64  # at first where people are asked about together: there are fewer turns
_SIXTEENTH: Final = 16  # but no more than such a part of all


def attributes(facts: PublicFacts, care: Care, wish: Wish) -> Attack[PeopleFound]:
    """Find unknown attributes of people from the known ones, learning on the way (Example 4).

    Several people are asked about at once where the wish allows it and that pays (k = 1,
    direction shown).
    """
    number: dict[tuple[tuple[int, int], ...], int] = {}  # of everybody who is different
    rows = [number.setdefault(tuple(sorted(who.items())), len(number)) for who in wish.people]
    each = [dict(who) for who in number]
    counts = np.ones(len(each), np.int64)
    if not wish.alone:
        counts = yield from matches(evenly(facts, care), each)
    matched = [person_of(facts, count) for count in counts.tolist()]
    cells, _ = cells_of(facts, each)
    crowd = Crowd(facts, wish, cells, matched, rows)
    yield from _alone(facts, crowd, care, wish.thrift)
    yield from _several(facts, crowd, care)
    return crowd.so_far()


class _Singly:
    """Asks about everybody by himself, all at the same time."""

    def __init__(self, rules: Rules, chains: dict[int, Chain]) -> None:
        self._rules, self._chains = rules, chains
        self._asked = np.empty(0, np.int64)

    def questions(self, final: bool) -> tuple[Codes | None, Codes, Codes]:
        """Return where questions begin among the people, people, and thresholds."""
        self._asked = np.array(list(self._chains), np.int64)
        return None, self._asked, np.full(len(self._asked), self._rules.threshold(0))

    def learn(self, zone: Codes) -> tuple[Codes, Codes]:
        """Return for whom it is known whether they lie in their box, and 1 where they do."""
        return self._asked, self._rules.present(zone).astype(np.int64)


class _Together(_Singly):
    """Asks about unions of people's boxes."""

    def __init__(self, rules: Rules, chains: dict[int, Chain], thrift: Thrift) -> None:
        super().__init__(rules, chains)
        self._held: set[int] = set()
        self._windows = Windows(
            rules, windows=thrift.windows, states=thrift.states, plain=thrift.plain
        )

    def questions(self, final: bool) -> tuple[Codes | None, Codes, Codes]:
        """Return where questions begin among the people, people, and thresholds."""
        fresh = [person for person in self._chains if person not in self._held]
        self._held.update(fresh)
        chance = np.array([self._chains[person].chance for person in fresh])
        people = np.array(fresh, np.int64)
        none, mass = np.zeros_like(people), np.stack([1 - chance, chance], axis=1)
        self._windows.offer(people, none, none + 1, mass)
        return self._windows.questions(final)

    def learn(self, zone: Codes) -> tuple[Codes, Codes]:
        """Return for whom it is known whether they lie in their box, and 1 where they do."""
        people, right = self._windows.learn(zone)
        self._held.difference_update(people.tolist())
        return people, right


def _alone(facts: PublicFacts, crowd: Crowd, care: Care, thrift: Thrift | None) -> Attack[None]:
    """Find all attributes of people whom a single record fits."""
    rules, chains, lessons = crowd.rules, crowd.chains, crowd.lessons
    alone = np.flatnonzero([person.matches == 1 for person in crowd.matched])
    if rules.k != 1 or rules.hidden:
        thrift = None  # a union tells more than one box where all three answers are about as likely
    pace, asking = Pace(_FEW, _SHARE), _Singly(rules, chains)
    if thrift is not None and not thrift.boxes_only:
        pace = Pace(max(_FEW, min(_MANY, len(alone) // _SIXTEENTH)))
        asking = _Together(rules, chains, thrift)
    waves = Turns(alone, pace)

    def end(person: int) -> None:
        chain = chains.pop(person)
        crowd.take(chain)
        for each in waves.over(person):
            lessons.learn(each, crowd.places(each))

    while chains or waves.waiting:
        wave = waves.next()
        if wave:
            believed = Believed(lessons)
        for person in wave:
            chains[person] = Chain(person, believed, crowd.bounds)
            if chains[person].over:
                end(person)
        if not chains:
            continue
        offsets, people, threshold = asking.questions(not waves.waiting)
        batch = _boxes(crowd, people, threshold, offsets)
        zone = yield from zones_of(facts, batch, care)
        told, right = asking.learn(zone)
        for person, yes in zip(told.tolist(), right.tolist(), strict=True):
            chains[person].tell(yes == 1)
            if chains[person].over:
                end(person)


def _boxes(crowd: Crowd, people: Codes, threshold: Codes, offsets: Codes | None) -> QueryBatch:
    """Return questions about the boxes of people.

    Most narrow one attribute. Where some narrow several, each box is a cell of its own.
    """
    boxes = [crowd.chains[person].box for person in people.tolist()]
    box = np.repeat(np.arange(len(boxes)), [len(each) for each in boxes])
    place = np.array([place for each in boxes for place in each], np.int64)
    ends = np.array([ends for each in boxes for ends in each.values()], np.int64)
    column, low, high = crowd.codes(place, ends[:, 0], ends[:, 1])
    cells, cell = crowd.cells, people
    if len(box) > len(boxes):
        _, used, narrowed = np.unique(place, return_index=True, return_inverse=True)
        lows = np.full((len(boxes), len(used)), MISSING)
        highs = np.full((len(boxes), len(used)), INFINITE)
        lows[box, narrowed], highs[box, narrowed] = low, high
        cells = Cells(
            (*cells.columns, *column[used].tolist()),
            np.hstack([cells.low[people], lows]),
            np.hstack([cells.high[people], highs]),
        )
        cell, column = np.arange(len(boxes)), np.full(len(boxes), WHOLE)
        low, high = np.full(len(boxes), MISSING), np.full(len(boxes), INFINITE)
    about = crowd.about()
    return QueryBatch(cells, cell, column, low, high, threshold, offsets=offsets, about=about)


# -- several records that fit one person --------------------------------------------------


class _Matching(Splits):
    """Splits what several records that fit one person may have; an owner is one of the parts."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd.rules)
        self._crowd = crowd
        self.believed = Believed(crowd.lessons)
        self.parts: list[Part] = []
        self.over: list[int] = []

    def begin(self, person: int, place: int, bounds: Range | None, held: bool) -> None:
        """Add an attribute of a person."""
        domain, size = self._crowd.domains[place], self._crowd.matched[person].matches or 0
        low, high = bounds if bounds is not None and held else (domain.first, domain.high)
        self.parts.append(Part(person, place, held, size))
        self._crowd.half[person][place] = self.parts[-1]
        node = len(self.parts) - 1, low, high, size
        self.add(*(np.array([each]) for each in node))

    def plan(self, nodes: Codes) -> tuple[Codes, Floats, Codes, Codes]:
        """Cut where half of what is believed of anybody lies on either side."""
        size, cut, chance = self.size[nodes], np.empty_like(nodes), np.empty(len(nodes))
        spans = np.column_stack([self.owner[nodes], self.first[nodes], self.end[nodes]])
        for number, (owner, low, high) in enumerate(spans.tolist()):
            place = self.parts[owner].place
            density, below = self.believed.densities[place], self.believed.plain[place]
            cut[number], chance[number] = density.cut(below, low, high)
        return cut, chance, np.zeros_like(size), size

    def charge(self, nodes: Codes, bits: Floats) -> None:
        """Add what was told about nodes to their owners."""
        for owner, told in zip(self.owner[nodes].tolist(), bits.tolist(), strict=True):
            self.parts[owner].bits += told

    def settle(self, nodes: Codes) -> None:
        """Note values with their counts."""
        values = np.column_stack([self.owner[nodes], self.first[nodes], self.size[nodes]])
        for owner, value, size in values.tolist():
            part = self.parts[owner]
            part.values.append((value, size))
            part.left -= size
            if not part.left:
                found = sorted(part.values)
                self._crowd.note(part.person, part.place, found, part.bits, part.held)
                self.over.append(part.person)


def _several(facts: PublicFacts, crowd: Crowd, care: Care) -> Attack[None]:
    """Find the values of all records that fit people, where several do."""
    there = np.flatnonzero([(person.matches or 0) > 1 for person in crowd.matched])
    waves = Turns(there, Pace(_FEW))
    if not waves.waiting:
        return
    held = yield from _checked(facts, crowd, care)
    splits = _Matching(crowd)
    while waves.waiting or splits.waiting:
        wave = waves.next()
        if wave:
            splits.believed = Believed(crowd.lessons)
        for person in wave:
            for place, bounds in enumerate(crowd.bounds):
                splits.begin(person, place, bounds, held.get((person, place), True))
        if splits.waiting:
            _, nodes, threshold = splits.unions()
            asked = [splits.parts[owner] for owner in splits.owner[nodes].tolist()]
            person, place = np.array([(part.person, part.place) for part in asked]).T
            box = crowd.codes(place, splits.first[nodes], splits.cut[nodes])
            batch = QueryBatch(crowd.cells, person, *box, threshold, about=crowd.about())
            splits.learn((yield from zones_of(facts, batch, care)))
        over, splits.over = splits.over, []
        for person in dict.fromkeys(over):
            if len(crowd.found[person]) == len(crowd.axes):
                for each in waves.over(person):
                    crowd.recall(each)


def _checked(facts: PublicFacts, crowd: Crowd, care: Care) -> Attack[dict[tuple[int, int], bool]]:
    """Tell where the user's bounds hold for all of several records that fit a person."""
    asked = {
        (row, place): Work(exceeds(crowd.rules, *bounds, size - 1, size), row, crowd.axes[place])
        for row, size in enumerate(person.matches or 0 for person in crowd.matched)
        for place, bounds in enumerate(crowd.bounds)
        if size > 1 and bounds is not None
    }
    works = list(asked.values())
    held = yield from side_by_side(facts, crowd.cells, works, lambda _, __: crowd.about(), care)
    return dict(zip(asked, held, strict=True))
