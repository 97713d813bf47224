"""Empirical neighbours: what is protected, and by what, may depend on the actual data.

This is the general form of IDP and BDP (Definition Empirical Neighbors, Lemma hint). It has
three parts: NPairs says for each data set which pairs are protected; a hint function says what
of the data may be looked at; a chooser turns the hint into a mechanism. The check is that for
*every* data set the chosen mechanism protects its pairs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

from thinveil.errors import UsageError
from thinveil.paper.theory.definitions import group_pairs, worst_loss
from thinveil.paper.theory.losses import NOTHING, Bound, Loss, bound
from thinveil.paper.theory.mechanisms import Finite, Law, Mechanism, constant, tabulate
from thinveil.paper.theory.worlds import Data, Pair, Record, World, check_group

Pairs: TypeAlias = frozenset[Pair]
NPairs: TypeAlias = Callable[[Data], Pairs]
Hint: TypeAlias = Callable[[Data], Hashable]
Chooser: TypeAlias = Callable[[Any], Mechanism]

# ---- NPairs


def idp_pairs(world: World, k: int = 1) -> NPairs:
    """Return the NPairs of (Group) IDP: the actual data set beside each of N_k."""
    check_group(k)
    return lambda data: frozenset(group_pairs(world, data, k))


def bdp_pairs(world: World) -> NPairs:
    """Return the NPairs of bootstrap DP; data sets with the same records share it."""
    known: dict[frozenset[Record], Pairs] = {}

    def pairs(data: Data) -> Pairs:
        if (present := frozenset(data)) not in known:
            known[present] = frozenset(world.bootstrap_pairs(data))
        return known[present]

    return pairs


def dp_pairs(world: World) -> NPairs:
    """Return the NPairs of differential privacy: all neighbours, whatever the data."""
    everything = frozenset(world.pairs())
    return lambda _: everything


# ---- hints


def unrestricted(data: Data) -> Hashable:
    """Let the chooser see everything."""
    return data


def empty(data: Data) -> Hashable:
    """Let the chooser see nothing."""
    return None


def table_size(data: Data) -> Hashable:
    """Let the chooser see how many records there are, as many papers on DP do."""
    return len(data)


def state_totals(state: Callable[[Any], Hashable]) -> Hint:
    """Let the chooser see how many records each state has, as the 2020 Census did.

    >>> state_totals(lambda record: record[0])((("PA", 7), ("NY", 3), ("PA", 5)))
    (('NY', 1), ('PA', 2))
    """
    return lambda data: tuple(sorted(Counter(map(state, data)).items(), key=repr))


# NPairs is a hint itself: what the chooser must obey. It is likely what IDP and BDP meant.

# ---- choosers


def leak(world: World) -> Chooser:
    """Return the chooser of Lemma hint: its mechanism ignores the data and prints the hint."""
    return lambda hint: constant(world, hint)


def always(mechanism: Mechanism) -> Chooser:
    """Return the chooser that takes the same mechanism whatever the hint says."""
    return lambda _: mechanism


@dataclass(frozen=True, slots=True)
class Checked:
    """The largest loss of a chooser over all data sets, where it occurs, and what is allowed."""

    worst: Loss
    at: Data
    allowed: Loss

    @property
    def holds(self) -> bool:
        """Whether the chooser satisfies the definition."""
        return self.worst <= self.allowed


def check(world: World, npairs: NPairs, hint: Hint, chooser: Chooser, epsilon: Bound) -> Checked:
    """Check Definition Empirical Neighbors: every data set as the actual one, all its pairs."""
    allowed = bound(epsilon)
    chosen = cache(chooser)
    lost = cache(lambda seen, pairs: worst_loss(chosen(seen), pairs))
    worst, at = NOTHING, next(iter(world))
    for data in world:
        loss = lost(hint(data), npairs(data))
        if worst < loss:
            worst, at = loss, data
    return Checked(worst, at, allowed)


def sharing(world: World, hint: Hint, data: Data) -> int:
    """Count the data sets that give the same hint: what a leak leaves open."""
    mine = hint(data)
    return sum(hint(other) == mine for other in world)


# ---- what NPairs gives away


def recover(pairs: Iterable[Pair]) -> Data | None:
    """Return the data set that is in every pair, if there is just one (Lemma hint, Group IDP).

    >>> recover(idp_pairs(World((0, 1), 2))((0, 1)))
    (0, 1)
    """
    each = [set(pair) for pair in pairs]
    common = set.intersection(*each) if each else set()
    return common.pop() if len(common) == 1 else None


def records_in(pairs: Iterable[Pair]) -> frozenset[Record]:
    """Return the distinct records of all pairs (Lemma hint, BDP).

    A table of equal records has no bootstrap neighbours: then nothing comes back.
    """
    return frozenset(chain.from_iterable(set(chain.from_iterable(pairs))))


def unlabelled(pairs: Iterable[Pair]) -> Pairs:
    """Forget whose record is whose: pairs of data sets as multisets (erratum 13)."""
    return frozenset((multiset(first), multiset(second)) for first, second in pairs)


def multiset(data: Data) -> Data:
    """Return a data set in an order that depends on its records alone."""
    return tuple(sorted(data, key=repr))


# ---- the empty hint


@dataclass(frozen=True, slots=True)
class Coverage:
    """The union of NPairs over all data sets, beside the pairs of differential privacy.

    With the empty hint one mechanism must protect this union: pairs of dp-neighbours in it are
    covered, those outside it missing; what else is in it is extra.
    """

    covered: Pairs
    missing: Pairs
    extra: Pairs

    @property
    def is_dp(self) -> bool:
        """Whether the empty hint gives exactly differential privacy."""
        return not self.missing and not self.extra


def coverage(world: World, npairs: NPairs) -> Coverage:
    """Return what the empty hint protects (Lemma hint, second part; erratum 13)."""
    union = frozenset[Pair]().union(*{npairs(data) for data in world})
    neighbours = frozenset(world.pairs())
    return Coverage(union & neighbours, neighbours - union, union - neighbours)


def loophole(world: World, found: Coverage) -> Finite:
    """Return a mechanism that obeys the empty hint at ln 2, and differential privacy less.

    Its one telling output gets half as likely with each protected pair that must be crossed to
    get there. Neighbours whose pair is not protected are further apart than one step.

    Raises:
        UsageError: There is no such mechanism: all pairs of dp-neighbours are protected.
    """
    if not found.missing:
        raise UsageError("all neighbouring pairs are protected: there is no loophole")
    near: dict[Data, list[Data]] = {data: [] for data in world}
    for first, second in found.covered | found.extra:
        near[first].append(second)
    start = min((first for first, _ in found.missing), key=repr)
    steps = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for other in near[here]:
            if other not in steps:
                steps[other] = steps[here] + 1
                queue.append(other)

    def law(data: Data) -> Law:
        telling = Fraction(1, 3 * 2 ** steps[data]) if data in steps else Fraction(0)
        return {"telling": telling, "silent": 1 - telling}

    return tabulate(world, law)
