"""The thrifty attack: the fewest questions, by asking about many groups at once.

A count that could still be one of a few values becomes a variable of a sliding window
(`windows`). A question then asks for the number of records in a union of boxes, one box a
variable, so that its three answers are about equally likely; no single record's box can do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import numpy as np

from thinveil.attacker.beliefs.count_limits import WideCounts
from thinveil.attacker.beliefs.count_zones import Counts
from thinveil.attacker.engines.group_testing import Pools
from thinveil.attacker.engines.histograms import Columns
from thinveil.attacker.engines.quarters import Quarters, entropy_bits
from thinveil.attacker.engines.splitting import Asked, Splits
from thinveil.attacker.engines.stages import Stage
from thinveil.attacker.engines.windows.windows import Windows
from thinveil.errors import UsageError
from thinveil.language.queries import Codes, Flags, Floats

STATES: Final = 1024
"""How many hypotheses a window weighs, unless the user says otherwise."""
WINDOWS: Final = 512
"""How many windows ask side by side, unless the user says otherwise."""
MANY_WINDOWS: Final = 2048
"""How many do where rounds are dear."""
BOXES: Final = 256
"""The most boxes in one question: longer predicates are a burden to whoever answers them."""
_VALUES: Final = 5  # a count of so many possible values goes into a window
_EXCEPTION: Final = 0.3  # where an exception is less likely than this, many are tested at once
_TELLING: Final = 0.95  # of what its answers cost in a window, a twin tells at least such a share
_SHARE: Final = 8  # columns share the windows out


@dataclass(frozen=True, slots=True)
class Thrift:
    """How much the thrifty attack thinks about each question."""

    states: int = STATES  # hypotheses in each window: more cost time and save questions
    windows: int = WINDOWS  # side by side: more save rounds and cost some questions
    boxes_only: bool = False  # whether to ask about single boxes, never about unions
    plain: bool = False  # whether to run the kernels uncompiled, even where they could be

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("--effort", self.states, 16, 65536),
            ("--windows", self.windows, 1, 65536),
        ):
            if type(value) is not int or not least <= value <= most:
                raise UsageError(f"{name} must be a whole number between {least} and {most:,}")


class Windowed(Quarters):
    """Splits whose counts go into windows as soon as they have few possible values left.

    Boxes of one question must be disjoint, so nodes may belong to different pools of windows:
    only those of one pool are asked about together.
    """

    several = True
    noted = (*Quarters.noted, "_low", "_price", "_exception")
    pools: list[Windows]

    def pool(self, nodes: Codes) -> Codes:
        """Return the pool that each node belongs to; twins, whose boxes overlap, have their own."""
        twins: Codes = (self.size[nodes] == 0).astype(np.int64)
        return twins

    def starved(self) -> bool:
        """Return whether windows should make do with what they have: little will be added."""
        return True

    def opened(self, thrift: Thrift, columns: int = 0) -> Self:
        """Begin with empty windows: one pool, or a smaller one for each of so many columns."""
        rules = self.rules
        self.counts, self.wide = Counts(rules, patient=True), WideCounts(rules, patient=True)
        self.pools = [
            Windows(
                rules,
                windows=max(thrift.windows // _SHARE, 1) if columns else thrift.windows,
                states=thrift.states,
                most_boxes=1 if thrift.boxes_only else BOXES,
                plain=thrift.plain,
            )
            for _ in range((columns or 1) * (1 if rules.hasty is None else 2))
        ]
        room = len(self.chance)
        self._low = np.empty(room, np.int64)
        self._price = np.empty((room, _VALUES))
        self._exception = np.empty(room)  # how likely a test is to find one
        self._tests = Pools(BOXES)
        self._testing = not thrift.boxes_only and not rules.hidden
        return self

    @property
    def waiting(self) -> bool:
        """Whether there is anything to ask."""
        return super().waiting or len(self._tests) > 0 or any(pool.busy for pool in self.pools)

    def _count(self, nodes: Codes, low: Codes, high: Codes) -> None:
        """Begin to count; where "none" or "all" is nearly certain, test many for exceptions."""
        self.twin[nodes] = -1
        wide = self.wide.wanted(low, high)
        if wide.any():
            many, least, most = nodes[wide], low[wide], high[wide]
            ends = self.wide.extremes(self.size[many], self.chance[many], least, most)
            rest = ~self._test(many, *ends)
            super()._count(many[rest], least[rest], most[rest])
            nodes, low, high = nodes[~wide], low[~wide], high[~wide]
        if len(nodes):
            mass = self.spread.prior(self.size[nodes], self.chance[nodes], low, high)
            size = high - low + 1
            last = np.cumsum(size)
            none = np.where(low == 0, mass[last - size], 0.0)
            every = np.where(high == self.size[nodes], mass[last - 1], 0.0)
            rest = ~self._test(nodes, none, every)
            self.counts.begin(nodes[rest], low[rest], high[rest], mass[np.repeat(rest, size)])
        self._hand_over()

    def _test(self, nodes: Codes, none: Floats, every: Floats) -> Flags:
        """Test for exceptions where it pays, given how likely the ends are; return where."""
        sure: Flags = (np.maximum(none, every) > 1 - _EXCEPTION) & self._testing
        mine = nodes[sure]
        self._low[mine] = np.where(none > every, 0, self.size[nodes])[sure]
        self._exception[mine] = 1 - np.maximum(none, every)[sure]
        self._tests.add(mine)
        return sure

    def _tested(self, zone: Codes) -> tuple[Codes, Codes]:
        """Take in tests; return nodes without exceptions and their counts. Others are counted."""
        nodes, held, _ = self._tests.learn(self.rules.some(zone), np.zeros(len(zone), np.bool_))
        odds = self._exception[nodes]
        self.charge(nodes, -np.log2(np.where(held, odds, 1 - odds)))
        hot = nodes[held]
        if len(hot):
            none = self._low[hot] == 0
            # not cut in four: what is counted here is asked about beside what was tested
            Splits._count(self, hot, none.astype(np.int64), self.size[hot] - ~none)
        return nodes[~held], self._low[nodes[~held]]

    def _ask_alone(self, nodes: Codes) -> None:
        """Put nodes of one record into windows, and their twins into others."""
        nodes = np.concatenate([nodes, self.add_twins(nodes)])
        self.heard[nodes] = -1
        chance, one = self.chance[nodes], np.ones_like(nodes)
        self._offer(nodes, one - 1, np.stack([1 - chance, chance], axis=1), one)

    def worth(self, chance: Floats) -> Floats | float:
        """Return how many bits a twin must tell: most of what its answers cost in a window."""
        return _TELLING * entropy_bits(chance)

    def _hand_over(self) -> None:
        """Move counts that have few possible values left from single questions to windows."""
        if self.rules.hidden:
            return  # there may be gaps between the values left
        nodes, low, size, mass, cost = self.counts.take(_VALUES)
        if len(nodes):
            self.charge(nodes, cost)
            self._offer(nodes, low, mass, size - 1)

    def _offer(self, nodes: Codes, low: Codes, mass: Floats, most: Codes) -> None:
        """Give variables to the windows."""
        self._low[nodes] = low
        with np.errstate(divide="ignore"):
            self._price[nodes, : mass.shape[1]] = -np.log2(mass / mass.sum(axis=1, keepdims=True))
        pool = self.pool(nodes)
        for each in np.unique(pool).tolist():
            mine = pool == each
            self.pools[each].offer(nodes[mine], low[mine], most[mine], mass[mine])

    def asked(self) -> Iterator[Asked]:
        """Return the questions of a round."""
        final = self.starved()
        for pool in self.pools:
            if pool.busy:
                offsets, nodes, threshold = pool.questions(final)
                yield Asked(partial(self._settled, pool), nodes, threshold, np.diff(offsets))
        if len(self._tests):
            kind = self.pool(np.arange(len(self._low)))
            offsets, nodes = self._tests.questions(self._exception, kind, False)
            sizes, parts = np.diff(offsets), np.where(self._low[nodes] == 0, nodes, ~nodes)
            yield Asked(self._tested, parts, np.full(len(sizes), self.rules.threshold(0)), sizes)
        yield from super().asked()

    def split(self, nodes: Codes, count: Codes) -> None:
        """Take in how many records lie in the lower part of nodes."""
        self._hand_over()
        super().split(nodes, count)

    def _settled(self, pool: Windows, zone: Codes) -> tuple[Codes, Codes]:
        nodes, values = pool.learn(zone)
        self.charge(nodes, self._price[nodes, values])
        return self._with_twins(nodes, self._low[nodes] + values)

    def _with_twins(self, nodes: Codes, counts: Codes) -> tuple[Codes, Codes]:
        """Hold counts back until those of their twins are known."""
        wait = self.twin[nodes] >= 0
        if not wait.any():
            return nodes, counts
        mine = nodes[wait]
        self.heard[mine] = counts[wait]
        mine = np.unique(np.where(self.size[mine] == 0, self.twin[mine], mine))
        first, second = self.heard[mine], self.heard[self.twin[mine]]
        both = (first >= 0) & (second >= 0)
        parts, below = self.quartered(mine[both], first[both], second[both])
        return np.append(nodes[~wait], parts), np.append(counts[~wait], below)


class ThriftyStage(Windowed, Stage):
    """The search for one attribute in all groups, by windows."""

    ahead, small = 3.0, 64  # windows mix many groups, so haste costs less (18 made-up tables)

    def room(self) -> int:
        """Return how many groups may take their turn: no more than the windows have room for."""
        return min(super().room(), self.pools[0].room)

    def starved(self) -> bool:
        """Return whether few groups or none will be added for a while."""
        return not self.groups.waiting or not super().room()


class ThriftyColumns(Windowed, Columns):
    """The search for the values of whole columns, each column by windows of its own."""

    def pool(self, nodes: Codes) -> Codes:
        """Return the column of each node; twins have pools after all others."""
        return self.owner[nodes] + np.where(self.size[nodes] == 0, len(self.axes), 0)
