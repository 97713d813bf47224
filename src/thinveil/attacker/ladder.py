"""Beliefs about where a value lies: many of them side by side, constant between cuts.

A ladder is a belief about one value among many, such as the largest value of a group of
records. A question about a cut splits it in two; the answers make one side likelier. The
belief is constant between the cuts asked so far, so a few numbers hold all of it, however
many values there are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from thinveil.language.queries import Codes, Floats

_MOST_PIECES: Final = 48
_KEPT_PIECES: Final = 16
_NEVER: Final = -1e6


class Ladders:
    """Beliefs in rows, each over the values from its low end up to its top (not included).

    Args:
        low: The lowest possible value of each row.
        top: One more than the highest possible value of each row.
    """

    def __init__(self, low: Codes, top: Codes) -> None:
        self._edge = np.stack([low, top], axis=1)
        self._density = np.zeros((len(low), 1))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._edge)

    def begin(self, rows: Codes, low: Codes, top: Codes) -> None:
        """Forget what is believed in some rows: every value from low to top is as likely."""
        self._edge[rows] = top[:, None]
        self._edge[rows, 0] = low
        self._density[rows] = _NEVER
        self._density[rows, 0] = 0.0

    def add(self, low: Codes, top: Codes) -> None:
        """Add rows that believe every value from low to top as likely."""
        first = len(self._edge)
        wide = np.zeros((len(low), self._edge.shape[1]), np.int64)
        self._edge = np.vstack([self._edge, wide])
        self._density = np.vstack([self._density, wide[:, 1:]])
        self.begin(np.arange(first, first + len(low)), low, top)

    def keep(self, rows: Codes) -> None:
        """Keep these rows only."""
        self._edge, self._density = self._edge[rows], self._density[rows]

    def _masses(self, rows: Codes) -> Floats:
        density = self._density[rows]
        size = np.diff(self._edge[rows], axis=1)
        peak = np.where(size > 0, density, _NEVER).max(axis=1, keepdims=True)
        masses: Floats = size * np.exp(density - peak)
        return masses

    def best(self, rows: Codes) -> tuple[Codes, Floats]:
        """Return the likeliest single value of each row and how likely it is (0 if unclear)."""
        mass = self._masses(rows)
        place = mass.argmax(axis=1)
        each = np.arange(len(rows))
        edge = self._edge[rows]
        alone = edge[each, place + 1] - edge[each, place] == 1
        share = mass[each, place] / mass.sum(axis=1)
        return edge[each, place], np.where(alone, share, 0.0)

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
        cut = left + np.rint(share * (right - left)).astype(np.int64)
        low, top = edge[:, 0], edge[:, -1]
        inner: Codes = np.minimum(np.maximum(cut, low + 1), top - 1)
        return inner

    def lean(self, rows: Codes, cut: Codes, nats: Floats) -> None:
        """Make every value below the cut of its row likelier by so many nats."""
        self._split(rows, cut)
        self._density[rows] += np.where(self._edge[rows, :-1] < cut[:, None], nats[:, None], 0.0)

    def _split(self, rows: Codes, cut: Codes) -> None:
        """Add an edge at each cut; where there is one already, an empty piece is added."""
        if self._density.shape[1] >= _MOST_PIECES:
            self._forget()
        pieces = self._density.shape[1]
        edge = np.column_stack([self._edge, self._edge[:, -1]])
        density = np.column_stack([self._density, np.full(len(edge), _NEVER)])
        place = (self._edge[rows] < cut[:, None]).sum(axis=1)  # edges below the cut
        source = np.arange(pieces + 2) - (np.arange(pieces + 2) >= place[:, None])
        moved = np.take_along_axis(self._edge[rows], np.minimum(source, pieces), axis=1)
        moved[np.arange(len(rows)), np.minimum(place, pieces + 1)] = cut
        edge[rows] = moved
        from_piece = np.minimum(source[:, :-1], pieces - 1)
        density[rows] = np.take_along_axis(self._density[rows], np.maximum(from_piece, 0), axis=1)
        self._edge, self._density = edge, density

    def _forget(self) -> None:
        """Let go of pieces that hardly matter: their values become impossible here."""
        rows = np.arange(len(self._edge))
        mass = self._masses(rows)
        order = np.argsort(-mass, axis=1, kind="stable")[:, :_KEPT_PIECES]
        order.sort(axis=1)
        kept = np.take_along_axis(mass, order, axis=1) > 0
        left = np.take_along_axis(self._edge[:, :-1], order, axis=1)
        right = np.take_along_axis(self._edge[:, 1:], order, axis=1)
        density = np.where(kept, np.take_along_axis(self._density, order, axis=1), _NEVER)
        # every kept piece is followed by the gap up to the next one
        edges = np.empty((len(rows), 2 * _KEPT_PIECES + 2), np.int64)
        edges[:, 0], edges[:, -1] = self._edge[:, 0], self._edge[:, -1]
        edges[:, 1:-1:2], edges[:, 2:-1:2] = left, right
        densities = np.full((len(rows), 2 * _KEPT_PIECES + 1), _NEVER)
        densities[:, 1::2] = density
        self._edge, self._density = edges, densities
