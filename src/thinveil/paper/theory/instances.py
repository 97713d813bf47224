"""The loss of a mechanism on the actual data set, as a diagnostic after the fact.

The paper's related work (Charest and Hou; Redberg and Wang) takes a differentially private
mechanism and asks what it loses at the data it ran on. Nothing is wrong with asking. But the
figure depends on the data: it is confidential, and no reason to add less noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thinveil.paper.theory.definitions import dp_loss, group_idp_loss, worst_loss
from thinveil.paper.theory.losses import Loss
from thinveil.paper.theory.mechanisms import Mechanism
from thinveil.paper.theory.worlds import Data, Pair, World


def person_loss(mechanism: Mechanism, world: World, data: Data, place: int) -> Loss:
    """Return the loss of one person at a data set: only their record may be another one."""
    world.expect(data)

    def pairs() -> Iterator[Pair]:
        for record in world.domain:
            other = (*data[:place], record, *data[place + 1 :])
            yield data, other
            yield other, data

    return worst_loss(mechanism, pairs())


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a mechanism loses in general, at one data set, and for each person in it.

    Args:
        general: The loss over all dp-neighbours: the epsilon of differential privacy.
        actual: The loss at the actual data set: the epsilon that IDP would state.
        people: The loss of each person at the actual data set.
        smallest: The smallest loss at any data set.
        reaching: At how many data sets the loss is the general one.
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
