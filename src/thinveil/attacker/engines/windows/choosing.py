"""Which question each window asks: the subset and threshold whose answer tells most.

Plain functions over arrays, run as they are or compiled by numba where that is installed, to the
same results to the last bit. So the arithmetic is restricted: integers of one kind at a time,
sums in a fixed order, entropy from a table.

A hypothesis is a word of 64 bits. A variable with values 0..m owns m of them, and the
number of them that are set is its value, so the total of a subset is one population count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thinveil.attacker.beliefs.arrays import rounded
from thinveil.attacker.engines.windows.lists import (
    SLOTS,
    Array,
    Choice,
    Desk,
    Listed,
    Lists,
    Subset,
    Task,
)
from thinveil.attacker.engines.windows.words import U0, U1, below, following, popcount

DRAFT = 256
"""How many hypotheses stand for a long list while subsets are compared, at least."""
FLOOR = 1e-9  # no hypothesis is too unlikely to be told apart from others, whatever its prior was
NOTHING = 1e-10  # an outcome this unlikely is no outcome: less than FLOOR, shared by few
FINE = 4096
STEP = np.arange(FINE + 2) / FINE
ENTROPY = rounded(np.concatenate([[0.0], -STEP[1:-1] * np.log2(STEP[1:-1]), [0.0]]))
"""-p log2 p at multiples of 1 / FINE, with a spare end."""


def part(p: float) -> Any:
    """Return what an outcome of probability p adds to the entropy."""
    if p < NOTHING or p >= 1.0:
        return 0.0
    place = p * FINE
    cell = int(place)
    return ENTROPY[cell] + (place - cell) * (ENTROPY[cell + 1] - ENTROPY[cell])


def tally(listed: Listed, mask: Any, sums: Array) -> Any:
    """Add up the weights of the hypotheses by the total of a subset; return the largest total."""
    state, weight, size = listed.state, listed.weight, listed.size
    most = popcount(mask)
    sums[:] = 0.0
    for i in range(0, size - 1, 2):  # two tallies: the additions need not wait for each other
        sums[popcount(state[i] & mask)] += weight[i]
        sums[SLOTS + 1 + popcount(state[i + 1] & mask)] += weight[i + 1]
    if size % 2:
        sums[popcount(state[size - 1] & mask)] += weight[size - 1]
    for c in range(most + 1):
        sums[c] += sums[SLOTS + 1 + c]
    return most


def best_cut(sums: Array, most: int, base: int, task: Task) -> tuple[float, int]:
    """Return the highest entropy of an answer about these totals, and its threshold."""
    for c in range(1, most + 1):
        sums[c] += sums[c - 1]
    whole = sums[most]
    best = 0.0
    at = -1
    for b in range(max(0, base - task.k), min(task.n, base + most + task.k)):
        low = b - task.k - base
        high = b + task.k - base
        under = 0.0 if low < 0 else sums[min(low, most)]
        upto = 0.0 if high < 0 else sums[min(high, most)]
        if task.hidden:
            score = part(upto - under) + part(whole - (upto - under))
        else:
            score = part(under) + part(upto - under) + part(whole - upto)
        if score > best:
            best = score
            at = b
    return best, at


def rated(listed: Listed, subset: Subset, task: Task, sums: Array) -> Choice:
    """Return the best question about a subset."""
    most = tally(listed, subset.bits, sums)
    score, at = best_cut(sums, most, subset.base, task)
    return Choice(score, at, subset)


def draft(listed: Listed, seed: Any, some: Array, even: Array) -> Listed:
    """Return hypotheses to compare subsets by: all, or a fair sample of a long list."""
    most = max(DRAFT, len(some) // 4)
    if listed.size <= 2 * most:
        return listed
    step = 1.0 / most
    due = step * below(seed, 1024) / 1024.0
    total = 0.0
    taken = 0
    for i in range(listed.size):
        total += listed.weight[i]
        many = 0
        while due < total and taken + many < most:
            many += 1
            due += step
        if many > 0:
            some[taken] = listed.state[i]
            even[taken] = many * step
            taken += 1
    return Listed(some, even, taken)


def drawn(w: int, lists: Lists, draw: Any, start: int, boxes: int) -> Subset:
    """Return the variables that a word names, from one of them on, while there is room."""
    bits, members = U0, U0
    base, taken = np.int64(0), np.int64(0)
    count = lists.slots[w]
    for step in range(count):
        s = (start + step) % count
        if (draw >> np.uint64(s)) & U1 and taken + lists.boxes[w, s] <= boxes:
            bits |= lists.mask[w, s]
            base += lists.base[w, s]
            taken += lists.boxes[w, s]
            members |= U1 << np.uint64(s)
    return Subset(bits, base, taken, members)


def nothing() -> Choice:
    """Return no question."""
    return Choice(0.0, np.int64(-1), Subset(U0, np.int64(0), np.int64(0), U0))


def alone(w: int, lists: Lists, task: Task, listed: Listed, sums: Array) -> Choice:
    """Return the best question about a single variable."""
    best = nothing()
    none = best.subset
    for slot in range(lists.slots[w]):
        new = rated(listed, flipped(w, lists, none, slot), task, sums)
        if new.score > best.score:
            best = new
    return best


def tried(
    w: int, lists: Lists, task: Task, listed: Listed, sums: Array, seed: Any
) -> tuple[Choice, Any]:
    """Return the best question about subsets that are drawn, all of them first; and the seed."""
    best = nothing()
    for attempt in range(task.tries):
        seed = following(seed)
        draw = seed if attempt > 0 else ~U0
        if attempt % 3 == 1:
            seed = following(seed)
            draw = draw | seed
        seed = following(seed)
        subset = drawn(w, lists, draw, below(seed, lists.slots[w]), task.boxes)
        if subset.bits != U0:
            new = rated(listed, subset, task, sums)
            if new.score > best.score:
                best = new
    return best, seed


def shuffle(order: Array, count: int, seed: Any) -> Any:
    """Put the first numbers of an array into a new order; return the seed."""
    for last in range(count - 1, 0, -1):
        seed = following(seed)
        other = below(seed, last + 1)
        order[last], order[other] = order[other], order[last]
    return seed


def flipped(w: int, lists: Lists, subset: Subset, slot: int) -> Subset:
    """Return a subset with one variable more, or without it."""
    bit = U1 << np.uint64(slot)
    sign = -1 if subset.members & bit else 1
    return Subset(
        subset.bits ^ lists.mask[w, slot],
        subset.base + sign * lists.base[w, slot],
        subset.boxes + sign * lists.boxes[w, slot],
        subset.members ^ bit,
    )


def improved(
    w: int, lists: Lists, task: Task, listed: Listed, desk: Desk, best: Choice, seed: Any
) -> tuple[Choice, Any]:
    """Change a subset by one variable at a time while that tells more; and return the seed."""
    count = lists.slots[w]
    desk.order[:count] = np.arange(count)
    left = task.flips
    since = 0
    s = 0
    while left > 0 and since < count:
        if s == 0:
            seed = shuffle(desk.order, count, seed)
        subset = flipped(w, lists, best.subset, desk.order[s])
        s = (s + 1) % count
        since += 1
        if subset.boxes > task.boxes or subset.bits == U0:
            continue
        left -= 1
        new = rated(listed, subset, task, desk.sums)
        if new.score > best.score:
            best = new
            since = 0
    return best, seed


def levelled(given: Array, size: int, weight: Array) -> None:
    """Fill in weights that add up to one, none of them too small."""
    total = 0.0
    for i in range(size):
        weight[i] = max(given[i], FLOOR)
        total += weight[i]
    for i in range(size):
        weight[i] /= total


def question(w: int, lists: Lists, task: Task, desk: Desk, lonely: bool) -> None:
    """Choose subset and threshold for one window."""
    size = lists.size[w]
    levelled(lists.weight[w], size, desk.weight)
    whole = Listed(lists.state[w], desk.weight, size)
    seed = following(lists.seed[w])
    listed = draft(whole, seed, desk.some, desk.even)
    if lonely or lists.slots[w] == 1:
        best = alone(w, lists, task, listed, desk.sums)
    else:
        best, seed = tried(w, lists, task, listed, desk.sums, seed)
        best, seed = improved(w, lists, task, listed, desk, best, seed)
    if listed.size < size and best.subset.bits != U0:  # the last word have all hypotheses
        best = rated(whole, best.subset, task, desk.sums)
    if best.score == 0.0:  # nothing found at random: some single slot separates
        best = alone(w, lists, task, whole, desk.sums)
    lists.seed[w] = seed
    lists.chosen[w] = best.subset.members
    lists.threshold[w] = best.threshold


def choose(first: int, last: int, lists: Lists, task: Task, lonely: Array) -> None:
    """Choose subset (a mask of slots) and threshold for the windows first..last - 1."""
    states = lists.state.shape[1]
    desk = Desk(
        np.zeros(states),
        np.zeros(states, np.uint64),
        np.zeros(states),
        np.zeros(2 * SLOTS + 2),
        np.zeros(SLOTS, np.int64),
    )
    for w in range(first, last):
        lists.threshold[w] = -1
        lists.chosen[w] = U0
        if lists.slots[w] > 0:
            question(w, lists, task, desk, lonely[w])
