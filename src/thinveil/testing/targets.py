"""Does this target answer as the contract says?"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from thinveil.errors import ThinveilError
from thinveil.language.contracts import Target
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Answers, Floats, QueryBatch, batch_of
from thinveil.language.schema import INFINITE, MISSING
from thinveil.testing.laws import ensure

_WHOLE: Final = (MISSING, INFINITE)


def check_target(target: Target, epsilon: float = 1e-10) -> None:
    """Ask a target some thirty questions whose answers are known beforehand, as far as they are.

    Args:
        target: What is to be checked. It is asked and charged.
        epsilon: The loss of each answer, where the target's claim wants one.

    Raises:
        AssertionError: Says what is wrong.
    """
    facts = getattr(target, "facts", None)
    ensure(isinstance(facts, PublicFacts), "a target needs `facts`, a thinveil.PublicFacts")
    assert isinstance(facts, PublicFacts)
    n, cut = facts.records, facts.schema[0].lower or 0
    everything: list[dict[int, Any]] = [{0: _WHOLE}]
    halves = [{0: (MISSING, cut)}, {0: (cut, INFINITE)}]
    nobody = [{0: (cut, cut)}]
    known = [
        (everything, -1, 1.0), (everything, n, 0.0), (nobody, 0, 0.0), (halves, n + 5, 0.0),
        (halves, -7, 1.0), (everything, 0, 1.0), (nobody, n - 1, 0.0), (halves, -1, 1.0),
    ]  # fmt: skip
    wanted = np.array([answer for _, _, answer in known])
    asked = [(boxes, b) for boxes, b, _ in known]
    exact = facts.claim.offset == 0
    for number, batch in enumerate(
        (batch_of(asked), batch_of(asked, 3), batch_of(asked, [1, 4, 2, 1, 1, 3, 1, 2]))
    ):
        values = _answers(target, batch, epsilon, ("check", number + 1))
        told = np.repeat(wanted, np.asarray(batch.repeats))
        ensure(
            not exact or np.array_equal(values, told),
            "the target answers trivial thresholds, the whole table or an empty box wrongly, or "
            "in another order than it was asked: these are exact where noise is not always added",
        )
    halved = batch_of([(halves, b) for b in range(min(n, 4))], repeats=2)
    _answers(target, halved, epsilon, ("check", 4))
    twice = batch_of([([{0: _WHOLE}, {0: _WHOLE}], 0)])
    try:
        _answers(target, twice, epsilon, ("check", 5))
    except ThinveilError:
        return
    raise AssertionError("the target counts boxes of one question twice where they overlap")


def _answers(target: Target, batch: QueryBatch, epsilon: float, key: tuple[str, int]) -> Floats:
    """Return the answers to a batch, if they are answers at all."""
    claim = target.facts.claim
    given = target.answer(batch.stamped(key, epsilon if claim.protected else None))
    values = np.asarray(given.values if isinstance(given, Answers) else given, np.float64)
    ensure(
        values.shape == (batch.queries,),
        f"the target gave {values.size} answers where {batch.queries} were asked for: one for "
        "each repeat of each question, next to each other",
    )
    ensure(claim.may_answer(values), "the target answered with something that is no number")
    said = values[~np.isnan(values)]
    if claim.post == "integer":
        ensure((said == np.rint(said)).all(), "the target does not round to whole numbers")
    if claim.post == "binary":
        ensure(np.isin(said, (0, 1)).all(), "the target does not round to 0 or 1")
    return values
