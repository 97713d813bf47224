"""Beliefs about where a value lies: many of them side by side, constant between cuts.

A ladder is a belief about one value among many, such as the largest value of a group of
records. A question about a cut splits it in two; the answers make one side likelier. The
belief is constant between the cuts asked so far, so a few numbers hold all of it, however
many values there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.language.queries import Codes, Floats

_MOST_PIECES: Final = 48
_KEPT_PIECES: Final = 16
_NEVER: Final = -1e6


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """How much belief lies below each value, for all rows alike: straight between knots."""

    knots: Floats  # values, ascending
    below: Floats  # what lies below each of them, ascending strictly

    def upto(self, values: Codes) -> Floats:
        """Return how much lies below each value."""
        return np.interp(values, self.knots, self.below)

    def at(self, below: Floats) -> Floats:
        """Return where so much lies below."""
        return np.interp(below, self.below, self.knots)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What is believed at first, a row a ladder: pieces, and how dense belief is in each."""

    edge: Codes  # where pieces begin and end, ascending; pieces may be empty
    density: Floats  # the logarithm of how much denser each is than the measure says


class Ladders:
    """Beliefs in rows, each over the values from its low end up to its top (not included).

    The measure says how likely values are before anything is asked; None for all alike. A row
    may start with so many pieces.
    """

    def __init__(
        self, low: Codes, top: Codes, measure: Measure | None = None, pieces: int = 1
    ) -> None:
        self._measure = measure
        self._most, self._kept = max(_MOST_PIECES, 3 * pieces), max(_KEPT_PIECES, pieces)
        self._edge = np.stack([low, *[top] * pieces], axis=1)
        self._density = np.full((len(low), pieces), _NEVER)
        self._density[:, 0] = 0.0
        self._upto = self._below(self._edge)

    def _below(self, values: Codes) -> Floats:
        """Return how much lies below values; nothing is kept of it where all are alike."""
        return np.empty((len(values), 0)) if self._measure is None else self._measure.upto(values)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._edge)

    def begin(self, rows: Codes, low: Codes, top: Codes, start: Start | None = None) -> None:
        """Forget what is believed in some rows: every value from low to top is as likely.

        Or likely as the measure says; with a start, as that says.
        """
        self._edge[rows] = top[:, None]
        self._edge[rows, 0] = low
        self._density[rows] = _NEVER
        self._density[rows, 0] = 0.0
        if start is not None:
            self._edge[rows, : start.edge.shape[1]] = start.edge
            self._density[rows, : start.density.shape[1]] = start.density
        if self._measure is not None:
            self._upto[rows] = self._below(self._edge[rows])

    def add(self, low: Codes, top: Codes) -> None:
        """Add rows that believe every value from low to top as likely."""
        first = len(self._edge)
        wide = np.zeros((len(low), self._edge.shape[1]), np.int64)
        self._edge = np.vstack([self._edge, wide])
        self._density = np.vstack([self._density, wide[:, 1:]])
        self._upto = np.vstack([self._upto, self._below(wide)])
        self.begin(np.arange(first, first + len(low)), low, top)

    def keep(self, rows: Codes) -> None:
        """Keep these rows only."""
        self._edge, self._density = self._edge[rows], self._density[rows]
        self._upto = self._upto[rows]

    def _masses(self, rows: Codes) -> Floats:
        density = self._density[rows]
        size = np.diff((self._edge if self._measure is None else self._upto)[rows], axis=1)
        peak = np.where(size > 0, density, _NEVER).max(axis=1, keepdims=True)
        masses: Floats = size * rounded(np.exp(density - peak))
        return masses

    def best(self, rows: Codes) -> tuple[Codes, Floats]:
        """Return the likeliest single value of each row and how likely it is (0 if unclear)."""
        mass = self._masses(rows)
        place = mass.argmax(axis=1)
        each = np.arange(len(rows))
        edge = self._edge[rows]
        share = mass[each, place] / mass.sum(axis=1)
        if self._measure is not None:
            return self._heaviest(rows, place, share)
        alone = edge[each, place + 1] - edge[each, place] == 1
        return edge[each, place], np.where(alone, share, 0.0)

    def _heaviest(self, rows: Codes, place: Codes, share: Floats) -> tuple[Codes, Floats]:
        """Return the value in the middle of a piece, and its part of the piece's share."""
        assert self._measure is not None
        left, right = self._upto[rows, place], self._upto[rows, place + 1]
        first, end = self._edge[rows, place], self._edge[rows, place + 1]
        middle = np.floor(self._measure.at((left + right) / 2) + 1e-9).astype(np.int64)
        value = np.minimum(np.maximum(middle, first), end - 1)
        mine = self._measure.upto(value + 1) - self._measure.upto(value)
        return value, share * np.minimum(mine / np.maximum(right - left, 1e-300), 1.0)

    def cuts(self, rows: Codes) -> Codes:
        """Return a cut for each row that splits its belief as evenly as can be."""
        mass = self._masses(rows)
        below = np.cumsum(mass, axis=1)
        half = below[:, -1:] / 2
        place = (below >= half).argmax(axis=1)
        each = np.arange(len(rows))
        edge = self._edge[rows]
        left, right = edge[each, place], edge[each, place + 1]
        inside = half[:, 0] - below[each, place] + mass[each, place]
        share = inside / np.maximum(mass[each, place], 1e-300)
        if self._measure is None:
            cut = left + np.rint(share * (right - left)).astype(np.int64)
        else:
            start, end = self._upto[rows, place], self._upto[rows, place + 1]
            at = self._measure.at(start + share * (end - start))
            cut = np.minimum(np.maximum(np.rint(at).astype(np.int64), left), right)
        low, top = edge[:, 0], edge[:, -1]
        inner: Codes = np.minimum(np.maximum(cut, low + 1), top - 1)
        return inner

    def lean(self, rows: Codes, cut: Codes, nats: Floats) -> None:
        """Make every value below the cut of its row likelier by so many nats."""
        self._split(rows, cut)
        self._density[rows] += np.where(self._edge[rows, :-1] < cut[:, None], nats[:, None], 0.0)

    def doubt(self, rows: Codes, value: Codes, nats: Floats) -> None:
        """Make one value of each row less likely, by so many (negative) nats."""
        low, top = self._edge[rows, 0], self._edge[rows, -1]
        inner = value > low
        self.lean(rows[inner], value[inner], -nats[inner])
        inner = value + 1 < top
        self.lean(rows[inner], value[inner] + 1, nats[inner])

    def _split(self, rows: Codes, cut: Codes) -> None:
        """Add an edge at each cut; where there is one already, an empty piece is added."""
        if self._measure is not None and (self._edge[rows] == cut[:, None]).any(axis=1).all():
            return
        if self._density.shape[1] >= self._most:
            self._forget()
        pieces = self._density.shape[1]
        edge = np.column_stack([self._edge, self._edge[:, -1]])
        density = np.column_stack([self._density, np.full(len(edge), _NEVER)])
        place = (self._edge[rows] < cut[:, None]).sum(axis=1)  # edges below the cut
        source = np.arange(pieces + 2) - (np.arange(pieces + 2) >= place[:, None])
        new = np.arange(len(rows)), np.minimum(place, pieces + 1)
        moved = np.take_along_axis(self._edge[rows], np.minimum(source, pieces), axis=1)
        moved[new] = cut
        edge[rows] = moved
        from_piece = np.minimum(source[:, :-1], pieces - 1)
        density[rows] = np.take_along_axis(self._density[rows], np.maximum(from_piece, 0), axis=1)
        if self._measure is not None:
            upto = np.column_stack([self._upto, self._upto[:, -1]])
            moved_upto = np.take_along_axis(self._upto[rows], np.minimum(source, pieces), axis=1)
            moved_upto[new] = self._below(cut)
            upto[rows] = moved_upto
            self._upto = upto
        self._edge, self._density = edge, density

    def _forget(self) -> None:
        """Let go of pieces that hardly matter: their values become impossible here."""
        rows = np.arange(len(self._edge))
        mass = self._masses(rows)
        order = np.argsort(-mass, axis=1, kind="stable")[:, : self._kept]
        order.sort(axis=1)
        kept = np.take_along_axis(mass, order, axis=1) > 0
        left = np.take_along_axis(self._edge[:, :-1], order, axis=1)
        right = np.take_along_axis(self._edge[:, 1:], order, axis=1)
        density = np.where(kept, np.take_along_axis(self._density, order, axis=1), _NEVER)
        # every kept piece is followed by the gap up to the next one
        edges = np.empty((len(rows), 2 * self._kept + 2), np.int64)
        edges[:, 0], edges[:, -1] = self._edge[:, 0], self._edge[:, -1]
        edges[:, 1:-1:2], edges[:, 2:-1:2] = left, right
        densities = np.full((len(rows), 2 * self._kept + 1), _NEVER)
        densities[:, 1::2] = density
        self._edge, self._density = edges, densities
        self._upto = self._below(edges)
