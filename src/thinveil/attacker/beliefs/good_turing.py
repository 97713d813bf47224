"""What is likely of an attribute before it is known, learned from records found so far.

Nothing is known of the attribute at first. Values found are expected again, the rest of the
domain is left as much as the number of values seen once suggests (Good and Turing), near
to where values were found. What the earlier attributes of a group say comes on top, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import Triple, binned, joined, rounded, summed
from thinveil.attacker.beliefs.beta_binomial import Spread, log_gamma
from thinveil.attacker.beliefs.contexts import Mixer
from thinveil.attacker.beliefs.count_curves import Curves, Widths
from thinveil.attacker.beliefs.value_beliefs import Ladders, Measure, Start
from thinveil.language.queries import Codes, Floats

_FINE: Final = 64  # a domain of so many places is predicted place by place
_CELLS: Final = 32  # a larger one in so many cells of about equal weight
_EVEN: Final = 0.2  # how much of what was not seen is thought to lie anywhere
_ENOUGH: Final = 64  # records before other attributes are listened to
_PLAIN: Final = 0.002  # how far their word is not taken
_ALIKE: Final = 4.0  # how many records of a group, about, tell as much as all of them
_ANY: Final = 0.1  # how likely a count is to be any other than what its spread suggests
_LEAST: Final = 1e-12
_SCALE: Final = 1e12


class Outlook:
    """Learns how likely the values of one attribute are, in each group of records.

    Contexts are, for each earlier attribute, the number of each group's value (or bin).
    """

    def __init__(self, places: int, contexts: list[Codes]) -> None:
        self.places = places
        self._contexts = contexts
        self.spread, self.widths = Spread(), Widths()

    def view(self, groups: Codes, found: Iterable[Triple]) -> View:
        """Return what is likely in some groups by what was found so far."""
        group, place, count = joined(found)
        seen, number = np.unique(place, return_inverse=True)
        counts = np.bincount(number.reshape(-1), count, len(seen)).astype(np.float64)
        edges = self._edges(seen, counts)
        measure = _measure(self.places, seen, counts, edges)
        base = np.maximum(np.diff(measure.upto(edges)), _LEAST)
        base /= base.sum()
        ratio = np.zeros((len(groups), len(base)))
        if self._contexts and counts.sum() >= _ENOUGH and len(base) > 1:
            cells = np.maximum(np.rint(base * _SCALE), 1).astype(np.int64)
            mixer = Mixer(self._contexts, cells)
            mixer.learn(group, np.searchsorted(edges, place, side="right") - 1, count)
            mixer.refresh()
            chance = (1 - _PLAIN) * mixer.predict(groups) + _PLAIN * base
            ratio = rounded(np.log(np.maximum(chance, _LEAST) / base))
        return View(measure, edges, ratio, self.spread, self.widths)

    def _edges(self, seen: Codes, counts: Floats) -> Codes:
        """Return where cells begin, and the end."""
        if self.places <= _FINE:
            return np.arange(self.places + 1)
        if not len(seen):
            return np.array([0, self.places])
        cell = binned(counts.astype(np.int64), _CELLS)
        first = seen[np.flatnonzero(np.diff(cell, prepend=-1))]
        return np.concatenate([[0], first[1:], [self.places]])


def _measure(places: int, seen: Codes, counts: Floats, edges: Codes) -> Measure:
    """Return how much is believed to lie below each place, in all groups alike."""
    total = counts.sum()
    unseen = (np.count_nonzero(counts == 1) + 0.5) / (total + 1.0) if len(seen) else 1.0
    unseen = min(unseen, 1.0)
    knots = np.unique(np.concatenate([[0, places], seen, seen + 1, edges]))
    width = np.diff(edges)
    cell = np.bincount(np.searchsorted(edges, seen, side="right") - 1, counts, len(width))
    mixed = (1 - _EVEN) * cell / max(total, 1.0) + _EVEN * width / places
    rest, atoms = summed(mixed / mixed.sum()), summed(counts / max(total, 1.0))
    below = unseen * np.interp(knots, edges, rest)
    below += (1 - unseen) * atoms[np.searchsorted(seen, knots)]
    return Measure(knots.astype(np.float64), below)


class View:
    """What is likely in some groups at one time, as `engines.posterior` asks for it.

    The measure is of all groups alike; ratios are, for each group, the logarithm of how much
    likelier it makes each cell between the edges.
    """

    def __init__(
        self, measure: Measure, edges: Codes, ratio: Floats, spread: Spread, widths: Widths
    ) -> None:
        self._measure, self._edges, self._ratio = measure, edges, ratio
        self._spread, self._widths = spread, widths

    def ladders(self, low: Codes, top: Codes) -> Ladders:
        """Return ladders over places."""
        return Ladders(low, top, self._measure, len(self._edges) - 1)

    def _pieces(self, group: Codes, low: Codes, top: Codes) -> tuple[Codes, Floats, Floats]:
        """Return edges within ranges, the measure below each, and the mass of each piece."""
        edge = np.minimum(np.maximum(self._edges, low[:, None]), top[:, None])
        upto = self._measure.upto(edge)
        return edge, upto, np.diff(upto, axis=1) * rounded(np.exp(self._ratio[group]))

    def start(self, group: Codes, low: Codes, top: Codes, records: Codes) -> Start:
        """Return what is believed of the largest of so many values."""
        edge, _, mass = self._pieces(group, low, top)
        density = self._ratio[group]
        several = np.flatnonzero(records > 1)
        if len(several):
            total = np.cumsum(mass[several], axis=1)
            total = np.column_stack([np.zeros(len(several)), total / total[:, -1:]])
            size = np.diff(total, axis=1)
            # records resemble each other, so many of them count for less
            many = _ALIKE * np.log1p(records[several] / _ALIKE)
            largest = np.diff(total ** many[:, None], axis=1)
            change = np.log(np.maximum(largest, 1e-200) / np.maximum(size, 1e-200))
            density[several] += np.where(size > 0, rounded(change), 0.0)
        return Start(edge, density)

    def halves(self, group: Codes, low: Codes, top: Codes) -> tuple[Codes, Floats]:
        """Return where half of the belief lies on either side, and the chance of the upper one."""
        edge, upto, mass = self._pieces(group, low, top)
        below = np.cumsum(mass, axis=1)
        half = below[:, -1] / 2
        place = (below >= half[:, None]).argmax(axis=1)
        each = np.arange(len(group))
        before = below[each, place] - mass[each, place]
        dense = rounded(np.exp(self._ratio[group, place]))
        at = self._measure.at(upto[each, place] + (half - before) / dense)
        cut = np.minimum(np.maximum(np.rint(at).astype(np.int64), low + 1), top - 1)
        inside = np.minimum(np.maximum(cut, edge[each, place]), edge[each, place + 1])
        lower = before + (self._measure.upto(inside) - upto[each, place]) * dense
        return cut, 1 - lower / np.maximum(below[:, -1], 1e-300)

    def counts(self, records: Codes, chance: Floats) -> Floats:
        """Return how likely each count is."""
        learned = self._spread.prior(records, chance, np.zeros_like(records), records)
        return (1 - _ANY) * learned + np.repeat(_ANY / (records + 1), records + 1)

    def curves(self, records: Codes, chance: Floats) -> Curves:
        """Return how likely the counts of large groups are."""
        return self._widths.curves(records, chance)

    def learn(self, records: Codes, chance: Floats, count: Codes) -> None:
        """Take in how many records lay in upper halves."""
        self._spread.learn(records, chance, count)
        self._widths.learn(records, chance, count)

    def bits(self, group: Codes, place: Codes, count: Codes) -> float:
        """Return the code length of all values of groups, were each a Polya urn of its own."""
        cell = np.searchsorted(self._edges, place, side="right") - 1
        chance = self._measure.upto(place + 1) - self._measure.upto(place)
        weight: Floats = _ALIKE * np.maximum(chance * np.exp(self._ratio[group, cell]), 1e-100)
        totals = np.bincount(group, count)
        sizes = totals[totals > 0].astype(np.float64)
        each = log_gamma(weight + count) - log_gamma(weight)
        each -= log_gamma(count.astype(np.float64) + 1.0)
        whole = log_gamma(sizes + 1.0) + log_gamma(np.full(1, _ALIKE)) - log_gamma(sizes + _ALIKE)
        return max(-float(each.sum() + whole.sum()) / float(np.log(2)), 0.0)
