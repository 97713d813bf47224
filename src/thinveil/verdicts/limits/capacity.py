"""How much one noisy answer tells at most (channel capacity, by Blahut and Arimoto 1972).

The answer to a threshold question follows one of a few laws, and which of them is all that an
answer can tell. For any law Q of answers, no way of asking gets more than

    the largest, over those laws P, of the relative entropy of P from Q

(Blahut 1972, theorem 4): so whatever Q is taken, the figure is never too small. The iteration
finds the Q for which it is smallest. The same with a divergence of higher order (Renyi's) bounds
what answers tell not on average but nearly always. The integrals are Gauss-Legendre sums over
panels that begin where a density has its kink or its peak, and double in width from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from thinveil.language.contracts import Law
from thinveil.language.laws.cauchy import Cauchy
from thinveil.language.laws.gaussian import Gaussian
from thinveil.language.laws.laplace import Laplace
from thinveil.language.queries import Floats

Input = tuple[bool, float]
"""A law of answers: the true bit and the scale of the noise around it."""

SMOOTH: Final = (Cauchy, Gaussian, Laplace)
"""The laws whose densities have no kink but at their middle."""
_NODES: Final = 20  # of a panel: sums are then right to 1e-12 of what they are
_FINEST: Final = -4  # the first panel is 2^-4 of the smallest scale wide
_LIGHT: Final = 6  # beyond 2^6 scales no such law has more than 1e-27 ...
_HEAVY: Final = 50  # ... but a Cauchy law has: beyond 2^50 scales it has 6e-16
_SERIES: Final = 1e-3  # laws this near to each other are compared by a series of four terms
_ROUNDS: Final = 100
_CLOSE: Final = 1e-5  # a gap between both bounds, as a share, at which the iteration ends
_SPARE: Final = 1e-6  # added to the result, as a share: far more than sums are wrong by
_WRONG: Final = 1e-10  # by this, at most, are sums wrong over which a logarithm is taken

ORDERS: Final = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
"""The orders above 1 at which a channel is measured: any is right, the best is taken."""


@dataclass(frozen=True, slots=True)
class Told:
    """How many bits an answer tells at most: on average, and at each of `ORDERS`."""

    bits: float
    orders: tuple[float, ...]


@lru_cache(maxsize=256)
def told_by(law: Law, inputs: tuple[Input, ...]) -> Told:
    """Bound from above how many bits an answer tells of which law it follows.

    Scales are above zero; the law is one of `SMOOTH`.

    >>> two = ((False, 1e10), (False, 2e10), (True, 2e10), (True, 1e10))
    >>> round(told_by(Laplace(), two).bits, 4)
    0.0781
    """
    unit = min(scale for _, scale in inputs)
    widest = max(scale for _, scale in inputs) / unit
    reach = (_HEAVY if isinstance(law, Cauchy) else _LIGHT) + math.ceil(math.log2(widest))
    values, weights = _panels(1 / unit, reach)
    far = np.stack([np.abs(values - bit / unit) for bit, _ in inputs])
    rates = np.array([[unit / scale] for _, scale in inputs])
    log: Floats = law.loglik(far, np.zeros(far.shape, np.bool_), rates, "none", False)
    mass = np.exp(log) * weights
    chance = best_chance = np.full(len(inputs), 1 / len(inputs))
    best, step = math.inf, 1.0
    for _ in range(_ROUNDS):
        apart = _apart(log, mass, chance)
        top, mean = float(apart.max()), float(chance @ apart)
        step = step / 2 if top > best else min(1.5 * step, 1 / top)
        if top < best:
            best, best_chance = top, chance
        if top - mean <= _CLOSE * top:
            break
        chance = chance * np.exp(step * (apart - top))
        chance /= chance.sum()
    orders = tuple(_at_order(each, mass, best_chance) for each in ORDERS)
    return Told(best / math.log(2) * (1 + _SPARE), orders)


def _at_order(order: float, mass: Floats, chance: Floats) -> float:
    """Return the largest Renyi divergence of a law from the mixture, in bits."""
    mixed = chance @ mass
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(mass > 0, mass / mixed, 0.0)
    sums = (mass * ratio ** (order - 1)).sum(axis=1)
    return math.log2(float(sums.max()) + _WRONG) / (order - 1)


def _apart(log: Floats, mass: Floats, chance: Floats) -> Floats:
    """Return the relative entropy of each law from their mixture, in nats.

    The sum of q - p + p log(p / q): no part of it is below zero, so nothing cancels where laws
    are nearly the same. There it is p (s - log(1 + s)) with 1 + s = q / p, by its series.
    """
    mixed = chance @ mass
    told = np.empty(len(log))
    with np.errstate(divide="ignore", invalid="ignore"):
        for row, (mine, p) in enumerate(zip(log, mass, strict=True)):
            s = chance @ np.expm1(np.clip(log - mine, -1.0, 1.0))
            series = p * s * s * (0.5 - s * (1 / 3 - s * (0.25 - s / 5)))
            plain = mixed - p + np.where(p > 0, p * np.log(p / mixed), 0.0)
            told[row] = np.where(np.abs(s) < _SERIES, series, plain).sum()
    return told


def _panels(apart: float, reach: int) -> tuple[Floats, Floats]:
    """Return values and weights of a sum over all answers to true bits at 0 and so far apart."""
    steps = np.concatenate([[0.0], np.exp2(np.arange(_FINEST, reach + 1))])
    half = [0.0, *(float(each) for each in steps[1:] if each < apart / 2), apart / 2]
    edges = [*-steps[::-1], *half[1:], *(apart - each for each in half[-2:0:-1]), *(apart + steps)]
    return _gauss(edges)


def _gauss(edges: Sequence[float]) -> tuple[Floats, Floats]:
    at, weigh = np.polynomial.legendre.leggauss(_NODES)
    ends = np.array(edges)
    wide, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    return (middle + wide * at).ravel(), (wide * weigh).ravel()


def of_a_bit(wrong: float) -> float:
    """Return what an answer of 0 or 1 tells that is wrong with this chance (binary symmetric).

    >>> of_a_bit(0.5), of_a_bit(0.0)
    (0.0, 1.0)
    """
    off = 1 - 2 * wrong
    if off < 1e-3:
        return off * off / (2 * math.log(2)) * (1 + off * off)
    return 1 + sum(each * math.log2(each) for each in (wrong, 1 - wrong) if each > 0)
