"""Do the answers of an attack fit the claimed law, whatever the counts are? Looked at in passing.

What an attack asks about has counts that nobody knows. So a question's answers are held against
the claimed law that fits them best, of all counts (universal inference; Wasserman, Ramdas and
Balakrishnan 2020). Three kinds of other laws are held against it, each a mean over these laws: the
same noise at other widths; noise whose quantiles come as often as they did in earlier batches
(estimated as Krichevsky and Trofimov do); whole numbers where nothing is to be rounded. The product
of each of these ratios over all questions has mean at most 1 under the claim, and so has their
mean: an e-process, as in `checks.fit`. Rows that are 0 or 1 throughout, where exact answers occur,
tell nothing and count as 1; how often noise looks like that is taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from thinveil.attacker.checks.fit import FACTORS
from thinveil.language.extents import Constants, Extent
from thinveil.language.facts import PublicFacts
from thinveil.language.laws.additive import Additive
from thinveil.language.queries import Answers, Codes, Flags, Floats, QueryBatch

_LAWS: Final = 2**13  # laws of questions that are weighed in a batch at most (about 1 ms)
_ENOUGH: Final = 20_000  # answers after which one batch in 32 is looked at
_BY_CHANCE: Final = 2.0**-24  # more than a continuous law ever looks exact by chance
_SIDE: Final = 8  # parts of equal probability on each side of the true bit
_RARE: Final = 2.0**-8  # more than doubles below 2^44 are whole numbers, where nothing is rounded
_HIGHEST: Final = 2.0**44  # beyond it doubles are 2^-8 apart, or more


@dataclass(slots=True)
class Passing:
    """The weight of the evidence that an attack's answers do not follow the claimed law.

    Args:
        facts: What is public.
        looked: Answers looked at so far.
        noisy: Those that had noise for certain, and were weighed.
        nats: The logarithm of each ratio: by how many times wider noise would be, by its shape,
            by whole numbers.
    """

    facts: PublicFacts
    looked: int = 0
    noisy: int = 0
    nats: Floats = field(default_factory=lambda: np.zeros(len(FACTORS) + 2))
    _parts: Floats = field(default_factory=lambda: np.full(2 * _SIDE, 0.5))
    _batches: int = 0
    _constants: Constants = field(init=False)

    def __post_init__(self) -> None:
        facts = self.facts
        self._constants = Constants(Extent.of(facts.schema, facts.claim.universe))

    @property
    def weight(self) -> float:
        """The logarithm of the mean over all of them."""
        top = float(self.nats.max())
        return top + math.log(float(np.exp(self.nats - top).mean()))

    def best(self) -> str:
        """Say which of them fits best, in a phrase."""
        best = int(self.nats.argmax())
        if best < len(FACTORS):
            return f"noise {FACTORS[best]:.3g} times as wide as claimed"
        shape = "noise of another shape: some sizes come too often, others too seldom"
        return shape if best == len(FACTORS) else "whole numbers, where nothing is to be rounded"

    def look(self, batch: QueryBatch, answers: Answers) -> bool:
        """Weigh the answers to a batch, or to the first of its questions; tell whether it did."""
        claim, n = self.facts.claim, self.facts.records
        self._batches += 1
        if claim.noise is None or claim.post == "binary":
            return False  # a single answer, 0 or 1, fits all laws
        if self.looked > _ENOUGH and self._batches % 32:
            return False
        b = batch.threshold
        cuts = np.sort(claim.sensitivity.breakpoints(b[:1], n), axis=1)
        most = max(1, _LAWS // (cuts.shape[1] + 1))
        rows = np.flatnonzero((b >= 0) & (b < n))[:most]
        if claim.offset or not claim.leaks:  # elsewhere a constant is exact, as others may be
            rows = rows[~self._constants.among(batch)[rows]]
        if len(rows):
            self._weigh(b[rows], rows, answers)
        return len(rows) > 0

    def _weigh(self, b: Codes, rows: Codes, answers: Answers) -> None:
        claim, n = self.facts.claim, self.facts.records
        cuts = np.sort(claim.sensitivity.breakpoints(b, n), axis=1)
        counts = np.concatenate([cuts, cuts[:, -1:] + 1], axis=1)
        epsilon = answers.epsilon
        loss = epsilon[rows][:, None] if isinstance(epsilon, np.ndarray) else epsilon or 1.0
        nothing = np.zeros(counts.shape, np.bool_)
        wide = np.broadcast_to(b[:, None], counts.shape)
        bit, scale = claim.law(counts, wide, nothing, n, loss)
        alive = (counts >= 0) & (counts <= n)
        exact = (alive & (scale == 0)).any(axis=1)
        noisy = alive & (scale > 0)
        rate = np.divide(loss, scale, out=np.ones(scale.shape), where=scale > 0)
        values, row = of_rows(answers, rows)
        still = exact & _still(values, row, len(rows))
        keep = ~still & noisy.any(axis=1)
        self.looked += len(values)
        self.noisy += int(np.count_nonzero(keep[row]))
        if claim.noise is not None and keep.any():
            self._add(values[keep[row]], (np.cumsum(keep) - 1)[row[keep[row]]], bit[keep],
                      rate[keep], noisy[keep])  # fmt: skip
        chance = self._by_chance(rate, noisy, row, len(rows))
        self.nats -= float(np.log1p(chance[exact]).sum())

    def _add(self, values: Floats, row: Codes, bit: Flags, rate: Floats, noisy: Flags) -> None:
        """Add the rows of answers that have noise for certain."""
        law, post = self.facts.claim.noise, self.facts.claim.post
        assert law is not None
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # answers of 1e308

            def told(by: float) -> Floats:
                each = law.loglik(values[:, None], bit[row], rate[row] / by, post, False)
                return np.where(noisy, np.add.reduceat(each, starts), -np.inf)

            claimed = told(1.0)
            best = claimed.max(axis=1)
            many = np.log(noisy.sum(axis=1))

            def lead(other: Floats) -> float:
                top = other.max(axis=1)
                each = np.log(np.exp(other - top[:, None]).sum(axis=1))
                mean = np.where(np.isinf(top), top, top + each - many)  # no weight at all stays so
                return float((mean - best)[np.isfinite(best)].sum())

            for place, by in enumerate(FACTORS):
                self.nats[place] += lead(told(by))
            if isinstance(law, Additive):  # its noise is as likely on either side
                shape = self._shape(values, row, bit, rate, claimed)
                self.nats[-2] += lead(claimed + np.add.reduceat(shape, starts))
        if post == "none" and self.facts.claim.sampler == "own":
            small = (np.abs(values) < _HIGHEST) & (values != 0) & (values != 1)
            whole = values[small] == np.rint(values[small])
            self.nats[-1] += math.log(0.5) * len(whole) - math.log(_RARE) * np.count_nonzero(whole)

    def _shape(
        self, values: Floats, row: Codes, bit: Flags, rate: Floats, claimed: Floats
    ) -> Floats:
        """Return, for each answer and law, how much likelier its part came so far than claimed.

        A part's probability is that of its size under the law; a whole number's may lie in one
        part altogether, which is taken off. Then the parts are counted, by the laws that fit best.
        """
        law, post = self.facts.claim.noise, self.facts.claim.post
        assert law is not None
        far = values[:, None] - bit[row]
        said = np.isfinite(far)
        side = np.minimum((2 * _SIDE * law.tail(np.abs(far), rate[row])), _SIDE - 1)
        part = np.where(said, side, 0).astype(np.int64) + np.where(far < 0, _SIDE, 0)
        parts = self._parts
        more: Floats = np.log(len(parts) * parts[part] / parts.sum())
        if post == "integer":
            more -= np.log1p(2 * len(parts) * law.still(rate[row], post))
        fits = part[np.arange(len(row)), claimed.argmax(axis=1)[row]]
        self._parts = parts + np.bincount(fits[said[:, 0]], minlength=len(parts))
        return np.where(said, more, 0.0)

    def _by_chance(self, rate: Floats, noisy: Flags, row: Codes, many: int) -> Floats:
        """Bound how likely noise looks exact in each row: 0 or 1 throughout."""
        law, post = self.facts.claim.noise, self.facts.claim.post
        assert law is not None
        if post != "integer":
            return np.full(many, _BY_CHANCE)
        sizes = np.bincount(row, minlength=many)
        fastest = np.where(noisy, rate, 0.0).max(axis=1)
        one = np.where(fastest > 0, law.still(np.where(fastest > 0, fastest, 1.0), post), 0.0)
        return np.minimum(2 * one**sizes, 1.0)


def of_rows(answers: Answers, rows: Codes) -> tuple[Floats, Codes]:
    """Return the answers to some questions, and which of these each belongs to."""
    each = answers.repeats
    if isinstance(each, int):
        values = answers.values.reshape(-1, each)[rows]
        return values.reshape(-1), np.repeat(np.arange(len(rows)), each)
    starts = np.cumsum(each) - each
    sizes = each[rows]
    row = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum(sizes) - sizes
    return answers.values[starts[rows][row] + np.arange(len(row)) - first[row]], row


def _still(values: Floats, row: Codes, many: int) -> Flags:
    """Tell which rows are 0 throughout, or 1 throughout."""
    sizes = np.bincount(row, minlength=many)
    zeros, ones = (np.bincount(row, values == each, minlength=many) for each in (0, 1))
    still: Flags = (zeros == sizes) | (ones == sizes)
    return still
