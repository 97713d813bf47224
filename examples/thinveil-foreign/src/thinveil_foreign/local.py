"""OpenDP's Laplace measurement, used at a scale that depends on the data.

OpenDP does what it is told and is not to blame: it is given local sensitivity / epsilon as
its scale, as Individual DP has it. Where local sensitivity is 0 the scale is 0, and the
measurement, called all the same, returns its input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import thinveil
from thinveil.errors import BudgetError, ThinveilError
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil_foreign import table_at


class LocalLaplace:
    """A curator whose every answer comes out of an OpenDP measurement.

    Args:
        data: The confidential table.
        k: The group size.
    """

    def __init__(self, data: thinveil.Dataset, k: int = 1) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise ThinveilError("opendp is not installed: pip install 'opendp>=0.13'") from None
        dp.enable_features("contrib")  # every measurement of OpenDP's asks for this consent
        self._dp: Any = dp
        self._space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
        self._data, self._counter = data, data.counter()
        claim = thinveil.idp(k)
        self.facts = PublicFacts(data.records, data.schema, claim)
        self._constants = Constants(Extent.of(data.schema, claim.universe))
        self.fingerprint = f"opendp:{data.digest()}"
        self.exact = self.noisy = 0
        """How many values were measured at scale 0, and at a scale above it."""

    def answer(self, batch: thinveil.QueryBatch) -> Any:
        """Measure the true bit of each question, at local sensitivity / epsilon."""
        if batch.epsilon is None:
            raise BudgetError("every answer needs a privacy budget")
        n, claim = self.facts.records, self.facts.claim
        counts = self._counter.count(batch)
        threshold = np.minimum(np.maximum(batch.threshold, -1), n)
        bit, sensitivity = claim.law(
            counts, threshold, self._constants.among(batch), n, batch.epsilon
        )
        bits = np.repeat(bit.astype(float), batch.repeats)
        scale = np.repeat(sensitivity / batch.epsilon, batch.repeats)
        values = np.empty(len(bits))
        for each in np.unique(scale).tolist():
            some = np.flatnonzero(scale == each)
            values[some] = self._dp.m.make_laplace(*self._space, scale=each)(bits[some].tolist())
        self.exact += int(np.count_nonzero(scale == 0))
        self.noisy += int(np.count_nonzero(scale))
        return values

    def to_dataset(self) -> thinveil.Dataset:
        """Return the true table, for scoring."""
        return self._data


def open_target(address: str, *, schema: thinveil.Schema | None = None) -> LocalLaplace:
    """Open `opendp:people.csv`, or `opendp:200` for so many of the embedded people."""
    return LocalLaplace(table_at(address, schema))
