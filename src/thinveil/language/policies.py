"""What a curator does besides adding noise, as a pure description.

A policy says which batches are refused and which answers are given again. All of it is
public: an attacker who meets a policy finds it out by asking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.errors import BudgetError, BudgetSpent, UsageError
from thinveil.language.queries import QueryBatch


@dataclass(frozen=True, slots=True)
class Policies:
    """The rules of a curator that hold whatever its mechanism is.

    Args:
        min_epsilon: Answers that claim a smaller loss are refused; None refuses none.
        max_queries: How many answers are given at most, repeated ones included.
        cache: Whether the same question, however it is written, always gets the same answer,
            which is charged once.

    >>> Policies(max_queries=1000, cache=True).describe()
    ['gives at most 1,000 answers in all', 'gives a question that was asked before the same answer']
    """

    min_epsilon: float | None = None
    max_queries: int | None = None
    cache: bool = False

    def __post_init__(self) -> None:
        least = self.min_epsilon
        if least is not None and (isinstance(least, bool) or not 0 < least < math.inf):
            raise UsageError("the smallest allowed share must be a number above zero")
        if type(self.cache) is not bool:
            raise UsageError("whether answers are given again is true or false")
        most = self.max_queries
        if most is not None and (type(most) is not int or most < 1):
            raise UsageError("the largest number of answers must be a whole number of at least 1")

    def describe(self) -> list[str]:
        """Say each policy in a phrase."""
        least, most = self.min_epsilon, self.max_queries
        return [
            *([] if least is None else [f"refuses answers with a share below {least:g}"]),
            *([] if most is None else [f"gives at most {_answers(most)} in all"]),
            *(["gives a question that was asked before the same answer"] * self.cache),
        ]

    def admit(self, batch: QueryBatch, answered: int) -> None:
        """Refuse a stamped batch that some policy forbids, after `answered` earlier answers."""
        if self.min_epsilon is not None and batch.epsilon is not None:
            smallest = float(np.min(batch.epsilon))
            if smallest < self.min_epsilon:
                raise BudgetError(
                    f"the curator refuses answers with a share below {self.min_epsilon:g}, and "
                    f"the next batch offers {smallest:g}: give each answer at least the smallest "
                    "allowed share, or ask fewer questions of the same total"
                )
        if self.max_queries is not None and answered + batch.queries > self.max_queries:
            raise BudgetSpent(
                f"the curator gives at most {_answers(self.max_queries)} in all: "
                f"{_answers(answered)} {'is' if answered == 1 else 'are'} given, the next batch "
                f"asks for {batch.queries:,}"
            )


def _answers(many: int) -> str:
    return f"{many:,} answer{'' if many == 1 else 's'}"


NO_POLICIES: Final = Policies()
"""A curator that refuses nothing and draws every answer afresh."""
