"""How far two laws of answers are apart: delta(epsilon) of many answers, and the largest loss.

The hockey-stick divergence, in closed form where there is one: exact answers against noise, coins,
Laplace noise of two widths (Gamma tails), Gaussian noise. Everything else is cut into kinds of
answers, and both ends of delta are computed from these (attacker/evidence/privacy_loss.py).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from thinveil.attacker.evidence.privacy_loss import MOST_LOSS, Cells, deltas, shifted_laplace
from thinveil.language.contracts import Law, Post
from thinveil.language.laws import Cauchy, DiscreteLaplace, Gaussian, Laplace
from thinveil.language.laws.gaussian import least_delta
from thinveil.language.queries import Floats
from thinveil.verdicts.judging.pairs import Pair

Ends = tuple[Floats, Floats]
"""Both ends of delta, at each epsilon."""

_STEPS: Final = 128  # kinds of Laplace answers on either side of 1/2
_INNER: Final = np.arange(1, 1024) / 1024
_OUTER: Final = 10.0 ** -np.arange(3.05, 16.0, 0.05)
_WHOLE: Final = 1000  # whole numbers on either side of 0 that are told apart, one by one
_SMALLEST: Final = 1e-290  # of smaller tails the logarithm is taken by itself
_BELOW_ONE: Final = 1 - 2.0**-53
_ROUNDING: Final = 1e-11  # what differences of chances may be off in all
_TINY: Final = 1e-6  # at smaller rates differences drown in rounding, but for some laws of ours


def delta_of(pair: Pair, answers: int, epsilons: Floats) -> Ends:
    """Return both ends of delta at each epsilon, of so many answers; they meet in closed forms."""
    law = pair.law
    if pair.one.exact:
        if pair.told_at_once:
            return np.ones(len(epsilons)), np.ones(len(epsilons))
        return _meeting(np.full(len(epsilons), 1 - pair.stays**answers))
    assert law is not None
    if pair.far_apart:
        return _far_apart(pair, epsilons), np.ones(len(epsilons))
    if pair.is_coin:
        return _meeting(_coins(pair, answers, epsilons))
    if isinstance(law, Gaussian) and pair.level and pair.post == "none":
        spread = pair.one.scale / math.sqrt(answers)
        return _meeting(np.array([least_delta(eps, spread) for eps in epsilons.tolist()]))
    if isinstance(law, Laplace) and not pair.shifted and pair.post == "none":
        wider = pair.other.scale / pair.one.scale
        return _meeting(np.array([_two_widths(wider, answers, eps) for eps in epsilons.tolist()]))
    low, high = np.zeros(len(epsilons)), np.ones(len(epsilons))
    rate, fine = (
        1 / pair.one.scale,
        isinstance(law, Cauchy) or (isinstance(law, Laplace) and pair.level),
    )
    if rate <= MOST_LOSS and (fine or rate >= _TINY or not pair.level):
        low, high = deltas(cells_of(pair), answers, epsilons, pair.shifted and pair.level)
        if not fine:
            low, high = np.maximum(low - _ROUNDING, 0.0), np.minimum(high + _ROUNDING, 1.0)
    if isinstance(law, Gaussian) and pair.level:  # rounding takes away, and adds nothing
        high = np.minimum(high, delta_of(replace(pair, post="none"), answers, epsilons)[1])
    return low, high


def largest_loss_of(pair: Pair) -> float | None:
    """Return the largest loss ln(p/q) of one answer, either way; None where nobody knows.

    It is infinite where something happens in one world only, or is ever likelier in it.
    """
    law = pair.law
    if pair.one.exact:
        return math.inf
    if pair.far_apart:  # about one centre the ratio of both scales; rounding adds nothing
        ratio = math.log(pair.other.scale) - math.log(pair.one.scale)
        return ratio if pair.widened is None else pair.widened
    if pair.is_coin:
        mine, rival = _coin_logs(pair)
        return float(np.abs(mine - rival).max())
    if isinstance(law, (Laplace, DiscreteLaplace)):
        return 1 / pair.one.scale if pair.level else math.inf
    if isinstance(law, Gaussian):
        return math.inf
    if isinstance(law, Cauchy):
        if pair.level:  # where (x - 1)^2 + s^2 over x^2 + s^2 is largest; rounding adds nothing
            return 2 * math.asinh(1 / (2 * pair.one.scale))
        cells = cells_of(pair)
        return float(max(np.abs(cells.low).max(), np.abs(cells.high).max()))
    return None


def _meeting(values: Floats) -> Ends:
    """Return both ends as one; it is below 1, however a double rounds it."""
    values = np.clip(values, 0.0, 1.0)
    return np.minimum(values, _BELOW_ONE), values


# Closed forms


def _coin_logs(pair: Pair) -> tuple[Floats, Floats]:
    """Return ln(2 x chance) of the answers 0 and 1, or of at most 0 and above, in each world."""
    assert pair.law is not None
    logs = []
    for short, world in zip(pair.halves, (pair.one, pair.other), strict=True):
        far = abs(short)  # 1/2 less the chance of the wrong value
        wrong = math.log1p(-2 * far) if far < 0.25 else _log_tail(pair.law, 1 / world.scale)
        logs.append([math.log1p(2 * far), wrong][:: -1 if short < 0 else 1])
    return np.array(logs[0]), np.array(logs[1])


def _log_tail(law: Law, rate: float) -> float:
    """Return ln(2 x the chance of noise beyond 1/2), rather too small where it is tiny."""
    if isinstance(law, Laplace):
        return -rate / 2
    if isinstance(law, DiscreteLaplace):
        return math.log(2) - rate - math.log1p(math.exp(-rate))
    beyond = float(law.tail(0.5, rate))
    if isinstance(law, Gaussian) and beyond < _SMALLEST:
        x = rate / math.sqrt(8)  # erfc x > 2 exp(-x^2) / (sqrt(pi) (x + sqrt(x^2 + 2)))
        return math.log(2 / math.sqrt(math.pi)) - x * x - math.log(x + math.sqrt(x * x + 2))
    return math.log(2 * max(beyond, _SMALLEST))


def _coins(pair: Pair, answers: int, epsilons: Floats) -> Floats:
    """Add up over how many answers are 1: a binomial number."""
    both = _coin_logs(pair)
    ones = np.arange(answers + 1.0)
    counts = np.stack([answers - ones, ones])
    logs = np.concatenate([[0.0], np.cumsum(np.log(ones[1:]))])
    ways = logs[-1] - logs - logs[::-1] - answers * math.log(2)
    best = np.zeros(len(epsilons))
    for mine, rival in (both, both[::-1]):
        mass, loss = np.exp(ways + mine @ counts), (mine - rival) @ counts
        more = [float(mass @ -np.expm1(np.minimum(eps - loss, 0.0))) for eps in epsilons.tolist()]
        best = np.maximum(best, more)
    return best


def _far_apart(pair: Pair, epsilons: Floats) -> Floats:
    """Bound delta of one Cauchy answer, and so of many, from below; scales differ vastly.

    The answer is within the geometric mean of both scales of the bit: of the narrow law all but
    2 / (pi sqrt(r)) is there, of the wide law no more than that, with r the ratio of both.
    """
    if pair.post != "none":
        return np.zeros(len(epsilons))
    rest = 2 / math.pi * math.sqrt(pair.one.scale / pair.other.scale)
    low: Floats = np.clip(1 - rest * (1 + np.exp(epsilons)), 0.0, _BELOW_ONE)
    return low


def _two_widths(wider: float, answers: int, epsilon: float) -> float:
    """Return delta of Laplace noise of two widths: the sum of all magnitudes is Gamma.

    With S the sum over the narrower scale and w the ratio of both, the loss is
    m ln w - S (1 - 1/w), so that it passes epsilon below one sum, or above another.
    """
    most, slope = answers * math.log(wider), -math.expm1(-math.log(wider))
    low, high = (most - epsilon) / slope, (most + epsilon) / slope
    factor = math.exp(min(epsilon, 700.0))
    narrow = gamma_tails(answers, low)[0] - factor * gamma_tails(answers, low / wider)[0]
    wide = gamma_tails(answers, high / wider)[1] - factor * gamma_tails(answers, high)[1]
    return max(narrow, wide, 0.0)


def gamma_tails(shape: int, x: float) -> tuple[float, float]:
    """Return P(G < x) and P(G >= x) for a Gamma number: arrivals until x, a Poisson number."""
    if x <= 0:
        return 0.0, 1.0
    counts = np.arange(shape + x + 40 * math.sqrt(shape + x) + 40)
    logs = counts * math.log(x) - x - np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    mass = np.exp(logs)
    return float(mass[shape:].sum()), float(mass[:shape].sum())


# Kinds of answers


def cells_of(pair: Pair) -> Cells:
    """Cut the answers of two noisy laws into kinds, with their chances and losses in both."""
    law = pair.law
    assert law is not None
    if isinstance(law, Laplace) and pair.level and pair.post != "binary":
        rate = 1 / pair.one.scale
        return shifted_laplace(rate, _STEPS) if pair.post == "none" else _rounded_laplace(rate)
    both = _Both(pair, law)
    if pair.post == "binary":
        return both.cells(np.array([0.5]))
    turns = both.turns()
    edges = np.unique(np.concatenate([both.edges(), turns]))
    if pair.post == "none":
        return both.cells(edges, *both.losses(edges))
    near = (np.arange(-_WHOLE, _WHOLE + 1.0), turns - 1, turns, turns + 1, edges)
    edges = np.unique(np.floor(np.concatenate(near))) + 0.5
    alone = np.concatenate([[False], np.diff(edges) == 1, [False]])
    rough = both.cells(edges, *both.losses(edges), silence=False)
    low, high = (np.where(alone, rough.mean, each) for each in (rough.low, rough.high))
    return both.cells(edges, low, high)


def _rounded_laplace(rate: float) -> Cells:
    """Return answers below 0, 0, 1 and above, rounded to whole numbers; others lose as much."""
    below, at = 0.5 * math.exp(-rate / 2), -math.expm1(-rate / 2)
    middle = below * -math.expm1(-rate)
    p = np.array([below, at, middle, below * math.exp(-rate)])
    d = np.array([middle, at - middle, middle - at, -middle])
    near = rate / 2 - math.log1p(math.expm1(-rate / 2) / 2)
    loss = np.array([rate, near, -near, -rate])
    return Cells(p, d, loss, loss)


class _Both:
    """Two noisy laws on one axis: the narrower one about 0, the wider one about 0 or 1."""

    def __init__(self, pair: Pair, law: Law) -> None:
        one, other = pair.one.scale, pair.other.scale
        self._law, self._post, self._scales = law, pair.post, (one, other)
        self._bits = np.array([pair.one.bit]), np.array([pair.other.bit])
        self._shift = float(pair.shifted)
        self._less = (other - one) / other  # 1 - the ratio of both

    def edges(self) -> Floats:
        """Return places between which both laws have little: quantiles, and both centres."""
        places = [np.array([0.0, self._shift])]
        with np.errstate(over="ignore"):
            for scale, centre in zip(self._scales, (0.0, self._shift), strict=True):
                inner, far = (np.asarray(self._law.quantile(u, scale)) for u in (_INNER, _OUTER))
                places += [each + centre for each in (inner, far, -far)]
        every: Floats = np.concatenate(places)
        finite: Floats = every[np.isfinite(every)]
        return finite

    def turns(self) -> Floats:
        """Return where the loss turns: between these, and beyond them, it rises or falls."""
        scale, other = self._scales
        square = 1 - (scale / other) ** 2
        if isinstance(self._law, Gaussian) and square:
            return np.array([-self._shift * (1 - square) / square])
        if isinstance(self._law, Cauchy) and self._shift:
            # z^2 - ((w^2 - 1) / shift + shift) z - 1 = 0, in units of the narrower scale
            half = (square / (1 - square) * scale + 1 / scale) / 2
            top = half + math.hypot(half, 1.0)
            return np.array([-scale / top, scale * top])
        return np.array([0.0, self._shift])

    def losses(self, edges: Floats) -> Ends:
        """Return the least and the largest loss between neighbouring edges, and beyond them."""
        if isinstance(self._law, Cauchy):
            a, _, apart, together = self._angles(edges)
            end = math.log1p(-self._less)
            loss = np.log1p(-apart * together / (1 + a * a)) - end
            left, right = np.concatenate([[end], loss]), np.concatenate([loss, [end]])
        else:
            side = 0.5 if self._law.discrete else 0.0
            left = np.concatenate([[-np.inf], self._at(edges + side)])
            right = np.concatenate([self._at(edges - side), [np.inf]])
            left[-1], right[0] = -np.inf, np.inf  # hardly anything is there, whatever its loss
        return np.minimum(left, right), np.maximum(left, right)

    def _at(self, values: Floats) -> Floats:
        post: Post = "integer" if self._law.discrete else "none"
        one, other = (
            self._law.loglik(values, bit, np.full(len(values), 1 / scale), post, False)
            for bit, scale in zip(self._bits, self._scales, strict=True)
        )
        return np.asarray(one - other)

    def _angles(self, edges: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return a = x / s, b = (x - shift) / s', and a - b and a + b so that nothing cancels."""
        scale, other = self._scales
        a, b = edges / scale, (edges - self._shift) / other
        return a, b, self._less * a + self._shift / other, a + b

    def _chances(self, edges: Floats) -> tuple[Floats, Floats]:
        """Return the chance of each part in the one world, and the difference to the other."""
        if isinstance(self._law, Cauchy):  # arctan a - arctan b as one angle: nothing cancels
            a, b, apart, _ = self._angles(edges)
            inner = np.arctan2(np.diff(a), 1 + a[1:] * a[:-1])
            ends = np.arctan2(1.0, np.array([-a[0], a[-1]]))
            more = np.concatenate([[0.0], np.arctan2(apart, 1 + a * b), [0.0]])
            return np.concatenate([ends[:1], inner, ends[1:]]) / np.pi, np.diff(more) / np.pi
        p, q = (
            _parts(self._law, edges - centre, 1 / scale)
            for scale, centre in zip(self._scales, (0.0, self._shift), strict=True)
        )
        return p, p - q

    def cells(
        self,
        edges: Floats,
        low: Floats | None = None,
        high: Floats | None = None,
        silence: bool = True,
    ) -> Cells:
        """Return the parts between edges as kinds of answers; silence is one more.

        Without losses, parts are told apart as they are, and each has one.
        """
        p, d = self._chances(edges)
        if low is None or high is None:
            low = high = Cells(p, d, p, p).mean
        if not (self._law.silent and silence):
            return Cells(p, d, low, high)
        value = np.array([np.nan])
        one, other = (
            float(np.exp(self._law.loglik(value, bit, np.array([1 / scale]), "integer", False))[0])
            for bit, scale in zip(self._bits, self._scales, strict=True)
        )
        d = np.append(p * (1 - one) - (p - d) * (1 - other), one - other)
        p = np.append(p * (1 - one), one)
        spoken = math.log1p(-one) - math.log1p(-other)
        mute = math.log(one / other) if one and other else math.copysign(math.inf, one - other)
        return Cells(p, d, np.append(low + spoken, mute), np.append(high + spoken, mute))


def _parts(law: Law, edges: Floats, rate: float) -> Floats:
    """Return how likely noise falls between neighbouring edges, and beyond the outer ones."""
    beyond = np.asarray(law.tail(np.abs(edges), rate))
    beyond = np.where(edges == 0, 0.5, beyond)
    left = np.where(edges <= 0, beyond, 1 - beyond)
    right = np.where(edges >= 0, beyond, 1 - beyond)
    by_left, by_right = np.diff(left), -np.diff(right)
    between = np.where(edges[1:] <= 0, by_left, by_right)
    return np.concatenate([left[:1], np.maximum(between, 0.0), right[-1:]])
