"""What answers leave of each window, and how windows are filled again.

Plain functions over arrays, run as they are or compiled, as in `choosing`.
"""

from __future__ import annotations

import numpy as np

from thinveil.attacker.engines.windows.lists import SLOTS, Array, Lists, Told
from thinveil.attacker.engines.windows.words import U0, U1, lowest, popcount

TINY = 1e-200  # no hypothesis that is left becomes impossible by rounding
STRETCH = 0.1  # how likely the open end of a group is beside its other values; a round figure


def zone_of(c: int, b: int, k: int) -> int:
    """Return the zone of a count: 0 below, 1 noisy, 2 above."""
    if c <= b - k:
        return 0
    return 1 if c <= b + k else 2


def stretch(w: int, lists: Lists, i: int) -> tuple[int, int]:
    """Return by how much the total of a question may lie below and above what is listed."""
    least, most = 0, 0
    for s in range(lists.slots[w]):
        slack = lists.slack[w, s]
        if slack != 0 and (lists.chosen[w] >> np.uint64(s)) & U1:
            owned = lists.state[w, i] & lists.mask[w, s]
            if slack > 0 and owned == lists.mask[w, s]:
                most += slack
            elif slack < 0 and owned == U0:
                least += slack
    return least, most


def drop(w: int, lists: Lists, k: int, fits: Array) -> None:
    """Keep the hypotheses of a window that may explain an answer."""
    bits, base, loose = U0, 0, False
    for s in range(lists.slots[w]):
        if (lists.chosen[w] >> np.uint64(s)) & U1:
            bits |= lists.mask[w, s]
            base += lists.base[w, s]
            loose = loose or lists.slack[w, s] != 0
    b = lists.threshold[w]
    kept = 0
    total = 0.0
    for i in range(lists.size[w]):
        c = popcount(lists.state[w, i] & bits) + base
        factor = 1.0 if fits[zone_of(c, b, k)] else 0.0
        if loose and factor == 0.0:
            least, most = stretch(w, lists, i)
            for z in range(zone_of(c + least, b, k), zone_of(c + most, b, k) + 1):
                if fits[z]:
                    factor = STRETCH
        if factor > 0.0:
            lists.state[w, kept] = lists.state[w, i]
            lists.weight[w, kept] = lists.weight[w, i] * factor
            total += lists.weight[w, kept]
            kept += 1
    for i in range(kept):
        lists.weight[w, i] = max(lists.weight[w, i] / total if total > 0.0 else 1.0, TINY)
    lists.size[w] = kept


def settled(w: int, lists: Lists, s: int) -> int:
    """Return the value on which all hypotheses agree in a slot, or -1."""
    mask = lists.mask[w, s]
    found = lists.state[w, 0] & mask
    for i in range(1, lists.size[w]):
        if lists.state[w, i] & mask != found:
            return -1
    return int(popcount(found))


def release(w: int, lists: Lists, told: Told) -> None:
    """Take variables out of a window that became certain."""
    gone = U0
    stay = 0
    for s in range(lists.slots[w]):
        v = settled(w, lists, s)
        if v >= 0:
            told.node[w, told.many[w]] = lists.node[w, s]
            told.value[w, told.many[w]] = v
            told.many[w] += 1
            gone |= lists.mask[w, s]
            continue
        lists.mask[w, stay] = lists.mask[w, s]
        lists.node[w, stay] = lists.node[w, s]
        lists.base[w, stay] = lists.base[w, s]
        lists.boxes[w, stay] = lists.boxes[w, s]
        lists.slack[w, stay] = lists.slack[w, s]
        stay += 1
    lists.slots[w] = stay
    lists.used[w] &= ~gone
    if gone != U0:
        total = 0.0
        for i in range(lists.size[w]):
            lists.state[w, i] &= ~gone
            total += lists.weight[w, i]
        for i in range(lists.size[w]):
            lists.weight[w, i] /= total


def update(first: int, last: int, lists: Lists, k: int, told: Told) -> None:
    """Drop what answers rule out, and take out what became certain."""
    for w in range(first, last):
        q = told.question[w]
        if q < 0:
            continue
        before = lists.size[w]
        drop(w, lists, k, told.fits[q])
        told.dropped[w] = before - lists.size[w]
        if lists.size[w] == 0:
            told.many[w] = -1
        else:
            release(w, lists, told)


def assign(order: Array, size: Array, bits: Array, most: Array, states: int) -> Array:
    """Return a window for each queued variable (-1: none); the fullest that has room first."""
    where = np.full(len(most), -1, np.int64)
    head = 0
    for w in order:
        count = size[w]
        taken = bits[w]
        while head < len(most) and where[head] >= 0:
            head += 1
        for q in range(head, min(len(most), head + SLOTS)):
            if 2 * count > states or taken == SLOTS:
                break
            if where[q] < 0 and count * (most[q] + 1) <= states and taken + most[q] <= SLOTS:
                where[q] = w
                count *= most[q] + 1
                taken += most[q]
    return where


def expand(lists: Lists, windows: Array, slot: Array, most: Array, pmf: Array) -> None:
    """Add variables to windows: each hypothesis once for each value."""
    for j in range(len(windows)):
        w = windows[j]
        own = lowest(~lists.used[w], most[j])
        lists.used[w] |= own
        lists.mask[w, slot[j]] = own
        count = lists.size[w]
        for v in range(most[j], -1, -1):
            bits = lowest(own, v)
            for i in range(count):
                lists.state[w, v * count + i] = lists.state[w, i] | bits
                lists.weight[w, v * count + i] = lists.weight[w, i] * pmf[j, v]
        lists.size[w] = count * (most[j] + 1)


def product(a: int, b: int, lists: Lists) -> None:
    """Put all pairs of hypotheses of windows a and b into a; slots of b follow those of a."""
    state, weight, size = lists.state, lists.weight, lists.size
    moved = np.zeros(size[b], np.uint64)
    for s in range(lists.slots[b]):
        old = lists.mask[b, s]
        own = lowest(~lists.used[a], popcount(old))
        lists.used[a] |= own
        lists.mask[a, lists.slots[a] + s] = own
        for i in range(size[b]):
            moved[i] |= lowest(own, popcount(state[b, i] & old))
    count = size[a]
    for j in range(size[b] - 1, -1, -1):
        for i in range(count):
            state[a, j * count + i] = state[a, i] | moved[j]
            weight[a, j * count + i] = weight[a, i] * weight[b, j]
    size[a] = count * size[b]


def spread(pmf: Array, most: Array, start: int, stop: int, flip: bool, out: Array) -> None:
    """Fill an array with the distribution of a sum of variables (flip: of what they lack)."""
    out[:] = 0.0
    out[0] = 1.0
    top = 0
    for i in range(start, stop):
        m = most[i]
        top = min(len(out) - 1, top + m)
        for t in range(top, -1, -1):
            total = 0.0
            for v in range(min(m, t) + 1):
                total += out[t - v] * pmf[i, m - v if flip else v]
            out[t] = total
