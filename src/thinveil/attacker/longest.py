"""How many questions an attack asks at most, known before it asks any.

The paper splits a total budget equally over that number (Algorithms 1 and 2). It is public where
every group is searched by itself in a fixed way: all that counts is n, k and the bounds.
"""

from __future__ import annotations

from typing import Final

from thinveil.attacker.attacks.table import Wish, in_order
from thinveil.attacker.doubling import within
from thinveil.attacker.engines.coroutines import Coroutines
from thinveil.attacker.engines.protocol import Engine
from thinveil.attacker.terms import Axis, axes_of
from thinveil.language.schema import LIMIT

_DOUBLINGS: Final = LIMIT.bit_length() + 1  # until every number there is lies inside


def most_questions(name: str, engine: Engine, wish: Wish) -> int | None:
    """Return the most questions that an attack asks, or None where that is not known beforehand.

    It is not for searches that learn as they go, where the direction is hidden, and for long ones
    whose bounds have to be found first.
    """
    if type(engine) is not Coroutines or engine.rules.hidden:  # others carry beliefs
        return None
    people = len(wish.people) or 1
    if name == "membership":
        return people * (1 + engine.kit.asks_twice)
    if name == "uniqueness":
        return people * (2 - wish.present)
    bound, rules = engine.kit.most_queries, engine.rules
    if bound is None:
        return None
    one = bound(rules, [Axis(0, 0, 0)], 1)
    if name == "count":
        return one
    table = name == "dataset"
    axes = axes_of(engine.facts, wish.widths) if table else wish.axes(engine.facts)
    unknown = [axis.lower is None for axis in axes]
    if any(unknown) and engine.kit.lengthy:
        return None
    found = sum(unknown) * (_DOUBLINGS + one + 1)  # in each, missing values are counted first
    axes = [within(axis, LIMIT) if axis.lower is None else axis for axis in axes]
    if table and not any(unknown):
        return bound(rules, in_order(axes, wish.order), 1)
    groups = rules.n if table else 1  # bounds decide the order, and so how many groups there are
    alone = found + sum(bound(rules, [axis], groups) for axis in axes)
    if name != "attribute":
        return alone
    return people * (2 + one + len(axes) + alone)  # who fits, priors, then each attribute
