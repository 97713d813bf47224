"""Does this mechanism satisfy that definition? By the exact worst loss over a set of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from thinveil.errors import UsageError
from thinveil.language.texts import many
from thinveil.paper.theory.losses import NOTHING, Bound, Loss, bound
from thinveil.paper.theory.mechanisms import Mechanism
from thinveil.paper.theory.worlds import Data, Pair, World, check_group


def worst_loss(mechanism: Mechanism, pairs: Iterable[Pair]) -> Loss:
    """Return the largest max-divergence over a set of ordered pairs; none lose nothing."""
    worst = NOTHING
    for first, second in pairs:
        loss = mechanism.loss(first, second)
        if loss is not NOTHING and worst < loss:
            worst = loss
    return worst


def group_pairs(world: World, data: Data, k: int) -> Iterator[Pair]:
    """Return what Group IDP protects: the actual data set beside each of N_k, both ways.

    A data set beside itself constrains nothing and is left out.
    """
    check_group(k)
    for changed in range(1, min(k, world.size) + 1):
        yield from _both_ways(world, data, changed)


def _both_ways(world: World, data: Data, changed: int) -> Iterator[Pair]:
    for other in world.at_distance(data, changed):
        yield data, other
        yield other, data


def dp_loss(mechanism: Mechanism, world: World) -> Loss:
    """Return the smallest epsilon at which a mechanism is differentially private."""
    return worst_loss(mechanism, world.pairs())


def group_idp_loss(mechanism: Mechanism, world: World, data: Data, k: int = 1) -> Loss:
    """Return the smallest epsilon of (epsilon, k)-Group IDP with respect to a data set."""
    return worst_loss(mechanism, group_pairs(world, data, k))


def bdp_loss(mechanism: Mechanism, world: World, data: Data) -> Loss:
    """Return the smallest epsilon of bootstrap DP conditioned on a data set."""
    return worst_loss(mechanism, world.bootstrap_pairs(data))


def original_losses(mechanism: Mechanism, world: World, data: Data, k: int) -> tuple[Loss, ...]:
    """Return the smallest epsilon_1, ..., epsilon_k of the original Group IDP.

    The i-th belongs to data sets in which exactly i records were modified.

    Raises:
        UsageError: A group cannot be larger than the table.
    """
    check_group(k)
    if k > world.size:
        raise UsageError(f"a group of {k} does not fit into {many(world.size, 'record')}")
    return tuple(
        worst_loss(mechanism, _both_ways(world, data, changed)) for changed in range(1, k + 1)
    )


def satisfies_original(
    mechanism: Mechanism, world: World, data: Data, epsilons: Sequence[Bound]
) -> bool:
    """Tell whether it satisfies the original (epsilon_1, ..., epsilon_k)-Group IDP."""
    if not epsilons:
        raise UsageError("the original Group IDP needs k losses, each above zero")
    allowed = [bound(each) for each in epsilons]
    losses = original_losses(mechanism, world, data, len(allowed))
    return all(loss <= most for loss, most in zip(losses, allowed, strict=True))


# The loss on the actual data set, as a diagnostic after the fact. The paper's related work (Charest
# and Hou; Redberg and Wang) takes a differentially private mechanism and asks what it loses at the
# data it ran on. Nothing is wrong with asking. But the figure depends on the data: it is
# confidential, and no reason to add less noise.


def person_loss(mechanism: Mechanism, world: World, data: Data, place: int) -> Loss:
    """Return the loss of one person at a data set: only their record may be another one."""
    world.expect(data)
    others = [(*data[:place], record, *data[place + 1 :]) for record in world.domain]
    return worst_loss(
        mechanism, (pair for other in others for pair in ((data, other), (other, data)))
    )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a mechanism loses in general (DP), at one data set (IDP), and for each person in it.

    Beside it the smallest loss at any data set, and how many data sets reach the general one.
    """

    general: Loss
    actual: Loss
    people: tuple[Loss, ...]
    smallest: Loss
    reaching: int


def diagnose(mechanism: Mechanism, world: World, data: Data) -> Diagnosis:
    """Return the per-instance privacy loss of a mechanism beside its general one."""
    general = dp_loss(mechanism, world)
    everywhere = [group_idp_loss(mechanism, world, each) for each in world]
    return Diagnosis(
        general,
        group_idp_loss(mechanism, world, data),
        tuple(person_loss(mechanism, world, data, place) for place in range(world.size)),
        min(everywhere),
        sum(loss == general for loss in everywhere),
    )
