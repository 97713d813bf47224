"""An example of a plug-in: noise that fades in steps, a noise law, and a target that uses it.

A researcher's idea, made up for this example: local sensitivity falls from 1 to 0 all at once,
which shows. So let it fall in steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import thinveil
from thinveil.language.claims import Post, Universe
from thinveil.language.contracts import Words
from thinveil.language.laws import Laplace
from thinveil.language.queries import Codes, Flags, Floats


@dataclass(frozen=True, slots=True)
class Staircase:
    """1 within k records of the threshold, 1/2 within 2k, 0 beyond."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise thinveil.ThinveilError("the staircase needs a k of at least 1")

    @property
    def title(self) -> str:
        """What it is called in results."""
        return f"a staircase of step {self.k}"

    def at(
        self, count: Codes, threshold: Codes, records: int, epsilon: float | Floats | None
    ) -> Floats:
        """Return the height of the step that each count stands on."""
        far = np.where(count > threshold, count - threshold, threshold - count + 1)
        height: Floats = np.where(far <= self.k, 1.0, np.where(far <= 2 * self.k, 0.5, 0.0))
        return height

    def breakpoints(self, threshold: Codes, records: int) -> Codes:
        """Return the last count of every step, and the threshold itself."""
        steps = np.array([-2, -1, 0, 1, 2]) * self.k
        cuts: Codes = threshold[:, None] + steps
        return cuts


def staircase(k: int, universe: Universe) -> thinveil.Claim:
    """Return the mechanism: Laplace noise at scale staircase / epsilon."""
    return thinveil.Claim("staircase", Staircase(k), "laplace", universe)


@dataclass(frozen=True)
class Hesitant(Laplace):
    """A noise law of one's own: Laplace noise, or half of the time no answer at all."""

    name = title = "hesitant"
    silent = True
    level = False
    row_loglik = None  # type: ignore[assignment]  # no short cut over rows of answers

    def draw(self, words: Words, bit: Floats, scale: float | Floats) -> Floats:
        """Draw noise; a bit of the word that our noise has no use for decides on silence."""
        return np.where(words & np.uint64(2), np.nan, super().draw(words, bit, scale))

    def loglik(self, value: Floats, bit: Flags, rate: Floats, post: Post, exact: bool) -> Floats:
        """Return the log density: silence is as likely for every count."""
        said = super().loglik(np.nan_to_num(value), bit, rate, post, exact)
        likely: Floats = np.where(np.isnan(value), 0.0, said) + np.log(0.5)
        return likely


def hesitant(k: int, universe: Universe) -> thinveil.Claim:
    """Return the same mechanism with noise that may be silence."""
    return thinveil.Claim("hesitant", Staircase(k), Hesitant(), universe)


class StaircaseTarget:
    """A release system in a few lines: it holds a table, answers, and counts its answers.

    Args:
        data: The confidential table.
        seed: The seed of its noise.
    """

    def __init__(self, data: thinveil.Dataset, seed: int = 0) -> None:
        self._data = data
        self._curator = thinveil.Curator(data, staircase(1, "unbounded"), seed=seed)
        self.facts = self._curator.facts
        self.fingerprint = f"staircase:{data.digest()}"
        self.answered = 0

    def answer(self, batch: thinveil.QueryBatch) -> Any:
        """Answer a batch, as any target does."""
        self.answered += batch.queries
        return self._curator.answer(batch)

    def to_dataset(self) -> thinveil.Dataset:
        """Hand out the true table for scoring: `--truth self`."""
        return self._data


def open_target(address: str, *, schema: thinveil.Schema | None = None) -> StaircaseTarget:
    """Open `staircase:people.csv`."""
    return StaircaseTarget(thinveil.load(address, schema))
