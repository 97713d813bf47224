"""What the sliding windows ask about: single variables, and groups of the nearly certain.

A *member* is a variable as it was offered. A *node* is what a window holds as one
variable: a member; the number of exceptions in a group of members that are nearly certain
to be 0, or the most they can be; or, once the sum of a group is known, the sum of its
left part. A group's node counts exceptions from `low` on, and its last value means "that
many or more" (the rest is its slack), so that unlikely counts cost no hypotheses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded, spans
from thinveil.attacker.engines.windows.lists import Task
from thinveil.language.queries import Codes, Floats

MOST = 12
"""The largest value of a variable; more would take too many of a window's hypotheses."""
RARE = 0.15  # what is an exception with less than this chance is grouped
TAIL = 0.02  # how likely a group holds more exceptions than its node counts
HEAP = 0.5  # about how many exceptions a group holds
ALONE, OPEN = -2, -1  # sums of nodes that are no groups, and of groups whose sum is not known
_COLUMNS = ("start", "mid", "stop", "total", "low", "flip", "base", "most", "slack")


class Nodes:
    """The queue of nodes, and what becomes of them when their values are known."""

    def __init__(self, run: Any, task: Task, states: int) -> None:
        self._run, self._task = run, task
        # Where the direction is hidden, "at least so many" cannot be told from "none".
        self._wide = min(63, states - 1) if task.hidden else MOST
        self.members = {name: np.zeros(0, np.int64) for name in ("id", "base", "most")}
        self._pmf: Floats = np.zeros((0, MOST + 1))
        self.columns = {name: np.zeros(0, np.int64) for name in _COLUMNS}
        self.pmf: Floats = np.zeros((0, self._wide + 1))
        self.queue: Codes = np.zeros(0, np.int64)
        self._pushed: list[int] = []
        self._end = 0  # of the members; the places behind it are spare
        self._free: Codes = np.zeros(0, np.int64)
        self._rare: dict[bool, Codes] = {flip: np.zeros(0, np.int64) for flip in (False, True)}
        self._done: list[tuple[Codes, Codes]] = []
        self.open = 0
        self.cost = 1.0

    @property
    def waiting(self) -> int:
        """How many members wait to be grouped."""
        return sum(len(each) for each in self._rare.values())

    def offer(self, ids: Codes, base: Codes, most: Codes, pmf: Floats) -> None:
        """Queue members: the nearly certain to be grouped, the others as they are."""
        rows = normal(pmf, most)
        place = self._append(len(ids))
        for name, new in (("id", ids), ("base", base), ("most", most)):
            self.members[name][place] = new
        self._pmf[place] = rows
        self.open += len(ids)
        few = rows[:, 0] > 1 - RARE
        full = ~few & (rows[np.arange(len(ids)), most] > 1 - RARE)
        for flip, rare in ((False, few), (True, full)):
            self._rare[flip] = np.concatenate([self._rare[flip], place[rare]])
        entropy = -(rows * np.log2(np.maximum(rows, 1e-12))).sum(1)
        self.cost = max(0.02, float(np.where(few | full, 2 * entropy, np.log2(most + 1)).mean()))
        alone = place[~few & ~full]
        base, most = self.members["base"][alone], self.members["most"][alone]
        nodes = self._new(len(alone), alone, alone + 1, alone + 1, ALONE, 0, 0, base, most, 0)
        self.pmf[nodes, : MOST + 1] = self._pmf[alone]
        self.pmf[nodes, MOST + 1 :] = 0.0
        self.queue = np.concatenate([self.queue, nodes])

    def settle(self, nodes: Codes, values: Codes) -> tuple[Codes, Codes]:
        """Take the values of nodes; return ids and values of members that became certain."""
        alone = self.columns["total"][nodes] == ALONE
        self._certain(self.columns["start"][nodes[alone]], values[alone])
        for node, v in zip(nodes[~alone].tolist(), values[~alone].tolist(), strict=True):
            self._counted(node, v)
        self._free = np.concatenate([self._free, nodes])
        self.queue = np.concatenate([np.array(self._pushed[::-1], np.int64), self.queue])
        self._pushed = []
        done, self._done = self._done, []
        if not done:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ids, settled = (np.concatenate(each) for each in zip(*done, strict=True))
        return ids, settled

    def gather(self, final: bool) -> None:
        """Form groups of the nearly certain, each likely to hold no exception or one."""
        whole = final or not len(self.queue)
        for flip in self._rare:
            fresh = self._append(len(self._rare[flip]))
            waiting = self._rare[flip]
            if not len(waiting):
                continue
            most = self.members["most"][waiting]
            rows = self._pmf[waiting]
            chance = 1 - (rows[np.arange(len(waiting)), most] if flip else rows[:, 0])
            begin, mass = 0, 0.0
            groups = []
            width, widest = 0, self._wide if self._task.hidden else self._task.n
            for place, (p, m) in enumerate(zip(chance.tolist(), most.tolist(), strict=True)):
                full = place - begin == self._task.boxes or width + m > widest
                if place > begin and (full or mass + p > HEAP):
                    groups.append((begin, place))
                    begin, mass, width = place, 0.0, 0
                mass += p
                width += m
            if whole:
                groups.append((begin, len(waiting)))
            if not groups:
                continue
            for column in self.members.values():  # members of a group lie side by side
                column[fresh] = column[waiting]
            self._pmf[fresh] = rows
            self._rare[flip] = fresh[groups[-1][1] :]
            for begin, stop in groups:
                self._group(int(fresh[0]) + begin, int(fresh[0]) + stop, flip, 0, 1)
        self.queue = np.concatenate([self.queue, np.array(self._pushed, np.int64)])
        self._pushed = []

    def _certain(self, members: Codes, values: Codes) -> None:
        if len(members):
            self.open -= len(members)
            self._done.append((self.members["id"][members], values))

    def _counted(self, node: int, v: int) -> None:
        """Go on with a group whose variable settled at v."""
        start, mid, stop, total, low, flip, _, most, slack = (
            int(column[node]) for column in self.columns.values()
        )
        if total >= 0:
            self._known(start, mid, low + v)
            self._known(mid, stop, total - low - v)
            return
        exceptions = low + (most - v if flip else v)
        if slack and exceptions == low + most:
            self._group(start, stop, bool(flip), exceptions, min(MOST, 2 * most))
            return
        size = int(self.members["most"][start:stop].sum())
        self._known(start, stop, size - exceptions if flip else exceptions)

    def _known(self, start: int, stop: int, total: int) -> None:
        """Go on with members whose sum is known."""
        most = self.members["most"][start:stop]
        if total == 0 or total == most.sum():
            self._certain(np.arange(start, stop), most * (total > 0))
            return
        if stop - start == 1:
            self._certain(np.array([start]), np.array([total]))
            return
        rows = self._pmf[start:stop]
        values = np.arange(MOST + 1.0)  # no matrix product: it may add up in any order
        mean = np.minimum((rows * values).sum(1), (rows * values[::-1]).sum(1))
        mean = np.cumsum(rounded(mean))
        mid = start + int(np.clip(np.searchsorted(mean, mean[-1] / 2) + 1, 1, stop - start - 1))
        while True:
            left = int(most[: mid - start].sum())
            low = max(0, total - (int(most.sum()) - left))
            high = min(left, total)
            if high - low <= MOST:
                break
            mid -= 1
        if high == low:
            self._known(start, mid, low)
            self._known(mid, stop, total - low)
            return
        ours, theirs = self._spread(start, mid, total), self._spread(mid, stop, total)
        pmf = (ours * theirs[::-1])[low : high + 1]
        base = int(self.members["base"][start:mid].sum()) + low
        self._push(pmf, start, mid, stop, total, low, 0, base, high - low, 0)

    def _group(self, start: int, stop: int, flip: bool, low: int, most: int) -> None:
        """Queue a group of which at least `low` are exceptions, as a variable of 0..most."""
        size = int(self.members["most"][start:stop].sum())
        base = int(self.members["base"][start:stop].sum())
        high = size  # a union holds no more records than the table
        if flip:
            low = max(low, base + size - self._task.n)
        else:
            high = min(size, self._task.n - base)
        chance = self._spread(start, stop, low + self._wide, flip)[low:]
        chance /= max(float(chance.sum()), 1e-300)
        if self._task.hidden:
            most = self._wide
        elif most == 1:
            most = max(most, int(np.searchsorted(np.cumsum(chance), 1 - TAIL)))
        most = min(most, high - low, self._wide)
        if most < 1:
            self._known(start, stop, size - low if flip else low)
            return
        slack = high - low - most
        pmf = chance[: most + 1].copy()
        pmf[most] += chance[most + 1 :].sum()
        base += size - low - most if flip else low
        if flip:
            pmf, slack = pmf[::-1], -slack
        self._push(pmf, start, stop, stop, OPEN, low, int(flip), base, most, slack)

    def _spread(self, start: int, stop: int, most: int, flip: bool = False) -> Floats:
        """Return how likely sums of members are, or (flip) what they lack, up to the most."""
        chance = np.zeros(most + 1)
        self._run.spread(self._pmf, self.members["most"], start, stop, flip, chance)
        return chance

    def _push(self, pmf: Floats, *columns: int) -> None:
        """Make a node, to be queued."""
        node = self._new(1, *columns)
        row = np.zeros((1, self._wide + 1))
        row[0, : len(pmf)] = pmf
        self.pmf[node] = normal(row, self.columns["most"][node])
        self._pushed.append(int(node[0]))

    def _append(self, count: int) -> Codes:
        """Return places for new members, next to each other; forget old ones to make room."""
        if self._end + count > len(self._pmf):
            live = np.ones(len(self.pmf), np.bool_)
            live[self._free] = False
            start, stop = self.columns["start"], self.columns["stop"]
            keep = np.concatenate([spans(start[live], (stop - start)[live]), *self._rare.values()])
            moved = np.zeros(self._end + 1, np.int64)
            moved[keep] = np.arange(len(keep))
            shift = np.zeros(len(live), np.int64)
            shift[live] = moved[start[live]] - start[live]
            for name in ("start", "mid", "stop"):
                self.columns[name] += shift
            self._rare = {flip: moved[rare] for flip, rare in self._rare.items()}
            spare = np.zeros(len(keep) + 2 * count + 4096, np.int64)
            for name, column in self.members.items():
                self.members[name] = np.concatenate([column[keep], spare])
            self._pmf = np.concatenate([self._pmf[keep], np.zeros((len(spare), MOST + 1))])
            self._end = len(keep)
        self._end += count
        return np.arange(self._end - count, self._end)

    def _new(self, count: int, *columns: Codes | int) -> Codes:
        """Return the places of new nodes."""
        if count > len(self._free):
            old = len(self.pmf)
            more = max(count, old, 1024)
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, np.zeros(more, np.int64)])
            self.pmf = np.concatenate([self.pmf, np.zeros((more, self._wide + 1))])
            self._free = np.concatenate([self._free, np.arange(old, old + more)])
        places, self._free = self._free[:count], self._free[count:]
        for column, new in zip(self.columns.values(), columns, strict=True):
            column[places] = new
        return places


def normal(rows: Floats, most: Codes) -> Floats:
    """Floor and normalise rows of weights over 0..most."""
    inside = np.arange(rows.shape[1]) <= most[:, None]
    rows = np.where(inside & np.isfinite(rows), np.maximum(rows, 0.0), 0.0)
    total = rows.sum(1, keepdims=True)
    rows = np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0)
    rows = np.where(inside, np.maximum(rows, 1e-9), 0.0)
    normal: Floats = rows / rows.sum(1, keepdims=True)
    return normal
