"""What searches that carry beliefs remember: a row each, and guesses of the largest value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from thinveil.attacker.beliefs.good_turing import View
from thinveil.attacker.beliefs.value_beliefs import Ladders
from thinveil.attacker.evidence.likelihood import Told
from thinveil.attacker.evidence.proofs import Columns, Proofs, at_least
from thinveil.attacker.terms import Values
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags, Floats

GUESSING, COUNTING, PROVING = 0, 1, 2
_TWICE: Final = 4  # how much longer the step of a guess is that takes two tests
_CROWDED: Final = 0.7  # the share of ladders that must be in use for all to be kept

Questions = tuple[Codes, Codes, Codes, Codes, Codes]
"""Owner, low end, high end, threshold and number of answers of each question."""


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """How searches go about their work.

    `nats` says how sure proofs must be where they are not the last word: they take no share of
    the error, and a group that contradicts itself is `lost`. None where they are.
    """

    prior: View | None = None  # what is likely beforehand; None where all values are
    nats: float | None = None
    epsilon: float | None = None  # what answers cost, where that is known
    patience: float = 1.0  # how many answers a guess gets at a time, compared to what is usual
    singly: bool = False  # whether records are counted value by value, not by halves of the range


@dataclass(slots=True, eq=False)
class State(Columns):
    """Where each search stands, one row each."""

    group: Codes  # the group that it belongs to
    left: Codes  # how many of its records have no value yet; 0 where it is over
    low: Codes  # the lowest value that they can have
    top: Codes  # one more than the highest
    phase: Codes  # whether it guesses a value, counts records, or proves both
    value: Codes  # the value guessed, or where the upper half begins
    count: Codes  # how many records are thought to be there
    doubted: Codes  # the count that failed to be proved last, or -1
    tries: Codes  # how often it began since something was proved last
    nats: Floats  # how sure its proofs must be
    give_up: Floats  # nats at which its proofs are given up
    share: Floats  # how likely the value guessed was
    chance: Floats  # how likely a record is to lie in the upper half
    halving: Flags  # whether it counts an upper half instead of a single value

    def ends(self, searches: Codes) -> Codes:
        """Return where ranges end whose records are counted: after one value, or at the top."""
        ends: Codes = np.where(self.halving[searches], self.top[searches], self.value[searches] + 1)
        return ends

    def proofs(self, facts: PublicFacts, searches: Codes) -> list[Proofs]:
        """Return tests that as many records have the value as found, and all others less."""
        count = self.count[searches]
        rest = self.left[searches] - count
        here, below = searches[count > 0], searches[rest > 0]
        value = self.value
        return [
            *Proofs.begun(facts, here, value[here], self.ends(here), count[count > 0], True),
            *Proofs.begun(facts, below, self.low[below], value[below], rest[rest > 0], False),
        ]


class Finds(Sequence[Any]):
    """What is found of each group; a look at it shows those of which something is found."""

    def __init__(self, sizes: Codes, values: list[Values] | None) -> None:
        self.values: list[Values] = [[] for _ in sizes] if values is None else values
        self._unknown = sizes.copy()  # records of each group without a value yet

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, group: Any) -> Any:
        return self.values[group] if self.values[group] or self._unknown[group] == 0 else None

    @property
    def left(self) -> int:
        """How many records have no value yet."""
        return int(self._unknown.sum())

    @property
    def done(self) -> Flags:
        """Which groups have nothing left to find."""
        done: Flags = self._unknown == 0
        return done

    def note(self, group: Codes, value: Codes, count: Codes) -> None:
        """Add values to what is found."""
        for place, *found in zip(group.tolist(), value.tolist(), count.tolist(), strict=True):
            self.values[place].append((found[0], found[1]))
        np.subtract.at(self._unknown, group, count)

    def give_up(self, groups: Flags) -> None:
        """Look for nothing more in these groups."""
        self._unknown[groups] = 0


class Guesses:
    """Guesses of the largest value of each search, made better by cuts."""

    def __init__(self, facts: PublicFacts, low: Codes, top: Codes, prior: View | None) -> None:
        self._facts = facts
        self.ladders = Ladders(low, top) if prior is None else prior.ladders(low, top)
        self.row = np.arange(len(low))  # the ladder of each search, -1 for none

    def add(self, low: Codes, top: Codes) -> None:
        """Add guesses for new searches."""
        self.row = np.concatenate([self.row, np.arange(len(low)) + self.ladders.rows])
        self.ladders.add(low, top)

    def keep(self, running: Codes) -> None:
        """Let go of the ladders of searches that are over, now and then."""
        if len(running) < _CROWDED * np.count_nonzero(self.row >= 0):
            self.ladders.keep(self.row[running])
            self.row[:] = -1
            self.row[running] = np.arange(len(running))

    def ask(self, searches: Codes, state: State, step: int, most: int) -> list[Questions]:
        """Return questions about cuts, and the second ones of cuts that take two tests.

        Two tests in one are only as good as the worse of them: chance must not decide which.
        """
        self._searches = searches
        self._cut = self.ladders.cuts(self.row[searches]) if len(searches) else searches
        claim, records = self._facts.claim, self._facts.records
        self._usual, second, twice = at_least(claim, records, state.left[searches])
        self._twice = some = np.flatnonzero(twice)
        self._second = second.some(some)
        low, repeats = state.low[searches], np.where(twice, min(_TWICE * step, most), step)
        return [
            (searches, low, self._cut, self._usual.threshold, repeats),
            (searches[some], low[some], self._cut[some], self._second.threshold, repeats[some]),
        ]

    def learn(self, usual: Told, second: Told | None) -> None:
        """Take in the answers to both."""
        lead = self._usual.lead(self._facts, *usual)
        if second is not None:
            again = self._second.lead(self._facts, *second)
            lead[self._twice] = np.minimum(lead[self._twice], again)
        self.ladders.lean(self.row[self._searches], self._cut, lead)
