"""The inner loops of the sliding windows, as plain functions over arrays.

`windows.py` runs them as they are, or compiled by numba where that is installed: the
results are the same to the last bit. So the arithmetic here is restricted: integers of
one kind at a time, sums in a fixed order, entropy from a table.

A hypothesis is a word of 64 bits. A variable with values 0..m owns m of them, and the
number of them that are set is its value, so the total of a subset is one population count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # typed arrays would have to be spelled twice, for numpy and for numba

U0, U1, U2, U4, U7 = (np.uint64(x) for x in (0, 1, 2, 4, 7))
U13, U17, U56 = np.uint64(13), np.uint64(17), np.uint64(56)
M1, M2, M4 = (np.uint64(x) for x in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
ONES = np.uint64(0x0101010101010101)
SLOTS = 64
DRAFT = 256
"""How many hypotheses stand for a long list while subsets are compared, at least."""
TINY = 1e-200
FLOOR = 1e-9
NOTHING = 1e-10
STRETCH = 0.1
FINE = 4096
STEP = np.arange(FINE + 2) / FINE
ENTROPY = np.concatenate([[0.0], -STEP[1:-1] * np.log2(STEP[1:-1]), [0.0]])
"""-p log2 p at multiples of 1 / FINE, with a spare end."""


def popcount(x: Any) -> Any:
    """Return the number of bits that are set."""
    x = x - ((x >> U1) & M1)
    x = (x & M2) + ((x >> U2) & M2)
    x = (x + (x >> U4)) & M4
    return np.int64((x * ONES) >> U56)


def following(x: Any) -> Any:
    """Return the next number of Marsaglia's xorshift generator."""
    x ^= x << U13
    x ^= x >> U7
    x ^= x << U17
    return x


def lowest(mask: Any, count: int) -> Any:
    """Return the lowest `count` bits of a mask."""
    out = U0
    for _ in range(count):
        bit = mask & (~mask + U1)
        out |= bit
        mask ^= bit
    return out


def part(p: float) -> Any:
    """Return what an outcome of probability p adds to the entropy."""
    if p < NOTHING or p >= 1.0:
        return 0.0
    place = p * FINE
    cell = int(place)
    return ENTROPY[cell] + (place - cell) * (ENTROPY[cell + 1] - ENTROPY[cell])


def tally(state: Array, weight: Array, size: int, mask: Any, sums: Array) -> Any:
    """Add up the weights of the hypotheses by the total of a subset; return the largest total."""
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


def best_cut(sums: Array, most: int, base: int, n: int, k: int, hidden: bool) -> tuple[float, int]:
    """Return the highest entropy of an answer about these totals, and its threshold."""
    for c in range(1, most + 1):
        sums[c] += sums[c - 1]
    whole = sums[most]
    best = 0.0
    at = -1
    for b in range(max(0, base - k), min(n, base + most + k)):
        low = b - k - base
        high = b + k - base
        below = 0.0 if low < 0 else sums[min(low, most)]
        upto = 0.0 if high < 0 else sums[min(high, most)]
        if hidden:
            score = part(upto - below) + part(whole - (upto - below))
        else:
            score = part(below) + part(upto - below) + part(whole - upto)
        if score > best:
            best = score
            at = b
    return best, at


def draft(state: Array, weight: Array, size: int, seed: Any, some: Array, even: Array) -> int:
    """Copy hypotheses to compare subsets by: all, or a fair sample of a long list."""
    most = max(DRAFT, len(some) // 4)
    if size <= 2 * most:
        some[:size] = state[:size]
        even[:size] = weight[:size]
        return size
    step = 1.0 / most
    due = step * (np.int64(seed >> U17) % 1024) / 1024.0
    total = 0.0
    taken = 0
    for i in range(size):
        total += weight[i]
        many = 0
        while due < total and taken + many < most:
            many += 1
            due += step
        if many > 0:
            some[taken] = state[i]
            even[taken] = many * step
            taken += 1
    return taken


def choose(
    first: int,
    last: int,
    state: Array,
    weight: Array,
    size: Array,
    slots: Array,
    mask: Array,
    base: Array,
    boxes: Array,
    lonely: Array,
    random: Array,
    n: int,
    k: int,
    hidden: bool,
    most_boxes: int,
    tries: int,
    flips: int,
    least: float,
    chosen: Array,
    threshold: Array,
) -> None:
    """Choose subset (a mask of slots) and threshold for the windows first..last - 1."""
    sums = np.zeros(2 * SLOTS + 2)
    kept = np.zeros(state.shape[1])
    some = np.zeros(state.shape[1], np.uint64)
    even = np.zeros(state.shape[1])
    order = np.zeros(SLOTS, np.int64)
    for w in range(first, last):
        count = slots[w]
        threshold[w] = -1
        chosen[w] = U0
        if count == 0:
            continue
        total = 0.0
        for i in range(size[w]):
            kept[i] = max(weight[w, i], FLOOR) if weight[w, i] >= least else 0.0
            total += kept[i]
        for i in range(size[w]):
            kept[i] /= total
        best = 0.0
        best_bits, best_set = U0, U0
        best_base, best_boxes = 0, 0
        seed = following(random[w])
        drafted = draft(state[w], kept, size[w], seed, some, even)
        singles = count if lonely[w] or count == 1 else 0
        rounds = singles if singles else tries
        for attempt in range(rounds):
            bits, members = U0, U0
            add, size_now = 0, 0
            if singles:
                bits = mask[w, attempt]
                add = base[w, attempt]
                size_now = boxes[w, attempt]
                members = U1 << np.uint64(attempt)
            else:
                seed = following(seed)
                draw = seed
                if attempt % 3 == 1:
                    seed = following(seed)
                    draw = draw | seed
                elif attempt == 0:
                    draw = ~U0
                seed = following(seed)
                start = np.int64(seed >> U17) % count
                for step in range(count):
                    s = (start + step) % count
                    if (draw >> np.uint64(s)) & U1 and size_now + boxes[w, s] <= most_boxes:
                        bits |= mask[w, s]
                        add += base[w, s]
                        size_now += boxes[w, s]
                        members |= U1 << np.uint64(s)
            if bits == U0:
                continue
            most = tally(some, even, drafted, bits, sums)
            score, at = best_cut(sums, most, add, n, k, hidden)
            if score > best:
                best = score
                threshold[w] = at
                best_bits, best_base, best_boxes, best_set = bits, add, size_now, members
        if not singles:
            order[:count] = np.arange(count)
            left = flips
            since = 0
            s = 0
            while left > 0 and since < count:
                if s == 0:
                    for last_place in range(count - 1, 0, -1):
                        seed = following(seed)
                        other = np.int64(seed >> U17) % (last_place + 1)
                        order[last_place], order[other] = order[other], order[last_place]
                slot = order[s]
                s = (s + 1) % count
                since += 1
                bit = U1 << np.uint64(slot)
                sign = -1 if best_set & bit else 1
                size_now = best_boxes + sign * boxes[w, slot]
                bits = best_bits ^ mask[w, slot]
                if size_now > most_boxes or bits == U0:
                    continue
                left -= 1
                add = best_base + sign * base[w, slot]
                most = tally(some, even, drafted, bits, sums)
                score, at = best_cut(sums, most, add, n, k, hidden)
                if score > best:
                    best = score
                    threshold[w] = at
                    best_bits, best_base, best_boxes = bits, add, size_now
                    best_set ^= bit
                    since = 0
        if drafted < size[w] and best_bits != U0:  # the last word have all hypotheses
            most = tally(state[w], kept, size[w], best_bits, sums)
            best, at = best_cut(sums, most, best_base, n, k, hidden)
            threshold[w] = at
        if best == 0.0:  # nothing found at random: some single slot separates
            for slot in range(count):
                most = tally(state[w], kept, size[w], mask[w, slot], sums)
                score, at = best_cut(sums, most, base[w, slot], n, k, hidden)
                if score > best:
                    best = score
                    threshold[w] = at
                    best_set = U1 << np.uint64(slot)
        random[w] = seed
        chosen[w] = best_set


def zone_of(c: int, b: int, k: int) -> int:
    """Return the zone of a count: 0 below, 1 noisy, 2 above."""
    if c <= b - k:
        return 0
    return 1 if c <= b + k else 2


def settle(w: int, state: Array, size: Array, mask: Array, s: int) -> int:
    """Return the value on which all hypotheses agree in a slot, or -1."""
    found = state[w, 0] & mask[w, s]
    for i in range(1, size[w]):
        if state[w, i] & mask[w, s] != found:
            return -1
    return int(popcount(found))


def outweigh(
    w: int, state: Array, weight: Array, size: Array, mask: Array, s: int, doubt: float
) -> int:
    """Return the value beside which all others weigh next to nothing, or -1; drop these."""
    odds = np.zeros(SLOTS + 1)
    for i in range(size[w]):
        odds[popcount(state[w, i] & mask[w, s])] += weight[w, i]
    top = np.int64(np.argmax(odds))
    best = odds[top]
    odds[top] = 0.0
    rest = 0.0
    for v in range(SLOTS + 1):
        rest += odds[v]
    if rest > doubt * best:
        return -1
    kept = 0
    for i in range(size[w]):
        if popcount(state[w, i] & mask[w, s]) == top:
            state[w, kept] = state[w, i]
            weight[w, kept] = weight[w, i]
            kept += 1
    size[w] = kept
    return int(top)


def update(
    first: int,
    last: int,
    state: Array,
    weight: Array,
    size: Array,
    slots: Array,
    used: Array,
    node: Array,
    mask: Array,
    base: Array,
    boxes: Array,
    slack: Array,
    chosen: Array,
    threshold: Array,
    question: Array,
    likelihood: Array,
    k: int,
    doubt: float,
    dropped: Array,
    found: Array,
    value: Array,
    told: Array,
) -> None:
    """Weigh the hypotheses of windows by the answers, and take out what became certain."""
    for w in range(first, last):
        told[w] = 0
        q = question[w]
        if q < 0:
            continue
        bits = U0
        add = 0
        loose = False
        for s in range(slots[w]):
            if (chosen[w] >> np.uint64(s)) & U1:
                bits |= mask[w, s]
                add += base[w, s]
                loose = loose or slack[w, s] != 0
        kept = 0
        total = 0.0
        for i in range(size[w]):
            c = popcount(state[w, i] & bits) + add
            factor = likelihood[q, zone_of(c, threshold[w], k)]
            if loose:
                least, most = c, c
                for s in range(slots[w]):
                    if slack[w, s] != 0 and (chosen[w] >> np.uint64(s)) & U1:
                        owned = state[w, i] & mask[w, s]
                        if slack[w, s] > 0 and owned == mask[w, s]:
                            most += slack[w, s]
                        elif slack[w, s] < 0 and owned == U0:
                            least += slack[w, s]
                reach = 0.0
                for z in range(zone_of(least, threshold[w], k), zone_of(most, threshold[w], k) + 1):
                    reach = max(reach, likelihood[q, z])
                factor = max(factor, reach if doubt > 0.0 else STRETCH * reach)
            if factor > 0.0:
                state[w, kept] = state[w, i]
                weight[w, kept] = weight[w, i] * factor
                total += weight[w, kept]
                kept += 1
        dropped[w] = size[w] - kept
        size[w] = kept
        if kept == 0:
            told[w] = -1
            continue
        for i in range(kept):
            weight[w, i] = max(weight[w, i] / total if total > 0.0 else 1.0, TINY)
        gone = U0
        stay = 0
        for s in range(slots[w]):
            if doubt > 0.0:
                v = outweigh(w, state, weight, size, mask, s, doubt)
            else:
                v = settle(w, state, size, mask, s)
            if v >= 0:
                found[w, told[w]] = node[w, s]
                value[w, told[w]] = v
                told[w] += 1
                gone |= mask[w, s]
                continue
            node[w, stay] = node[w, s]
            mask[w, stay] = mask[w, s]
            base[w, stay] = base[w, s]
            boxes[w, stay] = boxes[w, s]
            slack[w, stay] = slack[w, s]
            stay += 1
        slots[w] = stay
        used[w] &= ~gone
        if gone != U0:
            total = 0.0
            for i in range(size[w]):
                state[w, i] &= ~gone
                total += weight[w, i]
            for i in range(size[w]):
                weight[w, i] /= total


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


def expand(
    state: Array,
    weight: Array,
    size: Array,
    used: Array,
    mask: Array,
    windows: Array,
    slot: Array,
    most: Array,
    pmf: Array,
) -> None:
    """Add variables to windows: each hypothesis once for each value."""
    for j in range(len(windows)):
        w = windows[j]
        own = lowest(~used[w], most[j])
        used[w] |= own
        mask[w, slot[j]] = own
        count = size[w]
        for v in range(most[j], -1, -1):
            bits = lowest(own, v)
            for i in range(count):
                state[w, v * count + i] = state[w, i] | bits
                weight[w, v * count + i] = weight[w, i] * pmf[j, v]
        size[w] = count * (most[j] + 1)


def product(
    a: int,
    b: int,
    state: Array,
    weight: Array,
    size: Array,
    slots: Array,
    used: Array,
    mask: Array,
) -> None:
    """Put all pairs of hypotheses of windows a and b into a; slots of b follow those of a."""
    moved = np.zeros(size[b], np.uint64)
    for s in range(slots[b]):
        old = mask[b, s]
        own = lowest(~used[a], popcount(old))
        used[a] |= own
        mask[a, slots[a] + s] = own
        for i in range(size[b]):
            moved[i] |= lowest(own, popcount(state[b, i] & old))
    count = size[a]
    for j in range(size[b] - 1, -1, -1):
        for i in range(count):
            state[a, j * count + i] = state[a, i] | moved[j]
            weight[a, j * count + i] = weight[a, i] * weight[b, j]
    size[a] = count * size[b]


def spread(
    pmf: Array, most: Array, start: int, stop: int, flip: bool, cap: int, out: Array
) -> None:
    """Fill out[0..cap] with the distribution of a sum of variables (flip: of what they lack)."""
    out[: cap + 1] = 0.0
    out[0] = 1.0
    top = 0
    for i in range(start, stop):
        m = most[i]
        top = min(cap, top + m)
        for t in range(top, -1, -1):
            total = 0.0
            for v in range(min(m, t) + 1):
                total += out[t - v] * pmf[i, m - v if flip else v]
            out[t] = total
