"""Groups of records that agree on all attributes found so far, and how they came about.

A partition of the table that every attribute refines. Where nothing is proved on the way, a tree
remembers which group came from which, so that what turns out wrong can be searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import Triple, levels
from thinveil.attacker.findings import TableFound
from thinveil.attacker.terms import Axis, scaled
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import About, Cells, Codes, Flags
from thinveil.language.schema import MISSING

_LONG: Final = 64
"""Up to so many attributes, questions name them all: as few are checked and sent quickly."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of records that agree on all attributes found so far."""

    axes: tuple[Axis, ...]  # in the order in which they are searched
    codes: Codes  # the values of each group, a column an attribute found
    sizes: Codes  # the records of each group; 1 where only existence is shown
    known: Codes  # how many attributes are known of each group, from the left
    contexts: tuple[Codes, ...] = ()  # for earlier attributes, the level of each group's value
    bits: tuple[float, ...] | None = None  # what attributes were worth, if anything is believed
    distinct: bool = False  # whether how many records a group has is not known

    @classmethod
    def whole(
        cls,
        axes: Sequence[Axis],
        sizes: Sequence[int],
        bits: tuple[float, ...] | None = None,
        distinct: bool = False,
    ) -> Groups:
        """Return groups of which nothing is known but their sizes; most often one, the table."""
        codes, known = np.empty((len(sizes), 0), np.int64), np.zeros(len(sizes), np.int64)
        return cls(tuple(axes), codes, np.array(sizes, np.int64), known, (), bits, distinct)

    @property
    def depth(self) -> int:
        """How many attributes were searched."""
        return int(self.codes.shape[1])

    @property
    def columns(self) -> tuple[int, ...]:
        """The attributes that were searched."""
        return tuple(axis.column for axis in self.axes[: self.depth])

    @property
    def widths(self) -> tuple[int, ...]:
        """The precision of each of them."""
        return tuple(axis.width for axis in self.axes[: self.depth])

    def cells(self, records: int | None = None) -> Cells:
        """Return the groups as cells.

        Where they are all of so many records and have many attributes, the first few that tell
        all groups apart are named: a question holds the same records in fewer words.
        """
        depth = self.depth
        if depth > _LONG and records is not None and int(self.sizes.sum()) == records:
            depth = self._telling()
        return Cells.points(self.columns[:depth], self.codes[:, :depth], self.widths[:depth])

    def _telling(self) -> int:
        """Return how many attributes, from the left and a power of two, tell all groups apart."""
        many = 1
        while many < self.depth and len(np.unique(self.codes[:, :many], axis=0)) < len(self.codes):
            many *= 2
        return min(many, self.depth)

    def split(
        self,
        group: Codes,
        code: Codes,
        size: Codes,
        context: Codes | None = None,
        bits: float | None = None,
    ) -> Groups:
        """Return the groups that the values found of the next attribute make of these.

        Each new group has the group that it comes from, the code of its value, its size and
        perhaps, where that may predict others, the level of its value as a context.
        """
        contexts = [each[group] for each in self.contexts]
        return replace(
            self,
            codes=np.column_stack([self.codes[group], code]),
            sizes=size,
            known=self.known[group] + 1,
            contexts=tuple(contexts if context is None else [*contexts, context]),
            bits=self.bits if bits is None else (*(self.bits or ()), bits),
        )

    def joined(self, others: Groups, rows: Codes, sizes: Codes | None = None) -> Groups:
        """Return these groups and some rows of others, perhaps searched for fewer attributes.

        Sizes say how many of their records are meant, where not all are.
        """
        rest = np.zeros((len(rows), self.depth - others.depth), np.int64)
        more = others.sizes[rows] if sizes is None else sizes
        return replace(
            self,
            codes=np.vstack([self.codes, np.hstack([others.codes[rows], rest])]),
            sizes=np.concatenate([self.sizes, more]),
            known=np.concatenate([self.known, others.known[rows]]),
            contexts=(),
        )

    def plus(self, others: Groups) -> Groups:
        """Return these groups and others that were searched for the same attributes."""
        pairs = zip(self.contexts, others.contexts, strict=True)
        return replace(
            self,
            codes=np.vstack([self.codes, others.codes]),
            sizes=np.concatenate([self.sizes, others.sizes]),
            known=np.concatenate([self.known, others.known]),
            contexts=tuple(np.concatenate(pair) for pair in pairs),
        )

    def about(
        self, facts: PublicFacts, done: float, look: Callable[[], TableFound], start: float = 0.0
    ) -> About:
        """Describe a round of the search for the next attribute; it began with such a share."""
        of = len(self.axes)
        name = facts.schema[self.axes[self.depth].column].name
        share = start + (1 - start) * (self.depth + done) / of
        return About(f"attribute {self.depth + 1} of {of}: {name}", share, look)

    def table(self) -> TableFound:
        """Return the table as it is known."""
        rest = np.zeros((len(self.codes), len(self.axes) - self.depth), np.int64)
        return TableFound(
            tuple(axis.column for axis in self.axes),
            np.hstack([self.codes, rest]),
            self.known,
            self.sizes,
            tuple(axis.width for axis in self.axes),
            self.distinct,
            self.bits,
        )


def codes_of(axis: Axis, place: Codes) -> Codes:
    """Return the codes of places on an axis; missing values have the first place."""
    steps = place + axis.limits[0] - axis.missing
    if axis.missing:
        steps = np.where(place == 0, MISSING, steps)
    return scaled(steps, axis.width)


class Tree:
    """Groups as they are thought to be, those that they came from, and which ones are lost."""

    def __init__(self, axes: Sequence[Axis], records: int) -> None:
        self.groups = Groups.whole(axes, [records], bits=())
        self.lost = np.zeros(1, np.bool_)
        self.earlier = [self.groups]  # the groups at each depth
        self.parents = [np.zeros(1, np.int64)]  # for the groups of each depth, whence they came
        self.bad: list[Codes] = []  # groups of each depth that could not be searched

    def grow(self, found: Triple, lost: Flags, closed: Flags, bits: float) -> None:
        """Split groups by what was found of the next attribute; some are lost on the way."""
        group, place, size = found
        now = self.groups
        self.bad.append(np.flatnonzero(lost & ~self.lost))
        stay, gone = closed[group] & ~lost[group], np.flatnonzero(lost)
        group = np.concatenate([group[stay], gone])
        place = np.concatenate([place[stay], np.zeros(len(gone), np.int64)])
        size = np.concatenate([size[stay], now.sizes[gone]])
        self.lost = np.arange(len(group)) >= len(group) - len(gone)
        seen, number = np.unique(place, return_inverse=True)
        number, context = number.reshape(-1), None
        if len(seen) > 1:
            context = levels(np.bincount(number, size).astype(np.int64))[number]
        axis = now.axes[now.depth]
        after = now.split(group, codes_of(axis, place), size, context, bits)
        known = np.where(self.lost, now.known[group], after.depth)
        self.groups = replace(after, known=known)
        self.earlier.append(replace(self.groups, contexts=()))
        self.parents.append(group)

    def partly(self, found: Triple) -> TableFound:
        """Return the table with one more attribute half found."""
        group, place, size = found
        now = self.groups
        there = ~self.lost[group]
        group, place, size = group[there], place[there], size[there]
        left = now.sizes - np.bincount(group, size, len(now.sizes)).astype(np.int64)
        rows = np.flatnonzero(left)
        after = now.split(group, codes_of(now.axes[now.depth], place), size)
        return after.joined(now, rows, left[rows]).table()

    def topmost(self, roots: list[Codes]) -> list[Codes]:
        """Leave out groups whose forebears are among the roots as well."""
        kept = list(roots)
        for depth, mine in enumerate(roots):
            kept[depth] = mine[~self._stems(depth, mine, kept)]
        return kept

    def _stems(self, depth: int, groups: Codes, roots: list[Codes]) -> Flags:
        """Tell which groups of some depth came from roots above it."""
        stems = np.zeros(len(groups), np.bool_)
        for above in range(depth - 1, -1, -1):
            groups = self.parents[above + 1][groups]
            stems |= np.isin(groups, roots[above])
        return stems

    def regrow(self, roots: list[Codes], again: Groups) -> None:
        """Put what was found again in the place of all that came from some groups."""
        now = self.groups
        stems = self._stems(now.depth, np.arange(len(now.sizes)), roots)
        self.groups = replace(again.joined(now, np.flatnonzero(~stems)), bits=now.bits)
