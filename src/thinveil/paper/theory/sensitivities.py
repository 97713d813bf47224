"""Sensitivities by enumeration: slow, obvious, and right for any function.

A function takes a data set and returns a number or a tuple of numbers; distances are in the
L1 norm, and exact where the numbers are. The fast code is tested against these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from thinveil.errors import UsageError
from thinveil.paper.theory.functions import Number, Vector, vector
from thinveil.paper.theory.worlds import Data, World, distance

AnyFunction: TypeAlias = Callable[[Any], Number | Vector]


def l1(first: Number | Vector, second: Number | Vector) -> Number:
    """Return the L1 distance of two answers.

    >>> l1((1, 2), (3, 1)), l1(4, 4)
    (3, 0)
    """
    total: Number = 0
    for mine, other in zip(vector(first), vector(second), strict=True):
        gap: Any = mine - other
        total += abs(gap)
    return total


def global_sensitivity(world: World, function: AnyFunction) -> Number:
    """Return the largest change over all pairs of dp-neighbours (Definition Global sensitivity).

    >>> global_sensitivity(World((0, 1, 2), 3), sum)
    2
    """
    return max(local_sensitivities(world, function).values())


def local_sensitivity(world: World, function: AnyFunction, data: Data) -> Number:
    """Return the largest change when one record of a data set is modified."""
    return k_local_sensitivity(world, function, data, 1)


def k_local_sensitivity(world: World, function: AnyFunction, data: Data, k: int) -> Number:
    """Return the largest change over N_k of a data set (Definition k-Local Sensitivity)."""
    here = function(data)
    return max(l1(here, function(other)) for other in world.within(data, k))


def bootstrap_sensitivity(world: World, function: AnyFunction, data: Data) -> Number:
    """Return the largest change over bootstrap neighbours (Definition Bootstrap Sensitivity)."""
    return global_sensitivity(world.seen_by_bootstrap(data), function)


def local_sensitivities(world: World, function: AnyFunction) -> dict[Data, Number]:
    """Return the local sensitivity at every data set, asking the function once for each."""
    answers = {data: function(data) for data in world}
    return {
        data: max((l1(here, answers[other]) for other in world.neighbours(data)), default=0)
        for data, here in answers.items()
    }


def local_by_distance(world: World, function: AnyFunction, data: Data) -> list[Number]:
    """Return the largest local sensitivity at each distance 0, 1, ..., n from a data set."""
    world.expect(data)
    largest: list[Number] = [0] * (world.size + 1)
    for other, sensitivity in local_sensitivities(world, function).items():
        away = distance(data, other)
        largest[away] = max(largest[away], sensitivity)
    return largest


def smooth_sensitivity(world: World, function: AnyFunction, data: Data, beta: Number) -> float:
    """Return the beta-smooth sensitivity: the largest e^(-beta d) LS at any distance d.

    It is the smallest bound on local sensitivity that changes by at most e^beta between
    neighbours, which makes it compatible with differential privacy (Nissim et al.).

    Raises:
        UsageError: beta is not above zero.
    """
    if not 0 < beta < math.inf:
        raise UsageError(f"beta must be a number above zero, not {beta}")
    largest = local_by_distance(world, function, data)
    return max(math.exp(-beta * away) * float(each) for away, each in enumerate(largest))
