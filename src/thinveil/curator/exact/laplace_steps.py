"""Laplace noise in whole numbers of steps of a public grid (discrete Laplace, two-sided geometric).

Adding a double to a double tells what both were: the sum of 0 or 1 and a rounded logarithm can be
only some doubles, and mostly others for 0 than for 1 (Mironov 2012). So here nothing is rounded
before the bit is added, and no logarithm is taken.

The grid. For noise of scale s, a number that hangs on the claim and the loss alone, steps are
g = 2^-m, with s / g between 2^40 and 2^41: fine enough that nobody misses what lies between
(KS distance below 2^-40). Steps are at most 1 while s < 2^52, so that the bit is a whole number
of them, and at least 2^-52, so that sums are doubles. Below a loss of 2^-52 steps are longer than
1: the bit does not reach the grid, and answers tell nothing of it.

The noise. Z steps, with P(z) proportional to exp(-|z| / T) and T = floor(s / g) + 2. The bit is
1 / g steps, so it moves the probability of any sum by a factor of at most exp(1 / (g T)): pure
differential privacy at 1 / (g T). That is at most the loss e that is charged. A double x that
stands for e is off by at most 2^-53 of it, and so is the quotient s = c / x with c >= 1, hence
1 / e <= s (1 - 2^-53)^-2 < s + (2^-52 + 2^-104) s; times 1 / g, with s / g < 2^52, this is less
than s / g + 1 + 2^-50 <= T (above 2^51, s / g is a multiple of 1/2, so that T >= s / g + 3/2). The
price: noise is wider than claimed by 2 steps of 2^40, and by more at losses above 2^12.

The draw. |Z| is geometric: U uniform below T, kept with probability exp(-U / T), and V the number
of successes of probability exp(-1) before a failure give P(U + T V = x) proportional to
exp(-x / T). A fair sign, with -0 thrown away, makes it two-sided (algorithm 2 of Canonne, Kamath
and Steinke 2020). Dividing a geometric number by 2^m, rounding down, leaves a geometric one with
exp(-2^m / T) in place of exp(-1 / T): that is noise in whole numbers.

The answer is (bit / g + Z) g. As a double it is exact up to 2^53 steps; beyond, its rounding hangs
on the sum alone, as every later rounding does (post-processing).

Assumed: random words are uniform and independent. How long a draw takes hangs on words alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from thinveil.curator.exact.taps import Powers, Tap
from thinveil.language.contracts import Words
from thinveil.language.queries import Codes, Floats

_FINE: Final = 41  # steps of 2^(e - 41) for a scale from 2^(e - 1) up to 2^e
_WIDE: Final = 52  # scales of 2^52 and more have steps above 1; no step is below 2^-52
_FITS: Final = np.uint64(512)  # times T, at most 2^52 + 1: fits 63 bits

Steps = npt.NDArray[Any]
"""Whole numbers: of 64 bits, or without limits where that is not enough."""


def grid_of(scale: Floats) -> tuple[Powers, Words]:
    """Return, for public scales, how fine the grid is (m of 2^-m) and T of exp(-|z| / T)."""
    exponent = np.frexp(scale)[1]
    fine = np.maximum(_FINE - exponent, np.minimum(_WIDE - exponent, 0))
    m = np.minimum(fine, _WIDE).astype(np.intc)
    return m, np.ldexp(scale, m).astype(np.uint64) + np.uint64(2)


def laplace(tap: Tap, bits: Floats, scale: Floats, *, whole: bool) -> Floats:
    """Return true bits with noise of these scales, in steps of the grid or in whole numbers."""
    m, t = grid_of(scale)
    below_one = np.maximum(m, 0).astype(np.int64)  # binary digits of a step that whole numbers lack
    unit = np.where(m < 0, 0, 1 if whole else 1 << below_one)
    centre, power = bits.astype(np.int64) * unit, np.maximum(-m, 0) if whole else -m
    answers = np.empty(len(bits))
    left = np.arange(len(bits))
    while len(left):
        steps = geometric(tap, left, t[left])
        if whole:
            steps = steps >> below_one[left].astype(steps.dtype)
        minus = tap.coins(left)
        total = centre[left].astype(steps.dtype) + np.where(minus, -steps, steps)
        answers[left] = np.ldexp(total.astype(np.float64), power[left])
        left = left[minus & (steps == 0)]
    return answers


def geometric(tap: Tap, who: Codes, t: Words) -> Steps:
    """Return whole numbers x from 0 on, with probabilities proportional to exp(-x / T)."""
    u = np.empty(len(who), np.uint64)
    left = np.arange(len(who))
    while len(left):
        tried = tap.below(who[left], t[left])
        kept = tap.faded(who[left], tried, t[left])
        u[left[kept]] = tried[kept]
        left = left[~kept]
    v = np.zeros(len(who), np.uint64)
    left = np.arange(len(who))
    while len(left):
        left = left[tap.faded_once(who[left])]
        v[left] += np.uint64(1)
    if (v < _FITS).all():
        return (u + t * v).astype(np.int64)
    beyond: Steps = u.astype(object) + t.astype(object) * v.astype(object)  # one draw of e^512
    return beyond
