"""The thrifty attack: the fewest questions, by asking about many groups at once.

A count that could still be one of a few values becomes a variable of a sliding window
(`windows`). A question then asks for the number of records in a union of boxes, one box a
variable, so that its three answers are about equally likely; no single record's box can do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.attacker.histograms import Histogram
from thinveil.attacker.search import Rules
from thinveil.attacker.stages import Stage
from thinveil.attacker.windows import Windows
from thinveil.errors import UsageError
from thinveil.language.queries import Codes, Floats

STATES: Final = 512
"""How many hypotheses a window weighs, unless the user says otherwise."""
WINDOWS: Final = 512
"""How many windows ask side by side, unless the user says otherwise."""
_VALUES: Final = 5  # a count of so many possible values goes into a window


@dataclass(frozen=True, slots=True)
class Thrift:
    """How much the thrifty attack thinks about each question.

    Args:
        states: Hypotheses in each window: more cost time and save questions.
        windows: Windows side by side: more save rounds and cost some questions.
        boxes_only: Whether to ask about single boxes, never about unions.
        plain: Whether to run the kernels uncompiled, even where they could be compiled.
    """

    states: int = STATES
    windows: int = WINDOWS
    boxes_only: bool = False
    plain: bool = False

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("--effort", self.states, 4, 65536),
            ("--windows", self.windows, 1, 65536),
        ):
            if type(value) is not int or not least <= value <= most:
                raise UsageError(f"{name} must be a whole number between {least} and {most:,}")


class ThriftyStage(Stage):
    """The search for one attribute in all groups, by windows."""

    at_first = 8

    def __init__(
        self,
        rules: Rules,
        histogram: Histogram,
        sizes: Codes,
        contexts: list[Codes],
        thrift: Thrift,
    ) -> None:
        super().__init__(rules, histogram, sizes, contexts)
        self.windows = Windows(
            records=rules.n,
            k=rules.k,
            hidden=rules.hidden,
            windows=thrift.windows,
            states=thrift.states,
            most_boxes=1 if thrift.boxes_only else 64,
            plain=thrift.plain,
        )
        self._low = np.empty(1024, np.int64)
        self._price = np.empty((1024, _VALUES))

    def room(self) -> int:
        """Return how many groups may take their turn: no more than the windows have room for."""
        return min(super().room(), max(self.windows.room, 0))

    @property
    def waiting(self) -> bool:
        """Whether there is anything to ask."""
        return self.windows.busy or super().waiting

    def _dispatch(self, nodes: Codes, low: Codes, high: Codes) -> None:
        """Put counts of few values into windows; larger ones are narrowed down first."""
        one = self.size[nodes] == 1
        if one.any():
            chance = self.chance[nodes[one]]
            self._offer(nodes[one], low[one], np.stack([1 - chance, chance], axis=1))
        if not one.all():
            self._count(nodes[~one], low[~one], high[~one])
            self._hand_over()

    def _hand_over(self) -> None:
        """Move counts that have few possible values left from single questions to windows."""
        if self.rules.hidden:
            return
        nodes, low, size, mass, cost = self.counts.take(_VALUES)
        if len(nodes):
            self.charge(nodes, cost)
            self._offer(nodes, low, mass, size - 1)

    def _offer(self, nodes: Codes, low: Codes, mass: Floats, most: Codes | None = None) -> None:
        """Give variables to the windows."""
        top = int(nodes.max()) + 1
        if top > len(self._low):
            grown = max(top, 2 * len(self._low))
            self._low = np.concatenate([self._low, np.empty(grown - len(self._low), np.int64)])
            more = np.empty((grown - len(self._price), _VALUES))
            self._price = np.concatenate([self._price, more])
        self._low[nodes] = low
        with np.errstate(divide="ignore"):
            self._price[nodes, : mass.shape[1]] = -np.log2(mass / mass.sum(axis=1, keepdims=True))
        if most is None:
            most = np.full(len(nodes), mass.shape[1] - 1)
        self.windows.offer(nodes, low, most, mass)

    def unions(self) -> tuple[Codes, Codes, Codes]:
        """Return where questions begin among the nodes, the nodes, and thresholds."""
        final = self._next >= len(self.sizes) or not super().room()
        offsets, nodes, threshold = self.windows.questions(final)
        self._asked = len(threshold)
        if not len(self.counts):
            return offsets, nodes, threshold
        row, more = self.counts.ask()
        return (
            np.concatenate([offsets, offsets[-1] + 1 + np.arange(len(row))]),
            np.concatenate([nodes, self.counts.key[row]]),
            np.concatenate([threshold, more]),
        )

    def learn(self, zone: Codes) -> None:
        """Take in the zones of the questions asked last."""
        nodes, values = self.windows.learn(zone[: self._asked])
        self.charge(nodes, self._price[nodes, values])
        counts = self._low[nodes] + values
        if len(self.counts):
            counted, found, cost = self.counts.tell(zone[self._asked :])
            self.charge(counted, cost)
            nodes, counts = np.concatenate([nodes, counted]), np.concatenate([counts, found])
            self._hand_over()
        self.split(nodes, counts)
