"""Sliding windows: many small unknown counts learned by questions about their sums.

A window holds a few variables and an explicit weighted list of what they may be. Each
round it asks for the zone of one subset's total, chosen for the highest entropy of the
answer, drops what the answer rules out, lets go of variables that became certain, and is
refilled. Variables that are nearly certain are asked about in groups: first how many of
a group are exceptions, and only then, by halving, which. Nothing is ever pruned: wrong
priors cost questions, not truth.
"""

from __future__ import annotations

import heapq
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thinveil.attacker.beliefs.arrays import rounded, spans, summed
from thinveil.attacker.engines.windows.lists import SLOTS, Lists, Task, Told
from thinveil.attacker.engines.windows.nodes import MOST, Nodes
from thinveil.attacker.terms import Rules, contradiction
from thinveil.language.compiling import loops, threads
from thinveil.language.queries import Codes, Floats

_CHOOSING = "thinveil.attacker.engines.windows.choosing"
_UPDATING = "thinveil.attacker.engines.windows.updating"
_VECTORS = "thinveil.attacker.engines.windows.vectors"


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that all windows share."""
    return ThreadPoolExecutor(threads)


class Windows:
    """Windows side by side over a queue of variables, asked and answered in rounds.

    There are so many windows at most (the questions of a round), each lists so many states, and a
    question names so many boxes. The inner loops may run plain, not compiled, and in as many
    threads as are to be used; results are the same.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        windows: int = 512,
        states: int = 256,
        most_boxes: int = 64,
        plain: bool = False,
        use: int | None = None,
    ) -> None:
        n, k, hidden = rules.n, rules.k, rules.hidden
        if k < 0 or n < max(1, 2 * k):
            raise ValueError(f"counts of {n} records cannot be learned with k = {k}")
        if states <= MOST or windows < 1 or most_boxes < 1 or (hidden and k == 0):
            raise ValueError(f"windows need more than {MOST} states, a box, and k where hidden")
        self._task = Task(n, k, hidden, most_boxes)
        self._states = states
        self._choosing, self._updating = (
            loops(each, plain, _VECTORS) for each in (_CHOOSING, _UPDATING)
        )
        self._threads = 1 if plain else use or min(8, threads())
        self._pool = _pool(self._threads) if self._threads > 1 else None
        self._lists = Lists.empty(windows, states)
        self._stale = np.zeros(windows, np.int64)  # rounds in which nothing was ruled out
        self._asked: Codes = np.zeros(0, np.int64)
        self._nodes = Nodes(self._updating, self._task, states)

    def offer(self, ids: Codes, base: Codes, most: Codes, pmf: Floats) -> None:
        """Queue fresh variables, in their order of use, by numbers unique among those in flight.

        Each counts for its base whatever its value, has 1 to 12 as its largest value, and a row
        of prior weights, padded with 0, that need not add up to 1.
        """
        ids, base, most = (np.asarray(each, np.int64) for each in (ids, base, most))
        if not len(ids):
            return
        if most.min() < 1 or most.max() > MOST:
            raise ValueError(f"a variable has 1 to {MOST} as its largest value")
        if base.min() < 0 or (base + most).max() > self._task.n:
            raise ValueError("a variable counts more records than the table has")
        rows = np.zeros((len(ids), MOST + 1))
        width = min(pmf.shape[1], MOST + 1)
        rows[:, :width] = pmf[:, :width]
        self._nodes.offer(ids, base, most, rows)

    @property
    def room(self) -> int:
        """About how many more variables the windows could take beyond what is queued."""
        bits = np.minimum(np.log2(self._states / self._lists.size), SLOTS - self._bits())
        queued = float(np.log2(self._nodes.columns["most"][self._nodes.queue] + 1).sum())
        spare = np.array([(float(np.maximum(bits, 0).sum()) - queued) / self._nodes.cost])
        return max(0, int(rounded(spare)[0]) - self._nodes.waiting)

    @property
    def busy(self) -> bool:
        """Whether anything is queued or held."""
        return self._nodes.open > 0

    def questions(self, final: bool) -> tuple[Codes, Codes, Codes]:
        """Refill the windows and choose a question for each.

        Question q asks how many records the variables ids[offsets[q]:offsets[q + 1]] count,
        against threshold[q]. If `final`, nothing more will be offered soon: small windows are
        then merged.
        """
        self._nodes.gather(final)
        self._refill()
        if final and not len(self._nodes.queue):
            self._merge()
        lists = self._lists
        loose = (lists.slack != 0) & (np.arange(SLOTS) < lists.slots[:, None])
        lonely = (self._stale > 0) & loose.any(1)
        self._spread_work(self._choosing.choose, self._task, lonely)
        self._asked = np.flatnonzero(lists.slots > 0)
        threshold = lists.threshold[self._asked]
        if (threshold < 0).any():
            raise contradiction()
        places = np.arange(SLOTS, dtype=np.uint64)
        chosen = (lists.chosen[self._asked, None] >> places & np.uint64(1)).astype(np.bool_)
        question, s = np.nonzero(chosen)
        nodes = lists.node[self._asked[question], s]
        start = self._nodes.columns["start"][nodes]
        size = self._nodes.columns["mid"][nodes] - start
        per = np.bincount(question, size, len(self._asked)).astype(np.int64)
        return summed(per), self._nodes.members["id"][spans(start, size)], threshold

    def learn(self, zones: NDArray[np.int64]) -> tuple[Codes, Codes]:
        """Take the zone of each question of the last round.

        Returns ids and values (without their base) of all variables that became certain.
        """
        if len(zones) != len(self._asked):
            raise ValueError(f"{len(zones)} answers to {len(self._asked)} questions")
        fits = zones[:, None] == np.arange(3)
        if self._task.hidden:
            fits[:, 2] = fits[:, 0] = zones != 1
        told = Told.of(self._asked, fits, len(self._stale))
        self._spread_work(self._updating.update, self._task.k, told)
        if (told.many < 0).any():
            raise contradiction()
        self._stale[self._asked] += 1
        self._stale[told.dropped > 0] = 0
        self._asked = self._asked[:0]
        have = np.arange(SLOTS) < told.many[:, None]
        return self._nodes.settle(told.node[have], told.value[have])

    def _bits(self) -> Codes:
        """Return how many bits of its words each window uses."""
        used = self._lists.used
        each = np.unpackbits(used.view(np.uint8)).reshape(len(used), SLOTS)
        bits: Codes = each.sum(1, dtype=np.int64)
        return bits

    def _refill(self) -> None:
        """Give queued variables to the fullest windows that have room for them."""
        lists, nodes = self._lists, self._nodes
        if not len(nodes.queue):
            return
        order = np.argsort(-lists.size, kind="stable")
        queue = nodes.queue[: SLOTS * len(order)]
        most = nodes.columns["most"][queue]
        where = self._updating.assign(order, lists.size, self._bits(), most, self._states)
        given = np.flatnonzero(where >= 0)
        given = given[np.argsort(where[given], kind="stable")]
        window, mine = where[given], queue[given]
        place = lists.slots[window] + np.arange(len(window)) - np.searchsorted(window, window)
        column = nodes.columns
        lists.node[window, place] = mine
        lists.base[window, place] = column["base"][mine]
        lists.boxes[window, place] = column["mid"][mine] - column["start"][mine]
        lists.slack[window, place] = column["slack"][mine]
        with np.errstate(over="ignore"):
            self._updating.expand(lists, window, place, most[given], nodes.pmf[mine])
        np.add.at(lists.slots, window, 1)
        self._stale[window] = 0
        nodes.queue = np.concatenate([queue[where < 0], nodes.queue[len(queue) :]])

    def _merge(self) -> None:
        """Merge the windows with the shortest lists while the product fits."""
        lists, bits = self._lists, self._bits()
        heap = [(int(lists.size[w]), int(w)) for w in np.flatnonzero(lists.slots)]
        heapq.heapify(heap)
        while len(heap) > 1:
            size, a = heapq.heappop(heap)
            other, b = heap[0]
            if size * other > self._states or bits[a] + bits[b] > SLOTS:
                break
            with np.errstate(over="ignore"):
                self._updating.product(a, b, lists)
            here, there = int(lists.slots[a]), int(lists.slots[b])
            for column in (lists.node, lists.base, lists.boxes, lists.slack):
                column[a, here : here + there] = column[b, :there]
            lists.slots[a] += there
            bits[a] += bits[b]
            lists.slots[b] = lists.used[b] = lists.state[b, 0] = self._stale[a] = 0
            lists.size[b] = lists.weight[b, 0] = 1
            heapq.heapreplace(heap, (int(lists.size[a]), a))

    def _spread_work(self, loop: Any, *args: Any) -> None:
        """Run a loop over all windows, in threads where it is compiled."""
        windows = len(self._stale)
        if self._pool is None:
            with np.errstate(over="ignore"):
                loop(0, windows, self._lists, *args)
            return
        ends = [windows * i // (4 * self._threads) for i in range(4 * self._threads + 1)]
        list(self._pool.map(lambda a, b: loop(a, b, self._lists, *args), ends[:-1], ends[1:]))
