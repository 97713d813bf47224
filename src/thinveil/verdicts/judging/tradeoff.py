"""How often an attacker says "in" wrongly and rightly, at every threshold at once.

The trade-off curve of f-differential privacy (Dong, Roth and Su, "Gaussian differential privacy",
2022), with a simultaneous confidence band from order statistics.

Whoever says "in" where the score is at least t is right about the table with chance TPR(t), and
wrong about a neighbour with chance FPR(t). Let n scores of one world be drawn independently, with
distribution function F, and think of each as the quantile of F at an even draw U. The k-th
smallest score x_k is then the quantile at the k-th smallest U, which has the beta
distribution with parameters k and n + 1 - k. Whether or not scores tie,

    P(X < x_k)  <=  U_k  <=  P(X <= x_k),

so with l_k and h_k its quantiles, P(X <= x_k) >= l_k and P(X < x_k) <= h_k. The ranks k are fixed
beforehand, and all these statements, two for each rank of each world, fail together with at
most the error. Where they hold, they hold for every t: with x_k the smallest of them that is
at least t, P(X < t) <= P(X < x_k) <= h_k; with x_k the largest below t, P(X < t) >= l_k. So

    1 - h_k  <=  P(X >= t)  <=  1 - l_k,   each with its own k.

A mechanism is mu-Gaussian private where no test tells its worlds apart better than a normal law
from one shifted by mu: then at every t the normal quantiles of TPR and FPR differ by at most mu.
So mu is at least the largest difference of the quantiles of TPR's lower and FPR's upper end.

The band has the whole error for itself. The bound by right guesses is another statement with an
error of its own; both together hold with at least the confidence less one more error. Trials
must have ended where it was planned: of a run that was stopped there is no curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from thinveil.language.queries import Codes, Flags, Floats
from thinveil.verdicts.judging.intervals import at_least

_RANKS: Final = 16
"""Ranks from either end of each world, so at most 32; denser towards the ends."""


@dataclass(frozen=True, slots=True)
class Point:
    """What saying "in" from a threshold on does: both rates, as measured and as bounded.

    All intervals of a curve hold together.
    """

    threshold: float
    fpr: float
    tpr: float
    fpr_interval: tuple[float, float]
    tpr_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """The trade-off of an attack's scores, from the most cautious threshold to the least.

    `mu_at_least` is the least mu for which the mechanism could be mu-Gaussian private.
    """

    inside: int
    outside: int
    confidence: float
    mu_at_least: float
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class _World:
    """The scores of one world in order, and what is sure of the chance of less than some."""

    scores: Floats
    known: Floats  # the scores at the ranks
    low: Floats  # P(X <= known) is at least this
    high: Floats  # P(X < known) is at most this

    def rate(self, threshold: float) -> float:
        """Return how often a score was at least this."""
        return 1 - float(np.searchsorted(self.scores, threshold)) / max(len(self.scores), 1)

    def interval(self, threshold: float) -> tuple[float, float]:
        """Return between which ends the chance of a score of at least this lies."""
        place = int(np.searchsorted(self.known, threshold))  # the first that is no less
        most = float(self.high[place]) if place < len(self.known) else 1.0
        least = float(self.low[place - 1]) if place else 0.0
        return 1 - most, 1 - least


def trade_off(scores: Floats, inside: Flags, confidence: float) -> Curve:
    """Return the curve of some scores (in favour of "in") and coins, at most 64 points.

    Thresholds are the scores of the table at its ranks, and just above those of the neighbours at
    theirs: there the band is tightest.
    """
    read = scores.astype(np.float32).astype(np.float64)  # the last bit splits no tie
    sides = [np.sort(read[inside]), np.sort(read[~inside])]
    ranks = [_ranks(len(side)) for side in sides]
    error = (1 - confidence) / max(2 * sum(map(len, ranks)), 1)
    table, other = (_world(*each, error) for each in zip(sides, ranks, strict=True))
    above = np.nextafter(other.known, np.inf)
    points = [_point(each, table, other) for each in np.unique([*table.known, *above])[::-1]]
    normal = NormalDist()
    mu = 0.0
    for point in points:
        low, high = point.tpr_interval[0], point.fpr_interval[1]
        if low > 0 and high < 1:
            mu = max(mu, normal.inv_cdf(low) - normal.inv_cdf(high))
    return Curve(len(table.scores), len(other.scores), confidence, mu, tuple(points))


def _ranks(scores: int) -> Codes:
    """Return the ranks of so many scores, from 1 up, that the band stands on."""
    if not scores:
        return np.zeros(0, np.int64)
    near = np.rint(np.geomspace(1, (scores + 1) / 2, _RANKS)).astype(np.int64)
    return np.union1d(near, scores + 1 - near)


def _world(scores: Floats, ranks: Codes, error: float) -> _World:
    """Return what the scores of a world tell; each end errs with at most this chance."""
    count = len(scores)
    low = np.array([at_least(rank, count, error) for rank in ranks.tolist()])
    high = np.array([1 - at_least(count + 1 - rank, count, error) for rank in ranks.tolist()])
    return _World(scores, scores[ranks - 1], low, high)


def _point(threshold: float, table: _World, other: _World) -> Point:
    """Return what the attacker who says "in" from this score on does."""
    return Point(
        float(threshold),
        other.rate(threshold),
        table.rate(threshold),
        other.interval(threshold),
        table.interval(threshold),
    )
