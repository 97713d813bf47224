"""Does this target answer as the contract says?"""

from __future__ import annotations

from typing import Any

import numpy as np

from thinveil.errors import ThinveilError
from thinveil.language.contracts import Target
from thinveil.language.facts import PublicFacts
from thinveil.language.laws.additive import rounded
from thinveil.language.queries import Answers, Floats, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, MISSING
from thinveil.language.texts import many
from thinveil.testing.laws import ensure


def check_target(target: Target, epsilon: float = 1e-10) -> None:
    """Ask a target some thirty questions whose answers are known beforehand, as far as they are.

    Args:
        target: What is to be checked. It is asked and charged.
        epsilon: The loss of each answer, where the target's claim wants one.
    """
    facts: Any = getattr(target, "facts", None)
    ensure(isinstance(facts, PublicFacts), "a target needs `facts`, a thinveil.PublicFacts")
    n, cut = facts.records, facts.schema[0].lower or 0
    everything: list[dict[int, Any]] = [{0: (MISSING, INFINITE)}]
    halves, nobody = [{0: (MISSING, cut)}, {0: (cut, INFINITE)}], [{0: (cut, cut)}]
    known = [
        (everything, -1, 1.0), (everything, n, 0.0), (nobody, 0, 0.0), (halves, n + 5, 0.0),
        (halves, -7, 1.0), (everything, 0, 1.0), (nobody, n - 1, 0.0), (halves, -1, 1.0),
    ]  # fmt: skip
    asked = [(boxes, b) for boxes, b, _ in known]
    for number, repeats in enumerate(([1], [3], [1, 4, 2, 1, 1, 3, 1, 2]), start=1):
        each = repeats[0] if len(repeats) == 1 else repeats
        values = _answers(target, batch_of(asked, each), epsilon, number)
        told = np.repeat([answer for _, _, answer in known], repeats)
        ensure(
            facts.claim.offset or np.array_equal(values, told),
            "the target answers trivial thresholds, the whole table or an empty box wrongly, or "
            "in another order than it was asked: these are exact where noise is not always added",
        )
    _answers(target, batch_of([(halves, b) for b in range(min(n, 4))], repeats=2), epsilon, 4)
    try:
        _answers(target, batch_of([(everything * 2, 0)]), epsilon, 5)
    except ThinveilError:
        return
    raise AssertionError("the target counts boxes of one question twice where they overlap")


def _answers(target: Target, batch: QueryBatch, epsilon: float, number: int) -> Floats:
    """Return the answers to a batch, if they are answers at all."""
    claim = target.facts.claim
    given = target.answer(batch.stamped(("check", number), epsilon if claim.protected else None))
    values = np.asarray(given.values if isinstance(given, Answers) else given, np.float64)
    ensure(
        values.shape == (batch.queries,),
        f"the target gave {many(values.size, 'answer')} where {batch.queries} were asked for: one "
        "for each repeat of each question, next to each other",
    )
    ensure(claim.may_answer(values), "the target answered with something that is no number")
    said, kind = values[~np.isnan(values)], "0 or 1" if claim.post == "binary" else "whole numbers"
    ensure((said == rounded(said, claim.post)).all(), f"the target does not round to {kind}")
    return values
