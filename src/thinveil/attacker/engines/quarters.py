"""Splitting ranges in four at a time, where rounds are dear.

Halves of a node are planned before it is known how many records lie in each. The value of one
record is then found by two questions at a time, as cheaply as by one after the other; of many
records both halves are counted along with the whole, at hardly more questions where records of a
group differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.attacker.beliefs.count_zones import spare_of
from thinveil.attacker.engines.splitting import EDGE, Asked, Splits
from thinveil.attacker.terms import Rules, contradiction
from thinveil.language.queries import Codes, Floats

_TELLING: Final = 0.8  # bits that a twin tells at least; 0.6 to 0.9 hardly differ
_LITTLE: Final = 0.1  # or so many, where there is hardly any work
_PART: Final = 4  # of what a round may ask besides; such a part of it is hardly any work
_MANY: Final = 12  # records of a node that is counted in four; fewer are often empty parts
_UNTOLD: Final = 0.5  # questions besides, to count both halves of a node along with the whole:
# 0.2 to 1.1 on six tables (made-up ones and the bank's)
_ONE: Final = math.log(2.0)  # the lean of the parts of a node of one record, up or down


class Quarters(Splits):
    """Splits in haste, if the rules say so: nodes are cut in four, not in two.

    The *twin* of a node of one record asks for the two quarters in its middle (a Gray code): it
    halves either half, whichever has the record. It has a size of 0, as nothing is split there.
    """

    noted = (*Splits.noted, "twin", "lower", "upper", "heard")

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        # of nodes: what is asked at the same time, or the node that it is asked with; or -1
        self.twin = np.empty(1024, np.int64)
        self.lower, self.upper = np.empty((2, 1024), np.int64)  # the halves, as nodes
        self.heard = np.empty(1024, np.int64)  # the count, while others are waited for; or -1

    @property
    def _few(self) -> int:
        """So few nodes are hardly any work."""
        haste = self.rules.hasty
        return 0 if haste is None else spare_of(self.rules.n, haste) // _PART

    def passed(self, nodes: Codes) -> None:
        """Note nodes that are over because their parts are split in their place."""

    def worth(self, chance: Floats) -> Floats | float:
        """Return how many bits twins must tell whose answer is "yes" with such a chance."""
        return _TELLING if len(self.single) > self._few else _LITTLE

    def _halves(self, nodes: Codes) -> Codes:
        """Return the lower, then the upper parts of nodes as nodes, planned as if they held all.

        Their sizes are the most that their own lower parts can hold; none if they are not split.
        """
        many, cut, size = len(nodes), self.cut[nodes], self.size[nodes]
        parts = self._room(2 * many)
        self.lower[nodes], self.upper[nodes] = np.split(parts, 2)
        self.owner[parts], self.size[parts] = np.tile(self.owner[nodes], 2), np.tile(size, 2)
        self.first[parts] = np.append(self.first[nodes], cut)
        self.end[parts] = np.append(cut, self.end[nodes])
        self.lean[parts] = np.repeat([_ONE, -_ONE], many) * (self.size[parts] == 1)
        # what is not split lies outside of the middle
        self.cut[parts], self.chance[parts] = np.tile(cut, 2), np.repeat([1.0, 0.0], many)
        more = self.end[parts] - self.first[parts] > 1
        split = parts[more]
        if len(split):
            self.cut[split], self.chance[split], _, most = self.plan(split)
            self.size[split] = most
        self.size[parts[~more]] = 0
        return parts

    # -- one record ------------------------------------------------------------------------

    def _ask_alone(self, nodes: Codes) -> None:
        super()._ask_alone(nodes)
        self.add_twins(nodes)

    def add_twins(self, nodes: Codes) -> Codes:
        """Give nodes of one record their twins, where these are worth it; return the twins."""
        self.twin[nodes] = -1
        if self.rules.hasty is None:
            return nodes[:0]
        parts = self._halves(nodes)
        (below, above), share = np.split(self.chance[parts], 2), self.chance[nodes]
        told = share * entropy_bits(below) + (1 - share) * entropy_bits(above)
        middle = share * (1 - below) + (1 - share) * above
        worth = told > self.worth(middle)
        self.rules.hasty.besides += float((1 - told[worth]).sum())
        nodes, twins = nodes[worth], self._room(int(np.count_nonzero(worth)))
        self.twin[nodes], self.twin[twins] = twins, nodes
        self.owner[twins], self.size[twins] = self.owner[nodes], 0
        self.first[twins] = self.cut[self.lower[nodes]]
        self.cut[twins] = self.cut[self.upper[nodes]]
        self.chance[twins] = rounded(np.clip(middle[worth], EDGE, 1 - EDGE))
        return twins

    def asked(self) -> Iterator[Asked]:
        """Return the questions of a round."""
        single, *others = super().asked()
        if self.rules.hasty is not None:
            twins = self.twin[single.nodes]
            nodes = np.concatenate([single.nodes, twins[twins >= 0]])
            none = np.full(len(nodes), self.rules.threshold(0))
            single = single._replace(nodes=nodes, threshold=none)
        yield from (single, *others)

    def _present(self, zone: Codes) -> tuple[Codes, Codes]:
        if self.rules.hasty is None:
            return super()._present(zone)
        single, twins = self.single, self.twin[self.single]
        first, second = np.split(zone, [len(single)])
        nodes, present = super()._present(first)
        middle = self.rules.present(second).astype(np.int64)
        twinned = twins >= 0
        halves, below = self.quartered(nodes[twinned], present[twinned], middle)
        deeper = halves != nodes[twinned]
        chance = self.chance[halves[deeper]]
        told = np.where(below[deeper] == 1, chance, 1 - chance)
        self.charge(halves[deeper], -np.log2(np.maximum(told, EDGE)))
        nodes = np.concatenate([nodes[~twinned], halves])
        return nodes, np.concatenate([present[~twinned], below])

    def quartered(self, nodes: Codes, present: Codes, middle: Codes) -> tuple[Codes, Codes]:
        """Return the halves that records lie in, and whether in their lower part.

        Nodes whose half is one value stay what they are.
        """
        lower = present == 1
        half = np.where(lower, self.lower[nodes], self.upper[nodes])
        deeper = self.end[half] - self.first[half] > 1
        self.size[half[deeper]] = 1
        self.passed(nodes[deeper])
        below = np.where(lower, 1 - middle, middle)
        return np.where(deeper, half, nodes), np.where(deeper, below, present)

    # -- many records ----------------------------------------------------------------------

    def _count(self, nodes: Codes, low: Codes, high: Codes) -> None:
        self.twin[nodes] = -1
        super()._count(nodes, low, high)
        if self.rules.hasty is not None:
            thin = np.minimum(
                self.cut[nodes] - self.first[nodes], self.end[nodes] - self.cut[nodes]
            )
            wide = self.wide.wanted(low, high)
            many = _MANY if len(self.counts) > self._few else 2
            four = nodes[(self.size[nodes] >= many) & (thin > 1) & ~wide]
            four = four[: int(self.rules.hasty.spare / _UNTOLD)]
            self.rules.hasty.besides += _UNTOLD * len(four)
            if len(four):
                self._count_halves(four)

    def _count_halves(self, nodes: Codes) -> None:
        """Count the lower parts of both halves of nodes, while they are counted themselves."""
        parts, share, size = self._halves(nodes), self.chance[nodes], np.tile(self.size[nodes], 2)
        self.heard[nodes], self.twin[nodes], self.twin[parts] = -1, nodes, np.tile(nodes, 2)
        most = self.size[parts]
        self.heard[parts] = np.where(most == 0, 0, -1)
        some = most > 0
        chance = self.chance[parts] * np.append(share, 1 - share)
        chance = rounded(np.clip(chance, EDGE, 1 - EDGE))[some]
        least, most = np.zeros_like(most[some]), most[some]
        if len(most):
            mass = self.spread.prior(size[some], chance, least, most)
            self.counts.begin(parts[some], least, most, mass)

    def _counted(self, zone: Codes) -> tuple[Codes, Codes]:
        """Hold counts back until those of both halves of a node are known, and its own."""
        nodes, counts = super()._counted(zone)
        wait = self.twin[nodes] >= 0
        if self.rules.hasty is None or not wait.any():
            return nodes, counts
        self.heard[nodes[wait]] = counts[wait]
        whole = np.unique(self.twin[nodes[wait]])
        each = np.stack([whole, self.lower[whole], self.upper[whole]])
        whole, lower, upper = each[:, (self.heard[each] >= 0).all(axis=0)]
        self.passed(whole)
        self.spread.learn(self.size[whole], self.chance[whole], self.heard[whole])
        self.size[lower] = self.heard[whole]
        self.size[upper] = self.size[whole] - self.heard[whole]
        parts = np.append(lower, upper)
        if (self.heard[parts] > self.size[parts]).any():
            raise contradiction()
        return np.append(nodes[~wait], parts), np.append(counts[~wait], self.heard[parts])


def entropy_bits(chance: Floats) -> Floats:
    """Return what it tells whether something of such a chance happens, in bits."""
    sure = np.clip(chance, 1e-300, 1 - 1e-16)
    bits: Floats = -chance * np.log2(sure) - (1 - chance) * np.log2(1 - sure)
    return bits
