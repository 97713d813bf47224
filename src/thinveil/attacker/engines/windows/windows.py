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

from thinveil.attacker.engines.windows.nodes import MOST, Nodes, ranges
from thinveil.attacker.fixed_order import scrambled
from thinveil.attacker.terms import contradiction
from thinveil.language.compiling import loops, threads
from thinveil.language.queries import Codes, Floats

_KERNEL = "thinveil.attacker.engines.windows.kernel"


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that all windows share."""
    return ThreadPoolExecutor(threads)


class Windows:
    """Windows side by side over a queue of variables, asked and answered in rounds.

    Args:
        records: The number of records of the table; thresholds stay below it.
        k: The group size of the claim, 0 if unprotected.
        hidden: Whether far above looks like far below.
        windows: How many windows there are at most: the questions of a round.
        states: How many hypotheses a window lists at most.
        most_boxes: How many variables a question names at most.
        seed: Same seed, same questions.
        doubt: The odds below which `weigh` takes a value for certain.
        plain: Whether to run the inner loops uncompiled.
        use: How many threads work on a round; it does not change the results.

    Raises:
        ValueError: The table is too small for its counts to be learned.
    """

    def __init__(
        self,
        *,
        records: int,
        k: int,
        hidden: bool = False,
        windows: int = 512,
        states: int = 256,
        most_boxes: int = 64,
        seed: int = 0,
        doubt: float = 1e-12,
        plain: bool = False,
        use: int | None = None,
    ) -> None:
        if k < 0 or records < max(1, 2 * k):
            raise ValueError(f"counts of {records} records cannot be learned with k = {k}")
        if states <= MOST or windows < 1 or most_boxes < 1 or (hidden and k == 0):
            raise ValueError(f"windows need more than {MOST} states, a box, and k where hidden")
        self._n, self._k, self._hidden, self._doubt = records, k, hidden, doubt
        self._states, self._boxes = states, most_boxes
        self._run = loops(_KERNEL, plain)
        self._threads = 1 if plain else use or min(8, threads())
        self._pool = _pool(self._threads) if self._threads > 1 else None
        self.tries, self.flips = 24, 32
        shape = (windows, 64)
        self._state = np.zeros((windows, states), np.uint64)
        self._weight = np.ones((windows, states))
        self._size = np.ones(windows, np.int64)
        self._slots = np.zeros(windows, np.int64)
        self._used = np.zeros(windows, np.uint64)
        self._mask = np.zeros(shape, np.uint64)
        self._slot = {
            name: np.zeros(shape, np.int64) for name in ("node", "base", "boxes", "slack")
        }
        self._random = scrambled(windows, seed) | np.uint64(1)
        self._chosen = np.zeros(windows, np.uint64)
        self._threshold = np.full(windows, -1, np.int64)
        self._stale = np.zeros(windows, np.int64)
        self._weak = False
        self._asked: Codes = np.zeros(0, np.int64)
        self._nodes = Nodes(self._run, records, hidden, most_boxes, states)

    def offer(self, ids: Codes, base: Codes, most: Codes, pmf: Floats) -> None:
        """Queue fresh variables, in their order of use.

        Args:
            ids: Any numbers, unique among those in flight.
            base: What each counts for whatever its value.
            most: The largest value of each, 1 to 12.
            pmf: A row of prior weights for each, padded with 0; rows need not add up to 1.

        Raises:
            ValueError: A variable has too many values, or more than the table has records.
        """
        ids, base, most = (np.asarray(each, np.int64) for each in (ids, base, most))
        if not len(ids):
            return
        if most.min() < 1 or most.max() > MOST:
            raise ValueError(f"a variable has 1 to {MOST} as its largest value")
        if base.min() < 0 or (base + most).max() > self._n:
            raise ValueError("a variable counts more records than the table has")
        rows = np.zeros((len(ids), MOST + 1))
        width = min(pmf.shape[1], MOST + 1)
        rows[:, :width] = pmf[:, :width]
        self._nodes.offer(ids, base, most, rows)

    @property
    def room(self) -> int:
        """About how many more variables the windows could take beyond what is queued."""
        bits = np.minimum(np.log2(self._states / self._size), 64 - self._bits())
        queued = float(np.log2(self._nodes.columns["most"][self._nodes.queue] + 1).sum())
        spare = float(np.maximum(bits, 0).sum()) - queued
        return max(0, int(spare / self._nodes.cost) - self._nodes.waiting)

    @property
    def busy(self) -> bool:
        """Whether anything is queued or held."""
        return self._nodes.open > 0

    @property
    def held(self) -> int:
        """The number of variables held in windows or queued."""
        return self._nodes.open

    def questions(self, final: bool) -> tuple[Codes, Codes, Codes]:
        """Refill the windows and choose a question for each.

        Args:
            final: Whether nothing more will be offered soon: small windows are then merged.

        Returns:
            (offsets, ids, threshold): question q asks how many records the variables
            ids[offsets[q]:offsets[q + 1]] count, against threshold[q].

        Raises:
            EvidenceError: No question can tell the remaining hypotheses apart.
        """
        self._nodes.gather(final)
        self._refill()
        if final and not len(self._nodes.queue):
            self._merge()
        lonely = np.zeros(len(self._size), np.bool_)
        loose = (self._slot["slack"] != 0) & (np.arange(64) < self._slots[:, None])
        stale = self._stale % 8 == 7 if self._weak else self._stale > 0
        np.logical_and(stale, loose.any(1), out=lonely)
        least = self._doubt / (2 * self._states) if self._weak else 0.0
        slot = self._slot
        self._spread_work(
            self._run.choose,
            *(self._state, self._weight, self._size, self._slots, self._mask, slot["base"]),
            *(slot["boxes"], lonely, self._random, self._n, self._k, self._hidden),
            *(self._boxes, self.tries, self.flips, least, self._chosen, self._threshold),
        )
        self._asked = np.flatnonzero(self._slots > 0)
        if (self._threshold[self._asked] < 0).any():
            raise contradiction()
        places = np.arange(64, dtype=np.uint64)
        chosen = (self._chosen[self._asked, None] >> places & np.uint64(1)).astype(np.bool_)
        question, s = np.nonzero(chosen)
        nodes = slot["node"][self._asked[question], s]
        start, mid = self._nodes.columns["start"][nodes], self._nodes.columns["mid"][nodes]
        per = np.bincount(question, mid - start, len(self._asked)).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(per)])
        return offsets, self._nodes.members["id"][ranges(start, mid)], self._threshold[self._asked]

    def learn(self, zones: NDArray[np.int64]) -> tuple[Codes, Codes]:
        """Take the zone of each question of the last round.

        Returns:
            (ids, values) of all variables that became certain, without their base.

        Raises:
            EvidenceError: No hypothesis explains the answers.
        """
        zones = np.asarray(zones, np.int64)
        likelihood = (zones[:, None] == np.arange(3)).astype(np.float64)
        if self._hidden:
            likelihood[:, 2] = likelihood[:, 0] = zones != 1
        return self._take(likelihood, 0.0)

    def weigh(self, loglik: Floats) -> tuple[Codes, Codes]:
        """Take weak evidence: the log-likelihood of the answers to each question by zone.

        Args:
            loglik: A row for each question, columns BELOW, NOISY and ABOVE.

        Returns:
            (ids, values) of all variables whose other values have odds below `doubt`.
        """
        loglik = np.asarray(loglik, np.float64)
        likelihood = np.exp(loglik - loglik.max(1, keepdims=True, initial=-np.inf))
        return self._take(likelihood, self._doubt)

    def _take(self, likelihood: Floats, doubt: float) -> tuple[Codes, Codes]:
        if len(likelihood) != len(self._asked):
            raise ValueError(f"{len(likelihood)} answers to {len(self._asked)} questions")
        windows = len(self._size)
        question = np.full(windows, -1, np.int64)
        question[self._asked] = np.arange(len(self._asked))
        dropped = np.zeros(windows, np.int64)
        found, value = np.zeros((windows, 64), np.int64), np.zeros((windows, 64), np.int64)
        told = np.zeros(windows, np.int64)
        slot = self._slot
        self._weak = doubt > 0
        self._spread_work(
            self._run.update,
            *(self._state, self._weight, self._size, self._slots, self._used, slot["node"]),
            *(self._mask, slot["base"], slot["boxes"], slot["slack"], self._chosen),
            *(self._threshold, question, likelihood, self._k, doubt),
            *(dropped, found, value, told),
        )
        if (told < 0).any():
            raise contradiction()
        self._stale[self._asked] += 1
        self._stale[dropped > 0] = 0
        self._asked = self._asked[:0]
        have = np.arange(64) < told[:, None]
        return self._nodes.settle(found[have], value[have])

    def _bits(self) -> Codes:
        """Return how many bits of its words each window uses."""
        each = np.unpackbits(self._used.view(np.uint8)).reshape(len(self._used), 64)
        bits: Codes = each.sum(1, dtype=np.int64)
        return bits

    def _refill(self) -> None:
        """Give queued variables to the fullest windows that have room for them."""
        if not len(self._nodes.queue):
            return
        order = np.argsort(-self._size, kind="stable")
        bits = self._bits()
        queue = self._nodes.queue[: 64 * len(order)]
        most = self._nodes.columns["most"][queue]
        where = self._run.assign(order, self._size, bits, most, self._states)
        given = np.flatnonzero(where >= 0)
        window, nodes = where[given], queue[given]
        sort = np.argsort(window, kind="stable")
        window, nodes = window[sort], nodes[sort]
        fresh = np.arange(len(window)) - np.searchsorted(window, window)
        place = self._slots[window] + fresh
        for name in ("base", "slack"):
            self._slot[name][window, place] = self._nodes.columns[name][nodes]
        self._slot["node"][window, place] = nodes
        self._slot["boxes"][window, place] = (
            self._nodes.columns["mid"][nodes] - self._nodes.columns["start"][nodes]
        )
        with np.errstate(over="ignore"):
            self._run.expand(
                *(self._state, self._weight, self._size, self._used, self._mask, window, place),
                *(self._nodes.columns["most"][nodes], self._nodes.pmf[nodes]),
            )
        np.add.at(self._slots, window, 1)
        self._stale[window] = 0
        self._nodes.queue = np.concatenate([queue[where < 0], self._nodes.queue[len(queue) :]])

    def _merge(self) -> None:
        """Merge the windows with the shortest lists while the product fits."""
        bits = self._bits()
        heap = [(int(self._size[w]), int(w)) for w in np.flatnonzero(self._slots)]
        heapq.heapify(heap)
        while len(heap) > 1:
            size, a = heapq.heappop(heap)
            other, b = heap[0]
            if size * other > self._states or bits[a] + bits[b] > 64:
                break
            with np.errstate(over="ignore"):
                self._run.product(
                    *(a, b, self._state, self._weight, self._size, self._slots),
                    *(self._used, self._mask),
                )
            here, there = int(self._slots[a]), int(self._slots[b])
            for column in self._slot.values():
                column[a, here : here + there] = column[b, :there]
            self._slots[a] += there
            bits[a] += bits[b]
            self._slots[b] = self._used[b] = self._state[b, 0] = self._stale[a] = 0
            self._size[b] = self._weight[b, 0] = 1
            heapq.heapreplace(heap, (int(self._size[a]), a))

    def _spread_work(self, loop: Any, *args: Any) -> None:
        """Run a loop over all windows, in threads where it is compiled."""
        windows = len(self._size)
        if self._pool is None:
            with np.errstate(over="ignore"):
                loop(0, windows, *args)
            return
        ends = [windows * i // (4 * self._threads) for i in range(4 * self._threads + 1)]
        list(self._pool.map(lambda a, b: loop(a, b, *args), ends[:-1], ends[1:]))
