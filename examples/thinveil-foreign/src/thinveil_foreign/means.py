"""diffprivlib's mean of a predicate, where the library takes the bounds from the data.

The mean of c ones and n - c zeros lies at c / n. With `bounds=None` the library uses the least and
the largest value that occur: both are 0 if no record satisfies the predicate, both are 1 if all
do, and the answer is then exact. If some do, Laplace noise of scale 1 / (n epsilon) is added and
the sum is cut to [0, 1]: 0 with probability exp(-c epsilon) / 2, 1 with probability
exp(-(n - c) epsilon) / 2, something between otherwise. At a small loss that is a fair coin.

So each answer tells none, some or all, as in Bootstrap DP with answers rounded to 0 or 1, whatever
threshold a question has. Values between 0 and 1 are rounded to the nearer one here, which costs
nothing. The library warns of the leak at every call; `warned` counts how often.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import thinveil
from thinveil.errors import BudgetError, QueryError, ThinveilError
from thinveil.language.facts import PublicFacts
from thinveil_foreign import table_at

FAIR: Final = 1e-3
"""Records times loss up to which the coin is fair: it is off by at most half of this."""


class Means:
    """Answers questions by calling `diffprivlib.tools.mean`, once for each answer.

    Args:
        data: The confidential table.
    """

    def __init__(self, data: thinveil.Dataset) -> None:
        try:
            import diffprivlib
        except ImportError:
            raise ThinveilError(
                "diffprivlib is not installed: pip install 'diffprivlib>=0.6.6' 'scikit-learn<1.7'"
            ) from None
        self._mean, self._leak = diffprivlib.tools.mean, diffprivlib.utils.PrivacyLeakWarning
        self._accountant = diffprivlib.BudgetAccountant()
        self._data = data
        self.facts = PublicFacts(
            data.records, data.schema, thinveil.claim_named("bdp", post="binary")
        )
        self.fingerprint = f"diffprivlib:{data.digest()}"
        self.warning = (
            f"diffprivlib {diffprivlib.__version__} warns at every call that bounds taken from the "
            "data leak; this audit shows what"
        )
        self.calls = self.warned = self.between = 0
        """Calls of the library, those that it warned of, and answers other than 0 and 1."""

    def answer(self, batch: thinveil.QueryBatch) -> Any:
        """Return the library's mean for each answer wanted, rounded to 0 or 1."""
        n = self.facts.records
        if batch.epsilon is None or np.max(batch.epsilon) * n > FAIR:
            raise BudgetError(
                f"noise of this library is a fair coin at a small loss only: ask for at most "
                f"{FAIR / n:g} an answer"
            )
        if batch.threshold.min() < 0 or batch.threshold.max() >= n:
            raise QueryError("a mean has no threshold; those from 0 to n - 1 are passed over")
        epsilon = np.broadcast_to(batch.epsilon, batch.threshold.shape).tolist()
        repeats = np.broadcast_to(batch.repeats, batch.threshold.shape).tolist()
        values: list[float] = []
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for indicator, loss, many in zip(
                self._indicators(batch), epsilon, repeats, strict=True
            ):
                values += (
                    float(
                        self._mean(
                            indicator, epsilon=loss, bounds=None, accountant=self._accountant
                        )
                    )
                    for _ in range(many)
                )
        self.calls += len(values)
        self.warned += sum(issubclass(each.category, self._leak) for each in heard)
        answers = np.array(values)
        self.between += int(np.count_nonzero((answers > 0) & (answers < 1)))
        return (answers > 0.5).astype(float)

    def _indicators(self, batch: thinveil.QueryBatch) -> list[npt.NDArray[np.float64]]:
        """Return, for each question, a one for each record that satisfies its predicate."""
        columns = batch.columns()
        low, high = batch.ranges(columns)
        table = self._data.codes[:, columns]
        inside = [
            ((table >= start) & (table < end)).all(axis=1)
            for start, end in zip(low, high, strict=True)
        ]
        if batch.offsets is None:
            return [each.astype(float) for each in inside]
        ends = batch.offsets.tolist()
        return [np.any(inside[start:end], axis=0).astype(float) for start, end in pairwise(ends)]

    @property
    def spent(self) -> float:
        """The loss by the library's own accounting."""
        return float(self._accountant.total()[0])

    def to_dataset(self) -> thinveil.Dataset:
        """Return the true table, for scoring."""
        return self._data


def open_target(address: str, *, schema: thinveil.Schema | None = None) -> Means:
    """Open `diffprivlib:people.csv`, or `diffprivlib:200` for so many of the embedded people."""
    return Means(table_at(address, schema))
