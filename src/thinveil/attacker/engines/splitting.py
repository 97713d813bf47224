"""Splitting ranges of values until every record has one, many ranges at once.

A *node* is a range of values of one attribute and the number of records that it holds. It is
split in two where belief says that half of its records lie on either side; how many records the
lower part holds is a count, searched for by thresholds. What is known without asking is
not asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from thinveil.attacker.beliefs.arrays import grown, rounded
from thinveil.attacker.beliefs.beta_binomial import Spread
from thinveil.attacker.beliefs.count_bins import WideCounts
from thinveil.attacker.beliefs.count_zones import Counts
from thinveil.attacker.terms import Rules, contradiction
from thinveil.language.queries import Codes, Floats

_EDGE: Final = 1e-6  # no side of a split is believed to be less likely than this


class Splits(ABC):
    """Nodes that are split side by side; subclasses say where and how likely.

    Args:
        rules: What thresholds tell.
    """

    leaning = False  # whether plans look at how dense the parts of parents were
    noted: tuple[str, ...] = ("owner", "first", "end", "size", "cut", "chance", "lean")  # of nodes

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.counts = Counts(rules)
        self.wide = WideCounts(rules)
        self._wide = 0  # questions about those in this round
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
        self, owner: Codes, first: Codes, end: Codes, size: Codes, lean: Floats | None = None
    ) -> None:
        """Add nodes; those without a choice are settled, all others get something to ask."""
        while len(owner):
            nodes = self._room(len(owner))
            self.owner[nodes], self.first[nodes] = owner, first
            self.end[nodes], self.size[nodes] = end, size
            if self.leaning:
                self.lean[nodes] = 0.0 if lean is None else lean
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
            self.chance[nodes] = rounded(np.clip(chance, _EDGE, 1 - _EDGE))
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
        self.single = np.concatenate([self.single, nodes[one]])
        if not one.all():
            self._count(nodes[~one], low[~one], high[~one])

    def _count(self, nodes: Codes, low: Codes, high: Codes) -> None:
        wide = self.wide.wanted(low, high)
        if wide.any():
            many = nodes[wide]
            self.wide.begin(many, self.size[many], self.chance[many], low[wide], high[wide])
            nodes, low, high = nodes[~wide], low[~wide], high[~wide]
        if len(nodes):
            self._weigh(nodes, low, high)

    def _weigh(self, nodes: Codes, low: Codes, high: Codes) -> None:
        """Weigh each possible count of nodes by itself."""
        mass = self.spread.prior(self.size[nodes], self.chance[nodes], low, high)
        self.counts.begin(nodes, low, high, mass)

    def _children(
        self, nodes: Codes, count: Codes
    ) -> tuple[Codes, Codes, Codes, Codes, Floats | None]:
        """Return the parts of nodes that hold records."""
        owner = np.tile(self.owner[nodes], 2)
        first = np.concatenate([self.first[nodes], self.cut[nodes]])
        end = np.concatenate([self.cut[nodes], self.end[nodes]])
        size = np.concatenate([count, self.size[nodes] - count])
        some = size > 0
        lean = None
        if self.leaning:
            odds = np.log((count + 1.0) / (self.size[nodes] - count + 1.0))
            lean = np.tile(odds, 2)[some]
        return owner[some], first[some], end[some], size[some], lean

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

    def questions(self) -> tuple[Codes, Codes]:
        """Return nodes and thresholds: how many records lie in the lower part of the node?"""
        nodes, thresholds = [self.single], [np.full(len(self.single), self.rules.threshold(0))]
        self._wide = 0
        if len(self.wide):
            row, threshold = self.wide.ask()
            self._wide = len(row)
            nodes.append(self.wide.key[row])
            thresholds.append(threshold)
        if len(self.counts):
            row, threshold = self.counts.ask()
            nodes.append(self.counts.key[row])
            thresholds.append(threshold)
        return np.concatenate(nodes), np.concatenate(thresholds)

    def unions(self) -> tuple[Codes | None, Codes, Codes]:
        """Return questions as unions: where each begins among the nodes, nodes, thresholds."""
        return None, *self.questions()

    def learn(self, zone: Codes) -> None:
        """Take in the zones of the questions asked last."""
        asked, single = len(self.single), self.single
        self.single = single[:0]
        present = self.rules.present(zone[:asked]).astype(np.int64)
        chance = self.chance[single]
        self.charge(single, -np.log2(np.where(present == 1, chance, 1 - chance)))
        counted, counts = single[:0], single[:0]
        if len(self.counts):
            counted, counts, cost = self.counts.tell(zone[asked + self._wide :])
            self.charge(counted, cost)
        if len(self.wide):
            narrow, low, high, cost = self.wide.tell(zone[asked : asked + self._wide])
            self.charge(narrow, cost)
            known = low == high
            counted = np.concatenate([counted, narrow[known]])
            counts = np.concatenate([counts, low[known]])
            if not known.all():
                self._weigh(narrow[~known], low[~known], high[~known])
        nodes = np.concatenate([single, counted])
        self.split(nodes, np.concatenate([present, counts]))

    def charge(self, nodes: Codes, bits: Floats) -> None:
        """Add what was told about nodes, under the beliefs at the time they were begun."""
        self.bits += float(bits.sum())
