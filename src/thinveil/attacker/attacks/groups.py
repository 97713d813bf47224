"""Groups of records as they are thought to be, and how they came about.

Nothing here is proved yet. So that what turns out wrong can be searched again, every group knows
the groups it came from, and what could not be searched is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thinveil.attacker.attacks.final_proofs import Claims
from thinveil.attacker.beliefs.arrays import levels
from thinveil.attacker.findings import TableFound
from thinveil.attacker.terms import Axis, scaled
from thinveil.language.queries import Cells, Codes, Flags
from thinveil.language.schema import MISSING


def codes_of(axis: Axis, place: Codes) -> Codes:
    """Return the codes of places on an axis; missing values have the first place."""
    steps = place + axis.limits[0] - axis.missing
    if axis.missing:
        steps = np.where(place == 0, MISSING, steps)
    return scaled(steps, axis.width)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The groups at one depth: where they lie, how many records they hold, whence they came."""

    places: Codes
    sizes: Codes
    parent: Codes


class Tree:
    """Groups of records that agree on all attributes searched so far, and how they came about.

    Args:
        axes: The attributes in the order in which they are searched.
        records: How many records there are.
    """

    def __init__(self, axes: Sequence[Axis], records: int) -> None:
        self.axes = list(axes)
        self.n = records
        self.places = np.empty((1, 0), np.int64)
        self.sizes = np.array([records], np.int64)
        self.lost = np.zeros(1, np.bool_)
        self.contexts: list[Codes] = []
        self.bits: list[float] = []
        self.levels = [Level(self.places, self.sizes, np.zeros(1, np.int64))]
        self.line = np.zeros((1, 1), np.int64)  # for each group, its forebears at all depths
        self.bad: list[Codes] = []  # groups of each depth that could not be searched
        self.known = np.zeros(1, np.int64)

    @property
    def depth(self) -> int:
        """How many attributes were searched."""
        return self.places.shape[1]

    def codes(self, places: Codes) -> Codes:
        """Return the codes of places, a column an attribute."""
        codes = np.empty(places.shape, np.int64)
        for column in range(places.shape[1]):
            codes[:, column] = codes_of(self.axes[column], places[:, column])
        return codes

    def cells(self, places: Codes | None = None) -> Cells:
        """Return groups as cells."""
        places = self.places if places is None else places
        mine = self.axes[: places.shape[1]]
        return Cells.points(
            tuple(axis.column for axis in mine),
            self.codes(places),
            tuple(axis.width for axis in mine),
        )

    def grow(
        self, group: Codes, place: Codes, size: Codes, lost: Flags, bits: float, closed: Flags
    ) -> None:
        """Split groups by what was found of the next attribute; some are lost on the way."""
        newly = np.flatnonzero(lost & ~self.lost)
        self.bad.append(newly)
        stay = closed[group] & ~lost[group]
        gone = np.flatnonzero(lost)
        group = np.concatenate([group[stay], gone])
        place = np.concatenate([place[stay], np.zeros(len(gone), np.int64)])
        size = np.concatenate([size[stay], self.sizes[gone]])
        self.lost = np.concatenate([np.zeros(int(stay.sum()), np.bool_), lost[gone]])
        self.known = np.where(self.lost, self.known[group], self.depth + 1)
        places = self.axes[self.depth].size
        self.places = np.column_stack([self.places[group], place])
        self.sizes = size
        self.line = np.column_stack([self.line[group], np.arange(len(group))])
        self.levels.append(Level(self.places, self.sizes, self.line[:, -2]))
        self.contexts = [each[group] for each in self.contexts]
        self.bits.append(bits)
        seen, number = np.unique(place, return_inverse=True)
        number = number.reshape(-1)
        if len(seen) > 1 and places > 1:
            weight = np.bincount(number, size).astype(np.int64)
            self.contexts.append(levels(weight)[number])

    def _table(self, places: Codes, known: Codes, sizes: Codes) -> TableFound:
        codes = self.codes(places)
        rest = np.zeros((len(codes), len(self.axes) - codes.shape[1]), np.int64)
        return TableFound(
            tuple(axis.column for axis in self.axes),
            np.hstack([codes, rest]),
            known,
            sizes,
            tuple(axis.width for axis in self.axes),
            bits=tuple(self.bits),
        )

    def table(self) -> TableFound:
        """Return the table as it is known."""
        return self._table(self.places, self.known, self.sizes)

    def with_stage(self, group: Codes, place: Codes, size: Codes, closed: Flags) -> TableFound:
        """Return the table with one more attribute half found."""
        done = closed[group] & ~self.lost[group]
        left = np.flatnonzero(~closed | self.lost)
        return self._table(
            np.vstack(
                [
                    np.column_stack([self.places[group[done]], place[done]]),
                    np.column_stack([self.places[left], np.zeros(len(left), np.int64)]),
                ]
            ),
            np.concatenate([np.full(int(done.sum()), self.depth + 1), self.known[left]]),
            np.concatenate([size[done], self.sizes[left]]),
        )

    def claims(self, depth: int, rows: Codes, places: Codes, sizes: Codes) -> Claims:
        """Return the claim that so many records lie in each of some cells."""
        axis = self.axes[depth - 1]
        cells = self.cells(places[rows][:, : depth - 1])
        code = codes_of(axis, places[rows][:, depth - 1])
        return Claims(cells, axis.column, code, axis.width, sizes[rows])

    def topmost(self, roots: list[Codes]) -> list[Codes]:
        """Leave out groups whose forebears are among the roots as well."""
        kept = list(roots)
        for depth in range(len(roots)):
            above = kept[depth]
            for each in range(depth - 1, -1, -1):
                above = self.levels[each + 1].parent[above] if len(above) else above
                stay = ~np.isin(above, kept[each])
                kept[depth], above = kept[depth][stay], above[stay]
        return kept

    def regrow(self, roots: list[Codes], places: Codes, sizes: Codes) -> None:
        """Put what was found again in the place of all that came from some groups."""
        stay = np.ones(len(self.sizes), np.bool_)
        for depth, groups in enumerate(roots):
            stay &= ~np.isin(self.line[:, depth], groups)
        self.places = np.vstack([self.places[stay], places])
        self.sizes = np.concatenate([self.sizes[stay], sizes])
        self.lost = np.concatenate([self.lost[stay], np.zeros(len(places), np.bool_)])
        self.known = np.concatenate([self.known[stay], np.full(len(places), len(self.axes))])
        self.line = self.line[:0]
