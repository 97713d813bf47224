"""Loops of the windows over whole arrays, to the same results to the last bit.

They take the place of loops of the same name where those are not compiled (vectorisation). Sums
are added up in the same order: one after the other, never in pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thinveil.attacker.engines.windows import updating
from thinveil.attacker.engines.windows.choosing import ENTROPY, FINE, FLOOR, NOTHING
from thinveil.attacker.engines.windows.lists import Array, Listed, Lists, Subset, Task
from thinveil.attacker.engines.windows.updating import TINY
from thinveil.attacker.engines.windows.words import M1, M2, M4, ONES, U1, U2, U4, U56, lowest
from thinveil.language.queries import Codes

_ENTROPY: list[float] = ENTROPY.tolist()


def popcount(x: Any) -> Any:
    """Return the number of bits that are set."""
    return int(x).bit_count()


def popcounts(words: Array) -> Codes:
    """Return the number of bits that are set in each word."""
    if hasattr(np, "bitwise_count"):  # from NumPy 2 on
        few: Codes = np.bitwise_count(words).astype(np.int64)
        return few
    words = words - ((words >> U1) & M1)
    words = (words & M2) + ((words >> U2) & M2)
    words = (words + (words >> U4)) & M4
    counts: Codes = ((words * ONES) >> U56).astype(np.int64)
    return counts


def levelled(given: Array, size: int, weight: Array) -> None:
    """Fill in weights that add up to one, none of them too small."""
    weight[:size] = np.maximum(given[:size], FLOOR)
    weight[:size] /= np.cumsum(weight[:size])[-1]


def tally(listed: Listed, mask: Any, sums: Array) -> Any:
    """Add up the weights of the hypotheses by the total of a subset; return the largest total."""
    size, most = listed.size, popcount(mask)
    total, weight = popcounts(listed.state[:size] & mask), listed.weight[:size]
    even = np.bincount(total[::2], weight[::2], most + 1)
    sums[: most + 1] = even + np.bincount(total[1::2], weight[1::2], most + 1)
    return most


def part(p: float) -> Any:
    """Return what an outcome of probability p adds to the entropy."""
    if p < NOTHING or p >= 1.0:
        return 0.0
    place = p * FINE
    cell = int(place)
    low = _ENTROPY[cell]
    return low + (place - cell) * (_ENTROPY[cell + 1] - low)


def best_cut(sums: Array, most: int, base: int, task: Task) -> tuple[float, int]:
    """Return the highest entropy of an answer about these totals, and its threshold."""
    upto: list[float] = np.cumsum(sums[: most + 1]).tolist()
    whole, k, base, hidden = upto[most], int(task.k), int(base), task.hidden
    # so many zeros before and so much of the whole after it that all ends are places
    ends = [0.0] * (2 * k + 1) + upto + [whole] * (2 * k + 1)
    best, at = 0.0, -1
    for b in range(max(0, base - k), min(int(task.n), base + most + k)):
        place = b - base + 2 * k + 1
        low, high = ends[place - k], ends[place + k]
        if hidden:
            score = part(high - low) + part(whole - (high - low))
        else:
            score = part(low) + part(high - low) + part(whole - high)
        if score > best:
            best, at = score, b
    return best, at


def drawn(w: int, lists: Lists, draw: Any, start: int, boxes: int) -> Subset:
    """Return the variables that a word names, from one of them on, while there is room."""
    count, word = int(lists.slots[w]), int(draw)
    mask, base, many = (each[w, :count].tolist() for each in (lists.mask, lists.base, lists.boxes))
    bits = members = total = taken = 0
    for s in (*range(start, count), *range(start)):
        if word >> s & 1 and taken + many[s] <= boxes:
            bits |= mask[s]
            total += base[s]
            taken += many[s]
            members |= 1 << s
    return Subset(np.uint64(bits), np.int64(total), np.int64(taken), np.uint64(members))


def drop(w: int, lists: Lists, k: int, fits: Array) -> None:
    """Keep the hypotheses of a window that may explain an answer."""
    word, slots = int(lists.chosen[w]), range(int(lists.slots[w]))
    chosen = [s for s in slots if word >> s & 1]
    if lists.slack[w, chosen].any():
        updating.drop(w, lists, k, fits)
        return
    bits, size = np.bitwise_or.reduce(lists.mask[w, chosen]), lists.size[w]
    total = popcounts(lists.state[w, :size] & bits) + lists.base[w, chosen].sum()
    b = lists.threshold[w]
    zone = (total > b - k).astype(np.int64) + (total > b + k)
    stay = np.flatnonzero(np.asarray(fits)[zone])
    weight = lists.weight[w, stay]
    whole = np.cumsum(weight)[-1] if len(stay) else 0.0
    lists.state[w, : len(stay)] = lists.state[w, stay]
    even = weight / whole if whole > 0.0 else np.ones(len(stay))
    lists.weight[w, : len(stay)] = np.maximum(even, TINY)
    lists.size[w] = len(stay)


def settled(w: int, lists: Lists, s: int) -> int:
    """Return the value on which all hypotheses agree in a slot, or -1."""
    found = lists.state[w, : lists.size[w]] & lists.mask[w, s]
    return popcount(found[0]) if (found == found[0]).all() else -1


def expand(lists: Lists, windows: Array, slot: Array, most: Array, pmf: Array) -> None:
    """Add variables to windows: each hypothesis once for each value."""
    for j, w in enumerate(windows.tolist()):
        own = lowest(~lists.used[w], most[j])
        lists.used[w] |= own
        lists.mask[w, slot[j]] = own
        count = lists.size[w]
        state, weight = lists.state[w, :count].copy(), lists.weight[w, :count].copy()
        for v in range(most[j], -1, -1):
            there = slice(v * count, (v + 1) * count)
            lists.state[w, there] = state | lowest(own, v)
            lists.weight[w, there] = weight * pmf[j, v]
        lists.size[w] = count * (most[j] + 1)
