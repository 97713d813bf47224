"""Which guesses are worth making: a threshold on scores, chosen where it cannot flatter.

Abstention, calibrated on held-out trials (temperature scaling).

A score is the logarithm of a likelihood ratio, so it says by itself how often a guess like it
is right: with chance 1 / (1 + e^-|score|). A few sure guesses may show more than many vague
ones, or less. The threshold is where the bound that is to be expected is largest. Scores come
from a public law that a target may not keep to; so the first trials are held out, and there it
is seen by which factor scores are too sure or not sure enough, and whether their sizes tell
anything at all.

Any rule would do for validity (see `guesses`): this one reads scores, and coins of trials only
that do not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from thinveil.auditing.entries import USUAL_CONFIDENCE
from thinveil.language.queries import Flags, Floats
from thinveil.verdicts.judging.guesses import PLANNED, shown_by

Trust = tuple[float, float]
"""How sure a guess is: a score's size, to the power of the second, times the first, is its
log-odds."""
FEWEST: Final = 400
"""Of fewer trials none is held out: a twentieth of them would check nothing."""
_HELD_OUT: Final = 20  # one of so many: a bound by right guesses alone falls by ln(20 / 19)
_MOST: Final = 1000  # trials that show how sure scores may be; more would show no more
_USUAL: Final = float(USUAL_CONFIDENCE)
_FACTORS: Final = np.linspace(-12.0, 25.0, 75)
"""By what scores may be too sure, as logarithms: clipped ones of 1e4 that are idle, and those of a
target that claims 1e-10 and gives 1."""
_POWERS: Final = {1.0: 0.0, 0.5: 3.0, 0.0: 3.0}
"""Powers of scores that may fit better, and the nats that speak against them beforehand. With 0
all guesses are as sure as each other. Three nats keep chance from preferring it: a round figure."""
_WIDTH: Final = 0.5  # how far off the public law usually is: a round figure, a heavy tail


@dataclass(frozen=True, slots=True)
class Guesses:
    """What was guessed: how many guesses were right and made, of how many trials.

    The first `held_out` trials helped to choose the threshold and do not count. Of the others, a
    score closer to 0 than the threshold is no guess.
    """

    right: int
    made: int
    trials: int
    held_out: int
    threshold: float


def choose(
    scores: Floats,
    inside: Flags,
    *,
    confidence: float = _USUAL,
    delta: float = 0.0,
    planned: bool = True,
) -> Guesses:
    """Choose which trials are guessed, and count the right guesses.

    Args:
        scores: The log-likelihood ratio of each trial in nats, in favour of "in".
        inside: The coins: whether it was "in".
        confidence: Of the bound that follows; the threshold hangs on it a little.
        delta: Of that bound: right guesses that it takes away are missed less among many.
        planned: Whether the trials ended where it was planned, see `as_it_goes`.
    """
    if not planned:
        return as_it_goes(scores, inside, confidence=confidence)
    levels, correct = _levels(scores), (scores > 0) == inside
    trials = len(levels)
    held = min(trials // _HELD_OUT, _MOST) if trials >= FEWEST and np.ptp(levels) > 0 else 0
    error = PLANNED * (1 - confidence)
    shown, error = shown_by(trials, delta, error)
    trust = _trust(levels[:held], correct[:held])
    threshold = _threshold(levels[held:], trust, error, shown)
    made = levels[held:] >= threshold
    right = int(np.count_nonzero(made & correct[held:]))
    return Guesses(right, int(np.count_nonzero(made)), trials, held, threshold)


def as_it_goes(scores: Floats, inside: Flags, *, confidence: float = _USUAL) -> Guesses:
    """Choose and count where somebody may stop at any time: what counts was decided before.

    A predictable rule, for `epsilon_anytime`. Blocks of trials are each as long as all before them
    together; a block has the threshold that the trials before it suggest, scores and coins.
    The first trial is a guess. None is held out.
    """
    flags, threshold = counting(scores, inside, confidence)
    right = int(np.count_nonzero(flags & ((scores > 0) == inside)))
    return Guesses(right, int(np.count_nonzero(flags)), len(scores), 0, threshold)


def counting(scores: Floats, inside: Flags, confidence: float = _USUAL) -> tuple[Flags, float]:
    """Return which trials count in a run that may be stopped, and the threshold at its end."""
    levels, correct = _levels(scores), (scores > 0) == inside
    flags, start, threshold = np.ones(len(levels), np.bool_), 1, 0.0
    while start < len(levels):
        seen = slice(0, min(start, _MOST))
        trust = _trust(levels[seen], correct[seen])
        threshold = _threshold(levels[:start], trust, PLANNED * (1 - confidence))
        flags[start : 2 * start] = levels[start : 2 * start] >= threshold
        start *= 2
    return flags, threshold


def _levels(scores: Floats) -> Floats:
    """Return how far scores are from 0, to 24 bits: the last bit of a double splits no tie."""
    return np.abs(scores).astype(np.float32).astype(np.float64)


def _trust(levels: Floats, correct: Flags) -> Trust:
    """Return how scores speak the truth, where guesses show it; as they are without any.

    The most likely factor and power; beforehand the factor is Cauchy around 1 on the logarithmic
    scale, and a power other than 1 is unlikely.
    """
    if not len(levels):
        return 1.0, 1.0
    factors = np.exp(_FACTORS)
    doubt = np.log1p((_FACTORS / _WIDTH) ** 2)
    found = []
    for power, unlikely in _POWERS.items():
        signed = np.where(correct, -1.0, 1.0) * levels**power
        surprise = np.logaddexp(0.0, np.outer(factors, signed)).sum(axis=1) + doubt
        best = int(np.argmin(surprise))
        found.append((float(surprise[best]) + unlikely, (float(factors[best]), power)))
    return min(found)[1]


def _threshold(levels: Floats, trust: Trust, error: float, shown: int = 0) -> float:
    """Return the threshold with the largest expected bound, halfway between two levels.

    So many right guesses are taken away from it, as delta asks.
    """
    if not len(levels):
        return 0.0
    down = np.sort(levels)[::-1]
    made = np.arange(1, len(down) + 1)
    factor, power = trust
    right = np.cumsum(1 / (1 + np.exp(-factor * down**power)))
    last = np.append(down[1:] < down[:-1], True)  # ties are guessed together
    bound = np.where(last, _roughly(right - shown, made - right, error), -np.inf)
    best = int(np.argmax(bound))
    if best == len(down) - 1 or not np.isfinite(bound[best]):
        return 0.0
    return float(down[best] + down[best + 1]) / 2


def _roughly(right: Floats, wrong: Floats, error: float) -> Floats:
    """Return about the bound of so many right and wrong guesses, which need not be whole.

    The lower end of Clopper and Pearson by a quantile of the F distribution, and that by
    the cube roots of Wilson and Hilferty, as Paulson (1942) does; -inf where that fails, for
    a handful of guesses.
    """
    z = NormalDist().inv_cdf(1 - error)
    some = np.maximum(right, 0.5)
    a, b = 1 / (9 * some), 1 / (9 * (wrong + 1))
    below = (1 - a) ** 2 - a * z * z
    spread = (1 - a) ** 2 * b + (1 - b) ** 2 * a - a * b * z * z
    ok = (below > 0) & (spread > 0) & (right >= some)
    root = ((1 - a) * (1 - b) + z * np.sqrt(np.where(ok, spread, 1))) / np.where(ok, below, 1)
    bound: Floats = np.where(ok, np.log(some / (wrong + 1)) - 3 * np.log(root), -math.inf)
    return bound
