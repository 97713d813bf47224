"""Splitting ranges of values until every record has one, many ranges at once.

A *node* is a range of values of one attribute and the number of records that it holds. It is
split in two where belief says that half of its records lie on either side; how many records the
lower part holds is a count, searched for by thresholds. What is known without asking is
not asked.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from thinveil.attacker.beliefs.arrays import grown, rounded, summed
from thinveil.attacker.beliefs.beta_binomial import Spread
from thinveil.attacker.beliefs.count_limits import WideCounts
from thinveil.attacker.beliefs.count_zones import Counts
from thinveil.attacker.terms import Rules, contradiction
from thinveil.language.queries import Codes, Floats

EDGE: Final = 1e-6
"""No side of a split is believed to be less likely than this."""


class Asked(NamedTuple):
    """Questions of one kind: how many records lie in the lower parts of nodes?"""

    tell: Callable[[Codes], tuple[Codes, Codes]]  # from zones to nodes that are counted, and counts
    nodes: Codes
    threshold: Codes
    sizes: Codes | None = None  # how many nodes each question is about; one without


class Splits(ABC):
    """Nodes that are split side by side; subclasses say where and how likely."""

    several = False  # whether questions may be about several nodes
    noted: tuple[str, ...] = ("owner", "first", "end", "size", "cut", "chance", "lean")  # of nodes

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.counts = Counts(rules)
        self.wide = WideCounts(rules)
        self._round: list[Asked] = []
        self.spread = Spread()
        self.single = np.empty(0, np.int64)  # nodes of one record, asked at once
        self.bits = 0.0
        self._used = 0
        self.owner, self.first, self.end, self.size, self.cut = np.empty((5, 1024), np.int64)
        self.chance = np.empty(1024)
        self.lean = np.empty(1024)  # how much denser the lower part of the parent was, as log odds

    # -- what subclasses say ---------------------------------------------------------------

    @abstractmethod
    def plan(self, nodes: Codes) -> tuple[Codes, Floats, Codes, Codes]:
        """Return for each node where to cut, the chance of the lower part, and count limits."""

    @abstractmethod
    def settle(self, nodes: Codes) -> None:
        """Note nodes that hold a single value."""

    # -- nodes -----------------------------------------------------------------------------

    def add(
        self, owner: Codes, first: Codes, end: Codes, size: Codes, lean: Floats | float = 0.0
    ) -> None:
        """Add nodes; those without a choice are settled, all others get something to ask."""
        while len(owner):
            nodes = self._room(len(owner))
            self.owner[nodes], self.first[nodes] = owner, first
            self.end[nodes], self.size[nodes] = end, size
            self.lean[nodes] = lean
            alone = end - first == 1
            if alone.any():
                self.settle(nodes[alone])
                nodes = nodes[~alone]
            if not len(nodes):
                return
            cut, chance, low, high = self.plan(nodes)
            if (low > high).any():
                raise contradiction()
            self.cut[nodes] = cut
            self.chance[nodes] = rounded(np.clip(chance, EDGE, 1 - EDGE))
            known = low == high
            self._dispatch(nodes[~known], low[~known], high[~known])
            owner, first, end, size, lean = self._children(nodes[known], low[known])

    def _room(self, many: int) -> Codes:
        self._used += many
        for name in self.noted:
            setattr(self, name, grown(getattr(self, name), self._used))
        return np.arange(self._used - many, self._used)

    def _dispatch(self, nodes: Codes, low: Codes, high: Codes) -> None:
        """Put nodes where their counts are searched for."""
        one = self.size[nodes] == 1
        if one.any():
            self._ask_alone(nodes[one])
        if not one.all():
            self._count(nodes[~one], low[~one], high[~one])

    def _ask_alone(self, nodes: Codes) -> None:
        """Begin with nodes of one record."""
        self.single = np.concatenate([self.single, nodes])

    def _count(self, nodes: Codes, low: Codes, high: Codes) -> None:
        wide = self.wide.wanted(low, high)
        if wide.any():
            many = nodes[wide]
            self.wide.begin(many, self.size[many], self.chance[many], low[wide], high[wide])
            nodes, low, high = nodes[~wide], low[~wide], high[~wide]
        if len(nodes):
            mass = self.spread.prior(self.size[nodes], self.chance[nodes], low, high)
            self.counts.begin(nodes, low, high, mass)

    def _children(self, nodes: Codes, count: Codes) -> tuple[Codes, Codes, Codes, Codes, Floats]:
        """Return the parts of nodes that hold records."""
        owner = np.tile(self.owner[nodes], 2)
        first = np.concatenate([self.first[nodes], self.cut[nodes]])
        end = np.concatenate([self.cut[nodes], self.end[nodes]])
        size = np.concatenate([count, self.size[nodes] - count])
        lean = np.tile(np.log((count + 1.0) / (self.size[nodes] - count + 1.0)), 2)
        some = size > 0
        return owner[some], first[some], end[some], size[some], lean[some]

    def spans(self, nodes: Codes) -> tuple[Codes, Codes, Codes]:
        """Return owners, first and last places of parts: ~node stands for the upper one."""
        node = np.where(nodes < 0, ~nodes, nodes)
        first = np.where(nodes < 0, self.cut[node], self.first[node])
        end = np.where(nodes < 0, self.end[node], self.cut[node])
        return self.owner[node], first, end

    def split(self, nodes: Codes, count: Codes) -> None:
        """Take in how many records lie in the lower part of nodes."""
        self.spread.learn(self.size[nodes], self.chance[nodes], count)
        self.add(*self._children(nodes, count))

    # -- rounds ----------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether there is anything to ask."""
        return bool(len(self.single) or len(self.counts) or len(self.wide))

    def asked(self) -> Iterator[Asked]:
        """Return the questions of a round."""
        none = np.full(len(self.single), self.rules.threshold(0))
        yield Asked(self._present, self.single, none)
        if len(self.wide):
            row, threshold = self.wide.ask()
            yield Asked(self._narrowed, self.wide.key[row], threshold)
        if len(self.counts):
            row, threshold = self.counts.ask()
            yield Asked(self._counted, self.counts.key[row], threshold)

    def unions(self, most: float = math.inf) -> tuple[Codes | None, Codes, Codes]:
        """Return where questions begin among the nodes (None: one each), nodes, thresholds.

        Where so many answers are left at most, questions about single nodes are cut short.
        """
        self._round = list(self.asked())
        if not self.several:
            self._cut_short(most)
        nodes = np.concatenate([each.nodes for each in self._round])
        threshold = np.concatenate([each.threshold for each in self._round])
        if self.rules.hasty is not None:
            self.rules.hasty.asked += len(threshold)
        if not self.several:
            return None, nodes, threshold
        sizes = [
            np.ones_like(each.nodes) if each.sizes is None else each.sizes for each in self._round
        ]
        return summed(np.concatenate(sizes)), nodes, threshold

    def _cut_short(self, most: float) -> None:
        """Leave out the last questions of a round, so that at most so many are asked."""
        if most < 1 or sum(len(each.threshold) for each in self._round) <= most:
            return
        left, kept = int(most), []
        for each, of in zip(self._round, self._parts(), strict=True):
            many = min(left, len(each.threshold))
            left -= many
            if of is not None:
                of.fewer(many)
            kept.append(each._replace(nodes=each.nodes[:many], threshold=each.threshold[:many]))
        self._round = kept

    def _parts(self) -> list[Counts | WideCounts | None]:
        """Return, for each kind of question that `asked` gives, what it is about; None: nodes."""
        return [None, *(each for each in (self.wide, self.counts) if len(each))]

    def learn(self, zone: Codes) -> None:
        """Take in the zones of the questions asked last."""
        ends = np.cumsum([len(each.threshold) for each in self._round])
        parts = zip(self._round, np.split(zone, ends[:-1]), strict=True)
        nodes, counts = zip(*(each.tell(part) for each, part in parts), strict=True)
        self.split(np.concatenate(nodes), np.concatenate(counts))

    def _present(self, zone: Codes) -> tuple[Codes, Codes]:
        """Take in whether single records lie in lower parts."""
        single, self.single = self.single[: len(zone)], self.single[len(zone) :]
        present = self.rules.present(zone).astype(np.int64)
        chance = self.chance[single]
        self.charge(single, -np.log2(np.where(present == 1, chance, 1 - chance)))
        return single, present

    def _counted(self, zone: Codes) -> tuple[Codes, Codes]:
        nodes, counts, cost = self.counts.tell(zone)
        self.charge(nodes, cost)
        return nodes, counts

    def _narrowed(self, zone: Codes) -> tuple[Codes, Codes]:
        """Take in zones of wide counts."""
        nodes, counts, cost = self.wide.tell(zone)
        self.charge(nodes, cost)
        return nodes, counts

    def charge(self, nodes: Codes, bits: Floats) -> None:
        """Add what was told about nodes, under the beliefs at the time they were begun."""
        self.bits += float(bits.sum())
