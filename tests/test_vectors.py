"""Loops of the windows over whole arrays: the same as the loops themselves, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinveil.attacker.engines.windows import choosing, updating, vectors
from thinveil.attacker.engines.windows.lists import SLOTS, Listed, Lists, Task
from thinveil.language.compiling import loops
from worlds import examples

SEEDS = st.integers(0, 2**32)


def filled(rng):
    """Two windows of two variables, and hypotheses at random."""
    lists = Lists.empty(2, 64)
    for slot, (mask, base) in enumerate(((0b111, 2), (0b11000, 0))):
        lists.mask[:, slot], lists.base[:, slot], lists.boxes[:, slot] = mask, base, 1
    lists.slots[:], lists.used[:] = 2, 0b11111
    size = int(rng.integers(1, 20))
    lists.size[:] = size
    lists.state[:, :size] = rng.integers(0, 32, size, np.uint64)
    lists.weight[:, :size] = rng.random(size) + 1e-3
    lists.chosen[:], lists.threshold[:] = rng.integers(1, 4), rng.integers(0, 6)
    return lists


def same(one, other):
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


@examples(60)
@given(seed=SEEDS, k=st.integers(0, 3), hidden=st.booleans())
def test_the_best_threshold(seed, k, hidden):
    rng = np.random.default_rng(seed)
    size, task = int(rng.integers(1, 40)), Task(30, k, hidden, 64)
    weight = np.zeros(40)
    even = weight.copy()
    given_weights = rng.random(40) ** 8
    choosing.levelled(given_weights, size, weight)
    vectors.levelled(given_weights, size, even)
    assert weight.tolist() == even.tolist()
    listed = Listed(rng.integers(0, 2**12, 40, np.uint64), weight, size)
    mask, base = rng.integers(1, 2**12, dtype=np.uint64), int(rng.integers(0, 20))
    mine, theirs = np.zeros(2 * SLOTS + 2), np.zeros(2 * SLOTS + 2)
    with np.errstate(over="ignore"):  # as the windows do: words wrap around
        most = choosing.tally(listed, mask, mine)
    assert vectors.tally(listed, mask, theirs) == most
    assert mine[: most + 1].tolist() == theirs[: most + 1].tolist()
    slow = choosing.best_cut(mine, most, base, task)
    assert vectors.best_cut(theirs, most, base, task) == slow


@examples(60)
@given(seed=SEEDS, k=st.integers(0, 2), slack=st.booleans())
def test_what_answers_leave_of_windows(seed, k, slack):
    rng = np.random.default_rng(seed)
    mine = filled(rng)
    mine.slack[:, 1] = slack
    theirs = Lists(*(each.copy() for each in mine))
    fits = rng.random(3) < 0.5
    with np.errstate(over="ignore"):  # as the windows do: words wrap around
        updating.drop(0, mine, k, fits)
        vectors.drop(0, theirs, k, fits)
    same(mine, theirs)
    if mine.size[0]:
        with np.errstate(over="ignore"):
            slow = [updating.settled(0, mine, slot) for slot in (0, 1)]
        assert [vectors.settled(0, theirs, slot) for slot in (0, 1)] == slow
    more = (np.array([1]), np.array([2]), np.array([2]), rng.random((1, 3)))
    updating.expand(mine, *more)
    vectors.expand(theirs, *more)
    same(mine, theirs)
    word = rng.integers(0, 4, dtype=np.uint64)
    for start in (0, 1):
        drawn = choosing.drawn(1, mine, word, start, 1)
        assert vectors.drawn(1, mine, word, start, 1) == drawn


def test_bits_are_counted_with_any_numpy(monkeypatch):
    words = np.random.default_rng(1).integers(0, 2**63, 50, np.uint64)
    slow = [int(word).bit_count() for word in words]
    assert vectors.popcounts(words).tolist() == slow
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert vectors.popcounts(words).tolist() == slow


@pytest.mark.parametrize("name", ["choosing", "updating"])
def test_loops_that_are_not_compiled_are_replaced_where_there_is_something_better(name):
    room = "thinveil.attacker.engines.windows."
    plain = loops(room + name, plain=True, whole=room + "vectors")
    assert plain.popcount is vectors.popcount
    kept, other = ("tally", "rated") if name == "choosing" else ("drop", "release")
    assert getattr(plain, kept) is getattr(vectors, kept)
    assert getattr(plain, other).__globals__ is vars(plain)
    assert loops(room + name, plain=True).popcount is not vectors.popcount
