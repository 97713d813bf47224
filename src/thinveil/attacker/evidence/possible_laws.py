"""Which laws could have given all answers to a question, double by double.

A count that the claim allows has a true bit and a scale of noise. What noise drawn in doubles
cannot give under a law strikes it out; what the laws left over have in common is certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinveil.attacker.evidence import doubles
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags, Floats, QueryBatch


class Impossible(Exception):
    """Some double can come from no law that the claim allows, as far as is allowed for."""


@dataclass(slots=True)
class Told:
    """Answers: to which question each, the value, its loss, whether the predicate is constant."""

    row: Codes
    value: Floats
    epsilon: Floats
    constant: Flags

    def some(self, which: Flags) -> Told:
        """Return some of these answers."""
        return Told(self.row[which], self.value[which], self.epsilon[which], self.constant[which])

    def and_then(self, more: Told) -> Told:
        """Return these answers and others, those of a question next to each other."""
        row = np.concatenate([self.row, more.row])
        order = np.argsort(row, kind="stable")
        value = np.concatenate([self.value, more.value])
        epsilon = np.concatenate([self.epsilon, more.epsilon])
        constant = np.concatenate([self.constant, more.constant])
        return Told(row[order], value[order], epsilon[order], constant[order])


class Questions:
    """The questions of one batch, and which laws could have given all their answers so far.

    A law is out when so many answers as are `needed` speak against it. An `exact` answer is one
    without noise: of it, no double is to be read, and it alone decides.
    """

    def __init__(
        self, facts: PublicFacts, clean: PublicFacts, batch: QueryBatch, needed: int = 1
    ) -> None:
        self._claim, self._records = facts.claim, facts.records
        b = np.minimum(np.maximum(batch.threshold, -1), facts.records)
        cuts = np.sort(facts.claim.sensitivity.breakpoints(b, facts.records), axis=1)
        self._b, self._counts = b, np.concatenate([cuts, cuts[:, -1:] + 1], axis=1)
        self._first = (self._counts >= 0) & (self._counts <= facts.records)
        self._needed = needed
        self._against: Codes = np.where(self._first, 0, needed)  # answers that a law cannot give
        self.exact = np.zeros(len(b), np.bool_)
        bit: Codes = (self._counts > b[:, None]).astype(np.int64)
        if clean.claim.protected:
            zones = clean.claim.sensitivity.at(self._counts, b[:, None], facts.records, None) > 0
            self._meant, self._worth = np.where(zones, 1, 2 * bit), 0.5
        else:
            self._meant, self._worth = bit, 1.0

    def again(self, rows: Codes) -> None:
        """Forget all answers to some questions."""
        self._against[rows] = np.where(self._first[rows], 0, self._needed)

    def learn(self, told: Told, ulps: int) -> None:
        """Strike out laws that cannot have given these answers.

        Raises:
            Impossible: None of a question's laws can.
        """
        if not len(told.row):
            return
        start = np.searchsorted(told.row, told.row)
        turn = np.arange(len(told.row)) - start
        for each in range(int(turn.max()) + 1):
            self._strike(told, np.flatnonzero(turn == each), ulps)
            if not self._alive.any(axis=1).all():
                raise Impossible

    def _strike(self, told: Told, some: Codes, ulps: int) -> None:
        """Weigh one answer each of some questions."""
        place, law = np.nonzero(self._against[told.row[some]] < self._needed)
        answer = some[place]
        row = told.row[answer]
        bit, sensitivity = self._claim.law(
            self._counts[row, law], self._b[row], told.constant[answer], self._records,
            told.epsilon[answer],
        )  # fmt: skip
        noise, scale = self._claim.noise, sensitivity / told.epsilon[answer]
        assert doubles.tells(noise)
        possible = doubles.reachable(noise, told.value[answer], bit, scale, ulps)
        exact = possible & (sensitivity == 0)
        self.exact[row[exact]] = True
        if exact.any():  # what is exact is no noise, but for a chance of 2^-52
            possible &= ~self.exact[row] | exact
        self._against[row[~possible], law[~possible]] += np.where(
            self.exact[row[~possible]], self._needed, 1
        )

    def scales(self, told: Told) -> tuple[float, float]:
        """Return how narrow and how wide the noise of the first answer can be; 0 without any."""
        counts = self._counts[told.row[0]]
        first = (np.full(counts.shape, each[0]) for each in (told.constant, told.epsilon))
        b, (constant, epsilon) = np.full_like(counts, self._b[told.row[0]]), first
        wide = self._claim.law(counts, b, constant, self._records, epsilon)[1]
        wide = wide[wide > 0] / told.epsilon[0]
        return (float(wide.min()), float(wide.max())) if len(wide) else (0.0, 0.0)

    def bits(self, row: int) -> list[int]:
        """Return the true bits that a question can have, by what is known of it so far."""
        return sorted({*(self._counts[row] > self._b[row])[self._alive[row]].astype(int).tolist()})

    def noisy(self, constant: Flags) -> Codes:
        """Return the questions whose answers may have noise."""
        trivial = constant | (self._b < 0) | (self._b >= self._records)
        return np.flatnonzero(~trivial | (self._claim.offset > 0))

    @property
    def _alive(self) -> Flags:
        """Which laws could have given all answers."""
        alive: Flags = self._against == 0
        return alive

    @property
    def laws(self) -> int:
        """How many laws an answer can follow."""
        return len(self._counts[0])

    @property
    def settled(self) -> Flags:
        """For each question, whether all laws left mean the same."""
        left = self._against < self._needed
        low = np.where(left, self._meant, 2).min(axis=1)
        high = np.where(left, self._meant, 0).max(axis=1)
        same: Flags = low == high
        return same

    def clean(self) -> Floats:
        """Return what each question was settled to."""
        clean: Floats = np.where(self._alive, self._meant, 0).max(axis=1) * self._worth
        return clean
