"""Predictions from what is known: they add up, they learn what depends on what, and no chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinveil.attacker.beliefs.contexts import Mixer
from thinveil.attacker.fixed_order import shares, shuffled


def taught(contexts: Any, value: Any, cells: int, waves: int = 10) -> tuple[Mixer, Any]:
    """Teach a mixer the first half of groups of one record each; return it and the rest."""
    counts = np.bincount(value, minlength=cells)
    mixer = Mixer(contexts, counts)
    half = len(value) // 2
    for part in np.array_split(np.arange(half), waves):
        mixer.learn(part, value[part], np.ones(len(part), np.int64))
        assert mixer.waiting == len(part)
        mixer.refresh()
        assert mixer.waiting == 0
    assert mixer.records == half
    return mixer, np.arange(half, len(value))


def cost(mixer: Mixer, rest: Any, value: Any) -> float:
    """Return the bits that each of the rest tells, on average."""
    chance = mixer.predict(rest)[np.arange(len(rest)), value[rest]]
    return float(-np.log2(chance).mean())


def entropy(value: Any) -> float:
    share = np.bincount(value) / len(value)
    share = share[share > 0]
    return float(-(share * np.log2(share)).sum())


@settings(max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(1, 60),
    st.integers(0, 2**32 - 1),
)
def test_predictions_add_up_to_one(cells: int, known: int, groups: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = [rng.integers(0, 5, groups) for _ in range(known)]
    value, sizes = rng.integers(0, cells, groups), rng.integers(1, 9, groups)
    mixer = Mixer(contexts, np.bincount(value, sizes, cells).astype(np.int64))
    for part in np.array_split(rng.permutation(groups), 4):
        mixer.learn(part, value[part], sizes[part])
        mixer.refresh()
        chance = mixer.predict(np.arange(groups))
        assert chance.shape == (groups, cells)
        assert (chance >= 0).all()
        assert chance.sum(axis=1) == pytest.approx(np.ones(groups), abs=1e-4)
    assert mixer.records == sizes.sum()
    assert mixer.predict(np.arange(0)).shape == (0, cells)


def test_a_function_is_learned() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(0, 8, 4000)
    value = (known * 5 + 3) % 8
    mixer, rest = taught([rng.integers(0, 4, 4000), known], value, 8)
    assert cost(mixer, rest, value) < 0.05 < entropy(value)


def test_what_does_not_matter_costs_next_to_nothing() -> None:
    rng = np.random.default_rng(1)
    value = rng.integers(0, 8, 4000)
    mixer, rest = taught([rng.integers(0, 30, 4000) for _ in range(4)], value, 8)
    assert cost(mixer, rest, value) < entropy(value) + 0.05


def test_two_that_matter_only_together() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 4, 6000) for _ in range(2))
    value = (a + b) % 4  # independent of either
    mixer, rest = taught([a, b], value, 4)
    assert cost(mixer, rest, value) < 0.6 < entropy(value)


def test_neighbours_help_where_values_are_many() -> None:
    rng = np.random.default_rng(3)
    known = rng.integers(0, 16, 3000)
    value = np.clip(np.rint(4 * known + rng.normal(0, 3, 3000)), 0, 63).astype(np.int64)
    mixer, rest = taught([known], value, 64)
    assert cost(mixer, rest, value) < entropy(value) - 1.5


def test_values_that_are_used_up_are_not_predicted() -> None:
    mixer = Mixer([], np.array([3, 5]))
    mixer.learn(np.arange(3), np.zeros(3, np.int64), np.ones(3, np.int64))
    mixer.refresh()
    assert mixer.predict(np.array([4]))[0].tolist() == pytest.approx([0, 1], abs=1e-6)


def test_the_same_is_learned_every_time() -> None:
    rng = np.random.default_rng(4)
    contexts = [rng.integers(0, 6, 5000) for _ in range(3)]
    value = (contexts[0] + 2 * contexts[1] + rng.integers(0, 2, 5000)) % 9
    first, second = (taught(contexts, value, 9)[0].predict(np.arange(100)) for _ in range(2))
    assert first.tolist() == second.tolist()


# ---- what mixes things up without chance


def test_shuffles_are_fixed_and_look_random() -> None:
    assert sorted(shuffled(1000).tolist()) == list(range(1000))
    assert shuffled(1000).tolist() == shuffled(1000).tolist() != shuffled(1000, 1).tolist()
    drawn = shares(10_000)
    assert (drawn >= 0).all()
    assert (drawn < 1).all()
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(1000, rel=0.12)
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(shares(10_000, 1), shares(10_000, 2))[0, 1]) < 0.03
