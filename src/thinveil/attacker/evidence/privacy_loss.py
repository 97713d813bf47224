"""How much many answers together tell two worlds apart, with both ends of the figure proved.

What an answer tells is ln(p/q), the ratio of its chances in two worlds; answers add these up. This
is the privacy loss distribution, composed by fast Fourier transform (Koskela et al. 2020), and
delta(epsilon) = E[max(0, 1 - exp(epsilon - loss))] in the one world is the hockey-stick divergence.

Losses are put on a grid in two ways. `outer` moves each to the grid points beside it, so that its
chances in both worlds stay what they are: that can only tell more. `inner` merges answers until
their common ratio is a grid point: that can only tell less (Doroshenko et al. 2022, "Connect the
dots"). So the truth lies between the two, and both are off by the square of a step alone. What is
cut off and what the transform rounds is charged; a loss is taken to lie on the grid where it is
within 1e-9 of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from thinveil.language.queries import Codes, Floats

MOST_LOSS: Final = 30.0
"""A larger loss of one answer is not computed with: e^30 times as likely promises nothing."""
_ON_GRID: Final = 1e-9  # a loss so close to a grid point, in steps, is meant to lie on it
_CUT: Final = 32.0  # nats of what is cut off and charged: e^-32 is about 1e-14
_POINTS: Final = 2**15  # grid points of a sum that are about aimed at
_FINEST: Final = 64  # steps in a standard deviation of one loss; it grows by 1e-4 of itself
_PLACES: Final = 2**13  # grid points of one loss, at most
_FEW: Final = 64
_FEW_FINER: Final = 8
_SURE: Final = 40.0  # a loss by so much above epsilon counts in full: e^-40 is rounding
_ROUNDING: Final = 1e-13  # of the largest difference: what is less is rounding
_UNIT: Final = 2.0**-52


@dataclass(frozen=True, slots=True)
class Cells:
    """Answers in a few kinds, and how likely each is in two worlds.

    Args:
        p: The chance of each kind in the one world.
        d: By how much it is above that in the other world. It stands apart, since at a small loss
            nothing would be left of the difference.
        low: The least loss ln(p/q) of an answer of this kind.
        high: The largest.
    """

    p: Floats
    d: Floats
    low: Floats
    high: Floats

    @property
    def q(self) -> Floats:
        """The chance of each kind in the other world."""
        return np.maximum(self.p - self.d, 0.0)

    @property
    def turned(self) -> Cells:
        """The same with both worlds exchanged."""
        return Cells(self.q, -self.d, -self.high, -self.low)

    @property
    def spread(self) -> float:
        """The standard deviation of a loss, about."""
        loss = self.mean
        some = np.isfinite(loss)
        top = float(np.abs(loss[some]).max(initial=0.0))
        if not top:
            return 0.0
        p, loss = self.p[some] / self.p[some].sum(), loss[some] / top  # squares may underflow
        return top * math.sqrt(float(p @ (loss - p @ loss) ** 2))

    @property
    def mean(self) -> Floats:
        """The loss of each kind as a whole; infinite where one world never has it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -np.log1p(-self.d / self.p)
        return np.where(self.p > 0, loss, -np.inf)


@dataclass(frozen=True, slots=True)
class Grid:
    """Chances of losses that are multiples of a step; `never` never happens in the other world."""

    step: float
    at: Codes
    mass: Floats
    never: float = 0.0


def step_for(cells: Cells, answers: int) -> float:
    """Return a step that is fine enough for one answer, and not too fine for all of them.

    The largest loss lies on the grid: often it is an atom, and then so is its mirror image.
    """
    finer = _FEW_FINER if len(cells.p) < _FEW else 1  # few losses lie off the grid by much
    wide = cells.spread * max(1 / _FINEST, 17 * math.sqrt(answers) / _POINTS) / finer
    loss = cells.mean[np.isfinite(cells.mean)]
    wide = max(wide, float(np.ptp(loss)) / _PLACES if len(loss) else 0.0)
    top = float(np.max(cells.high[np.isfinite(cells.high)], initial=0.0))
    return top / math.ceil(top / wide) if 0 < wide < top else wide or top or 1.0


def outer(cells: Cells, step: float) -> Grid:
    """Move each loss to the grid points around it: no test tells less of that than of these."""
    bottom, top = _floor(cells.low / step), -_floor(-cells.high / step)
    below, above = bottom * step, top * step
    p, q, d = cells.p, cells.q, cells.d
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        flat = d - q * np.expm1(np.minimum(below, 0.0))
        steep = np.exp(np.maximum(below, 0.0)) * (d + p * np.expm1(-np.maximum(below, 0.0)))
        part = np.where(below > 0, steep, flat) / -np.expm1(below - above)
    whole = np.isneginf(below) | np.isposinf(below)
    part = np.where(whole, p, np.where(bottom == top, 0.0, part))
    part = np.clip(np.nan_to_num(part, nan=0.0), 0.0, p)
    never = float(part[np.isposinf(above)].sum())
    at, mass = np.concatenate([bottom, top]), np.concatenate([p - part, part])
    kept = np.isfinite(at) & (mass > 0)
    return Grid(step, at[kept].astype(np.int64), mass[kept], never)


def inner(cells: Cells, step: float) -> Grid:
    """Merge answers until their ratio is a grid point: no test tells more of that.

    Sorted by loss, chances in both worlds are a concave polygon. A chord of slope e^g stands for
    all answers between its ends, each chord begins where the last one ended, and what is left at
    the end is dropped.
    """
    loss = cells.mean
    never = float(cells.p[np.isposinf(loss)].sum())
    kept = np.flatnonzero(np.isfinite(loss))
    kept = kept[np.argsort(-loss[kept], kind="stable")]
    if not len(kept):
        return Grid(step, np.empty(0, np.int64), np.empty(0), never)
    sums = (np.concatenate([[0.0], np.cumsum(each[kept])]) for each in (cells.p, cells.q, cells.d))
    p, q, d = (each.tolist() for each in sums)
    first, last = _floor(loss[kept[[0, -1]]] / step).astype(np.int64).tolist()
    noise = -_ROUNDING * max(map(abs, d))
    at, mass, here, index, end = [], [], (0.0, 0.0, 0.0), 0, len(kept)
    for place in range(first, last - 1, -1):
        up, down = math.expm1(-max(place * step, 0.0)), math.expm1(min(place * step, 0.0))
        p0, q0, d0 = here

        def over(i: int) -> float:  # how far a corner lies above the chord, without overflow
            return float((d[i] - d0) + (p[i] - p0) * up - (q[i] - q0) * down)  # noqa: B023

        if over(index + 1) < noise:
            continue
        low, high = index + 1, end + 1  # over is concave: at least 0 up to some corner
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if over(middle) >= noise else (low, middle)
        at.append(place)
        if low == end:
            mass.append(p[end] - p0)
            break
        above, below = max(over(low), 0.0), over(low + 1)
        share = above / (above - below)
        here = tuple(each[low] + share * (each[low + 1] - each[low]) for each in (p, q, d))
        mass.append(here[0] - p0)
        index = low
    return Grid(step, np.array(at, np.int64), np.array(mass), never)


def rounded_down(cells: Cells, step: float) -> Grid:
    """Take each loss as the grid point at or below it: no sum of losses gets larger by that."""
    at = _floor(cells.low / step)
    kept = np.isfinite(at) & (cells.p > 0)
    return Grid(step, at[kept].astype(np.int64), cells.p[kept])


def _floor(places: Floats) -> Floats:
    """Return the grid points at or below some places, in steps."""
    whole: Floats = np.rint(places)
    with np.errstate(invalid="ignore"):  # the infinite ones stay where they are
        near = np.abs(places - whole) < _ON_GRID
    return np.where(near, whole, np.floor(places))


@dataclass(frozen=True, slots=True)
class Sum:
    """Chances of the sum of the losses of all answers, and by how much they may be off.

    Args:
        loss: What the sum can be, ascending.
        mass: How likely that is.
        never: How likely something happens that never does in the other world.
        off: What was cut off, and what rounding may have done, in all.
        most: The largest sum there is.
    """

    loss: Floats
    mass: Floats
    never: float
    off: float
    most: float

    def delta(self, epsilon: float) -> float:
        """Return the chance of more than epsilon allows, beside what `charge` says."""
        first, last = np.searchsorted(self.loss, [epsilon, epsilon + _SURE], side="right")
        part = slice(int(first), int(last))
        near = -float((self.mass[part] * np.expm1(epsilon - self.loss[part])).sum())
        return self.never + near + float(self.mass[part.stop :].sum())

    def charge(self, epsilon: float) -> float:
        """Return by how much `delta` may be off: no loss counts by more than the largest one."""
        return self.off * -math.expm1(min(epsilon - self.most, 0.0))

    def at_least(self, loss: float) -> float:
        """Return the chance that the sum is at least so much, rather too low than too high."""
        return float(self.mass[self.loss >= loss].sum()) - self.off


def summed(grid: Grid, answers: int) -> Sum:
    """Return the sum of as many independent losses: the transform of one, to that power.

    The transform goes round in a circle. It is made so large that less than e^-32 is beyond it
    at either end, by Chernoff's bound; that is charged, and so is the transform's own rounding.
    """
    never = -math.expm1(answers * math.log1p(-min(grid.never, 1 - _UNIT)))
    some = grid.mass > 0
    if not some.any():
        return Sum(np.empty(0), np.empty(0), never, 0.0, math.inf)
    places, index = np.unique(grid.at[some], return_inverse=True)
    mass: Floats = np.bincount(index, grid.mass[some]).astype(np.float64)
    if answers * math.log(min(float(mass.sum()), 1.0)) < -_CUT:  # all but never without one
        return Sum(np.empty(0), np.empty(0), never, math.exp(-_CUT), math.inf)
    most = math.inf if grid.never else answers * int(places[-1]) * grid.step
    if answers == 1:
        return Sum(np.asarray(places * grid.step, np.float64), mass, never, _UNIT * len(mass), most)
    bottom, top = -_beyond(-places[::-1], mass[::-1], answers), _beyond(places, mass, answers)
    size = 1 << max(int(top - bottom + 2).bit_length(), 4)
    one = np.bincount(places % size, mass, size)
    spectrum = np.fft.rfft(one)
    # an error of each coefficient, times answers at most; what is small stays small when raised
    wrong = answers * 4 * _UNIT * math.log2(size)
    weights = np.abs(spectrum) ** (2.0 * (answers - 1))
    rounding = wrong * math.sqrt(2 * float(weights.sum()))
    total = np.roll(np.fft.irfft(spectrum**answers, size), -(bottom % size))
    loss: Floats = np.asarray((bottom + np.arange(size)) * grid.step, np.float64)
    off = 2 * math.exp(-_CUT) + rounding
    kept = total > 0
    return Sum(loss[kept], total[kept], never, off, most)


def _beyond(places: Codes, mass: Floats, answers: int) -> int:
    """Return a place that the sum passes with a chance of at most e^-32 (Chernoff's bound)."""
    most = int(places[-1])
    wide = max(float(places[-1] - places[0]), 1.0)
    tilt = np.geomspace(1 / (answers * wide), 64 / math.sqrt(answers), 48)[:, None]
    grown = np.log(np.exp(tilt * (places - most)) @ mass)  # none overflows
    bound = float(np.min((answers * grown + _CUT) / tilt[:, 0])) + answers * most
    return int(min(max(math.ceil(bound), answers * int(places[0])), answers * most))


def deltas(cells: Cells, answers: int, epsilons: Floats, mirror: bool) -> tuple[Floats, Floats]:
    """Return both ends of delta(epsilon) of so many answers, the larger of both directions.

    Where both worlds are each other's `mirror`, one direction is enough.
    """
    low, high = np.zeros(len(epsilons)), np.zeros(len(epsilons))
    for each in (cells,) if mirror else (cells, cells.turned):
        step = step_for(each, answers)
        least, most = summed(inner(each, step), answers), summed(outer(each, step), answers)
        wanted = epsilons.tolist()
        low = np.maximum(low, [least.delta(eps) - least.charge(eps) for eps in wanted])
        high = np.maximum(high, [most.delta(eps) + most.charge(eps) for eps in wanted])
    return np.minimum(low, 1.0), np.minimum(high, 1.0)


def shifted_cauchy(rate: float, steps: int) -> Cells:
    """Return what an answer tells of a bit under Cauchy noise: ln(p/q) of t = rate x.

    It rises, falls and rises again, with its ends at rate/2 -+ sqrt(1 + rate^2/4); cells are
    equally likely but for those that end there, four for each step.
    """
    ends = np.arctan(rate / 2 + np.array([-1.0, 1.0]) * math.sqrt(1 + rate * rate / 4))
    angle = np.union1d(np.linspace(-math.pi / 2, math.pi / 2, 4 * steps + 1), ends)
    t = np.tan(angle[1:-1])
    loss = np.zeros(len(angle))
    loss[1:-1] = np.log1p(rate * (rate - 2 * t) / (1 + t * t))
    p: Floats = np.diff(angle) / math.pi
    other = np.zeros(len(angle))
    other[[0, -1]], other[1:-1] = (-math.pi / 2, math.pi / 2), np.arctan(t - rate)
    low, high = np.minimum(loss[:-1], loss[1:]), np.maximum(loss[:-1], loss[1:])
    return Cells(p, p - np.diff(other) / math.pi, low, high)


def shifted_laplace(rate: float, steps: int) -> Cells:
    """Return what an answer tells of a bit under Laplace noise: ln(p/q) is rate (1 - 2 x).

    At most 0 it is the rate, from 1 on minus the rate, and in between it is cut into so many
    steps on either side of 1/2.
    """
    edge = np.linspace(0.0, 1.0, 2 * steps + 1)
    width = -np.expm1(-rate / (2 * steps)) / 2
    between, mirrored = np.exp(-rate * edge[:-1]) * width, np.exp(-rate * (1 - edge[1:])) * width
    far, all_in = 0.5 * math.exp(-rate), -0.5 * math.expm1(-rate)
    p = np.concatenate([[0.5], between, [far]])
    d = np.concatenate([[all_in], between - mirrored, [-all_in]])
    loss = rate * np.concatenate([[1.0], 1 - 2 * edge, [-1.0]])
    low = np.concatenate([loss[:1], loss[2:-1], loss[-1:]])
    high = np.concatenate([loss[:1], loss[1:-2], loss[-1:]])
    return Cells(p, d, low, high)
